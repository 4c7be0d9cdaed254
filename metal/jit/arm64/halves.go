package arm64

import (
	"encoding/binary"
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Halves (float16) are kept as floats of the same value, and what an operation makes of them is rounded: narrowed to
// halves, and widened again. This pass keeps what registers were widened from beside them. Then
//
//   - narrowing what was widened takes the halves that there are;
//   - narrowing the sum, difference, product, quotient or root of halves is one operation on halves, with FEAT_FP16;
//   - a*b + c of halves a and b and a float c is one operation, with FEAT_FHM,
//
// and most of what was widened has no reader left.
//
// The second makes the same bytes. A half has 11 bits, a float 24: since 24 >= 2*11 + 2, rounding a result of + - * /
// or sqrt to 24 bits and then to 11 is rounding it once. Where the result is a denormal half the argument is another:
// a sum is exact then; a product has 22 bits, so the float is exact; a quotient a/b that is no tie m has |a - m b| of
// at least one unit where m b has at most 23 bits, so that rounding to 24 does not reach the tie; a root is never
// that small. The third makes the same since the product is exact and the sum is rounded once. But a*b + c in halves is
// no such operation: it rounds a product that is a tie together with a small c, which 24 bits do not hold.

// The operations on halves, which are none of package code: those that amd64 calls VADDPH and so on, on 8 lanes; and
// mlaPH, which is C + A*B of halves A and B and floats C, where C is Dst.
const (
	addPH code.Opcode = code.NumOpcodes + iota
	subPH
	mulPH
	divPH
	sqrtPH
	mlaPH
)

// onHalves are they by those on floats.
var onHalves = map[code.Opcode]code.Opcode{code.VAddPS: addPH, code.VSubPS: subPH, code.VMulPS: mulPH,
	code.VDivPS: divPH, code.VSqrtPS: sqrtPH}

// halver is the work of asHalves. Its tables are by vector register.
type halver struct {
	f     *code.Func
	level Level
	out   []code.Inst
	regs  []halfRegister
	begin int // where in out the instructions begin between which and the next nothing jumps
}

// halfRegister is what halver knows of a register.
type halfRegister struct {
	halves  code.R    // they, if it holds floats that were widened: such a register holds nothing else
	splat   code.Mem  // the constant in all lanes, if it holds one
	last    int       // where in out it was written last
	made    code.Inst // the operation on halves that makes the same as the one that wrote it last, if there is one
	written uint8     // how often, 2 for more
}

// asHalves has halves computed as halves.
func asHalves(f *code.Func, level Level) {
	list := f.Insts()
	h := halver{f: f, level: level}
	for n := range list {
		if list[n].Op == code.VCvtPH2PS {
			h.prepare(list)
			for n := range list {
				h.inst(list[n])
			}
			f.SetInsts(h.out)
			return
		}
	}
}

// prepare makes the tables.
func (h *halver) prepare(list []code.Inst) {
	h.out = make([]code.Inst, 0, len(list)+len(list)/8)
	h.regs = make([]halfRegister, h.f.NumRegs(code.Vec))
	for n := range list {
		i := &list[n]
		i.Operands(func(r *code.R, role code.Role) {
			if g := h.of(*r); g != nil && role&code.Def != 0 {
				g.written = min(g.written+1, 2)
			}
		})
		if g := h.of(i.Dst); g != nil && i.Op == code.VCvtPH2PS && i.W == vecBytes && g.halves == 0 {
			g.halves = h.f.NewReg(code.Vec)
		}
	}
}

// of is what is known of a register, nil if it is none of those.
func (h *halver) of(r code.R) *halfRegister {
	if n := r.Num() - code.FirstVirtual; r.Class() == code.Vec && n >= 0 && n < len(h.regs) {
		return &h.regs[n]
	}
	return nil
}

func (h *halver) put(i code.Inst) {
	h.out = append(h.out, i)
	switch i.Op {
	case code.BindLabel, code.LoopBegin, code.LoopEnd, code.ColdBegin, code.ColdEnd, code.Jcc, code.Jmp, code.Ret:
		h.begin = len(h.out)
	}
	i.Operands(func(r *code.R, role code.Role) {
		if g := h.of(*r); g != nil && role&code.Def != 0 {
			g.last, g.made = len(h.out), code.Inst{}
		}
	})
}

// inst puts an instruction, or what does the same.
func (h *halver) inst(i code.Inst) {
	d := h.of(i.Dst)
	switch {
	case i.Op == code.VCvtPS2PH && i.W == vecBytes && h.narrow(i), i.Op == code.VFMAdd231PS && h.multiply(i):
		return
	case d == nil:
		h.put(i)
	case d.halves != 0 && i.Op == code.VCvtPH2PS && i.W == vecBytes:
		h.put(code.Inst{Op: code.VMovDQU, W: vecBytes / 2, Dst: d.halves, A: i.A, Mem: i.Mem})
		h.put(code.Inst{Op: i.Op, W: i.W, Dst: i.Dst, A: d.halves})
	case d.halves != 0:
		h.put(i)
		if a := h.of(i.A); a != nil && a.halves != 0 && i.Op == code.VMovAPS && i.W == vecBytes {
			h.put(code.Inst{Op: code.VMovDQU, W: vecBytes / 2, Dst: d.halves, A: a.halves})
			break
		}
		h.put(code.Inst{Op: code.VCvtPS2PH, W: vecBytes, Dst: d.halves, A: i.Dst})
	case d.written == 1 && i.Op == code.VMovAPS && i.W == vecBytes && h.of(i.A) != nil && h.of(i.A).halves != 0:
		d.halves = h.of(i.A).halves // a value of kir, which stays as long as what is a copy of it is read
		h.put(i)
	case i.Op == code.VPBroadcastD && i.Mem.Const != 0 && d.written == 1:
		d.splat = i.Mem
		h.put(i)
	case onHalves[i.Op] != 0 && i.W == vecBytes && h.level >= FP16:
		o := h.operation(i)
		h.put(i)
		d.made = o
	default:
		h.put(i)
	}
}

// operation is what makes the same of halves as i of floats, none if one of its sources was not widened.
func (h *halver) operation(i code.Inst) code.Inst {
	o := code.Inst{Op: onHalves[i.Op], W: vecBytes / 2, A: h.half(i.A)}
	switch {
	case o.A == 0:
		return code.Inst{}
	case i.Op == code.VSqrtPS:
		return o
	case i.B == 0:
		o.B = h.constant(i.Mem)
	default:
		o.B = h.half(i.B)
	}
	if o.B == 0 {
		return code.Inst{}
	}
	return o
}

// half is a register with a float's halves, 0 if there is none.
func (h *halver) half(r code.R) code.R {
	switch g := h.of(r); {
	case g == nil:
		return 0
	case g.splat.Const != 0:
		return h.constant(g.splat)
	default:
		return g.halves
	}
}

// constant is a register with a constant of floats as halves: one that all lanes have and that is a half.
func (h *halver) constant(m code.Mem) code.R {
	if m.Const == 0 {
		return 0
	}
	data := h.f.Pool()[m.Const-1].Data[m.Disp:]
	word := binary.LittleEndian.Uint32(data)
	for at := 4; at+4 <= len(data); at += 4 {
		if binary.LittleEndian.Uint32(data[at:]) != word {
			return 0
		}
	}
	bits := kir.F32ToF16(math.Float32frombits(word))
	if math.Float32bits(kir.F16ToF32(bits)) != word {
		return 0
	}
	r := h.f.NewReg(code.Vec)
	h.put(code.Inst{Op: code.VPBroadcastW, W: vecBytes / 2, Dst: r,
		Mem: code.Mem{Const: h.f.Const([]byte{byte(bits), byte(bits >> 8)})}})
	return r
}

// narrow puts what makes the halves that i makes of floats, if there is such.
func (h *halver) narrow(i code.Inst) bool {
	g := h.of(i.A)
	switch {
	case g == nil:
		return false
	case g.halves != 0:
		h.put(code.Inst{Op: code.VMovDQU, W: vecBytes / 2, Dst: i.Dst, A: g.halves, Mem: i.Mem})
		return true
	case g.made.Op == 0 || g.last <= h.begin || h.newer(g.made.A, g.last) || h.newer(g.made.B, g.last):
		return false
	}
	o := g.made
	o.Dst = i.Dst
	if i.Mem.Valid() {
		o.Dst = h.f.NewReg(code.Vec)
	}
	h.put(o)
	if i.Mem.Valid() {
		h.put(code.Inst{Op: code.VMovDQU, W: vecBytes / 2, A: o.Dst, Mem: i.Mem})
	}
	return true
}

// newer reports whether a register of halves was written since.
func (h *halver) newer(r code.R, since int) bool {
	for _, i := range h.out[since:] {
		if i.Dst == r && r != 0 {
			return true
		}
	}
	return false
}

// multiply puts what adds the product of floats that were halves.
func (h *halver) multiply(i code.Inst) bool {
	a, b := h.of(i.A), h.of(i.B)
	if h.level < FP16FML || i.W != vecBytes || a == nil || b == nil || a.halves == 0 || b.halves == 0 {
		return false
	}
	h.put(code.Inst{Op: mlaPH, W: vecBytes, Dst: i.Dst, A: a.halves, B: b.halves, C: i.Dst})
	return true
}
