package compile_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

type (
	array  = tensor.Array
	arrays = []*tensor.Array
)

func vec(v ...float32) *array { return ops.FromSlice(v, []int{len(v)}) }

func num(v float64) *array { return ops.Number(v, tensor.Float32) }

// floats evaluates a float32 array.
func floats(t *testing.T, x *array) []float32 {
	t.Helper()
	optest.Open(t)
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	require.Equal(t, tensor.Float32, x.DType())
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24)
	}
	return out
}

func call(t *testing.T, fn *compile.Function, in ...*array) *array {
	t.Helper()
	optest.Open(t)
	out, err := fn.Call(nil, in...)
	require.NoError(t, err)
	require.NotEmpty(t, out)
	return out[0]
}

// counted compiles a function of one result and counts its runs.
func counted(opt compile.Options, f func(in []*array) *array) (*compile.Function, *int) {
	runs := new(int)
	return compile.New(func(in []*array) ([]*array, error) {
		*runs++
		return arrays{f(in)}, nil
	}, opt), runs
}

func TestReplay(t *testing.T) {
	fn, runs := counted(compile.Options{}, func(in []*array) *array { return ops.Add(ops.Multiply(in[0], num(2)), in[1]) })
	require.Equal(t, []float32{12, 24}, floats(t, call(t, fn, vec(1, 2), vec(10, 20))))
	require.Equal(t, []float32{7, 9}, floats(t, call(t, fn, vec(3, 4), vec(1, 1))))
	require.Equal(t, 1, *runs)
	// A new shape, rank or dtype is traced again; an old one is found.
	call(t, fn, vec(1, 2, 3), vec(1, 2, 3))
	call(t, fn, num(1), num(2))
	call(t, fn, ops.FromSlice([]int32{1, 2}, []int{2}), vec(1, 2))
	require.Equal(t, 4, *runs)
	require.Equal(t, []float32{3, 3}, floats(t, call(t, fn, vec(1, 1), vec(1, 1))))
	require.Equal(t, 4, *runs)
	require.Equal(t, compile.Stats{Calls: 6, Traces: 4, Hits: 2, Size: 4, Cap: 64}, fn.Stats())
	// One array as two inputs in the trace is no promise for later calls.
	x := vec(5, 6)
	same, _ := counted(compile.Options{}, func(in []*array) *array { return ops.Subtract(in[0], in[1]) })
	require.Equal(t, []float32{0, 0}, floats(t, call(t, same, x, x)))
	require.Equal(t, []float32{4, 4}, floats(t, call(t, same, x, vec(1, 2))))
}

func TestShapeless(t *testing.T) {
	fn, runs := counted(compile.Options{Shapeless: true}, func(in []*array) *array {
		return ops.Add(ops.Sum(in[0], []int{0}, true), ops.OnesLike(in[0]))
	})
	for n := 1; n <= 12; n++ {
		v := make([]float32, n)
		for i := range v {
			v[i] = 1
		}
		got := floats(t, call(t, fn, vec(v...)))
		require.Len(t, got, n)
		require.Equal(t, float32(n+1), got[n-1])
	}
	require.Equal(t, 1, *runs)
}

func TestGuards(t *testing.T) {
	fn, runs := counted(compile.Options{Shapeless: true}, func(in []*array) *array {
		n, err := in[0].Dim(0)
		require.NoError(t, err)
		return ops.Multiply(ops.Sum(in[0], nil, false), num(1/float64(n)))
	})
	m := func(rows int, v ...float32) *array { return ops.FromSlice(v, []int{rows, len(v) / rows}) }
	require.Equal(t, []float32{5}, floats(t, call(t, fn, m(2, 1, 2, 3, 4))))
	require.Equal(t, []float32{6}, floats(t, call(t, fn, m(2, 1, 2, 3, 1, 2, 3))), "the other dimension was not read")
	require.Equal(t, 1, *runs)
	require.Equal(t, []float32{4}, floats(t, call(t, fn, m(3, 1, 2, 3, 1, 2, 3))))
	require.Equal(t, 2, *runs)
	require.Equal(t, []float32{5}, floats(t, call(t, fn, m(2, 1, 2, 3, 4))), "the first trace is still there")
	require.Equal(t, 2, *runs)
	require.Contains(t, fn.Explain(nil, false), "dimension 0 of input 0 was 2, is 3")

	// A read of an intermediate array, which nothing else needs.
	fn, runs = counted(compile.Options{Shapeless: true}, func(in []*array) *array {
		s := ops.Transpose(in[0], nil).Shape()
		return ops.Multiply(in[0], num(float64(s[0])))
	})
	require.Equal(t, []float32{2, 4}, floats(t, call(t, fn, m(1, 1, 2))))
	require.Equal(t, []float32{3, 6, 9}, floats(t, call(t, fn, m(1, 1, 2, 3))))
	require.Equal(t, 2, *runs)
	require.Contains(t, fn.Explain(nil, false), "of an intermediate array was 2, is 3")
}

func TestFixedNumbers(t *testing.T) {
	// Numbers that do not fit another shape are traced again, not misused: the reshape fails at 6 elements and says so.
	fn, runs := counted(compile.Options{Shapeless: true}, func(in []*array) *array {
		return ops.Reshape(in[0], tensor.Sizes(2, 2))
	})
	require.Equal(t, []float32{1, 2, 3, 4}, floats(t, call(t, fn, vec(1, 2, 3, 4))))
	_, err := fn.Call(nil, vec(1, 2, 3, 4, 5, 6))
	require.ErrorContains(t, err, "[reshape]")
	require.Equal(t, 2, *runs)
	require.Equal(t, 1, fn.Stats().Size, "an error leaves no entry")
	require.Equal(t, []float32{4, 3, 2, 1}, floats(t, call(t, fn, vec(4, 3, 2, 1))))
	require.Equal(t, 2, *runs)
}

func TestCapturesAndKey(t *testing.T) {
	w, scale := vec(1, 2), 3.0
	fn, runs := counted(compile.Options{
		Captures:     func() []*array { return arrays{w} },
		CaptureNames: func() []string { return []string{"w"} },
		Key:          func() string { return fmt.Sprint(scale) },
	}, func(in []*array) *array { return ops.Multiply(ops.Multiply(in[0], in[1]), num(scale)) })
	require.Equal(t, []float32{3, 6}, floats(t, call(t, fn, vec(1, 1))))
	w = vec(10, 20)
	require.Equal(t, []float32{30, 60}, floats(t, call(t, fn, vec(1, 1))), "a captured array is read again")
	require.Equal(t, 1, *runs)
	scale = 2
	require.Equal(t, []float32{20, 40}, floats(t, call(t, fn, vec(1, 1))))
	require.Equal(t, 2, *runs)
	w = vec(7)
	require.Equal(t, []float32{14, 14}, floats(t, call(t, fn, vec(1, 1))), "its shape is in the signature")
	require.Equal(t, 3, *runs)
	require.Contains(t, fn.Explain(nil, false), "capture: w")
	require.Contains(t, fn.Explain(nil, false), "a constant or the arguments' structure changed")
	require.Contains(t, fn.Explain(nil, false), "input 1: shape (1,), not (2,)")
}

func TestSimplify(t *testing.T) {
	fn, _ := counted(compile.Options{}, func(in []*array) *array {
		ops.Exp(in[0]) // dead
		a := ops.Multiply(ops.Sin(in[0]), num(2))
		b := ops.Multiply(ops.Sin(in[0]), num(2)) // the same again
		return ops.Add(a, b)
	})
	require.Equal(t, []float32{0}, floats(t, call(t, fn, vec(0))))
	text := fn.Explain(nil, false)
	require.Contains(t, text, "5 ops, 3 after simplification, 1 constant")
	require.Contains(t, text, "ops: sin multiply add\n")
}

func TestOutputs(t *testing.T) {
	// Inputs and constants may be outputs, a value may be one twice, and the number may depend on the signature.
	one := num(1)
	fn := compile.New(func(in []*array) ([]*array, error) {
		y := ops.Negative(in[0])
		return arrays{in[0], y, y, one}[:2+min(in[0].NDim(), 1)*2], nil
	}, compile.Options{})
	for range 2 {
		x := vec(1, 2)
		out, err := fn.Call(nil, x)
		require.NoError(t, err)
		require.Len(t, out, 4)
		require.Same(t, x, out[0])
		require.Equal(t, []float32{-1, -2}, floats(t, out[1]))
		require.Equal(t, []float32{-1, -2}, floats(t, out[2]))
		require.Equal(t, []float32{1}, floats(t, out[3]))
	}
	out, err := fn.Call(nil, num(3))
	require.NoError(t, err)
	require.Len(t, out, 2)
}

func TestErrors(t *testing.T) {
	fail := true
	boom := errors.New("boom")
	fn := compile.New(func(in []*array) ([]*array, error) {
		if fail {
			return nil, boom
		}
		return in, nil
	}, compile.Options{})
	_, err := fn.Call(nil, vec(1))
	require.ErrorIs(t, err, boom)
	require.Zero(t, fn.Stats().Size)
	fail = false
	call(t, fn, vec(1))

	_, err = fn.Call(nil, nil)
	require.ErrorContains(t, err, "[compile] input 0 is nil")
	_, err = fn.Call(nil, ops.Add(vec(1, 2), vec(1, 2, 3)))
	require.ErrorContains(t, err, "[add]")

	// Values are not known in a trace, and arrays of a trace are of no use after it.
	var kept *array
	fn = compile.New(func(in []*array) ([]*array, error) {
		kept = ops.Exp(in[0])
		_, err := kept.Bytes(context.Background())
		return in, err
	}, compile.Options{})
	_, err = fn.Call(nil, vec(1))
	require.ErrorContains(t, err, "compile_test.go:")
	require.ErrorContains(t, err, "its values are not known")
	require.ErrorContains(t, ops.Add(kept, vec(1)).Err(), "compile trace that has ended")
	require.Zero(t, fn.Stats().Size)
}

// TestForget: keys are told when the last of their traces is evicted, and not before.
func TestForget(t *testing.T) {
	key, gone := "a", []string{}
	fn, _ := counted(compile.Options{CacheSize: 2, Key: func() string { return key },
		Forget: func(k string) { gone = append(gone, k) }},
		func(in []*array) *array { return ops.Negative(in[0]) })
	call(t, fn, vec(1))
	call(t, fn, vec(1, 2))
	key = "b"
	call(t, fn, vec(1))
	require.Empty(t, gone, "a trace for key a is left")
	call(t, fn, vec(1, 2))
	require.Equal(t, []string{"a"}, gone)
}

func TestCacheIsBounded(t *testing.T) {
	fn, runs := counted(compile.Options{CacheSize: 2}, func(in []*array) *array { return ops.Negative(in[0]) })
	shape := func(n int) *array { return ops.Zeros(tensor.Sizes(n), tensor.Float32) }
	for _, n := range []int{1, 2, 1, 3} { // 2 was unused for longest
		call(t, fn, shape(n))
	}
	require.Equal(t, 3, *runs)
	call(t, fn, shape(1))
	require.Equal(t, 3, *runs)
	call(t, fn, shape(2))
	require.Equal(t, 4, *runs)
	s := fn.Stats()
	require.Equal(t, []int{2, 2, 4}, []int{s.Size, s.Evicted, s.Traces})
}

func TestInlining(t *testing.T) {
	inner, innerRuns := counted(compile.Options{Shapeless: true}, func(in []*array) *array {
		n, err := in[0].Dim(0)
		require.NoError(t, err)
		return ops.Multiply(in[0], num(float64(n)))
	})
	outer, outerRuns := counted(compile.Options{Shapeless: true}, func(in []*array) *array {
		return ops.Add(call(t, inner, in[0]), num(1))
	})
	require.Equal(t, []float32{3, 5}, floats(t, call(t, outer, vec(1, 2))))
	require.Equal(t, []float32{4, 7, 10}, floats(t, call(t, outer, vec(1, 2, 3))), "the inner guard is the outer's too")
	require.Equal(t, []float32{7, 9}, floats(t, call(t, outer, vec(3, 4))))
	require.Equal(t, []int{2, 2}, []int{*innerRuns, *outerRuns})
	require.Contains(t, outer.Explain(nil, false), "ops: multiply add\n")

	// Gradients go through a compiled function, and gradients are compiled.
	square, _ := counted(compile.Options{}, func(in []*array) *array {
		return ops.Sum(ops.Multiply(in[0], in[0]), nil, false)
	})
	f := func(in []*array) ([]*array, error) { return square.Call(nil, in...) }
	for range 2 {
		g, err := grad.Grad(f, nil)(arrays{vec(1, 2)})
		require.NoError(t, err)
		require.Equal(t, []float32{2, 4}, floats(t, g[0]))
	}
	gs := compile.New(grad.Grad(f, nil), compile.Options{Shapeless: true})
	require.Equal(t, []float32{2, 4}, floats(t, call(t, gs, vec(1, 2))))
	require.Equal(t, []float32{2, 4, 6}, floats(t, call(t, gs, vec(1, 2, 3))))
	rows, err := grad.VMap(f, nil, nil)(arrays{ops.FromSlice([]float32{1, 2, 3, 4}, []int{2, 2})})
	require.NoError(t, err)
	require.Equal(t, []float32{5, 25}, floats(t, rows[0]))
}

func TestForeignTraces(t *testing.T) {
	// A trace that holds an array of a surrounding transform serves that call only.
	var w *array
	fn, runs := counted(compile.Options{}, func(in []*array) *array { return ops.Multiply(in[0], w) })
	for _, v := range []float64{2, 3} {
		g, err := grad.Grad(func(in []*array) ([]*array, error) {
			w = in[0]
			return fn.Call(nil, num(5))
		}, nil)(arrays{num(v)})
		require.NoError(t, err)
		require.Equal(t, []float32{5}, floats(t, g[0]))
	}
	require.Equal(t, 2, *runs)
	require.Zero(t, fn.Stats().Size)
}

func TestCheck(t *testing.T) {
	global := 1.0
	fn := compile.New(func(in []*array) ([]*array, error) { return arrays{ops.Multiply(in[0], num(global))}, nil },
		compile.Options{Check: true})
	require.Equal(t, []float32{1, 2}, floats(t, call(t, fn, vec(1, 2))))
	global = 2
	optest.Open(t)
	_, err := fn.Call(nil, vec(0, 2))
	require.ErrorContains(t, err, "[compile] check: element 1 of output 0 is 4, but 2 in the trace")
}

func TestDisable(t *testing.T) {
	fn, runs := counted(compile.Options{}, func(in []*array) *array { return ops.Negative(in[0]) })
	compile.Disable()
	defer compile.Enable()
	call(t, fn, vec(1))
	require.Equal(t, []float32{-1}, floats(t, call(t, fn, vec(1))))
	require.Equal(t, 2, *runs)
	require.Contains(t, fn.Explain(nil, false), "disabled")
	compile.Enable()
	call(t, fn, vec(1))
	call(t, fn, vec(1))
	require.Equal(t, 3, *runs)
}

func TestStreams(t *testing.T) {
	optest.Open(t)
	other, err := tensor.NewStream(tensor.DefaultDevice())
	require.NoError(t, err)
	here := &tensor.Ctx{}
	fn, runs := counted(compile.Options{}, func(in []*array) *array { return ops.Negative(in[0], here) })
	call(t, fn, vec(1))
	here = &tensor.Ctx{Stream: other}
	out, err := fn.Call(here, vec(1))
	require.NoError(t, err)
	require.Equal(t, []float32{-1}, floats(t, out[0]))
	require.Same(t, other, out[0].Value().Node.Stream())
	require.Equal(t, 2, *runs)
	require.Contains(t, fn.Explain(nil, false), "another stream")
}

func TestIntermediatesAreDropped(t *testing.T) {
	fn, _ := counted(compile.Options{}, func(in []*array) *array { return ops.Exp(ops.Sin(ops.Cos(in[0]))) })
	got := floats(t, call(t, fn, vec(0.5)))
	require.InDelta(t, math.Exp(math.Sin(math.Cos(0.5))), float64(got[0]), 1e-6)
}

func TestGoroutines(t *testing.T) {
	optest.Open(t)
	fn := compile.New(func(in []*array) ([]*array, error) { return arrays{ops.Add(in[0], num(1))}, nil },
		compile.Options{CacheSize: 3})
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for g := range errs {
		wg.Go(func() {
			for i := range 20 {
				n := 1 + (g+i)%5
				out, err := fn.Call(nil, ops.Full(tensor.Sizes(n), num(float64(i)), tensor.Float32))
				if err == nil {
					var b []byte
					if b, err = out[0].Bytes(context.Background()); err == nil && len(b) != 4*n {
						err = fmt.Errorf("%d bytes for %d elements", len(b), n)
					}
				}
				if err != nil {
					errs[g] = err
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.LessOrEqual(t, fn.Stats().Size, 3)
}

// TestConcurrentFirstCallsTraceOnce: the function is not let go before all callers have come.
func TestConcurrentFirstCallsTraceOnce(t *testing.T) {
	optest.Open(t)
	const callers = 8
	var fn *compile.Function
	var traces atomic.Int32
	fn = compile.New(func(in []*array) ([]*array, error) {
		traces.Add(1)
		for fn.Stats().Calls < callers {
			runtime.Gosched()
		}
		if traces.Load() == 1 {
			return nil, errors.New("not yet")
		}
		return arrays{ops.Add(in[0], num(1))}, nil
	}, compile.Options{})
	var wg sync.WaitGroup
	var failed atomic.Int32
	outs := make([]*array, callers)
	for i := range callers {
		wg.Go(func() {
			out, err := fn.Call(nil, vec(float32(i), 0))
			if err != nil {
				failed.Add(1)
				return
			}
			outs[i] = out[0]
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), failed.Load(), "the error is that of the call that traced")
	require.Equal(t, int32(2), traces.Load())
	require.Equal(t, 1, fn.Stats().Traces)
	for i, x := range outs {
		if x != nil {
			require.Equal(t, []float32{float32(i) + 1, 1}, floats(t, x))
		}
	}
}

// TestAFunctionThatCallsItselfWhileItIsTraced must not wait for itself.
func TestAFunctionThatCallsItselfWhileItIsTraced(t *testing.T) {
	var fn *compile.Function
	depth := 0
	fn = compile.New(func(in []*array) ([]*array, error) {
		if depth++; depth == 3 {
			return arrays{ops.Multiply(in[0], num(2))}, nil
		}
		out, err := fn.Call(nil, in...)
		return out, err
	}, compile.Options{})
	require.Equal(t, []float32{6}, floats(t, call(t, fn, vec(3))))
}

// TestExplainKernels counts bytes by hand: 5 element-wise ops over 6 float32 and a sum are one kernel, but what is an
// output is written too, and the product by itself.
func TestExplainKernels(t *testing.T) {
	fn := compile.New(func(in []*array) ([]*array, error) {
		y := ops.Exp(ops.Add(ops.Multiply(in[0], num(2)), num(1)))
		z := ops.Tanh(ops.Negative(ops.Matmul(y, in[1])))
		w := ops.Sum(ops.Square(ops.Reshape(z, tensor.Sizes(3))), nil, false)
		return arrays{z, w}, nil
	}, compile.Options{})
	x, m := ops.Ones(tensor.Sizes(1, 2), tensor.Float32), ops.Ones(tensor.Sizes(2, 3), tensor.Float32)
	call(t, fn, x, m)
	require.Contains(t, fn.Explain(nil, false), `  before fusion: 8 kernels, 112 bytes read, 76 written
    multiply: 2 inputs, 12 bytes read, 8 written, 2 elements
    add: 2 inputs, 12 bytes read, 8 written, 2 elements
    exp: 1 input, 8 bytes read, 8 written, 2 elements
    matmul: 2 inputs, 32 bytes read, 12 written, 3 elements
    negative: 1 input, 12 bytes read, 12 written, 3 elements
    tanh: 1 input, 12 bytes read, 12 written, 3 elements
    square: 1 input, 12 bytes read, 12 written, 3 elements
    sum: 1 input, 12 bytes read, 4 written, 3 elements
  after fusion: 4 kernels, 72 bytes read, 36 written
    multiply+add+exp: 3 inputs, 16 bytes read, 8 written, 2 elements
    matmul: 2 inputs, 32 bytes read, 12 written, 3 elements
    negative+tanh: 1 input, 12 bytes read, 12 written, 3 elements
    square+sum: 1 input, 12 bytes read, 4 written, 3 elements
`)
	require.Contains(t, fn.Explain(nil, false), "1 call, 1 trace, 0 replays")
}
