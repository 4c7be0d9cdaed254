package cuda

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
)

var bg = context.Background()

// TestHeap: what is handed out overlaps nothing else, and all of it comes back.
func TestHeap(t *testing.T) {
	c := newCard()
	require.NoError(t, c.Enter())
	defer c.Leave()
	h := heap{large: map[*allocation]struct{}{}}
	r := rand.New(rand.NewPCG(1, 1))
	var live []*allocation
	for range 3000 {
		if len(live) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(live))
			require.NoError(t, h.release(c, live[i]))
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		n := 1 + r.Int64N(1<<r.IntN(24))
		a, err := h.alloc(c, n)
		if err != nil {
			require.True(t, isNoMemory(err), err)
			continue
		}
		require.GreaterOrEqual(t, a.bytes, n)
		if a.slab != nil {
			require.Zero(t, a.address%alignment)
		}
		for _, o := range live {
			require.True(t, a.address+address(a.bytes) <= o.address || o.address+address(o.bytes) <= a.address)
		}
		live = append(live, a)
	}
	for _, a := range live {
		require.NoError(t, h.release(c, a))
	}
	require.Len(t, h.slabs, 1, "one is kept")
	require.True(t, h.slabs[0].empty())
	require.NoError(t, h.close(c))
	require.Zero(t, c.used)
}

// TestOutOfMemory: an error with figures, after which there is memory again.
func TestOutOfMemory(t *testing.T) {
	c := newCard()
	d := newFake(t, c)
	m, err := d.Alloc(700 << 20)
	require.NoError(t, err)
	_, err = d.Alloc(600 << 20)
	for _, s := range []string{"[alloc] 629145600 bytes", "of 1073741824", "this process holds 734003200",
		"out of memory"} {
		require.ErrorContains(t, err, s)
	}
	d.Free(m)
	m, err = d.Alloc(600 << 20)
	require.NoError(t, err)
	d.Free(m)
	require.NoError(t, d.Close())
}

// pipeline compiles a kernel.
func pipeline(t *testing.T, d *metal.Device, name, text string) *metal.Pipeline {
	t.Helper()
	l, err := d.Library(bg, metal.Source{Label: name, Text: "#include <metal_stdlib>\nusing namespace metal;\n" + text})
	require.NoError(t, err)
	p, err := l.Pipeline(name)
	require.NoError(t, err)
	return p
}

const twiceText = `kernel void twice(device uint* x, constant uint& by, uint i [[thread_position_in_grid]]) {
  x[i] *= by;
}`

func dispatch(t *testing.T, cb *metal.CommandBuffer, p *metal.Pipeline, n int, bind func(e *metal.Encoder)) {
	t.Helper()
	e := cb.Encoder()
	e.SetPipeline(p)
	bind(e)
	require.NoError(t, e.Dispatch(metal.Size{X: n, Y: 1, Z: 1}, metal.Size{X: min(n, 64), Y: 1, Z: 1}))
}

// TestLost: once the card is lost everything fails alike, what it runs and what it is asked, and nobody hangs.
func TestLost(t *testing.T) {
	c := newCard()
	drv := newFake(t, c)
	d, err := metal.NewDevice(drv, metal.DeviceOptions{})
	require.NoError(t, err)
	p := pipeline(t, d, "twice", twiceText)
	x, err := d.AllocCopy(bg, []byte{1, 0, 0, 0}, nil)
	require.NoError(t, err)
	run := func() error {
		cb := d.NewCommandBuffer(0, "test")
		dispatch(t, cb, p, 1, func(e *metal.Encoder) {
			e.SetBuffer(0, x, 0)
			e.SetBytes(1, []byte{2, 0, 0, 0})
		})
		require.NoError(t, cb.Commit())
		return cb.Wait(bg)
	}
	require.NoError(t, run())
	c.mu.Lock()
	c.failure = &callError{"cuEventSynchronize", 700, "an illegal memory access was encountered"}
	c.mu.Unlock()
	for range 3 {
		require.ErrorContains(t, run(), "[cuda:0] the device is lost")
	}
	err = x.ReadBytes(make([]byte, 4), 0)
	require.ErrorContains(t, err, "an illegal memory access was encountered (CUDA error 700)")
	_, err = d.Alloc(bg, 32<<20)
	require.ErrorContains(t, err, "the device is lost")
	x.Release()
	require.NoError(t, d.Close())
}

// TestTexts: launches whose addresses or constants are other than usual have texts of their own, few of them, and those
// that would be the same are one program.
func TestTexts(t *testing.T) {
	c := newCard()
	drv := newFake(t, c)
	d, err := metal.NewDevice(drv, metal.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	p := pipeline(t, d, "twice", twiceText)
	wide := pipeline(t, d, "wide", `kernel void wide(device ulong* x, constant ulong* by,
                 uint i [[thread_position_in_grid]]) {
  x[i] = x[i] * 2 + by[i & 1];
}`)
	loads := c.loads
	x, err := d.AllocCopy(bg, make([]byte, 4096), nil)
	require.NoError(t, err)
	factor, err := d.AllocCopy(bg, []byte{3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}, nil)
	require.NoError(t, err)
	want := make([]byte, 4096)
	for at := range int64(6) { // words
		cb := d.NewCommandBuffer(0, "test")
		pattern := []byte{byte(at + 1), 0, 0, 0, 0, 0, 0, 0}
		require.NoError(t, cb.Encoder().Fill(metal.Range{Buf: x, Offset: 4 * at, Bytes: 8}, pattern))
		dispatch(t, cb, p, 1, func(e *metal.Encoder) {
			e.SetBuffer(0, x, 4*at)
			e.SetBuffer(1, factor, 0)
		})
		dispatch(t, cb, wide, 1, func(e *metal.Encoder) {
			e.SetBuffer(0, x, 4*at)
			if at == 5 { // more than there is room for
				e.SetBytes(1, append([]byte{5}, make([]byte, 999)...))
			} else {
				e.SetBytes(1, []byte{5, 0, 0, 0, 0, 0, 0, 0})
			}
		})
		require.NoError(t, cb.Commit())
		require.NoError(t, cb.Wait(bg))
		want[4*at], want[4*at+4] = byte(6*(at+1)+5), 0
		got := make([]byte, 4096)
		require.NoError(t, x.ReadBytes(got, 0))
		require.Equal(t, want, got, "word %d", at)
	}
	require.Equal(t, 4, c.loads-loads, "twice from memory; wide at odd words, and with many constants; one that fills")
	x.Release()
	factor.Release()
}

// TestPeers: two cards are two devices, and copies between them are of what was written before.
func TestPeers(t *testing.T) {
	var devs [2]*metal.Device
	for i := range devs {
		c := newCard()
		c.slow = true
		d, err := newDriver(c, i, nil)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("cuda:%d", i), d.Info().ID)
		devs[i], err = metal.NewDevice(d, metal.DeviceOptions{})
		require.NoError(t, err)
		defer func() { require.NoError(t, devs[i].Close()) }()
	}
	for round := range byte(20) {
		b := make([]byte, 1000)
		for i := range b {
			b[i] = byte(i) + round
		}
		x, err := devs[0].AllocCopy(bg, b, nil)
		require.NoError(t, err)
		y, err := devs[1].Alloc(bg, 1000)
		require.NoError(t, err)
		require.NoError(t, y.CopyFrom(100, metal.Range{Buf: x, Offset: 50, Bytes: 300}))
		got := make([]byte, 300)
		require.NoError(t, y.ReadBytes(got, 100))
		require.Equal(t, b[50:350], got)
		x.Release()
		y.Release()
	}
}

// TestMeasured: each command's time is told.
func TestMeasured(t *testing.T) {
	d, err := metal.NewDevice(newFake(t, newCard()), metal.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	p := pipeline(t, d, "twice", twiceText)
	x, err := d.AllocCopy(bg, make([]byte, 4096), nil)
	require.NoError(t, err)
	cb := d.NewCommandBuffer(0, "test")
	cb.Measure()
	for range 3 {
		dispatch(t, cb, p, 1000, func(e *metal.Encoder) {
			e.SetBuffer(0, x, 0)
			e.SetBytes(1, []byte{2, 0, 0, 0})
		})
	}
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(bg))
	require.Len(t, cb.Took(), 5, "with barriers")
	for i, took := range cb.Took() {
		if i%2 == 0 {
			require.Equal(t, "twice", took.Kernel)
			require.Positive(t, took.Took)
		}
	}
	x.Release()
}

// TestOpen: an error says what is missing.
func TestOpen(t *testing.T) {
	d, err := Open(1000)
	require.Nil(t, d)
	require.Error(t, err)
	c := newCard()
	_, err = newDriver(oldCard{c}, 2, nil)
	require.ErrorContains(t, err, "[cuda:2] an old card has compute capability 6.1; kernels need 7.5")
	require.True(t, isFinal(fmt.Errorf("x: %w", &callError{"f", 719, ""})))
	require.False(t, isFinal(errors.Join(&callError{"f", 701, ""})))
	require.False(t, isFinal(errors.New("x")))
}

type oldCard struct{ *card }

func (oldCard) Properties() properties {
	return properties{name: "an old card", sm: 61, memory: 1 << 30}
}

// TestValidated: under validation what kernels have written counts as written, though the driver does not ask.
func TestValidated(t *testing.T) {
	d, err := metal.NewDevice(newFake(t, newCard()), metal.DeviceOptions{Validate: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	p := pipeline(t, d, "twice", twiceText)
	x, err := d.Alloc(bg, 256)
	require.NoError(t, err)
	x.TrackWrites()
	at, n, _ := x.All().Unwritten()
	require.Equal(t, []int64{0, 256}, []int64{at, n})
	cb := d.NewCommandBuffer(0, "test")
	dispatch(t, cb, p, 64, func(e *metal.Encoder) {
		e.SetBuffer(0, x, 0)
		e.SetBytes(1, []byte{2, 0, 0, 0})
	})
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(bg))
	at, _, _ = x.All().Unwritten()
	require.Equal(t, int64(-1), at)
	x.Release()
}

// TestSteps: a recorded step is one launch of a graph, whose places are told only what has changed; what faults in it
// is told for its command, and a fill and a copy are in it.
func TestSteps(t *testing.T) {
	c := newCard()
	drv := newFake(t, c)
	d, err := metal.NewDevice(drv, metal.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	l, err := d.Library(bg, metal.Source{Label: "at", Options: metal.Options{Portable: true},
		Text: "kernel void at(device uint* x, constant uint& i) { x[i] = x[i] * 2 + 1; }"})
	require.NoError(t, err)
	p, err := l.Pipeline("at")
	require.NoError(t, err)
	one := metal.Size{X: 1, Y: 1, Z: 1}
	kernel := metal.StepCommand{Kind: metal.CmdDispatch, Pipeline: p, Grid: one, Threadgroup: one,
		Args: []metal.StepArg{{Slot: 0, N: 16, Value: -1}, {Slot: -1, Value: 0}}}
	step := &metal.Step{Slots: 2, Values: 1, Commands: []metal.StepCommand{
		{Kind: metal.CmdFill, Pattern: []byte{3, 0, 0, 0}, Args: []metal.StepArg{{Slot: 0, N: 16, Value: -1}}, Writes: 1},
		kernel, kernel, kernel,
		{Kind: metal.CmdCopy, Args: []metal.StepArg{{Slot: 1, N: 16, Value: -1}, {Slot: 0, N: 16, Value: -1}}, Writes: 1},
	}}
	kept := d.KeepStep(step)
	require.NotNil(t, kept)
	defer kept.Drop()
	var bufs [2]*metal.Buffer
	for i := range bufs {
		bufs[i], err = d.AllocCopy(bg, make([]byte, 32), nil)
		require.NoError(t, err)
		defer bufs[i].Release()
	}
	for round, at := range []uint32{0, 0, 3, 77, 1} {
		slots := []metal.Range{{Buf: bufs[0], Offset: int64(round % 2 * 16), Bytes: 16}, {Buf: bufs[1], Bytes: 16}}
		cb := d.NewCommandBuffer(0, "step")
		e := cb.Encoder()
		require.NoError(t, e.Fill(slots[0], []byte{3, 0, 0, 0}))
		for range 3 {
			e.SetPipeline(p)
			e.SetBufferRange(0, slots[0])
			e.SetBytes(1, word(at))
			require.NoError(t, e.Dispatch(one, one))
		}
		require.NoError(t, e.Copy(slots[1], slots[0]))
		e.Replayed(kept, 0, slots, [][]byte{word(at)})
		graphs, launches := c.graphLaunches, c.launches
		require.NoError(t, cb.Commit())
		err := cb.Wait(bg)
		require.Equal(t, []int{1, 0}, []int{c.graphLaunches - graphs, c.launches - launches}, "round %d", round)
		want := []byte{3, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0}
		if at < 4 {
			require.NoError(t, err)
			want[4*at] = 31
		} else {
			var one *metal.CommandError
			require.ErrorAs(t, err, &one)
			require.Equal(t, 2, one.Index, "behind a barrier")
			require.ErrorContains(t, err, "[at] read of x[77] is out of range: x has 4 elements")
		}
		got := make([]byte, 16)
		require.NoError(t, bufs[1].ReadBytes(got, 0))
		require.Equal(t, want, got, "round %d", round)
	}
}
