package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// memory is where the objects of a kernel are: in variables or in regions, and in a constant evaluation in the objects
// themselves or in images.
type memory struct {
	c  *compiler
	em *emitter

	regionOf map[*object]int
	constMem map[*object]int // the regions of constants
	tables   map[string]int  // the regions of within
	// demoted says where variables live whose object got an address after they were first used.
	demoted   map[uint64]varHome
	unsetVars map[uint64]bool // variables that nothing sets: see unset
}

// varHome is the place in a Thread region of a variable whose address was taken.
type varHome struct {
	region int
	off    int64
}

// demote rewrites the accesses to variables that have moved to memory.
func (mem *memory) demote() {
	if len(mem.demoted) == 0 {
		return
	}
	addr := func(b *[]*kir.Instr, h varHome, pos kir.Pos) *kir.Instr {
		p := mem.em.leaf(kir.RegionAddr, kir.PtrThread, 0, uint64(h.region)).in
		if h.off == 0 {
			return p
		}
		add := &kir.Instr{Op: kir.PtrAdd, Type: kir.PtrThread, Imm: uint64(h.off), Pos: pos}
		add.Args = []*kir.Instr{p, mem.em.instr(i64(0))}
		*b = append(*b, add)
		return add
	}
	var walk func(b *kir.Block)
	walk = func(b *kir.Block) {
		if b == nil {
			return
		}
		out := make([]*kir.Instr, 0, len(b.Instrs))
		for _, in := range b.Instrs {
			walk(in.Body)
			walk(in.Else)
			if in.Op == kir.VarGet || in.Op == kir.VarSet {
				if h, ok := mem.demoted[in.Imm]; ok {
					if in.Op == kir.VarSet && in.Args[0].Op == kir.VarGet && mem.unsetVars[in.Args[0].Imm] {
						continue // memory keeps its bytes from round to round
					}
					p := addr(&out, h, in.Pos)
					if in.Op == kir.VarGet {
						in.Op, in.Imm, in.Args = kir.Load, 0, []*kir.Instr{p}
					} else {
						in.Op, in.Imm, in.Args = kir.Store, 0, []*kir.Instr{p, in.Args[0]}
					}
				}
			}
			out = append(out, in)
		}
		b.Instrs = out
	}
	walk(mem.em.k.Body)
}

// stableRef computes the address of a referenced object once, so that later changes of an index do not move it.
func (mem *memory) stableRef(v value) value {
	if v.k == vMem && v.idx.in != nil {
		v.ptr = mem.addr(v)
		v.idx, v.imm = operand{}, 0
	}
	return v
}

// unset takes the value of the last round from a variable that is declared in a loop: it is set to that of a variable
// which nothing ever sets, so that validation finds what depends on it and no value lives on from round to round.
func (mem *memory) unset(o *object) {
	if mem.em.loops == 0 || mem.em.exec || o.mem {
		return
	}
	never := map[kir.Type]int{}
	for _, s := range o.slots {
		like := mem.em.k.Vars[s.v]
		v, ok := never[like.Type]
		if !ok {
			v = mem.em.newVar(like.Name, like.Type)
			mem.em.k.Vars[v] = like
			never[like.Type], mem.unsetVars[uint64(v)] = v, true
		}
		mem.em.varSet(s.v, mem.em.varGet(v))
	}
}

// inMemory reports whether variables of the type always live in memory.
func (mem *memory) inMemory(t *ctype) bool {
	if mem.em.exec {
		return t.comps < 0
	}
	return t.comps < 0 || t.comps > maxSlots
}

// newObject makes a variable without a value.
func (mem *memory) newObject(name string, x qtype) *object {
	o := &object{name: name, q: x}
	mem.c.isComplete(x.T)
	if x.T.comps < 0 || x.T.comps > maxSlots {
		if mem.inMemory(x.T) {
			mem.regionFor(o)
			return o
		}
		mem.em.charge(x.T.comps)
	}
	o.slots = make([]slot, x.T.comps)
	if mem.em.exec {
		for i := range o.slots {
			o.slots[i].v = -1
		}
		return o
	}
	var buf [8]kir.Type
	for i, t := range x.T.compTypes(buf[:0]) {
		v := mem.em.newVar(name, t)
		mem.em.k.Vars[v].Unset, mem.em.k.Vars[v].Part = true, hasParts(x.T)
		o.slots[i].v = v
	}
	return o
}

// regionFor gives an object memory of its own: a Thread region.
func (mem *memory) regionFor(o *object) {
	if mem.em.exec {
		o.mem, o.ptr = true, mem.newImage(max(o.q.T.size, 1), kir.Thread)
		return
	}
	i, p := mem.em.newRegion(kir.Region{
		Name: o.name, Space: kir.Thread, Size: max(o.q.T.size, 1), Align: max(o.q.T.align, 1), Elem: o.q.T.firstScalar(),
		ElemSize: o.q.T.counted(), Part: hasParts(o.q.T),
	})
	mem.regionOf[o] = i
	o.mem, o.ptr = true, p
}

// toMemory turns a slot lvalue into one in memory, moving the variable there: what was emitted for its slots is
// rewritten at the end (opt.Clean). Constants that never change get a copy.
func (mem *memory) toMemory(v value) value {
	v = mem.placed(v)
	if v.k == vSel && !v.isBits() {
		return value{k: vMem, q: v.q, ptr: v.choice.address(mem)}
	}
	if v.k != vSlot {
		return v
	}
	o := v.obj
	if o.image != 0 {
		return value{k: vMem, q: v.q, ptr: mem.constRegion(o)}
	}
	if mem.em.exec && !o.mem {
		mem.em.notConst("the address of a variable")
	}
	if mem.em.unevaluated && !o.mem { // only the type matters, and the variable may be another function's
		return mem.c.types.dummy(v.q)
	}
	off := 0
	if v.off > 0 || v.q.T != o.q.T {
		offs := o.q.T.compOffsets(nil, 0)
		off = offs[v.off]
	}
	if !o.mem {
		if o.fixed || anyFixed(o) {
			p := mem.copyToRegion(o)
			return value{k: vMem, q: v.q, ptr: p, imm: int64(off)}
		}
		mem.regionFor(o)
		offs := o.q.T.compOffsets(nil, 0)
		for i, s := range o.slots {
			mem.demoted[uint64(s.v)] = varHome{mem.regionOf[o], int64(offs[i])}
		}
	}
	return value{k: vMem, q: v.q, ptr: o.ptr, imm: o.imm + int64(off)}
}

// copyToRegion stores an object's present value in a region of its own.
func (mem *memory) copyToRegion(o *object) operand {
	tmp := &object{name: o.name, q: o.q}
	i, p := mem.em.newRegion(kir.Region{
		Name: o.name, Space: kir.Thread, Size: max(o.q.T.size, 1), Align: max(o.q.T.align, 1), Elem: o.q.T.firstScalar(),
		ElemSize: o.q.T.counted(), Part: hasParts(o.q.T),
	})
	mem.regionOf[tmp] = i
	offs := o.q.T.compOffsets(nil, 0)
	for j, s := range o.slots {
		val := s.val
		if s.v >= 0 {
			val = mem.em.varGet(s.v)
		}
		mem.storeAt(mem.em.ptrAdd(p, operand{}, int64(offs[j])), val)
	}
	return p
}

// constRegion puts a constant table in the constant address space, once a kernel.
func (mem *memory) constRegion(o *object) operand {
	if mem.em.exec {
		if o.image != 0 {
			return operand{ty: kir.PtrConstant, bits: o.image}
		}
		if o.name == stringName { // what a constant keeps of a text for a log is not read
			return operand{ty: kir.PtrConstant}
		}
		panic(notConstant{why: "the address of a table", table: true})
	}
	if i, ok := mem.constMem[o]; ok {
		return mem.em.leaf(kir.RegionAddr, kir.PtrConstant, 0, uint64(i))
	}
	data := mem.bytes(o)
	i, p := mem.em.newRegion(kir.Region{
		Name: o.name, Space: kir.Constant, Size: len(data), Align: max(o.q.T.align, 1), Elem: o.q.T.firstScalar(),
		ElemSize: o.q.T.counted(), Data: data,
	})
	mem.constMem[o] = i
	return p
}

// addr returns the pointer of a memory lvalue.
func (mem *memory) addr(v value) operand { return mem.em.ptrAdd(v.ptr, v.idx, v.imm) }

// part returns the field, element or component of a value that starts at component comp and byte off.
func (mem *memory) part(v value, t qtype, comp int, off int) value {
	switch v.k {
	case vRight:
		r := value{k: vRight, q: t.bare(), comps: v.comps[comp : comp+t.T.comps]}
		if v.chosen != nil {
			r = chosenFrom(r, t, false, func() value { return mem.part(mem.placed(v), t, comp, off) })
		}
		return r
	case vSel:
		return v.choice.part(mem, t, comp, off)
	case vSlot:
		if v.obj.mem {
			return mem.part(mem.toMemory(v), t, comp, off)
		}
		v.q = t
		v.off += comp
		return v
	case vMem:
		v.q = t
		v.imm += int64(off)
		return v
	}
	return badValue
}

// temp puts an rvalue into a variable of its own, so that a reference can be bound to it.
func (mem *memory) temp(x value) value {
	if x.k == vMem {
		if x.tmp {
			x.tmp = false
		}
		return x
	}
	o := mem.newObject("temporary", x.q.bare())
	v := objVal(o)
	mem.store(v, x)
	return v
}

// zero returns the value-initialised value of a type of known size; large ones are cleared in memory by their users.
func (mem *memory) zero(t *ctype) value {
	r := value{k: vRight, q: qt(t)}
	mem.c.isComplete(t)
	if t.comps < 0 || mem.inMemory(t) {
		o := mem.newObject("zero", qt(t))
		mem.clearMem(objVal(o))
		v := objVal(o)
		v.tmp = true
		return v
	}
	mem.em.charge(t.comps)
	var tb [8]kir.Type
	for _, k := range t.compTypes(tb[:0]) {
		r.comps = append(r.comps, operand{ty: k})
	}
	return r
}

// component returns one component of a vector.
func (mem *memory) component(v value, i int) value {
	e := v.q.T.elem
	e.Space, e.Const, e.Vol = v.q.Space, v.q.Const, v.q.Vol
	switch v.k {
	case vRight, vSlot, vMem, vSel:
		r := mem.part(v, e, i, i*e.T.size)
		r.component = true
		return r
	case vSwz:
		return mem.component(*v.base, int(v.sel[i]))
	}
	return badValue
}

// newLocal makes a variable with an initial value. A constant that never changes keeps its value without a variable.
func (mem *memory) newLocal(name string, t qtype, v value) value {
	if t.Const && v.k == vRight && allConst(v.comps) && !t.Vol {
		o := &object{name: name, q: t, fixed: true, slots: make([]slot, len(v.comps))}
		for i, c := range v.comps {
			o.slots[i] = slot{-1, c}
		}
		return objVal(o)
	}
	o := mem.newObject(name, t)
	lv := objVal(o)
	mem.store(lv, v)
	return lv
}

// rvalue reads an lvalue; arrays become pointers to their first elements.
func (mem *memory) rvalue(v value) value {
	if v.q.T.kind == tArray && (v.isLvalue() || v.k == vMem) {
		return mem.decay(v)
	}
	return mem.load(v)
}

// decay turns an array into a pointer to its first element.
func (mem *memory) decay(v value) value {
	t := mem.c.types.decayed(&v)
	if v.k == vSlot && v.q.Space == SpaceConstant {
		p := mem.constRegion(v.obj)
		return rval(t.T, mem.em.ptrAdd(p, operand{}, slotOffset(v)))
	}
	m := mem.toMemory(v)
	if m.k != vMem {
		return badValue
	}
	return rval(t.T, mem.addr(m))
}

// addressOf returns a pointer to an lvalue.
func (mem *memory) addressOf(v value, at Pos) value {
	if v.bad() {
		return badValue
	}
	if v.k == vFuncs {
		mem.c.errorf(Unsupported, at, "pointers to functions do not exist here: every call is inlined")
		return badValue
	}
	v = mem.placed(v)
	if v.k == vSwz || v.k == vDyn {
		mem.c.errorf(NotLvalue, at, "the components of a vector have no address here")
		return badValue
	}
	if v.isBits() {
		mem.c.errorf(NotLvalue, at, "a bit-field has no address")
		return badValue
	}
	if !v.isLvalue() {
		mem.c.errorf(NotLvalue, at, "& needs an object, not a value of type %s", v.q)
		return badValue
	}
	t := qt(mem.c.types.ptrTo(v.q))
	if v.k == vSlot && v.q.Space == SpaceConstant {
		return rval(t.T, mem.em.ptrAdd(mem.constRegion(v.obj), operand{}, slotOffset(v)))
	}
	m := mem.toMemory(v)
	p := mem.addr(m)
	if p.ty != kir.PtrTo(v.q.Space.kir()) { // an element of a constant table: point to a copy
		m = mem.toMemory(mem.temp(mem.load(m)))
		p = mem.addr(m)
	}
	return rval(t.T, p)
}

// deref returns what a pointer moved by idx bytes points to.
func (mem *memory) deref(p value, idx operand, at Pos) value {
	e := p.q.T.elem
	if e.T.kind == tVoid || !mem.c.isComplete(e.T) && e.T.kind != tArray {
		mem.c.errorf(Incomplete, at, "a pointer to %s cannot be followed", e)
		return badValue
	}
	return value{k: vMem, q: e, ptr: p.comps[0], idx: idx}
}

// assignable reports whether an lvalue may be written to, with an error if not.
func (mem *memory) assignable(v value, at Pos) bool {
	switch {
	case !v.isLvalue():
		mem.c.errorf(NotLvalue, at, "the left side of an assignment must be an object, not a value of type %s", v.q)
	case v.q.Space == SpaceConstant:
		mem.c.errorf(NotAssignable, at, "the constant address space is read-only")
	case v.q.Const:
		mem.c.errorf(NotAssignable, at, "an object of type %s cannot be assigned to", v.q)
	case v.q.T.kind == tArray:
		mem.c.errorf(NotAssignable, at, "an array cannot be assigned to as a whole")
	case v.k == vSlot && v.obj.fixed:
		mem.c.errorf(NotAssignable, at, "'%s' is constant", v.obj.name)
	case v.k == vSwz && repeats(v.sel):
		mem.c.errorf(BadSwizzle, at, "a component is named twice on the left side of an assignment")
	default:
		if why := mem.c.unassignable(v.q.T); why != "" {
			mem.c.errorf(NotAssignable, at, "an object of type %s cannot be assigned to: it has %s", v.q, why)
			return false
		}
		return true
	}
	return false
}

// referent is what a field that is a reference refers to.
func (mem *memory) referent(v value) value {
	p := mem.load(v)
	if p.bad() {
		return badValue
	}
	return value{k: vMem, q: v.q.T.elem, ptr: p.comps[0]}
}

// fieldOf returns a field of an object, also of a field that is a reference what the object holds.
func (mem *memory) fieldOf(v value, path []*field) value {
	n := len(path) - 1
	f := path[n]
	if f.q.T.kind != tRef {
		return mem.member(v, path)
	}
	return mem.part(mem.member(v, path[:n]), f.q, f.comp, f.off)
}

// member returns a field of an object, or what it refers to.
func (mem *memory) member(v value, path []*field) value {
	for _, f := range path {
		t := f.q
		t.Space = v.q.Space
		t.Const = t.Const || v.q.Const && !(f.decl != nil && f.decl.Specs.Mutable)
		t.Vol = t.Vol || v.q.Vol
		v = mem.part(v, t, f.comp, f.off)
		if t.T.kind == tRef {
			v = mem.referent(v)
			continue
		}
		if f.bits.width > 0 && v.k == vMem {
			v.k, v.bits = vBits, f.bits
		}
	}
	return v
}
