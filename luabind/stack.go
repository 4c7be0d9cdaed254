package luabind

import (
	"context"
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// holdsArray reports whether a nested table holds an array, as far down as tables can be arrays, as long as the context
// is not done.
func holdsArray(ctx context.Context, v lua.LValue) bool {
	const short = 16 // tables so short that going over one again costs nothing, unless it holds tables
	seen, steps := map[*lua.LTable]bool{}, 0
	var holds func(t *lua.LTable, depth int) bool
	holds = func(t *lua.LTable, depth int) bool {
		n := t.Len()
		mark := n > short
		for i := 1; i <= n; i++ {
			if steps++; steps%visitsPerPoll == 0 && ctx.Err() != nil {
				return false // which the caller comes to
			}
			switch v := t.RawGetInt(i).(type) {
			case *lua.LUserData:
				if _, ok := array(v); ok {
					return true
				}
			case *lua.LTable:
				mark = true
				if depth < maxRank && !seen[v] && v.Metatable == lua.LNil && holds(v, depth+1) {
					return true
				}
			}
		}
		if mark {
			seen[t] = true
		}
		return false
	}
	t, ok := v.(*lua.LTable)
	return ok && holds(t, 0)
}

// visitsPerPoll is how many values a walk of tables visits between two looks at the context.
const visitsPerPoll = 1 << 12

// stacker makes an array of a nested table that holds arrays, as MLX does: it stacks what the items make. Numbers
// beside arrays are operands: whole ones take the arrays' dtype.
type stacker struct {
	a     *args
	given bool         // the array's dtype is given:
	dtype tensor.DType // it, or that which numbers take
	made  map[*lua.LTable]*tensor.Array
}

// stack makes the array of a table at a depth. A table in many places is made once.
func (s *stacker) stack(t *lua.LTable, depth int) *tensor.Array {
	a := s.a
	if made := s.made[t]; made != nil {
		return made
	}
	if depth == maxRank {
		a.fail("val is a table nested deeper than %d levels", maxRank)
	}
	if depth == 0 {
		s.made = map[*lua.LTable]*tensor.Array{}
		if !s.given {
			s.dtype = s.ofNumbers(t)
		}
	}
	items := make([]*tensor.Array, t.Len())
	for i := range items {
		items[i] = s.item(t.RawGetInt(i+1), depth)
		if a, b := items[i].Spec().Shape, items[0].Spec().Shape; !a.Equal(b) {
			s.a.fail("val is not rectangular: item %d has shape %v, item 1 has %v", i+1, a, b)
		}
	}
	made := ops.Stack(items, 0, a.Ctx)
	s.made[t] = made
	return made
}

// item makes the array of an item of a table at a depth.
func (s *stacker) item(v lua.LValue, depth int) *tensor.Array {
	if x, ok := array(v); ok {
		if s.given {
			return ops.AsType(x, s.dtype, s.a.Ctx)
		}
		return x
	}
	if t, ok := v.(*lua.LTable); ok && holdsArray(s.a.s.Context(), t) {
		return s.stack(t, depth+1)
	}
	d := s.dtype
	if n, ok := v.(lua.LNumber); ok && !s.given && d.IsInteger() && float64(n) != math.Trunc(float64(n)) {
		d = tensor.Float32
	}
	x, err := arrayOf(s.a.s.Context(), s.a.Ctx, v, d, false)
	if err != nil {
		s.a.fail("val %w", err)
	}
	return x
}

// ofNumbers is the dtype of numbers beside the arrays of a nested table.
func (s *stacker) ofNumbers(v lua.LValue) tensor.DType {
	d, seen := tensor.Bool, map[*lua.LTable]bool{}
	var visit func(v lua.LValue, depth int)
	visit = func(v lua.LValue, depth int) {
		if x, ok := array(v); ok {
			d = tensor.Promote(d, x.DType())
		}
		if t, ok := v.(*lua.LTable); ok && !seen[t] && depth < maxRank {
			seen[t] = true
			for i := 1; i <= t.Len(); i++ {
				visit(t.RawGetInt(i), depth+1)
			}
		}
	}
	visit(v, 0)
	if d == tensor.Bool {
		return tensor.Int32 // as a Python int beside bools
	}
	return d
}

// complexPart is argument i of mx.complex as a number.
func (a *args) complexPart(i int) float32 {
	if n, ok := a.raw[i].(lua.LNumber); ok {
		return float32(n)
	}
	n, _ := a.f.params[i].Value.(float64)
	return float32(n)
}

// complexArray is re + im*1j where one of the two is an array; else it is nil.
func complexArray(a *args) *tensor.Array {
	given := false
	for _, v := range a.raw {
		x, ok := array(v)
		if ok && x.DType() == tensor.Complex64 {
			a.fail("re and im are real: one is %s", describe(v))
		}
		given = given || ok
	}
	if !given {
		for i, v := range a.raw {
			if _, ok := v.(lua.LNumber); !ok && v != lua.LNil {
				a.fail("%s %w", a.f.params[i].Name, wrong(v, "a number or an array"))
			}
		}
		return nil
	}
	i := ops.FromSlice([]complex64{1i}, []int{}, a.Ctx)
	im := ops.Multiply(ops.AsType(a.Array(1), tensor.Complex64, a.Ctx), i, a.Ctx)
	return ops.Add(ops.AsType(a.Array(0), tensor.Complex64, a.Ctx), im, a.Ctx)
}
