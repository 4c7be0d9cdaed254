package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Limits of unrolling, in instructions that it makes of a loop and in iterations. Loops that index a lane's own arrays
// gain most: the arrays become variables. A pragma asks for more than the default, or for nothing.
const (
	unrollSize   = 256
	unrollTrips  = 16
	unrollArrays = 1024
	unrollPragma = 2048
	unrollMost   = 64      // iterations, with a pragma or arrays
	unrollTotal  = 1 << 13 // of a kernel
)

// Wishes of a #pragma before a loop.
const (
	wishNone uint8 = iota
	wishUnroll
	wishLoop
)

// unrolling is how a loop unrolls: the variable that counts, and how many iterations are complete before the exit is
// taken.
type unrolling struct {
	exit  *kir.Instr // an If at the top of the body
	trips int
}

// unrolling finds out whether a loop, whose body has been walked, runs a small known number of times. before are the
// variables' values that were forgotten at its start.
func (c *cleaner) unrolling(in *kir.Instr, before []varChange) *unrolling {
	n := c.nests[in]
	wish := c.em.wishes[in]
	if wish == wishLoop || n.barrier || n.again > 0 {
		return nil
	}
	for _, x := range in.Body.Instrs {
		if x.Op != kir.If || x.Else != nil || len(x.Body.Instrs) != 1 {
			continue
		}
		if b := x.Body.Instrs[0]; b.Op != kir.Break || b.Target != in {
			continue
		}
		v, ok := countsBy(x.Args[0], 0)
		if !ok {
			continue
		}
		start := (*kir.Instr)(nil)
		for i := range before {
			if before[i].v == v {
				start = before[i].old
				break
			}
		}
		if start == nil || start.Op != kir.Const {
			continue
		}
		next := onlySet(in.Body, v)
		if next == nil {
			continue
		}
		size, arrays, loops := c.measure(in.Body)
		limit, most := unrollSize, unrollTrips
		if arrays {
			limit, most = unrollArrays, unrollMost
		}
		if wish == wishUnroll {
			limit, most = unrollPragma, unrollMost
		} else if loops {
			limit /= 2
		}
		limit = min(limit, unrollTotal-c.grown)
		if size > 0 {
			most = min(most, limit/size)
		}
		k := counter{exit: x.Args[0], next: next.Args[0], late: readsAfter(in.Body, next)}
		if trips, ok := k.trips(start.Imm, most); ok {
			c.grown += trips * size
			return &unrolling{exit: x, trips: trips}
		}
	}
	return nil
}

// maxCountDepth bounds the expressions that a loop's end may depend on.
const maxCountDepth = 6

// countsBy returns the only variable that a value depends on.
func countsBy(x *kir.Instr, depth int) (v uint64, ok bool) {
	switch {
	case x.Op == kir.VarGet:
		return x.Imm, true
	case depth > maxCountDepth || x.Op < kir.Add || x.Op > kir.Bitcast:
		return 0, false
	}
	found := false
	for _, a := range x.Args {
		if a.Op == kir.Const {
			continue
		}
		w, good := countsBy(a, depth+1)
		if !good || found && v != w {
			return 0, false
		}
		v, found = w, true
	}
	return v, found
}

// onlySet returns the VarSet of a variable at the top of a loop's body if it is the only one there and its value
// depends on nothing but the variable.
func onlySet(b *kir.Block, v uint64) *kir.Instr {
	var set *kir.Instr
	count := 0
	b.Walk(func(x *kir.Instr) {
		if x.Op == kir.VarSet && x.Imm == v {
			count++
		}
	})
	if count != 1 {
		return nil
	}
	for _, x := range b.Instrs {
		if x.Op == kir.VarSet && x.Imm == v {
			set = x
		}
	}
	if set == nil {
		return nil
	}
	if w, ok := countsBy(set.Args[0], 0); !ok || w != v {
		return nil
	}
	return set
}

// measure returns the size of a loop's body, whether it indexes a lane's own array by what is not constant, and
// whether it has loops.
func (c *cleaner) measure(b *kir.Block) (size int, arrays, loops bool) {
	b.Walk(func(x *kir.Instr) {
		size++
		if c.em.checks[x] { // where the loop's counter is the index, nothing is left of it
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

// readsAfter returns the reads of a variable that come after set, which stands at the top of a loop's body.
func readsAfter(b *kir.Block, set *kir.Instr) map[*kir.Instr]bool {
	var late map[*kir.Instr]bool
	seen := false
	b.Walk(func(x *kir.Instr) {
		switch {
		case x == set:
			seen = true
		case seen && x.Op == kir.VarGet && x.Imm == set.Imm:
			if late == nil {
				late = map[*kir.Instr]bool{}
			}
			late[x] = true
		}
	})
	return late
}

// counter is the variable that ends a loop: what it becomes, when the loop ends, and the reads of what it became.
type counter struct {
	exit, next *kir.Instr
	late       map[*kir.Instr]bool
}

// trips runs the counter from its first value; it returns how often the exit is not taken, at most most.
func (k *counter) trips(val uint64, most int) (trips int, ok bool) {
	for {
		next, ok := k.eval(k.next, val, 0)
		if !ok {
			return 0, false
		}
		leave, ok := k.eval(k.exit, val, next)
		if !ok {
			return 0, false
		}
		if leave != 0 {
			return trips, true
		}
		if trips++; trips > most {
			return 0, false
		}
		val = next
	}
}

// eval computes an expression in an iteration that starts with val and sets next.
func (k *counter) eval(x *kir.Instr, val, next uint64) (uint64, bool) {
	switch {
	case x.Op == kir.Const:
		return x.Imm, true
	case k.late[x]:
		return next, true
	case x.Op == kir.VarGet:
		return val, true
	}
	var raw [3]uint64
	for i, a := range x.Args {
		v, ok := k.eval(a, val, next)
		if !ok {
			return 0, false
		}
		raw[i] = v
	}
	return x.Eval(raw[:len(x.Args)]...)
}

// unroll writes the iterations of a loop one after the other.
func (c *cleaner) unroll(in *kir.Instr, u *unrolling) []*kir.Instr {
	exits := 0
	in.Body.Walk(func(x *kir.Instr) {
		if x.Op == kir.Break && x.Target == in {
			exits++
		}
	})
	var around *kir.Instr // what other Breaks leave
	if exits > 1 {
		around = &kir.Instr{Op: kir.BlockOp, Body: &kir.Block{}, Pos: in.Pos}
		n := *c.nests[in]
		n.exits, n.left = 0, 0
		c.nests[around] = &n
		in.Target = around
	}
	var out []*kir.Instr
	cl := cloner{c: c, vol: c.em.volatiles}
	for trip := range u.trips + 1 {
		for _, x := range in.Body.Instrs {
			if x != u.exit {
				out = append(out, cl.instr(x))
			} else if trip == u.trips {
				break
			}
		}
	}
	in.Target = nil
	in.Body.Walk(func(x *kir.Instr) {
		if x.Op != kir.Break && x.Op != kir.Continue {
			x.Target = nil
		}
	})
	if around == nil {
		return out
	}
	around.Body.Instrs = out
	return []*kir.Instr{around}
}

// cloner copies instructions. The Target of one that was copied is its latest copy.
type cloner struct {
	c   *cleaner
	vol map[*kir.Instr]bool
}

func (cl *cloner) instr(x *kir.Instr) *kir.Instr {
	y := *x
	z := &y
	if len(x.Args) > 0 {
		z.Args = make([]*kir.Instr, len(x.Args))
		for i, a := range x.Args {
			if a.Target != nil {
				a = a.Target
			}
			z.Args[i] = a
		}
	}
	if x.Op == kir.Break || x.Op == kir.Continue {
		if t := x.Target; t.Target != nil {
			z.Target = t.Target
		}
		if n := cl.c.nests[z.Target]; x.Op == kir.Break {
			n.exits++
		} else {
			n.again++
		}
		return z
	}
	if cl.vol[x] {
		cl.vol[z] = true
	}
	z.Target = nil
	x.Target = z
	if x.Op.HasBody() {
		n := *cl.c.nests[x]
		n.exits, n.again, n.left = 0, 0, 0
		cl.c.nests[z] = &n
		if w := cl.c.em.wishes[x]; w != wishNone {
			cl.c.em.wishes[z] = w
		}
		z.Body, z.Else = cl.block(x.Body), cl.block(x.Else)
	}
	return z
}

func (cl *cloner) block(b *kir.Block) *kir.Block {
	if b == nil {
		return nil
	}
	d := &kir.Block{Instrs: make([]*kir.Instr, len(b.Instrs))}
	for i, x := range b.Instrs {
		d.Instrs[i] = cl.instr(x)
	}
	return d
}
