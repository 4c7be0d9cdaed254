package regalloc

// coldWeight is what an occurrence in cold code counts.
const coldWeight = 1.0 / 64

// maxDepth is the depth of loops from which on deeper ones count no more.
const maxDepth = 6

var weights = [maxDepth + 1]float32{1, 8, 64, 512, 4096, 32768, 262144}

// block is a run of instructions that control enters at the first only.
type block struct {
	first, last int32
	label       int32    // where control may go on, 0: nowhere
	to          [2]int32 // the blocks that follow, -1: none
	entered     bool     // a block before goes on here
}

// read takes down the list: operands, blocks, hints.
func (a *Allocator) read(f Func) {
	n := f.Len()
	a.ops, a.first, a.blocks, a.cold = a.ops[:0], a.first[:0], a.blocks[:0], a.cold[:0]
	a.loops = a.loops[:0]
	a.labels = resize(a.labels, f.Labels()+1)
	for k := range a.labels {
		a.labels[k] = -1
	}
	a.depth, a.chill = 0, 0
	open := false // the last block goes on
	begin := func(i int) {
		a.blocks = append(a.blocks, block{first: int32(i), to: [2]int32{-1, -1}})
		open = true
	}
	for i := range n {
		in := &a.in
		*in = Inst{Ops: in.Ops[:0]}
		f.Inst(i, in)
		a.first = append(a.first, int32(len(a.ops)))
		if !open {
			begin(i)
		}
		b := len(a.blocks) - 1
		switch in.Kind {
		case Place:
			if a.blocks[b].first != int32(i) {
				a.blocks[b].to[0] = int32(b + 1)
				begin(i)
				b++
			}
			if in.Label > 0 && int(in.Label) < len(a.labels) {
				a.labels[in.Label] = int32(b)
			}
			in.Label = 0
		case LoopBegin:
			if a.depth++; a.depth == 1 {
				a.loops = append(a.loops, span{from: int32(i), to: int32(n)})
			}
		case LoopEnd:
			if a.depth--; a.depth == 0 {
				a.loops[len(a.loops)-1].to = int32(i)
			}
		case ColdBegin:
			a.chill++
			a.cold = append(a.cold, int32(b))
			in.Ends = true
		case ColdEnd:
			a.chill--
			in.Ends = true
		case Save:
			a.saves = at(a.saves, in.Safepoint, -1)
		case Load:
			a.saves = at(a.saves, in.Safepoint, int32(i))
		}
		a.operands(int32(i), int32(b), in)
		a.blocks[b].last = int32(i)
		if in.Ends || in.Label != 0 {
			a.blocks[b].label = in.Label
			if !in.Ends {
				a.blocks[b].to[0] = int32(b + 1)
			}
			open = false
		}
		if in.Kind == ColdEnd && len(a.cold) > 0 {
			k := len(a.cold) - 1
			a.blocks[a.cold[k]].to[0] = int32(b + 1)
			a.cold = a.cold[:k]
		}
	}
	a.first = append(a.first, int32(len(a.ops)))
	for k := range a.blocks {
		b := &a.blocks[k]
		if b.to[0] >= int32(len(a.blocks)) {
			b.to[0] = -1
		}
		if l := b.label; l > 0 && int(l) < len(a.labels) {
			b.to[1] = a.labels[l]
		}
		for _, t := range b.to {
			if t >= 0 {
				a.blocks[t].entered = true
			}
		}
	}
}

// at sets s[n] to v if that is not negative, growing s.
func at(s []int32, n, v int32) []int32 {
	for len(s) <= int(n) {
		s = append(s, -1)
	}
	if n >= 0 && v >= 0 {
		s[n] = v
	}
	return s
}

// operands takes down the operands of an instruction.
func (a *Allocator) operands(i, b int32, in *Inst) {
	if len(in.Ops) == 0 {
		return
	}
	w := weights[min(max(a.depth, 0), maxDepth)]
	if a.chill > 0 {
		w *= coldWeight
	}
	for _, op := range in.Ops {
		iv := &a.ivs[op.V]
		iv.cost += w
		if op.Role&Def != 0 {
			iv.defs++
			iv.def = i
			a.writes = append(a.writes, write{at: i, next: iv.writes})
			iv.writes = int32(len(a.writes) - 1)
		}
		switch iv.block {
		case -1:
			iv.block = b
		case b, -2:
		default:
			iv.block = -2
		}
		if iv.seen < 0 {
			iv.seen = i
		}
		if iv.seen == i && op.Role&Use != 0 {
			if !writesOf(in.Ops, op.V) {
				iv.block = -2 // if it has a value, that comes round a loop
			} else if op.Role &^= Use; op.Role == 0 {
				continue // where it is named first there is nothing yet that could be read
			}
		}
		a.ops = append(a.ops, op)
	}
	if (in.Copy || in.Hint) && len(in.Ops) == 2 {
		src, dst := in.Ops[0].V, in.Ops[1].V
		a.hint(src, hint{at: i, other: dst, source: true, whole: in.Copy})
		a.hint(dst, hint{at: i, other: src, whole: in.Copy})
	}
	if in.Remat {
		a.ivs[in.Ops[len(in.Ops)-1].V].remat = i
	}
}

func (a *Allocator) hint(v int32, h hint) {
	h.next = a.ivs[v].hints
	a.ivs[v].hints = int32(len(a.hints))
	a.hints = append(a.hints, h)
}

// writesOf reports whether an operand writes v.
func writesOf(ops []Operand, v int32) bool {
	for _, o := range ops {
		if o.V == v && o.Role&Def != 0 {
			return true
		}
	}
	return false
}

// build makes the ranges, from the last instruction to the first.
func (a *Allocator) build() {
	for b := len(a.blocks) - 1; b >= 0; b-- {
		from, to := 2*a.blocks[b].first, 2*a.blocks[b].last+1
		for n := a.flow.outAt[b]; n >= 0; n = a.flow.outs[n].next {
			a.cover(a.flow.outs[n].what, from, to)
		}
		for i := a.blocks[b].last; i >= a.blocks[b].first; i-- {
			ops := a.ops[a.first[i]:a.first[i+1]]
			for _, o := range ops {
				if o.Role&Def != 0 && !a.ivs[o.V].coarse {
					a.begins(o, i)
				}
			}
			for _, o := range ops {
				if o.Role&Use != 0 && !a.ivs[o.V].coarse {
					a.cover(o.V, a.since(o.V, b, from, i), 2*i)
				}
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
		for r := iv.head; r >= 0; r = a.ranges[r].next {
			iv.length += a.ranges[r].to - a.ranges[r].from + 1
			iv.end = a.ranges[r].to
		}
		iv.weight = iv.cost / float32(iv.length+1)
	}
}

// since returns where the value read at instruction i begins: in this block, or at its instruction if nothing
// wrote it.
func (a *Allocator) since(v int32, b int, from, i int32) int32 {
	if len(a.flow.never) > 0 && a.ivs[v].block == -2 {
		if _, ok := a.flow.never[pair{v, int32(b)}]; ok {
			return 2 * i // never written on the way here
		}
	}
	return from
}

// cover adds a range in front of those that are there, which begin later or overlap it.
func (a *Allocator) cover(v, from, to int32) {
	iv := &a.ivs[v]
	if iv.head >= 0 {
		if s := &a.ranges[iv.head]; s.from <= to+1 {
			s.from = min(s.from, from)
			return
		}
	}
	a.ranges = append(a.ranges, span{from: from, to: to, next: iv.head})
	iv.head = int32(len(a.ranges) - 1)
}

// begins ends the way back of a value at the instruction that writes it.
func (a *Allocator) begins(o Operand, i int32) {
	at := 2*i + 1
	if o.Early {
		at = 2 * i
	}
	iv := &a.ivs[o.V]
	if iv.head < 0 || a.ranges[iv.head].from > 2*i+1 { // nobody reads it
		a.cover(o.V, at, 2*i+1)
		return
	}
	if s := &a.ranges[iv.head]; s.from < at {
		s.from = at
	}
}

// sort orders the virtual registers by their beginnings.
func (a *Allocator) sort() {
	a.starts = resize(a.starts, len(a.first))
	for k := range a.starts {
		a.starts[k] = -1
	}
	for v := len(a.ivs) - 1; v >= 0; v-- {
		iv := &a.ivs[v]
		if iv.head >= 0 {
			i := a.ranges[iv.head].from >> 1
			iv.next = a.starts[i]
			a.starts[i] = int32(v)
		}
	}
	a.order = a.order[:0]
	for _, v := range a.starts {
		for x := v; x >= 0; x = a.ivs[x].next {
			if a.ranges[a.ivs[x].head].from&1 == 0 {
				a.order = append(a.order, x)
			}
		}
		for x := v; x >= 0; x = a.ivs[x].next {
			if a.ranges[a.ivs[x].head].from&1 == 1 {
				a.order = append(a.order, x)
			}
		}
	}
}
