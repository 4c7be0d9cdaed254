package tensor_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// secretive is a program with arrays of its own.
type secretive struct {
	c *tensor.Ctx
}

// leave leaves memory full of numbers behind.
func (s secretive) leave(t *testing.T, dev *metal.Device, n int) {
	t.Helper()
	for range 3 {
		ones := make([]float32, n)
		for i := range ones {
			ones[i] = 7
		}
		x := negOp.One(s.c, tensor.None{}, arrayOf(s.c, ones))
		y := negOp.One(s.c, tensor.None{}, x)
		require.NoError(t, tensor.Eval(background, x, y))
	}
	collectTo(t, dev, 0)
}

// finds is what a kernel of n threads that writes nothing leaves in an output.
func (s secretive) finds(t *testing.T, n int) (numbers int) {
	t.Helper()
	nothing := func(*tensor.Run) error { return nil }
	outs := partialOp.Call(s.c, runAttrs{&nothing}, arrayOf(s.c, make([]float32, n)))
	for _, x := range outs {
		for _, v := range floats(t, x) {
			if v != 0 {
				numbers++
			}
		}
	}
	return numbers
}

func arrayOf(c *tensor.Ctx, v []float32) *tensor.Array {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return tensor.FromBytes(c, tensor.Spec{Shape: tensor.Shape{len(v)}, DType: tensor.Float32}, b)
}

// TestHoldersMemory: what a holder leaves behind is zero for another one and for Go programs, and the other way round,
// but as it was for itself.
func TestHoldersMemory(t *testing.T) {
	for _, n := range []int{20, 1000, 100_000} {
		_, dev := withDevice(t, metal.DeviceOptions{})
		_, a := holding()
		_, b := holding()
		all := []secretive{{a}, {b}, {ctx()}}
		for i, one := range all {
			for k, other := range all {
				one.leave(t, dev, n)
				found := other.finds(t, n)
				switch {
				case i != k:
					require.Zero(t, found, "%d numbers of %d for %d", n, i, k)
				case i == 0 || n > 32<<10: // small ones share memory with others'
					require.Positive(t, found, "what is its own is not zeroed: %d numbers of %d", n, i)
				}
				collectTo(t, dev, 0)
			}
		}
	}
}

const stuck = `[[kernel]] void stuck(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  while (a[0] < float(n)) { }
  o[i + n] = a[i];
}`

// TestUnfinishedResultsShowNothing: memory that was to become a result of a built-in op, whose kernels write all of it,
// may be another holder's as it was. Nobody sees that if they do not run to their end.
func TestUnfinishedResultsShowNothing(t *testing.T) {
	launch := func(text, entry string, past int) func(r *tensor.Run) error {
		return func(r *tensor.Run) error {
			p, err := r.Kernel(metal.Source{Label: entry, Text: text}, entry)
			if err != nil {
				return err
			}
			n := metal.Size{X: r.In[0].Shape.Size(), Y: 1, Z: 1}
			return r.Dispatch(p, n, metal.Size{X: 32, Y: 1, Z: 1}, r.In[0].Arg(), r.Out[0].Arg(), tensor.Const(past))
		}
	}
	for name, c := range map[string]struct {
		body  func(r *tensor.Run) error
		limit time.Duration
	}{
		"it was not recorded": {func(*tensor.Run) error { return errors.New("no luck") }, time.Minute},
		"it has failed":       {launch(stuck, "stuck", -5), time.Minute},
		"it was stopped":      {launch(stuck, "stuck", 1), 20 * time.Millisecond},
		"the rule has stopped": {func(r *tensor.Run) error {
			<-r.Context().Done()
			return r.Context().Err()
		}, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1000, 100_000} {
				_, dev := withDevice(t, metal.DeviceOptions{})
				_, a := holding()
				_, b := holding()
				secretive{a}.leave(t, dev, n)
				limited, cancel := context.WithTimeout(background, c.limit)
				func() {
					x := runOp.One(b, runAttrs{&c.body}, arrayOf(b, make([]float32, n)))
					y := negOp.One(b, tensor.None{}, negOp.One(b, tensor.None{}, x))
					require.Error(t, tensor.Eval(limited, x, y))
				}()
				cancel()
				require.NoError(t, tensor.Synchronize(background))
				collectTo(t, dev, 0)
				require.Zero(t, secretive{b}.finds(t, n), "%d numbers", n)
			}
		})
	}
}
