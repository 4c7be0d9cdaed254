package rooms_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// mutant is a function whose signature has one fault: what it reads is as before.
type mutant struct {
	f    *sig.Func
	what string
}

// mutants are all swaps of two parameters of f, and each default changed, or given where there is none.
func mutants(f *sig.Func) []mutant {
	var out []mutant
	add := func(what string, change func(params []sig.Param)) {
		g := *f
		g.Params = slices.Clone(f.Params)
		change(g.Params)
		out = append(out, mutant{&g, what})
	}
	for j := range f.Params {
		for i := range j {
			add(fmt.Sprintf("%s and %s swapped", f.Params[i].Name, f.Params[j].Name),
				func(params []sig.Param) { params[i], params[j] = params[j], params[i] })
		}
		p := &f.Params[j]
		if text, value := otherDefault(p); p.Optional && value != nil {
			add(fmt.Sprintf("the default of %s is %q, not %q", p.Name, text, p.Default), func(params []sig.Param) {
				params[j].Default, params[j].Value = text, value
			})
		}
	}
	return out
}

// otherDefault is a default that the parameter does not have, and what it stands for; nil if its kind has none.
func otherDefault(p *sig.Param) (string, any) {
	for _, w := range p.Words {
		if w != p.Default {
			return w, w
		}
	}
	switch v := p.Value.(type) {
	case int:
		return fmt.Sprint(v + 1), v + 1
	case float64:
		return fmt.Sprint(v + 0.5), v + 0.5
	}
	shape := tensor.Sizes(2)
	others := map[sig.Kind][]any{
		sig.KindOperand: {2.0}, sig.KindFloat: {2.0}, sig.KindInt: {1}, sig.KindAxis: {0},
		sig.KindInts: {[]int{1}, []int{2}}, sig.KindAxes: {[]int{0}}, sig.KindIntLists: {&sig.IntLists{Lists: [][]int{{3}}}},
		sig.KindNumber: {2.0}, sig.KindBool: {true, false}, sig.KindString: {"none"},
		sig.KindDType: {tensor.Float16, tensor.BFloat16}, sig.KindShape: {&shape},
	}
	for _, k := range p.Kinds {
		for _, v := range others[k] {
			if text := fmt.Sprint(v); text != p.Default && text != fmt.Sprint(p.Value) {
				return text, v
			}
		}
	}
	return "", nil
}

// killed says by which checks a mutant is found: MLX's list, and golden calls of the function.
func killed(t *testing.T, m mutant, calls []*optest.GoldenCall) (byList, byGolden bool) {
	t.Helper()
	if mlx := sig.MLXName(m.f.Name); mlx != nil && len(mlx.Calls) > 0 {
		byList = mlx.Differs(m.f.Params) != ""
	}
	find := func(name string) *sig.Func {
		if name == m.f.Name {
			return m.f
		}
		return sig.Lookup(name)
	}
	for _, named := range []bool{true, false} {
		for _, c := range calls {
			for _, i := range someCases(c) {
				outs, err := c.Make(find, c.Inputs(t, i), named)
				if c.Compare(t, i, outs, err) != nil {
					return byList, true
				}
			}
		}
	}
	return byList, false
}

// someCases are a call's first cases of different shapes, or all if their elements are given: dtypes alone do not tell
// parameters apart.
func someCases(c *optest.GoldenCall) []int {
	var out []int
	seen := map[string]bool{}
	for i, g := range c.Cases {
		shapes := ""
		for _, in := range g.In {
			if field := strings.Fields(in); len(field) == 5 {
				shapes += field[0]
			} else {
				shapes += in
			}
		}
		if !seen[shapes] {
			seen[shapes] = true
			out = append(out, i)
		}
	}
	return out
}

// isSame reports whether the function says that a mutant gives the same results.
func isSame(m mutant) bool {
	for fault := range m.f.Same {
		if strings.HasPrefix(m.what, fault) {
			return true
		}
	}
	return false
}

// callsOf are the golden calls by the functions that occur in them.
func callsOf(t *testing.T) map[string][]*optest.GoldenCall {
	t.Helper()
	out := map[string][]*optest.GoldenCall{}
	for _, c := range optest.GoldenCalls(t) {
		for _, name := range c.Functions() {
			out[name] = append(out[name], c)
		}
	}
	return out
}

// TestMutants: whoever swaps two parameters of a function in its signature, or changes a default, hears of it: from
// MLX's list, and from golden data unless the results are the same.
func TestMutants(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	calls := callsOf(t)
	list, golden, all := 0, 0, 0
	for _, f := range sig.All() {
		if f.Alias != "" { // its parameters are those of the function that it stands for
			continue
		}
		for _, m := range mutants(f) {
			byList, byGolden := killed(t, m, calls[f.Name])
			all++
			if byList {
				list++
			}
			if byGolden {
				golden++
			}
			switch {
			case !byList && !byGolden:
				t.Errorf("%s: %s, and nothing finds it", f.Name, m.what)
			case !byGolden && !isSame(m):
				t.Errorf("%s: %s, and only MLX's list finds it: golden data lack a call that tells, or sig.Same", f.Name, m.what)
			case byGolden && isSame(m):
				t.Errorf("%s: %s is found by golden data, but sig.Same says that nothing changes", f.Name, m.what)
			}
		}
		for fault, why := range f.Same {
			require.True(t, slices.ContainsFunc(mutants(f), func(m mutant) bool { return strings.HasPrefix(m.what, fault) }),
				"%s has no fault %q (%s)", f.Name, fault, why)
		}
	}
	t.Logf("%d mutants: MLX's list finds %d, golden calls find %d", all, list, golden)
	require.Greater(t, all, 400)
}

// A mutant survives where the call that would tell is missing: the test can fail.
func TestMutantsCanSurvive(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	calls := callsOf(t)["random.bits"] // which MLX's list does not have
	f := sig.Lookup("random.bits")
	survivors := func(calls []*optest.GoldenCall) (names []string) {
		for _, m := range mutants(f) {
			if byList, byGolden := killed(t, m, calls); !byList && !byGolden {
				names = append(names, m.what)
			}
		}
		return names
	}
	require.Empty(t, survivors(calls))
	without := slices.DeleteFunc(slices.Clone(calls), func(c *optest.GoldenCall) bool { return len(c.Args) < 3 })
	require.Equal(t, []string{`the default of width is "5", not "4"`}, survivors(without)[1:])
	require.Len(t, survivors(nil), len(mutants(f)))
}
