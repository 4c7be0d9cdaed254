package luabind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// TestKeywordsOfAnyValue: a parameter that takes any value may be given by its name, in a table in its own place or
// before it, wherever it stands.
func TestKeywordsOfAnyValue(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	loadLibrary(s)
	all := allFunctions()
	for _, f := range s.mx.classes {
		all = append(all, f)
	}
	tried := 0
	for _, f := range all {
		for i, p := range f.params {
			if !p.Is(sig.KindAny) || p.Many || len(f.params) == 1 {
				continue
			}
			for from := 0; from <= i; from++ {
				given := s.L.NewTable()
				for j := from; j < len(f.params); j++ {
					if q := &f.params[j]; j == i || !q.optional && !q.Many {
						given.RawSetString(q.Name, s.L.NewTable())
					}
				}
				a := &args{s: s, f: f}
				require.True(t, a.isKeywords(given, from), "%s: %s in the place of argument %d", f.name, p.Name, from+1)
				given.RawSetString("other", lua.LTrue)
				require.Equal(t, !f.params[from].takesTree(), a.isKeywords(given, from), "%s: a value with other names", f.name)
				tried++
			}
		}
	}
	require.Greater(t, tried, 25)
}

// TestTablesOfNames: such keywords do what they do by their place, and values with names of their own stay values.
func TestTablesOfNames(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	_, err := s.Run(t.Context(), strings.NewReader(`
		local nn, g = mx.nn, mx.distributed.init()
		local grads = {w = mx.ones({2}), group = mx.zeros({3})}
		assert(nn.average_gradients(grads, {group = g}) == grads)
		assert(nn.average_gradients{gradients = grads, group = g} == grads)
		assert(nn.average_gradients{group = grads.w}.group == grads.w) -- it has no gradients: it is the gradients
		assert(not pcall(nn.average_gradients, grads, {group = 1}))
		assert(not pcall(nn.average_gradients, grads, {groups = g}))

		local l = nn.Linear(2, 1)
		local f = nn.checkpoint(l, {fn = function(x) return l(x) * 3 end})
		local x = mx.ones({1, 2})
		assert(mx.allclose(f(x), l(x) * 3):item())
		assert(nn.checkpoint{module = l}(x):item() == l(x):item())
		local _, gradients = nn.value_and_grad(l, {fn = function(x) return l(x):sum() end})(x)
		assert(gradients.weight:tolist()[1][1] == 1)
		assert(nn.RNN(2, 3, {nonlinearity = mx.nn.relu}).nonlinearity == mx.nn.relu)
		assert(mx.grad{fun = function(a, b) return a * b end, argnums = 1}(mx.array(2), mx.array(5)):item() == 2)
		assert(mx.array{val = {1, 2}, dtype = mx.int8}.dtype == mx.int8)

		assert(mx.type{v = 1} == "table")
		assert(mx.utils.tree_map(function(v) return v * 2 end, {tree = mx.array(3)}).tree:item() == 6)
		assert(mx.utils.tree_flatten({prefix = mx.array(1), tree = mx.array(2)})[1][1] == "prefix")
		mx.scope(function() mx.keep({t = x}) end)
	`), "keywords")
	require.NoError(t, err)
}
