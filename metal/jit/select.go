package jit

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Unsupported is the error of a kernel that cannot become machine code; interp can run it.
type Unsupported struct {
	Kernel string
	Op     kir.Op
	Why    string
}

// Error returns "[kernel] no machine code for op: why".
func (u *Unsupported) Error() string {
	return fmt.Sprintf("[%s] no machine code for %s: %s", u.Kernel, u.Op, u.Why)
}

// selector turns one kernel into instructions on virtual registers.
type selector struct {
	k     *kir.Kernel
	info  *lanes.Info
	level amd64.Level
	lay   *layout
	f     *amd64.Func
	w     uint8 // bytes of a vector register: 64 or 32
	per   int   // 32-bit lanes of one
	group int   // lanes that run together: see groupOf
	parts int   // group / per
	step  int64 // groups of lanes that the kernel does at once: 2 if it was made by lanes.Pair

	vals []val // by Instr.ID
	vars []val // by variable
	// exec is the mask of active lanes, one register a part (mask registers, or vector registers with AVX2). These
	// registers change where control flow parts: use them at once.
	exec []amd64.R
	// allActive: exec is known to be all lanes when code is made.
	allActive bool
	past      bool // see goesPast
	flow      flow
	memory    memory
	err       error // the first thing that could not be done
}

// Fixed registers. RAX, RCX and RDX are for short sequences of one instruction's selection (never live across kir
// instructions), R10, R11 and the last three vector registers and K7 belong to the register allocator (spills).
const (
	regFrame = amd64.RBX // the frame of the group of lanes: layout.frame*
	regBlock = amd64.RBP // the threadgroup's block: layout.block*
)

// emit appends an instruction.
func (s *selector) emit(i amd64.Inst) { s.f.Emit(i) }

// reg returns a new virtual register.
func (s *selector) reg(c amd64.Class) amd64.R { return s.f.NewReg(c) }

// unsupported records that a kernel cannot be compiled; interp then runs it.
func (s *selector) unsupported(i *kir.Instr, why string) {
	if s.err == nil {
		s.err = &Unsupported{Kernel: s.k.Name, Op: i.Op, Why: why}
	}
}

// block selects the instructions of a block. It reports whether its end cannot be reached.
func (s *selector) block(b *kir.Block) (ends bool) {
	if b == nil {
		return false
	}
	for n, i := range b.Instrs {
		if n+1 < len(b.Instrs) && s.decides(i, b.Instrs[n+1]) {
			s.flow.compare = i
			continue
		}
		if s.err != nil || s.instr(i) {
			return true
		}
	}
	return false
}

// instr selects one instruction. It reports whether nothing after it in its block can be reached.
func (s *selector) instr(i *kir.Instr) (ends bool) {
	switch i.Op {
	case kir.Const:
		// Users take constants as they need them.
	case kir.Builtin:
		s.builtin(i)
	case kir.VarGet:
		s.varGet(i)
	case kir.VarSet:
		s.varSet(i)
	case kir.ParamAddr, kir.RegionAddr, kir.PtrAdd, kir.PtrDiff:
		s.ptr(i)
	case kir.Load:
		s.load(i)
	case kir.Store:
		s.store(i)
	case kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS:
		s.atomic(i)
	case kir.Fence, kir.SimdBarrier:
		s.fence(i)
	case kir.Barrier:
		s.fence(i)
		s.barrier()
	case kir.Reduce:
		s.result(i, s.reduce(i, s.laneVal(i.Args[0])))
	case kir.ScanInclusive, kir.ScanExclusive:
		s.result(i, s.scan(i, s.laneVal(i.Args[0])))
	case kir.Shuffle:
		s.result(i, s.shuffle(i, s.laneVal(i.Args[0]), s.laneVal(i.Args[1])))
	case kir.Ballot:
		s.result(i, s.ballot(i, s.laneVal(i.Args[0])))
	case kir.BroadcastFirst:
		s.result(i, s.broadcastFirst(i, s.laneVal(i.Args[0])))
	case kir.If:
		return s.selectIf(i)
	case kir.Loop:
		return s.selectLoop(i)
	case kir.BlockOp:
		return s.selectBlock(i)
	case kir.Break, kir.Continue, kir.Return:
		s.escape(i)
		return true
	default:
		switch {
		case usesPtr(i):
			s.ptr(i)
		case i.Op.Pure():
			s.compute(i)
		default:
			s.unsupported(i, "unknown operation")
		}
	}
	return false
}

// usesPtr reports whether an operation's operands or result are pointers.
func usesPtr(i *kir.Instr) bool {
	if i.Type.IsPtr() {
		return true
	}
	for _, a := range i.Args {
		if a.Type.IsPtr() {
			return true
		}
	}
	return false
}

// result makes v the value of i, in all the forms its users want.
func (s *selector) result(i *kir.Instr, v val) {
	v.typ = i.Type
	if i.ID < len(s.vals) {
		s.vals[i.ID] = s.forms(i, v)
	}
}

// forms adds the registers that users of i want and v lacks.
func (s *selector) forms(i *kir.Instr, v val) val {
	sh := s.info.Patterns[i.ID]
	if v.base == 0 && s.info.NeedBase[i.ID] && v.vec[0] != 0 && sh.Kind == lanes.Uniform && !i.Type.IsFloat() {
		v.base = s.uniformBase(v)
	}
	if v.vec[0] == 0 && s.info.NeedVec[i.ID] && v.base != 0 {
		return s.spread(v, sh)
	}
	return v
}

// uniformBase takes a uniform integer or Bool out of its lanes.
func (s *selector) uniformBase(v val) amd64.R {
	if v.typ == kir.Bool {
		return s.maskToBool(v.vec[0])
	}
	return s.splatToScalar(v.vec[0], v.typ)
}

// spread gives a value in a general register its lanes: a splat if it is uniform, base + offsets if it is Based.
func (s *selector) spread(v val, sh lanes.Pattern) val {
	if v.typ == kir.Bool {
		v.vec[0], v.splat = s.boolToMask(v.base), true
		return v
	}
	all := s.scalarToSplat(v.base, v.typ)
	if sh.Kind != lanes.Based {
		v.vec[0], v.splat = all, true
		return v
	}
	v.splat = false
	narrow := v.typ.Size() < 4
	op, size, n := amd64.VPAddD, 4, s.parts
	if wide(v.typ) {
		op, size, n = amd64.VPAddQ, 8, 2*s.parts
	}
	per := int(s.w) / size
	for p := range n {
		r := s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: op, W: s.w, Dst: r, A: all, Mem: s.table(sh.Offsets[p*per:(p+1)*per], size)})
		if narrow { // the type may wrap
			r = s.extendNarrow(r, v.typ)
		}
		v.vec[p] = r
	}
	return v
}

// extendNarrow cuts 32-bit lanes to a narrower integer type and extends them again.
func (s *selector) extendNarrow(r amd64.R, t kir.Type) amd64.R {
	bits := int64(32 - 8*t.Size())
	right := amd64.VPSrlD
	if t.IsSigned() {
		right = amd64.VPSraD
	}
	a, b := s.reg(amd64.Vec), s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: amd64.VPSllD, W: s.w, Dst: a, A: r, Imm: bits})
	s.emit(amd64.Inst{Op: right, W: s.w, Dst: b, A: a, Imm: bits})
	return b
}

// table puts offsets into the pool as one vector of integers of the given size.
func (s *selector) table(offsets []int32, size int) amd64.Mem {
	b := make([]byte, 0, len(offsets)*size)
	for _, o := range offsets {
		b = appendBits(b, uint64(int64(o)), size)
	}
	return amd64.Mem{Const: s.f.Const(b)}
}

// appendBits appends the low bytes of v, little-endian.
func appendBits(b []byte, v uint64, size int) []byte {
	for range size {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

// laneVal returns the value of an instruction with its lanes in vector registers.
func (s *selector) laneVal(i *kir.Instr) val {
	if i.Op == kir.Const {
		return val{typ: i.Type, vec: [maxRegs]amd64.R{s.constant(i.Type, i.Imm)}, splat: true}
	}
	v := s.vals[i.ID]
	if v.vec[0] == 0 {
		sh := s.info.Patterns[i.ID]
		v.typ = i.Type
		v.base = s.base(i)
		v = s.spread(v, sh)
	}
	return v
}

// unitOf returns one part of a value. Splats serve every part.
func (v val) unitOf(p int) unit {
	switch {
	case v.splat && wide(v.typ):
		return unit{r: [2]amd64.R{v.vec[0], v.vec[0]}}
	case v.splat:
		return unit{r: [2]amd64.R{v.vec[0]}}
	case wide(v.typ):
		return unit{r: [2]amd64.R{v.vec[2*p], v.vec[2*p+1]}}
	}
	return unit{r: [2]amd64.R{v.vec[p]}}
}

// setUnit stores one part.
func (v *val) setUnit(p int, u unit) {
	if wide(v.typ) {
		v.vec[2*p], v.vec[2*p+1] = u.r[0], u.r[1]
		return
	}
	v.vec[p] = u.r[0]
}

// constant returns a splat of a constant's bits (a mask if it is a Bool).
func (s *selector) constant(t kir.Type, bits uint64) amd64.R {
	if t == kir.Bool {
		r := s.reg(amd64.GPR)
		s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: r, Imm: int64(bits & 1)})
		return s.boolToMask(r)
	}
	r := s.reg(amd64.Vec)
	lane, size := laneBits(t, bits)
	switch {
	case lane == 0:
		s.emit(amd64.Inst{Op: amd64.VXorPS, W: s.w, Dst: r, A: r, B: r})
	case size == 8:
		s.emit(amd64.Inst{Op: amd64.VPBroadcastQ, W: s.w, Dst: r,
			Mem: amd64.Mem{Const: s.f.Const(appendBits(nil, lane, 8))}})
	default:
		s.emit(amd64.Inst{Op: amd64.VPBroadcastD, W: s.w, Dst: r,
			Mem: amd64.Mem{Const: s.f.Const(appendBits(nil, lane, 4))}})
	}
	return r
}

// laneBits returns a constant as its lane holds it: narrow integers extended, half types as float32.
func laneBits(t kir.Type, bits uint64) (lane uint64, size int) {
	switch t {
	case kir.I8:
		return uint64(uint32(int32(int8(bits)))), 4
	case kir.I16:
		return uint64(uint32(int32(int16(bits)))), 4
	case kir.F16:
		f, _ := kir.Eval(kir.Convert, kir.ModeNone, kir.F32, t, bits)
		return f, 4
	case kir.BF16:
		return bits & t.Mask() << 16, 4
	}
	if wide(t) {
		return bits, 8
	}
	return bits & t.Mask(), 4
}

// base returns the uniform value, or the base of a Based one, of an integer, Bool or pointer in a general register.
func (s *selector) base(i *kir.Instr) amd64.R {
	if i.Op == kir.Const {
		r := s.reg(amd64.GPR)
		lane, size := laneBits(i.Type, i.Imm)
		s.emit(amd64.Inst{Op: amd64.Mov, W: uint8(size), Dst: r, Imm: int64(lane)})
		return r
	}
	v := s.vals[i.ID]
	if v.base != 0 {
		return v.base
	}
	if v.vec[0] != 0 && s.info.Patterns[i.ID].Kind == lanes.Uniform {
		return s.uniformBase(val{typ: i.Type, vec: v.vec, splat: v.splat})
	}
	if i.Op.Pure() && !usesPtr(i) {
		return s.scalarOp(i) // nobody had asked for it when i was selected
	}
	s.unsupported(i, "a base is wanted that does not exist")
	return s.reg(amd64.GPR)
}

// constsOf returns the bits of the operands that are constants, nil for others.
func constsOf(i *kir.Instr) []*uint64 {
	c := make([]*uint64, len(i.Args))
	for n, a := range i.Args {
		if a.Op == kir.Const {
			c[n] = &a.Imm
		}
	}
	return c
}

// argType is the type of an operation's operands, where its result does not give it.
func argType(i *kir.Instr) kir.Type {
	if i.Op == kir.Select {
		return i.Args[1].Type
	}
	return i.Args[0].Type
}

// compute selects a pure operation on numbers.
func (s *selector) compute(i *kir.Instr) {
	sh := s.info.Patterns[i.ID]
	needBase, needVec := s.info.NeedBase[i.ID], s.info.NeedVec[i.ID]
	switch {
	case !needBase && !needVec:
		return
	case sh.Kind == lanes.Varying:
		if bits, mask := s.fewBits(i); bits != nil {
			s.result(i, s.fewBitsToFloat(i.Type, s.laneVal(bits), mask))
			return
		}
		if op, ok := extreme(i); ok {
			s.result(i, s.smallerOrLarger(op, i))
			return
		}
		if i.Op == kir.Scale {
			s.result(i, s.scaled(i))
			return
		}
		s.result(i, s.vectorOp(i, false))
	case onlyScalars(i):
		s.result(i, val{typ: i.Type, base: s.scalarOp(i)})
	default: // a uniform float is involved
		s.result(i, s.vectorOp(i, true))
	}
}

// onlyScalars reports whether neither operands nor result are floats, so that general registers serve.
func onlyScalars(i *kir.Instr) bool {
	if i.Type.IsFloat() {
		return false
	}
	for _, a := range i.Args {
		if a.Type.IsFloat() {
			return false
		}
	}
	return true
}

// vectorOp computes i in vector registers: every part, or one splat.
func (s *selector) vectorOp(i *kir.Instr, splat bool) val {
	switch {
	case splat:
	case s.byUniform(i):
		return s.divideByUniform(i, i.Type, s.laneVal(i.Args[0]), s.laneVal(i.Args[1]))
	case s.longDivision(i):
		return s.divideLong(i)
	}
	if op, ok := s.shortProduct(i); ok && !splat {
		return s.multiplyShort(i, op)
	}
	consts := constsOf(i)
	args := make([]val, len(i.Args))
	for n, a := range i.Args {
		args[n] = s.laneVal(a)
	}
	v := val{typ: i.Type, splat: splat}
	units := make([]unit, len(args))
	if splat {
		for n := range args {
			units[n] = unit{r: [2]amd64.R{args[n].vec[0]}}
		}
		v.vec[0] = s.pureConst(i.Op, i.Type, argType(i), units, consts, true).r[0]
		return v
	}
	for p := range s.parts {
		for n := range args {
			units[n] = args[n].unitOf(p)
		}
		v.setUnit(p, s.pureConst(i.Op, i.Type, argType(i), units, consts, false))
	}
	return v
}

// scalarOp computes the uniform value of i, or the base of its pattern, in a general register.
func (s *selector) scalarOp(i *kir.Instr) amd64.R {
	args := make([]amd64.R, len(i.Args))
	for n, a := range i.Args {
		if a.Op != kir.Const {
			args[n] = s.base(a)
		}
	}
	consts := constsOf(i)
	for n, a := range i.Args {
		if a.Op == kir.Const && !s.immediate(i, n) {
			args[n] = s.base(a)
		}
	}
	r := s.scalar(i.Op, i.Type, argType(i), args, consts)
	if adj := int64(s.info.Bias[i.ID]); adj != 0 {
		w := uint8(4)
		if wide(i.Type) {
			w = 8
		}
		t := s.reg(amd64.GPR)
		s.emit(amd64.Inst{Op: amd64.Mov, W: w, Dst: t, A: r})
		s.emit(amd64.Inst{Op: amd64.Add, W: w, Dst: t, Imm: adj})
		r = t
		if i.Type.Size() < 4 {
			zero := uint64(0)
			r = s.scalar(kir.Add, i.Type, i.Type, []amd64.R{r, s.base(&kir.Instr{Op: kir.Const, Type: i.Type})},
				[]*uint64{nil, &zero})
		}
	}
	return r
}

// immediate reports whether operand n, a constant, need not be in a register as well.
func (s *selector) immediate(*kir.Instr, int) bool { return false }
