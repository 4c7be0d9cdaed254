package code

import "sync"

// Tidy tidies what was selected: results that nobody reads are not computed, and results that are only copied to
// a variable are computed in its register. w is the size of vector registers in bytes.
func Tidy(f *Func, w uint8) {
	l := f.Insts()
	p := tidiers.Get().(*tidier)
	defer tidiers.Put(p)
	p.insts, p.w = l, w
	for c := range p.seen {
		p.seen[c] = append(p.seen[c][:0], make([]occurrences, f.NumRegs(Class(c)))...)
	}
	for n := range l {
		l[n].Operands(func(r *R, role Role) {
			if o := p.of(*r); o != nil {
				o.note(int32(n), role)
			}
		})
	}
	for n := len(l) - 1; n >= 0; n-- {
		p.dead(n)
	}
	for n := range l {
		p.coalesce(n)
	}
	kept := l[:0]
	for _, i := range l {
		if i.Op != Nop {
			kept = append(kept, i)
		}
	}
	f.SetInsts(kept)
	p.insts = nil
}

// tidiers keeps the tables of tidiers.
var tidiers = sync.Pool{New: func() any { return new(tidier) }}

// occurrences tells where a virtual register stands in the list.
type occurrences struct {
	first, last int32
	uses        int32 // reads
	some        bool
}

// note adds instruction n.
func (o *occurrences) note(n int32, role Role) {
	if !o.some {
		o.first, o.some = n, true
	}
	o.last = n
	if role&Use != 0 {
		o.uses++
	}
}

// tidier is the work of Tidy.
type tidier struct {
	w     uint8
	insts []Inst
	seen  [NumClasses][]occurrences
}

// of returns the occurrences of a virtual register, nil for others.
func (p *tidier) of(r R) *occurrences {
	if !r.Virtual() {
		return nil
	}
	return &p.seen[r.Class()][r.Num()-FirstVirtual]
}

// dead removes instruction n if all it does is to write a register that nobody reads.
func (p *tidier) dead(n int) {
	i := &p.insts[n]
	d := p.of(i.Dst)
	if d == nil || i.Store() || d.uses > p.ownUses(i) || !pureWrite(i) {
		return
	}
	i.Operands(func(r *R, role Role) {
		if o := p.of(*r); o != nil && role&Use != 0 {
			o.uses--
		}
	})
	*i = Inst{Op: Nop}
}

// ownUses is how often the instruction reads its own destination, if no other instruction names that register.
func (p *tidier) ownUses(i *Inst) int32 {
	d := p.of(i.Dst)
	if d.first != d.last {
		return 0
	}
	n := int32(0)
	i.Operands(func(r *R, role Role) {
		if *r == i.Dst && role&Use != 0 {
			n++
		}
	})
	return n
}

// pureWrite reports whether an instruction has no effect but on its destination: moves, and everything on vectors
// and masks but gathers, whose masks change.
func pureWrite(i *Inst) bool {
	if i.Dst.Class() != GPR {
		return !i.EarlyDef()
	}
	switch i.Op {
	case Mov, MovZXB, MovZXW, MovSXB, MovSXW, MovSXD, Lea:
		return true
	}
	return false
}

// window is how far from a copy the copied value may have been computed.
const window = 64

// coalesce removes the copy at n of a register that ends there, if what it is copied to can take its place from the
// beginning: nothing in between concerns the other register, or leaves the straight path.
func (p *tidier) coalesce(n int) {
	i := &p.insts[n]
	if !p.isCopy(i) || i.Dst == i.A {
		return
	}
	from, to := p.of(i.A), p.of(i.Dst)
	if from == nil || to == nil || int(from.last) != n || n-int(from.first) > window || int(from.first) == n {
		return
	}
	old, now := i.A, i.Dst
	for m := int(from.first); m < n; m++ {
		x := &p.insts[m]
		switch {
		case m > int(from.first) && straight(x) && !p.names(x, now, UseDef):
		case m == int(from.first) && straight(x) && !p.names(x, now, Def) && !x.EarlyDef() && firstDef(x, old):
		default:
			return
		}
	}
	for m := int(from.first); m < n; m++ {
		p.insts[m].Operands(func(r *R, _ Role) {
			if *r == old {
				*r = now
			}
		})
	}
	to.first = min(to.first, from.first)
	*i = Inst{Op: Nop}
	if x := &p.insts[from.first]; p.isCopy(x) && x.A == x.Dst {
		*x = Inst{Op: Nop}
	}
}

// firstDef reports whether the instruction writes all of r without reading it.
func firstDef(i *Inst, r R) bool {
	plain := i.Dst == r
	i.Operands(func(q *R, role Role) {
		if *q == r && role&Use != 0 {
			plain = false
		}
	})
	return plain
}

// names reports whether an instruction uses r in one of the roles.
func (p *tidier) names(i *Inst, r R, roles Role) bool {
	found := false
	i.Operands(func(q *R, role Role) {
		found = found || *q == r && role&roles != 0
	})
	return found
}

// isCopy reports whether an instruction copies a whole register to another.
func (p *tidier) isCopy(i *Inst) bool {
	switch i.Op {
	case KMov:
	case VMovAPS:
		if i.W != p.w {
			return false
		}
	case Mov:
		if i.W != 8 {
			return false
		}
	default:
		return false
	}
	return i.A != 0 && i.Dst != 0 && !i.Mem.Valid() && i.KM == 0 && i.A.Class() == i.Dst.Class()
}

// straight reports whether control goes from before an instruction to after it, always.
func straight(i *Inst) bool {
	switch i.Op {
	case Jcc, Jmp, Ret, BindLabel, LoopBegin, LoopEnd, ColdBegin, ColdEnd,
		SaveLive, LoadLive:
		return false
	}
	return true
}
