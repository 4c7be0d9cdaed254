package tensor_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// beforeDevice builds a graph while no device is open, and gives what it is to be evaluated on: with validation or
// without.
func beforeDevice(t *testing.T, validate bool, build func() []*tensor.Array) []*tensor.Array {
	t.Helper()
	tensor.UnsetDevice(device)
	defer tensor.SetDevice(device)
	_, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.ErrorIs(t, err, tensor.ErrNoDevice)
	xs := build()
	withDevice(t, metal.DeviceOptions{Validate: validate})
	return xs
}

// turned is iota(rows, cols) transposed, its elements in row-major order.
func turned(rows, cols int) []float32 {
	out := make([]float32, 0, rows*cols)
	for c := range cols {
		for r := range rows {
			out = append(out, float32(r*cols+c))
		}
	}
	return out
}

// TestConstantsFromBeforeTheDevice: the bytes of an array that was made before a device was open are uploaded for each
// op that reads them. A view lies in the uploaded bytes: nothing may be written there as long as someone reads it.
func TestConstantsFromBeforeTheDevice(t *testing.T) {
	const rows, cols = 15, 100 // 6000 bytes: buffers of that size are used again within a command buffer
	want := turned(rows, cols)
	sums := make([]float32, rows)
	for i, v := range want {
		sums[i%rows] += v
	}
	pair := func(a, b *tensor.Array) []*tensor.Array { return []*tensor.Array{a, b} }
	flat := func(x *tensor.Array) *tensor.Array { return reshape(x, rows*cols) }
	for name, c := range map[string]struct {
		build func() []*tensor.Array
		want  [][]float32
	}{
		"a copy of a view": {func() []*tensor.Array {
			return []*tensor.Array{flat(trans(iota(rows, cols)))}
		}, [][]float32{want}},
		"a small one": {func() []*tensor.Array {
			return []*tensor.Array{reshape(trans(iota(3, 7)), 21)}
		}, [][]float32{turned(3, 7)}},
		"one that stays in its node": {func() []*tensor.Array {
			return []*tensor.Array{reshape(trans(iota(4, 4)), 16)}
		}, [][]float32{turned(4, 4)}},
		"a view that is held": {func() []*tensor.Array {
			y := trans(iota(rows, cols))
			return pair(flat(y), y)
		}, [][]float32{want, want}},
		"a view that is read twice": {func() []*tensor.Array {
			y := trans(iota(rows, cols))
			return pair(add(y, y), sum(y, 0))
		}, [][]float32{nil, sums}},
		"a view of a view": {func() []*tensor.Array {
			return []*tensor.Array{flat(trans(trans(trans(iota(rows, cols)))))}
		}, [][]float32{want}},
		"a kernel's memory": {func() []*tensor.Array {
			y := trans(iota(rows, cols))
			double := func(r *tensor.Run) error { return r.CopyTo(r.Out[0], r.In[0]) }
			a, b := run(y, double), run(y, double)
			return pair(flat(a), flat(b))
		}, [][]float32{want, want}},
		"an update": {func() []*tensor.Array {
			y := reshape(iota(rows, cols), rows*cols)
			clear := func(r *tensor.Run) error { return r.Fill(r.Out[0], make([]byte, 4)) }
			return pair(updateOp.One(ctx(), runAttrs{&clear}, y), reshape(trans(reshape(y, rows, cols)), rows*cols))
		}, [][]float32{make([]float32, rows*cols), want}},
		"a sum": {func() []*tensor.Array {
			y := trans(iota(rows, cols))
			return pair(sum(y, 0), flat(y))
		}, [][]float32{sums, want}},
	} {
		for _, validate := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, validated: %v", name, validate), func(t *testing.T) {
				for range 3 {
					xs := beforeDevice(t, validate, c.build)
					eval(t, xs...)
					for i, w := range c.want {
						if w != nil {
							require.Equal(t, w, floats(t, xs[i]))
						}
					}
				}
			})
		}
	}
}

// TestConstantsOnTwoStreams: each stream has uploaded bytes of its own, and views of them go to the other.
func TestConstantsOnTwoStreams(t *testing.T) {
	const rows, cols = 15, 100
	var x *tensor.Array
	beforeDevice(t, true, func() []*tensor.Array {
		x = iota(rows, cols)
		return nil
	})
	a, b := newStream(t), newStream(t)
	var out []*tensor.Array
	for _, s := range []*tensor.Stream{a, b, a, b} {
		y := transpose.One(on(s), tensor.None{}, x)
		flat := dimsAttrs{tensor.MakeDims(rows * cols)}
		out = append(out, reshapeOp.One(on(a), flat, y), reshapeOp.One(on(b), flat, y))
		tensor.Drop(y)
	}
	eval(t, out...)
	for _, y := range out {
		require.Equal(t, turned(rows, cols), floats(t, y))
	}
}

// TestViewsOfAnotherDevicesArrays: their bytes are copied to the device of the op, and the views lie in the copy.
func TestViewsOfAnotherDevicesArrays(t *testing.T) {
	const rows, cols = 15, 100
	x := iota(rows, cols)
	y := neg(neg(x))
	eval(t, y)
	withDevice(t, metal.DeviceOptions{Validate: true})
	for _, x := range []*tensor.Array{x, y} {
		z := trans(x)
		copied, summed := reshape(z, rows*cols), sum(z)
		eval(t, copied, summed)
		require.Equal(t, turned(rows, cols), floats(t, copied))
		require.Equal(t, []float32{1500 * 1499 / 2}, floats(t, summed))
	}
}

// TestCollectedConstants: large arrays watch their handles. That the one of a constant is garbage gives its bytes back
// only when nothing reads them, or a view of them, any more.
func TestCollectedConstants(t *testing.T) {
	const rows, cols = 600, 500 // past 1 MiB
	for _, validate := range []bool{true, false} {
		for range 3 {
			xs := beforeDevice(t, validate, func() []*tensor.Array {
				y := trans(iota(rows, cols))
				return []*tensor.Array{reshape(y, rows*cols), sum(y, 0), neg(y)}
			})
			runtime.GC()
			eval(t, xs...)
			require.Equal(t, turned(rows, cols), floats(t, xs[0]))
			require.Equal(t, float32(-1), floats(t, xs[2])[rows])
		}
	}
}

// TestChecksSeeWhatTheirKernelsWrote: a check runs when its command buffer has, and until then no later command
// writes to the memory that it looks at, be it a temporary's or that of an output that nobody keeps.
func TestChecksSeeWhatTheirKernelsWrote(t *testing.T) {
	const n = 5000
	for _, temporary := range []bool{true, false} {
		for _, validate := range []bool{true, false} {
			t.Run(fmt.Sprintf("temporary: %v, validated: %v", temporary, validate), func(t *testing.T) {
				withDevice(t, metal.DeviceOptions{Validate: validate})
				checked := 0
				a := run(iota(n), func(r *tensor.Run) error {
					o := r.Out[0]
					if temporary {
						var err error
						if o, err = r.Temp(r.Out[0].Spec); err != nil {
							return err
						}
						if err := r.CopyTo(r.Out[0], r.In[0]); err != nil {
							return err
						}
					}
					if err := r.CopyTo(o, r.In[0]); err != nil {
						return err
					}
					r.Check(o, func(b []byte) error {
						for ; len(b) > 0; b = b[4:] {
							if math.Float32frombits(binary.LittleEndian.Uint32(b)) != float32(checked) {
								return errors.New("another's elements")
							}
							checked++
						}
						return nil
					})
					return nil
				})
				b := neg(a)
				tensor.Drop(a)
				c := run(b, func(r *tensor.Run) error { return r.Fill(r.Out[0], make([]byte, 4)) })
				eval(t, b, c)
				require.Equal(t, n, checked)
				require.Equal(t, float32(1-n), floats(t, b)[n-1])
			})
		}
	}
}
