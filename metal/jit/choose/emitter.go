package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// emitter appends instructions to the list of a kernel's code. It knows the processor's level and how lanes are laid
// out in registers, and nothing of kernels.
type emitter struct {
	f       *code.Func
	target  *code.Target
	w       uint8  // bytes of a vector register: 64 or 32
	per     int    // 32-bit lanes of one
	group   int    // lanes that run together: see LanesAtOnce
	parts   int    // group / per
	scratch int    // offset of the scratch in the arena
	kernel  string // its name, for errors
	err     error  // the first thing that could not be done
}

// newEmitter returns an emitter for a processor, of which so many lanes run together.
func newEmitter(f *code.Func, target *code.Target, group int, kernel string, scratch int) *emitter {
	w := target.VecBytes
	e := &emitter{f: f, target: target, w: w, per: int(w) / 4, group: group, kernel: kernel, scratch: scratch}
	e.parts = group / e.per
	return e
}

// avx512 reports whether the code is for processors with AVX-512; else they have AVX2.
func (s *emitter) avx512() bool { return s.target.Masks() }

// extras reports whether there are operations of AVX-512 that need no mask (code.Target.Extras).
func (s *emitter) extras() bool { return s.target.Masks() || s.target.Extras }

// pick chooses an operation by the instruction set.
func (s *emitter) pick(avx512, avx2 code.Opcode) code.Opcode {
	if s.avx512() {
		return avx512
	}
	return avx2
}

// emit appends an instruction.
func (s *emitter) emit(i code.Inst) { s.f.Emit(i) }

// reg returns a new virtual register.
func (s *emitter) reg(c code.Class) code.R { return s.f.NewReg(c) }

// label returns a new label, which bind places here.
func (s *emitter) label() code.Label { return s.f.NewLabel() }

func (s *emitter) bind(l code.Label) { s.f.Bind(l) }

// jump emits a jump, jcc one that depends on the flags.
func (s *emitter) jump(l code.Label) { s.emit(code.Inst{Op: code.Jmp, Label: l}) }

func (s *emitter) jcc(c code.Cond, l code.Label) {
	s.emit(code.Inst{Op: code.Jcc, Cond: c, Label: l})
}

// jumpIfZero jumps if a register is zero.
func (s *emitter) jumpIfZero(r code.R, l code.Label) {
	s.emit(code.Inst{Op: code.Test, W: 8, A: r, B: r})
	s.jcc(code.CondE, l)
}

// unsupported records that a kernel cannot be compiled; interp then runs it.
func (s *emitter) unsupported(i *kir.Instr, why string) {
	if s.err == nil {
		s.err = &Unsupported{Kernel: s.kernel, Op: i.Op, Why: why}
	}
}

// loadReg loads w bytes to a general register.
func (s *emitter) loadReg(w uint8, r code.R, m code.Mem) {
	s.emit(code.Inst{Op: code.Mov, W: w, Dst: r, Mem: m})
}

// storeReg stores w bytes of a general register.
func (s *emitter) storeReg(w uint8, m code.Mem, r code.R) {
	s.emit(code.Inst{Op: code.Mov, W: w, Mem: m, A: r})
}

// storeImm stores an integer of 8 bytes.
func (s *emitter) storeImm(m code.Mem, v int64) {
	s.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RAX, Imm: v})
	s.storeReg(8, m, code.RAX)
}

// gop emits dst = dst op a on general registers.
func (s *emitter) gop(op code.Opcode, w uint8, dst, a code.R) {
	s.emit(code.Inst{Op: op, W: w, Dst: dst, A: a})
}

// gopImm emits dst = dst op imm on a general register (Mov: dst = imm).
func (s *emitter) gopImm(op code.Opcode, w uint8, dst code.R, imm int64) {
	s.emit(code.Inst{Op: op, W: w, Dst: dst, Imm: imm})
}

// gopMem emits dst = dst op memory on a general register (Mov: dst = memory).
func (s *emitter) gopMem(op code.Opcode, w uint8, dst code.R, m code.Mem) {
	s.emit(code.Inst{Op: op, W: w, Dst: dst, Mem: m})
}

// gmove returns a copy.
func (s *emitter) gmove(w uint8, a code.R) code.R {
	d := s.reg(code.GPR)
	s.emit(code.Inst{Op: code.Mov, W: w, Dst: d, A: a})
	return d
}

// gload returns a constant in a register.
func (s *emitter) gload(w uint8, bits uint64) code.R {
	d := s.reg(code.GPR)
	s.emit(code.Inst{Op: code.Mov, W: w, Dst: d, Imm: int64(bits)})
	return d
}

// lea returns a register with the address m.
func (s *emitter) lea(m code.Mem) code.R {
	r := s.reg(code.GPR)
	s.gopMem(code.Lea, 8, r, m)
	return r
}

// leaLabel puts the address of a label into a general register.
func (s *emitter) leaLabel(dst code.R, l code.Label) {
	s.emit(code.Inst{Op: code.Lea, W: 8, Dst: dst, Label: l})
}

// cmpImm emits a comparison of a register with a constant, in 64 bits.
func (s *emitter) cmpImm(r code.R, v int64) {
	if v != int64(int32(v)) {
		s.emit(code.Inst{Op: code.Cmp, W: 8, A: r, B: s.gload(8, uint64(v))})
		return
	}
	s.emit(code.Inst{Op: code.Cmp, W: 8, A: r, Imm: v})
}

// plainBase makes an address that leaves the index of a memory operand free.
func (s *emitter) plainBase(m code.Mem) code.Mem {
	if m.Index == 0 {
		return m
	}
	return code.Mem{Base: s.lea(m)}
}

// zeroReg clears a vector or mask register.
func (s *emitter) zeroReg(r code.R) {
	switch {
	case r == 0:
	case r.Class() == code.Mask:
		s.emit(code.Inst{Op: code.KXor, W: 2, Dst: r, A: r, B: r})
	default:
		s.emit(code.Inst{Op: code.VXorPS, W: s.w, Dst: r, A: r, B: r})
	}
}

// copyReg returns a copy of a vector or mask register.
func (s *emitter) copyReg(r code.R) code.R {
	d := s.reg(r.Class())
	s.moveReg(d, r)
	return d
}

// moveReg copies a vector or mask register to another.
func (s *emitter) moveReg(d, r code.R) {
	switch {
	case r.Class() == code.Mask:
		s.emit(code.Inst{Op: code.KMov, W: 2, Dst: d, A: r})
	default:
		s.emit(code.Inst{Op: code.VMovAPS, W: s.w, Dst: d, A: r})
	}
}

// moveVal copies the registers of src to those of dst.
func (s *emitter) moveVal(dst, src val) {
	if dst.base != 0 {
		s.gop(code.Mov, 8, dst.base, src.base)
	}
	for n, d := range dst.vec {
		if d != 0 && src.vec[n] != 0 {
			s.moveReg(d, src.vec[n])
		}
	}
}

// regsOf is how many vector (or mask) registers all lanes of a type take.
func (s *emitter) regsOf(t kir.Type) int {
	if wide(t) {
		return 2 * s.parts
	}
	return s.parts
}

// classOf is the class of registers that hold lanes of a type.
func (s *emitter) classOf(t kir.Type) code.Class {
	if t == kir.Bool && s.avx512() {
		return code.Mask
	}
	return code.Vec
}

// scalarToSplat broadcasts an integer or pointer: to 32-bit lanes for types of up to 32 bits, else to 64-bit ones.
func (s *emitter) scalarToSplat(r code.R, t kir.Type) code.R {
	d := s.reg(code.Vec)
	if s.extras() {
		s.emit(code.Inst{Op: by(wide(t), code.VPBroadcastGD, code.VPBroadcastGQ), W: s.w, Dst: d, A: r})
		return d
	}
	low := s.reg(code.Vec)
	s.emit(code.Inst{Op: by(wide(t), code.VMovD, code.VMovQ), W: 16, Dst: low, A: r})
	s.emit(code.Inst{Op: by(wide(t), code.VPBroadcastD, code.VPBroadcastQ), W: s.w, Dst: d, A: low})
	return d
}

// splatToScalar returns lane 0 of a register in a general register: of the lane's 32 bits, or all 64 for 64-bit
// types.
func (s *emitter) splatToScalar(v code.R, t kir.Type) code.R {
	d := s.reg(code.GPR)
	s.emit(code.Inst{Op: by(wide(t), code.VMovD, code.VMovQ), W: 16, Dst: d, A: v})
	return d
}

// table puts offsets into the pool as one vector of integers of the given size.
func (s *emitter) table(offsets []int32, size int) code.Mem {
	b := make([]byte, 0, len(offsets)*size)
	for _, o := range offsets {
		b = appendBits(b, uint64(int64(o)), size)
	}
	return code.Mem{Const: s.f.Const(b)}
}

// scratchMem is a place in the arena's scratch.
func (s *emitter) scratchMem(off int) code.Mem { return inArena(int32(s.scratch + off)) }

// laneLoop runs body n times with a register that counts 0, step, 2*step, ... The body may change RAX, RCX and RDX,
// and must not jump out.
func (s *emitter) laneLoop(n, step int, body func(at code.R)) {
	at, again := s.reg(code.GPR), s.label()
	s.emit(code.Inst{Op: code.Mov, W: 4, Dst: at, Imm: 0})
	s.f.Loop()
	s.bind(again)
	body(at)
	s.emit(code.Inst{Op: code.Add, W: 4, Dst: at, Imm: int64(step)})
	s.emit(code.Inst{Op: code.Cmp, W: 4, A: at, Imm: int64(n * step)})
	s.jcc(code.CondB, again)
	s.f.EndLoop()
}
