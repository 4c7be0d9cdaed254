package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// PairBy says how threads lie in the SIMD-groups 2n and 2n+1 of a threadgroup, for every n.
type PairBy uint8

// The ways.
const (
	// PairRows: a SIMD-group is one row of a threadgroup of 32 threads' width and even height: the second one's y is one
	// more.
	PairRows PairBy = 1 + iota
	// PairColumns: a threadgroup's width is a multiple of 64 threads: the second one's x is 32 more.
	PairColumns
)

const (
	pairLimit = 600 // instructions of kernels that are worth pairing
	pairVars  = 5   // numbers that a lane of a pair carries round a loop: more would not fit the registers
)

// Pair returns a kernel whose SIMD-groups each do the work of two of the optimised kernel k, 2n and 2n+1 of a
// threadgroup: what is the same for both is done once, and what one has to wait for leaves time for the other. It runs
// for every other SIMD-group, in threadgroups whose SIMD-groups are full. The order of the two groups' accesses is not
// kept, so it is for kernels that read nothing they write; and where an access is a fault it may not be the first one.
// Pair returns nil where this cannot be done or, unless always is set, seems to be of no use.
func Pair(k *kir.Kernel, by PairBy, always bool) *kir.Kernel {
	p := &pairer{k: k, by: by, differs: make([]bool, k.NumInstrs), split: make([]bool, k.NumInstrs),
		inside: make([]bool, k.NumInstrs), vars: make([]bool, len(k.Vars))}
	if k.NumInstrs > pairLimit && !always || !p.canPair() {
		return nil
	}
	for p.changed = true; p.changed; {
		p.changed = false
		p.mark(k.Body, false)
	}
	if p.refused || !always && !p.useful() {
		return nil
	}
	return p.build()
}

// pairer pairs one kernel.
type pairer struct {
	k  *kir.Kernel
	by PairBy
	// differs, by Instr.ID: the two groups have values of their own, or do it both. split: of a structured instruction:
	// the groups go different ways in it, so that it is there twice; inside: it is within such a one.
	differs, split, inside []bool
	vars                   []bool // by variable: the groups have different ones
	changed, refused       bool

	out    *kir.Kernel
	to     [2][]*kir.Instr // by old ID, for each group
	second []uint64        // by variable: the second group's
}

// canPair looks for what two groups cannot do in one stream.
func (p *pairer) canPair() bool {
	for _, q := range p.k.Params {
		if q.Space == kir.Threadgroup || q.Atomic || q.Read && q.Write {
			return false
		}
	}
	for _, r := range p.k.Regions {
		if r.Space != kir.Constant {
			return false
		}
	}
	ok := true
	p.k.Body.Walk(func(in *kir.Instr) {
		switch in.Op {
		case kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS, kir.Fence, kir.Barrier:
			ok = false
		}
	})
	return ok
}

// step is what a builtin of the second group is more than the first one's.
func (p *pairer) step(in *kir.Instr) uint64 {
	switch in.Mode {
	case kir.ThreadPositionInGrid, kir.ThreadPositionInThreadgroup:
		switch {
		case p.by == PairRows && in.Imm == 1:
			return 1
		case p.by == PairColumns && in.Imm == 0:
			return kir.Lanes
		}
	case kir.ThreadIndexInThreadgroup:
		return kir.Lanes
	case kir.SimdgroupIndexInThreadgroup:
		return 1
	case kir.QuadgroupIndexInThreadgroup:
		return kir.Lanes / 4
	}
	return 0
}

// mark finds what differs. in says that the block is part of a split instruction.
func (p *pairer) mark(b *kir.Block, inside bool) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		d := inside && (in.Op == kir.Store || in.Op == kir.VarSet)
		for _, a := range in.Args {
			d = d || p.differs[a.ID]
		}
		switch in.Op {
		case kir.Builtin:
			d = p.step(in) != 0
		case kir.VarGet:
			d = p.vars[in.Imm]
		case kir.VarSet:
			if d && !p.vars[in.Imm] {
				p.vars[in.Imm], p.changed = true, true
			}
			d = p.vars[in.Imm]
		case kir.If:
			p.set(p.split, in, d)
		case kir.Break, kir.Continue:
			if inside && !p.inside[in.Target.ID] {
				p.set(p.split, in.Target, true)
			}
		case kir.Return:
			p.refused = p.refused || inside
		}
		p.set(p.inside, in, inside)
		p.set(p.differs, in, d || p.split[in.ID])
		p.mark(in.Body, inside || p.split[in.ID])
		p.mark(in.Else, inside || p.split[in.ID])
	}
}

// set sets a flag of an instruction.
func (p *pairer) set(flags []bool, in *kir.Instr, on bool) {
	if on && !flags[in.ID] {
		flags[in.ID], p.changed = true, true
	}
}

// useful reports whether there is a loop that both groups go through together with something to gain, and not too much
// to keep in it.
func (p *pairer) useful() bool {
	gain, carried := false, make([]bool, len(p.vars))
	var look func(b *kir.Block, loop bool)
	look = func(b *kir.Block, loop bool) {
		if b == nil {
			return
		}
		for _, in := range b.Instrs {
			switch {
			case p.split[in.ID]:
			case in.Op.HasBody():
				look(in.Body, loop || in.Op == kir.Loop)
				look(in.Else, loop)
			case !loop:
			case in.Op == kir.Load:
				gain = gain || !p.differs[in.ID]
			case in.Op >= kir.Reduce && in.Op <= kir.BroadcastFirst:
				gain = true
			case in.Op == kir.VarSet && p.differs[in.ID] && p.k.Vars[in.Imm].Type.IsFloat():
				carried[in.Imm] = true
			}
		}
	}
	look(p.k.Body, false)
	n := 0
	for _, c := range carried {
		if c {
			n++
		}
	}
	return gain && n > 0 && n <= pairVars
}

// build makes the pair's kernel.
func (p *pairer) build() *kir.Kernel {
	out := *p.k
	p.out = &out
	out.Vars = append([]kir.Var(nil), p.k.Vars...)
	p.second = make([]uint64, len(p.k.Vars))
	for v := range p.k.Vars {
		p.second[v] = uint64(v)
		if p.vars[v] {
			p.second[v] = uint64(len(out.Vars))
			out.Vars = append(out.Vars, p.k.Vars[v])
		}
	}
	for n := range p.to {
		p.to[n] = make([]*kir.Instr, p.k.NumInstrs)
	}
	out.Body = p.both(p.k.Body)
	out.Renumber()
	return &out
}

// both copies a block that both groups execute together.
func (p *pairer) both(b *kir.Block) *kir.Block {
	if b == nil {
		return nil
	}
	out, later := &kir.Block{Instrs: make([]*kir.Instr, 0, 2*len(b.Instrs))}, &kir.Block{}
	for _, in := range b.Instrs {
		if !in.Op.Pure() && in.Op != kir.VarGet && in.Op != kir.Store {
			out.Instrs = append(out.Instrs, later.Instrs...)
			later.Instrs = nil
		}
		if p.differs[in.ID] {
			p.one(out, in, 0)
			if in.Op == kir.Store { // those that lie side by side stay together
				p.one(later, in, 1)
			} else {
				p.one(out, in, 1)
			}
			continue
		}
		x := p.copy(in, 0)
		p.to[0][in.ID], p.to[1][in.ID] = x, x
		x.Body, x.Else = p.both(in.Body), p.both(in.Else)
		out.Instrs = append(out.Instrs, x)
	}
	out.Instrs = append(out.Instrs, later.Instrs...)
	return out
}

// own copies a block for one group.
func (p *pairer) own(b *kir.Block, n int) *kir.Block {
	if b == nil {
		return nil
	}
	out := &kir.Block{Instrs: make([]*kir.Instr, 0, len(b.Instrs))}
	for _, in := range b.Instrs {
		p.one(out, in, n)
	}
	return out
}

// copy copies an instruction for one group, without its blocks.
func (p *pairer) copy(in *kir.Instr, n int) *kir.Instr {
	x := *in
	x.Args = make([]*kir.Instr, len(in.Args))
	for i, a := range in.Args {
		x.Args[i] = p.to[n][a.ID]
	}
	if in.Target != nil {
		x.Target = p.to[n][in.Target.ID]
	}
	if n == 1 && (in.Op == kir.VarGet || in.Op == kir.VarSet) {
		x.Imm = p.second[in.Imm]
	}
	return &x
}

// one appends one group's copy of an instruction.
func (p *pairer) one(out *kir.Block, in *kir.Instr, n int) {
	x := p.copy(in, n)
	p.to[n][in.ID] = x
	x.Body, x.Else = p.own(in.Body, n), p.own(in.Else, n)
	out.Instrs = append(out.Instrs, x)
	if step := p.step(in); in.Op == kir.Builtin && n == 1 && step != 0 {
		c := &kir.Instr{Op: kir.Const, Type: x.Type, Imm: step, Pos: in.Pos}
		sum := &kir.Instr{Op: kir.Add, Type: x.Type, Args: []*kir.Instr{x, c}, Pos: in.Pos}
		p.to[n][in.ID] = sum
		out.Instrs = append(out.Instrs, c, sum)
	}
}
