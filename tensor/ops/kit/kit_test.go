package kit_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/drivers"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

func TestMain(m *testing.M) {
	dev, err := drivers.Open(drivers.Options{Name: "cpu"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tensor.SetDevice(dev)
	os.Exit(m.Run())
}

// runner is an op without inputs that runs f and has n numbers of dtype float64 or, if d says so, others.
type runner struct{ f *func(r *tensor.Run) error }

var run = tensor.Declare[runner]("kit_test_run")

func init() {
	run.Define(tensor.Rules[runner]{
		Shape: func(_ []tensor.Spec, _ runner, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, tensor.Shape{16}), nil
		},
		DType: func(_ []tensor.Spec, _ runner, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, tensor.Int64), nil
		},
		Run: func(r *tensor.Run, a runner) error { return (*a.f)(r) },
	})
}

// results runs f, which fills an output of 16 int64 numbers.
func results(f func(r *tensor.Run) error) ([]int64, error) {
	b, err := run.One(&tensor.Ctx{}, runner{&f}).Bytes(context.Background())
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(b)/8)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out, nil
}

// variant is one of every kind of field.
type variant struct {
	ACC       tensor.DType
	wholeRows bool
	rows      int
	name      string
	inner     // its fields are the variant's own
	unlike    *int
}

type inner struct{ Step uint8 }

func (variant) Macros() string { return "#define TWICE(x) (2 * (x))\n" }

const paramsText = `
struct Params { long a; uint b, c; ACC d; ulong e; ACC f; };
kernel void fields(device long* out [[buffer(0)]], constant Params* p [[buffer(1)]], constant uint& n [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
    constant Params& m = p[i];
    device long* to = out + 8 * i;
    to[0] = m.a; to[1] = m.b; to[2] = m.c; to[3] = long(m.d); to[4] = long(m.e); to[5] = long(m.f); to[6] = n;
    to[7] = TWICE(WHOLE_ROWS) + 10 * ROWS + 100 * STEP + NAME;
}`

// A struct of MSL finds its fields where Params put them, in one struct and in the next, whatever ACC is.
func TestParams(t *testing.T) {
	kernels := kit.NewKernels[variant](paramsText)
	for _, acc := range []tensor.DType{tensor.Float32, tensor.Float64} {
		v := variant{ACC: acc, wholeRows: true, rows: 3, name: "40000", inner: inner{5}, unlike: new(int)}
		require.Equal(t, acc == tensor.Float64, kernels.Source(v).Options.Float64)
		got, err := results(func(r *tensor.Run) error {
			params := kit.Params{}
			for i := range 2 {
				params = params.Long(-1<<40+i).Uint(math.MaxUint32, 7).Float(acc, -3).Long(1<<50).Float(acc, 4)
				params = params.Long().Uint() // adds nothing
				if acc == tensor.Float32 && i == 0 {
					params = params.Uint(0) // a struct of MSL ends at a multiple of 8 too
				}
			}
			return kernels.Launch(r, v, "fields", kit.Line(2), r.Out[0].Arg(), params.Arg(), kit.Uint(1<<32-1))
		})
		require.NoError(t, err)
		for i := range 2 {
			require.Equal(t, []int64{-1<<40 + int64(i), math.MaxUint32, 7, -3, 1 << 50, 4, math.MaxUint32,
				2 + 30 + 500 + 40000}, got[8*i:8*i+8], "%v %d", acc, i)
		}
	}
}

// What does not fit a parameter is refused, not cut.
func TestArgumentsThatDoNotFit(t *testing.T) {
	kernels := kit.NewKernels[kit.Plain](`kernel void one(device long* out [[buffer(0)]], constant uint& n [[buffer(1)]],
		uint i [[thread_position_in_grid]]) { out[i] = n; }`)
	for text, arg := range map[string]tensor.Arg{
		"4294967296 does not fit in a uint": kit.Uint(1 << 32),
		"-1 does not fit in a uint":         kit.Uint(-1),
		"-2 does not fit in a uint":         kit.Params{}.Uint(1, -2, 3).Arg(),
		"8 bytes, n has 4":                  tensor.Const(uint64(1)),
		"6 bytes, an element of n has 4":    tensor.Const(make([]byte, 6)),
	} {
		_, err := results(func(r *tensor.Run) error {
			return kernels.Launch(r, kit.Plain{}, "one", kit.Line(16), r.Out[0].Arg(), arg)
		})
		require.ErrorContains(t, err, text)
	}
}

// offsets walks a shape in row-major order.
func offsets(shape, strides []int) []int {
	out := []int{0}
	for i, n := range shape {
		var next []int
		for _, at := range out {
			for k := range n {
				next = append(next, at+k*strides[i])
			}
		}
		out = next
	}
	return out
}

// Dimensions that are merged are walked in the same order, and no two that are left could be merged.
func TestMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fewest := 9
	for range 500 {
		shape := make(tensor.Shape, random.IntN(5))
		for i := range shape {
			shape[i] = 1 + random.IntN(3)
		}
		strides := [][]int{shape.Strides(), make([]int, len(shape))}
		for i, s := range shape.Strides() {
			strides[1][i] = []int{s, 2 * s, 0}[random.IntN(3)]
		}
		merged, steps := kit.Merge(shape, strides...)
		for k := range strides {
			require.Equal(t, offsets(shape, strides[k]), offsets(merged, steps[k]), "%v %v", shape, strides)
		}
		for i := 1; i < len(merged); i++ {
			apart := merged[i] == 1
			for k := range steps {
				apart = apart || steps[k][i-1] != merged[i]*steps[k][i]
			}
			require.True(t, apart, "%v %v became %v %v", shape, strides, merged, steps)
		}
		if len(shape) == 4 {
			fewest = min(fewest, len(merged))
		}
	}
	require.Equal(t, 1, fewest)
	none, _ := kit.Merge(tensor.Shape{1, 1}, []int{5, 7})
	require.Empty(t, none)
	require.Equal(t, 1, kit.Collapse(tensor.Shape{1, 1}, []int{5, 7}).N)
}

// offset_of steps through Dims as Go steps through the shape.
func TestOffsets(t *testing.T) {
	kernels := kit.NewKernels[kit.Plain](kit.StridesMSL, `
kernel void walk(device long* out [[buffer(0)]], constant uint* shape [[buffer(1)]],
	constant long* strides [[buffer(2)]],
                 constant int& ndim [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    out[i] = offset_of(i, shape, strides, ndim);
}`)
	for _, strides := range [][]int{{8, 4, 2, 1}, {1, 2, 4, 8}, {0, 8, 1, 3}, {100, 0, 0, -7}} {
		shape := tensor.Shape{2, 2, 2, 2}
		got, err := results(func(r *tensor.Run) error {
			dims := kit.Collapse(shape, strides)
			return kernels.Launch(r, kit.Plain{}, "walk", kit.Line(16), r.Out[0].Arg(), dims.Shape(), dims.Strides(0),
				dims.Rank())
		})
		require.NoError(t, err)
		for i, at := range offsets(shape, strides) {
			require.Equal(t, int64(at), got[i], "%v", strides)
		}
	}
}

// The limits in MSL are those of the dtypes' bits: the first value beyond them wraps around or is infinite.
func TestLimits(t *testing.T) {
	for _, d := range tensor.DTypes() {
		if !d.IsInteger() {
			continue
		}
		text := fmt.Sprintf(`kernel void limits(device long* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
			%[1]s low = %[2]s; %[1]s high = %[3]s;
			out[i] = i == 0 ? long(low) : i == 1 ? long(high) : i == 2 ? (%[1]s(low - 1) == high) : (%[1]s(high + 1) == low);
		}`, d.MSL(), kit.Least(d), kit.Greatest(d))
		got, err := results(func(r *tensor.Run) error {
			return kit.NewKernels[kit.Plain](text).Launch(r, kit.Plain{}, "limits", kit.Line(4), r.Out[0].Arg())
		})
		require.NoError(t, err)
		least, greatest := d.IntRange()
		require.Equal(t, []int64{least, int64(greatest), 1, 1}, got[:4], "%v", d)
	}
	require.Equal(t, float64(tensor.Float16Value(0x7bff)), tensor.Float16.MaxFinite())
	require.Equal(t, float64(tensor.BFloat16Value(0x7f7f)), tensor.BFloat16.MaxFinite())
	require.Equal(t, float64(math.Float32frombits(0x7f7fffff)), tensor.Float32.MaxFinite())
	require.Equal(t, math.Float64frombits(0x7fefffffffffffff), tensor.Float64.MaxFinite())
	require.Equal(t, "float(-3.4028234663852886e+38f)", kit.LeastFinite(tensor.Float32))
	require.Equal(t, "double(-1.7976931348623157e+308)", kit.LeastFinite(tensor.Float64))
}
