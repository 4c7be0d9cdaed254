package ptx

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// shortLoop is how many rounds a loop may have, inner loops' included, without asking whether to stop.
const shortLoop = 1 << 16

// rounds returns how many rounds a loop can have at most, with those of the loops around it that are known to be short;
// 0 if that is not known, or more than shortLoop.
func (f *flow) rounds(l *kir.Instr) int {
	n := f.counted(l)
	for _, o := range f.loops {
		if n == 0 || o == l || !f.inside(l, o) {
			continue
		}
		if m := f.counted(o); m > 0 && n*m <= shortLoop {
			n *= m
		}
	}
	return n
}

// counted returns how often a loop runs at most that counts a variable from a constant up or down to one.
func (f *flow) counted(l *kir.Instr) int {
	for i := f.first[l.ID] + 1; i <= f.last[l.ID]; i++ {
		if in := f.order[i]; in.Op == kir.Continue && in.Target == l {
			return 0
		}
	}
	for _, in := range l.Body.Instrs {
		if in.Op != kir.If || in.Else != nil || len(in.Body.Instrs) == 0 {
			continue
		}
		j := in.Body.Instrs[len(in.Body.Instrs)-1]
		leaves := j.Op == kir.Return || j.Op == kir.Break && !f.inside(j.Target, l)
		if !leaves || f.jumps(in.Body) > 1 {
			continue
		}
		if n := f.countedBy(l, in.Args[0]); n > 0 {
			return n
		}
	}
	return 0
}

// jumps is how many jumps a block holds.
func (f *flow) jumps(b *kir.Block) (n int) {
	b.Walk(func(in *kir.Instr) {
		if in.Op == kir.Break || in.Op == kir.Continue || in.Op == kir.Return {
			n++
		}
	})
	return n
}

// countedBy is counted of a loop that is left when a condition is true.
func (f *flow) countedBy(l, cond *kir.Instr) int {
	not := false
	for cond.Op == kir.Not {
		cond, not = cond.Args[0], !not
	}
	if cond.Op < kir.Lt || cond.Op > kir.Ge {
		return 0
	}
	v, limit := cond.Args[0], cond.Args[1]
	if v.Op != kir.VarGet || limit.Op != kir.Const || !v.Type.IsInt() || len(f.sets[v.Imm]) == 0 {
		return 0
	}
	// Left at v >= limit or v > limit, counting up; or the other way round.
	up := (cond.Op == kir.Ge || cond.Op == kir.Gt) != not
	t, step := v.Type, int64(0)
	end := number(t, limit.Imm)
	least, most := int64(0), int64(0) // where it begins: variables are zero at entry
	for _, s := range f.sets[v.Imm] {
		x := s.Args[0]
		switch {
		case f.inside(s, l):
			if step != 0 || !contains(l.Body, s) || x.Op != kir.Add && x.Op != kir.Sub {
				return 0
			}
			was, by := x.Args[0], x.Args[1]
			if was.Op != kir.VarGet || was.Imm != v.Imm || by.Op != kir.Const || !f.inside(was, l) {
				return 0
			}
			if step = number(t, x.Args[1].Imm); x.Op == kir.Sub {
				step = -step
			}
		case x.Op == kir.Const:
			least, most = min(least, number(t, x.Imm)), max(most, number(t, x.Imm))
		default:
			return 0
		}
	}
	if step == 0 || (step > 0) != up {
		return 0
	}
	way := end - least
	if !up {
		way, step = most-end, -step
	}
	// A limit near the type's bounds may be stepped over and never reached.
	const far = 1 << 30
	switch {
	case t.Bits() < 32 || step > far || end > far || end < -far || least < -far || most > far:
		return 0
	case !t.IsSigned() && !up:
		return 0
	}
	if n := way/step + 2; n <= shortLoop {
		return int(max(1, n))
	}
	return 0
}

// number is what the bits of a constant stand for, as far as 64 bits hold it.
func number(t kir.Type, imm uint64) int64 {
	if t.IsSigned() {
		sh := 64 - t.Bits()
		return int64(imm<<sh) >> sh
	}
	return int64(min(imm, 1<<62))
}

func contains(b *kir.Block, in *kir.Instr) bool {
	for _, x := range b.Instrs {
		if x == in {
			return true
		}
	}
	return false
}

// waitsForOthers returns a loop in which a threadgroup waits for another one, nil if there is none: what ends it is
// seen in device memory at a place that stays the same, only by looking. Who changes the place as well, as when a lock
// is taken or an exchange tried again, waits for threads that run.
func (f *flow) waitsForOthers() *kir.Instr {
	for _, l := range f.loops {
		if f.rounds(l) > 0 || f.moves(l) {
			continue
		}
		looks := false
		for i := f.first[l.ID] + 1; i <= f.last[l.ID]; i++ {
			in := f.order[i]
			if in.Op != kir.If || !f.leavesLoop(in, l) {
				continue
			}
			d := dependence{f: f, l: l, seen: map[*kir.Instr]bool{}}
			if d.walk(in.Args[0]); d.changes {
				looks = false
				break
			}
			looks = looks || d.looks
		}
		if looks {
			return l
		}
	}
	return nil
}

// leavesLoop reports whether a conditional holds a jump out of a loop.
func (f *flow) leavesLoop(in, l *kir.Instr) bool {
	for i := f.first[in.ID]; i <= f.last[in.ID]; i++ {
		if j := f.order[i]; j.Op == kir.Return || j.Op == kir.Break && !f.inside(j.Target, l) {
			return true
		}
	}
	return false
}

// moves reports whether a loop is left when a variable that each round moves passes a limit, which may be anything.
func (f *flow) moves(l *kir.Instr) bool {
	for _, in := range l.Body.Instrs {
		if in.Op == kir.If && f.leavesLoop(in, l) && f.passes(l, in.Args[0], false) {
			return true
		}
	}
	return false
}

// passes reports whether a condition, or its contrary, is true at the latest when such a variable passes a limit.
func (f *flow) passes(l, c *kir.Instr, not bool) bool {
	switch {
	case c.Op == kir.Not:
		return f.passes(l, c.Args[0], !not)
	case c.Op == kir.Or && !not, c.Op == kir.And && not:
		return f.passes(l, c.Args[0], not) || f.passes(l, c.Args[1], not)
	case c.Op < kir.Lt || c.Op > kir.Ge || !c.Args[0].Type.IsInt():
		return false
	}
	for _, x := range c.Args {
		if x.Op == kir.Add || x.Op == kir.Sub { // the variable's next value
			a, b := x.Args[0], x.Args[1]
			if x = a; a.Op != kir.VarGet {
				x = b
			}
		}
		if x.Op == kir.VarGet && f.steps(l, x.Imm) {
			return true
		}
	}
	return false
}

// steps reports whether each round of a loop adds the same to a variable.
func (f *flow) steps(l *kir.Instr, v uint64) bool {
	n := 0
	for _, s := range f.sets[v] {
		if !f.inside(s, l) {
			continue
		}
		x := s.Args[0]
		if n++; n > 1 || x.Op != kir.Add && x.Op != kir.Sub || !contains(l.Body, s) {
			return false
		}
		y, by := x.Args[0], x.Args[1]
		if y.Op != kir.VarGet {
			y, by = by, y
		}
		if y.Op != kir.VarGet || y.Imm != v || !f.fixed(by, l) {
			return false
		}
	}
	return n == 1
}

// fixed reports whether a loop never changes a value.
func (f *flow) fixed(x, l *kir.Instr) bool {
	switch {
	case !f.inside(x, l):
		return true
	case x.Op == kir.VarGet:
		for _, s := range f.sets[x.Imm] {
			if f.inside(s, l) {
				return false
			}
		}
		return true
	case !x.Op.Pure():
		return false
	}
	for _, a := range x.Args {
		if !f.fixed(a, l) {
			return false
		}
	}
	return true
}

// dependence is what a value depends on within a loop.
type dependence struct {
	f              *flow
	l              *kir.Instr
	seen           map[*kir.Instr]bool
	looks, changes bool // at device memory that others may change; it changes some itself
}

func (d *dependence) walk(x *kir.Instr) {
	if d.seen[x] || !d.f.inside(x, d.l) {
		return
	}
	d.seen[x] = true
	switch {
	case x.Op == kir.VarGet:
		for _, s := range d.f.sets[x.Imm] {
			if d.f.inside(s, d.l) {
				d.walk(s.Args[0])
			}
		}
	case x.Op == kir.AtomicCAS || x.Op == kir.AtomicRMW && !changesNothing(x):
		d.changes = true
	case x.Op.IsAtomic() || x.Op == kir.Load && d.f.fixed(x.Args[0], d.l):
		d.looks = d.looks || x.Args[0].Type == kir.PtrDevice && d.f.written(x.Args[0])
	}
	for _, a := range x.Args {
		d.walk(a)
	}
}

// written reports whether the kernel may write what a pointer points into.
func (f *flow) written(v *kir.Instr) bool {
	o := f.objects[v.ID]
	for i, q := range f.k.Params {
		if _, may := slices.BinarySearch(o.set, i+1); (may || o.all) && (q.Write || q.Atomic) {
			return true
		}
	}
	return false
}

// changesNothing reports whether an atomic operation writes what was there.
func changesNothing(x *kir.Instr) bool {
	v := x.Args[1]
	if v.Op != kir.Const || !v.Type.IsInt() {
		return false
	}
	switch x.Mode {
	case kir.ModeAdd, kir.ModeSub, kir.ModeOr, kir.ModeXor:
		return v.Imm == 0
	case kir.ModeAnd:
		return v.Imm == v.Type.Mask()
	}
	return false
}
