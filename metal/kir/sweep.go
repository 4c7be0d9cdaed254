package kir

// Sweep removes what has no effect: instructions whose results nothing uses, settings of variables that nothing reads,
// empty Else blocks. stays reports whether an instruction stays for what it does (a Store, and all else that its caller
// wants to keep); VarSet is not asked. IDs number the instructions that there were.
func Sweep(k *Kernel, stays func(*Instr) bool) {
	k.Renumber()
	s := &sweeper{
		live: make([]bool, k.NumInstrs), parent: make([]*Instr, k.NumInstrs),
		read: make([]bool, len(k.Vars)), setters: make([][]*Instr, len(k.Vars)),
	}
	s.begin(k.Body, nil, stays)
	for len(s.work) > 0 {
		in := s.work[len(s.work)-1]
		s.work = s.work[:len(s.work)-1]
		for _, x := range in.Args {
			s.mark(x)
		}
		if in.Op == VarGet && !s.read[in.Imm] {
			s.read[in.Imm] = true
			for _, x := range s.setters[in.Imm] {
				s.mark(x)
			}
		}
	}
	s.prune(k.Body)
}

// sweeper finds what has an effect. Slices are by the ID of instructions and by variable.
type sweeper struct {
	live    []bool
	parent  []*Instr // what holds the instruction
	read    []bool
	setters [][]*Instr
	work    []*Instr // live ones whose operands are not marked yet
}

// mark keeps an instruction, and what holds it.
func (s *sweeper) mark(in *Instr) {
	for ; in != nil && !s.live[in.ID]; in = s.parent[in.ID] {
		s.live[in.ID] = true
		s.work = append(s.work, in)
	}
}

// begin notes what holds each instruction and what sets each variable, and marks what stays for what it does.
func (s *sweeper) begin(b *Block, parent *Instr, stays func(*Instr) bool) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		s.parent[in.ID] = parent
		switch {
		case in.Op == VarSet:
			s.setters[in.Imm] = append(s.setters[in.Imm], in)
		case stays(in):
			s.mark(in)
		}
		s.begin(in.Body, in, stays)
		s.begin(in.Else, in, stays)
	}
}

// prune drops what is not live.
func (s *sweeper) prune(b *Block) {
	if b == nil {
		return
	}
	kept := b.Instrs[:0]
	for _, in := range b.Instrs {
		if !s.live[in.ID] {
			continue
		}
		s.prune(in.Body)
		s.prune(in.Else)
		if in.Else != nil && len(in.Else.Instrs) == 0 {
			in.Else = nil
		}
		kept = append(kept, in)
	}
	b.Instrs = kept
}
