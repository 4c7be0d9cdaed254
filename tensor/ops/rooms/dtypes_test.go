package rooms_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// exception is a parameter of a function, "" for all that it has, and dtypes, nil for all.
type exception struct {
	fn, parameter string
	dtypes        []tensor.DType
	why           string
}

// noGolden says why some dtypes have no golden call.
var noGolden = []exception{
	{"block_masked_mm", "", []tensor.DType{tensor.Float64}, "with masks MLX's CPU has float32 only; a GPU has no float64"},
	{"convolve", "", []tensor.DType{tensor.Complex64}, "MLX refuses it, and NumPy has it"},
	{"einsum_path", "operands", nil, "it looks at shapes"},
	{"fast.gated_delta_update", "", []tensor.DType{tensor.Complex64}, "MLX's kernels have none: tensor/ops/WHY.md"},
	{"fft.istft", "window", []tensor.DType{tensor.Complex64}, "MLX's numbers have no meaning: tensor/ops/WHY.md"},
	{"fft.istft", "window", []tensor.DType{tensor.BFloat16}, "MLX squares it in its own dtype, here it becomes float32"},
	{"fft.stft", "window", []tensor.DType{tensor.BFloat16}, "MLX multiplies in its own dtype, here it becomes float32"},
	{"floor_divide", "", []tensor.DType{tensor.Complex64}, "MLX's quotients are not whole: tensor/ops/WHY.md"},
	{"hadamard_transform", "a", []tensor.DType{tensor.Float64, tensor.Complex64}, "tensor/ops/WHY.md"},
	{"quantize", "w", []tensor.DType{tensor.Float64}, "MLX's CPU has none, and mlxlua takes it: tensor/ops/WHY.md"},
	{"qqmm", "x", []tensor.DType{tensor.Float64}, "as that of quantize"},
	{"gather_qqmm", "x", []tensor.DType{tensor.Float64}, "as that of quantize"},
	{"random.bits", "key", nil, "MLX's Python has no such function"},
}

// TestGoldenDTypes fails where no golden call has MLX's result, or refusal, for a dtype of the arrays that a parameter
// takes, and no reason is listed.
func TestGoldenDTypes(t *testing.T) {
	type parameter struct{ fn, name string }
	has := map[parameter]map[tensor.DType]bool{}
	for _, c := range optest.GoldenCalls(t) {
		for i := range c.Cases {
			specs := c.Specs(t, i)
			for _, a := range c.Args {
				for _, k := range inputsOf(a.Value) {
					p := parameter{c.Fn, a.Name}
					if has[p] == nil {
						has[p] = map[tensor.DType]bool{}
					}
					has[p][specs[k].DType] = true
				}
			}
		}
	}
	used := make([]bool, len(noGolden))
	for p, dtypes := range has {
		for _, d := range tensor.DTypes() {
			if dtypes[d] {
				continue
			}
			at := slices.IndexFunc(noGolden, func(e exception) bool {
				return e.fn == p.fn && (e.parameter == "" || e.parameter == p.name) &&
					(e.dtypes == nil || slices.Contains(e.dtypes, d))
			})
			if at < 0 {
				t.Errorf("no golden call of %s has %v for %s: golden/dtypes.py makes them", p.fn, d, p.name)
				continue
			}
			used[at] = true
		}
	}
	for i, n := range noGolden {
		if !used[i] {
			t.Errorf("%s has golden calls, though %q", n.fn, n.why)
		}
	}
}

// inputsOf are the numbers of the inputs that an argument is, or is a list of.
func inputsOf(v any) []int {
	switch v := v.(type) {
	case []any:
		var out []int
		for _, e := range v {
			out = append(out, inputsOf(e)...)
		}
		return out
	case map[string]any:
		if k, ok := v["in"].(float64); ok {
			return []int{int(k)}
		}
	}
	return nil
}

var allLayouts = flag.Bool("layouts", false, "make golden calls of every dtype in every layout")

// laidCall is a golden call of which some inputs are not in row-major order.
type laidCall struct {
	call   *optest.GoldenCall
	i      int // which case
	layout string
	outs   []*tensor.Array
	err    error
	want   []*tensor.Array // of inputs in row-major order, where the layout repeats elements
}

// TestGoldenLayouts makes a golden call of each function for each dtype in the six layouts of optest: MLX's result is
// of the elements, wherever they lie. Without -layouts each function has calls of one or two dtypes, in a layout each.
func TestGoldenLayouts(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	var calls []laidCall
	var all []*tensor.Array
	turn, seen := map[string]int{}, map[string]bool{}
	for _, c := range optest.GoldenCalls(t) {
		for i, g := range c.Cases {
			specs := c.Specs(t, i)
			if g.Refused || len(specs) == 0 || len(specs[0].Shape) == 0 || specs[0].Shape.Size() < 2 {
				continue
			}
			key := c.Fn + specs[0].DType.String()
			if seen[key] {
				continue
			}
			seen[key] = true
			turn[c.Fn]++
			names := optest.Layouts()
			if !*allLayouts {
				if (turn[c.Fn]+len(turn))%8 != 0 {
					continue
				}
				k := (turn[c.Fn]/8 + len(turn)) % len(names)
				names = names[k : k+1]
			}
			for _, name := range names {
				if m := laid(t, c, i, name); m != nil {
					calls, all = append(calls, *m), append(append(all, m.outs...), m.want...)
				} else {
					seen[key] = false
				}
			}
		}
	}
	_ = tensor.Eval(t.Context(), slices.DeleteFunc(all, func(y *tensor.Array) bool { return y.Err() != nil })...)
	for _, m := range calls {
		diff := m.call.Compare(t, m.i, m.outs, m.err)
		if m.want != nil {
			diff = m.call.Alike(t, m.want, m.outs)
		}
		if diff != nil {
			t.Errorf("%v of %v, %s: %v", m.call, m.call.Cases[m.i].In, m.layout, diff)
		}
	}
	require.Greater(t, len(calls), len(turn)/2)
	t.Log(len(calls), "calls")
}

func laid(t *testing.T, c *optest.GoldenCall, i int, layout string) *laidCall {
	t.Helper()
	in, plain := c.Laid(t, i, layout)
	if in == nil {
		return nil
	}
	m := &laidCall{call: c, i: i, layout: layout}
	m.outs, m.err = c.Make(sig.Lookup, in, false)
	if plain != nil {
		var err error
		m.want, err = c.Make(sig.Lookup, plain, false)
		require.NoError(t, err)
	}
	return m
}
