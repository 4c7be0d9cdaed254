package compile_test

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/ops/linalg"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// userKernel declares a kernel of the input a and at, an offset, with one output.
func userKernel(t *testing.T, cfg fast.KernelConfig) *fast.MetalKernel {
	t.Helper()
	cfg.Name, cfg.InputNames = "mine", []string{"a", "at"}
	if cfg.OutputNames == nil {
		cfg.OutputNames = []string{"out"}
	}
	k, err := fast.NewMetalKernel(cfg)
	require.NoError(t, err)
	return k
}

// over calls a kernel over a's elements, whose output has a's shape; a function says so, which counts its calls.
func over(k *fast.MetalKernel, asked *int, at *tensor.Ctx, a, b *array) []*array {
	zero := 0.0
	return k.Call(fast.KernelCall{Inputs: arrays{a, b}, Grid: fast.Extent{Cover: a}, Threadgroup: fast.Threads(32),
		OutputShapes: []fast.OutputShape{{Func: &tensor.ShapeFunc{F: func(in []tensor.Shape) ([]int, error) {
			*asked++
			return in[0], nil
		}}}},
		OutputDTypes: []tensor.DType{tensor.Float32}, InitValue: &zero}, at)
}

const shiftedBody = "uint i = thread_position_in_grid.x; out[i + at[0]] = a[i] * 2;"

func ints(v ...int32) *array { return ops.FromSlice(v, []int{len(v)}) }

// TestStepsOfUsersKernels: a user's kernel is recorded with what is beside it, and its functions of shapes are asked
// when that is recorded only. Its errors are its own, as without compile.
func TestStepsOfUsersKernels(t *testing.T) {
	optest.Open(t)
	k := userKernel(t, fast.KernelConfig{Source: shiftedBody})
	asked := 0
	at := &tensor.Ctx{Place: tensor.Place{File: "model.lua", Line: 12}}
	f := func(in []*array) *array {
		y := over(k, &asked, at, ops.Multiply(in[0], num(0.5)), in[1])[0]
		return ops.Add(ops.Sum(y, []int{-1}, true), y)
	}
	fn, _ := counted(compile.Options{}, f)
	call(t, fn, square(24, 0.3), ints(0))
	for i := range 6 {
		x := square(24, float32(i)/7)
		before := asked
		got := bytesOf(t, call(t, fn, x, ints(0)))
		require.Equal(t, before, asked, "call %d", i)
		require.Equal(t, bytesOf(t, f(arrays{x, ints(0)})), got)
		if testdevice.Name() == "cpu" {
			_, want := f(arrays{x, ints(1)}).Bytes(context.Background())
			_, err := call(t, fn, x, ints(1)).Bytes(context.Background())
			require.ErrorContains(t, err, "(model.lua:12)")
			require.EqualError(t, err, want.Error())
		}
	}
	require.Regexp(t, `^recorded: \d+ calls as one node, of \d commands, in 1 layout$`, recorded(fn))
}

// TestStepsOfKernelsThatLook: a kernel that looks at its input's strides sees those of the day, also where no element
// is reached by them, and one whose small input lies in constant memory has one whose large does not.
func TestStepsOfKernelsThatLook(t *testing.T) {
	optest.Open(t)
	k := userKernel(t, fast.KernelConfig{Strided: true, Source: `
		uint i = thread_position_in_grid.x;
		out[i] = float(a_strides[0] * 1000 + a_strides[1]) + a[(i % a_shape[1]) * a_strides[1]] + at[0];`})
	asked := 0
	f := func(in []*array) *array {
		return ops.Negative(over(k, &asked, &tensor.Ctx{}, in[0], ops.Add(in[1], in[1]))[0])
	}
	fn, _ := counted(compile.Options{}, f)
	for _, n := range []int{4, 12} {
		flat := ops.FromSlice(slices.Repeat([]float32{3}, n), []int{n, 1})
		wide := ops.FromSlice(make([]float32, 6*n), []int{6, n})
		xs := []*array{ops.Reshape(flat, tensor.Sizes(1, n)), ops.Transpose(flat, nil), span(wide, 2, 3),
			ops.Transpose(ops.Slice(ops.Transpose(wide, nil), []ops.Part{ops.Whole(), ops.Span(1, 2, 1)}), nil)}
		for round := range 3 {
			for i, x := range xs {
				require.NoError(t, tensor.Eval(context.Background(), x))
				require.Equal(t, bytesOf(t, f(arrays{x, ints(2)})), bytesOf(t, call(t, fn, x, ints(2))),
					"%d elements, input %d, round %d", n, i, round)
			}
		}
	}
	require.Contains(t, recorded(fn), "as one node")
}

// TestStepsThatChangeInputs: a small input that a user's kernel changes is copied where that is recorded, as it is
// where somebody holds it; of a large one that nobody holds the kernel gets the memory, by a call of its own.
func TestStepsThatChangeInputs(t *testing.T) {
	optest.Open(t)
	k := userKernel(t, fast.KernelConfig{MutableInputs: []string{"a"}, AtomicOutputs: true, Source: `
		uint i = thread_position_in_grid.x;
		a[i] = a[i] * 0.5f + float(at[0]);
		atomic_fetch_add_explicit(&out[0], a[i], memory_order_relaxed);`})
	asked := 0
	f := func(in []*array) []*array {
		r := over(k, &asked, &tensor.Ctx{}, in[0], ops.Add(in[1], in[1]))
		return arrays{r[1], ops.Add(ops.Take(ops.Reshape(r[0], tensor.Sizes(-1)), ints(0), new(int)), num(1))}
	}
	for n, want := range map[int]string{10: "as one node", 600: "as 3 nodes"} {
		fn := compile.New(func(in []*array) ([]*array, error) { return f(in), nil }, compile.Options{})
		x, y := square(n, 0.2), square(n, 0.2)
		for i := range 5 {
			out, err := fn.Call(nil, x, ints(int32(i)))
			require.NoError(t, err)
			tensor.Drop(x)
			x = out[0]
			held := bytesOf(t, y)
			plain := f(arrays{y, ints(int32(i))})
			require.Equal(t, bytesOf(t, plain[0]), bytesOf(t, x), "%d, call %d", n, i)
			require.Equal(t, held, bytesOf(t, y), "somebody holds it")
			y = plain[0]
			require.InDelta(t, floats(t, plain[1])[0], floats(t, out[1])[0], 1+float64(n*n)/1000)
		}
		require.Contains(t, recorded(fn), want)
	}
}

// TestStepsThatNeverEnd: a user's kernel that never ends can be stopped where it is recorded, and the call is lazy
// again; its input, which nobody holds, is what it was.
func TestStepsThatNeverEnd(t *testing.T) {
	optest.Open(t)
	testdevice.NeedsCPU(t, "a device that cannot stop runs the kernel for ever")
	k := userKernel(t, fast.KernelConfig{Source: `
		uint i = thread_position_in_grid.x;
		float x = a[i];
		while (at[0] != 0) { x = x + 1.0f; if (x < -1.0f) break; }
		out[i] = x;`})
	asked := 0
	fn, _ := counted(compile.Options{}, func(in []*array) *array {
		y := ops.Multiply(in[0], num(2))
		return ops.Add(over(k, &asked, &tensor.Ctx{}, y, in[1])[0], num(1))
	})
	fresh := func() *array {
		x := ops.Multiply(square(300, 0.1), num(1))
		require.NoError(t, tensor.Eval(context.Background(), x))
		return x
	}
	want := bytesOf(t, call(t, fn, fresh(), ints(0)))
	for range 3 {
		x, at := fresh(), ints(1)
		y := call(t, fn, x, at)
		tensor.Drop(x)
		c, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		require.ErrorIs(t, tensor.Eval(c, y), context.DeadlineExceeded)
		cancel()
		require.NoError(t, tensor.Synchronize(context.Background()))
		require.Equal(t, tensor.Lazy, y.State())
		require.Equal(t, want, bytesOf(t, call(t, fn, fresh(), ints(0))))
	}
	require.Contains(t, recorded(fn), "as one node")
}

// TestStepsOnStreams: a function over several streams is recorded in pieces, one a stream and meeting, which do not
// wait on the host; over several devices too.
func TestStepsOnStreams(t *testing.T) {
	optest.Open(t)
	here, there := streamOn(t, tensor.DefaultDevice()), streamOn(t, tensor.DefaultDevice())
	far := streamOn(t, openFar(t))
	for name, s := range map[string]*tensor.Stream{"a stream": there, "a device": far} {
		f := func(in []*array) *array {
			x := chainedOn(here)(in)
			y := chainedOn(s)(arrays{x, in[1]})
			z := chainedOn(here)(in[1:]) // nobody has to wait for it but the last
			return ops.Add(ops.Sin(ops.Subtract(z, y, &tensor.Ctx{Stream: here}), &tensor.Ctx{Stream: here}), x,
				&tensor.Ctx{Stream: here})
		}
		fn, _ := counted(compile.Options{}, f)
		var got, want []*array
		for i := range 20 {
			in := arrays{square(12, float32(i)/9), square(12, float32(i)/5), square(12, 0.7)}
			got, want = append(got, call(t, fn, in...)), append(want, f(in))
		}
		for i := range got {
			require.Equal(t, bytesOf(t, want[i]), bytesOf(t, got[i]), "%s, call %d", name, i)
		}
		require.Regexp(t, `^recorded: 19 calls as 3 nodes, of \d+ commands, in 3 layouts$`, recorded(fn), name)
	}
	turns, _ := counted(compile.Options{}, func(in []*array) *array {
		return ops.Sin(ops.Cos(in[0], &tensor.Ctx{Stream: here}), &tensor.Ctx{Stream: there})
	})
	call(t, turns, vec(1))
	require.Equal(t, "not recorded: its streams take turns at each op", recorded(turns))
}

// TestStepsAroundTheHost: what is beside a call on the host is recorded, before it and behind.
func TestStepsAroundTheHost(t *testing.T) {
	optest.Open(t)
	f := func(in []*array) *array {
		x := chained(in)
		spd := ops.Add(ops.Matmul(x, ops.Transpose(x, nil)), ops.Eye(9, 9, 0, tensor.Float32))
		return chained(arrays{linalg.Cholesky(spd, false), x})
	}
	fn, _ := counted(compile.Options{}, f)
	for i := range 5 {
		in := arrays{square(9, float32(i)/9), square(9, float32(i)/5)}
		require.Equal(t, bytesOf(t, f(in)), bytesOf(t, call(t, fn, in...)), "call %d", i)
	}
	require.Regexp(t, `^recorded: 4 calls as 3 nodes, of \d+ commands, in 2 layouts$`, recorded(fn))
	host, _ := counted(compile.Options{}, func(in []*array) *array {
		return ops.Negative(linalg.Cholesky(ops.Abs(in[0]), false))
	})
	call(t, host, ops.Eye(3, 3, 0, tensor.Float32))
	require.Equal(t, "not recorded: cholesky is computed on the host", recorded(host))
}

// streamOn is a new stream.
func streamOn(t *testing.T, d tensor.DeviceID) *tensor.Stream {
	t.Helper()
	s, err := tensor.NewStream(d)
	require.NoError(t, err)
	return s
}

// openFar opens a discrete device beside the tests' own.
func openFar(t *testing.T) tensor.DeviceID {
	t.Helper()
	dev, err := metal.NewDevice(testdevice.NewDiscrete(7), metal.DeviceOptions{})
	require.NoError(t, err)
	return tensor.SetDevice(dev)
}

// TestRandomPieces: random functions over streams of two devices, with users' kernels and calls on the host, give what
// they give without compile, held and dropped, in every call.
func TestRandomPieces(t *testing.T) {
	optest.Open(t)
	streams := []*tensor.Stream{streamOn(t, tensor.DefaultDevice()), streamOn(t, tensor.DefaultDevice()),
		streamOn(t, openFar(t))}
	k := userKernel(t, fast.KernelConfig{Source: shiftedBody})
	changing := userKernel(t, fast.KernelConfig{MutableInputs: []string{"a"},
		Source: "uint i = thread_position_in_grid.x; a[i] = a[i] * 0.25f + float(at[0]); out[i] = a[i];"})
	functions := 150
	if testing.Short() {
		functions = 30
	}
	nodes := map[string]int{}
	for seed := range uint64(functions) {
		spread := 1 + int(seed)%3
		f := func(in []*array) ([]*array, error) {
			r := rand.New(rand.NewPCG(seed, 3))
			asked := 0
			xs := slices.Clone(in[:2])
			c := &tensor.Ctx{Stream: streams[0]}
			for range 3 + r.IntN(14) {
				if r.IntN(3) == 0 {
					c = &tensor.Ctx{Stream: streams[r.IntN(spread)]}
				}
				x, y := xs[r.IntN(len(xs))], xs[r.IntN(len(xs))]
				switch r.IntN(9) {
				case 0:
					x = ops.Matmul(ops.Sin(x, c), y, c)
				case 1:
					x = ops.Transpose(x, nil, c)
				case 2:
					x = over(k, &asked, c, x, in[2])[0]
				case 3:
					x = over(changing, &asked, c, ops.Cos(x, c), in[2])[r.IntN(2)]
				case 4:
					x = over(changing, &asked, c, x, in[2])[r.IntN(2)]
				case 5:
					x = ops.Add(x, ops.Sum(y, []int{-1}, true, c), c)
				case 6:
					if r.IntN(3) == 0 {
						spd := ops.Add(ops.Multiply(ops.Sin(x, c), num(0), c), ops.Eye(6, 6, 0, tensor.Float32, c), c)
						x = ops.Add(x, linalg.Cholesky(spd, false, c), c)
					}
				default:
					x = ops.Add(ops.Multiply(x, num(0.5), c), ops.Tanh(y, c), c)
				}
				xs = append(xs, x)
			}
			return xs[len(xs)-1-r.IntN(3):], nil
		}
		fn := compile.New(f, compile.Options{})
		var held [][]*array
		for round := range 4 {
			in := func() arrays {
				in := arrays{ops.Multiply(square(6, float32(round)/3), num(1)), square(6, 0.4), ints(0)}
				require.NoError(t, tensor.Eval(context.Background(), in...))
				return in
			}
			want, err := f(in())
			require.NoError(t, err)
			given := in()
			got, err := fn.Call(nil, given...)
			require.NoError(t, err)
			if round%2 == 0 && !slices.Contains(got, given[0]) {
				tensor.Drop(given[0])
			}
			for i := range want {
				require.Equal(t, bytesOf(t, want[i]), bytesOf(t, got[i]), "seed %d, round %d, output %d", seed, round, i)
			}
			held = append(held, got, want)
		}
		for i := 0; i < len(held); i += 2 {
			for j := range held[i] {
				require.Equal(t, bytesOf(t, held[i+1][j]), bytesOf(t, held[i][j]), "seed %d, held", seed)
			}
		}
		nodes[regexp.MustCompile(`as \w+ node|not recorded`).FindString(recorded(fn))]++
	}
	require.Greater(t, nodes["as one node"], functions/5, nodes)
	require.Less(t, nodes["not recorded"], functions/4, nodes)
}
