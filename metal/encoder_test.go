package metal_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

func size(x, y, z int) metal.Size { return metal.Size{X: x, Y: y, Z: z} }

var one = size(1, 1, 1)

// pipeline compiles one kernel.
func pipeline(t testing.TB, d *metal.Device, name string) *metal.Pipeline {
	l, err := d.Library(bg, drivertest.Source(name, name))
	require.NoError(t, err)
	p, err := l.Pipeline(name)
	require.NoError(t, err)
	return p
}

// dispatch binds whole ranges to a kernel's parameters in order, and dispatches one thread.
func dispatch(t testing.TB, cb *metal.CommandBuffer, p *metal.Pipeline, args ...metal.Range) {
	e := cb.Encoder()
	e.SetPipeline(p)
	for i, r := range args {
		e.SetBufferRange(i, r)
	}
	require.NoError(t, e.Dispatch(one, one))
}

func kinds(cb *metal.CommandBuffer) string {
	s := ""
	for _, c := range cb.Commands() {
		s += string("dcf|"[c.Kind])
	}
	return s
}

func TestDispatchErrors(t *testing.T) {
	k := drivertest.Kernel("scale", nil, "w:r", "n:rc", "out:w", "s:t")
	k.Params[0].MinBytes, k.Params[1].MinBytes = 16, 4
	k.StaticTG, k.MaxThreads = 1000, 512
	f := drivertest.NewFake(k)
	d := open(t, f, metal.DeviceOptions{})
	other := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	p := pipeline(t, d, "scale")
	b, foreign, dead := alloc(t, d, 64), alloc(t, other, 64), alloc(t, d, 64)
	b.SetOrigin(metal.Origin{Op: "weights"})
	dead.Release()
	for _, c := range []struct {
		set      func(*metal.Encoder)
		grid, tg metal.Size
		want     string
	}{
		{want: ""},
		{set: func(e *metal.Encoder) { e.SetBuffer(0, b, 6) }, want: "buffer 0 (w): offset 6 is not a multiple of 4"},
		{set: func(e *metal.Encoder) { e.SetBuffer(0, b, 52) },
			want: "buffer 0 (w): 12 bytes are bound, and the kernel needs 16"},
		{set: func(e *metal.Encoder) { e.SetBuffer(0, b, 68) },
			want: "buffer 0 (w): bytes 68 to 64 are not inside buffer of weights (#1, 64 bytes)"},
		{set: func(e *metal.Encoder) { e.SetBuffer(0, b, -4) },
			want: "buffer 0 (w): bytes -4 to 64 are not inside buffer of weights (#1, 64 bytes)"},
		{set: func(e *metal.Encoder) { e.SetBufferRange(2, metal.Range{Buf: b, Offset: 60, Bytes: 8}) },
			want: "buffer 2 (out): bytes 60 to 68 are not inside buffer of weights (#1, 64 bytes)"},
		{set: func(e *metal.Encoder) { e.SetBuffer(0, nil, 0) }, want: "buffer 0 (w): no buffer"},
		{set: func(e *metal.Encoder) { e.SetBytes(1, make([]byte, 4097)) },
			want: "buffer 1 (n): 4097 inline bytes are more than the limit of 4096"},
		{set: func(e *metal.Encoder) { e.SetBytes(1, make([]byte, 2)) },
			want: "buffer 1 (n): 2 inline bytes are bound, and the kernel needs 4"},
		{set: func(e *metal.Encoder) { e.SetBytes(2, make([]byte, 4)) },
			want: "buffer 2 (out): the kernel writes it, so it cannot be inline bytes"},
		{set: func(e *metal.Encoder) { e.SetBuffer(3, b, 0) },
			want: "threadgroup 0 (s): is in threadgroup memory: SetThreadgroupBytes sets its length"},
		{set: func(e *metal.Encoder) { e.SetThreadgroupBytes(0, 16) },
			want: "buffer 0 (w): is in device or constant memory: bind a buffer or bytes"},
		{set: func(e *metal.Encoder) { e.SetThreadgroupBytes(3, -1) },
			want: "threadgroup 0 (s): -1 bytes of threadgroup memory, and the kernel needs 0"},
		{set: func(e *metal.Encoder) { e.SetThreadgroupBytes(3, 31769) },
			want: "32776 bytes of threadgroup memory are more than the limit of 32768"},
		{set: func(e *metal.Encoder) { e.SetBuffer(4, b, 0) }, want: "parameter 4 was bound, and it has 4"},
		{set: func(e *metal.Encoder) { e.SetPipeline(p) }, want: "buffer 0 (w): nothing is bound"},
		{set: func(e *metal.Encoder) { e.SetBuffer(0, foreign, 0) },
			want: "buffer (#1, 64 bytes) belongs to another device"},
		{set: func(e *metal.Encoder) { e.SetBuffer(0, dead, 0) }, want: "use after release: buffer (#2, 64 bytes)"},
		{grid: size(-1, 1, 1), tg: one, want: "grid (-1, 1, 1): dimension 0 is not between 0 and 4294967295"},
		{grid: size(1, 1<<32, 1), tg: one, want: "grid (1, 4294967296, 1): dimension 1 is not between 0 and 4294967295"},
		{grid: one, tg: size(1, 0, 1), want: "threadgroup (1, 0, 1): dimension 1 is less than 1"},
		{grid: one, tg: size(32, 32, 1), want: "threadgroup (32, 32, 1) is more than the limit of 512 threads"},
		{grid: one, tg: size(1<<40, 1<<40, 1<<40),
			want: "threadgroup (1099511627776, 1099511627776, 1099511627776) is more than the limit of 512 threads"},
	} {
		cb := d.NewCommandBuffer(0, "")
		e := cb.Encoder()
		e.SetPipeline(p)
		e.SetBuffer(0, b, 0)
		e.SetBytes(1, make([]byte, 4))
		e.SetBuffer(2, b, 0)
		e.SetThreadgroupBytes(3, 31760)
		if c.set != nil {
			c.set(e)
		}
		if c.tg == (metal.Size{}) {
			c.grid, c.tg = one, one
		}
		err := e.Dispatch(c.grid, c.tg)
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, "[dispatch] kernel scale: "+c.want)
			require.Empty(t, cb.Commands())
		}
		cb.Cancel(nil)
	}
	cb := d.NewCommandBuffer(0, "")
	require.EqualError(t, cb.Encoder().Dispatch(one, one), "[dispatch] no pipeline was set")
	cb.Encoder().SetBuffer(0, b, 0) // must not panic
	cb.Cancel(nil)
	require.Equal(t, 1, b.Refs())
	b.Release()
	foreign.Release()
}

func TestDispatchClampsAndSkips(t *testing.T) {
	d := open(t, drivertest.NewFake(drivertest.Kernel("k", nil)), metal.DeviceOptions{})
	cb := d.NewCommandBuffer(0, "")
	e := cb.Encoder()
	e.SetPipeline(pipeline(t, d, "k"))
	require.NoError(t, e.Dispatch(size(0, 3, 1), size(32, 8, 4)))
	require.Empty(t, cb.Commands(), "a grid without threads")
	e.Label("here")
	require.NoError(t, e.Dispatch(size(10, 3, 1), size(32, 8, 4)))
	c := cb.Commands()[0]
	require.Equal(t, size(10, 3, 1), c.Grid)
	require.Equal(t, size(10, 3, 1), c.Threadgroup)
	require.Equal(t, "here", c.Label)
	cb.Cancel(nil)
}

func TestCopyAndFillErrors(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	b, c := alloc(t, d, 16), alloc(t, d, 16)
	cb := d.NewCommandBuffer(0, "")
	e := cb.Encoder()
	at := func(b *metal.Buffer, off, n int64) metal.Range { return metal.Range{Buf: b, Offset: off, Bytes: n} }
	require.EqualError(t, e.Copy(at(b, 0, 8), at(nil, 0, 8)), "[copy] no buffer")
	require.EqualError(t, e.Copy(at(b, 12, 8), at(c, 0, 8)), "[copy] bytes 12 to 20 are not inside buffer (#1, 16 bytes)")
	require.EqualError(t, e.Copy(at(b, 0, 8), at(c, 0, 4)), "[copy] the lengths differ: destination 8 bytes, source 4")
	require.EqualError(t, e.Copy(at(b, 0, 8), at(b, 4, 8)),
		"[copy] bytes 4 to 12 and 0 to 8 of buffer (#1, 16 bytes) overlap")
	require.EqualError(t, e.Fill(at(nil, 0, 8), []byte{1}), "[fill] no buffer")
	require.EqualError(t, e.Fill(at(b, 9, 8), []byte{1}), "[fill] bytes 9 to 17 are not inside buffer (#1, 16 bytes)")
	require.EqualError(t, e.Fill(at(b, 0, 8), nil), "[fill] a pattern of 0 bytes: it must have 1 to 4096")
	require.EqualError(t, e.Fill(at(b, 0, 8), []byte{1, 2, 3}), "[fill] 8 bytes are not a multiple of the pattern's 3")
	require.NoError(t, e.Fill(at(b, 3, 0), []byte{1}))
	require.NoError(t, e.Copy(at(b, 3, 0), at(c, 3, 0)))
	require.Empty(t, cb.Commands())
	require.NoError(t, e.Copy(at(b, 0, 8), at(b, 8, 8)))
	pattern := []byte{1, 2}
	require.NoError(t, e.Fill(at(c, 0, 8), pattern))
	pattern[0] = 9
	require.Equal(t, []byte{1, 2}, cb.Commands()[1].Pattern, "a copy")
	require.Equal(t, "cf", kinds(cb))
	require.NoError(t, e.Barrier())
	require.Equal(t, "cf|", kinds(cb))
	cb.Cancel(nil)
	require.ErrorIs(t, e.Barrier(), cb.Err())
	b.Release()
	c.Release()
}

func TestHazardsByHand(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("rw", nil, "in:r", "out:w"), drivertest.Kernel("count", nil, "n:a"),
		drivertest.Kernel("mutable", nil, "in:rw"), drivertest.Kernel("constant", nil, "in:rwc"))
	d := open(t, f, metal.DeviceOptions{})
	p, count := pipeline(t, d, "rw"), pipeline(t, d, "count")
	mutable, constant := pipeline(t, d, "mutable"), pipeline(t, d, "constant")
	var b [4]*metal.Buffer
	for i := range b {
		b[i] = alloc(t, d, 64)
	}
	lo := func(i int) metal.Range { return metal.Range{Buf: b[i], Bytes: 32} }
	hi := func(i int) metal.Range { return metal.Range{Buf: b[i], Offset: 32, Bytes: 32} }
	for _, c := range []struct {
		name, want string
		do         func(cb *metal.CommandBuffer)
	}{
		{"independent", "dd", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, p, b[0].All(), b[1].All())
			dispatch(t, cb, p, b[0].All(), b[2].All())
		}},
		{"read after write", "d|d", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, p, b[0].All(), b[1].All())
			dispatch(t, cb, p, b[1].All(), b[2].All())
		}},
		{"write after read", "d|d", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, p, b[0].All(), b[1].All())
			dispatch(t, cb, p, b[2].All(), b[0].All())
		}},
		{"write after write", "d|d", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, p, b[0].All(), b[1].All())
			dispatch(t, cb, p, b[2].All(), b[1].All())
		}},
		{"slices that only touch", "ddd", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, p, b[0].All(), lo(1))
			dispatch(t, cb, p, b[0].All(), hi(1))
			dispatch(t, cb, p, lo(3), hi(3))
		}},
		{"slice of the written parent", "d|d", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, p, b[0].All(), b[1].All())
			dispatch(t, cb, p, hi(1), b[2].All())
		}},
		{"in place", "d|d", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, p, b[0].All(), b[0].All())
			dispatch(t, cb, p, b[0].All(), b[0].All())
		}},
		{"atomics", "d|d", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, count, b[0].All())
			dispatch(t, cb, count, b[0].All())
		}},
		{"an input that the kernel writes", "d|d", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, mutable, b[0].All())
			dispatch(t, cb, p, b[0].All(), b[1].All())
		}},
		{"an input whose writes would be faults", "dd", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, constant, b[0].All())
			dispatch(t, cb, p, b[0].All(), b[1].All())
		}},
		{"copy and fill", "f|c|d|f", func(cb *metal.CommandBuffer) {
			e := cb.Encoder()
			require.NoError(t, e.Fill(b[0].All(), []byte{0}))
			require.NoError(t, e.Copy(b[1].All(), b[0].All()))
			dispatch(t, cb, p, b[1].All(), b[2].All())
			require.NoError(t, e.Fill(b[1].All(), []byte{0}))
		}},
		{"a barrier of the caller's counts", "d|d", func(cb *metal.CommandBuffer) {
			dispatch(t, cb, p, b[0].All(), b[1].All())
			require.NoError(t, cb.Encoder().Barrier())
			dispatch(t, cb, p, b[1].All(), b[2].All())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cb := d.NewCommandBuffer(0, "")
			c.do(cb)
			require.Equal(t, c.want, kinds(cb))
			cb.Cancel(nil)
		})
	}
	for _, x := range b {
		require.Equal(t, 1, x.Refs())
		x.Release()
	}
}

// TestHazardsAtRandom holds the encoder's barriers against the definition, byte by byte.
func TestHazardsAtRandom(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "a:r", "b:r", "c:w", "d:rw"))
	d := open(t, f, metal.DeviceOptions{})
	p := pipeline(t, d, "k")
	r := rand.New(rand.NewPCG(7, 8))
	var bufs [3]*metal.Buffer
	for i := range bufs {
		bufs[i] = alloc(t, d, 256)
	}
	for range 60 {
		cb := d.NewCommandBuffer(0, "")
		want := ""
		var read, written [3][256]bool
		for range 40 {
			var args []metal.Range
			var which []int
			for range 4 {
				k := r.IntN(3)
				off := 4 * r.Int64N(63)
				n := r.Int64N(min(256-off, 24) + 1)
				args, which = append(args, metal.Range{Buf: bufs[k], Offset: off, Bytes: n}), append(which, k)
			}
			due := false
			each := func(f func(k int, at int64, reads, writes bool)) {
				for i, a := range args {
					for at := a.Offset; at < a.Offset+a.Bytes; at++ {
						f(which[i], at, i != 2, i >= 2)
					}
				}
			}
			each(func(k int, at int64, reads, writes bool) {
				due = due || written[k][at] || writes && read[k][at]
			})
			if due {
				want += "|"
				read, written = [3][256]bool{}, [3][256]bool{}
			}
			each(func(k int, at int64, reads, writes bool) {
				read[k][at] = read[k][at] || reads
				written[k][at] = written[k][at] || writes
			})
			want += "d"
			dispatch(t, cb, p, args...)
		}
		require.Equal(t, want, kinds(cb))
		cb.Cancel(nil)
	}
	for _, b := range bufs {
		b.Release()
	}
}

// TestUntouchedParameters: a parameter that a kernel neither reads nor writes needs no barrier, and validation agrees.
func TestUntouchedParameters(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("w", nil, "out:w"), drivertest.Kernel("constant", nil, "unused:", "out:w"))
	d := open(t, f, metal.DeviceOptions{Validate: true})
	cb := d.NewCommandBuffer(0, "")
	x, y := alloc(t, d, 64), alloc(t, d, 64)
	defer x.Release()
	defer y.Release()
	dispatch(t, cb, pipeline(t, d, "w"), x.All())
	dispatch(t, cb, pipeline(t, d, "constant"), x.All(), y.All())
	require.Len(t, cb.Commands(), 2)
	require.NoError(t, cb.Commit())
	f.CompleteAll()
	require.NoError(t, cb.Wait(bg))
}

// TestDroppedBarriersAreFound: each kind of barrier left out is reported by the validation layer, and breaks the result
// on a device that runs independent commands backwards, every time.
func TestDroppedBarriersAreFound(t *testing.T) {
	for _, c := range []struct {
		kind   string
		ablate metal.Ablations
	}{
		{"read after write", metal.Ablations{DropRAW: true}},
		{"write after read", metal.Ablations{DropWAR: true}},
		{"write after write", metal.Ablations{DropWAW: true}},
	} {
		run := func(opt metal.DeviceOptions) (byte, error) {
			f := drivertest.NewFake()
			f.Reverse = true
			d := open(t, f, opt)
			cb := d.NewCommandBuffer(0, "")
			x, y := alloc(t, d, 4), alloc(t, d, 4)
			defer x.Release()
			defer y.Release()
			clear(x.Host())
			clear(y.Host())
			e := cb.Encoder()
			switch c.kind { // each leaves y[0] == 1 if the order is kept
			case "read after write":
				require.NoError(t, e.Fill(x.All(), []byte{1}))
				require.NoError(t, e.Copy(y.All(), x.All()))
			case "write after read":
				x.Host()[0] = 1
				require.NoError(t, e.Copy(y.All(), x.All()))
				require.NoError(t, e.Fill(x.All(), []byte{2}))
			case "write after write":
				require.NoError(t, e.Fill(y.All(), []byte{2}))
				require.NoError(t, e.Fill(y.All(), []byte{1}))
			}
			require.NoError(t, cb.Commit())
			f.CompleteAll()
			err := cb.Wait(bg)
			return y.Host()[0], err
		}
		for range 10 {
			got, err := run(metal.DeviceOptions{Validate: true})
			require.NoError(t, err)
			require.Equal(t, byte(1), got)
			got, err = run(metal.DeviceOptions{Ablate: c.ablate})
			require.NoError(t, err)
			require.NotEqual(t, byte(1), got)
			_, err = run(metal.DeviceOptions{Validate: true, Ablate: c.ablate})
			require.ErrorContains(t, err, fmt.Sprintf("[validate] missing barrier (%s) between ", c.kind))
			require.ErrorContains(t, err, "command 0, and ")
		}
	}
}

// BenchmarkDispatch is one dispatch of three buffers, hazards included.
func BenchmarkDispatch(b *testing.B) {
	d := open(b, drivertest.NewFake(drivertest.Kernel("k", nil, "a:r", "b:r", "c:w")), metal.DeviceOptions{})
	p := pipeline(b, d, "k")
	bufs := make([]*metal.Buffer, 300)
	for i := range bufs {
		bufs[i] = alloc(b, d, 4096)
		defer bufs[i].Release()
	}
	cb := d.NewCommandBuffer(0, "")
	e := cb.Encoder()
	i := 0
	for b.Loop() {
		if i++; i%500 == 0 {
			cb.Cancel(nil)
			cb = d.NewCommandBuffer(0, "")
			e = cb.Encoder()
		}
		e.SetPipeline(p)
		e.SetBuffer(0, bufs[i%300], 0)
		e.SetBuffer(1, bufs[(i+1)%300], 0)
		e.SetBuffer(2, bufs[(i+7)%300], 0)
		if err := e.Dispatch(one, one); err != nil {
			b.Fatal(err)
		}
	}
	cb.Cancel(nil)
}
