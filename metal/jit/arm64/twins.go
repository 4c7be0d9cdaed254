package arm64

import (
	"bytes"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// Many vectors have the same in both halves: numbers that all lanes share, and what is computed of such. They take one
// register, and half of the instructions.

// samewise reports whether an operation makes both halves of its result alike if those of its sources are.
func samewise(op code.Opcode) bool {
	if _, ok := three[op]; ok {
		return true
	}
	if _, ok := two[op]; ok {
		return true
	}
	switch op {
	case code.VXorPS, code.VMinPS, code.VMinPD, code.VMaxPS, code.VMaxPD, code.VRangePS, code.VRangePD, code.VFMAdd231PS,
		code.VFMAdd231PD, code.VFNMAdd231PS, code.VFNMAdd231PD, code.VFMAdd213PS, code.VFMAdd213PD, code.VFMSub213PD,
		code.VCmpPS, code.VCmpPD, code.VRoundPS, code.VRoundPD, code.VPAndN, code.VPMulDQ, code.VPMulUDQ, code.VPopCntD,
		code.VPopCntQ, code.VPSllD, code.VPSllQ, code.VPSrlD, code.VPSrlQ, code.VPSraD, code.VPSraQ, code.VPSrlVD,
		code.VPSrlVQ, code.VPSraVD, code.VPSraVQ, code.VBlendVPS, code.VBlendVPD, code.VMovAPS, code.VMovAPD,
		code.VMovUPS:
		return true
	}
	return false
}

// findTwins finds the registers that have the same in both halves, whoever writes them.
func (l *lowerer) findTwins(list []code.Inst) {
	l.twins = make([]bool, l.f.NumRegs(code.Vec))
	for n := range l.twins {
		l.twins[n] = true
	}
	for changed := true; changed; {
		changed = false
		for n := range list {
			i := &list[n]
			if l.twin(i.A) && i.ARole() != code.Use {
				l.twins[i.A.Num()-code.FirstVirtual], changed = false, true
			}
			if l.twin(i.Dst) && !l.makesTwin(i) {
				l.twins[i.Dst.Num()-code.FirstVirtual], changed = false, true
			}
		}
	}
}

// twin reports whether a register is one of those.
func (w *writer) twin(r code.R) bool {
	return r.Virtual() && r.Class() == code.Vec && w.twins[r.Num()-code.FirstVirtual]
}

// makesTwin reports whether an instruction writes the same to both halves.
func (l *lowerer) makesTwin(i *code.Inst) bool {
	if i.W != 32 {
		return false
	}
	switch i.Op {
	case code.VBroadcastSS, code.VBroadcastSD, code.VPBroadcastB, code.VPBroadcastW, code.VPBroadcastD, code.VPBroadcastQ,
		code.VPBroadcastGD, code.VPBroadcastGQ:
		return true
	}
	if !samewise(i.Op) {
		return false
	}
	for _, r := range [...]code.R{i.A, i.B, i.C} {
		if r != 0 && !l.twin(r) {
			return false
		}
	}
	if !i.Mem.Valid() {
		return true
	}
	if i.Mem.Const == 0 {
		return false
	}
	b := l.f.Pool()[i.Mem.Const-1].Data[i.Mem.Disp:]
	return len(b) >= 32 && bytes.Equal(b[:16], b[16:32])
}
