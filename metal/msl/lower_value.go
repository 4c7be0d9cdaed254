package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// vkind says what a value is.
type vkind uint8

const (
	vBad   vkind = iota // an error has been reported
	vVoid               // no value
	vRight              // comps: its scalars
	vSlot               // an lvalue: part of obj from component off on
	vMem                // an lvalue in memory: ptr + idx + imm
	vSwz                // an lvalue: components sel of the vector base
	vDyn                // an lvalue: component idx of the vector base
	vBits               // an lvalue: the bits of a bit-field in memory at ptr + idx + imm
	vSel                // an lvalue: one of the two of choice
	vFuncs              // a set of functions, with the object for methods
	vType               // a type where an expression may stand
	vList               // a braced list
)

// value is the value of an expression: what it holds depends on k.
type value struct {
	k     vkind
	tmp   bool // vMem: a temporary, an rvalue too large to be taken apart
	lit   bool // vRight: the literal 0, which is a null pointer
	q     qtype
	comps []operand
	obj   *object
	off   int
	ptr   operand
	idx   operand // I64 byte offset, or none
	imm   int64
	base  *value
	sel   []uint8
	fn    *overload
	list  *InitList
	bits  bitField // vBits: where it is; of a value read from a bit-field its width
	// choice is what vSel chooses between; chosen says of a vRight which object it was read from.
	choice *selection
	chosen *chosen
}

// object is a variable: its scalars in slots, or memory.
type object struct {
	name  string
	q     qtype
	slots []slot
	mem   bool
	ptr   operand
	imm   int64
	// fixed says that the slots are constants that never change.
	fixed bool
	// image is the constant pointer to the bytes of a constant that has no slots.
	image uint64
}

// slot is one scalar of an object: variable v of the kernel, or the value val if v is negative.
type slot struct {
	v   int
	val operand
}

// memory is where the objects of a kernel are: in variables or in regions, and in a constant evaluation in the objects
// themselves or in images.
type memory struct {
	c  *compiler
	em *emitter

	regionOf map[*object]int
	constMem map[*object]int // the regions of constants
	// varMem says where variables live whose object got an address after they were first used.
	varMem map[uint64]varHome
	never  map[uint64]bool // variables that nothing sets: see unset
}

// varHome is the place in a Thread region of a variable whose address was taken.
type varHome struct {
	region int
	off    int64
}

// stringName is the name of the objects that string literals make.
const stringName = "string literal"

// maxSlots is the largest number of scalars that a variable is taken apart into; larger ones live in memory.
const maxSlots = 64

var (
	badValue  = value{k: vBad, q: qtype{T: typeBad}}
	voidValue = value{k: vVoid, q: qtype{T: typeVoid}}
)

func (v *value) bad() bool { return v.k == vBad || v.q.T == nil || v.q.T.kind == tBad }
func (v *value) isLvalue() bool {
	switch v.k {
	case vSlot, vSwz, vDyn, vBits, vSel:
		return true
	case vMem:
		return !v.tmp
	}
	return v.chosen != nil
}

// isBits reports whether an lvalue is a bit-field.
func (v *value) isBits() bool {
	return v.k == vBits || v.chosen != nil && v.chosen.bits || v.k == vSel && (v.choice.a.isBits() || v.choice.b.isBits())
}

// inSlots reports whether an lvalue is a variable that is not in memory, or one of two such.
func (v *value) inSlots() bool {
	return v.k == vSlot && !v.obj.mem || v.k == vSel && v.choice.a.inSlots() && v.choice.b.inSlots()
}

func rval(t *ctype, comps ...operand) value { return value{k: vRight, q: qt(t), comps: comps} }

func intVal(t *ctype, v int64) value { return rval(t, constant(t.kirScalar(), uint64(v))) }

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

// hasParts says that an object, or an element of an array, has scalars that may be set one by one.
func hasParts(t *ctype) bool {
	for t.kind == tArray {
		t = t.elem.T
	}
	return t.kind == tStruct || t.kind == tVec || t.kind == tSimdMat
}

func (em *emitter) charge(n int) {
	if em.exec {
		em.steps += n
		em.step()
	}
}

// regionFor gives an object memory of its own: a Thread region.
func (mem *memory) regionFor(o *object) {
	if mem.em.exec {
		o.mem, o.ptr = true, mem.newImage(max(o.q.T.size, 1), kir.Thread)
		return
	}
	i, p := mem.em.newRegion(kir.Region{
		Name: o.name, Space: kir.Thread, Size: max(o.q.T.size, 1), Align: max(o.q.T.align, 1), Elem: o.q.T.firstScalar(),
		Part: hasParts(o.q.T),
	})
	mem.regionOf[o] = i
	o.mem, o.ptr = true, p
}

// objVal returns the lvalue of a whole object.
func objVal(o *object) value {
	if o.mem && o.image == 0 {
		return value{k: vMem, q: o.q, ptr: o.ptr, imm: o.imm}
	}
	return value{k: vSlot, q: o.q, obj: o}
}

// toMemory turns a slot lvalue into one in memory, moving the variable there: what was emitted for its slots is
// rewritten at the end (lower_clean.go). Constants that never change get a copy.
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
			mem.varMem[uint64(s.v)] = varHome{mem.regionOf[o], int64(offs[i])}
		}
	}
	return value{k: vMem, q: v.q, ptr: o.ptr, imm: o.imm + int64(off)}
}

func anyFixed(o *object) bool {
	for _, s := range o.slots {
		if s.v < 0 {
			return true
		}
	}
	return false
}

// copyToRegion stores an object's present value in a region of its own.
func (mem *memory) copyToRegion(o *object) operand {
	tmp := &object{name: o.name, q: o.q}
	i, p := mem.em.newRegion(kir.Region{
		Name: o.name, Space: kir.Thread, Size: max(o.q.T.size, 1), Align: max(o.q.T.align, 1), Elem: o.q.T.firstScalar(),
		Part: hasParts(o.q.T),
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
		panic(notConstant{why: "the address of a table", at: mem.em.pos, table: true})
	}
	if i, ok := mem.constMem[o]; ok {
		return mem.em.leaf(kir.RegionAddr, kir.PtrConstant, 0, uint64(i))
	}
	data := mem.bytes(o)
	i, p := mem.em.newRegion(kir.Region{
		Name: o.name, Space: kir.Constant, Size: len(data), Align: max(o.q.T.align, 1), Elem: o.q.T.firstScalar(), Data: data,
	})
	mem.constMem[o] = i
	return p
}

// addr returns the pointer of a memory lvalue.
func (mem *memory) addr(v value) operand { return mem.em.ptrAdd(v.ptr, v.idx, v.imm) }

// load reads an lvalue. Values that stay in memory are returned as temporaries there, not copied.
func (mem *memory) load(v value) value {
	switch v.k {
	case vRight:
		v.q.T = v.q.T.unpacked()
		if v.chosen != nil {
			v.q, v.chosen = v.q.bare(), nil
		}
		return v
	case vSel:
		return v.choice.load(mem)
	case vBad, vVoid, vFuncs, vType, vList:
		return v
	}
	t := v.q.T
	if t.kind == tStruct {
		mem.c.complete(t.st)
	}
	r := value{k: vRight, q: v.q.bare()}
	switch v.k {
	case vSlot:
		if v.obj.mem {
			return mem.load(mem.toMemory(v))
		}
		r.comps = make([]operand, t.comps)
		for i := range r.comps {
			r.comps[i] = mem.getSlot(v.obj, v.off+i)
		}
	case vMem:
		if mem.inMemory(t) {
			v.tmp = true
			return v
		}
		if t.kind == tStruct && t.comps == 0 {
			return r
		}
		r.comps = mem.loadComps(v)
	case vSwz:
		b := mem.load(*v.base)
		if b.bad() {
			return badValue
		}
		r.comps = make([]operand, len(v.sel))
		for i, s := range v.sel {
			r.comps[i] = b.comps[s]
		}
	case vDyn:
		b := mem.load(*v.base)
		if b.bad() {
			return badValue
		}
		r.comps = []operand{mem.em.pick(b.comps, v.idx)}
	case vBits:
		return mem.loadBits(v)
	}
	if t.kind == tVec {
		r.q.T = t.unpacked()
	}
	return r
}

// loadComps reads all scalars of a value in memory.
func (mem *memory) loadComps(v value) []operand {
	var tb [8]kir.Type
	var ob [8]int
	types, offs := v.q.T.compTypes(tb[:0]), v.q.T.compOffsets(ob[:0], 0)
	comps := make([]operand, len(types))
	if len(types) == 1 {
		comps[0] = mem.loadAt(types[0], mem.addr(v), v.q.Vol)
		return comps
	}
	for i, t := range types {
		p := mem.em.ptrAdd(v.ptr, v.idx, v.imm+int64(offs[i]))
		comps[i] = mem.loadAt(t, p, v.q.Vol)
	}
	return comps
}

// loadAt reads a scalar. A load of volatile memory is never taken for another one.
func (mem *memory) loadAt(t kir.Type, p operand, volatile bool) operand {
	if mem.em.exec {
		return mem.loadImage(t, p)
	}
	o := mem.em.emit(&kir.Instr{Op: kir.Load, Type: t, Args: []*kir.Instr{mem.em.instr(p)}})
	if volatile {
		mem.em.vol[o.in] = true
	}
	return o
}

// pick selects a component by a run-time index (I64); an index outside yields the last.
func (em *emitter) pick(comps []operand, idx operand) operand {
	if idx.isConst() && idx.bits < uint64(len(comps)) {
		return comps[idx.bits]
	}
	r := comps[len(comps)-1]
	for i := len(comps) - 2; i >= 0; i-- {
		r = em.op(kir.Select, r.ty, em.op(kir.Eq, kir.Bool, idx, i64(int64(i))), comps[i], r)
	}
	return r
}

func (mem *memory) getSlot(o *object, i int) operand {
	s := &o.slots[i]
	if s.v >= 0 {
		if mem.em.exec {
			mem.em.notConst("the value of " + quoteName(o.name))
		}
		return mem.em.varGet(s.v)
	}
	if s.val.ty == kir.Void {
		if mem.em.exec {
			mem.em.notConst("the uninitialised value of " + quoteName(o.name))
		}
		return operand{ty: o.q.T.compTypes(nil)[i]}
	}
	return s.val
}

func (mem *memory) setSlot(o *object, i int, x operand) {
	s := &o.slots[i]
	if s.v < 0 {
		if !mem.em.exec {
			mem.c.errorf(Internal, mem.em.pos, "a constant is assigned to")
			return
		}
		s.val = x
		return
	}
	mem.em.varSet(s.v, x)
}

// store writes an rvalue of the same type (packed or not) to an lvalue.
func (mem *memory) store(v, x value) {
	if x.bad() || v.bad() {
		return
	}
	v = mem.placed(v)
	switch v.k {
	case vSel:
		v.choice.store(mem, x)
	case vSlot:
		if v.obj.mem {
			mem.store(mem.toMemory(v), x)
			return
		}
		if x.k == vMem {
			x = value{k: vRight, q: x.q, comps: mem.loadComps(x)}
		}
		for i, o := range x.comps {
			mem.setSlot(v.obj, v.off+i, o)
		}
	case vMem:
		if x.k == vMem {
			mem.copyMem(v, x)
			return
		}
		mem.storeComps(v, x.comps)
	case vSwz:
		b := mem.load(*v.base)
		if b.bad() {
			return
		}
		if v.base.k == vMem { // only the components named are written
			es := v.base.q.T.elem.T
			for i, s := range v.sel {
				c := *v.base
				c.q = qt(es)
				c.imm += int64(s) * int64(es.size)
				mem.storeComps(c, x.comps[i:i+1])
			}
			return
		}
		nc := append([]operand(nil), b.comps...)
		for i, s := range v.sel {
			nc[s] = x.comps[i]
		}
		mem.store(*v.base, value{k: vRight, q: b.q, comps: nc})
	case vDyn:
		b := mem.load(*v.base)
		nc := append([]operand(nil), b.comps...)
		for i := range nc {
			nc[i] = mem.em.op(kir.Select, nc[i].ty, mem.em.op(kir.Eq, kir.Bool, v.idx, i64(int64(i))), x.comps[0], nc[i])
		}
		mem.store(*v.base, value{k: vRight, q: b.q, comps: nc})
	case vBits:
		mem.storeBits(v, x.comps[0])
	}
}

func (mem *memory) storeComps(v value, comps []operand) {
	var ob [8]int
	offs := v.q.T.compOffsets(ob[:0], 0)
	for i, o := range comps {
		p := mem.em.ptrAdd(v.ptr, v.idx, v.imm+int64(offs[i]))
		mem.storeAt(p, o)
	}
}

// copyMem copies a value between two places in memory: scalar by scalar, for unions byte by byte.
func (mem *memory) copyMem(dst, src value) {
	t := dst.q.T
	if t.comps >= 0 && t.comps <= 256 {
		mem.storeComps(dst, mem.loadComps(src))
		return
	}
	unit := kir.U8
	if t.align >= 4 && t.size%4 == 0 {
		unit = kir.U32
	}
	if t.comps > 256 && t.kind == tArray {
		if e := t.firstScalar(); e != kir.U8 {
			unit = e
		}
	}
	n := t.size / unit.Size()
	sp, dp := mem.addr(src), mem.addr(dst)
	mem.em.forRange("copy", int64(n), func(i operand) {
		off := mem.em.op(kir.Mul, kir.I64, i, i64(int64(unit.Size())))
		mem.storeAt(mem.em.ptrAdd(dp, off, 0), mem.loadAt(unit, mem.em.ptrAdd(sp, off, 0), false))
	})
}

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

// clearMem stores zeros over an object in memory.
func (mem *memory) clearMem(v value) {
	unit := v.q.T.firstScalar()
	if unit == kir.U8 && v.q.T.align%4 == 0 && v.q.T.size%4 == 0 {
		unit = kir.U32
	}
	n := v.q.T.size / unit.Size()
	mem.em.forRange("clear", int64(n), func(i operand) {
		off := mem.em.op(kir.Mul, kir.I64, i, i64(int64(unit.Size())))
		mem.storeAt(mem.em.ptrAdd(mem.addr(v), off, 0), operand{ty: unit})
	})
}

// forRange emits a loop that runs body for 0 to n-1.
func (em *emitter) forRange(name string, n int64, body func(i operand)) {
	if em.exec {
		for i := range n {
			body(i64(i))
		}
		return
	}
	v := em.newVar(name, kir.I64)
	em.varSet(v, i64(0))
	loop := &kir.Instr{Op: kir.Loop}
	em.loops++
	defer func() { em.loops-- }()
	loop.Body = em.inBlock(func() {
		i := em.varGet(v)
		done := em.inBlock(func() { em.breakTo(loop) })
		em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{em.instr(em.op(kir.Ge, kir.Bool, i, i64(n)))}, Body: done})
		body(i)
		em.varSet(v, em.op(kir.Add, kir.I64, i, i64(1)))
	})
	em.structured(loop)
}
