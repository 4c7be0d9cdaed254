package amd64

import (
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

var regNames = [16]string{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"}

// gprName returns the name of the low w bytes of a general register.
func gprName(r code.R, w int) string {
	n := r.Num()
	if r.Virtual() || r.Class() != code.GPR || n > 15 {
		return r.String()
	}
	if n >= 8 {
		return "r" + strconv.Itoa(n) + map[int]string{1: "b", 2: "w", 4: "d", 8: ""}[w]
	}
	s := regNames[n]
	switch w {
	case 1:
		if n < 4 {
			return s[:1] + "l"
		}
		return s + "l"
	case 2:
		return s
	case 4:
		return "e" + s
	}
	return "r" + s
}

// vecName returns the name of the low w bytes of a vector register.
func vecName(r code.R, w int) string {
	if r.Virtual() || r.Class() != code.Vec {
		return r.String()
	}
	p := "xmm"
	switch {
	case w > 32:
		p = "zmm"
	case w > 16:
		p = "ymm"
	}
	return p + strconv.Itoa(r.Num())
}

// regName returns the name of a register in an operand of w bytes.
func regName(r code.R, w int) string {
	switch r.Class() {
	case code.GPR:
		return gprName(r, w)
	case code.Vec:
		return vecName(r, w)
	}
	return r.String()
}

var ptrNames = map[int]string{1: "byte ptr ", 2: "word ptr ", 4: "dword ptr ", 8: "qword ptr ", 16: "xmmword ptr ",
	32: "ymmword ptr ", 64: "zmmword ptr "}

// text returns the address in brackets; vecW is the width of a vector index.
func memText(m *code.Mem, vecW int) string {
	var b strings.Builder
	b.WriteByte('[')
	plus := false
	if m.Const != 0 {
		b.WriteString("rip + .C" + strconv.Itoa(int(m.Const)))
		plus = true
	}
	if m.Base != 0 {
		b.WriteString(regName(m.Base, 8))
		plus = true
	}
	if m.Index != 0 {
		if plus {
			b.WriteString(" + ")
		}
		b.WriteString(regName(m.Index, max(8, vecW)))
		b.WriteString("*" + strconv.Itoa(max(1, int(m.Scale))))
		plus = true
	}
	switch {
	case m.Disp < 0:
		b.WriteString(" - " + strconv.FormatInt(-int64(m.Disp), 10))
	case m.Disp > 0 && plus:
		b.WriteString(" + " + strconv.Itoa(int(m.Disp)))
	}
	b.WriteByte(']')
	return b.String()
}

// mem returns the memory operand of n bytes.
func memOperand(i *code.Inst, n int) string {
	r := rowOf(i.Op)
	if i.Mem.Bcast {
		b := max(1, r.enc.bcast())
		return strings.Replace(ptrNames[b], "ptr", "bcst", 1) + memText(&i.Mem, 0) + "{1to" + strconv.Itoa(n/b) + "}"
	}
	return ptrNames[n] + memText(&i.Mem, indexWidth(i))
}

// indexWidth returns the bytes of a gather's index.
func indexWidth(i *code.Inst) int {
	switch i.Op {
	case code.VPGatherDQ, code.VPGatherDQK, code.VPScatterDQ:
		return max(16, int(i.W)/2)
	}
	return int(i.W)
}

// dataWidth returns the bytes of what a gather or scatter moves.
func dataWidth(i *code.Inst) int {
	switch i.Op {
	case code.VPGatherQD, code.VPGatherQDK, code.VPScatterQD:
		return max(16, int(i.W)/2)
	}
	return int(i.W)
}

// text returns the instruction in Intel's syntax, as GNU as reads it once registers are real.
func text(i *code.Inst) string {
	r := rowOf(i.Op)
	switch {
	case r.form == formNone:
		return "op" + strconv.Itoa(int(i.Op))
	case r.form == formPseudo:
		s := r.name
		if i.Label != 0 {
			return ".L" + strconv.Itoa(int(i.Label)) + ":"
		}
		if i.Op == code.SaveLive || i.Op == code.LoadLive {
			s += " " + strconv.Itoa(int(i.Safepoint))
		}
		return s
	case r.form < formKMov:
		return vectorText(i, r)
	case r.form < formALU:
		return maskText(i, r)
	}
	return generalText(i, r)
}

// vectorText is text for vector instructions.
func vectorText(i *code.Inst, r *row) string {
	w := int(i.W)
	if r.enc&lig != 0 {
		w = 16
	}
	gprW := 4
	if r.enc&w1 != 0 && r.enc&(dG|aG) != 0 {
		gprW = 8
	}
	rmW := r.enc.bytesOf(i.W)
	if r.enc&lig != 0 && r.enc&tupleMask == 0 {
		rmW = 16
	}
	reg := func(x code.R, w int) string {
		if x.Class() == code.GPR {
			return regName(x, gprW)
		}
		return regName(x, w)
	}
	masked := func(s string) string {
		if i.KM != 0 {
			s += "{" + i.KM.String() + "}"
		}
		if i.Zero && r.enc&dK == 0 {
			s += "{z}"
		}
		return s
	}
	rm := func(x code.R) string {
		if x == 0 && i.Mem.Valid() {
			return memOperand(i, rmW)
		}
		return reg(x, rmW)
	}
	dstW := w
	if r.enc&dHalf != 0 {
		dstW = w / 2
	}
	dst := masked(reg(i.Dst, dstW))
	imm := strconv.Itoa(int(uint8(i.Imm)))
	join := func(s ...string) string { return r.name + " " + strings.Join(s, ", ") }
	switch r.form {
	case formRM:
		return join(dst, rm(i.A))
	case formRMI:
		return join(dst, rm(i.A), imm)
	case formRVM, formTVM:
		return join(dst, reg(i.A, w), rm(i.B))
	case formRVMI, formTVMI:
		return join(dst, reg(i.A, w), rm(i.B), imm)
	case formRVMR:
		return join(dst, reg(i.A, w), rm(i.B), reg(i.C, w))
	case formMR:
		return join(masked(rm(i.Dst)), reg(i.A, w))
	case formMRI:
		return join(masked(rm(i.Dst)), reg(i.A, w), imm)
	case formMov:
		if i.Dst == 0 {
			return join(masked(memOperand(i, rmW)), reg(i.A, w))
		}
		return join(dst, rm(i.A))
	case formMovDQ:
		gprW = rmW
		switch {
		case i.Dst == 0:
			return join(memOperand(i, rmW), reg(i.A, 16))
		case i.Mem.Valid():
			return join(reg(i.Dst, 16), memOperand(i, rmW))
		}
		return join(reg(i.Dst, 16), reg(i.A, 16))
	case formShift:
		if i.B != 0 || i.Mem.Valid() && i.A != 0 {
			rmW = 16
			return join(dst, reg(i.A, w), rm(i.B))
		}
		return join(dst, rm(i.A), imm)
	case formMVR:
		return join(memOperand(i, rmW), reg(i.B, w), reg(i.A, w))
	case formGV:
		m := memText(&i.Mem, indexWidth(i))
		return join(vecName(i.Dst, dataWidth(i)), m, vecName(i.A, dataWidth(i)))
	case formGK:
		return join(masked(vecName(i.Dst, dataWidth(i))), memText(&i.Mem, indexWidth(i)))
	case formSK:
		return join(masked(memText(&i.Mem, indexWidth(i))), vecName(i.A, dataWidth(i)))
	case formAB:
		return join(reg(i.A, w), rm(i.B))
	}
	return r.name
}

// maskText is text for instructions on masks.
func maskText(i *code.Inst, r *row) string {
	suffix := map[uint8]string{1: "b", 2: "w", 4: "d", 8: "q"}[i.W]
	w := int(i.W)
	switch {
	case i.Op == code.KUnpck:
		suffix = map[uint8]string{2: "bw", 4: "wd", 8: "dq"}[i.W]
	case r.form == formKMov && i.W < 8:
		w = 4
	}
	s := r.name + suffix + " "
	switch r.form {
	case formKMov:
		switch {
		case i.Mem.Valid() && i.Dst == 0:
			return s + memOperand(i, int(i.W)) + ", " + i.A.String()
		case i.Mem.Valid():
			return s + i.Dst.String() + ", " + memOperand(i, int(i.W))
		}
		return s + regName(i.Dst, w) + ", " + regName(i.A, w)
	case formK3:
		return s + i.Dst.String() + ", " + i.A.String() + ", " + i.B.String()
	case formK2:
		return s + i.Dst.String() + ", " + i.A.String()
	case formKTest:
		return s + i.A.String() + ", " + i.B.String()
	}
	return s + i.Dst.String() + ", " + i.A.String() + ", " + strconv.Itoa(int(uint8(i.Imm)))
}

// generalText is text for instructions on general registers.
func generalText(i *code.Inst, r *row) string {
	w := int(i.W)
	name := r.name
	var ops []string
	add := func(s string) { ops = append(ops, s) }
	rm := func(x code.R, w int) {
		if x == 0 && i.Mem.Valid() {
			add(memOperand(i, w))
			return
		}
		add(regName(x, w))
	}
	imm := func() { add(strconv.FormatInt(i.Imm, 10)) }
	switch r.form {
	case formALU, formGMov, formLock:
		if r.form == formGMov && w == 8 && i.A == 0 && !i.Mem.Valid() && i.Imm >= 0 && i.Imm < 1<<32 {
			w = 4
		}
		rm(i.Dst, w)
		switch {
		case i.A != 0:
			add(regName(i.A, w))
		case i.Mem.Valid() && i.Dst != 0:
			add(memOperand(i, w))
		default:
			imm()
		}
	case formCmp, formTest:
		rm(i.A, w)
		switch {
		case i.B != 0:
			add(regName(i.B, w))
		case i.Mem.Valid() && i.A != 0:
			add(memOperand(i, w))
		default:
			imm()
		}
	case formExt:
		if i.Op == code.MovSXD {
			w = 8
		}
		add(regName(i.Dst, w))
		rm(i.A, r.enc.bytesOf(0))
	case formLea:
		add(regName(i.Dst, w))
		if i.Label != 0 {
			ops[0] = regName(i.Dst, 8)
			add("[rip + .L" + strconv.Itoa(int(i.Label)) + "]")
		} else {
			add(memText(&i.Mem, 8))
		}
	case formG2, formT2, formG2I, formCMov:
		if r.form == formCMov {
			name += i.Cond.String()
		}
		add(regName(i.Dst, w))
		rm(i.A, w)
		if r.form == formG2I {
			imm()
		}
	case formUn, formSwap, formMul:
		rm(i.Dst|i.A, w) // one of them is none
	case formSet:
		name += i.Cond.String()
		rm(i.Dst, 1)
	case formGSh:
		rm(i.Dst, w)
		if i.A != 0 {
			add(regName(i.A, 1))
		} else {
			imm()
		}
	case formBMI, formBMI1:
		add(regName(i.Dst, w))
		rm(i.A, w)
		if i.B != 0 {
			add(regName(i.B, w))
		}
	case formBMIV:
		ops = []string{regName(i.Dst, w), regName(i.A, w)}
		rm(i.B, w)
	case formXchg, formLockR, formLockA:
		ops = exchangeText(i, r)
	case formJcc, formJmp:
		if r.form == formJcc {
			name += i.Cond.String()
		}
		if i.Label != 0 {
			add(".L" + strconv.Itoa(int(i.Label)))
		} else {
			rm(i.A, 8)
		}
	case formG0:
		if w == 8 {
			name = "cqo"
		}
	case formX87:
		add(memOperand(i, w))
	case formPref:
		add(memOperand(i, r.enc.bytesOf(uint8(w))))
	}
	if len(ops) == 0 {
		return name
	}
	return name + " " + strings.Join(ops, ", ")
}

// exchangeText returns the operands of instructions that exchange with memory.
func exchangeText(i *code.Inst, r *row) []string {
	w := int(i.W)
	m := memOperand(i, w)
	reg := i.Dst
	switch {
	case r.form == formXchg && i.A != 0:
		m = regName(i.A, w)
	case reg == 0:
		reg = i.A
	}
	return []string{m, regName(reg, w)}
}
