package random_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestRandomWidths: narrow numbers are the first bytes of the words that a key makes, an odd count of which is mixed in
// another way; both the words and their number are MLX's.
func TestRandomWidths(t *testing.T) {
	optest.Open(t)
	key := random.Key(11)
	for n := 1; n < 20; n++ {
		for _, width := range []int{1, 2} {
			bytes := n * width
			words := optest.Bytes(t, random.Bits(tensor.Sizes((bytes+3)/4), 4, key))
			require.Equal(t, words[:bytes], optest.Bytes(t, random.Bits(tensor.Sizes(n), width, key)), "%d of width %d", n,
				width)
		}
	}
}

// TestRandomOp runs the op's rules: its shape may follow another array, and keys may be a batch.
func TestRandomOp(t *testing.T) {
	optest.Open(t)
	like := optest.In("n,m", optest.Uniform(-2, 2))
	optest.Run(t, optest.Subject{
		Name: "random_bits", Cases: []optest.Case{{Inputs: []optest.Input{like}}}, NonDiff: true,
		Fn: optest.One(func(in []*array) *array { return random.Bits(tensor.ShapeOf(in[0]), 4, random.Key(3)) }),
		Bad: []optest.Bad{
			{Name: "width", Make: func() *array { return random.Bits(tensor.Sizes(2), 3, random.Key(0)) },
				Text: "[random_bits] width is 3, want 1, 2 or 4 bytes"},
			{Name: "key", Make: func() *array {
				return random.Bits(tensor.Sizes(2), 4, ops.Zeros(tensor.Sizes(2),
					tensor.Int32))
			},
				Text: "[random_bits] key is int32 (2,), want uint32 (2,)"},
			{Name: "shape", Make: func() *array { return random.Bits(tensor.Sizes(-2), 4, random.Key(0)) },
				Text: "[random_bits] negative dimension"},
			{Name: "dtype", Make: func() *array {
				return random.Uniform(ops.Number(0, tensor.Int32), ops.Number(1, tensor.Int32), tensor.Sizes(2), tensor.Int32,
					random.Key(0))
			}, Text: "[random_uniform] dtype is int32, want float32, float16 or bfloat16"},
			{Name: "randint", Make: func() *array {
				f := ops.Number(0, tensor.Float32)
				return random.Randint(f, f, tensor.Sizes(2), tensor.Float32, random.Key(0))
			}, Text: "[random_randint] dtype is float32, want an integer one or bool"},
			{Name: "bounds", Make: func() *array {
				i := ops.Arange(0, 2, 1, tensor.Int32)
				return random.Randint(i, i, tensor.Sizes(3), tensor.Int32, random.Key(0))
			}, Text: "[random_randint]"},
			{Name: "bernoulli", Make: func() *array {
				return random.Bernoulli(ops.Number(1, tensor.Int32), tensor.Sizes(3), random.Key(0))
			}, Text: "[random_bernoulli] p has dtype int32, want a floating-point one"},
			{Name: "normal", Make: func() *array {
				return random.Normal(tensor.Sizes(3), tensor.Int32, nil, nil, random.Key(0))
			}, Text: "[random_normal] dtype is int32, want a floating-point one or complex64"},
			{Name: "normal key", Make: func() *array {
				return random.Normal(tensor.Sizes(3), tensor.Float32, nil, nil, nil)
			}, Text: "[random_normal] an input is nil"},
			{Name: "split", Make: func() *array { return random.Split(random.Key(0), -1) },
				Text: "[random_split] num is -1"},
		},
	})
	keys := random.Split(random.Key(5), 3)
	for _, width := range []int{1, 2, 4} {
		f := func(in []*array) ([]*array, error) {
			return []*array{random.Bits(tensor.Sizes(5), width, in[0])}, nil
		}
		all, err := grad.VMap(f, []int{0}, []int{0})([]*array{keys})
		require.NoError(t, err)
		for i := range 3 {
			one := random.Bits(tensor.Sizes(5), width, ops.Slice(keys, []ops.Part{ops.At(i)}))
			require.Equal(t, optest.Bytes(t, one), optest.Bytes(t, ops.Slice(all[0], []ops.Part{ops.At(i)})),
				"width %d, key %d", width, i)
		}
	}
}

// TestDistributions: the parameters of distributions may be arrays; gradients flow to those of normal and uniform ones.
func TestDistributions(t *testing.T) {
	key, two := random.Key(3), []any{2, 3}
	for _, c := range []struct {
		name   string
		flat   bool
		dtypes []tensor.DType
		in     []optest.Input
		shape  []any
	}{
		{"uniform", false, optest.FloatTypes[:2], optest.Of("3", "2,1").Inputs, two},
		{"normal", false, optest.FloatTypes[:2], optest.Of("3", "2,1").Inputs, two},
		{"randint", true, []tensor.DType{tensor.Int32, tensor.Int8},
			[]optest.Input{optest.In("3", optest.Ints(-9, 0)).Const(), optest.In("2,1", optest.Ints(1, 9)).Const()}, two},
		{"bernoulli", true, optest.FloatTypes[:2], []optest.Input{optest.In("2,3", optest.Uniform(0, 1))}, two},
	} {
		optest.Run(t, optest.Subject{
			Name: c.name, Ops: []string{"random_bits"}, Fn: optest.Call("random."+c.name, "shape", c.shape, "key", key),
			Cases: []optest.Case{{Inputs: c.in}}, DTypes: c.dtypes, FD: c.dtypes[0], NonDiff: c.flat,
		})
	}
}

// TestNoise: what is made of uniform numbers by functions follows a shape, and gradients flow to bounds only.
func TestNoise(t *testing.T) {
	const drawn = "one distribution is drawn in another way than several: sizes are guards"
	key := random.Key(3)
	like := optest.In("n,m", optest.Uniform(-2, 2))
	bounds := []optest.Input{optest.In("3", optest.Uniform(-2, -1)), optest.In("2,1", optest.Uniform(1, 2))}
	for _, s := range []optest.Subject{
		{Name: "gumbel", NonDiff: true, Cases: []optest.Case{{Inputs: []optest.Input{like}}},
			Fn: optest.One(func(in []*array) *array {
				return random.Gumbel(tensor.ShapeOf(in[0]), tensor.Float32, key)
			})},
		{Name: "laplace", NonDiff: true, Cases: []optest.Case{{Inputs: []optest.Input{like}}},
			Fn: optest.One(func(in []*array) *array {
				return random.Laplace(tensor.ShapeOf(in[0]), tensor.Float32, 1, 2, key)
			})},
		{Name: "truncated_normal", Cases: []optest.Case{{Inputs: bounds}}, DTypes: optest.FloatTypes[:2],
			FD: optest.FloatTypes[0], Fn: optest.Call("random.truncated_normal", "shape", []any{2, 3}, "key", key)},
		{Name: "permutation", Cases: []optest.Case{{Inputs: []optest.Input{like}}},
			Fn: optest.Call("random.permutation", "axis", 1, "key", key)},
		{Name: "categorical", Cases: []optest.Case{{Inputs: []optest.Input{like}}}, DTypes: optest.FloatTypes[:2],
			FD: optest.FloatTypes[0], NoReplay: drawn, Fn: optest.Call("random.categorical", "key", key)},
		{Name: "categorical samples", Cases: []optest.Case{{Inputs: []optest.Input{like}}},
			DTypes: optest.FloatTypes[:1], FD: optest.FloatTypes[0], NoReplay: drawn,
			Fn: optest.Call("random.categorical", "axis", 0, "num_samples", 7, "key", key),
			Bad: []optest.Bad{
				{Name: "axis", Make: func() *array {
					return random.Categorical(ops.Zeros(tensor.Sizes(3), tensor.Float32), 1, tensor.Sizes(), key)
				}, Text: "[random_categorical] axis 1 is out of range for an array with 1 dimension"},
				{Name: "rank", Make: func() *array {
					return random.Categorical(ops.Zeros(tensor.Sizes(3, 4), tensor.Float32), -1, tensor.Sizes(), key)
				}, Text: "[random_categorical] logits (3, 4) without axis -1 have more dimensions than shape ()"},
				{Name: "shape", Make: func() *array {
					return random.Categorical(ops.Zeros(tensor.Sizes(3, 4), tensor.Float32), -1, tensor.Sizes(2), key)
				}, Text: "[random_categorical]"},
				{Name: "gumbel", Make: func() *array { return random.Gumbel(tensor.Sizes(2), tensor.Int32, key) },
					Text: "[random_gumbel] dtype is int32, want float32, float16 or bfloat16"},
				{Name: "permutation", Make: func() *array {
					return random.Permutation(ops.Zeros(tensor.Sizes(3), tensor.Float32), 2, key)
				}, Text: "[random_permutation] axis 2 is out of range"},
			}},
	} {
		s.Ops = []string{"random_bits"}
		optest.Run(t, s)
	}
}

// TestCategoricalFrequencies: indices are drawn as often as the softmax says, of one distribution and of several.
func TestCategoricalFrequencies(t *testing.T) {
	optest.Open(t)
	const n = 1 << 14
	p := []float64{0.1, 0, 0.6, 0.3}
	logits := ops.Log(ops.FromFloats(p, []int{4}, tensor.Float32))
	for _, x := range []*array{
		random.Categorical(logits, -1, tensor.Sizes(n), random.Key(2)),
		random.Categorical(ops.BroadcastTo(logits, tensor.Sizes(n, 4)), -1, tensor.Sizes(n), random.Key(2)),
	} {
		drawn, err := ops.ToSlice[uint32](t.Context(), x)
		require.NoError(t, err)
		counts := make([]float64, len(p))
		for _, i := range drawn {
			counts[i]++
		}
		for i := range p {
			require.InDelta(t, p[i]*n, counts[i], 5*math.Sqrt(n*p[i]*(1-p[i])), "index %d", i)
		}
	}
}

// TestRandomState: one seed gives one sequence, whose keys differ, and Set goes back to a place in it.
func TestRandomState(t *testing.T) {
	optest.Open(t)
	a, b := random.NewState(9), random.NewState(1)
	b.Seed(9)
	first := optest.Bytes(t, a.Next())
	require.Equal(t, first, optest.Bytes(t, b.Next()))
	place := a.Key()
	second := optest.Bytes(t, a.Next())
	require.NotEqual(t, first, second)
	a.Set(place)
	require.Equal(t, second, optest.Bytes(t, a.Next()))
}

// TestUniformMoments: the mean of many numbers is that of the distribution, and all are in its range.
func TestUniformMoments(t *testing.T) {
	optest.Open(t)
	const n = 1 << 14
	x := random.Uniform(ops.Number(-1, tensor.Float32), ops.Number(3, tensor.Float32), tensor.Sizes(n),
		tensor.Float32, random.Key(7))
	sum, squares := 0.0, 0.0
	for _, v := range optest.Values32(t, x) {
		require.True(t, v >= -1 && v < 3)
		sum, squares = sum+v, squares+v*v
	}
	mean := sum / n
	require.InDelta(t, 1, mean, 5*4/math.Sqrt(12*n))
	require.InDelta(t, 16.0/12, squares/n-mean*mean, 0.05)
}
