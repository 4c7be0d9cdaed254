package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// pure returns the value of a pure operation: a constant, an operand, an equal value that is there already, or a new
// instruction. It may change args.
func (r *rewriter) pure(op kir.Op, t kir.Type, m kir.Mode, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	if op.Commutes() && args[0].Op == kir.Const && args[1].Op != kir.Const {
		args[0], args[1] = args[1], args[0]
	}
	if x := r.fold(op, t, imm, pos, args); x != nil {
		return x
	}
	return r.share(op, t, m, imm, pos, args)
}

// op is pure for operations that have only operands.
func (r *rewriter) op(op kir.Op, t kir.Type, pos kir.Pos, args ...*kir.Instr) *kir.Instr {
	return r.pure(op, t, 0, 0, pos, args)
}

func (r *rewriter) constant(t kir.Type, bits uint64, pos kir.Pos) *kir.Instr {
	return r.share(kir.Const, t, 0, bits&t.Mask(), pos, nil)
}

// share finds an equal value that is in scope, or makes one in front of the loops that do not change it.
func (r *rewriter) share(op kir.Op, t kir.Type, m kir.Mode, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	slot := r.slot(op, t, m, imm, 0, args)
	if x := r.find(*slot, op, t, m, imm, 0, args); x != nil {
		return x
	}
	depth, lanes := int32(0), op == kir.Builtin && !m.Uniform() && imm == 0
	for _, a := range args {
		depth = max(depth, r.info[a.ID].depth)
		lanes = lanes || r.info[a.ID].lanes
	}
	at := len(r.scopes) - 1
	if len(args) == 0 {
		at = 0
	}
	for d := int(depth) + 1; d <= at; d++ {
		if r.scopes[d].loop != nil {
			at = d - 1
		}
	}
	x := r.putAt(at, r.create(op, t, m, imm, pos, args))
	e := &r.info[x.ID]
	e.lanes, e.next = lanes, *slot
	*slot = int32(x.ID) + 1
	return x
}

// slot returns where values begin that may be equal to one.
func (r *rewriter) slot(op kir.Op, t kir.Type, m kir.Mode, imm uint64, gen int32, args []*kir.Instr) *int32 {
	h := uint64(op)<<8 | uint64(t) | uint64(m)<<16 | uint64(gen)<<24 + imm*0x9e3779b97f4a7c15
	for _, a := range args {
		h = (h ^ uint64(a.ID)) * 0xff51afd7ed558ccd
		h ^= h >> 29
	}
	h *= 0x9e3779b97f4a7c15
	return &r.slots[h>>32&uint64(len(r.slots)-1)]
}

func (r *rewriter) find(slot int32, op kir.Op, t kir.Type, m kir.Mode, imm uint64, gen int32,
	args []*kir.Instr) *kir.Instr {
	for i := slot; i != 0; {
		e := &r.info[i-1]
		x := e.to
		if r.open[e.block] && x.Op == op && x.Type == t && x.Mode == m && x.Imm == imm && e.gen == gen &&
			same(x.Args, args) {
			return x
		}
		i = e.next
	}
	return nil
}

func same(a, b []*kir.Instr) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// load keeps a load, unless it repeats one after which the memory has not changed. Constant memory that is always there
// is as good as pure.
func (r *rewriter) load(in *kir.Instr, args []*kir.Instr) *kir.Instr {
	volatile := r.info[in.ID].mark&isVolatile != 0
	if !volatile && r.fixed(in, args[0]) {
		return r.word(in, args)
	}
	var slot *int32
	s, _ := args[0].Type.Space()
	if r.limits.shareLoads && !volatile {
		slot = r.slot(in.Op, in.Type, in.Mode, in.Imm, r.gens[s], args)
		if x := r.find(*slot, in.Op, in.Type, in.Mode, in.Imm, r.gens[s], args); x != nil {
			return x
		}
	}
	x := r.put(r.copy(in, args))
	e := &r.info[x.ID]
	e.lanes = r.info[args[0].ID].lanes || args[0].Type == kir.PtrThread
	if slot != nil {
		e.gen, e.next = r.gens[s], *slot
		*slot = int32(x.ID) + 1
	}
	return x
}

// fixed reports whether a load reads constant memory that is always there.
func (r *rewriter) fixed(in, p *kir.Instr) bool {
	if p.Type != kir.PtrConstant {
		return false
	}
	p, off, ok := fixedPlace(p)
	end := off + int64(in.Type.Size())
	switch {
	case !ok:
	case p.Op == kir.ParamAddr:
		return end <= int64(r.k.Params[p.Imm].MinBytes)
	case p.Op == kir.RegionAddr:
		return end <= int64(r.k.Regions[p.Imm].Size)
	}
	return false
}

// word is the value of a load that is as good as pure: what the launch tells of it becomes part of the kernel.
func (r *rewriter) word(in *kir.Instr, args []*kir.Instr) *kir.Instr {
	known := Nothing
	if n := r.info[in.ID].mark >> wordShift; n != 0 {
		known = r.facts.Of(int(n) - 1)
	}
	if known >= Equals {
		return r.constant(in.Type, uint64(known-Equals), in.Pos)
	}
	x := r.share(in.Op, in.Type, in.Mode, in.Imm, in.Pos, args)
	if known < Small {
		return x
	}
	bits := uint64(1<<31 - 1) // those that it may have: it stays the same number
	if known > Small {
		bits -= 8<<(known-By8) - 1
	}
	return r.op(kir.And, in.Type, in.Pos, x, r.constant(in.Type, bits, in.Pos))
}

// set notes what a variable holds.
func (r *rewriter) set(v uint64, x *kir.Instr) {
	if r.known[v] != x {
		r.trail = append(r.trail, change{v, r.known[v]})
		r.known[v] = x
	}
}

// forget gives up what is known of variables.
func (r *rewriter) forget(sets bitset) {
	sets.each(func(v uint64) { r.set(v, nil) })
}

// held returns what variables hold, in their order.
func (r *rewriter) held(sets bitset) []*kir.Instr {
	var l []*kir.Instr
	sets.each(func(v uint64) { l = append(l, r.known[v]) })
	return l
}

// undo takes back what has been noted since mark, but for what stays true where none of the sets happens: reads in
// front of loops.
func (r *rewriter) undo(mark int, sets bitset) {
	stays := func(v uint64) bool { return !sets.has(v) && r.within(r.known[v]) }
	for i := len(r.trail) - 1; i >= mark; i-- {
		if c := r.trail[i]; !stays(c.v) {
			r.known[c.v] = c.old
		}
	}
	kept := r.trail[:mark]
	for _, c := range r.trail[mark:] {
		if stays(c.v) && r.known[c.v] != c.old {
			kept = append(kept, c)
		}
	}
	r.trail = kept
}

// get reads a variable: the value it is known to have, or a VarGet in front of the loops that do not set it.
func (r *rewriter) get(v uint64, pos kir.Pos) *kir.Instr {
	if x := r.known[v]; r.within(x) {
		return x
	}
	at := len(r.scopes) - 1
	for d := at; d > 0; d-- {
		if l := r.scopes[d].loop; l != nil {
			if l.sets.has(v) {
				break
			}
			at = d - 1
		}
	}
	x := r.putAt(at, r.create(kir.VarGet, r.k.Vars[v].Type, 0, v, pos, nil))
	r.set(v, x)
	return x
}

// assign sets a variable.
func (r *rewriter) assign(v uint64, value *kir.Instr, pos kir.Pos) {
	if r.known[v] != value {
		r.set(v, value)
		r.put(r.create(kir.VarSet, kir.Void, 0, v, pos, []*kir.Instr{value}))
	}
}
