package tensor_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

var (
	device   *metal.Device
	recorded = &recorder{Driver: soft.New(soft.Options{})}
	collect  atomic.Pointer[func()] // what a forced collection does; nil: runtime.GC
	heap     atomic.Int64           // what the device takes for the heap's size
	later    atomic.Int64           // how far its clock is ahead
)

// recorder is a driver that keeps the commands that it is given while it is on.
type recorder struct {
	metal.Driver
	mu   sync.Mutex
	on   bool
	cmds []metal.Command

	submitted atomic.Int64 // command buffers
}

func (r *recorder) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	r.submitted.Add(1)
	r.mu.Lock()
	if r.on {
		for _, c := range cb.Commands() { // they are valid until the end only
			c.Args = slices.Clone(c.Args)
			for i := range c.Args {
				c.Args[i].Bytes = slices.Clone(c.Args[i].Bytes)
			}
			r.cmds = append(r.cmds, c)
		}
	}
	r.mu.Unlock()
	r.Driver.Submit(queue, cb, done)
}

// commands are what f's evaluations gave the driver of the tests' device, barriers left out.
func commands(f func()) []metal.Command { return recorded.during(f) }

// during is what the driver is given while f runs, barriers left out.
func (r *recorder) during(f func()) []metal.Command {
	r.mu.Lock()
	r.on, r.cmds = true, nil
	r.mu.Unlock()
	f()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	var out []metal.Command
	for _, c := range r.cmds {
		if c.Kind != metal.CmdBarrier {
			out = append(out, c)
		}
	}
	return out
}

func TestMain(m *testing.M) {
	heap.Store(hugeHeap)
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	dev, err := metal.NewDevice(recorded, metal.DeviceOptions{Now: now, Heap: heap.Load, Collect: func() {
		if f := collect.Load(); f != nil {
			(*f)()
			return
		}
		runtime.GC()
	}})
	if err != nil {
		panic(err)
	}
	device = dev
	tensor.SetDevice(dev)
	code := m.Run()
	if err := dev.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// useDevice opens a device on drv and makes it the one of the test: what other tests leave counts elsewhere.
func useDevice(t *testing.T, drv metal.Driver, opt metal.DeviceOptions) *metal.Device {
	t.Helper()
	dev, err := metal.NewDevice(drv, opt)
	require.NoError(t, err)
	dev.SetValidate(opt.Validate) // whatever the environment says
	tensor.SetDevice(dev)
	t.Cleanup(func() {
		tensor.SetDevice(device)
		require.NoError(t, dev.Close())
	})
	return dev
}

// collectTo collects until at most that much is active: who has just run a kernel may hold its arrays a moment longer.
func collectTo(t *testing.T, dev *metal.Device, most int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		dev.Collect(background)
		return dev.Memory().Active <= most
	}, 10*time.Second, time.Millisecond)
}

// hugeHeap is a heap that takes minutes to collect: no test does, unless it sets another.
const hugeHeap = 1 << 40

// The ops of these tests: small ones of each kind of rule.
type (
	axesAttrs  struct{ Axes tensor.Ints }
	dtypeAttrs struct{ To tensor.DType }
	dimsAttrs  struct{ Shape tensor.Dims }
	sliceAttrs struct{ Start, Stop, Step int }
	runAttrs   struct{ Body *func(r *tensor.Run) error }
	hostAttrs  struct {
		Body *func(h *tensor.HostCall) error
	}
)

func elementwise(name, expr string) *tensor.OpOf[tensor.None] { return working(name, expr, nil) }

// working is elementwise for an op that says how many operations it takes.
func working(name, expr string, flops func(in, out []tensor.Spec, _ tensor.None) float64) *tensor.OpOf[tensor.None] {
	op := tensor.Declare[tensor.None](name)
	op.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			for _, x := range in[1:] {
				var err error
				if s, err = tensor.Broadcast(s, x.Shape); err != nil {
					return nil, err
				}
			}
			return append(outs, s), nil
		},
		DType: first[tensor.None],
		Expr:  func(tensor.None, []tensor.DType) string { return expr },
		Flops: flops,
	})
	return op
}

func first[A any](in []tensor.Spec, _ A, outs []tensor.DType) ([]tensor.DType, error) {
	return append(outs, in[0].DType), nil
}

func same[A any](in []tensor.Spec, _ A, outs []tensor.Shape) ([]tensor.Shape, error) {
	return append(outs, in[0].Shape), nil
}

var (
	addOp      = elementwise("test_add", "$0 + $1")
	mulOp      = elementwise("test_mul", "$0 * $1")
	negOp      = elementwise("test_neg", "-$0")
	workOp     = working("test_work", "$0", func(_, _ []tensor.Spec, _ tensor.None) float64 { return 1e9 })
	muladdOp   = elementwise("test_muladd", "$0 * $1 + $2")
	castOp     = tensor.Declare[dtypeAttrs]("test_cast")
	sumOp      = tensor.Declare[axesAttrs]("test_sum")
	argmaxOp   = tensor.Declare[axesAttrs]("test_argmax")
	transpose  = tensor.Declare[tensor.None]("test_transpose")
	reshapeOp  = tensor.Declare[dimsAttrs]("test_reshape")
	broadcast  = tensor.Declare[dimsAttrs]("test_broadcast")
	sliceOp    = tensor.Declare[sliceAttrs]("test_slice")
	runOp      = tensor.Declare[runAttrs]("test_run")
	updateOp   = tensor.Declare[runAttrs]("test_update")
	hostOp     = tensor.Declare[hostAttrs]("test_host")
	likeOp     = tensor.Declare[tensor.None]("test_like")
	accOf      = map[tensor.DType]tensor.DType{tensor.Float16: tensor.Float32, tensor.BFloat16: tensor.Float32}
	background = context.Background()
)

func init() {
	castOp.Define(tensor.Rules[dtypeAttrs]{
		Shape: same[dtypeAttrs],
		DType: func(_ []tensor.Spec, a dtypeAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, a.To), nil
		},
		Expr: func(dtypeAttrs, []tensor.DType) string { return "$0" },
	})
	reduced := func(in []tensor.Spec, a axesAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
		axes, err := tensor.Axes(a.Axes.Slice(), len(in[0].Shape))
		out := in[0].Shape.Clone()
		for i := len(axes) - 1; i >= 0 && err == nil; i-- {
			out = append(out[:axes[i]], out[axes[i]+1:]...)
		}
		return append(outs, out), err
	}
	sumOp.Define(tensor.Rules[axesAttrs]{
		Shape: reduced, DType: first[axesAttrs],
		Reduce: func(a axesAttrs, in []tensor.Spec) ([]int, kernelgen.Reducer, error) {
			axes, err := tensor.Axes(a.Axes.Slice(), len(in[0].Shape))
			acc, ok := accOf[in[0].DType]
			if !ok {
				acc = in[0].DType
			}
			zero := "0"
			if acc == tensor.Complex64 {
				zero = "complex64_t(0, 0)"
			}
			return axes, kernelgen.Reducer{Acc: acc.MSL(), Init: zero, Load: acc.MSL() + "($0)", Combine: "$0 + $1",
				Finish: "$0"}, err
		},
	})
	argmaxOp.Define(tensor.Rules[axesAttrs]{
		Shape: reduced,
		DType: func(_ []tensor.Spec, _ axesAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, tensor.Uint32), nil
		},
		Reduce: func(a axesAttrs, in []tensor.Spec) ([]int, kernelgen.Reducer, error) {
			axes, err := tensor.Axes(a.Axes.Slice(), len(in[0].Shape))
			return axes, kernelgen.Reducer{Acc: "best", Header: `
struct best { float value; uint index; };
best best_make(float value, uint index) { best b; b.value = value; b.index = index; return b; }
best best_pick(best a, best b) {
  if (a.value > b.value || (a.value == b.value && a.index < b.index)) return a;
  return b;
}`, Init: "best_make(-INFINITY, 0xffffffffu)", Load: "best_make($0, uint($i))", Combine: "best_pick($0, $1)",
				Finish: "$0.index"}, err
		},
	})
	transpose.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			return append(outs, reversed(s)), nil
		},
		DType: first[tensor.None],
		View: func(_ []tensor.Spec, v tensor.View, _ tensor.None, out []tensor.Operand) bool {
			copy(out[0].Strides, reversed(v.Strides))
			return true
		},
	})
	reshapeOp.Define(tensor.Rules[dimsAttrs]{
		Shape: func(in []tensor.Spec, a dimsAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := a.Shape.Shape(in)
			return append(outs, s), err
		},
		DType:    first[dimsAttrs],
		SpecFrom: func(dimsAttrs, int) int { return 1 },
		View: func(in []tensor.Spec, v tensor.View, _ dimsAttrs, out []tensor.Operand) bool {
			copy(out[0].Strides, out[0].Shape.Strides())
			return v.Contiguous(in[0].Shape)
		},
	})
	broadcast.Define(tensor.Rules[dimsAttrs]{
		Shape: func(in []tensor.Spec, a dimsAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := a.Shape.Shape(in)
			return append(outs, s), err
		},
		DType: first[dimsAttrs],
		View: func(in []tensor.Spec, v tensor.View, _ dimsAttrs, out []tensor.Operand) bool {
			s, st := out[0].Shape, out[0].Strides
			for i, n := range in[0].Shape {
				if k := len(s) - len(in[0].Shape) + i; n == s[k] {
					st[k] = v.Strides[i]
				}
			}
			return true
		},
	})
	sliceOp.Define(tensor.Rules[sliceAttrs]{
		Shape: func(in []tensor.Spec, a sliceAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape.Clone()
			n := len(s) - 1
			if a.Step > 0 {
				s[n] = (a.Stop - a.Start + a.Step - 1) / a.Step
			} else {
				s[n] = (a.Start - a.Stop - a.Step - 1) / -a.Step
			}
			return append(outs, s), nil
		},
		DType: first[sliceAttrs],
		View: func(in []tensor.Spec, v tensor.View, a sliceAttrs, out []tensor.Operand) bool {
			n := len(in[0].Shape) - 1
			copy(out[0].Strides, v.Strides)
			out[0].OffsetBytes += int64(a.Start * v.Strides[n] * in[0].DType.Size())
			out[0].Strides[n] *= a.Step
			return true
		},
	})
	runOp.Define(tensor.Rules[runAttrs]{
		Shape: same[runAttrs], DType: first[runAttrs],
		Run: func(r *tensor.Run, a runAttrs) error { return (*a.Body)(r) },
	})
	updateOp.Define(tensor.Rules[runAttrs]{
		Shape: same[runAttrs], DType: first[runAttrs], Updates: tensor.UpdatesFirst[runAttrs],
		Run: updateBody,
	})
	hostOp.Define(tensor.Rules[hostAttrs]{
		Shape: same[hostAttrs], DType: first[hostAttrs],
		Host: func(h *tensor.HostCall, a hostAttrs) error { return (*a.Body)(h) },
	})
	likeOp.Define(tensor.Rules[tensor.None]{
		Shape: same[tensor.None], DType: first[tensor.None],
		SpecFrom: func(tensor.None, int) int { return 0 },
		Run:      func(r *tensor.Run, _ tensor.None) error { return r.Fill(r.Out[0], []byte{0, 0, 128, 63}) },
	})
}

func updateBody(r *tensor.Run, a runAttrs) error {
	if _, err := r.Updated(); err != nil {
		return err
	}
	return (*a.Body)(r)
}

// countOp is the number of elements, once for each element.
var countOp = tensor.Declare[tensor.None]("test_count")

func init() {
	countOp.Define(tensor.Rules[tensor.None]{
		Shape: same[tensor.None], DType: first[tensor.None],
		SpecFrom: func(tensor.None, int) int { return 0 },
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			for b := h.Out[0].Bytes; len(b) > 0; b = b[4:] {
				binary.LittleEndian.PutUint32(b, math.Float32bits(float32(h.In[0].Shape.Size())))
			}
			return nil
		},
	})
}

func reversed[T any](s []T) []T {
	out := make([]T, len(s))
	for i, v := range s {
		out[len(s)-1-i] = v
	}
	return out
}

func ctx() *tensor.Ctx { return &tensor.Ctx{Place: tensor.Place{File: "test.lua", Line: 7}} }

func add(a, b *tensor.Array) *tensor.Array { return addOp.One(ctx(), tensor.None{}, a, b) }
func mul(a, b *tensor.Array) *tensor.Array { return mulOp.One(ctx(), tensor.None{}, a, b) }
func neg(a *tensor.Array) *tensor.Array    { return negOp.One(ctx(), tensor.None{}, a) }
func trans(a *tensor.Array) *tensor.Array  { return transpose.One(ctx(), tensor.None{}, a) }
func cast(a *tensor.Array, d tensor.DType) *tensor.Array {
	return castOp.One(ctx(), dtypeAttrs{d}, a)
}
func sum(a *tensor.Array, axes ...int) *tensor.Array {
	return sumOp.One(ctx(), axesAttrs{tensor.MakeInts(axes)}, a)
}
func argmax(a *tensor.Array, axes ...int) *tensor.Array {
	return argmaxOp.One(ctx(), axesAttrs{tensor.MakeInts(axes)}, a)
}
func reshape(a *tensor.Array, n ...int) *tensor.Array {
	return reshapeOp.One(ctx(), dimsAttrs{tensor.MakeDims(n...)}, a)
}
func expand(a *tensor.Array, n ...int) *tensor.Array {
	return broadcast.One(ctx(), dimsAttrs{tensor.MakeDims(n...)}, a)
}
func slice(a *tensor.Array, start, stop, step int) *tensor.Array {
	return sliceOp.One(ctx(), sliceAttrs{start, stop, step}, a)
}
func run(a *tensor.Array, body func(r *tensor.Run) error, more ...*tensor.Array) *tensor.Array {
	return runOp.One(ctx(), runAttrs{&body}, append([]*tensor.Array{a}, more...)...)
}

// array is a float32 array.
func array(v []float32, shape ...int) *tensor.Array {
	if shape == nil {
		shape = []int{len(v)}
	}
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return tensor.FromBytes(ctx(), tensor.Spec{Shape: shape, DType: tensor.Float32}, b)
}

// iota is 0, 1, 2, ... of that shape.
func iota(shape ...int) *tensor.Array {
	v := make([]float32, tensor.Shape(shape).Size())
	for i := range v {
		v[i] = float32(i)
	}
	return array(v, shape...)
}

func floats(t testing.TB, x *tensor.Array) []float32 {
	t.Helper()
	b, err := x.Bytes(background)
	require.NoError(t, err)
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func uints(t testing.TB, x *tensor.Array) []uint32 {
	t.Helper()
	b, err := x.Bytes(background)
	require.NoError(t, err)
	out := make([]uint32, len(b)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}
