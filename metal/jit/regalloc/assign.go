package regalloc

import "slices"

// maxEvictions is how many times, per virtual register, one may take another's register before that stops.
const maxEvictions = 4

// assign gives registers to the virtual registers of one class.
func (a *Allocator) assign(c uint8, regs []uint8) {
	if len(regs) == 0 {
		return
	}
	a.perReg = len(a.first)/32 + 1
	top := 0
	for _, r := range regs {
		top = max(top, int(r)+1)
	}
	a.stretches = len(a.first)*2>>stretchBits + 1
	a.held.empty(top * a.stretches)
	a.taken = resize(a.taken, top*a.perReg)
	clear(a.taken)
	evictions := maxEvictions * len(a.order)
	for _, v := range a.order {
		if a.class[v] != c {
			continue
		}
		a.queue = append(a.queue[:0], v)
		for len(a.queue) > 0 {
			n := len(a.queue) - 1
			v := a.queue[n]
			a.queue = a.queue[:n]
			if a.work < 0 {
				continue
			}
			r := a.hinted(v)
			for k := 0; r < 0 && k < len(regs); k++ {
				if a.free(v, int(regs[k])) {
					r = int(regs[k])
				}
			}
			if r < 0 && evictions > 0 {
				evictions--
				r = a.evict(v, regs)
			}
			if r >= 0 {
				a.take(v, r)
			}
		}
	}
}

// busy returns the words that say where a register is taken.
func (a *Allocator) busy(r int) []uint64 { return a.taken[r*a.perReg : (r+1)*a.perReg] }

// free reports whether a register is free wherever v is live.
func (a *Allocator) free(v int32, r int) bool {
	busy := a.busy(r)
	for k := a.ivs[v].head; k >= 0; k = a.ranges[k].next {
		s := &a.ranges[k]
		from, to := int(s.from>>6), int(s.to>>6)
		a.work--
		low, high := ^uint64(0)<<(s.from&63), ^uint64(0)>>(63-s.to&63)
		if from == to {
			if busy[from]&low&high != 0 {
				return false
			}
			continue
		}
		if busy[from]&low != 0 || busy[to]&high != 0 {
			return false
		}
		for w := from + 1; w < to; w++ {
			a.work--
			if busy[w] != 0 {
				return false
			}
		}
	}
	return true
}

// mark says that a register is taken wherever v is live, or that it is not.
func (a *Allocator) mark(v int32, r int, taken bool) {
	busy := a.busy(r)
	for k := a.ivs[v].head; k >= 0; k = a.ranges[k].next {
		s := &a.ranges[k]
		from, to := int(s.from>>6), int(s.to>>6)
		a.work -= to - from + 1
		for w := from; w <= to; w++ {
			m := ^uint64(0)
			if w == from {
				m = m << (s.from & 63)
			}
			if w == to {
				m &= ^uint64(0) >> (63 - s.to&63)
			}
			if taken {
				busy[w] |= m
			} else {
				busy[w] &^= m
			}
		}
	}
}

// take gives a register to v.
func (a *Allocator) take(v int32, r int) {
	a.result.Reg[v] = int16(r)
	a.mark(v, r, true)
	a.hold(v, r)
}

// hinted returns the register of something that v is a copy of, or that is a copy of v, if v can have it; else -1.
func (a *Allocator) hinted(v int32) int {
	for n := a.ivs[v].hints; n >= 0; n = a.hints[n].next {
		h := &a.hints[n]
		r := int(a.result.Reg[h.other])
		if r < 0 {
			continue
		}
		if a.free(v, r) || h.whole && a.shares(v, r, h) {
			return r
		}
	}
	return -1
}

// shares reports whether v can have the register of the other side of a copy though both are live at the same
// time, because then they are equal: nothing else that is live with v has the register, and where both are live
// the copy has been made and neither was written since. That is so if the source is written before the copy
// only, if nothing else writes the destination while the source lives, and if they do not live together before
// the copy (on a way round the copy they would, where the source is written).
func (a *Allocator) shares(v int32, r int, h *hint) bool {
	src, dst := h.other, v
	if h.source {
		src, dst = v, h.other
	}
	s := &a.ivs[src]
	if s.def >= h.at || a.together(src, dst) <= 2*h.at {
		return false
	}
	if a.written(dst, src, h.at) {
		return false
	}
	alone := true
	a.eachHolder(v, r, func(u int32) bool {
		alone = u == h.other
		return alone
	})
	return alone
}

// written reports whether anything but instruction but writes dst while src lives.
func (a *Allocator) written(dst, src, but int32) bool {
	for k := a.ivs[src].head; k >= 0; k = a.ranges[k].next {
		s := &a.ranges[k]
		a.work -= 1 + int(min(s.to>>1-s.from>>1, 4*a.ivs[dst].defs))
		if s.to>>1-s.from>>1 > 4*a.ivs[dst].defs {
			for d := a.ivs[dst].writes; d >= 0 && a.writes[d].at >= s.from>>1; d = a.writes[d].next {
				if i := a.writes[d].at; i <= s.to>>1 && i != but {
					return true
				}
			}
			continue
		}
		for i := s.from >> 1; i <= s.to>>1; i++ {
			if i == but {
				continue
			}
			for _, o := range a.ops[a.first[i]:a.first[i+1]] {
				if o.V == dst && o.Role&Def != 0 {
					return true
				}
			}
		}
	}
	return false
}

// together returns the first position where both are live, -1 if there is none.
func (a *Allocator) together(u, v int32) int32 {
	x, y := a.ivs[u].head, a.ivs[v].head
	if x < 0 || y < 0 || a.ranges[x].from > a.ivs[v].end || a.ranges[y].from > a.ivs[u].end {
		return -1
	}
	for x >= 0 && y >= 0 {
		p, q := &a.ranges[x], &a.ranges[y]
		a.work--
		switch {
		case p.to < q.from:
			x = p.next
		case q.to < p.from:
			y = q.next
		default:
			return max(p.from, q.from)
		}
	}
	return -1
}

// evict finds the register whose holders that are in v's way cost least, takes it from them if each of them
// costs less than v, and returns it; else -1. Who loses a register is queued.
func (a *Allocator) evict(v int32, regs []uint8) int {
	best, who := a.ivs[v].weight, -1
	for _, r := range regs {
		worst := float32(0)
		a.eachHolder(v, int(r), func(u int32) bool {
			worst = max(worst, a.ivs[u].weight)
			return worst < best
		})
		if worst < best {
			best, who = worst, int(r)
		}
	}
	if who < 0 {
		return -1
	}
	first := len(a.queue)
	a.eachHolder(v, who, func(u int32) bool {
		a.queue = append(a.queue, u)
		return true
	})
	lost := a.queue[first:]
	slices.SortFunc(lost, func(x, y int32) int { return int(a.ivs[x].turn - a.ivs[y].turn) })
	for _, u := range lost {
		a.result.Reg[u] = -1
		a.letGo(u, who)
		a.mark(u, who, false)
	}
	for _, u := range lost { // somebody who shared the register with it may have it still
		a.eachHolder(u, who, func(x int32) bool {
			a.mark(x, who, true)
			return true
		})
	}
	return who
}
