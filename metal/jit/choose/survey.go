package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// LanesAtOnce is how many lanes of an optimised kernel run together: all of a SIMD-group if they exchange anything,
// else as many as fit a vector register. Also all of them where the kernel counts on SIMD-groups, because it is then
// written so that their lanes touch neighbouring memory, unless that needs more registers than there are. Short kernels
// may run wide all the same, see IsStraightLine.
func LanesAtOnce(k *kir.Kernel, t *code.Target) int {
	crosses, simd := survey(k.Body)
	switch {
	case crosses || simd && (t.Registers > fewRegisters || carries(k) <= fewCarried):
		return kir.Lanes
	default:
		return t.Group
	}
}

// IsStraightLine reports whether a kernel is short for a processor and has no loops. What there is to do for each group
// of lanes, and waiting for one result after the other, is then a good part of its time: the more lanes it is for the
// better.
func IsStraightLine(k *kir.Kernel, t *code.Target) bool {
	straight := k.NumInstrs <= t.Straight
	k.Body.Walk(func(i *kir.Instr) { straight = straight && i.Op != kir.Loop })
	return straight
}

// fewRegisters is how many are too few for 32 lanes of much.
const fewRegisters = 16

// fewCarried is how many numbers of each lane may go from one round of a loop to the next where 32 lanes fill four of
// the 16 registers.
const fewCarried = 2

// carries counts the floating-point variables that loops set.
func carries(k *kir.Kernel) int {
	set := make([]bool, len(k.Vars))
	var look func(b *kir.Block, loop bool)
	look = func(b *kir.Block, loop bool) {
		if b == nil {
			return
		}
		for _, i := range b.Instrs {
			if loop && i.Op == kir.VarSet && k.Vars[i.Imm].Type.IsFloat() {
				set[i.Imm] = true
			}
			look(i.Body, loop || i.Op == kir.Loop)
			look(i.Else, loop)
		}
	}
	look(k.Body, false)
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}

// survey looks for operations between lanes, and for the number of a thread in its SIMD-group.
func survey(b *kir.Block) (crosses, simd bool) {
	if b == nil {
		return false, false
	}
	for _, i := range b.Instrs {
		switch i.Op {
		case kir.Reduce, kir.ScanInclusive, kir.ScanExclusive, kir.Shuffle, kir.Ballot, kir.BroadcastFirst, kir.SimdBarrier:
			return true, true
		case kir.Builtin:
			simd = simd || i.Mode == kir.ThreadIndexInSimdgroup
		}
		for _, in := range []*kir.Block{i.Body, i.Else} {
			c, s := survey(in)
			if c {
				return true, true
			}
			simd = simd || s
		}
	}
	return false, simd
}
