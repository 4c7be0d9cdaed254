package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// splitPointers keeps the moves of pointer variables apart from where they start: p = start; ... p += step becomes
// moved = 0; ... moved += step, and each read start + moved. What starts at an address of each lane and moves along in
// step is then a fixed address, which an analysis of accesses can take apart, and a uniform distance.
func splitPointers(k *kir.Kernel, differs func(*kir.Instr) bool) {
	s := &splitter{k: k, accesses: make([]int, len(k.Vars)), start: map[uint64]*start{}}
	s.find(k.Body, differs)
	if len(s.start) == 0 {
		return
	}
	k.Body.Walk(s.check)
	for v, x := range s.start {
		if x.bad || x.sets < 2 || x.inBlock != s.accesses[v] {
			delete(s.start, v)
		}
	}
	if len(s.start) > 0 {
		s.rewrite(k.Body)
	}
}

type splitter struct {
	k        *kir.Kernel
	accesses []int // by variable
	start    map[uint64]*start
}

// start is the first access to a variable: it is set to an address that differs between lanes.
type start struct {
	set     *kir.Instr
	value   *kir.Instr
	block   *kir.Block
	inBlock int // accesses in the block
	sets    int
	bad     bool
	moved   uint64 // the new variable
	made    bool
}

// find collects candidates: pointer variables whose first access is such a VarSet.
func (s *splitter) find(b *kir.Block, differs func(*kir.Instr) bool) {
	for _, in := range b.Instrs {
		if in.Op == kir.VarGet || in.Op == kir.VarSet {
			v := in.Imm
			s.accesses[v]++
			if s.accesses[v] == 1 && in.Op == kir.VarSet && s.k.Vars[v].Type.IsPtr() {
				if x := in.Args[0]; x.Op == kir.PtrAdd && differs(x) {
					s.start[v] = &start{set: in, value: x, block: b}
				}
			}
		}
		if in.Body != nil {
			s.find(in.Body, differs)
		}
		if in.Else != nil {
			s.find(in.Else, differs)
		}
	}
	for v, x := range s.start {
		if x.block == b {
			x.inBlock = s.accesses[v]
		}
	}
}

// check looks whether a variable is only ever moved from where it is.
func (s *splitter) check(in *kir.Instr) {
	if in.Op != kir.VarSet {
		return
	}
	x := s.start[in.Imm]
	if x == nil {
		return
	}
	x.sets++
	if in == x.set {
		return
	}
	p := in.Args[0]
	for p.Op == kir.PtrAdd {
		p = p.Args[0]
	}
	if p.Op != kir.VarGet || p.Imm != in.Imm {
		x.bad = true
	}
}

// rewrite replaces the accesses.
func (s *splitter) rewrite(b *kir.Block) {
	out := make([]*kir.Instr, 0, len(b.Instrs)+4)
	for _, in := range b.Instrs {
		if x := s.start[in.Imm]; x != nil && (in.Op == kir.VarGet || in.Op == kir.VarSet) {
			out = s.access(out, in, x)
		}
		out = append(out, in)
		if in.Body != nil {
			s.rewrite(in.Body)
		}
		if in.Else != nil {
			s.rewrite(in.Else)
		}
	}
	b.Instrs = out
}

// access appends what an access needs before it and changes it.
func (s *splitter) access(out []*kir.Instr, in *kir.Instr, x *start) []*kir.Instr {
	add := func(op kir.Op, imm uint64, args ...*kir.Instr) *kir.Instr {
		y := &kir.Instr{Op: op, Type: kir.I64, Imm: imm, Args: args, Pos: in.Pos}
		out = append(out, y)
		return y
	}
	if !x.made {
		x.made, x.moved = true, uint64(len(s.k.Vars))
		s.k.Vars = append(s.k.Vars, kir.Var{Name: s.k.Vars[in.Imm].Name, Type: kir.I64})
	}
	switch {
	case in.Op == kir.VarGet:
		moved := add(kir.VarGet, x.moved)
		in.Op, in.Imm, in.Args = kir.PtrAdd, 0, []*kir.Instr{x.value, moved}
		return out
	case in == x.set:
		in.Args = []*kir.Instr{add(kir.Const, 0)}
	default:
		in.Args = []*kir.Instr{sum(in.Args[0], x.value, add)}
	}
	in.Imm = x.moved
	return out
}

// sum adds up how far a pointer is from the start.
func sum(p, from *kir.Instr, add func(op kir.Op, imm uint64, args ...*kir.Instr) *kir.Instr) *kir.Instr {
	if p.Args[0] == from { // what was a VarGet
		return p.Args[1]
	}
	d, fixed := sum(p.Args[0], from, add), p.Imm
	if c, ok := p.Args[1].Int(); ok {
		fixed += uint64(c)
	} else {
		d = add(kir.Add, 0, d, p.Args[1])
	}
	if fixed != 0 {
		d = add(kir.Add, 0, d, add(kir.Const, fixed))
	}
	return d
}
