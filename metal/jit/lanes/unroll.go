package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// Limits of unrolling where the number of a loop's rounds becomes known with a launch: rounds, the instructions of a
// loop in all of them, and those of all loops.
const (
	unrollRounds = 8
	unrollSize   = 512
	unrollTotal  = 1 << 12
)

// onlyExit returns the If by which alone a loop is left, if that is in the loop's own block and does nothing else, and
// nothing goes back to the loop's start but its end.
func onlyExit(l *kir.Instr) (exit *kir.Instr) {
	jumps := 0
	l.Body.Walk(func(in *kir.Instr) {
		if in.Target == l {
			jumps++
		}
	})
	for _, in := range l.Body.Instrs {
		if in.Op == kir.If && in.Else == nil && len(in.Body.Instrs) == 1 && in.Body.Instrs[0].Target == l &&
			in.Body.Instrs[0].Op == kir.Break {
			exit = in
		}
	}
	if jumps != 1 {
		return nil
	}
	return exit
}

// unroll rebuilds a Loop as its rounds one after the other. done is false if that cannot be; ends reports whether
// control never passes it.
func (o *optimiser) unroll(l *kir.Instr) (done, ends bool) {
	exit := onlyExit(l)
	if exit == nil {
		return false, false
	}
	n, ok := o.rounds(l, exit)
	size := 0
	l.Body.Walk(func(*kir.Instr) { size++ })
	if size *= n; !ok || size > unrollSize || o.unrolled+size > unrollTotal {
		return false, false
	}
	o.unrolled += size
	for round := range n + 1 {
		for _, in := range l.Body.Instrs {
			switch {
			case in != exit:
				if o.instr(in) {
					return true, true
				}
			case round == n:
				return true, false
			}
		}
	}
	return true, false
}

// rounds follows the variables of which a loop's end depends, from the values that they are known to have, and returns
// how often the exit is not taken.
func (o *optimiser) rounds(l, exit *kir.Instr) (n int, ok bool) {
	c := counter{o: o, loop: l, vals: map[*kir.Instr]uint64{}, vars: map[uint64]uint64{}, lost: map[uint64]bool{}}
	for ; n <= unrollRounds; n++ {
		for _, in := range l.Body.Instrs {
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
	o    *optimiser
	loop *kir.Instr
	vals map[*kir.Instr]uint64 // of this round and the ones before
	vars map[uint64]uint64     // variables that were set
	lost map[uint64]bool       // variables that were set to what is not known
}

func (c *counter) value(x *kir.Instr) (bits uint64, ok bool) {
	switch {
	case x.Op == kir.Const:
		return x.Imm, true
	case x.ID > c.loop.ID: // in the loop
		bits, ok = c.vals[x]
		return bits, ok
	}
	y := c.o.to[x.ID]
	if y == nil || y.Op != kir.Const {
		return 0, false
	}
	return y.Imm, true
}

func (c *counter) instr(in *kir.Instr) {
	delete(c.vals, in)
	switch {
	case in.Op == kir.VarGet:
		v, ok := c.vars[in.Imm]
		if x := c.o.known(in.Imm); !ok && !c.lost[in.Imm] && x != nil && x.Op == kir.Const {
			v, ok = x.Imm, true
		}
		if ok {
			c.vals[in] = v
		}
	case in.Op == kir.VarSet:
		v, ok := c.value(in.Args[0])
		if c.lost[in.Imm] = !ok; ok {
			c.vars[in.Imm] = v
		} else {
			delete(c.vars, in.Imm)
		}
	case in.Op.HasBody():
		for v := range c.o.out.Vars {
			if c.o.sets[in.ID].has(uint64(v)) {
				c.lost[uint64(v)] = true
				delete(c.vars, uint64(v))
			}
		}
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
