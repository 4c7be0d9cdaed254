package luabind

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// A script for several processes runs as a group of one: what MLX gives for a group of one.
func TestDistributed(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	asked(t, s, "d = mx.distributed\nfunction squares(x) return d.all_sum(x * x):sum() end return d")
	for script, want := range map[string]string{
		"d.init():rank()": "0",
		"d.init():size()": "1",
		"d.init{backend = 'mpi'}:split(3, -1):size()":             "1",
		"mx.type(d.init()) == d.Group":                            "true",
		"d.is_available()":                                        "false",
		"d.is_available('mpi')":                                   "false",
		"d.all_sum(mx.array({1, 2}), {group = d.init()})":         "array([1, 2], dtype=float32)",
		"d.all_sum(2)":                                            "array(2, dtype=int32)",
		"d.all_max(mx.array({true, false}))":                      "array([True, False], dtype=bool)",
		"d.all_min(mx.array({1, 2}, mx.int8), {stream = mx.cpu})": "array([1, 2], dtype=int8)",
		"d.all_gather(mx.array(1))":                               "array(1, dtype=float32)",
		"d.sum_scatter(mx.array({mx.complex(1, 2)}))":             "array([1+2j], dtype=complex64)",
		"mx.grad(squares)(mx.array({3, 4}))":                      "array([6, 8], dtype=float32)",
		"mx.vmap(d.all_gather, 1, 0)(mx.array({{1, 2}, {3, 4}}))": "array([[1, 3],\n       [2, 4]], dtype=float32)",
		"mx.compile(d.sum_scatter)(mx.array({5}))":                "array([5], dtype=float32)",
	} {
		require.Equal(t, want, asked(t, s, "return tostring((%s))", script).String(), script)
	}
	for script, want := range map[string]string{
		"d.init{strict = true}":                       "there is no backend \"any\", and strict asks for one",
		"d.init{backend = 'gloo'}":                    "backend is \"gloo\"",
		"d.send(mx.array(1), 0)":                      "[distributed.send] a group of one process",
		"d.recv({2}, mx.float32, 0)":                  "[distributed.recv] a group of one process",
		"d.recv_like(mx.array(1), 0)":                 "[distributed.recv_like] a group of one process",
		"d.all_sum(mx.array(1), {group = 3})":         "group is the number 3, want a group",
		"d.init().rank()":                             "methods are called with a colon, g:rank()",
		"d.init():split()":                            "color is missing",
		"d.init():split(1.5)":                         "color is 1.5, want an integer",
		"d.init{all_gather_factory = function() end}": "is for the backend \"jaccl\" alone",
	} {
		err := asked(t, s, "return tostring(select(2, pcall(function() return %s end)))", script)
		require.Equal(t, lua.LTString, err.Type())
		require.Contains(t, err.String(), want, script)
	}
}
