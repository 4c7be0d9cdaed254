package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

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
	if t.kind == tClass {
		mem.c.complete(t.class)
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
		if t.kind == tClass && t.comps == 0 {
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
		mem.within(v.idx, vectorName(*v.base), v.base.q.T.n, false)
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
		mem.em.hints.Volatile[o.in] = true
	}
	return o
}

func (mem *memory) getSlot(o *object, i int) operand {
	s := &o.slots[i]
	mem.c.link.special = mem.c.link.special || o.special
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
		mem.within(v.idx, vectorName(*v.base), v.base.q.T.n, true)
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

func (mem *memory) storeAt(p, x operand) {
	if mem.em.exec {
		mem.storeImage(p, x)
		return
	}
	mem.em.emit(&kir.Instr{Op: kir.Store, Args: []*kir.Instr{mem.em.instr(p), mem.em.instr(x)}})
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
