package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// ifInstr walks both sides and keeps what is known of variables after either.
func (c *cleaner) ifInstr(in *kir.Instr) (ends bool) {
	if cond := in.Args[0]; cond.Op == kir.Const {
		taken := in.Body
		if cond.Imm == 0 {
			taken = in.Else
		}
		return taken != nil && c.list(taken.Instrs)
	} else if cond.Op == kir.Not && in.Else != nil && len(in.Else.Instrs) > 0 {
		in.Args[0] = cond.Args[0]
		in.Body, in.Else = in.Else, in.Body
	}
	mark := len(c.trail)
	end1 := c.block(in.Body, nil)
	held1 := c.undo(mark)
	end2 := c.block(in.Else, nil)
	held2 := c.undo(mark)
	if in.Else != nil && len(in.Else.Instrs) == 0 {
		in.Else = nil
	}
	if len(in.Body.Instrs) == 0 && in.Else == nil {
		return false
	}
	if end1 && end2 {
		c.put(in)
		return true
	}
	if !end1 && !end2 && c.selects(in) {
		return false
	}
	outside := func(x *kir.Instr) bool { return x != nil && (x.ID < 0 || c.open[x.ID]) }
	c.nests[in].sets.each(func(v uint64) {
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
	})
	c.put(in)
	return false
}

// maxSelectCost and maxSelects bound what is computed on both sides of a condition instead of branching: lanes that
// part cost an executor more than a few operations.
const (
	maxSelectCost = 10
	maxSelects    = 4
)

// selects replaces an If that only computes and sets variables by Selects.
func (c *cleaner) selects(in *kir.Instr) bool {
	cost := 0
	var sets []*kir.Instr
	for _, b := range [2]*kir.Block{in.Body, in.Else} {
		if b == nil {
			continue
		}
		first := len(sets)
		for _, x := range b.Instrs {
			switch {
			case x.Op == kir.VarSet:
				sets = append(sets, x)
			case x.Op == kir.VarGet:
				if lastSet(sets[first:], x.Imm) != nil {
					return false
				}
			case !x.Op.Pure():
				return false
			case x.Op == kir.Div || x.Op == kir.Rem || x.Op == kir.Sqrt:
				cost += 6
			default:
				cost++
			}
		}
		if cost+len(sets) > maxSelectCost || len(sets) > maxSelects {
			return false
		}
	}
	var sides [2][]*kir.Instr
	for i, b := range [2]*kir.Block{in.Body, in.Else} {
		if b == nil {
			continue
		}
		for _, x := range b.Instrs {
			if x.Op == kir.VarSet {
				sides[i] = append(sides[i], x)
			} else {
				c.instr(x)
			}
		}
	}
	for i, s := range sets {
		v := s.Imm
		if lastSet(sets[:i], v) != nil {
			continue
		}
		var x [2]*kir.Instr
		for j, side := range sides {
			if set := lastSet(side, v); set != nil {
				x[j] = resolve(set.Args[0])
			} else {
				x[j] = c.value(v, s.Pos)
			}
		}
		sel := c.make(kir.Select, c.k.Vars[v].Type, s.Pos, in.Args[0], x[0], x[1])
		c.instr(&kir.Instr{Op: kir.VarSet, Imm: v, Pos: s.Pos, Args: []*kir.Instr{sel}})
	}
	return true
}

// lastSet returns the last setting of a variable in a list of settings.
func lastSet(sets []*kir.Instr, v uint64) *kir.Instr {
	for i := len(sets) - 1; i >= 0; i-- {
		if sets[i].Imm == v {
			return sets[i]
		}
	}
	return nil
}

// blockOp walks a block that Breaks leave. One that nothing leaves early is no block.
func (c *cleaner) blockOp(in *kir.Instr) (ends bool) {
	n := c.nests[in]
	in.Body.Instrs = c.structure(in.Body.Instrs, in, 0)
	if n.exits == 0 {
		return c.list(in.Body.Instrs)
	}
	mark := len(c.trail)
	c.block(in.Body, nil)
	c.undo(mark)
	c.forget(n.sets)
	if n.left > 0 {
		c.put(in)
		return false
	}
	for _, x := range in.Body.Instrs { // what left it was never reached
		c.put(x)
	}
	return false
}

// maxElse bounds how deep structure nests.
const maxElse = 24

// structure takes Breaks away where leaving block and reaching its end is the same, if need be by putting what follows
// an If that leaves the block into its other side. A barrier stays where it is.
func (c *cleaner) structure(l []*kir.Instr, block *kir.Instr, depth int) []*kir.Instr {
	n := c.nests[block]
	if n.exits == 0 || depth > maxElse {
		return l
	}
	leaves := func(b *kir.Block) bool {
		if b == nil || len(b.Instrs) == 0 {
			return false
		}
		last := b.Instrs[len(b.Instrs)-1]
		return last.Op == kir.Break && last.Target == block
	}
	for i, in := range l {
		if in.Op == kir.Break && in.Target == block {
			n.exits--
			return l[:i]
		}
		if in.Op != kir.If || !leaves(in.Body) && !leaves(in.Else) {
			continue
		}
		rest := l[i+1:]
		if len(rest) > 0 {
			if leaves(in.Body) && leaves(in.Else) {
				rest = nil // never reached
			}
			for _, x := range rest {
				if x.Op == kir.Barrier || x.Op.HasBody() && c.nests[x].barrier {
					return l
				}
			}
			m := c.nests[in]
			for _, x := range rest {
				c.note(x, m)
			}
			if leaves(in.Body) {
				if in.Else == nil {
					in.Else = &kir.Block{}
				}
				in.Else.Instrs = append(in.Else.Instrs[:len(in.Else.Instrs):len(in.Else.Instrs)], rest...)
			} else {
				in.Body.Instrs = append(in.Body.Instrs[:len(in.Body.Instrs):len(in.Body.Instrs)], rest...)
			}
		}
		in.Body.Instrs = c.structure(in.Body.Instrs, block, depth+1)
		if in.Else != nil {
			in.Else.Instrs = c.structure(in.Else.Instrs, block, depth+1)
		}
		return l[:i+1]
	}
	if i := len(l) - 1; i >= 0 && l[i].Op == kir.If {
		l[i].Body.Instrs = c.structure(l[i].Body.Instrs, block, depth+1)
		if l[i].Else != nil {
			l[i].Else.Instrs = c.structure(l[i].Else.Instrs, block, depth+1)
		}
	}
	return l
}

// note adds an instruction that moves into a structured one to what is known of that.
func (c *cleaner) note(x *kir.Instr, n *nest) {
	n.size++
	switch {
	case x.Op == kir.VarSet:
		n.sets.add(x.Imm)
	case x.Op == kir.Store:
		s, _ := x.Args[0].Type.Space()
		n.stores[s] = true
	case x.Op.HasBody():
		n.include(c.nests[x])
	case x.Op.IsAtomic() || x.Op == kir.Fence || x.Op == kir.SimdBarrier || x.Op == kir.Barrier:
		n.stores[kir.Device], n.stores[kir.Threadgroup] = true, true
	}
}

// loop walks a loop, and unrolls it where that pays.
func (c *cleaner) loop(in *kir.Instr) (ends bool) {
	n := c.nests[in]
	if l := in.Body.Instrs; n.again == 0 && len(l) > 0 {
		if last := l[len(l)-1]; last.Op == kir.Break && last.Target == in { // do ... while (false)
			in.Op = kir.BlockOp
			return c.blockOp(in)
		}
	}
	for s, stores := range n.stores {
		if stores {
			c.gen++
			c.gens[s] = c.gen
		}
	}
	before := len(c.trail)
	c.forget(n.sets)
	mark := len(c.trail)
	c.block(in.Body, n)
	c.undo(mark)
	if u := c.unrolling(in, c.trail[before:]); u != nil {
		c.undo(before)
		return c.list(c.unroll(in, u))
	}
	c.put(in)
	return false
}
