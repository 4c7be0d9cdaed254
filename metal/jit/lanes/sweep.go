package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// sweep removes what has no effect, and the variables that nothing reads then. Loads stay, because they may fault, and
// loops, because they may not end.
func sweep(k *kir.Kernel) {
	kir.Sweep(k, func(in *kir.Instr) bool {
		switch {
		case in.Op == kir.Invalid || in.Op == kir.VarGet || in.Op == kir.If || in.Op == kir.BlockOp:
			return false
		case in.Op >= kir.Reduce && in.Op <= kir.BroadcastFirst:
			return false
		}
		return !in.Op.Pure()
	})
	renameVars(k)
}

// renameVars removes the variables that nothing reads.
func renameVars(k *kir.Kernel) {
	read := make([]bool, len(k.Vars))
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.VarGet {
			read[in.Imm] = true
		}
	})
	to := make([]uint64, len(k.Vars))
	kept := k.Vars[:0]
	for i, v := range k.Vars {
		to[i] = uint64(len(kept))
		if read[i] {
			kept = append(kept, v)
		}
	}
	k.Vars = kept
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.VarGet || in.Op == kir.VarSet {
			in.Imm = to[in.Imm]
		}
	})
}
