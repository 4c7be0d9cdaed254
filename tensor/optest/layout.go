package optest

import (
	"bytes"
	"fmt"
	"math/cmplx"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// layout makes an array with the elements v that does not lie in row-major order.
type layout struct {
	name string
	make func(s tensor.Spec, v []complex128) *tensor.Array
	// repeated says that only v's first elements along axis 0 are used, for every index of it.
	repeated bool
}

var layouts = []layout{
	{name: "every second", make: func(s tensor.Spec, v []complex128) *tensor.Array { return spaced(s, v, 2) }},
	{name: "reversed", make: func(s tensor.Spec, v []complex128) *tensor.Array { return spaced(s, v, -1) }},
	{name: "every third, reversed", make: func(s tensor.Spec, v []complex128) *tensor.Array { return spaced(s, v, -3) }},
	{name: "transposed", make: transposed},
	{name: "at an offset", make: offset},
	{name: "broadcast", make: broadcast, repeated: true},
}

// spaced puts the elements step apart along the last axis.
func spaced(s tensor.Spec, v []complex128, step int) *tensor.Array {
	r := len(s.Shape)
	if r == 0 {
		return array(s, v)
	}
	n := s.Shape[r-1]
	wide := n * max(step, -step)
	big := tensor.Spec{Shape: append(s.Shape[:r-1:r-1], wide), DType: s.DType}
	w := make([]complex128, big.Shape.Size())
	for i := range w {
		w[i] = 1 // what lies between
	}
	for i, x := range v {
		row, col := i/n, i%n
		if step < 0 {
			w[row*wide+wide-1+col*step] = x
		} else {
			w[row*wide+col*step] = x
		}
	}
	return ops.Slice(array(big, w), []ops.Part{ops.Ellipsis(), ops.Span(ops.None, ops.None, step)})
}

// transposed lays the axes out in reverse order.
func transposed(s tensor.Spec, v []complex128) *tensor.Array {
	rev := s.Shape.Clone()
	slices.Reverse(rev)
	strides := rev.Strides() // of s's axes, last first
	w := make([]complex128, len(v))
	for i, x := range v {
		at, rest := 0, i
		for axis := len(s.Shape) - 1; axis >= 0; axis-- {
			at += rest % s.Shape[axis] * strides[len(strides)-1-axis]
			rest /= s.Shape[axis]
		}
		w[at] = x
	}
	return ops.Transpose(array(tensor.Spec{Shape: rev, DType: s.DType}, w), nil)
}

// offset takes a slice out of the middle of a larger array.
func offset(s tensor.Spec, v []complex128) *tensor.Array {
	w := slices.Concat(make([]complex128, len(v)), v, make([]complex128, len(v)))
	big := tensor.Spec{Shape: append(tensor.Shape{3}, s.Shape...), DType: s.DType}
	return ops.Slice(array(big, w), []ops.Part{ops.At(1)})
}

// broadcast repeats the first row along axis 0 with stride 0.
func broadcast(s tensor.Spec, v []complex128) *tensor.Array {
	if len(s.Shape) == 0 || s.Shape[0] == 0 {
		return array(s, v)
	}
	row := tensor.Spec{Shape: append(tensor.Shape{1}, s.Shape[1:]...), DType: s.DType}
	return ops.BroadcastTo(array(row, v[:row.Shape.Size()]), tensor.Sizes(s.Shape...))
}

// firstRows is v with each row along axis 0 replaced by the first.
func firstRows(s tensor.Shape, v []complex128) []complex128 {
	if len(s) == 0 || s[0] == 0 {
		return v
	}
	return slices.Repeat(v[:len(v)/s[0]], s[0])
}

// checkLayouts compares with the result for contiguous inputs of the same elements, every input alone and all
// together in each layout, and with no elements where a size has a name.
func checkLayouts(t *testing.T, op Subject) {
	for ci, c := range op.Cases {
		var got, want []*tensor.Array
		var names []string
		for _, d := range op.DTypes {
			specs := c.specs(d, c.sizes(nil))
			for _, l := range layouts {
				for only := -1; only < len(specs); only++ {
					if only >= 0 && len(specs) == 1 {
						break
					}
					plain, laid := make([]*tensor.Array, len(specs)), make([]*tensor.Array, len(specs))
					for i, s := range specs {
						v := c.Inputs[i].gen.values(i, s.Shape.Size(), s.DType)
						if only >= 0 && only != i {
							plain[i] = array(s, v)
							laid[i] = array(s, v)
							continue
						}
						if l.repeated {
							v = firstRows(s.Shape, v)
						}
						plain[i], laid[i] = array(s, v), l.make(s, v)
					}
					a, b := op.Fn(plain), op.Fn(laid)
					require.Len(t, b, len(a))
					for range a {
						names = append(names, fmt.Sprintf("case %d, %v, %s, input %d", ci, d, l.name, only))
					}
					want, got = append(want, a...), append(got, b...)
				}
			}
		}
		w, g := evaluate(t, want), evaluate(t, got)
		for i := range w {
			same(t, w[i], g[i], op.tol(w[i].spec.DType), "%s", names[i])
		}
	}
}

// checkUnfused compares bytes: a fused kernel and one kernel for each op give the same.
func checkUnfused(t *testing.T, op Subject) {
	for ci, c := range op.Cases {
		build := func() []*tensor.Array {
			var all []*tensor.Array
			for _, d := range op.DTypes {
				in := c.arrays(d, c.sizes(nil))
				for i, x := range in {
					if !c.Inputs[i].konst && d.IsInexact() {
						in[i] = ops.Add(ops.Multiply(x, ops.Scalar(0.75, x)), ops.Scalar(0.125, x))
					}
				}
				for _, y := range op.Fn(in) {
					if y.DType() != tensor.Bool {
						y = ops.Multiply(y, ops.Add(y, ops.Scalar(1, y)))
					}
					all = append(all, y)
				}
			}
			return all
		}
		fused, unfused := withFusion(t, true, build), withFusion(t, false, build)
		for i := range fused {
			sameBits(t, unfused[i], fused[i], "case %d, output %d, fused against unfused", ci, i)
		}
	}
}

func withFusion(t *testing.T, on bool, build func() []*tensor.Array) []result {
	t.Helper()
	defer tensor.SetFusion(tensor.SetFusion(on))
	return evaluate(t, build())
}

// sameBits compares bytes. NaNs are equal whatever their payload.
func sameBits(t *testing.T, want, got result, msg string, args ...any) {
	t.Helper()
	require.Equal(t, want.spec.String(), got.spec.String(), "%s", fmt.Sprintf(msg, args...))
	w, g := want.values(), got.values()
	size := want.spec.DType.Size()
	for i := range w {
		nan := cmplx.IsNaN(w[i]) && cmplx.IsNaN(g[i])
		if !nan && !bytes.Equal(want.bytes[i*size:(i+1)*size], got.bytes[i*size:(i+1)*size]) {
			require.Fail(t, fmt.Sprintf("%s: element %d is %v, not %v", fmt.Sprintf(msg, args...), i, g[i], w[i]))
		}
	}
}

func checkRefuse(t *testing.T, op Subject) {
	for _, d := range op.Refuse {
		out := op.Fn(op.Cases[0].arrays(d, op.Cases[0].sizes(nil)))
		requireOpError(t, op, out[0].Err(), d.String())
	}
}

func checkBad(t *testing.T, op Subject) {
	for _, b := range op.Bad {
		t.Run(b.Name, func(t *testing.T) { requireOpError(t, op, b.Make().Err(), b.Text) })
	}
}

func requireOpError(t *testing.T, op Subject, err error, text string) {
	t.Helper()
	var oe *tensor.OpError
	require.ErrorAs(t, err, &oe)
	require.Contains(t, err.Error(), text)
	require.NotContains(t, err.Error(), "BUG")
	require.Contains(t, oe.Place.String(), "_test.go:", "%s: the error names the caller's line", op.Name)
}
