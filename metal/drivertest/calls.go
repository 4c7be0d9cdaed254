package drivertest

import (
	"errors"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// Calls of routines that a device offers (metal.Caller). A device that offers none passes.

// square is the product of two n by n matrices of float32.
func square(n int) metal.MatMul {
	m := metal.Matrix{Lead: n}
	return metal.MatMul{Element: metal.Float32, M: n, N: n, K: n, Batch: 1, A: m, B: m}
}

// calls reports whether the device offers products of small matrices.
func (b *bench) calls() bool { return b.d.Offers(square(2)) }

// multiply records out = x y for matrices of 2 by 2.
func multiply(cb *metal.CommandBuffer, out, x, y *metal.Buffer) error {
	return cb.Encoder().Call(square(2), []metal.Range{x.All(), y.All()}, []metal.Range{out.All()})
}

// caseCalls: calls and kernels that read and write the same memory run in their order, whatever their caller holds, and
// are measured alike.
func caseCalls(b *bench) {
	if !b.calls() {
		return
	}
	const rounds = 20
	x, y, z, one := b.floats(1, 2, 3, 4), b.zeros(4), b.zeros(4), b.floats(1, 1, 1, 1)
	cb := b.begin()
	cb.Measure()
	for range rounds {
		must.NoError(b.t, multiply(cb, y, x, x))
		b.encode(cb, "add", threads(4), threads(4), buf("a", y), buf("b", one), buf("out", z), word32("n", 4))
		must.NoError(b.t, multiply(cb, y, z, one))
		must.NoError(b.t, cb.Encoder().Copy(metal.Range{Buf: x, Bytes: 8}, metal.Range{Buf: one, Bytes: 8}))
	}
	must.NoError(b.t, cb.Commit())
	release(x, z, one)
	must.NoError(b.t, cb.Wait(bg))
	// The first row of x is 1 1 from the second round on: x x = (4 5; 15 19), and (5 6; 16 20) (1 1; 1 1) is y.
	must.Equal(b.t, []float32{11, 11, 36, 36}, b.readFloats(y))
	var calls, kernels int
	for _, took := range cb.Took() {
		switch took.Kernel {
		case "matmul":
			calls++
		case "add":
			kernels++
		}
	}
	if len(cb.Took()) > 0 { // the driver can tell
		must.Equal(b.t, []int{2 * rounds, rounds}, []int{calls, kernels})
	}
	release(y)
}

// shapes is a routine that nobody offers, and cannot be compared.
type shapes struct{ list []int }

func (shapes) Routine() string { return "shapes" }

// other is a routine that nobody offers.
type other struct{ n int }

func (other) Routine() string { return "other" }

// caseCallsRefused: what is wrong with a call is its recording's error, and nothing is recorded.
func caseCallsRefused(b *bench) {
	x, y := b.floats(1, 2, 3, 4), b.zeros(8)
	cb := b.begin()
	e := cb.Encoder()
	part := func(from, n int64) metal.Range { return metal.Range{Buf: y, Offset: from, Bytes: n} }
	must.ErrorContains(b.t, e.Call(nil, nil, nil), "no routine")
	must.ErrorContains(b.t, e.Call(other{1}, nil, nil), "other: device")
	must.ErrorContains(b.t, e.Call(shapes{[]int{1}}, nil, nil), "not comparable")
	if b.calls() {
		in := []metal.Range{x.All(), x.All()}
		must.ErrorContains(b.t, e.Call(square(2), in, []metal.Range{{}}), "no buffer")
		must.ErrorContains(b.t, e.Call(square(2), in, []metal.Range{part(20, 16)}), "bytes 20 to 36 are not inside")
		must.ErrorContains(b.t, e.Call(square(2), []metal.Range{x.All(), part(8, 16)}, []metal.Range{part(0, 16)}), "overlap")
		must.ErrorContains(b.t, e.Call(square(2), in, []metal.Range{part(0, 16), part(12, 4)}), "overlap")
	}
	must.Equal(b.t, 0, e.Len())
	b.finish(cb)
	release(x, y)
}

// caseCallsGated: a call behind a gate runs if that is open, with what is around it, and not if it is shut. One that
// fails shuts a gate.
func caseCallsGated(b *bench) {
	if !b.calls() {
		return
	}
	for _, at := range []uint32{0, 1, 2} { // the word that is set is none of the gate's, the gate's; 2: a call fails
		x, y, z, words := b.floats(1, 2, 3, 4), b.zeros(4), b.zeros(4), b.zeros(4)
		word := func(i int64) metal.Range { return metal.Range{Buf: words, Offset: 4 * i, Bytes: 4} }
		var chain metal.Chain
		cbs := []*metal.CommandBuffer{b.chained(&chain)}
		record := func(f func(*metal.CommandBuffer) error) {
			err := f(cbs[len(cbs)-1])
			if errors.Is(err, metal.ErrGateBegins) {
				must.NoError(b.t, cbs[len(cbs)-1].Commit())
				cbs = append(cbs, b.chained(&chain))
				err = f(cbs[len(cbs)-1])
			}
			must.NoError(b.t, err)
		}
		twice := func(cb *metal.CommandBuffer) error {
			b.encode(cb, "twice_plus_one", threads(4), threads(4), buf("x", z))
			return nil
		}
		b.encode(cbs[0], "store_at", threads(1), threads(1), buf("target", words), word32("at", at%2))
		must.NoError(b.t, cbs[0].Encoder().Fault(word(2)))
		record(func(cb *metal.CommandBuffer) error {
			in := x.All()
			if at == 2 {
				in.Bytes = 12
			}
			return cb.Encoder().Call(square(2), []metal.Range{in, x.All()}, []metal.Range{y.All()})
		})
		must.NoError(b.t, cbs[0].Encoder().Fault(metal.Range{}))
		record(func(cb *metal.CommandBuffer) error {
			return cb.Encoder().Gate([]metal.Range{{Buf: words, Offset: 4, Bytes: 8}}, word(3))
		})
		record(twice)
		record(func(cb *metal.CommandBuffer) error { return multiply(cb, x, y, y) })
		record(twice)
		record(func(cb *metal.CommandBuffer) error { return multiply(cb, y, x, x) })
		must.NoError(b.t, cbs[len(cbs)-1].Commit())
		var errs []error
		for _, cb := range cbs {
			err := cb.Wait(bg)
			var stop *metal.Interrupted
			if errs = append(errs, err); errors.As(err, &stop) {
				errs = append(errs, stop.Failed)
			}
		}
		square, z4 := []float32{7, 10, 15, 22}, uint32(0)
		switch at {
		case 0:
			must.NoError(b.t, errors.Join(errs...))
			must.Equal(b.t, []float32{199, 290, 435, 634}, b.readFloats(x))
			must.Equal(b.t, []float32{199*199 + 290*435, 199*290 + 290*634, 435*199 + 634*435, 435*290 + 634*634},
				b.readFloats(y))
			z4 = 3
		case 1:
			must.Equal(b.t, square, b.readFloats(y))
		case 2:
			var one *metal.CommandError
			must.True(b.t, errors.As(errors.Join(errs...), &one), "no command's error: %v", errs)
			must.Equal(b.t, make([]float32, 4), b.readFloats(y))
		}
		if at > 0 {
			must.ErrorIs(b.t, errors.Join(errs...), metal.ErrSkipped)
			must.Equal(b.t, []float32{1, 2, 3, 4}, b.readFloats(x))
		}
		must.Equal(b.t, slices.Repeat([]uint32{z4}, 4), b.read(z))
		release(x, y, z, words)
	}
}
