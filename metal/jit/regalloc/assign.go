package regalloc

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
		a.holders[r] = a.holders[r][:0]
	}
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
			if busy[w] != 0 {
				return false
			}
		}
	}
	return true
}

// mark says that a register is taken wherever v is live.
func (a *Allocator) mark(v int32, r int) {
	busy := a.busy(r)
	for k := a.ivs[v].head; k >= 0; k = a.ranges[k].next {
		s := &a.ranges[k]
		from, to := int(s.from>>6), int(s.to>>6)
		low, high := ^uint64(0)<<(s.from&63), ^uint64(0)>>(63-s.to&63)
		if from == to {
			busy[from] |= low & high
			continue
		}
		busy[from] |= low
		for w := from + 1; w < to; w++ {
			busy[w] = ^uint64(0)
		}
		busy[to] |= high
	}
}

// take gives a register to v.
func (a *Allocator) take(v int32, r int) {
	a.result.Reg[v] = int16(r)
	a.mark(v, r)
	a.holders[r] = append(a.holders[r], v)
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
	for k := s.head; k >= 0; k = a.ranges[k].next {
		for i := a.ranges[k].from >> 1; i <= a.ranges[k].to>>1; i++ {
			if i == h.at {
				continue
			}
			for _, o := range a.ops[a.first[i]:a.first[i+1]] {
				if o.V == dst && o.Role&Def != 0 {
					return false
				}
			}
		}
	}
	for _, u := range a.holders[r] {
		if u != h.other && a.together(u, v) >= 0 {
			return false
		}
	}
	return true
}

// together returns the first position where both are live, -1 if there is none.
func (a *Allocator) together(u, v int32) int32 {
	x, y := a.ivs[u].head, a.ivs[v].head
	if x < 0 || y < 0 || a.ranges[x].from > a.ivs[v].end || a.ranges[y].from > a.ivs[u].end {
		return -1
	}
	for x >= 0 && y >= 0 {
		p, q := &a.ranges[x], &a.ranges[y]
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
		for _, u := range a.holders[r] {
			if w := a.ivs[u].weight; w > worst && a.together(u, v) >= 0 {
				if worst = w; worst >= best {
					break
				}
			}
		}
		if worst < best {
			best, who = worst, int(r)
		}
	}
	if who < 0 {
		return -1
	}
	kept := a.holders[who][:0]
	for _, u := range a.holders[who] {
		if a.together(u, v) >= 0 {
			a.result.Reg[u] = -1
			a.queue = append(a.queue, u)
		} else {
			kept = append(kept, u)
		}
	}
	a.holders[who] = kept
	clear(a.busy(who))
	for _, u := range kept {
		a.mark(u, who)
	}
	return who
}
