package tensor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// withDevice opens another device with those options and makes it the one of the test, on which it runs one stream.
func withDevice(t *testing.T, opt metal.DeviceOptions) (*recorder, *metal.Device) {
	t.Helper()
	rec := &recorder{Driver: soft.New(soft.Options{})}
	return rec, useDevice(t, rec, opt)
}

// partialOp is an op of two outputs whose kernels may leave elements unwritten.
var partialOp = tensor.Declare[runAttrs]("test_partial")

func init() {
	two := func(in []tensor.Spec, _ runAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
		return append(outs, in[0].Shape, in[0].Shape), nil
	}
	partialOp.Define(tensor.Rules[runAttrs]{
		Shape: two,
		DType: func(in []tensor.Spec, _ runAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType, in[0].DType), nil
		},
		Partial: true,
		Run:     func(r *tensor.Run, a runAttrs) error { return (*a.Body)(r) },
	})
}

const half = `[[kernel]] void first_half(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (int(i) < n) o[i] = a[i];
}`

// writesHalf is an output of an op whose kernel writes the first half of it.
func writesHalf(x *tensor.Array) *tensor.Array {
	body := func(r *tensor.Run) error {
		p, err := r.Kernel(metal.Source{Label: "half", Text: half}, "first_half")
		if err != nil {
			return err
		}
		n := x.Spec().Shape.Size()
		return r.Dispatch(p, metal.Size{X: n, Y: 1, Z: 1}, metal.Size{X: 32, Y: 1, Z: 1}, r.In[0].Arg(), r.Out[0].Arg(),
			tensor.Const(n/2))
	}
	return partialOp.Call(ctx(), runAttrs{&body}, x)[0]
}

// TestUnwrittenElements: what a kernel leaves unwritten may lie there, but nobody may read it.
func TestUnwrittenElements(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{Validate: true})
	for _, n := range []int{64, 5000} { // of its own, and past the least size of reuse
		x := iota(n)
		y := writesHalf(x)
		require.Equal(t, float32(-(n/2 - 1)), floats(t, neg(slice(y, 0, n/2, 1)))[n/2-1], "the half that was written")
		_, err := y.Bytes(background)
		require.EqualError(t, err, fmt.Sprintf("[item] %d of the %d elements of float32 (%d,) were never written, the first "+
			"at %d, by kernel first_half [test_partial test.lua:7], command 0 (test.lua:7)", n/2, n, n, n/2))

		z := neg(writesHalf(x))
		err = tensor.Eval(background, z)
		require.ErrorContains(t, err, "read of device memory")
		require.ErrorContains(t, err, "before anything was written to it")
		require.ErrorContains(t, err, fmt.Sprintf(" of test_partial made at test.lua:7 (#%d, %d bytes), which kernel "+
			"first_half [test_partial test.lua:7], command 0, should have written", lastID(err), 4*n))
		require.ErrorContains(t, err, "[test_neg]")
		require.ErrorContains(t, err, "(test.lua:7)")
	}
	dev.SetValidate(false)
	require.NoError(t, tensor.Eval(background, neg(writesHalf(iota(64)))), "without validation nobody looks")
	dev.SetValidate(true)
	y := writesHalf(iota(64))
	eval(t, y)
	dev.SetValidate(false)
	eval(t, neg(y))
	dev.SetValidate(true)
	eval(t, neg(y)) // commands that nobody watched may have written it
}

// lastID is the number of the buffer that an error names.
func lastID(err error) (id int) {
	text := err.Error()
	for i := range text {
		if _, e := fmt.Sscanf(text[i:], "(#%d,", &id); e == nil {
			return id
		}
	}
	return -1
}

// TestBuiltInKernelsCoverTheirOutputs: threads that never ran are a bug of the op.
func TestBuiltInKernelsCoverTheirOutputs(t *testing.T) {
	withDevice(t, metal.DeviceOptions{Validate: true})
	err := tensor.Eval(background, kernel(iota(8), half, "first_half", 5))
	require.EqualError(t, err, "[test_run] [validate] BUG: 3 of the 8 elements of float32 (8,) were never written, the "+
		"first at 5, by kernel first_half [test_run test.lua:7], command 0 (test.lua:7)")
	require.NoError(t, tensor.Eval(background, kernel(iota(8), half, "first_half", 8)))
}

// TestReusedMemoryIsNotRead: a kernel that reads its output before it writes it finds what an earlier op left there,
// unless validation has thrown that away.
func TestReusedMemoryIsNotRead(t *testing.T) {
	const text = `[[kernel]] void adds(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] += a[i];
}`
	program := func() *tensor.Array {
		x := iota(5000)
		a := trans(reshape(add(x, x), 50, 100))
		b := sum(a, 0)
		y := kernel(x, text, "adds", 0) // in the memory of add(x, x), which the sum was the last to read
		tensor.Drop(a)
		return add(sum(y), sum(b))
	}
	_, dev := withDevice(t, metal.DeviceOptions{})
	eval(t, program())
	dev.SetValidate(true)
	err := tensor.Eval(background, program())
	require.ErrorContains(t, err, "[test_run] [adds] read of device memory o[0] before anything was written to it")
	require.ErrorContains(t, err, "which this kernel itself is to write: no earlier command wrote that element")
}

// TestHazardsOfTheEngine: programs whose commands depend on each other in each of the ways. With the barriers of one
// kind left out, validation fails every time; with all of them, never.
func TestHazardsOfTheEngine(t *testing.T) {
	const n = 4096 // 16 KiB: buffers of that size are used again within a command buffer
	programs := map[string]func() []*tensor.Array{
		"a sum of a product": func() []*tensor.Array {
			x := iota(n)
			s := sum(mul(x, x))
			return []*tensor.Array{add(s, x)}
		},
		"donation after a reader": func() []*tensor.Array {
			x := iota(64, 64)
			a := add(x, x)
			s := sum(a, 0)
			b := mul(a, x) // the last reader of a: in place
			tensor.Drop(a)
			return []*tensor.Array{s, b}
		},
		"reuse after a reader": func() []*tensor.Array {
			x := iota(64, 64)
			a := kernel(x, half, "first_half", n)
			s := sum(a, 0)
			tensor.Drop(a)
			b := add(x, reshape(s, 64)) // a's memory
			return []*tensor.Array{s, b}
		},
		"reuse after a writer": func() []*tensor.Array {
			x := iota(n)
			two := func(r *tensor.Run) error {
				one := []byte{0, 0, 128, 63}
				if err := r.Fill(r.Out[0], one); err != nil {
					return err
				}
				return r.Fill(r.Out[1], one)
			}
			out := partialOp.Call(ctx(), runAttrs{&two}, x)
			tensor.Drop(out[1]) // nobody reads it: the next kernel has its memory
			return []*tensor.Array{add(out[0], sum(x))}
		},
		"slices of one array": func() []*tensor.Array {
			x := neg(iota(2 * n))
			body := func(r *tensor.Run) error { // the second half becomes the first
				low, high := r.Out[0], r.Out[0]
				low.Shape, high.Shape = tensor.Shape{n}, tensor.Shape{n}
				high.OffsetBytes += 4 * n
				if err := r.CopyTo(high, low); err != nil {
					return err
				}
				return r.Fill(low, []byte{0, 0, 128, 63})
			}
			y := updateOp.One(ctx(), runAttrs{&body}, x)
			tensor.Drop(x)
			return []*tensor.Array{y}
		},
		"a kernel that writes its input": func() []*tensor.Array {
			const text = `[[kernel]] void swap(device float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float x = a[i];
  a[i] = x + float(n);
  o[i] = x;
}`
			x := neg(iota(n))
			y := kernel(x, text, "swap", 1)
			z := kernel(x, text, "swap", 2)
			return []*tensor.Array{y, z}
		},
	}
	for _, c := range []struct {
		program string
		needs   string // the kinds of barriers without which it is wrong; others stand where a second kind is due as well
	}{
		{"a sum of a product", "RAW"},
		{"donation after a reader", "RAW WAR"},
		{"reuse after a reader", "RAW WAR WAW"},
		{"reuse after a writer", "WAW"},
		{"slices of one array", "WAR"},
		{"a kernel that writes its input", "RAW"},
	} {
		ablate(t, c.program, c.needs, programs[c.program])
	}
}

// ablate runs a program with each kind of barriers left out: validation fails every time for the kinds that it needs,
// and never for others.
func ablate(t *testing.T, name, needs string, program func() []*tensor.Array) {
	for _, kind := range []string{"none", "RAW", "WAR", "WAW"} {
		t.Run(name+" without "+kind, func(t *testing.T) {
			withDevice(t, metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{DropRAW: kind == "RAW",
				DropWAR: kind == "WAR", DropWAW: kind == "WAW"}})
			for range 5 {
				err := tensor.Eval(background, program()...)
				if strings.Contains(needs, kind) {
					require.ErrorContains(t, err, "[validate] missing barrier")
					require.ErrorContains(t, err, "test.lua:7")
				} else {
					require.NoError(t, err)
				}
			}
		})
	}
}

// TestHazardsOfSlices: neighbouring kernels whose input or output are slices of one parent, from its beginning or from
// the middle of that on, so that they share half of their elements and no address that they begin at.
func TestHazardsOfSlices(t *testing.T) {
	const n = 2048
	type copies func(from, to tensor.Operand)
	program := func(body func(c copies, given, low, high, other tensor.Operand)) func() []*tensor.Array {
		run := func(r *tensor.Run) error {
			p, err := r.Kernel(metal.Source{Label: "half", Text: half}, "first_half")
			low, high := r.Out[0], r.Out[0]
			high.OffsetBytes += 4 * n / 2
			body(func(from, to tensor.Operand) {
				size, group := metal.Size{X: n, Y: 1, Z: 1}, metal.Size{X: 256, Y: 1, Z: 1}
				if err == nil {
					err = r.Dispatch(p, size, group, from.Arg(), to.Arg(), tensor.Const(n))
				}
			}, r.In[0], low, high, r.Out[1])
			return err
		}
		return func() []*tensor.Array { return partialOp.Call(ctx(), runAttrs{&run}, iota(2*n)) }
	}
	read := program(func(c copies, given, low, high, other tensor.Operand) {
		c(given, high)
		c(given, low)
		c(high, other) // its first half is what the second kernel wrote last
	})
	over := program(func(c copies, given, low, high, _ tensor.Operand) {
		c(given, low)
		c(given, high)
	})
	before := program(func(c copies, given, low, high, other tensor.Operand) {
		c(given, low)
		c(low, other)
		c(given, high) // half of it the second kernel had to read before
	})
	ablate(t, "written over", "WAW", over)
	ablate(t, "read behind a writer", "RAW WAW", read)
	ablate(t, "written behind a reader", "RAW WAR", before)

	withDevice(t, metal.DeviceOptions{Validate: true})
	for range 5 {
		out := read()
		require.Equal(t, float32(n/2), floats(t, slice(out[1], 0, n, 1))[0])
		out = over()
		got := floats(t, slice(out[0], 0, 3*n/2, 1))
		require.Equal(t, []float32{n/2 - 1, 0, n - 1}, []float32{got[n/2-1], got[n/2], got[3*n/2-1]})
		out = before()
		require.Equal(t, float32(n-1), floats(t, slice(out[1], 0, n, 1))[n-1])
	}
}

// TestRetentionOfTheEngine: without retention, what the engine gives back when its last reader is recorded is gone
// before the command buffer runs, and validation says so every time.
func TestRetentionOfTheEngine(t *testing.T) {
	for _, off := range []bool{false, true} {
		withDevice(t, metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{NoRetain: off}})
		for range 10 {
			x := iota(5000)
			a := add(x, x)
			s := sum(a)
			tensor.Drop(a)
			y := trans(reshape(mul(x, s), 50, 100))
			tensor.Drop(s)
			if err := tensor.Eval(background, y); off {
				require.ErrorContains(t, err, "[validate] command buffer references deallocated object: buffer of test_sum made"+
					" at test.lua:7 (#")
				require.ErrorContains(t, err, "in kernel ")
				require.ErrorContains(t, err, "[test_sum test.lua:7], command ")
			} else {
				require.NoError(t, err)
				require.Equal(t, float32(24995000*100), floats(t, y)[1])
			}
		}
	}
}
