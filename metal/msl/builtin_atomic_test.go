package msl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which atomic functions Metal has: those of its specification (2.6, 6.15), as its compiler accepts and refuses them.
// Of a float there are no min and max (_valid_fetch_max_type does not hold), in threadgroup memory there is no float;
// of 64 bits there are only min and max without a result; a compare and exchange is weak; there is no atomic_long.
func TestAtomicsThatMetalHas(t *testing.T) {
	t.Parallel()
	const any = "load store exchange compare_exchange_weak"
	const ints = any + " fetch_add fetch_sub fetch_min fetch_max fetch_and fetch_or fetch_xor"
	has := map[string]string{
		"device int": ints, "threadgroup int": ints, "device uint": ints, "threadgroup uint": ints,
		"device bool": any, "threadgroup bool": any, "device float": any + " fetch_add fetch_sub", "device ulong": "min max",
	}
	calls := map[string]string{
		"load": "T x = atomic_load_explicit(p, memory_order_relaxed)", "store": "atomic_store_explicit(p, T(1), relaxed)",
		"exchange": "T x = atomic_exchange_explicit(p, T(1), relaxed)",
		"compare_exchange_weak": "T e = T(1); bool x = atomic_compare_exchange_weak_explicit(p, &e, T(2), relaxed, " +
			"relaxed)",
		"compare_exchange_strong": "T e = T(1); bool x = atomic_compare_exchange_strong_explicit(p, &e, T(2), relaxed, " +
			"relaxed)",
		"init": "atomic_init(p, T(1))",
		"min":  "atomic_min_explicit(p, T(1), relaxed)", "max": "atomic_max_explicit(p, T(1), relaxed)",
		"max with a result": "T x = atomic_max_explicit(p, T(1), relaxed)",
	}
	for _, op := range []string{"add", "sub", "min", "max", "and", "or", "xor"} {
		calls["fetch_"+op] = fmt.Sprintf("T x = atomic_fetch_%s_explicit(p, T(1), relaxed)", op)
	}
	for _, space := range []string{"device", "threadgroup"} {
		for _, typ := range []string{"int", "uint", "bool", "float", "ulong", "long", "half", "short"} {
			for op, call := range calls {
				text := "using namespace metal;\nusing T = " + typ + "; constexpr constant auto relaxed = memory_order_relaxed;\n" +
					"kernel void k(" + space + " atomic<T> *p [[NAME(0)]]) { " + call + "; }"
				name := map[string]string{"device": "buffer", "threadgroup": "threadgroup"}[space]
				_, err := Compile(Source{Name: "s", Text: strings.Replace(text, "NAME", name, 1)}, Options{})
				if strings.Contains(" "+has[space+" "+typ]+" ", " "+op+" ") {
					require.NoError(t, err, "%s %s: %s", space, typ, call)
				} else {
					require.Error(t, err, "%s %s: %s", space, typ, call)
				}
			}
		}
	}
	for call, want := range map[string]string{
		"device atomic_ulong *p = (device atomic_ulong *)x; atomic_fetch_add_explicit(p, 1ul, memory_order_relaxed)": "" +
			"there is no 'atomic_fetch_add_explicit' of atomic<ulong> in device memory: Metal has of it min, max",
		"device atomic_float *p = (device atomic_float *)x; atomic_fetch_max_explicit(p, 1.0f, memory_order_relaxed)": "" +
			"of atomic<float> in device memory: Metal has of it load, store, exchange, compare_exchange_weak, fetch_add",
		"threadgroup atomic_float f; atomic_store_explicit(&f, 1.0f, memory_order_relaxed)": "" +
			"of atomic<float> in threadgroup memory: Metal has atomic floats in device memory only",
		"atomic<long> *p": "atomic holds int, uint, bool, float or ulong, not <long>",
		"device atomic_uint *p = (device atomic_uint *)x; atomic_init(p, 1u)": "write atomic_store_explicit(p, v, " +
			"memory_order_relaxed)",
		"device atomic_uint *p = (device atomic_uint *)x; uint e; atomic_compare_exchange_strong_explicit(p, &e, 1u)": "" +
			"did you mean 'atomic_compare_exchange_weak_explicit'?",
	} {
		_, err := Compile(Source{Name: "s", Text: "using namespace metal;\nkernel void k(device void *x [[buffer(0)]]) { " +
			call + "; }"}, Options{})
		require.ErrorContains(t, err, want)
	}
}
