package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// finish completes a kernel: variables whose address was taken move to memory, variables are replaced by the
// values they hold where those are known, what repeats or has no use goes, and reflection is computed.
func (g *gen) finish() {
	c := &cleaner{g: g, k: g.k}
	g.demote()
	c.number()
	c.block(g.k.Body)
	g.k.Body.Instrs = append(append([]*kir.Instr(nil), g.head...), g.k.Body.Instrs...)
	c.sweep()
	g.k.Renumber()
	reflectParams(g.k)
}

// demote rewrites the accesses to variables that have moved to memory.
func (g *gen) demote() {
	if len(g.varMem) == 0 {
		return
	}
	addr := func(b *[]*kir.Instr, h varHome, pos kir.Pos) *kir.Instr {
		p := g.leaf(kir.RegionAddr, kir.PtrThread, 0, uint64(h.region)).in
		if h.off == 0 {
			return p
		}
		add := &kir.Instr{Op: kir.PtrAdd, Type: kir.PtrThread, Imm: uint64(h.off), Pos: pos}
		add.Args = []*kir.Instr{p, g.instr(g.i64(0))}
		*b = append(*b, add)
		return add
	}
	var walk func(b *kir.Block)
	walk = func(b *kir.Block) {
		if b == nil {
			return
		}
		out := make([]*kir.Instr, 0, len(b.Instrs))
		for _, in := range b.Instrs {
			walk(in.Body)
			walk(in.Else)
			if in.Op == kir.VarGet || in.Op == kir.VarSet {
				if h, ok := g.varMem[in.Imm]; ok {
					p := addr(&out, h, in.Pos)
					if in.Op == kir.VarGet {
						in.Op, in.Imm, in.Args = kir.Load, 0, []*kir.Instr{p}
					} else {
						in.Op, in.Imm, in.Args = kir.Store, 0, []*kir.Instr{p, in.Args[0]}
					}
				}
			}
			out = append(out, in)
		}
		b.Instrs = out
	}
	walk(g.k.Body)
}

// cleaner forwards values of variables, folds, and removes what repeats. IDs number instructions in textual order;
// what stands at the kernel's top has the ID -1 until the end.
type cleaner struct {
	g     *gen
	k     *kir.Kernel
	n     int
	known []*kir.Instr // by variable: its value here, nil if unknown
	trail []varChange
	repl  map[*kir.Instr]*kir.Instr
	cse   map[cseKey]*kir.Instr
	added []cseKey // for leaving scopes
	sets  map[*kir.Instr][]uint64
	exits map[*kir.Instr]int // how many Breaks leave a BlockOp
}

type varChange struct {
	v   uint64
	old *kir.Instr
}

type cseKey struct {
	op         kir.Op
	ty         kir.Type
	mode       kir.Mode
	imm        uint64
	a0, a1, a2 *kir.Instr
}

// number gives IDs and collects which variables each structured instruction sets.
func (c *cleaner) number() {
	c.known = make([]*kir.Instr, len(c.k.Vars))
	c.repl = map[*kir.Instr]*kir.Instr{}
	c.cse = map[cseKey]*kir.Instr{}
	c.sets = map[*kir.Instr][]uint64{}
	c.exits = map[*kir.Instr]int{}
	for _, in := range c.g.head {
		in.ID = -1
	}
	var walk func(b *kir.Block) []uint64
	walk = func(b *kir.Block) []uint64 {
		if b == nil {
			return nil
		}
		var sets []uint64
		for _, in := range b.Instrs {
			in.ID = c.n
			c.n++
			switch in.Op {
			case kir.VarSet:
				sets = append(sets, in.Imm)
			case kir.Break:
				c.exits[in.Target]++
			}
			if in.Op.HasBody() {
				s := append(walk(in.Body), walk(in.Else)...)
				s = dedupe(s)
				c.sets[in] = s
				sets = append(sets, s...)
			}
		}
		return sets
	}
	walk(c.k.Body)
}

func dedupe(s []uint64) []uint64 {
	if len(s) < 2 {
		return s
	}
	seen := make(map[uint64]bool, len(s))
	out := s[:0]
	for _, v := range s {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

func (c *cleaner) set(v uint64, x *kir.Instr) {
	if c.known[v] != x {
		c.trail = append(c.trail, varChange{v, c.known[v]})
		c.known[v] = x
	}
}

// undo takes back the changes after mark and returns what the variables held, the newest first.
func (c *cleaner) undo(mark int) map[uint64]*kir.Instr {
	var held map[uint64]*kir.Instr
	if len(c.trail) > mark {
		held = make(map[uint64]*kir.Instr, len(c.trail)-mark)
	}
	for i := len(c.trail) - 1; i >= mark; i-- {
		ch := c.trail[i]
		if _, ok := held[ch.v]; !ok {
			held[ch.v] = c.known[ch.v]
		}
		c.known[ch.v] = ch.old
	}
	c.trail = c.trail[:mark]
	return held
}

func (c *cleaner) resolve(in *kir.Instr) *kir.Instr {
	for {
		r, ok := c.repl[in]
		if !ok {
			return in
		}
		in = r
	}
}

// block cleans a block in place and reports whether control never reaches its end.
func (c *cleaner) block(b *kir.Block) (ends bool) {
	if b == nil {
		return false
	}
	scope := len(c.added)
	out := b.Instrs[:0:0]
	list := b.Instrs
	for i := 0; i < len(list); i++ {
		in := list[i]
		for j, a := range in.Args {
			in.Args[j] = c.resolve(a)
		}
		switch in.Op {
		case kir.VarGet:
			if x := c.known[in.Imm]; x != nil {
				c.repl[in] = x
				continue
			}
			c.set(in.Imm, in)
		case kir.VarSet:
			if c.known[in.Imm] == in.Args[0] {
				continue
			}
			c.set(in.Imm, in.Args[0])
		case kir.If:
			if in.Args[0].Op == kir.Const {
				taken := in.Body
				if in.Args[0].Imm == 0 {
					taken = in.Else
				}
				if taken != nil {
					list = append(append(append([]*kir.Instr(nil), list[:i+1]...), taken.Instrs...), list[i+1:]...)
				}
				continue
			}
			ends = c.ifInstr(in)
			if len(in.Body.Instrs) == 0 && (in.Else == nil || len(in.Else.Instrs) == 0) {
				continue
			}
		case kir.BlockOp:
			if c.exits[in] == 0 {
				list = append(append(append([]*kir.Instr(nil), list[:i+1]...), in.Body.Instrs...), list[i+1:]...)
				continue
			}
			mark := len(c.trail)
			c.block(in.Body)
			c.undo(mark)
			c.forget(in)
		case kir.Loop:
			c.forget(in)
			mark := len(c.trail)
			c.block(in.Body)
			c.undo(mark)
		case kir.Break, kir.Continue, kir.Return:
			out = append(out, in)
			ends = true
		default:
			if in.Op.Pure() && c.pure(in) {
				continue
			}
		}
		if ends {
			if in.Op == kir.If {
				out = append(out, in)
			}
			break // nothing after it is reached
		}
		out = append(out, in)
	}
	b.Instrs = out
	for _, k := range c.added[scope:] {
		delete(c.cse, k)
	}
	c.added = c.added[:scope]
	return ends
}

func (c *cleaner) forget(in *kir.Instr) {
	for _, v := range c.sets[in] {
		c.set(v, nil)
	}
}

// ifInstr cleans both sides and keeps what is known of variables after either.
func (c *cleaner) ifInstr(in *kir.Instr) (ends bool) {
	mark := len(c.trail)
	end1 := c.block(in.Body)
	held1 := c.undo(mark)
	end2 := c.block(in.Else)
	held2 := c.undo(mark)
	if end1 && end2 {
		return true
	}
	outside := func(x *kir.Instr) bool { return x != nil && (x.ID < in.ID) }
	for _, v := range c.sets[in] {
		x1, ok1 := held1[v]
		if !ok1 {
			x1 = c.known[v]
		}
		x2, ok2 := held2[v]
		if !ok2 {
			x2 = c.known[v]
		}
		switch {
		case end1 && outside(x2):
			c.set(v, x2)
		case end2 && outside(x1):
			c.set(v, x1)
		case !end1 && !end2 && x1 == x2 && outside(x1):
			c.set(v, x1)
		default:
			c.set(v, nil)
		}
	}
	return false
}

// pure folds a pure instruction or finds an equal earlier one; then it reports true and the instruction goes.
func (c *cleaner) pure(in *kir.Instr) bool {
	if in.Op >= kir.Add && in.Op <= kir.Bitcast {
		if o, ok := c.refold(in); ok {
			c.repl[in] = c.g.instrAt(o)
			return true
		}
	}
	if in.Op == kir.PtrAdd {
		c.mergePtr(in)
		if in.Imm == 0 && in.Args[1].Op == kir.Const && in.Args[1].Imm == 0 {
			c.repl[in] = in.Args[0]
			return true
		}
	}
	key := cseKey{op: in.Op, ty: in.Type, mode: in.Mode, imm: in.Imm}
	switch len(in.Args) {
	case 3:
		key.a2 = in.Args[2]
		fallthrough
	case 2:
		key.a1 = in.Args[1]
		fallthrough
	case 1:
		key.a0 = in.Args[0]
	}
	if x := c.cse[key]; x != nil {
		c.repl[in] = x
		return true
	}
	c.cse[key] = in
	c.added = append(c.added, key)
	return false
}

func asOperand(in *kir.Instr) operand {
	if in.Op == kir.Const {
		return operand{ty: in.Type, bits: in.Imm}
	}
	return operand{in: in, ty: in.Type}
}

func (c *cleaner) refold(in *kir.Instr) (operand, bool) {
	var args [3]operand
	all := true
	for i, a := range in.Args {
		args[i] = asOperand(a)
		all = all && a.Op == kir.Const
	}
	list := args[:len(in.Args)]
	if all {
		return fold(in.Op, in.Type, list)
	}
	return c.g.simplify(in.Op, in.Type, list)
}

// instrAt is instr for operands that stand at the kernel's top or exist already.
func (g *gen) instrAt(o operand) *kir.Instr {
	n := len(g.head)
	in := g.instr(o)
	if len(g.head) > n {
		in.ID = -1
	}
	return in
}

// mergePtr joins a pointer addition to the one that makes its pointer, where one of the offsets is constant.
func (c *cleaner) mergePtr(in *kir.Instr) {
	isConst := func(x *kir.Instr) bool { return x.Op == kir.Const }
	if isConst(in.Args[1]) && in.Args[1].Imm != 0 {
		in.Imm += in.Args[1].Imm
		in.Args[1] = c.g.instrAt(operand{ty: kir.I64})
	}
	p := in.Args[0]
	if p.Op != kir.PtrAdd {
		return
	}
	switch {
	case isConst(p.Args[1]):
		in.Imm += p.Imm + p.Args[1].Imm
		in.Args[0] = p.Args[0]
	case isConst(in.Args[1]):
		in.Imm += p.Imm
		in.Args[0], in.Args[1] = p.Args[0], p.Args[1]
	}
}

// sweep removes instructions, variables and regions that nothing uses.
func (c *cleaner) sweep() {
	k := c.k
	live := map[*kir.Instr]bool{}
	setters := make([][]*kir.Instr, len(k.Vars))
	var work []*kir.Instr
	mark := func(in *kir.Instr) {
		if !live[in] {
			live[in] = true
			work = append(work, in)
		}
	}
	parents := map[*kir.Instr]*kir.Instr{}
	var collect func(b *kir.Block, parent *kir.Instr)
	collect = func(b *kir.Block, parent *kir.Instr) {
		if b == nil {
			return
		}
		for _, in := range b.Instrs {
			if parent != nil {
				parents[in] = parent
			}
			switch {
			case in.Op == kir.VarSet:
				setters[in.Imm] = append(setters[in.Imm], in)
			case isRoot(in):
				mark(in)
			}
			collect(in.Body, in)
			collect(in.Else, in)
		}
	}
	collect(k.Body, nil)
	varLive := make([]bool, len(k.Vars))
	for len(work) > 0 {
		in := work[len(work)-1]
		work = work[:len(work)-1]
		for _, a := range in.Args {
			mark(a)
		}
		if p := parents[in]; p != nil {
			mark(p)
		}
		if in.Op == kir.VarGet && !varLive[in.Imm] {
			varLive[in.Imm] = true
			for _, s := range setters[in.Imm] {
				mark(s)
			}
		}
	}
	var prune func(b *kir.Block)
	prune = func(b *kir.Block) {
		if b == nil {
			return
		}
		out := b.Instrs[:0]
		for _, in := range b.Instrs {
			if live[in] {
				prune(in.Body)
				prune(in.Else)
				if in.Else != nil && len(in.Else.Instrs) == 0 {
					in.Else = nil
				}
				out = append(out, in)
			}
		}
		b.Instrs = out
	}
	prune(k.Body)
	c.compact(varLive)
}

// isRoot reports whether an instruction stays for what it does. A load that nobody reads goes.
func isRoot(in *kir.Instr) bool {
	switch in.Op {
	case kir.Store, kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS, kir.Fence, kir.SimdBarrier, kir.Barrier,
		kir.Loop, kir.Break, kir.Continue, kir.Return:
		return true
	}
	return false
}

// compact renumbers the variables and regions that are left.
func (c *cleaner) compact(varLive []bool) {
	k := c.k
	vars := make([]uint64, len(k.Vars))
	var keep []kir.Var
	for i, v := range k.Vars {
		vars[i] = uint64(len(keep))
		if varLive[i] {
			keep = append(keep, v)
		}
	}
	k.Vars = keep
	used := make([]bool, len(k.Regions))
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.RegionAddr {
			used[in.Imm] = true
		}
	})
	regions := make([]uint64, len(k.Regions))
	var rkeep []kir.Region
	for i, r := range k.Regions {
		regions[i] = uint64(len(rkeep))
		if used[i] {
			rkeep = append(rkeep, r)
		}
	}
	k.Regions = rkeep
	k.Body.Walk(func(in *kir.Instr) {
		switch in.Op {
		case kir.VarGet, kir.VarSet:
			in.Imm = vars[in.Imm]
		case kir.RegionAddr:
			in.Imm = regions[in.Imm]
		}
	})
}
