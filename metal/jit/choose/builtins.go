package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// builtins selects positions and sizes.
type builtins struct {
	e    *emitter
	vals *values
	info *lanes.Info
}

// builtin yields a position or size.
func (s *builtins) builtin(i *kir.Instr) {
	if !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] {
		return
	}
	c := int32(i.Imm)
	word := func(off int32, reg code.R) code.R {
		r := s.e.reg(code.GPR)
		s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: r, Mem: code.Mem{Base: reg, Disp: off}})
		return r
	}
	imm := func(op code.Opcode, r code.R, v int64) code.R {
		s.e.emit(code.Inst{Op: op, W: 4, Dst: r, Imm: v})
		return r
	}
	first := func() code.R { // number of the group's first lane in the threadgroup
		r := word(arena.FrameIndex, regFrame)
		return imm(code.Shl, r, int64(log2(s.e.group)))
	}
	var v val
	switch i.Mode {
	case kir.ThreadPositionInGrid, kir.ThreadPositionInThreadgroup:
		s.position(i, c)
		return
	case kir.ThreadIndexInThreadgroup:
		v.base = first()
	case kir.ThreadIndexInSimdgroup:
		v.base = imm(code.And, first(), kir.Lanes-1)
	case kir.SimdgroupIndexInThreadgroup:
		v.base = imm(code.Shr, first(), 5)
	case kir.ThreadIndexInQuadgroup:
		v.base = imm(code.Mov, s.e.reg(code.GPR), 0)
	case kir.QuadgroupIndexInThreadgroup:
		v.base = imm(code.Shr, first(), 2)
	case kir.GridOrigin:
		v.base = imm(code.Mov, s.e.reg(code.GPR), 0)
	case kir.ThreadsPerSimdgroup:
		v.base = imm(code.Mov, s.e.reg(code.GPR), kir.Lanes)
	default:
		mode := i.Mode
		if mode == kir.GridSize {
			mode = kir.ThreadsPerGrid
		}
		slot, ok := arena.BuiltinSlots[mode]
		if !ok {
			s.e.unsupported(i, "unknown builtin")
			return
		}
		v.base = word(arena.Builtins+4*(int32(slot)+c), regArena)
	}
	s.vals.result(i, v)
}

// position yields component c of a thread's position.
func (s *builtins) position(i *kir.Instr, c int32) {
	table := s.e.reg(code.GPR)
	s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: table, Mem: code.Mem{Base: regFrame, Disp: arena.FramePositions}})
	origin := code.Mem{Base: regArena, Disp: arena.Builtins + 4*(arena.SlotOrigin+c)}
	row := code.Mem{Base: table, Disp: c * 4 * int32(s.e.group)}
	inGrid := i.Mode == kir.ThreadPositionInGrid
	if s.info.Patterns[i.ID].Kind != lanes.Varying {
		v := val{base: s.e.reg(code.GPR)}
		s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: v.base, Mem: row})
		if inGrid {
			s.e.emit(code.Inst{Op: code.Add, W: 4, Dst: v.base, Mem: origin})
		}
		s.vals.result(i, v)
		return
	}
	var all code.R
	if inGrid {
		all = s.e.reg(code.Vec)
		s.e.emit(code.Inst{Op: code.VPBroadcastD, W: s.e.w, Dst: all, Mem: origin})
	}
	var v val
	for p := range s.e.parts {
		v.vec[p] = s.e.reg(code.Vec)
		if inGrid {
			s.e.emit(code.Inst{Op: code.VPAddD, W: s.e.w, Dst: v.vec[p], A: all, Mem: row})
		} else {
			s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Dst: v.vec[p], Mem: row})
		}
		row.Disp += int32(s.e.w)
	}
	s.vals.result(i, v)
}
