package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// onVectors reports whether a pure operation works on vector registers even if its value is Uniform or Based: where
// floats take part.
func (a *analysis) onVectors(in *kir.Instr) bool {
	if a.info.Patterns[in.ID].Kind == Varying || in.Type.IsFloat() {
		return true
	}
	for _, x := range in.Args {
		if x.Type.IsFloat() {
			return true
		}
	}
	return false
}

// scalar reports whether a value lives in a general register: it is no Varying one and no float.
func (a *analysis) scalar(t kir.Type, s Pattern) bool { return s.Kind != Varying && !t.IsFloat() }

func (a *analysis) needBase(x *kir.Instr) { a.info.NeedBase[x.ID] = true }

func (a *analysis) needVec(x *kir.Instr) { a.info.NeedVec[x.ID] = true }

// need asks for a value as it is kept: in a general register, or else in lanes.
func (a *analysis) need(x *kir.Instr, scalar bool) {
	if scalar {
		a.needBase(x)
	} else {
		a.needVec(x)
	}
}

// needs finds out how values are used, users first.
func (a *analysis) needs() {
	info := a.info
	for i := len(a.order) - 1; i >= 0; i-- {
		in := a.order[i]
		s := info.Patterns[in.ID]
		switch {
		case in.Op == kir.Const || in.Op == kir.Builtin:
		case in.Op.Pure():
			switch {
			case !info.NeedBase[in.ID] && !info.NeedVec[in.ID]:
			case a.onVectors(in):
				for _, x := range in.Args {
					a.needVec(x)
				}
			default:
				info.NeedBase[in.ID] = true
				for _, x := range in.Args {
					a.needBase(x)
				}
			}
		case info.Access[in.ID] != nil:
			a.needAccess(in, info.Access[in.ID])
		case in.Op == kir.VarGet:
			if info.NeedVec[in.ID] && a.scalar(in.Type, s) {
				info.NeedBase[in.ID] = true
			}
		case in.Op == kir.VarSet:
			a.need(in.Args[0], a.scalar(in.Args[0].Type, info.VarPatterns[in.Imm]))
		case in.Op == kir.If:
			a.need(in.Args[0], info.Patterns[in.Args[0].ID].Kind == Uniform)
		case in.Op == kir.BroadcastFirst:
			x := in.Args[0]
			a.need(x, a.scalar(x.Type, info.Patterns[x.ID]) && info.Patterns[x.ID].Kind == Uniform)
		default:
			for _, x := range in.Args {
				a.needVec(x)
			}
			if in.Op == kir.Shuffle && info.Patterns[in.Args[1].ID].Kind == Uniform {
				a.needBase(in.Args[1])
			}
		}
	}
}

// needAccess asks for what an access is made of.
func (a *analysis) needAccess(in *kir.Instr, acc *Access) {
	if acc.Mode == AccessDynamic {
		a.needVec(in.Args[0])
	}
	for _, x := range acc.Terms {
		a.needBase(x)
	}
	for _, b := range acc.Bases {
		a.needBase(b.Value)
	}
	if acc.Index.Value != nil {
		a.needVec(acc.Index.Value)
	}
	for _, x := range in.Args[1:] {
		s := a.info.Patterns[x.ID]
		inOne := acc.Mode == AccessUniform && s.Kind == Uniform && !x.Type.IsFloat()
		if inOne {
			a.needBase(x)
		}
		if !inOne || in.Op != kir.Store {
			a.needVec(x)
		}
	}
}

// aliases finds the reads of variables that need no copy.
func (a *analysis) aliases() {
	info := a.info
	last := make([]int32, len(a.order)) // by ID: the position after which the value is dead
	use := func(x *kir.Instr, at int32) {
		for l := a.loop[a.order[at].ID]; l > a.pos[x.ID]; l = a.loop[a.order[l].ID] {
			at = max(at, a.end[a.order[l].ID])
		}
		last[x.ID] = max(last[x.ID], at)
	}
	for i := len(a.order) - 1; i >= 0; i-- {
		in, at := a.order[i], int32(i)
		acc := info.Access[in.ID]
		switch {
		case in.Op.Pure() && !info.NeedBase[in.ID] && !info.NeedVec[in.ID]:
			continue
		case in.Op == kir.VarGet:
			v := &a.vars[in.Imm]
			n := after(v.sets, at)
			info.Alias[in.ID] = n == len(v.sets) || v.sets[n] >= last[in.ID]
			continue
		case acc != nil && acc.Mode != AccessDynamic:
			for _, x := range acc.Terms {
				use(x, at)
			}
			for _, b := range acc.Bases {
				use(b.Value, at)
			}
			if acc.Index.Value != nil {
				use(acc.Index.Value, at)
			}
			for _, x := range in.Args[1:] {
				use(x, at)
			}
			continue
		}
		for _, x := range in.Args {
			use(x, at)
			switch in.Op {
			case kir.If:
				last[x.ID] = max(last[x.ID], a.end[in.ID])
			case kir.Bitcast, kir.Convert, kir.PtrAdd, kir.BroadcastFirst:
				last[x.ID] = max(last[x.ID], last[in.ID]) // may share the register
			}
		}
	}
}
