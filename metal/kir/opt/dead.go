package opt

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// acts reports whether an instruction stays for what it does: a load may fault, a loop may not end.
func acts(in *kir.Instr) bool {
	switch in.Op {
	case kir.Load, kir.Store, kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS, kir.Fence, kir.SimdBarrier,
		kir.Barrier, kir.Loop, kir.Break, kir.Continue, kir.Return:
		return true
	}
	return false
}

// sweep removes what has no effect: values that nothing uses, settings of variables that are set again before they are
// read, variables that nothing reads. Last, it has quotients and remainders share their divisions.
func sweep(k *kir.Kernel, stays func(*kir.Instr) bool) {
	kir.Sweep(k, stays)
	l := &liveness{n: len(k.Vars), at: map[*kir.Instr]bitset{}}
	l.block(k.Body, newBitset(l.n))
	if l.dropped {
		kir.Sweep(k, stays)
	}
	dropVars(k)
	shareDivisions(k.Body)
}

// liveness walks backwards; the set it carries holds the variables whose present value may be read.
type liveness struct {
	n       int
	at      map[*kir.Instr]bitset // of enclosing instructions: what is live where Break leads; of Loops, their own below
	again   map[*kir.Instr]bitset
	dropped bool
}

// block walks a block; live is what is live at its end, and becomes what is at its start.
func (l *liveness) block(b *kir.Block, live bitset) {
	if b == nil {
		return
	}
	dead := 0
	for i := len(b.Instrs) - 1; i >= 0; i-- {
		in := b.Instrs[i]
		switch in.Op {
		case kir.VarGet:
			live.add(in.Imm)
		case kir.VarSet:
			if !live.has(in.Imm) {
				b.Instrs[i] = nil
				dead++
				continue
			}
			live.remove(in.Imm)
		case kir.If:
			other := live.clone()
			l.block(in.Body, live)
			l.block(in.Else, other)
			live.or(other)
		case kir.BlockOp:
			l.at[in] = live.clone()
			l.block(in.Body, live)
			delete(l.at, in)
		case kir.Loop:
			l.loop(in, live)
		case kir.Break:
			copy(live, l.at[in.Target])
		case kir.Continue:
			copy(live, l.again[in.Target])
		case kir.Return:
			clear(live)
		}
	}
	if dead > 0 {
		l.dropped = true
		out := b.Instrs[:0]
		for _, in := range b.Instrs {
			if in != nil {
				out = append(out, in)
			}
		}
		b.Instrs = out
	}
}

// loop takes everything that the loop reads as live where it starts again, and what is live where it is left for good.
func (l *liveness) loop(in *kir.Instr, live bitset) {
	if l.again == nil {
		l.again = map[*kir.Instr]bitset{}
	}
	l.at[in] = live.clone()
	in.Body.Walk(func(x *kir.Instr) {
		switch x.Op {
		case kir.VarGet:
			live.add(x.Imm)
		case kir.Break:
			live.or(l.at[x.Target])
		case kir.Continue:
			live.or(l.again[x.Target])
		}
	})
	l.again[in] = live.clone()
	l.block(in.Body, live)
	delete(l.at, in)
	delete(l.again, in)
}

// dropVars removes the variables that nothing reads: nothing sets them either.
func dropVars(k *kir.Kernel) {
	used := make([]bool, len(k.Vars))
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.VarGet {
			used[in.Imm] = true
		}
	})
	var to []uint64
	k.Vars, to = keep(k.Vars, used)
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.VarGet || in.Op == kir.VarSet {
			in.Imm = to[in.Imm]
		}
	})
}

// dropRegions removes the regions that nothing names. Pointers tell of regions by number, so it is for kernels that no
// one has seen yet.
func dropRegions(k *kir.Kernel) {
	used := make([]bool, len(k.Regions))
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.RegionAddr {
			used[in.Imm] = true
		}
	})
	var to []uint64
	k.Regions, to = keep(k.Regions, used)
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.RegionAddr {
			in.Imm = to[in.Imm]
		}
	})
}

// keep returns those of a list that are used, and where each is then.
func keep[T any](list []T, used []bool) (kept []T, to []uint64) {
	to = make([]uint64, len(list))
	for i, x := range list {
		to[i] = uint64(len(kept))
		if used[i] {
			kept = append(kept, x)
		}
	}
	return kept, to
}
