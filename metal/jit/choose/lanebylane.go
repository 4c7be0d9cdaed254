package choose

import (
	"encoding/binary"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Words of the scratch area.
const (
	wordSI    = scratchWords + 8*iota // registers that subroutines save
	wordDI                            //
	wordScale                         // of subAdd: what indices are multiplied by
	wordMask                          // lanes still to do
	wordLane                          // the lane at work
	wordAddr                          // its address
	wordDesc                          // the description
	// wordIndex begins a table of 32 indices of 4 bytes.
	wordIndex
)

// A description tells a subroutine about the access: Instr.ID, 1 + the address space, and what to keep of a pointer
// and what to put in its place: pointers into a known object come as offsets.
const (
	descID    = 0
	descSpace = 4
	descKeep  = 8
	descPut   = 16
)

// laneByLane selects accesses the way that every one of them can fall back on: the lanes' pointers go to the block's
// scratch table, values to another, and a subroutine follows them one after the other. It decides what is a fault.
type laneByLane struct {
	e    *emitter
	v    vector
	el   elements
	vals *values
	on   *active
	addr *addresses
	subs *subroutines
	info *lanes.Info
}

// pointers writes each lane's pointer (its offset, if the object is known) to the scratch table.
func (s *laneByLane) pointers(x *access) {
	a := x.a
	if a.Mode == lanes.AccessDynamic {
		v := x.idx
		if s.info.Patterns[x.i.Args[0].ID].Kind == lanes.Uniform {
			v.splat = true
		}
		v.typ = kir.U64
		s.putValues(kir.U64, v, scratchPtr)
		return
	}
	// The uniform part without the bases of patterns, which may wrap.
	rest := lanes.Access{Terms: a.Terms, Disp: a.Disp}
	var wrapping []lanes.Scaled
	offs := make([]int64, s.e.group)
	if a.Mode == lanes.AccessOffsets {
		for l := range offs {
			offs[l] = int64(a.Offsets[l])
		}
	}
	for _, b := range a.Bases {
		if b.Span <= 0 || b.Value.Op == kir.Const {
			rest.Bases = append(rest.Bases, b)
			continue
		}
		wrapping = append(wrapping, b)
		for l, o := range s.indexOffsets(b) {
			offs[l] -= b.Scale * int64(o)
		}
	}
	l := s.addr.linear(&rest)
	all := s.e.scalarToSplat(s.addr.value(l, 0), kir.I64)
	per := int(s.e.w) / 8
	for p := 0; p < s.e.group/per; p++ {
		r := all
		if o := offs[p*per : (p+1)*per]; !zeros(o) {
			b := make([]byte, 0, s.e.w)
			for _, n := range o {
				b = appendBits(b, uint64(n), 8)
			}
			r = s.v.op2Mem(code.VPAddQ, all, code.Mem{Const: s.e.f.Const(b)})
		}
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: s.e.scratchMem(scratchPtr + p*int(s.e.w)), A: r})
	}
	for _, b := range wrapping {
		s.e.gop(code.Mov, 4, code.RAX, s.vals.base(b.Value))
		s.e.gopMem(code.Lea, 8, code.RCX, s.e.table(s.indexOffsets(b), 4))
		s.addIndex(b)
	}
	if a.Mode == lanes.AccessGather {
		for p := range s.e.parts {
			s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: s.e.scratchMem(wordIndex + p*int(s.e.w)),
				A: x.idx.unitOf(p).r[0]})
		}
		s.e.gopImm(code.Mov, 4, code.RAX, 0)
		s.e.gopMem(code.Lea, 8, code.RCX, s.e.scratchMem(wordIndex))
		s.addIndex(a.Index)
	}
}

// indexOffsets returns what the lanes add to the base of an index that may wrap: its pattern, and the constant by
// which Span is larger than the pattern's.
func (s *laneByLane) indexOffsets(b lanes.Scaled) []int32 {
	o := make([]int32, s.e.group)
	span := int32(0)
	if sh := s.info.Patterns[b.Value.ID]; sh.Kind == lanes.Based {
		copy(o, sh.Offsets[:s.e.group])
		for _, n := range o {
			span = max(span, n)
		}
	}
	for l := range o {
		o[l] += int32(b.Span) - span
	}
	return o
}

// zeros reports whether all numbers are 0.
func zeros(o []int64) bool {
	for _, n := range o {
		if n != 0 {
			return false
		}
	}
	return true
}

// addIndex calls subAdd; RAX and RCX are set.
func (s *laneByLane) addIndex(b lanes.Scaled) {
	s.e.gopImm(code.Mov, 8, code.RDX, b.Scale)
	s.e.storeReg(8, s.e.scratchMem(wordScale), code.RDX)
	s.call(subroutine{kind: subAdd, t: b.Value.Type})
}

// call calls a subroutine, which returns to the address in RDX.
func (s *laneByLane) call(k subroutine) {
	back := s.e.label()
	s.e.leaLabel(code.RDX, back)
	s.e.jump(s.subs.label(k))
	s.e.bind(back)
}

// putValues writes each lane's value, as raw lanes, to a scratch table.
func (s *laneByLane) putValues(t kir.Type, v val, table int) {
	w := int(s.e.w)
	for p := range s.e.parts {
		u := v.unitOf(p)
		if wide(t) {
			s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: s.e.scratchMem(table + 2*p*w), A: u.r[0]})
			s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: s.e.scratchMem(table + (2*p+1)*w), A: u.r[1]})
			continue
		}
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: s.e.scratchMem(table + p*w), A: s.el.toRaw(t, u.r[0])})
	}
}

// result returns what a subroutine loaded.
func (s *laneByLane) result(x *access) val {
	v := val{typ: x.t}
	w := int(s.e.w)
	for p := range s.e.parts {
		if wide(x.t) {
			v.setUnit(p, unit{r: [2]code.R{s.v.op2Mem(code.VMovUPS, 0, s.e.scratchMem(scratchVal+2*p*w)),
				s.v.op2Mem(code.VMovUPS, 0, s.e.scratchMem(scratchVal+(2*p+1)*w))}})
			continue
		}
		r := s.v.op2Mem(code.VMovUPS, 0, s.e.scratchMem(scratchVal+p*w))
		v.setUnit(p, unit{r: [2]code.R{s.el.fromRaw(x.t, r)}})
	}
	return v
}

// description is the description of an access.
func (s *laneByLane) description(x *access) code.Mem {
	space, _ := x.i.Args[0].Type.Space()
	b := binary.LittleEndian.AppendUint32(nil, uint32(x.i.ID))
	b = binary.LittleEndian.AppendUint32(b, uint32(space)+1)
	keep, put := ^uint64(0), uint64(0)
	if x.a.Object != 0 {
		keep, put = kir.PtrOffsetMask, uint64(x.a.Object)<<kir.PtrObjectShift
	}
	b = binary.LittleEndian.AppendUint64(b, keep)
	return code.Mem{Const: s.e.f.Const(binary.LittleEndian.AppendUint64(b, put))}
}

// follow follows the pointers of all active lanes.
func (s *laneByLane) follow(x *access, kind subKind) {
	s.on.bits(code.RAX)
	s.followBits(x, subroutine{kind: kind, size: int(x.size)})
}

// followFirst follows the first active lane's; RCX is then its number.
func (s *laneByLane) followFirst(x *access, kind subKind) {
	s.on.bits(code.RAX)
	s.e.emit(code.Inst{Op: code.BlsI, W: 4, Dst: code.RAX, A: code.RAX})
	s.followBits(x, subroutine{kind: kind, size: int(x.size)})
}

// followBits follows the pointers of the lanes in RAX.
func (s *laneByLane) followBits(x *access, k subroutine) {
	s.e.gopMem(code.Lea, 8, code.RCX, s.description(x))
	s.call(k)
}

// callAt calls a subroutine for addresses that have been checked: wordAddr plus each active lane's index.
func (s *laneByLane) callAt(k subroutine, idx []code.R) {
	for p, r := range idx {
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: s.e.scratchMem(wordIndex + p*int(s.e.w)), A: r})
	}
	s.on.bits(code.RAX)
	s.call(k)
}
