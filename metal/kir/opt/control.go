package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// branch rewrites both sides of an If and keeps what is known of variables after either.
func (r *rewriter) branch(in *kir.Instr, args []*kir.Instr) (ends bool) {
	then, other := in.Body, in.Else
	switch c := args[0]; {
	case c.Op == kir.Const:
		if c.Imm&1 == 0 {
			then = other
		}
		return then != nil && r.list(then.Instrs)
	case c.Op == kir.Not && other != nil && len(other.Instrs) > 0:
		args[0] = c.Args[0]
		then, other = other, then
	}
	sets := r.nest(in).sets
	x := r.copy(in, args)
	mark := len(r.trail)
	var end1, end2 bool
	x.Body, end1 = r.block(then, nil)
	held1 := r.held(sets)
	r.undo(mark, sets)
	if other != nil {
		if x.Else, end2 = r.block(other, nil); len(x.Else.Instrs) == 0 {
			x.Else = nil
		}
	}
	held2 := r.held(sets)
	r.undo(mark, sets)
	if len(x.Body.Instrs) == 0 && x.Else == nil || !end1 && !end2 && r.flatten(x) {
		return false
	}
	r.put(x)
	if end1 && end2 {
		return true
	}
	i := 0
	sets.each(func(v uint64) {
		x1, x2 := held1[i], held2[i]
		i++
		if end1 {
			x1 = x2
		} else if end2 {
			x2 = x1
		}
		if x1 != x2 || !r.within(x1) {
			x1 = nil
		}
		r.set(v, x1)
	})
	return false
}

// flattenCost and flattenSets bound what is computed on both sides of a condition instead of branching: lanes that part
// cost an executor more than a few operations.
const (
	flattenCost = 10
	flattenSets = 4
)

// flatten puts Selects in the place of a new If that only computes and sets variables.
func (r *rewriter) flatten(x *kir.Instr) bool {
	if r.limits.lanes && !r.differs(x.Args[0]) {
		return false
	}
	cost := 0
	var sets []*kir.Instr
	sides := [2]*kir.Block{x.Body, x.Else}
	for _, b := range sides {
		if b == nil {
			continue
		}
		first := len(sets)
		for _, y := range b.Instrs {
			switch {
			case y.Op == kir.VarSet:
				sets = append(sets, y)
			case y.Op == kir.VarGet:
				if lastSet(sets[first:], y.Imm) != nil {
					return false
				}
			case !y.Op.Pure():
				return false
			case y.Op == kir.Div || y.Op == kir.Rem || y.Op == kir.Sqrt:
				cost += 6
			default:
				cost++
			}
		}
		if cost+len(sets) > flattenCost || len(sets) > flattenSets {
			return false
		}
	}
	var set [2][]*kir.Instr
	for i, b := range sides {
		if b == nil {
			continue
		}
		for _, y := range b.Instrs {
			if y.Op == kir.VarSet {
				set[i] = append(set[i], y)
			} else {
				r.instr(y)
			}
		}
	}
	for i, s := range sets {
		v := s.Imm
		if lastSet(sets[:i], v) != nil {
			continue
		}
		args := []*kir.Instr{x.Args[0], nil, nil}
		for j := range set {
			if y := lastSet(set[j], v); y != nil {
				args[1+j] = r.info[y.Args[0].ID].to
			} else {
				args[1+j] = r.get(v, s.Pos)
			}
		}
		r.assign(v, r.op(kir.Select, r.k.Vars[v].Type, s.Pos, args...), s.Pos)
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

// blockOp rewrites a block that Breaks leave, which may have been a loop. One that nothing leaves early is no block.
func (r *rewriter) blockOp(in *kir.Instr) (ends bool) {
	if r.limits.own {
		in.Body.Instrs = r.structure(in.Body.Instrs, in, 0)
	}
	if r.nest(in).exits == 0 {
		return r.list(in.Body.Instrs)
	}
	x := r.copy(in, nil)
	x.Op = kir.BlockOp
	return r.inside(x, func() bool { return r.list(in.Body.Instrs) })
}

// inside has walk fill a new BlockOp, and keeps it if something leaves it early.
func (r *rewriter) inside(x *kir.Instr, walk func() bool) (ends bool) {
	n := r.nest(x)
	mark := len(r.trail)
	r.enter(nil)
	ends = walk()
	x.Body = r.leave()
	r.undo(mark, n.sets)
	r.forget(n.sets)
	if n.exits > 0 {
		r.put(x)
		return false
	}
	for _, y := range x.Body.Instrs {
		r.put(y)
	}
	return ends
}

// maxElse bounds how deep structure nests.
const maxElse = 24

// structure takes Breaks away where leaving a block and reaching its end is the same, if need be by putting what
// follows an If that leaves the block into its other side. A barrier stays where it is.
func (r *rewriter) structure(l []*kir.Instr, block *kir.Instr, depth int) []*kir.Instr {
	n := r.nest(block)
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
	sides := func(in *kir.Instr) {
		in.Body.Instrs = r.structure(in.Body.Instrs, block, depth+1)
		if in.Else != nil {
			in.Else.Instrs = r.structure(in.Else.Instrs, block, depth+1)
		}
	}
	for i, in := range l {
		if in.Op == kir.Break && in.Target == block {
			n.exits--
			return l[:i]
		}
		if in.Op != kir.If || !leaves(in.Body) && !leaves(in.Else) {
			continue
		}
		if rest := l[i+1:]; len(rest) > 0 {
			if leaves(in.Body) && leaves(in.Else) {
				rest = nil // never reached
			}
			for _, x := range rest {
				if x.Op == kir.Barrier || x.Op.HasBody() && r.nest(x).barrier {
					return l
				}
			}
			for _, x := range rest {
				r.include(x, r.nest(in))
			}
			to := &in.Body
			if leaves(in.Body) {
				to = &in.Else
			}
			if *to == nil {
				*to = &kir.Block{}
			}
			(*to).Instrs = append((*to).Instrs[:len((*to).Instrs):len((*to).Instrs)], rest...)
		}
		sides(in)
		return l[:i+1]
	}
	if i := len(l) - 1; i >= 0 && l[i].Op == kir.If {
		sides(l[i])
	}
	return l
}

// loop rewrites a loop, and unrolls it where that pays.
func (r *rewriter) loop(in *kir.Instr) (ends bool) {
	n := r.nest(in)
	if l := in.Body.Instrs; n.again == 0 && len(l) > 0 {
		if last := l[len(l)-1]; last.Op == kir.Break && last.Target == in { // do ... while (false)
			return r.blockOp(in)
		}
	}
	for s, stores := range n.stores {
		if stores {
			r.gen++
			r.gens[s] = r.gen
		}
	}
	before := len(r.trail)
	r.forget(n.sets)
	mark := len(r.trail)
	x := r.copy(in, nil)
	x.Body, _ = r.block(in.Body, n)
	r.undo(mark, n.sets)
	if exit, rounds := r.unrolls(x, r.trail[before:mark]); exit != nil {
		r.undo(before, newBitset(len(r.known)))
		return r.unroll(x, exit, rounds)
	}
	r.put(x)
	return false
}
