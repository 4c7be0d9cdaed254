package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// pointers selects operations on pointers. Pointers whose object is known when code is made are offsets in it; others
// are kir's 64 bits.
type pointers struct {
	e    *emitter
	v    vector
	g    general
	ops  *operations
	vals *values
	k    *kir.Kernel
	info *lanes.Info
}

// operation selects an operation on pointers.
func (s *pointers) operation(i *kir.Instr) {
	if !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] {
		return
	}
	inLanes := s.info.Patterns[i.ID].Kind == lanes.Varying
	switch i.Op {
	case kir.ParamAddr, kir.RegionAddr:
		v := val{typ: i.Type, base: s.e.gload(8, 0)}
		obj := 1 + int(i.Imm)
		if i.Op == kir.RegionAddr {
			obj += len(s.k.Params)
		}
		if s.info.Object[i.ID] == 0 {
			v = s.full(v, obj)
		}
		s.vals.result(i, v)
	case kir.PtrAdd:
		s.add(i, inLanes)
	case kir.PtrDiff:
		s.diff(i, inLanes)
	case kir.Select:
		a, b := s.asObject(i.Args[1], s.info.Object[i.ID], inLanes), s.asObject(i.Args[2], s.info.Object[i.ID], inLanes)
		if !inLanes {
			r := s.g.pure(kir.Select, kir.U64, kir.U64, []code.R{s.vals.base(i.Args[0]), a.base, b.base}, make([]*uint64, 3))
			s.vals.result(i, val{typ: i.Type, base: r})
			return
		}
		s.vals.result(i, s.ops.onParts(kir.Select, kir.U64, kir.U64, s.vals.laneVal(i.Args[0]), a, b))
	case kir.Bitcast:
		s.vals.result(i, s.asObject(i.Args[0], s.info.Object[i.ID], inLanes))
	case kir.Eq, kir.Ne, kir.Lt, kir.Le, kir.Gt, kir.Ge:
		s.compare(i, inLanes)
	default:
		s.e.unsupported(i, "not an operation on pointers")
	}
}

// asObject returns a pointer (or a U64 that is to be one) as an offset in the object, or in full if obj is 0.
func (s *pointers) asObject(i *kir.Instr, obj int, inLanes bool) val {
	var v val
	if inLanes {
		v = s.vals.laneVal(i)
	} else {
		v = val{base: s.vals.base(i)}
	}
	v.typ = kir.U64
	if known := s.info.Object[i.ID]; obj == 0 && known != 0 && i.Type.IsPtr() {
		return s.full(v, known)
	}
	return v
}

// full makes kir's 64 bits of an offset in an object.
func (s *pointers) full(v val, object int) val {
	out := val{typ: v.typ, splat: v.splat}
	high := int64(object) << kir.PtrObjectShift
	if v.base != 0 {
		r := s.e.reg(code.GPR)
		s.e.gop(code.Mov, 8, r, v.base)
		s.e.gopImm(code.Shl, 8, r, 64-kir.PtrObjectShift)
		s.e.gopImm(code.Shr, 8, r, 64-kir.PtrObjectShift)
		s.e.gopImm(code.Mov, 8, code.RAX, high)
		s.e.gop(code.Or, 8, r, code.RAX)
		out.base = r
	}
	if v.vec[0] == 0 {
		return out
	}
	put := s.v.op2Mem(code.VPBroadcastQ, 0, code.Mem{Const: s.e.f.Const(appendBits(nil, uint64(high), 8))})
	for n, r := range v.vec {
		if r == 0 {
			break
		}
		off := s.v.op1Imm(code.VPSrlQ, s.v.op1Imm(code.VPSllQ, r, 64-kir.PtrObjectShift), 64-kir.PtrObjectShift)
		out.vec[n] = s.v.op2(s.e.pick(code.VPOrQ, code.VPOr), off, put)
	}
	return out
}

// add moves a pointer.
func (s *pointers) add(i *kir.Instr, inLanes bool) {
	p, off := i.Args[0], i.Args[1]
	known, imm := s.info.Object[i.ID] != 0, int64(i.Imm)
	from := s.asObject(p, s.info.Object[i.ID], inLanes)
	if inLanes {
		by := s.vals.laneVal(off)
		by.typ = kir.I64
		if imm != 0 {
			c := val{typ: kir.I64, splat: true}
			c.vec[0] = s.v.constant(kir.I64, uint64(imm))
			by = s.ops.onParts(kir.Add, kir.I64, kir.I64, by, c)
		}
		if known {
			s.vals.result(i, s.ops.onParts(kir.Add, kir.I64, kir.I64, from, by))
			return
		}
		s.vals.result(i, s.ops.onParts(kir.PtrAdd, i.Type, i.Type, from, by))
		return
	}
	imm += int64(s.info.Bias[i.ID])
	by := s.e.reg(code.GPR)
	if c := int64(off.Imm) + imm; known && off.Op == kir.Const && c == int64(int32(c)) && from.base != 0 {
		s.e.gopMem(code.Lea, 8, by, code.Mem{Base: from.base, Disp: int32(c)})
		s.vals.result(i, val{typ: i.Type, base: by})
		return
	}
	if off.Op == kir.Const {
		s.e.gopImm(code.Mov, 8, by, int64(off.Imm)+imm)
	} else {
		s.e.gop(code.Mov, 8, by, s.vals.base(off))
		if imm == int64(int32(imm)) {
			if imm != 0 {
				s.e.gopImm(code.Add, 8, by, imm)
			}
		} else {
			s.e.gop(code.Add, 8, by, s.e.gload(8, uint64(imm)))
		}
	}
	if p.Op != kir.ParamAddr && p.Op != kir.RegionAddr || !known {
		s.e.gop(code.Add, 8, by, from.base)
	}
	if !known { // the object's number stays
		s.e.gopImm(code.Shl, 8, by, 64-kir.PtrObjectShift)
		s.e.gopImm(code.Shr, 8, by, 64-kir.PtrObjectShift)
		s.e.gop(code.Mov, 8, code.RAX, from.base)
		s.e.gopImm(code.Shr, 8, code.RAX, kir.PtrObjectShift)
		s.e.gopImm(code.Shl, 8, code.RAX, kir.PtrObjectShift)
		s.e.gop(code.Or, 8, by, code.RAX)
	}
	s.vals.result(i, val{typ: i.Type, base: by})
}

// firstLane is what lane 0 adds to a value's base.
func (s *pointers) firstLane(i *kir.Instr) int64 {
	if sh := s.info.Patterns[i.ID]; sh.Kind == lanes.Based {
		return int64(sh.Offsets[0])
	}
	return 0
}

// top48 shifts the object's number out of a pointer, so that offsets compare and subtract as they should.
func (s *pointers) top48(v val) val {
	out := v
	if v.base != 0 {
		out.base = s.e.reg(code.GPR)
		s.e.gop(code.Mov, 8, out.base, v.base)
		s.e.gopImm(code.Shl, 8, out.base, 64-kir.PtrObjectShift)
	}
	for n, r := range v.vec {
		if r != 0 {
			out.vec[n] = s.v.op1Imm(code.VPSllQ, r, 64-kir.PtrObjectShift)
		}
	}
	return out
}

// diff subtracts the offsets of two pointers.
func (s *pointers) diff(i *kir.Instr, inLanes bool) {
	a, b := i.Args[0], i.Args[1]
	x := s.asObject(a, s.info.Object[a.ID], inLanes)
	y := s.asObject(b, s.info.Object[b.ID], inLanes)
	count := uint64(64 - kir.PtrObjectShift)
	if inLanes {
		c := val{typ: kir.I64, splat: true}
		c.vec[0] = s.v.constant(kir.I64, count)
		x, y = s.top48(x), s.top48(y)
		x.typ, y.typ = kir.I64, kir.I64
		x = s.ops.onParts(kir.Shr, kir.I64, kir.I64, x, c)
		y = s.ops.onParts(kir.Shr, kir.I64, kir.I64, y, c)
		s.vals.result(i, s.ops.onParts(kir.Sub, kir.I64, kir.I64, x, y))
		return
	}
	x, y = s.top48(x), s.top48(y)
	s.e.gopImm(code.Sar, 8, x.base, int64(count))
	s.e.gopImm(code.Sar, 8, y.base, int64(count))
	s.e.gop(code.Sub, 8, x.base, y.base)
	if adj := s.firstLane(a) - s.firstLane(b) - s.firstLane(i); adj != 0 {
		s.e.gopImm(code.Add, 8, x.base, adj)
	}
	s.vals.result(i, val{typ: i.Type, base: x.base})
}

// compare compares pointers: within one object by their offsets' 48 bits, else in full.
func (s *pointers) compare(i *kir.Instr, inLanes bool) {
	a, b := i.Args[0], i.Args[1]
	obj := s.info.Object[a.ID]
	var x, y val
	if obj != 0 && obj == s.info.Object[b.ID] {
		x, y = s.top48(s.asObject(a, obj, inLanes)), s.top48(s.asObject(b, obj, inLanes))
	} else {
		x, y = s.asObject(a, 0, inLanes), s.asObject(b, 0, inLanes)
	}
	if !inLanes {
		r := s.g.pure(i.Op, kir.Bool, kir.U64, []code.R{x.base, y.base}, make([]*uint64, 2))
		s.vals.result(i, val{typ: kir.Bool, base: r})
		return
	}
	s.vals.result(i, s.ops.onParts(i.Op, kir.Bool, kir.U64, x, y))
}
