package lanes

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// loops finds out how long loops may run and what a round costs.
func (a *analysis) loops() {
	for i := len(a.inner) - 1; i >= 0; i-- {
		l := a.order[a.inner[i]]
		a.info.Cost[l.ID] = max(1, int(a.end[l.ID]-a.pos[l.ID])-1)
		a.info.Bounded[l.ID] = a.rounds(l)
		if a.info.Bounded[l.ID] == 0 && a.waits(l) {
			a.info.Waits = true
		}
	}
}

// rounds returns the largest number of rounds of a loop that counts a variable to a constant, 0 if it is none.
func (a *analysis) rounds(l *kir.Instr) int {
	for p := a.pos[l.ID]; p < a.end[l.ID]; p++ {
		if in := a.order[p]; in.Op == kir.Continue && in.Target == l {
			return 0
		}
	}
	best := 0
	for _, in := range l.Body.Instrs {
		if in.Op != kir.If || len(in.Body.Instrs) == 0 {
			continue
		}
		b := in.Body.Instrs[len(in.Body.Instrs)-1]
		leaves := b.Op == kir.Break && (b.Target == l || a.pos[b.Target.ID] < a.pos[l.ID]) || b.Op == kir.Return
		if !leaves || a.jumpsIn(in.Body, len(in.Body.Instrs)-1) {
			continue
		}
		if n := a.counted(l, in.Args[0]); n > 0 && (best == 0 || n < best) {
			best = n
		}
	}
	return best
}

// jumpsIn reports whether the first n instructions of a block hold a jump.
func (a *analysis) jumpsIn(b *kir.Block, n int) bool {
	if n == 0 {
		return false
	}
	for p := a.pos[b.Instrs[0].ID]; p < a.end[b.Instrs[n-1].ID]; p++ {
		if op := a.order[p].Op; op == kir.Break || op == kir.Continue {
			return true
		}
	}
	return false
}

// counted returns how often a loop runs at most if it is left as soon as the condition is true.
func (a *analysis) counted(l, cond *kir.Instr) int {
	negate := false
	for cond.Op == kir.Not {
		negate = !negate
		cond = cond.Args[0]
	}
	op := cond.Op
	if op < kir.Eq || op > kir.Ge {
		return 0
	}
	x := cond.Args[0]
	limit, ok := cond.Args[1].Int()
	if !ok {
		if limit, ok = x.Int(); !ok {
			return 0
		}
		x = cond.Args[1]
		op = op.Mirrored()
	}
	if negate {
		op = op.Opposite()
	}
	if op != kir.Ge && op != kir.Gt || limit > math.MaxInt32 || limit < 0 {
		return 0
	}
	if x.Op != kir.VarGet || a.pos[x.ID] < a.pos[l.ID] {
		return 0
	}
	step := a.step(l, &a.vars[x.Imm], x.Imm, x.Type)
	if step <= 0 || !fits(x.Type, limit+step) {
		return 0
	}
	return int(limit/step) + 2
}

// step returns what a loop adds to a variable in each round, 0 if that is not one positive constant or the variable may
// start below zero.
func (a *analysis) step(l *kir.Instr, v *variable, index uint64, t kir.Type) int64 {
	step := int64(0)
	for _, p := range v.sets {
		set := a.order[p]
		x := set.Args[0]
		if p < a.pos[l.ID] || p >= a.end[l.ID] {
			if t.IsSigned() && !a.positive(x) {
				return 0
			}
			continue
		}
		if step != 0 || x.Op != kir.Add || !a.direct(l, set) {
			return 0
		}
		y, c, ok := plus(x)
		if !ok || c <= 0 || c > maxOffset || y.Op != kir.VarGet || y.Imm != index || a.pos[y.ID] < a.pos[l.ID] {
			return 0
		}
		step = c
	}
	return step
}

// direct reports whether an instruction is in the loop's own block.
func (a *analysis) direct(l, in *kir.Instr) bool {
	for _, x := range l.Body.Instrs {
		if x == in {
			return true
		}
	}
	return false
}

// waits reports whether another threadgroup may have to end a loop: what ends it depends on atomic operations, or on
// device memory at an address that stays the same, and it does not count its rounds besides.
func (a *analysis) waits(l *kir.Instr) bool {
	if a.endsItself(l) {
		return false
	}
	if a.seen == nil {
		a.seen = make([]int32, len(a.order))
	}
	stamp := a.pos[l.ID] + 1
	var depends func(x *kir.Instr) bool
	depends = func(x *kir.Instr) bool {
		if a.pos[x.ID] < a.pos[l.ID] || a.seen[x.ID] == stamp {
			return false
		}
		a.seen[x.ID] = stamp
		switch {
		case x.Op.IsAtomic():
			return true
		case x.Op == kir.Load && x.Args[0].Type == kir.PtrDevice && a.fixed(x.Args[0], l):
			return true
		case x.Op == kir.VarGet:
			for _, p := range a.vars[x.Imm].sets {
				if p > a.pos[l.ID] && p < a.end[l.ID] && depends(a.order[p].Args[0]) {
					return true
				}
			}
		}
		for _, y := range x.Args {
			if depends(y) {
				return true
			}
		}
		return false
	}
	for p := a.pos[l.ID] + 1; p < a.end[l.ID]; p++ {
		if in := a.order[p]; in.Op == kir.If && a.endsIn(in, l) && depends(in.Args[0]) {
			return true
		}
	}
	return false
}

// fixed reports whether a loop never changes a value.
func (a *analysis) fixed(x, l *kir.Instr) bool {
	work := maxWork
	return a.invariant(x, l, &work)
}

// invariant is fixed; it gives up after some work.
func (a *analysis) invariant(x, l *kir.Instr, work *int) bool {
	*work--
	switch {
	case a.pos[x.ID] < a.pos[l.ID]:
		return true
	case *work < 0:
		return false
	case x.Op == kir.VarGet:
		return !within(a.vars[x.Imm].sets, a.pos[l.ID], a.end[l.ID])
	case x.Op == kir.Load && x.Args[0].Type != kir.PtrConstant || !x.Op.Pure() && x.Op != kir.Load:
		return false
	}
	for _, y := range x.Args {
		if !a.invariant(y, l, work) {
			return false
		}
	}
	return true
}

// endsItself reports whether a loop is left once a variable that it moves by equal steps passes a fixed limit.
func (a *analysis) endsItself(l *kir.Instr) bool {
	for _, in := range l.Body.Instrs {
		if in.Op != kir.If || !a.endsIn(in, l) {
			continue
		}
		c := in.Args[0]
		for c.Op == kir.Not {
			c = c.Args[0]
		}
		if c.Op < kir.Lt || c.Op > kir.Ge || !c.Args[0].Type.IsInt() {
			continue
		}
		for i, x := range c.Args {
			if x.Op == kir.VarGet && a.moves(l, x.Imm) && a.fixed(c.Args[1-i], l) {
				return true
			}
		}
	}
	return false
}

// moves reports whether each round of a loop adds the same to a variable.
func (a *analysis) moves(l *kir.Instr, v uint64) bool {
	n := 0
	for _, p := range a.vars[v].sets {
		if p < a.pos[l.ID] || p >= a.end[l.ID] {
			continue
		}
		x := a.order[p].Args[0]
		n++
		if n > 1 || x.Op != kir.Add && x.Op != kir.Sub || !a.direct(l, a.order[p]) {
			return false
		}
		y, by := x.Args[0], x.Args[1]
		if y.Op != kir.VarGet {
			y, by = by, y
		}
		if y.Op != kir.VarGet || y.Imm != v || !a.fixed(by, l) {
			return false
		}
	}
	return n == 1
}

// endsIn reports whether a conditional holds a jump out of the loop.
func (a *analysis) endsIn(in, l *kir.Instr) bool {
	for p := a.pos[in.ID]; p < a.end[in.ID]; p++ {
		j := a.order[p]
		if j.Op == kir.Return || j.Op == kir.Break && (j.Target == l || a.pos[j.Target.ID] < a.pos[l.ID]) {
			return true
		}
	}
	return false
}
