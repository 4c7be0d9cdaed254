package regalloc

// coldWeight is what an occurrence in cold code counts.
const coldWeight = 1.0 / 64

// maxDepth is the depth of loops from which on deeper ones count no more.
const maxDepth = 6

// build finds the intervals.
func (a *Allocator) build(f Func) {
	next := int32(0) // loop
	weights := [maxDepth + 1]float32{1}
	for d := 1; d <= maxDepth; d++ {
		weights[d] = weights[d-1] * 8
	}
	cold := 0
	for i := range f.Len() {
		in := &a.in
		f.Inst(i, in)
		switch in.Kind {
		case LoopBegin:
			a.stack = append(a.stack, next)
			next++
		case LoopEnd:
			a.stack = a.stack[:max(0, len(a.stack)-1)]
		case ColdBegin:
			cold++
		case ColdEnd:
			cold--
		case Save:
			a.saves = at(a.saves, in.Safepoint, int32(2*i))
		case Load:
			a.loads = at(a.loads, in.Safepoint, int32(2*i))
		}
		if len(in.Ops) == 0 {
			continue
		}
		w := weights[min(len(a.stack), maxDepth)]
		if cold > 0 {
			w *= coldWeight
		}
		for _, op := range in.Ops {
			a.occurs(int32(i), op, w)
		}
		if in.Copy && len(in.Ops) == 2 {
			dst := &a.ivs[in.Ops[1].V]
			if dst.hint < 0 {
				dst.hint = in.Ops[0].V
			}
			if src := &a.ivs[in.Ops[0].V]; src.hint < 0 {
				src.hint = in.Ops[1].V
			}
		}
		if in.Remat {
			if d := &a.ivs[in.Ops[len(in.Ops)-1].V]; d.defs == 1 {
				d.remat = int32(i)
			}
		}
	}
	for v := range a.ivs {
		iv := &a.ivs[v]
		if iv.defs != 1 {
			iv.remat = -1
		}
		if iv.remat >= 0 {
			iv.cost /= 4 // its uses are as cheap as memory operands, and its definition goes
		}
		iv.weight = iv.cost / float32(iv.end-iv.start+2)
	}
}

// at sets s[n], for n >= 0, growing s.
func at(s []int32, n, v int32) []int32 {
	for len(s) <= int(n) {
		s = append(s, -1)
	}
	if n >= 0 {
		s[n] = v
	}
	return s
}

// occurs extends an interval by an occurrence.
func (a *Allocator) occurs(i int32, op Operand, w float32) {
	iv := &a.ivs[op.V]
	begin, end := 2*i+1, 2*i
	if op.Role&Use != 0 || op.Early {
		begin = 2 * i
	}
	if op.Role&Def != 0 {
		end = 2*i + 1
		iv.defs++
	}
	if iv.end < 0 {
		iv.start = begin
		a.order = append(a.order, op.V)
		if op.Role == Use && len(a.stack) > 0 { // it comes from the turn before
			l := a.loops[a.stack[0]]
			iv.start, end = l.begin, l.end
		}
	} else {
		for _, n := range a.stack { // the outermost loop that began after the interval did
			if l := &a.loops[n]; l.begin > iv.start {
				end = l.end
				break
			}
		}
	}
	iv.end = max(iv.end, end)
	iv.cost += w
}

// scan gives registers to the intervals of one class, in order of their starts.
func (a *Allocator) scan(c uint8, regs []uint8) {
	for _, r := range regs {
		a.ends[r] = -1
		a.owner[r] = -1
	}
	res := &a.result
	for _, v := range a.order {
		if a.class[v] != c {
			continue
		}
		iv := &a.ivs[v]
		if r := a.pick(iv, regs); r >= 0 {
			a.take(v, r)
			continue
		}
		// All are taken: the one that costs least has to go, as a whole.
		worst, who := iv.weight, -1
		for _, r := range regs {
			if x := a.ivs[a.owner[r]].weight; x < worst {
				worst, who = x, int(r)
			}
		}
		res.Spills++
		if who >= 0 {
			res.Reg[a.owner[who]] = -1
			a.take(v, who)
		}
	}
}

func (a *Allocator) take(v int32, r int) {
	a.result.Reg[v] = int16(r)
	a.ends[r] = a.ivs[v].end
	a.owner[r] = v
}

// pick returns a free register: the one of what the interval is a copy of if it can, -1 if none is free.
func (a *Allocator) pick(iv *interval, regs []uint8) int {
	if iv.hint >= 0 {
		h := a.result.Reg[iv.hint]
		// The register may have been taken away and given to another since.
		if h >= 0 && a.ends[h] < iv.start {
			return int(h)
		}
	}
	for _, r := range regs {
		if a.ends[r] < iv.start {
			return int(r)
		}
	}
	return -1
}

// points gives slots to what is in no register and to what lives across safepoints, and lists the latter.
func (a *Allocator) points(classes []Class) {
	res := &a.result
	n := min(len(a.saves), len(a.loads))
	res.Points = resize(res.Points, n)
	for p := range n {
		res.Points[p] = res.Points[p][:0]
		s, l := a.saves[p], a.loads[p]
		if s < 0 || l < 0 {
			continue
		}
		for _, v := range a.order {
			iv := &a.ivs[v]
			if iv.start >= min(s, l) {
				break
			}
			if iv.end > max(s, l) && res.Reg[v] >= 0 {
				res.Points[p] = append(res.Points[p], v)
				if res.Remat[v] < 0 {
					res.Slot[v] = 0 // wanted
				}
			}
		}
	}
	for _, v := range a.order {
		if res.Reg[v] < 0 && res.Remat[v] < 0 {
			res.Slot[v] = 0
		}
	}
	// The largest slots first, so that all are aligned without gaps.
	for size := 64; size > 0; size /= 2 {
		at := (res.Bytes + size - 1) &^ (size - 1)
		a.slots = a.slots[:0]
		for _, v := range a.order {
			if res.Slot[v] < 0 || classes[a.class[v]].Slot != size {
				continue
			}
			iv := &a.ivs[v]
			k := 0
			for k < len(a.slots) && a.slots[k] >= iv.start {
				k++
			}
			if k == len(a.slots) {
				a.slots = append(a.slots, 0)
			}
			a.slots[k] = iv.end
			res.Slot[v] = int32(at + k*size)
		}
		if len(a.slots) > 0 {
			res.Bytes = at + len(a.slots)*size
		}
	}
}
