package arm64

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// Where the registers of package code are.
//
// A register of class Vec, 32 bytes, is two of the processor's: the lower half of its lanes and the upper. Virtual
// register n of package code becomes 2n and 2n+1. General registers keep their numbers; those that package code names
// are fixed:
//
//	x0 x1 x2   RAX RCX RDX          x19  RBX, the frame       x7 x8 x9 x13      temporaries of lowering
//	x3 x4      RSI RDI              x20  RBP, the block       x14 x15 x16 x17   of the allocator, for what is spilled
//	x5 x6      R10 R11              x10 to x12, x21 to x27    given out by the allocator
//
// x18 (the system's), x28 (Go's), x29, x30 and sp stay as they are. Vector registers 0 to 23 are given out, 24 to 28
// are temporaries of lowering, 29 to 31 the allocator's.

func x(n int) code.R { return code.Reg(code.GPR, n) }
func v(n int) code.R { return code.Reg(code.Vec, n) }

var (
	fixed = map[code.R]code.R{code.RAX: x(0), code.RCX: x(1), code.RDX: x(2), code.RSI: x(3), code.RDI: x(4),
		code.R10: x(5), code.R11: x(6), code.RBX: x(19), code.RBP: x(20)}
	zero                   = x(31)
	block                  = x(20)
	tempAt                 = x(7) // addresses
	temp1, temp2, temp3    = x(8), x(9), x(13)
	vec1, vec2             = v(24), v(25)
	tableLow, tableHigh    = v(26), v(27)
	fixedVec               = v(28) // V(15), of which code uses one number
	spillGPR, spillAddress = []code.R{x(14), x(15), x(16)}, x(17)
	spillVec               = []code.R{v(29), v(30), v(31)}
)

// writer writes instructions of the processor: addresses and constants as it takes them.
type writer struct {
	f    *code.Func
	out  []inst
	i    *code.Inst // what they are for
	vecs int        // virtual vector registers handed out
	// twins are those registers of package code, by number, that have the same in both halves.
	twins []bool
	err   error
}

// lowerer makes the processor's instructions of those of package code, before registers are chosen.
type lowerer struct {
	writer
	flags bool            // what i does with the flags is looked at
	full  map[code.R]bool // masks with all lanes on
	// By number of package code's vector registers: whether they are quiet, and constants that are all they ever hold.
	quiets []uint8
	splats []code.Mem
}

func (l *writer) fail(why string) {
	if l.err == nil {
		l.err = fmt.Errorf("[arm64] %s: operation %d, %+v", why, l.i.Op, *l.i)
	}
}

func (l *writer) put(i inst) { l.out = append(l.out, i) }

// op1, op2 and so on emit an operation with so many sources.
func (l *writer) op0(op opcode, d code.R, imm uint32)     { l.put(inst{op: op, d: d, imm: imm}) }
func (l *writer) op1(op opcode, d, n code.R)              { l.put(inst{op: op, d: d, n: n}) }
func (l *writer) op1i(op opcode, d, n code.R, imm uint32) { l.put(inst{op: op, d: d, n: n, imm: imm}) }
func (l *writer) op2(op opcode, d, n, m code.R)           { l.put(inst{op: op, d: d, n: n, m: m}) }
func (l *writer) op2i(op opcode, d, n, m code.R, im uint32) {
	l.put(inst{op: op, d: d, n: n, m: m, imm: im})
}

// g is where a general register is.
func (l *writer) g(r code.R) code.R {
	if r == 0 || r.Virtual() {
		return r
	}
	if p, ok := fixed[r]; ok {
		return p
	}
	l.fail("no place for a general register")
	return x(0)
}

// half is where half h, 0 or 1, of a vector register is.
func (l *writer) half(r code.R, h int) code.R {
	if l.twin(r) {
		h = 0
	}
	if r.Virtual() {
		return code.Reg(code.Vec, code.FirstVirtual+2*(r.Num()-code.FirstVirtual)+h)
	}
	if r == code.V(15) && h == 0 {
		return fixedVec
	}
	l.fail("no place for a vector register")
	return v(0)
}

// halves is how many halves an instruction works on.
func (l *lowerer) halves() int {
	if l.i.W == 32 && !l.twin(l.i.Dst) {
		return 2
	}
	return 1
}

// clearUpper clears the upper half of a destination of which an instruction writes 16 bytes.
func (l *writer) clearUpper(d code.R) {
	if d.Virtual() {
		l.op0(movi2d, l.half(d, 1), 0)
	}
}

// setsFlags are the operations whose effect on the flags code looks at.
func setsFlags(op code.Opcode) bool {
	switch op {
	case code.Add, code.Sub, code.And, code.Or, code.Xor, code.Cmp, code.Test, code.Neg, code.Shl, code.Shr, code.Sar,
		code.VPTest, code.LockCmpXchg:
		return true
	}
	return false
}

// lower makes the list of instructions for f, in out's memory, and says how many virtual vector registers it names.
func lower(f *code.Func, out []inst) (insts []inst, vecs int, err error) {
	l := &lowerer{writer: writer{f: f, out: out[:0], vecs: 2 * f.NumRegs(code.Vec)}, full: map[code.R]bool{}}
	list := f.Insts()
	looked, last := make([]bool, len(list)), -1
	for n := range list {
		switch op := list[n].Op; {
		case setsFlags(op):
			last = n
		case op == code.Jcc || op == code.SetCC || op == code.CMov:
			if last < 0 {
				return nil, 0, fmt.Errorf("[arm64] nothing sets the flags")
			}
			looked[last] = true
		}
	}
	l.findTwins(list)
	l.findQuiet(list)
	for n := range list {
		l.i, l.flags = &list[n], looked[n]
		l.inst()
		if l.err != nil {
			return nil, 0, l.err
		}
		// What gathers take for a mask may be one that is made to be full.
		l.full[l.i.Dst] = l.i.Op == code.VPCmpEqD && l.i.A == l.i.B && l.i.A == l.i.Dst
	}
	return l.out, l.vecs, nil
}

// inst lowers one instruction.
func (l *lowerer) inst() {
	i := l.i
	switch i.Op {
	case code.BindLabel:
		l.put(inst{op: place, label: i.Label})
	case code.LoopBegin:
		l.put(inst{op: loopBegin})
	case code.LoopEnd:
		l.put(inst{op: loopEnd})
	case code.ColdBegin:
		l.put(inst{op: coldBegin})
	case code.ColdEnd:
		l.put(inst{op: coldEnd})
	case code.SaveLive:
		l.put(inst{op: saveLive, point: i.Safepoint})
	case code.LoadLive:
		l.put(inst{op: loadLive, point: i.Safepoint})
	case code.SaveRegs, code.LoadRegs:
		l.registers(i.Op == code.SaveRegs)
	default:
		switch {
		case i.Op <= code.PrefetchW:
			l.general()
		case l.float() || l.convert() || l.integer() || l.widths() || l.move() || l.permute() || l.gather():
		default:
			l.fail("no such operation")
		}
	}
}

// registers stores or loads every register that code may have values in, from Mem on.
func (l *lowerer) registers(save bool) {
	base, at := l.g(l.i.Mem.Base), l.i.Mem.Disp
	ldst := func(load, store opcode, r code.R, size int32) {
		op := load
		if save {
			op = store
		}
		l.op1i(op, r, base, scaled(at, size))
		at += size
	}
	for n := range 24 {
		ldst(ldrQ, strQ, v(n), 16)
	}
	for _, n := range append([]uint8{19, 3, 4, 5, 6}, freeGPR...) {
		ldst(ldrX, strX, x(int(n)), 8)
	}
}
