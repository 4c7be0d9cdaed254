package tensor_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// outputs counts the buffers that a generated linear kernel writes.
func outputs(c metal.Command) int {
	n := 0
	for _, p := range c.Pipeline.Params() {
		if p.Write {
			n++
		}
	}
	return n
}

func eval(t testing.TB, xs ...*tensor.Array) {
	t.Helper()
	require.NoError(t, tensor.Eval(background, xs...))
}

func TestDroppedIntermediatesAreNeverWritten(t *testing.T) {
	x := iota(100)
	a := add(x, x)
	b := mul(a, x)
	c := neg(b)
	tensor.Drop(a, b)
	cmds := commands(func() { eval(t, c) })
	require.Len(t, cmds, 1)
	require.Equal(t, 1, outputs(cmds[0]))
	require.Equal(t, float32(-2*99*99), floats(t, c)[99])
	_, err := a.Bytes(background)
	require.ErrorContains(t, err, "[item] the value of float32 (100,) made at test.lua:7 was dropped")
}

func TestHeldIntermediatesAreExtraOutputs(t *testing.T) {
	x := iota(100)
	a := add(x, x)
	b := mul(a, x)
	c := neg(b)
	cmds := commands(func() { eval(t, c) })
	require.Len(t, cmds, 1)
	require.Equal(t, 3, outputs(cmds[0]))
	cmds = commands(func() {
		require.Equal(t, float32(198), floats(t, a)[99])
		require.Equal(t, float32(2*99*99), floats(t, b)[99])
	})
	require.Empty(t, cmds, "nothing is computed twice")
}

func TestLazyReadersKeepDroppedValues(t *testing.T) {
	x := iota(100)
	a := add(x, x)
	later := neg(a)
	tensor.Drop(a)
	eval(t, mul(a, a))
	require.Equal(t, float32(-198), floats(t, later)[99])
}

func TestSeveralReadersMakeOneKernelEach(t *testing.T) {
	x := iota(10, 10)
	a := add(x, x)
	s := sum(a, 1)
	y := mul(a, reshape(s, 10, 1)) // a is read by the sum and by the product: written once
	tensor.Drop(a, s)
	cmds := commands(func() { eval(t, y) })
	require.Len(t, cmds, 3)
	require.Equal(t, float32(2*1*90), floats(t, y)[1])
}

func TestReductionsTakeWhatOnlyTheyRead(t *testing.T) {
	x := iota(10, 10)
	a := mul(neg(x), add(x, x))
	s := sum(a)
	require.Len(t, commands(func() { eval(t, s) }), 2, "the product is held: it is written")
	a = mul(neg(x), add(x, x))
	s2 := sum(a)
	for _, n := range tensor.Order([]*tensor.Array{a}, nil) {
		if !n.IsConstant() {
			tensor.Drop(n.Handle(nil, 0))
		}
	}
	require.Len(t, commands(func() { eval(t, s2) }), 1)
	require.Equal(t, floats(t, s), floats(t, s2))
}

func TestLargeKernelsAreCut(t *testing.T) {
	x := iota(100)
	y := x
	for range 200 {
		y = add(y, x)
		tensor.Drop(y)
	}
	y = neg(y)
	cmds := commands(func() { eval(t, y) })
	require.Len(t, cmds, 4)
	require.Equal(t, float32(-201*99), floats(t, y)[99])
	z := x
	held := []*tensor.Array{}
	for range 100 { // all held: the outputs are what there are too many of
		z = add(z, x)
		held = append(held, z)
	}
	cmds = commands(func() { eval(t, z) })
	for _, c := range cmds {
		require.LessOrEqual(t, len(c.Pipeline.Params()), 31)
	}
	require.Equal(t, float32(51*99), floats(t, held[49])[99])
}

// place is the address of an evaluated array's first byte.
func place(t *testing.T, x *tensor.Array) *byte {
	t.Helper()
	_, v, release, err := x.HostView(background)
	require.NoError(t, err)
	defer release()
	return &v.Bytes[0]
}

func TestDonation(t *testing.T) {
	x := iota(5000)
	a := add(x, x)
	eval(t, a)
	was := place(t, a)
	b := neg(a)
	tensor.Drop(a)
	eval(t, b)
	require.Same(t, was, place(t, b), "the last reader takes the buffer over")
	require.Equal(t, float32(-2*4999), floats(t, b)[4999])

	held := neg(b)
	eval(t, held)
	require.NotSame(t, was, place(t, held), "b is held")
	require.Equal(t, float32(-2*4999), floats(t, b)[4999])

	view := slice(b, 0, 10, 1)
	eval(t, view)
	c := neg(b)
	tensor.Drop(b)
	eval(t, c)
	require.NotSame(t, was, place(t, c), "a view keeps the bytes")
	require.Equal(t, []float32{0, -2, -4}, floats(t, view)[:3])

	_, v, release, err := c.HostView(background)
	require.NoError(t, err)
	first := v.Bytes[:4]
	d := neg(c)
	tensor.Drop(c)
	eval(t, d)
	require.NotSame(t, &first[0], place(t, d), "the host reads it")
	release()
}

func TestDonationNeverGoesThroughOtherLayouts(t *testing.T) {
	x := iota(64, 64)
	a := add(x, x)
	eval(t, a)
	b := add(a, trans(a)) // reads a in two orders: writing over it would be wrong
	tensor.Drop(a)
	got := floats(t, b)
	for i := range 64 {
		for j := range 64 {
			require.Equal(t, float32(2*(64*i+j)+2*(64*j+i)), got[64*i+j])
		}
	}
}

func TestUpdatesTakeTheBufferOver(t *testing.T) {
	body := func(r *tensor.Run) error {
		one := tensor.Operand{Spec: tensor.Spec{Shape: tensor.Shape{1}, DType: r.Out[0].DType}, View: r.Out[0].View}
		one.Strides = []int{1}
		return r.Fill(one, []byte{0, 0, 128, 63})
	}
	update := func(x *tensor.Array) *tensor.Array { return updateOp.One(ctx(), runAttrs{&body}, x) }
	x := neg(iota(2000))
	eval(t, x)
	was := place(t, x)
	y := update(x)
	require.Equal(t, []float32{1, -1}, floats(t, y)[:2])
	require.NotSame(t, was, place(t, y), "x is held")
	require.Equal(t, float32(0), -floats(t, x)[0])
	z := update(x)
	tensor.Drop(x)
	require.Equal(t, []float32{1, -1}, floats(t, z)[:2])
	require.Same(t, was, place(t, z))
}

func TestExactReuse(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	const n = 1 << 16
	x := iota(n)
	eval(t, x)
	// Each step needs its input and its output: two buffers, however long the chain is. Sums keep the steps from
	// fusing.
	chain := func(steps int) *tensor.Array {
		y := x
		for range steps {
			z := trans(reshape(y, 256, 256))
			y = reshape(add(z, z), n)
			y = mul(y, neg(sum(y)))
		}
		for _, n := range tensor.Order([]*tensor.Array{y}, nil) {
			if !n.IsConstant() && n != y.Value().Node {
				tensor.Drop(n.Handle(nil, 0))
			}
		}
		return y
	}
	peak := func(steps int) int64 {
		y := chain(steps)
		dev.ResetPeak()
		before := dev.Memory().Active
		eval(t, y)
		tensor.Drop(y)
		return dev.Memory().Peak - before
	}
	peak(2)
	require.LessOrEqual(t, peak(10), int64(5*n*4))
}

func TestWeakHandles(t *testing.T) {
	x := iota(1 << 18) // 1 MiB
	eval(t, x)
	build := func() *tensor.Array {
		a := add(x, x)
		return sum(neg(mul(a, a)))
	}
	device.Collect(background) // it says what one of a huge heap takes: one of none is cheap
	heap.Store(0)
	later.Add(int64(time.Hour))
	defer heap.Store(hugeHeap)
	var collections int
	hook := func() { collections++; runtime.GC() }
	collect.Store(&hook)
	defer collect.Store(nil)
	y := build()
	cmds := commands(func() { eval(t, y) })
	require.Equal(t, 1, collections)
	require.Len(t, cmds, 2, "one kernel, and the second pass of the sum: no intermediate is written")

	a := add(x, x)
	b := neg(a)
	y = sum(b)
	cmds = commands(func() { eval(t, y) })
	require.Len(t, cmds, 3, "held: a and b are written")
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

func TestFusionChangesNoByte(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	dtypes := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int32, tensor.Uint8}
	for round := range 25 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			v := make([]float32, 60)
			for i := range v {
				v[i] = float32(r.NormFloat64() * 3)
			}
			seed := r.Uint64()
			program := func() []*tensor.Array {
				r := rand.New(rand.NewPCG(seed, 1))
				values := []*tensor.Array{array(v, 3, 20), trans(array(v, 20, 3)), array(v[:20], 20)}
				for range 25 {
					pick := func() *tensor.Array { return values[r.IntN(len(values))] }
					a, b := pick(), pick()
					d := dtypes[r.IntN(len(dtypes))]
					a, b = cast(a, d), cast(b, d)
					var y *tensor.Array
					switch r.IntN(6) {
					case 0:
						y = add(a, b)
					case 1:
						y = mul(a, b)
					case 2:
						y = muladdOp.One(ctx(), tensor.None{}, a, b, a)
					case 3:
						y = neg(a)
					case 4:
						y = trans(a)
						if !y.Shape().Equal(tensor.Shape{3, 20}) {
							y = sum(a, 0)
						}
					default:
						y = add(cast(sum(a, a.NDim()-1), d), cast(array([]float32{2}, 1), d))
					}
					if s := y.Shape(); s.Equal(tensor.Shape{3,
						20}) || s.Equal(tensor.Shape{20}) || s.Equal(tensor.Shape{1}) {
						values = append(values, y)
					}
					if r.IntN(3) == 0 {
						tensor.Drop(a, b)
					}
				}
				return values[len(values)-3:]
			}
			read := func(fusion bool) (out [][]byte) {
				defer tensor.SetFusion(tensor.SetFusion(fusion))
				last := program()
				eval(t, last...)
				for _, y := range last {
					b, err := y.Bytes(background)
					require.NoError(t, err)
					out = append(out, b)
				}
				return out
			}
			require.Equal(t, read(false), read(true))
		})
	}
}

func TestConstantsStayInline(t *testing.T) {
	rec, dev := withDevice(t, metal.DeviceOptions{})
	before := dev.Memory().Active
	lr := array([]float32{0.5}, 1)
	cmds := rec.during(func() { eval(t, mul(reshape(lr), iota(4))) })
	require.Len(t, cmds, 1)
	inline := 0
	for _, a := range cmds[0].Args {
		if len(a.Bytes) > 0 {
			inline++
		}
	}
	require.Equal(t, 3, inline, "both constants and the element count")
	require.LessOrEqual(t, dev.Memory().Active-before, int64(64))
	big := tensor.FromBytes(ctx(), tensor.Spec{Shape: tensor.Shape{17}, DType: tensor.Int32},
		binary.LittleEndian.AppendUint32(make([]byte, 64), 7))
	b, err := big.Bytes(background)
	require.NoError(t, err)
	require.Equal(t, byte(7), b[64])
}
