package msl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPreludeFunctions checks the bodies of all functions of the prelude and the math library that are no
// templates: a kernel compiles only those that it uses.
func TestPreludeFunctions(t *testing.T) {
	t.Parallel()
	pre, err := prelude()
	require.NoError(t, err)
	f, errs := Parse(Unit{Sources: []Source{{Name: "empty", Text: ""}}, Parent: pre.file})
	require.Empty(t, errs)
	build := newCompiler(pre.file, Options{Float64: true})
	build.freezing = true
	build.declareAll(&env{kind: envNamespace}, pre.file.Decls)
	require.NotEmpty(t, build.order)

	c := newCompiler(f, Options{Float64: true})
	c.root = &env{kind: envNamespace, frozen: pre.root}
	c.overlay[pre.root] = c.root
	var visit func(e *env)
	seen := map[*env]bool{}
	n := 0
	visit = func(e *env) {
		if seen[e] {
			return
		}
		seen[e] = true
		for _, x := range e.names {
			if x.kind == eNamespace {
				visit(x.ns)
			}
			for _, fn := range x.funcs {
				if fn.tmpl != nil || fn.decl.Body == nil {
					continue
				}
				inst := c.chooserIn(fn.env).instFor(fn, nil)
				if inst == nil {
					continue
				}
				g := newGenerator(c, "check", fn.env)
				var args []value
				for i := range inst.params {
					args = append(args, g.c.types.dummy(inst.params[i].q.noRef()))
				}
				c.instrs = 0
				g.calls.call(inst, args, nil, fn.decl.Pos())
				n++
			}
		}
	}
	visit(pre.root)
	require.Empty(t, c.list, "%v", c.list.Err())
	require.Greater(t, n, 3)
}
