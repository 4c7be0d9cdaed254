package arm64

import (
	"encoding/binary"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// A register is quiet if none of its lanes of floats is a signalling NaN. Such come from memory, and from bits that are
// taken for floats; what arithmetic makes is quiet. The processor's own minimum and maximum (FMIN, FMINNM and so on)
// are what package code has for operands that are quiet.

// The sizes of lanes for which a register can be quiet.
const (
	quiet32 uint8 = 1 << iota
	quiet64
)

// quiets are the operations whose results are quiet, quietOf those whose results are if their sources are.
var quiets, quietOf = func() (makes, of [mlaPH + 1]uint8) {
	for _, op := range [...]code.Opcode{code.VCvtPD2PS, code.VCvtDQ2PS, code.VCvtUDQ2PS, code.VCvtPH2PS, mlaPH} {
		makes[op] = quiet32
	}
	for _, op := range [...]code.Opcode{code.VCvtPS2PD, code.VCvtDQ2PD, code.VCvtUDQ2PD, code.VCvtQQ2PD, code.VCvtUQQ2PD} {
		makes[op] = quiet64
	}
	for _, p := range [...][2]code.Opcode{{code.VAddPS, code.VAddPD}, {code.VSubPS, code.VSubPD},
		{code.VMulPS, code.VMulPD}, {code.VDivPS, code.VDivPD}, {code.VSqrtPS, code.VSqrtPD},
		{code.VFMAdd231PS, code.VFMAdd231PD}, {code.VFNMAdd231PS, code.VFNMAdd231PD},
		{code.VFMAdd213PS, code.VFMAdd213PD}, {code.VRoundPS, code.VRoundPD}, {code.VRangePS, code.VRangePD}} {
		makes[p[0]], makes[p[1]] = quiet32, quiet64
	}
	for _, p := range [...][2]code.Opcode{{code.VMinPS, code.VMinPD}, {code.VMaxPS, code.VMaxPD},
		{code.VBlendVPS, code.VBlendVPD}} {
		of[p[0]], of[p[1]] = quiet32, quiet64
	}
	of[code.VMovAPS] = quiet32 | quiet64
	of[code.VMovAPD] = quiet32 | quiet64
	return makes, of
}()

// findQuiet finds the registers that are quiet, whoever writes them.
func (l *lowerer) findQuiet(list []code.Inst) {
	l.quiets, l.splats = make([]uint8, l.f.NumRegs(code.Vec)), make([]code.Mem, l.f.NumRegs(code.Vec))
	for n := range l.quiets {
		l.quiets[n] = quiet32 | quiet64
	}
	written := make([]bool, len(l.quiets))
	for n := range list {
		i := &list[n]
		if i.Dst.Class() != code.Vec || !i.Dst.Virtual() {
			continue
		}
		d := i.Dst.Num() - code.FirstVirtual
		l.splats[d] = code.Mem{}
		if !written[d] && (i.Op == code.VPBroadcastD || i.Op == code.VPBroadcastQ) {
			l.splats[d] = i.Mem
		}
		written[d] = true
	}
	for changed := true; changed; {
		changed = false
		for n := range list {
			i := &list[n]
			if i.ARole() != code.Use {
				changed = l.loud(i.A, 0) || changed
			}
			if i.Dst.Class() == code.Vec && i.Dst.Virtual() {
				changed = l.loud(i.Dst, l.makesQuiet(i)) || changed
			}
		}
	}
}

// loud takes from a register what it is not quiet for, and reports whether that is news.
func (l *lowerer) loud(r code.R, quiet uint8) bool {
	if r.Class() != code.Vec || !r.Virtual() {
		return false
	}
	q := &l.quiets[r.Num()-code.FirstVirtual]
	was := *q
	*q &= quiet
	return *q != was
}

// one reports whether a memory operand is the constant 1 in all lanes.
func (l *lowerer) one(m code.Mem, big bool) bool {
	if m.Const == 0 {
		return false
	}
	b := l.f.Pool()[m.Const-1].Data[m.Disp:]
	for at := range b {
		one := uint64(0x3f800000) | 0x3f800000<<32
		if big {
			one = 0x3ff0000000000000
		}
		if b[at] != byte(one>>(8*(at%8))) {
			return false
		}
	}
	return len(b) >= 8
}

// quiet is for which lanes a register, or a memory operand if it is 0, is quiet.
func (l *lowerer) quiet(r code.R, m code.Mem) uint8 {
	switch {
	case r.Virtual():
		return l.quiets[r.Num()-code.FirstVirtual]
	case r != 0 || m.Const == 0:
		return 0
	}
	b, q := l.f.Pool()[m.Const-1].Data[m.Disp:], quiet32|quiet64
	for at := 0; at+4 <= len(b); at += 4 {
		if w := binary.LittleEndian.Uint32(b[at:]); w&0x7f800000 == 0x7f800000 && w&0x400000 == 0 {
			q &^= quiet32
		}
	}
	for at := 0; at+8 <= len(b); at += 8 {
		if w := binary.LittleEndian.Uint64(b[at:]); w>>52&0x7ff == 0x7ff && w>>51&1 == 0 {
			q &^= quiet64
		}
	}
	return q
}

// makesQuiet is for which lanes an instruction's result is quiet.
func (l *lowerer) makesQuiet(i *code.Inst) uint8 {
	switch i.Op {
	case code.VPBroadcastD, code.VBroadcastSS:
		return l.quiet(i.A, i.Mem) & quiet32
	case code.VPBroadcastQ, code.VBroadcastSD:
		return l.quiet(i.A, i.Mem) & quiet64
	case code.VXorPS, code.VPXor:
		if i.A == i.B {
			return quiet32 | quiet64 // zeros
		}
	}
	if q := quietOf[i.Op]; q != 0 {
		q &= l.quiet(i.A, i.Mem)
		if i.B != 0 || i.A != 0 && i.Mem.Valid() {
			q &= l.quiet(i.B, i.Mem)
		}
		return q
	}
	return quiets[i.Op]
}

// ordinary reports whether a register, or a memory operand if it is 0, is a constant no lane of which is a NaN or a
// zero.
func (l *lowerer) ordinary(r code.R, m code.Mem, big bool) bool {
	if r.Virtual() {
		m = l.splats[r.Num()-code.FirstVirtual]
	}
	if m.Const == 0 {
		return false
	}
	b := l.f.Pool()[m.Const-1].Data[m.Disp:]
	if big {
		for at := 0; at+8 <= len(b); at += 8 {
			if w := binary.LittleEndian.Uint64(b[at:]) << 1; w == 0 || w > 0x7ff<<53 {
				return false
			}
		}
		return true
	}
	for at := 0; at+4 <= len(b); at += 4 {
		if w := binary.LittleEndian.Uint32(b[at:]) << 1; w == 0 || w > 0xff<<24 {
			return false
		}
	}
	return true
}
