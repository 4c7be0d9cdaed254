package tensor_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// look is a holder's look that reaches xs.
func look(h *tensor.Holder, xs ...*tensor.Array) {
	l := h.BeginLook(true)
	for _, x := range xs {
		l.Reach(x)
	}
	l.End(int64(len(xs)), tensor.Place{File: "look.lua", Line: 3})
}

// holding is a new holder and the Ctx of its calls.
func holding() (*tensor.Holder, *tensor.Ctx) {
	h := tensor.NewHolder(tensor.HolderLimits{})
	return h, &tensor.Ctx{Place: tensor.Place{File: "test.lua", Line: 7}, Holder: h}
}

// TestLooksLetIntermediatesFuse: an array that its holder does not reach any more is never written, whether Go's
// collector knows of it or not; one that it reaches is.
func TestLooksLetIntermediatesFuse(t *testing.T) {
	for _, reached := range []bool{false, true} {
		h, c := holding()
		x := iota(64, 64)
		y := negOp.One(c, tensor.None{}, x)
		z := negOp.One(c, tensor.None{}, y)
		if reached {
			look(h, y, z)
		} else {
			look(h, z)
		}
		cmds := commands(func() { require.NoError(t, tensor.Eval(background, z)) })
		require.Len(t, cmds, 1)
		if reached {
			require.Equal(t, 2, outputs(cmds[0]))
			require.Equal(t, float32(-1), floats(t, y)[1])
		} else {
			require.Equal(t, 1, outputs(cmds[0]))
			_, err := y.Bytes(background)
			require.ErrorContains(t, err, "it had been declared unread")
		}
		require.Equal(t, float32(1), floats(t, z)[1])
	}
}

// TestAnEvaluationKnowsWhatWasKnownWhenItWasHandedOver: what is made after a look is written until the next one, and a
// look that comes while the graph is waiting changes no plan.
func TestAnEvaluationKnowsWhatWasKnownWhenItWasHandedOver(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	h, c := holding()
	x := iota(64, 64)
	look(h)
	y := negOp.One(c, tensor.None{}, x)
	z := negOp.One(c, tensor.None{}, y)
	before := dev.Memory().Active
	release := tensor.HoldClaims()
	w, err := tensor.Submit(z)
	require.NoError(t, err)
	look(h, z)
	release()
	require.NoError(t, w.Wait(background))
	require.Equal(t, before+16<<10, dev.Memory().Active, "y was written, and came back when it was done")
	require.Equal(t, float32(1), floats(t, z)[1])
}

// TestLooksGiveMemoryBack: the memory of unreachable arrays comes back with the look, of evaluated ones and of
// constants, once only, whoever else gives them up; views keep what they lie in, and graphs what they read.
func TestLooksGiveMemoryBack(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	const page = 16 << 10
	h, c := holding()
	before := dev.Memory().Active
	active := func() int64 { return dev.Memory().Active - before }
	x := tensor.FromBytes(c, tensor.Spec{Shape: tensor.Shape{64, 64}, DType: tensor.Float32}, make([]byte, page))
	y := negOp.One(c, tensor.None{}, x)
	row := sliceOp.One(c, sliceAttrs{0, 64, 32}, y)
	require.NoError(t, tensor.Eval(background, y, row))
	require.EqualValues(t, 2*page, active())
	look(h, x, y, row)
	require.EqualValues(t, 2*page, active())
	look(h, y, row)
	require.EqualValues(t, page, active(), "the constant came back")
	x.Free(nil)
	look(h, row)
	require.EqualValues(t, page, active(), "the view keeps it")
	z := negOp.One(c, tensor.None{}, row)
	look(h, z)
	require.EqualValues(t, page, active(), "a graph reads it")
	require.Equal(t, float32(0), floats(t, z)[0])
	require.EqualValues(t, 512, active(), "and now nothing does")
	tensor.Drop(row, y)
	look(h)
	z.Free(nil)
	require.EqualValues(t, 0, active())
	runtime.KeepAlive(x)
}

// TestEscapedArraysAreTheCollectors: no look takes them away, also where a transform of another program makes a handle.
func TestEscapedArraysAreTheCollectors(t *testing.T) {
	h, c := holding()
	x := negOp.One(c, tensor.None{}, iota(64, 64))
	y := negOp.One(c, tensor.None{}, x)
	x.Escape()
	again := y.Value().Node.Handle(nil, 0)
	look(h)
	look(h)
	require.Equal(t, float32(-1), floats(t, x)[1])
	require.Equal(t, float32(1), floats(t, again)[1])

	// The holder's own transforms get handles that the next look judges.
	z := negOp.One(c, tensor.None{}, iota(64, 64))
	again = z.Value().Node.Handle(c, 0)
	look(h, again)
	require.Equal(t, float32(-1), floats(t, z)[1])
	look(h)
	_, err := again.Bytes(background)
	require.ErrorContains(t, err, "it had been declared unread")
}

// TestOpenTracesKeepUnreachableArrays: a transform that is under way may still walk to them.
func TestOpenTracesKeepUnreachableArrays(t *testing.T) {
	h, c := holding()
	trace := tensor.NewTrace("vjp", nil)
	x := trace.Watch(ctx(), iota(64, 64))
	y := negOp.One(c, tensor.None{}, x)
	z := negOp.One(c, tensor.None{}, y)
	z.Escape()
	look(h)
	require.NoError(t, tensor.Eval(background, z))
	look(h)
	in := z.Value().Node.Inputs()
	require.Len(t, in, 1)
	require.Equal(t, float32(-1), floats(t, in[0].Node.Handle(nil, 0))[1])
	trace.End()
}

// TestHoldersKnowOnlyTheirOwn: a holder's look says nothing of another's arrays, or of those of Go programs.
func TestHoldersKnowOnlyTheirOwn(t *testing.T) {
	h, _ := holding()
	_, other := holding()
	x := negOp.One(other, tensor.None{}, iota(64, 64))
	y := neg(iota(64, 64))
	z := addOp.One(&tensor.Ctx{Holder: h}, tensor.None{}, x, y)
	look(h, z, x)
	require.Equal(t, float32(-2), floats(t, z)[1])
	require.Equal(t, float32(-1), floats(t, x)[1])
	require.Equal(t, float32(-1), floats(t, y)[1])
}

// TestPoison: to use an array that a look has missed is an error that names both lines.
func TestPoison(t *testing.T) {
	before := tensor.Poison(true)
	defer tensor.Poison(before)
	h, c := holding()
	x := negOp.One(c, tensor.None{}, iota(64, 64))
	y := negOp.One(c, tensor.None{}, x)
	look(h, x, y)
	l := h.BeginLook(true)
	l.Reach(y)
	l.End(1, tensor.Place{File: "look.lua", Line: 5})
	look(h, y)
	const text = "BUG: the array made at test.lua:7 was found unreachable at look.lua:5"
	_, err := x.Bytes(background)
	require.ErrorContains(t, err, "[item] "+text)
	require.ErrorContains(t, negOp.One(c, tensor.None{}, x).Err(), text)
	require.Equal(t, float32(1), floats(t, y)[1])
}

// TestCollectionsFindListedArrays: what a holder lists for its looks is garbage like any other where the device asks
// for a collection: arrays of a holder that seldom looks, or never again.
func TestCollectionsFindListedArrays(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	for _, closed := range []bool{false, true} {
		before := dev.Memory().Active
		h, c := holding()
		func() {
			x := negOp.One(c, tensor.None{}, iota(512, 512))
			require.NoError(t, tensor.Eval(background, x))
		}()
		if closed {
			h.Close()
			runtime.GC()
		}
		collectTo(t, dev, before)
		require.Equal(t, before, dev.Memory().Active)
		look(h)
		runtime.KeepAlive(c)
	}
}

// TestLooksAreDue: a look is due when what it may prove is worth its time and evaluations have paid for those before,
// at the same places each time. Views cost nothing, whatever they seem to hold.
func TestLooksAreDue(t *testing.T) {
	x, small := iota(512, 512), iota(8)
	run := func(visits int64, times int, step func(c *tensor.Ctx, i int) *tensor.Array) (looks string) {
		h, c := holding()
		for i := range times {
			y := step(c, i)
			if h.Due() {
				looks += fmt.Sprint(i, " ")
				l := h.BeginLook(true)
				l.Reach(y)
				l.End(visits, tensor.Place{})
			}
			require.NoError(t, tensor.Eval(background, y))
		}
		return looks
	}
	large := func(c *tensor.Ctx, _ int) *tensor.Array { return negOp.One(c, tensor.None{}, x) }
	first := run(100, 100, large)
	require.Equal(t, first, run(100, 100, large))
	many, few := len(first), len(run(100_000, 100, large))
	require.Greater(t, many, 5*few, "dear looks are rare")
	little := func(c *tensor.Ctx, _ int) *tensor.Array { return negOp.One(c, tensor.None{}, small) }
	require.Greater(t, many, 2*len(run(100, 100, little)), "so are those for little")
	views := func(c *tensor.Ctx, _ int) *tensor.Array {
		return broadcast.One(c, dimsAttrs{tensor.MakeDims(1<<20, 1<<10, 8)}, small)
	}
	require.LessOrEqual(t, len(run(100, 100, views)), len(run(100, 100, little)))
	product := func(c *tensor.Ctx, _ int) *tensor.Array { return workOp.One(c, tensor.None{}, small) }
	require.Greater(t, len(run(100_000, 100, product)), len(run(100_000, 100, little)), "what takes long pays for looks")
}

// TestLooksBuryWhatNobodyAsksFor: what lazy nodes read that nobody can ask for is not kept for them, however many of
// them there are, and one that can be asked for keeps it.
func TestLooksBuryWhatNobodyAsksFor(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	h, c := holding()
	before := dev.Memory().Active
	x := iota(64, 64)
	y := negOp.One(c, tensor.None{}, x)
	z := negOp.One(c, tensor.None{}, y)
	for range 3 { // side by side, and one after another
		u := negOp.One(c, tensor.None{}, y)
		for range 3 {
			u = addOp.One(c, tensor.None{}, u, y)
		}
	}
	kept := negOp.One(c, tensor.None{}, y)
	look(h, z, kept)
	require.NoError(t, tensor.Eval(background, z))
	require.Equal(t, before+3*16<<10, dev.Memory().Active, "x, y for what was kept, z")
	look(h, z)
	require.Equal(t, before+2*16<<10, dev.Memory().Active)
	require.Error(t, tensor.Eval(background, kept))

	// In one evaluation: nothing but the result is written.
	y = negOp.One(c, tensor.None{}, x)
	w := negOp.One(c, tensor.None{}, y)
	negOp.One(c, tensor.None{}, addOp.One(c, tensor.None{}, y, y))
	look(h, z, w)
	require.NoError(t, tensor.Eval(background, w))
	require.Equal(t, before+3*16<<10, dev.Memory().Active)
	runtime.KeepAlive(x)
}

// TestGraphsThatNobodyHandsOver: the list of lazy nodes is bounded, and garbage where Go's collector looks.
func TestGraphsThatNobodyHandsOver(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	h, c := holding()
	x := iota(8)
	for range 3 << 16 {
		negOp.One(c, tensor.None{}, x)
	}
	dev.Collect(background)
	look(h)
	require.Equal(t, float32(-1), floats(t, negOp.One(c, tensor.None{}, x))[1])
}
