package opt

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxPromoted bounds how many variables an array becomes.
const maxPromoted = 256

// place is a scalar in a lane's own memory.
type place struct {
	off  int64
	ty   kir.Type
	name int // of the variable that replaces it
}

// promote turns the lane's own arrays and structures all of whose accesses are at constant places into variables. It
// reports whether there were any.
func promote(k *kir.Kernel) bool {
	p := &promoter{k: k, regions: make([]spread, len(k.Regions))}
	for i := range k.Regions {
		p.regions[i].ok = k.Regions[i].Space == kir.Thread
	}
	p.find(k.Body)
	any := false
	for i := range p.regions {
		r := &p.regions[i]
		if r.ok = r.ok && len(r.places) > 0 && p.disjoint(i); r.ok {
			any = true
			for j := range r.places {
				k.Vars = append(k.Vars, kir.Var{Name: k.Regions[i].Name, Type: r.places[j].ty,
					Unset: true, Part: k.Regions[i].Part})
				r.places[j].name = len(k.Vars) - 1
			}
		}
	}
	if any {
		p.replace(k.Body)
	}
	return any
}

type spread struct {
	ok     bool
	places []place // by offset
}

type promoter struct {
	k       *kir.Kernel
	regions []spread
}

// target returns the region that a pointer points into and where, if that is constant; region is negative if it is
// not a region's.
func (p *promoter) target(x *kir.Instr) (region int, off int64, fixed bool) {
	fixed = true
	for x.Op == kir.PtrAdd {
		off += int64(x.Imm)
		if x.Args[1].Op == kir.Const {
			off += int64(x.Args[1].Imm)
		} else {
			fixed = false
		}
		x = x.Args[0]
	}
	if x.Op != kir.RegionAddr {
		return -1, 0, false
	}
	return int(x.Imm), off, fixed
}

// find notes every access, and which regions' addresses go elsewhere.
func (p *promoter) find(b *kir.Block) {
	b.Walk(func(in *kir.Instr) {
		for i, a := range in.Args {
			if a.Type != kir.PtrThread || in.Op == kir.PtrAdd && i == 0 {
				continue
			}
			r, off, fixed := p.target(a)
			if r < 0 || !p.regions[r].ok {
				continue
			}
			t := in.Type
			if in.Op == kir.Store {
				t = in.Args[1].Type
			}
			access := i == 0 && (in.Op == kir.Load || in.Op == kir.Store)
			p.regions[r].ok = access && fixed && p.access(r, off, t)
		}
	})
}

// access notes an access; false if the region cannot become variables because of it.
func (p *promoter) access(r int, off int64, t kir.Type) bool {
	if off < 0 || off+int64(t.Size()) > int64(p.k.Regions[r].Size) {
		return false
	}
	list := p.regions[r].places
	i, found := slices.BinarySearchFunc(list, off, func(q place, off int64) int { return int(q.off - off) })
	if found {
		q := list[i].ty
		return q == t || q.Size() == t.Size() && q.IsArith() && t.IsArith()
	}
	p.regions[r].places = slices.Insert(list, i, place{off: off, ty: t})
	return len(list) < maxPromoted
}

// disjoint reports whether no two places of a region share a byte.
func (p *promoter) disjoint(r int) bool {
	list := p.regions[r].places
	for i := 1; i < len(list); i++ {
		if list[i-1].off+int64(list[i-1].ty.Size()) > list[i].off {
			return false
		}
	}
	return true
}

// replace rewrites the accesses.
func (p *promoter) replace(b *kir.Block) {
	if b == nil {
		return
	}
	out := make([]*kir.Instr, 0, len(b.Instrs))
	for _, in := range b.Instrs {
		p.replace(in.Body)
		p.replace(in.Else)
		if in.Op == kir.Load || in.Op == kir.Store {
			if r, off, fixed := p.target(in.Args[0]); r >= 0 && fixed && p.regions[r].ok {
				out = p.rewrite(out, in, r, off)
				continue
			}
		}
		out = append(out, in)
	}
	b.Instrs = out
}

func (p *promoter) rewrite(out []*kir.Instr, in *kir.Instr, r int, off int64) []*kir.Instr {
	list := p.regions[r].places
	i, _ := slices.BinarySearchFunc(list, off, func(q place, off int64) int { return int(q.off - off) })
	q := list[i]
	if in.Op == kir.Store {
		x := in.Args[1]
		if x.Type != q.ty {
			x = &kir.Instr{Op: kir.Bitcast, Type: q.ty, Args: []*kir.Instr{x}, Pos: in.Pos, ID: added}
			out = append(out, x)
		}
		in.Op, in.Imm, in.Args = kir.VarSet, uint64(q.name), []*kir.Instr{x}
		return append(out, in)
	}
	if in.Type == q.ty {
		in.Op, in.Imm, in.Args = kir.VarGet, uint64(q.name), nil
		return append(out, in)
	}
	get := &kir.Instr{Op: kir.VarGet, Type: q.ty, Imm: uint64(q.name), Pos: in.Pos, ID: added}
	in.Op, in.Imm, in.Args = kir.Bitcast, 0, []*kir.Instr{get}
	return append(out, get, in)
}
