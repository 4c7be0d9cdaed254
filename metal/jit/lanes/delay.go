package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// delayLoads moves Loads behind the operations that follow in their block, do not depend on them and need no more
// room than they free: so that what those use is gone when the loaded values come. It keeps the order of everything that is
// not pure.
func delayLoads(k *kir.Kernel) {
	d := &delayer{last: make([]*kir.Instr, k.NumInstrs), late: make([]bool, k.NumInstrs)}
	k.Body.Walk(func(in *kir.Instr) {
		for _, a := range in.Args {
			d.last[a.ID] = in
		}
	})
	d.block(k.Body)
}

type delayer struct {
	last []*kir.Instr // by ID: the last instruction that uses the value
	late []bool       // by ID: it stays behind the loads
	vars map[uint64]bool
}

func (d *delayer) block(b *kir.Block) {
	if b == nil {
		return
	}
	out := make([]*kir.Instr, 0, len(b.Instrs))
	var late []*kir.Instr
	flush := func() {
		out = append(out, late...)
		late, d.vars = late[:0], map[uint64]bool{}
	}
	flush()
	for _, in := range b.Instrs {
		d.block(in.Body)
		d.block(in.Else)
		switch {
		case in.Op != kir.Load && in.Op != kir.VarGet && in.Op != kir.VarSet && !in.Op.Pure():
			flush()
		case in.Op == kir.Load || len(late) > 0 && d.stays(in):
			d.late[in.ID] = true
			late = append(late, in)
			if in.Op == kir.VarGet || in.Op == kir.VarSet {
				d.vars[in.Imm] = true
			}
			continue
		}
		out = append(out, in)
	}
	flush()
	b.Instrs = out
}

// stays tells whether an instruction that follows delayed ones has to follow them still, or had better.
func (d *delayer) stays(in *kir.Instr) bool {
	frees := len(in.Args) == 0 || in.Op == kir.VarSet || in.Type.IsPtr() || in.Type.IsInt()
	for _, a := range in.Args {
		if d.late[a.ID] {
			return true
		}
		frees = frees || d.last[a.ID] == in && a.Type == in.Type
	}
	if in.Op == kir.VarGet || in.Op == kir.VarSet {
		return d.vars[in.Imm]
	}
	return !frees
}
