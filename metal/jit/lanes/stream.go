package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// Streams returns how many bytes further on each Load or Store of a loop is in the next round, by Instr.ID. It is 0
// where that is not a constant, and where every SIMD-group does the same: that is in the cache after the first one,
// while what a SIMD-group has for itself always comes from further away.
func Streams(k *kir.Kernel) []int64 {
	s := &streams{own: make([]bool, k.NumInstrs), vars: make([]bool, len(k.Vars)), found: make([]int64, k.NumInstrs)}
	for s.changed = true; s.changed; {
		s.changed = false
		s.mark(k.Body)
	}
	s.loops(k.Body, nil)
	return s.found
}

// streams looks for them.
type streams struct {
	own     []bool // by Instr.ID: the value depends on where the SIMD-group is in the grid
	vars    []bool // by variable: it may hold such a value
	changed bool
	found   []int64
}

// mark finds the values that depend on where a SIMD-group is.
func (s *streams) mark(b *kir.Block) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		own := false
		for _, a := range in.Args {
			own = own || s.own[a.ID]
		}
		switch in.Op {
		case kir.Builtin:
			switch in.Mode {
			case kir.ThreadPositionInGrid, kir.ThreadPositionInThreadgroup, kir.ThreadgroupPositionInGrid,
				kir.ThreadIndexInThreadgroup, kir.SimdgroupIndexInThreadgroup:
				own = true
			}
		case kir.VarGet:
			own = s.vars[in.Imm]
		case kir.VarSet:
			if own && !s.vars[in.Imm] {
				s.vars[in.Imm], s.changed = true, true
			}
		}
		s.own[in.ID] = own
		s.mark(in.Body)
		s.mark(in.Else)
	}
}

// rounds is a loop.
type rounds struct {
	inside map[*kir.Instr]bool   // its instructions
	sets   map[uint64]*kir.Instr // by variable: the one VarSet in it, nil if there are several
	deltas map[*kir.Instr]delta
}

// delta is what a value is more in the next round, if that is a constant.
type delta struct {
	n     int64
	known bool
}

// loops finds the Loads and Stores of a block in the loop.
func (s *streams) loops(b *kir.Block, r *rounds) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		if in.Op == kir.Loop {
			s.loops(in.Body, newRounds(in.Body))
			continue
		}
		if (in.Op == kir.Load || in.Op == kir.Store) && r != nil && s.own[in.ID] {
			s.found[in.ID] = r.delta(in.Args[0]).n
		}
		s.loops(in.Body, r)
		s.loops(in.Else, r)
	}
}

func newRounds(body *kir.Block) *rounds {
	r := &rounds{inside: map[*kir.Instr]bool{}, sets: map[uint64]*kir.Instr{}, deltas: map[*kir.Instr]delta{}}
	body.Walk(func(in *kir.Instr) {
		r.inside[in] = true
		if in.Op == kir.VarSet {
			if _, again := r.sets[in.Imm]; again {
				r.sets[in.Imm] = nil
			} else {
				r.sets[in.Imm] = in
			}
		}
	})
	return r
}

// delta returns what an integer or pointer is more in the next round.
func (r *rounds) delta(x *kir.Instr) delta {
	if !r.inside[x] || x.Op == kir.Const {
		return delta{known: true}
	}
	d, seen := r.deltas[x]
	if !seen {
		if d = r.compute(x); !d.known {
			d.n = 0
		}
		r.deltas[x] = d
	}
	return d
}

func (r *rounds) compute(x *kir.Instr) delta {
	switch x.Op {
	case kir.VarGet:
		return r.step(x.Imm)
	case kir.Add, kir.PtrAdd:
		a, b := r.delta(x.Args[0]), r.delta(x.Args[1])
		return delta{a.n + b.n, a.known && b.known}
	case kir.Sub:
		a, b := r.delta(x.Args[0]), r.delta(x.Args[1])
		return delta{a.n - b.n, a.known && b.known}
	case kir.Convert, kir.Bitcast:
		if x.Args[0].Type.IsInt() {
			return r.delta(x.Args[0])
		}
	case kir.Mul, kir.Shl, kir.Shr, kir.Div:
		a := r.delta(x.Args[0])
		c, ok := x.Args[1].Int()
		switch {
		case !ok || c < 0:
			return delta{}
		case x.Op == kir.Mul:
			return delta{a.n * c, a.known && c < maxScale}
		case x.Op == kir.Shl:
			return delta{a.n << (c & 63), a.known && c <= 20}
		case x.Op == kir.Shr:
			return delta{a.n >> (c & 63), a.known}
		case c != 0:
			return delta{a.n / c, a.known}
		}
	default:
		for _, a := range x.Args {
			if d := r.delta(a); !d.known || d.n != 0 {
				return delta{}
			}
		}
		return delta{known: x.Op.Pure()}
	}
	return delta{}
}

// step is what a variable is more in the next round.
func (r *rounds) step(v uint64) delta {
	set, ok := r.sets[v]
	switch {
	case !ok:
		return delta{known: true}
	case set == nil:
		return delta{}
	}
	to := set.Args[0]
	if to.Op != kir.Add && to.Op != kir.PtrAdd {
		return delta{}
	}
	from, n := to.Args[0], to.Args[1]
	if from.Op != kir.VarGet || from.Imm != v {
		from, n = n, from
	}
	c, ok := n.Int()
	if !ok || from.Op != kir.VarGet || from.Imm != v {
		return delta{}
	}
	if to.Op == kir.PtrAdd {
		c += int64(to.Imm)
	}
	return delta{c, c < maxOffset && c > -maxOffset}
}
