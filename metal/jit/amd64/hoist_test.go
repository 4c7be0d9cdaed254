package amd64

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// hoistCase is a list of instructions on one vector register and the constants 1, 2, ...
type hoistCase struct{ f *code.Func }

func (c hoistCase) number(n int) code.Mem {
	bits := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(n)))
	return code.Mem{Const: c.f.Const(bits), Bcast: true}
}

func (c hoistCase) add(r code.R, n int) {
	c.f.Emit(code.Inst{Op: code.VAddPS, W: 64, Dst: r, A: r, Mem: c.number(n)})
}

func (c hoistCase) set(r code.R, n int) {
	m := c.number(n)
	m.Bcast = false
	c.f.Emit(code.Inst{Op: code.VPBroadcastD, W: 64, Dst: r, Mem: m})
}

// reads returns the constants that instructions read between the marks, in order; a loop's are marked by depth.
func (c hoistCase) reads() (before, within []code.ConstID) {
	depth := 0
	for _, i := range c.f.Insts() {
		switch {
		case i.Op == code.LoopBegin:
			depth++
		case i.Op == code.LoopEnd:
			depth--
		case i.Mem.Const != 0 && depth == 0:
			before = append(before, i.Mem.Const)
		case i.Mem.Const != 0:
			within = append(within, i.Mem.Const)
		}
	}
	return before, within
}

func newHoistCase() (hoistCase, code.R) {
	f := code.NewFunc()
	return hoistCase{f}, f.NewReg(code.Vec)
}

// Constants of a loop and of those in it are loaded once, before the outermost; those of cold code stay where they are.
func TestHoistMovesConstantsBeforeLoops(t *testing.T) {
	c, r := newHoistCase()
	c.f.Loop()
	c.add(r, 1)
	c.set(r, 2)
	c.f.Loop()
	c.add(r, 2)
	c.add(r, 3)
	c.f.ColdBegin()
	c.add(r, 4)
	c.f.Loop()
	c.add(r, 5)
	c.f.EndLoop()
	c.f.ColdEnd()
	c.f.EndLoop()
	c.f.EndLoop()
	id := func(n int) code.ConstID { return c.number(n).Const }
	numbers := map[code.ConstID]float32{}
	for n := range 6 {
		numbers[id(n)] = float32(n)
	}
	hoist(c.f)
	before, within := c.reads()
	require.ElementsMatch(t, []code.ConstID{id(1), id(2), id(3)}, before)
	require.Equal(t, []code.ConstID{id(4), id(5)}, within)
	regs := map[code.R]float32{}
	var added []float32
	for _, i := range c.f.Insts() { // what the rest does is unchanged: the same numbers in the same order
		switch {
		case i.Op == code.VPBroadcastD:
			regs[i.Dst] = numbers[i.Mem.Const]
		case i.Op == code.VMovAPS:
			require.Equal(t, r, i.Dst)
			added = append(added, -regs[i.A])
		case i.Op == code.VAddPS && i.Mem.Const == 0:
			require.Equal(t, r, i.A)
			added = append(added, regs[i.B])
		}
	}
	require.Equal(t, []float32{1, -2, 2, 3}, added)
}

// Loops that code leaves with its registers saved keep their constants; loops in them do not.
func TestHoistLeavesLoopsWithSafepoints(t *testing.T) {
	c, r := newHoistCase()
	c.f.Loop()
	c.add(r, 1)
	c.f.Loop()
	c.add(r, 2)
	c.f.EndLoop()
	c.f.SaveLive(0)
	c.f.LoadLive(0)
	c.f.EndLoop()
	one, two := c.number(1).Const, c.number(2).Const
	hoist(c.f)
	_, within := c.reads()
	require.Equal(t, []code.ConstID{one, two}, within)
	l := c.f.Insts()
	require.Equal(t, code.VPBroadcastD, l[2].Op, "before the inner loop")
	require.Equal(t, two, l[2].Mem.Const)
	require.Equal(t, code.LoopBegin, l[3].Op)
}

// A loop keeps no more constants than there could be registers for, and those that it uses most.
func TestHoistKeepsTheMostUsed(t *testing.T) {
	c, r := newHoistCase()
	c.f.Loop()
	for n := range mostHoisted + 10 {
		c.add(r, n+1)
	}
	c.f.Loop()
	c.add(r, 5)
	c.f.EndLoop()
	for n := mostHoisted; n < mostHoisted+10; n++ {
		c.add(r, n+1)
	}
	c.f.EndLoop()
	hoist(c.f)
	before, within := c.reads()
	require.Len(t, before, mostHoisted)
	require.Len(t, within, 10)
	require.Contains(t, before, c.number(5).Const)
	require.Contains(t, before, c.number(mostHoisted+10).Const)
}
