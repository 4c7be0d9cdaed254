package jit_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// TestWritesOfInputs: whichever way machine code would do a store, one to a read-only buffer is the interpreter's fault
// and changes nothing.
func TestWritesOfInputs(t *testing.T) {
	t.Parallel()
	for body, what := range map[string]string{
		"a[3] = 1;":                 "write of a[3]",
		"a[i] = i;":                 "write of a[0]",
		"a[i + 64] = i;":            "write of a[64]", // also out of range: an input comes first
		"a[31 - i % 32] = i;":       "write of a[31]",
		"a[4 * (i % 8)] = i;":       "write of a[0]",
		"a[ix[i] % 32] = i;":        "write of a[0]",
		"a[long(ix[i]) % 31L] = i;": "write of a[0]",
		"for (uint j = i % 8; j < 32; j += 8) a[j] = i;":                                                "write of a[0]",
		"a[2 * (i % 16)] = i; a[2 * (i % 16) + 1] = i;":                                                 "write of a[0]",
		"device float *f = (device float *)a; f[i % 32] = 1.5f;":                                        "write of a[0]",
		"device half *h = (device half *)a; h[i % 64] = 1.5h;":                                          "write of a[0]",
		"device uchar *c = (device uchar *)a; c[i] = 9;":                                                "write of a[0]",
		"device bool *c = (device bool *)a; c[i] = i & 1;":                                              "write of a[0]",
		"device ulong *l = (device ulong *)a; l[i % 16] = i;":                                           "write of a[0]",
		"device ulong *l = (device ulong *)a; l[ix[i] % 16] = i;":                                       "write of a[0]",
		"device uchar *c = (device uchar *)a; c[ix[i] % 64] = 9;":                                       "write of a[0]",
		"device uint4 *v = (device uint4 *)a; v[i % 8] = uint4(i);":                                     "write of a[0]",
		"if (i == 5) a[i] = 1;":                                                                         "write of a[5]",
		"device uint *p = ix[1] ? a : out; p[i % 32] = 2;":                                              "write of a[0]",
		"device uint *p = ix[i] ? a : out; p[i % 32] = 2;":                                              "write of a[1]",
		"device uint *p[2] = {a, out}; p[(ix[i] + 1) & 1][i % 32] = 2;":                                 "write of a[1]",
		"struct { device uint *p, *q; } s = {out, a}; (ix[1] ? s.q : s.p)[1] = 2;":                      "write of a[1]",
		"ulong q = (ulong)a; *(device uint *)(q + 4 * ix[1]) = 2;":                                      "write of a[1]",
		"atomic_fetch_add_explicit((device atomic_uint *)a, 1u, memory_order_relaxed);":                 "atomic a[0]",
		"atomic_fetch_min_explicit((device atomic_uint *)a + i % 32, i, memory_order_relaxed);":         "atomic a[0]",
		"atomic_fetch_or_explicit((device atomic_uint *)a + ix[i] % 32, i, memory_order_relaxed);":      "atomic a[0]",
		"out[i] = atomic_exchange_explicit((device atomic_uint *)a + i % 32, i, memory_order_relaxed);": "atomic a[0]",
		"out[i] = atomic_fetch_add_explicit((device atomic_uint *)a + 2, i, memory_order_relaxed);":     "atomic a[2]",
		"atomic_store_explicit((device atomic_uint *)a + 1, i, memory_order_relaxed);":                  "atomic a[1]",
		"atomic_fetch_add_explicit((device atomic_float *)a + i % 32, 1.f, memory_order_relaxed);":      "atomic a[0]",
		"uint w = 7; atomic_compare_exchange_weak_explicit((device atomic_uint *)a, &w, 1u, memory_order_relaxed, " +
			"memory_order_relaxed);": "atomic a[0]",
		"atomic_fetch_add_explicit((device atomic_uint *)(ix[i] ? a : out) + i % 32, 1u, memory_order_relaxed);": "" +
			"atomic a[1]",
		"out[i] = atomic_load_explicit((device atomic_uint *)a + i % 32, memory_order_relaxed) + a[i % 32];": "",
		"out[i] = atomic_load_explicit((device atomic_uint *)(ix[i] ? a : out), memory_order_relaxed);":      "",
	} {
		text := "using namespace metal;\nkernel void k(device uint *a, device uint *out, const device uint *ix,\n" +
			"    uint i [[thread_position_in_grid]]) {\n" + body + "\n}\n"
		mod, err := msl.Compile(msl.Source{Name: "k", Text: text}, msl.Options{})
		require.NoError(t, err, body)
		k := mod.Kernels[0]
		require.True(t, k.Params[2].ReadOnly && !k.Params[2].Write, body)
		k.Params[0].ReadOnly, k.Params[0].Write = true, false // as const, and nobody has looked at the text
		ref, err := interp.Prepare(k, mod.Files)
		require.NoError(t, err, body)
		checked := false
		run := func(label string, r runner, l launch.Launch) {
			a, ix := bytes.Repeat([]byte{7, 0, 0, 0}, 32), make([]byte, 4*64)
			for i := range 64 {
				ix[4*i] = byte(i)
			}
			before := bytes.Clone(a)
			l.Grid, l.Threadgroup, l.Buffers = [3]int{64, 1, 1}, [3]int{64, 1, 1}, [][]byte{a, make([]byte, 4*64), ix}
			err := r(l, 1)
			require.Equal(t, before, a, "%s: %s", label, body)
			if what == "" {
				require.NoError(t, err, "%s: %s", label, body)
				return
			}
			what := strings.Replace(what, "atomic", "atomic access of", 1)
			require.EqualError(t, err, "[k] "+what+", which is an input: kernels only read those, but for mutable_inputs (k:4:"+
				column(err)+")", "%s: %s", label, body)
			checked = true
		}
		run("interp", runs(ref.NewRun), launch.Launch{})
		run("interp, validating", runs(ref.NewRun), launch.Launch{Validate: true})
		for _, o := range variants(levels(t)) {
			p, err := jit.Prepare(k, mod.Files, o)
			require.NoError(t, err)
			run(label(o), runs(p.NewRun), launch.Launch{})
		}
		require.Equal(t, what != "", checked)
	}
}

// column is what a fault's place ends with.
func column(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	return text[bytes.LastIndexByte([]byte(text), ':')+1 : len(text)-1]
}
