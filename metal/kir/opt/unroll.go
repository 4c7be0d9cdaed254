package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// unrolls finds out whether a new loop runs a small known number of times: it returns the If that leaves it, and how
// many iterations are complete before it does. before are the changes that made the loop's variables unknown.
func (r *rewriter) unrolls(l *kir.Instr, before []change) (exit *kir.Instr, rounds int) {
	n, m := r.nest(l), r.info[l.ID].mark
	if r.limits.unrollTotal == 0 || m&wantsLoop != 0 || n.barrier && !r.limits.launch || n.again > 0 {
		return nil, 0
	}
	size, arrays, loops := r.measure(l.Body)
	limit, most := r.limits.size, r.limits.rounds
	switch {
	case m&wantsUnrolling != 0:
		limit, most = r.limits.wishSize, r.limits.wishRounds
	case arrays:
		limit, most = r.limits.arraySize, r.limits.arrayRounds
	}
	if m&wantsUnrolling == 0 && loops && !r.limits.launch {
		limit /= 2
	}
	limit = min(limit, r.limits.unrollTotal-r.grown)
	if size > 0 {
		most = min(most, limit/size)
	}
	for _, x := range l.Body.Instrs {
		if leaves(x, l) && x.Args[0].Op.Pure() {
			if rounds, ok := r.rounds(l.Body, x, before, most); ok {
				r.grown += rounds * size
				return x, rounds
			}
		}
	}
	return nil, 0
}

// leaves reports whether an instruction is an If that does nothing but leave a loop.
func leaves(in, loop *kir.Instr) bool {
	return in.Op == kir.If && in.Else == nil && len(in.Body.Instrs) == 1 && in.Body.Instrs[0].Op == kir.Break &&
		in.Body.Instrs[0].Target == loop
}

// measure returns the size of a loop's body, whether it indexes a lane's own array by what is not constant, and
// whether it has loops.
func (r *rewriter) measure(b *kir.Block) (size int, arrays, loops bool) {
	b.Walk(func(x *kir.Instr) {
		size++
		if r.info[x.ID].mark&isCheck != 0 { // where the loop's counter is the index, nothing is left of it
			size -= 1 + len(x.Body.Instrs)
		}
		switch x.Op {
		case kir.PtrAdd:
			arrays = arrays || x.Type == kir.PtrThread && x.Args[1].Op != kir.Const
		case kir.Loop:
			loops = true
		}
	})
	return size, arrays, loops
}

// rounds follows the variables on which a loop's end depends, from the values that they are known to have, and returns
// how often the exit is not taken, if that is at most so often.
func (r *rewriter) rounds(b *kir.Block, exit *kir.Instr, before []change, most int) (n int, ok bool) {
	c := counter{r: r, vals: map[*kir.Instr]uint64{}, vars: map[uint64]uint64{}}
	for _, ch := range before {
		if ch.old != nil && ch.old.Op == kir.Const {
			c.vars[ch.v] = ch.old.Imm
		}
	}
	for ; n <= most; n++ {
		for _, in := range b.Instrs {
			if in != exit {
				c.instr(in)
				continue
			}
			leave, ok := c.value(in.Args[0])
			if !ok {
				return 0, false
			}
			if leave&1 != 0 {
				return n, true
			}
		}
	}
	return 0, false
}

// counter executes what is known of a loop's own block.
type counter struct {
	r    *rewriter
	vals map[*kir.Instr]uint64 // of this round and the ones before
	vars map[uint64]uint64
}

func (c *counter) value(x *kir.Instr) (bits uint64, ok bool) {
	if x.Op == kir.Const {
		return x.Imm, true
	}
	bits, ok = c.vals[x]
	return bits, ok
}

func (c *counter) instr(in *kir.Instr) {
	delete(c.vals, in)
	switch {
	case in.Op == kir.VarGet:
		if v, ok := c.vars[in.Imm]; ok {
			c.vals[in] = v
		}
	case in.Op == kir.VarSet:
		if v, ok := c.value(in.Args[0]); ok {
			c.vars[in.Imm] = v
		} else {
			delete(c.vars, in.Imm)
		}
	case in.Op.HasBody():
		c.r.nest(in).sets.each(func(v uint64) { delete(c.vars, v) })
	case in.Op.Pure() && len(in.Args) > 0 && len(in.Args) <= 3:
		c.compute(in)
	}
}

func (c *counter) compute(in *kir.Instr) {
	var bits [3]uint64
	for i, a := range in.Args {
		v, ok := c.value(a)
		if !ok {
			return
		}
		bits[i] = v
	}
	if v, ok := in.Eval(bits[:len(in.Args)]...); ok {
		c.vals[in] = v
	}
}

// unroll writes the iterations of a new loop, which is not kept, one after the other.
func (r *rewriter) unroll(l, exit *kir.Instr, rounds int) (ends bool) {
	walk := func() bool {
		for round := range rounds + 1 {
			for _, in := range l.Body.Instrs {
				switch {
				case in != exit:
					if r.instr(in) {
						return true
					}
				case round == rounds:
					return false
				}
			}
		}
		return false
	}
	if r.nest(l).exits == 1 {
		return walk()
	}
	x := r.copy(l, nil) // what other Breaks leave
	x.Op = kir.BlockOp
	return r.inside(x, walk)
}
