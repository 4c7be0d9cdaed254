package luabind

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// OpenREPL gives scripts what a session at a terminal has besides: who() lists the globals that were set since, and
// describe(x) says what an array is like.
func OpenREPL(s *State) {
	known := map[string]bool{"who": true, "describe": true, "ans": true}
	for _, name := range globalNames(s) {
		known[name] = true
	}
	s.L.SetGlobal("who", s.Func(func(*lua.LState) int {
		s.Write(who(s, known))
		return 0
	}))
	s.L.SetGlobal("describe", s.Func(func(L *lua.LState) int {
		x, ok := array(L.Get(1))
		if !ok {
			s.raise(s.call().Errorf("describe", "a is %s, want an array", describe(L.Get(1))))
		}
		text, err := summary(s.Context(), x)
		if err != nil {
			s.raise(err)
		}
		s.Write(text + "\n")
		return 0
	}))
}

// EvalAll computes the arrays among values and in trees of them.
func EvalAll(ctx context.Context, s *State, values []lua.LValue) error {
	var xs []*tensor.Array
	for _, v := range values {
		if x, ok := array(v); ok {
			xs = append(xs, x)
		} else if t, ok := v.(*lua.LTable); ok && s.mx.nameOf(t) == "" {
			inside, err := flatten(ctx, t)
			if err != nil {
				return nil // what is no tree holds nothing to compute
			}
			xs = append(xs, inside...)
		}
	}
	return tensor.Eval(ctx, xs...)
}

// globalNames are the names of the globals, sorted.
func globalNames(s *State) []string {
	s.Unfold(s.L.G.Global)
	var names []string
	s.L.G.Global.ForEach(func(k, _ lua.LValue) {
		if name, ok := k.(lua.LString); ok {
			names = append(names, string(name))
		}
	})
	slices.Sort(names)
	return names
}

// who is a line for each global that is not known: its name, what it is, and what it takes.
func who(s *State, known map[string]bool) string {
	var b strings.Builder
	for _, name := range globalNames(s) {
		if known[name] {
			continue
		}
		v := s.L.G.Global.RawGetString(name)
		what := typeName(v)
		switch v := v.(type) {
		case lua.LNumber, lua.LBool:
			what += " " + v.String()
		case lua.LString:
			what += " " + quote(string(v))
		case *lua.LTable:
			entries := 0
			v.ForEach(func(_, _ lua.LValue) { entries++ })
			what += " of " + tensor.Count(entries, "entry")
		}
		if x, ok := array(v); ok {
			what = fmt.Sprintf("array %v, %s", x.Spec(), bytesText(x.Size()*x.DType().Size()))
		}
		fmt.Fprintf(&b, "%-16s %s\n", name, what)
	}
	if b.Len() == 0 {
		return "no global was set in this session\n"
	}
	return b.String()
}

// bytesText is a number of bytes with its unit.
func bytesText(n int) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	size, i := float64(n), 0
	for size >= 1000 && i < len(units)-1 {
		size, i = size/1000, i+1
	}
	return fmt.Sprintf("%.3g %s", size, units[i])
}

// summary is an array's dtype, shape and size, and the least, greatest and mean of its elements with their standard
// deviation, in float64. It evaluates the array.
func summary(ctx context.Context, x *tensor.Array) (string, error) {
	text := fmt.Sprintf("%v, %s, %s", x.Spec(), tensor.Count(x.Size(), "element"),
		bytesText(x.Size()*x.DType().Size()))
	if x.Size() == 0 || x.DType() == tensor.Complex64 {
		return text, nil
	}
	values, err := ops.ToSlice[float64](ctx, ops.AsType(x, tensor.Float64, wide(nil)))
	if err != nil {
		return "", err
	}
	least, greatest, sum, finite, nan := math.Inf(1), math.Inf(-1), 0.0, 0, 0
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			nan++
		case !math.IsInf(v, 0):
			least, greatest, sum, finite = min(least, v), max(greatest, v), sum+v, finite+1
		}
	}
	others := fmt.Sprintf("%d NaN, %d infinite", nan, len(values)-finite-nan)
	if finite == 0 {
		return text + "\n" + others, nil
	}
	mean, squares := sum/float64(finite), 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			squares += (v - mean) * (v - mean)
		}
	}
	text += fmt.Sprintf("\nmin %.6g, max %.6g, mean %.6g, std %.6g", least, greatest, mean,
		math.Sqrt(squares/float64(finite)))
	if finite < len(values) {
		text += " of the finite ones; " + others
	}
	return text, nil
}
