package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// sweep removes what has no effect: values that nothing uses, variables that nothing reads, empty conditionals. Loads
// stay, because they may fault, and loops, because they may not end.
func sweep(k *kir.Kernel) {
	s := &sweeper{vars: make([]bool, len(k.Vars)), setters: make([][]*kir.Instr, len(k.Vars))}
	k.Renumber()
	s.live, s.parent = make([]bool, k.NumInstrs), make([]*kir.Instr, k.NumInstrs)
	s.roots(k.Body, nil)
	for len(s.work) > 0 {
		in := s.work[len(s.work)-1]
		s.work = s.work[:len(s.work)-1]
		for _, x := range in.Args {
			s.mark(x)
		}
		if in.Op == kir.VarGet && !s.vars[in.Imm] {
			s.vars[in.Imm] = true
			for _, x := range s.setters[in.Imm] {
				s.mark(x)
			}
		}
	}
	s.prune(k.Body)
	s.renameVars(k)
}

type sweeper struct {
	live    []bool       // by ID
	parent  []*kir.Instr // by ID: what holds the instruction
	vars    []bool
	setters [][]*kir.Instr
	work    []*kir.Instr
}

// mark keeps an instruction, and what holds it.
func (s *sweeper) mark(in *kir.Instr) {
	for ; in != nil && !s.live[in.ID]; in = s.parent[in.ID] {
		s.live[in.ID] = true
		s.work = append(s.work, in)
	}
}

// roots marks what has an effect.
func (s *sweeper) roots(b *kir.Block, parent *kir.Instr) {
	for _, in := range b.Instrs {
		s.parent[in.ID] = parent
		switch {
		case in.Op == kir.VarSet:
			s.setters[in.Imm] = append(s.setters[in.Imm], in)
		case in.Op == kir.Invalid || in.Op == kir.VarGet || in.Op.Pure() || in.Op == kir.If || in.Op == kir.BlockOp:
		case in.Op >= kir.Reduce && in.Op <= kir.BroadcastFirst:
		default:
			s.mark(in)
		}
		if in.Body != nil {
			s.roots(in.Body, in)
		}
		if in.Else != nil {
			s.roots(in.Else, in)
		}
	}
}

// prune drops what is not live, and reports whether anything is left.
func (s *sweeper) prune(b *kir.Block) bool {
	kept := b.Instrs[:0]
	for _, in := range b.Instrs {
		if !s.live[in.ID] {
			continue
		}
		if in.Body != nil {
			s.prune(in.Body)
		}
		if in.Else != nil && !s.prune(in.Else) {
			in.Else = nil
		}
		kept = append(kept, in)
	}
	b.Instrs = kept
	return len(kept) > 0
}

// renameVars removes the variables that nothing reads.
func (s *sweeper) renameVars(k *kir.Kernel) {
	to := make([]uint64, len(k.Vars))
	kept := k.Vars[:0]
	for i, v := range k.Vars {
		to[i] = uint64(len(kept))
		if s.vars[i] {
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
