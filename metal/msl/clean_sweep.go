package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// isRoot reports whether an instruction stays for what it does. A load that nobody reads goes.
func isRoot(in *kir.Instr) bool {
	switch in.Op {
	case kir.Store, kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS, kir.Fence, kir.SimdBarrier, kir.Barrier,
		kir.Loop, kir.Break, kir.Continue, kir.Return:
		return true
	}
	return false
}

// dropStores removes the settings of variables that are set again before they are read, and reports whether there
// were any.
func (c *cleaner) dropStores() bool {
	l := &liveness{n: len(c.k.Vars), at: map[*kir.Instr]bitset{}}
	l.block(c.k.Body, newBitset(l.n))
	return l.dropped
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

// loop takes everything that the loop reads as live where it starts again.
func (l *liveness) loop(in *kir.Instr, live bitset) {
	if l.again == nil {
		l.again = map[*kir.Instr]bitset{}
	}
	l.at[in] = live.clone()
	in.Body.Walk(func(x *kir.Instr) {
		if x.Op == kir.VarGet {
			live.add(x.Imm)
		}
	})
	l.again[in] = live.clone()
	l.block(in.Body, live)
	delete(l.at, in)
	delete(l.again, in)
}

// compact renumbers the variables and regions that are left.
func (c *cleaner) compact() {
	k := c.k
	varUsed, used := make([]bool, len(k.Vars)), make([]bool, len(k.Regions))
	k.Body.Walk(func(in *kir.Instr) {
		switch in.Op {
		case kir.VarGet, kir.VarSet:
			varUsed[in.Imm] = true
		case kir.RegionAddr:
			used[in.Imm] = true
		}
	})
	vars, regions := make([]uint64, len(k.Vars)), make([]uint64, len(k.Regions))
	var keep []kir.Var
	for i, v := range k.Vars {
		vars[i] = uint64(len(keep))
		if varUsed[i] {
			keep = append(keep, v)
		}
	}
	var rkeep []kir.Region
	for i, r := range k.Regions {
		regions[i] = uint64(len(rkeep))
		if used[i] {
			rkeep = append(rkeep, r)
		}
	}
	k.Vars, k.Regions = keep, rkeep
	k.Body.Walk(func(in *kir.Instr) {
		switch in.Op {
		case kir.VarGet, kir.VarSet:
			in.Imm = vars[in.Imm]
		case kir.RegionAddr:
			in.Imm = regions[in.Imm]
		}
	})
}
