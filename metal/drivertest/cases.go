package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mlxlua/mlxlua/metal"
)

// cases is the suite.
var cases = []testCase{
	{name: "info", run: caseInfo},
	{name: "alloc", run: caseAlloc},
	{name: "set", validate: []bool{false}, run: caseSet},
	{name: "compile errors", run: caseCompileErrors},
	{name: "reflection", run: caseReflection},
	{name: "dispatch", run: caseDispatch},
	{name: "positions and edges", run: casePositions},
	{name: "threadgroup memory", run: caseThreadgroup},
	{name: "atomics", run: caseAtomics},
	{name: "copy and fill", run: caseCopyFill},
	{name: "order in a command buffer", run: caseOrder},
	{name: "order in a queue", run: caseQueue},
	{name: "same name, other body", run: caseSameName},
	{name: "twelve weights", run: caseTwelveWeights},
	{name: "cancel", run: caseCancel},
	{name: "interruption", run: caseInterruption},
	{name: "gates", run: caseGates},
	{name: "fault word", run: caseFaultWord},
	{name: "faults", run: caseFaults},
	{name: "a fault is one command's", run: caseFaultAlone},
	{name: "inputs are read-only", run: caseInputs},
	{name: "views of one buffer", run: caseViews},
	{name: "calls", run: caseCalls},
	{name: "calls refused", run: caseCallsRefused},
	{name: "calls behind gates", run: caseCallsGated},
	{name: "steps", validate: []bool{false}, run: caseSteps},
	{name: "meet", run: caseMeet},
	{name: "meet refused", run: caseMeetRefused},
	{name: "meet what did not run", run: caseMeetMissed},
	{name: "meet another device", run: caseMeetDevices},
	{name: "stopped", run: caseStopped},
	{name: "lost", wrap: lose, run: caseLost},
	{name: "limits", run: caseLimits},
	{name: "edges of the limits", run: caseEdges},
	{name: "empty", run: caseEmpty},
	{name: "many goroutines", run: caseGoroutines},
	{name: "close while pending", validate: []bool{false}, run: caseClose},
}

func caseInfo(b *bench) {
	i := b.drv.Info()
	must.True(b.t, i.Name != "", "no name")
	must.True(b.t, i.Kind != "" && i.ID != "", "a kind %q and an identity %q", i.Kind, i.ID)
	must.True(b.t, i.Index >= 0, "index %d", i.Index)
	must.True(b.t, i.Version != "", "no version, which is part of every library key")
	must.True(b.t, i.Threads > 0, "%d threads", i.Threads)
	must.True(b.t, i.Memory > 0, "%d bytes", i.Memory)
	must.Equal(b.t, metal.MetalLimits(i.Limits.MaxBufferBytes), i.Limits)
	must.True(b.t, i.Limits.MaxBufferBytes > 0, "no largest buffer")
	must.Equal(b.t, i, b.drv.Info())
}

// caseAlloc: memory is zeroed, its own, and what Write puts there Read finds, at any offset and length.
func caseAlloc(b *bench) {
	for _, n := range []int64{1, 100, page, page + 1, 3<<20 + 5} {
		m, err := b.drv.Alloc(n)
		must.NoError(b.t, err)
		must.True(b.t, m.Size >= n, "%d bytes of %d", m.Size, n)
		if m.Host != nil {
			must.True(b.t, int64(len(m.Host)) >= n, "%d bytes of %d for the host", len(m.Host), n)
			must.Equal(b.t, int64(0), address(m.Host)%page, "alignment of %d bytes", n)
		}
		must.Equal(b.t, make([]byte, n), b.transfer(m, 0, make([]byte, n), false), "new memory")
		b.transfer(m, n-1, []byte{1}, true)
		other, err := b.drv.Alloc(n)
		must.NoError(b.t, err)
		must.Equal(b.t, []byte{0}, b.transfer(other, n-1, make([]byte, 1), false), "two allocations overlap")
		for _, r := range [][2]int64{{0, 1}, {n / 2, 1}, {n / 3, n / 3}, {1, n - 1}, {0, n}} {
			want := make([]byte, max(0, min(r[1], n-r[0])))
			for i := range want {
				want[i] = byte(int64(i)*7 + r[0] + 1)
			}
			b.transfer(m, r[0], want, true)
			must.Equal(b.t, want, b.transfer(m, r[0], make([]byte, len(want)), false), "%d bytes from %d on", len(want), r[0])
		}
		must.Equal(b.t, make([]byte, n), b.transfer(other, 0, make([]byte, n), false), "a neighbour")
		b.drv.Free(m)
		b.drv.Free(other)
	}
	for _, n := range []int64{0, -1, 1 << 62} {
		_, err := b.drv.Alloc(n)
		must.Error(b.t, err, "%d bytes", n)
	}
}

// caseSet: Set changes what it is asked to, in order with Write.
func caseSet(b *bench) {
	setter, ok := b.drv.(metal.Setter)
	if !ok {
		return
	}
	m, err := b.drv.Alloc(100)
	must.NoError(b.t, err)
	want := make([]byte, 100)
	for i := range want {
		want[i] = byte(i)
	}
	b.transfer(m, 0, want, true)
	must.NoError(b.t, setter.Set(m, 10, 21, 0xA5))
	for i := range 21 {
		want[10+i] = 0xA5
	}
	want[15] = 1
	b.transfer(m, 15, want[15:16], true)
	must.NoError(b.t, setter.Set(m, 99, 1, 0))
	want[99] = 0
	must.Equal(b.t, want, b.transfer(m, 0, make([]byte, 100), false), "after Write, Set, Write, Set")
	b.drv.Free(m)
}

// transfer writes data to a driver's memory or fills it from there, and returns it.
func (b *bench) transfer(m metal.Memory, offset int64, data []byte, write bool) []byte {
	if write {
		must.NoError(b.t, b.drv.Write(m, offset, data))
	} else {
		must.NoError(b.t, b.drv.Read(data, m, offset))
	}
	return data
}

func caseCompileErrors(b *bench) {
	src := metal.Source{Label: "wrong", Text: header + `
kernel void wrong(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = undeclared_one;
  out[i + 1] = undeclared_two;
}`}
	for range 2 {
		l, err := b.d.Library(bg, src)
		must.True(b.t, l == nil, "a library in spite of errors")
		must.ErrorContains(b.t, err, "undeclared_one")
		must.ErrorContains(b.t, err, "undeclared_two", "all errors are reported at once")
	}
	b.kernel("add") // the driver is still good
}

func caseReflection(b *bench) {
	p := b.kernel("add")
	must.Equal(b.t, []string{"add"}, p.Library().Kernels())
	byName := map[string]metal.ParamInfo{}
	for _, q := range p.Params() {
		byName[q.Name] = q
	}
	must.Equal(b.t, 4, len(byName))
	for i, n := range []string{"a", "b", "out", "n"} {
		q := byName[n]
		must.Equal(b.t, i, q.Index, n)
		must.Equal(b.t, 4, q.ElemSize, n)
		must.Equal(b.t, n == "n", q.Constant, n)
		must.Equal(b.t, n != "out", q.Read, n)
		must.Equal(b.t, n == "out", q.Write, n)
		must.Equal(b.t, n != "out", q.ReadOnly, n)
		must.True(b.t, !q.Atomic && !q.Threadgroup, n)
	}
	must.Equal(b.t, int64(4), byName["n"].MinBytes, "a reference")
	turn := b.kernel("turn").Reflection()
	must.Equal(b.t, int64(1024), turn.StaticTG)
	must.True(b.t, b.kernel("tally").Params()[0].Atomic)
	dynamic := 0
	for _, q := range b.kernel("turn_dynamic").Params() {
		if q.Threadgroup {
			dynamic++
			must.Equal(b.t, 0, q.Index)
		}
	}
	must.Equal(b.t, 1, dynamic)
}

func caseDispatch(b *bench) {
	for _, n := range []int{1, 31, 32, 33, 1000, 5000} {
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = float32(i), 0.5
		}
		xb, yb, out := b.floats(x...), b.floats(y...), b.zeros(n+1)
		cb := b.begin()
		b.encode(cb, "add", threads(n+40), threads(64), buf("a", xb), buf("b", yb), buf("out", out),
			word32("n", uint32(n)))
		b.finish(cb)
		got := b.readFloats(out)
		for i := range n {
			if got[i] != float32(i)+0.5 {
				must.Equal(b.t, float32(i)+0.5, got[i], "element %d of %d", i, n)
			}
		}
		must.Equal(b.t, float32(0), got[n], "behind the end")
		release(xb, yb, out)
	}
	// Offsets: the second half of a is added to the first.
	x, out := b.floats(1, 2, 3, 4, 5, 6), b.zeros(6)
	cb := b.begin()
	b.encode(cb, "add", threads(3), threads(3), buf("a", x), arg{name: "b", buf: x, at: 12},
		arg{name: "out", buf: out, at: 8}, word32("n", 3))
	b.finish(cb)
	must.Equal(b.t, []float32{0, 0, 5, 7, 9, 0}, b.readFloats(out))
	release(x, out)
}

func release(bufs ...*metal.Buffer) {
	for _, x := range bufs {
		x.Release()
	}
}

// casePositions: a grid that the threadgroup does not divide, so that the groups at the edges are smaller.
func casePositions(b *bench) {
	grid, tg := metal.Size{X: 37, Y: 5, Z: 3}, metal.Size{X: 16, Y: 4, Z: 2}
	out := b.zeros(4 * grid.Count())
	cb := b.begin()
	b.encode(cb, "place", grid, tg, buf("out", out))
	b.finish(cb)
	got := b.read(out)
	pack := func(x, y, z int) uint32 { return uint32(x | y<<8 | z<<16) }
	at := 0
	for z := range grid.Z {
		for y := range grid.Y {
			for x := range grid.X {
				g := [3]int{x / tg.X, y / tg.Y, z / tg.Z}
				want := []uint32{
					pack(x, y, z), pack(x%tg.X, y%tg.Y, z%tg.Z), pack(g[0], g[1], g[2]),
					pack(min(tg.X, grid.X-g[0]*tg.X), min(tg.Y, grid.Y-g[1]*tg.Y), min(tg.Z, grid.Z-g[2]*tg.Z)),
				}
				must.Equal(b.t, want, got[at:at+4], "thread (%d, %d, %d)", x, y, z)
				at += 4
			}
		}
	}
	out.Release()
}

func caseThreadgroup(b *bench) {
	const n, tg = 600, 256 // the last group has 88 threads
	in := make([]uint32, n)
	for i := range in {
		in[i] = uint32(i)
	}
	for _, k := range []string{"turn", "turn_dynamic"} {
		x, out := b.words(in...), b.zeros(n)
		args := []arg{buf("in", x), buf("out", out)}
		if k == "turn_dynamic" {
			args = append(args, arg{name: "s", tg: 4 * tg})
		}
		cb := b.begin()
		b.encode(cb, k, threads(n), threads(tg), args...)
		b.finish(cb)
		for i, got := range b.read(out) {
			base := i / tg * tg
			if want := uint32(base + min(tg, n-base) - 1 - (i - base)); got != want {
				must.Equal(b.t, want, got, "%s: thread %d", k, i)
			}
		}
		release(x, out)
	}
}

func caseAtomics(b *bench) {
	const n = 3000
	count := b.zeros(3)
	cb := b.begin()
	for range 2 {
		b.encode(cb, "tally", threads(n), threads(128), buf("count", count))
	}
	b.finish(cb)
	var want [3]uint32
	for i := range uint32(n) {
		want[i%3] += 2 * i
	}
	must.Equal(b.t, want[:], b.read(count))
	count.Release()
}

func caseCopyFill(b *bench) {
	x, y := b.zeros(4), b.zeros(4)
	at := func(b *metal.Buffer, off, n int64) metal.Range { return metal.Range{Buf: b, Offset: off, Bytes: n} }
	cb := b.begin()
	e := cb.Encoder()
	must.NoError(b.t, e.Fill(at(x, 1, 5), []byte{7}))
	must.NoError(b.t, e.Fill(at(x, 8, 8), []byte{1, 2, 3, 4}))
	must.NoError(b.t, e.Copy(at(y, 3, 9), at(x, 4, 9)))
	must.NoError(b.t, e.Copy(at(x, 0, 1), at(x, 15, 1)))
	b.finish(cb)
	must.Equal(b.t, []byte{4, 7, 7, 7, 7, 7, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4}, b.contents(x))
	must.Equal(b.t, []byte{0, 0, 0, 7, 7, 0, 0, 1, 2, 3, 4, 1, 0, 0, 0, 0}, b.contents(y))
	release(x, y)
	const n = 1 << 20
	big, other := b.zeros(n), b.zeros(n)
	cb = b.begin()
	must.NoError(b.t, cb.Encoder().Fill(big.All(), []byte{1, 0, 0, 0, 2, 0, 0, 0}))
	must.NoError(b.t, cb.Encoder().Copy(other.All(), big.All()))
	b.finish(cb)
	for i, v := range b.read(other) {
		if v != uint32(1+i%2) {
			must.Equal(b.t, uint32(1+i%2), v, "word %d", i)
		}
	}
	release(big, other)
}

// step is what the kernel next does.
func step(x uint32) uint32 { return x*1664525 + 1013904223 }

// caseOrder: commands that depend on one another, with others in between that do not.
func caseOrder(b *bench) {
	const n, rounds = 100, 50
	x, y, z := b.zeros(n), b.zeros(n), b.zeros(n)
	cb := b.begin()
	for i := range rounds {
		b.encode(cb, "next", threads(n), threads(32), buf("in", x), buf("out", y))
		if i%5 == 0 {
			b.encode(cb, "twice_plus_one", threads(n), threads(32), buf("x", z))
		}
		b.encode(cb, "next", threads(n), threads(32), buf("in", y), buf("out", x))
	}
	b.finish(cb)
	var want, doubled uint32
	for i := range rounds {
		want = step(step(want))
		if i%5 == 0 {
			doubled = 2*doubled + 1
		}
	}
	for i := range n {
		must.Equal(b.t, want, b.read(x)[i])
		must.Equal(b.t, doubled, b.read(z)[i])
	}
	release(x, y, z)
}

func caseQueue(b *bench) {
	const n, rounds = 64, 40
	x := b.zeros(n)
	var last *metal.CommandBuffer
	var want uint32
	for range rounds {
		last = b.begin()
		b.encode(last, "twice_plus_one", threads(n), threads(64), buf("x", x))
		must.NoError(b.t, last.Commit())
		want = 2*want + 1
	}
	must.NoError(b.t, last.Wait(bg))
	for _, v := range b.read(x) {
		must.Equal(b.t, want, v)
	}
	x.Release()
}

// caseSameName: two sources with one kernel name in one command buffer.
func caseSameName(b *bench) {
	x, y := b.zeros(4), b.zeros(4)
	cb := b.begin()
	for i, v := range []string{"11", "22"} {
		text := header + `
kernel void set(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = ` + v + `;
}`
		l, err := b.d.Library(bg, metal.Source{Label: "set", Text: text})
		must.NoError(b.t, err)
		p, err := l.Pipeline("set")
		must.NoError(b.t, err)
		e := cb.Encoder()
		e.SetPipeline(p)
		e.SetBuffer(0, []*metal.Buffer{x, y}[i], 0)
		must.NoError(b.t, e.Dispatch(threads(4), threads(4)))
	}
	b.finish(cb)
	must.Equal(b.t, []uint32{11, 11, 11, 11}, b.read(x))
	must.Equal(b.t, []uint32{22, 22, 22, 22}, b.read(y))
	release(x, y)
}

// caseTwelveWeights: one kernel, called with twelve slices of one buffer; what the caller held is dropped at once.
func caseTwelveWeights(b *bench) {
	const n, layers = 16, 12
	w := make([]float32, n*layers)
	for i := range w {
		w[i] = float32(i)
	}
	weights, x := b.floats(w...), b.floats(make([]float32, n)...)
	cb := b.begin()
	for l := range layers {
		out := b.zeros(n)
		b.encode(cb, "add", threads(n), threads(n), buf("a", x), arg{name: "b", buf: weights, at: int64(4 * n * l)},
			buf("out", out), word32("n", n))
		x.Release()
		x = out
	}
	weights.Release()
	b.finish(cb)
	for i, got := range b.readFloats(x) {
		var want float32
		for l := range layers {
			want += float32(n*l + i)
		}
		must.Equal(b.t, want, got)
	}
	x.Release()
}

// caseCancel: kernels that never end are stopped, and what comes after them runs.
func caseCancel(b *bench) {
	if b.drv.Info().Stops != metal.StopsMidway {
		return
	}
	b.kernel("twice_plus_one") // a device may compile nothing while an endless kernel runs
	for _, k := range []struct{ kernel, param string }{{"spin", "flag"}, {"count_forever", "x"}} {
		x, y := b.zeros(128), b.zeros(1)
		why := errors.New("enough")
		endless := b.begin()
		b.encode(endless, k.kernel, threads(64), threads(32), buf(k.param, x))
		must.NoError(b.t, endless.Commit())
		after := b.begin()
		b.encode(after, "twice_plus_one", threads(1), threads(1), buf("x", y))
		must.NoError(b.t, after.Commit())
		waiting, stop := context.WithCancel(bg)
		stop()
		must.ErrorIs(b.t, endless.Wait(waiting), context.Canceled)
		must.Equal(b.t, metal.StatusCommitted, endless.Status())
		endless.Cancel(why)
		must.ErrorIs(b.t, endless.Wait(bg), why, k.kernel)
		must.NoError(b.t, after.Wait(bg))
		must.Equal(b.t, []uint32{1}, b.read(y))
		release(x, y)
	}
	// Cancelled before its turn: it ends with the reason, too.
	x := b.zeros(1)
	endless, behind := b.begin(), b.begin()
	b.encode(endless, "spin", threads(1), threads(1), buf("flag", x))
	b.encode(behind, "spin", threads(1), threads(1), buf("flag", x))
	must.NoError(b.t, endless.Commit())
	must.NoError(b.t, behind.Commit())
	why := errors.New("not even begun")
	behind.Cancel(why)
	endless.Cancel(nil)
	must.ErrorIs(b.t, endless.Wait(bg), context.Canceled)
	must.ErrorIs(b.t, behind.Wait(bg), why)
	x.Release()
}

// caseInterruption: of a chain that is interrupted exactly those commands have run that the errors name, which are the
// first ones, and of no unit only a part.
func caseInterruption(b *bench) {
	if b.drv.Info().Stops == metal.StopsMidway {
		b.interruptMidway()
	}
	why := errors.New("enough")
	x := b.zeros(1000)
	var e *metal.Interrupted
	units := []int{1, 1, 1, 2, 3, 3, 4, 4, 4, 4, 5, 6}
	for round := range 20 {
		clean := b.begin()
		must.NoError(b.t, clean.Encoder().Fill(x.All(), []byte{0}))
		b.finish(clean)
		var chain metal.Chain
		cb := b.chained(&chain)
		for _, u := range units {
			cb.Encoder().Unit(u)
			b.encode(cb, "twice_plus_one", threads(1000), threads(10), buf("x", x))
		}
		must.NoError(b.t, cb.Commit())
		time.Sleep(time.Duration(round) * 20 * time.Microsecond)
		chain.Interrupt(why)
		err := cb.Wait(bg)
		ran := len(units)
		if errors.As(err, &e) {
			ran = 0
			for i, did := range e.Ran {
				if i%2 == 0 && did { // odd ones are barriers
					must.Equal(b.t, 2*ran, i, "a hole before a command that ran")
					ran++
				}
			}
			must.Equal(b.t, -1, e.Midway)
		} else {
			must.NoError(b.t, err)
		}
		must.True(b.t, ran == 0 || ran == len(units) || units[ran] != units[ran-1], "a unit was cut at %d", ran)
		must.Equal(b.t, slices.Repeat([]uint32{1<<ran - 1}, 1000), b.read(x))
	}
	release(x)
}

// interruptMidway: so does a kernel that would never end.
func (b *bench) interruptMidway() {
	why := errors.New("enough")
	x, y, flag := b.zeros(1000), b.zeros(1000), b.zeros(1)
	var chain metal.Chain
	first, second := b.chained(&chain), b.chained(&chain)
	b.encode(first, "twice_plus_one", threads(1000), threads(100), buf("x", x))
	must.NoError(b.t, first.Encoder().Barrier())
	b.encode(first, "spin", threads(1), threads(1), buf("flag", flag))
	must.NoError(b.t, first.Encoder().Barrier())
	b.encode(first, "twice_plus_one", threads(1000), threads(100), buf("x", x))
	b.encode(second, "twice_plus_one", threads(1000), threads(100), buf("x", y))
	other := b.begin()
	must.NoError(b.t, first.Commit())
	must.NoError(b.t, second.Commit())
	must.NoError(b.t, other.Commit())
	time.AfterFunc(2*time.Millisecond, func() { chain.Interrupt(why) })
	var e *metal.Interrupted
	must.True(b.t, errors.As(first.Wait(bg), &e), "not Interrupted")
	must.ErrorIs(b.t, e, why)
	if e.Midway == 2 { // else the interruption was faster
		must.Equal(b.t, []bool{true, true, false, false, false}, e.Ran)
	} else {
		must.Equal(b.t, 0, max(e.Midway, 0))
	}
	if e.Midway != 0 {
		want := uint32(0)
		if e.Ran[0] {
			want = 1
		}
		must.Equal(b.t, slices.Repeat([]uint32{want}, 1000), b.read(x))
	}
	must.True(b.t, errors.As(second.Wait(bg), &e), "not Interrupted")
	must.Equal(b.t, []bool{false}, e.Ran)
	must.Equal(b.t, make([]uint32, 1000), b.read(y))
	must.NoError(b.t, other.Wait(bg), "another chain goes on")
	release(x, y, flag)
}

// caseFaults: accesses out of bounds are errors that name kernel and buffer; neighbours in memory stay untouched, and
// the device goes on, where the driver says that it checks.
func caseFaults(b *bench) {
	if b.drv.Info().Faults != metal.FaultsPlaced {
		return
	}
	for _, at := range []uint32{4, 5, 1 << 10, 1 << 20, 1<<30 - 1, 1<<32 - 1} {
		x, neighbour, out := b.zeros(4), b.zeros(4), b.zeros(1)
		for _, k := range []string{"store_at", "load_at"} {
			param, args := "target", []arg{buf("target", x), word32("at", at)}
			if k == "load_at" {
				param, args = "origin", []arg{buf("origin", x), word32("at", at), buf("out", out)}
			}
			cb := b.begin()
			b.encode(cb, k, threads(1), threads(1), args...)
			must.NoError(b.t, cb.Commit())
			err := cb.Wait(bg)
			must.Error(b.t, err, "%s at %d", k, at)
			for _, s := range []string{k, param, fmt.Sprint(at)} {
				must.ErrorContains(b.t, err, s)
			}
		}
		must.Equal(b.t, make([]uint32, 4), b.read(x))
		must.Equal(b.t, make([]uint32, 4), b.read(neighbour))
		cb := b.begin()
		b.encode(cb, "store_at", threads(1), threads(1), buf("target", x), word32("at", 3))
		b.finish(cb)
		must.Equal(b.t, []uint32{0, 0, 0, 1}, b.read(x))
		release(x, neighbour, out)
	}
	// A binding's range is the bound, not the buffer's end.
	x := b.zeros(8)
	cb := b.begin()
	p := b.kernel("store_at")
	e := cb.Encoder()
	e.SetPipeline(p)
	for i, q := range p.Params() {
		if q.Name == "target" {
			e.SetBufferRange(i, metal.Range{Buf: x, Offset: 4, Bytes: 8})
		} else {
			e.SetBytes(i, []byte{2, 0, 0, 0})
		}
	}
	must.NoError(b.t, e.Dispatch(threads(1), threads(1)))
	must.NoError(b.t, cb.Commit())
	must.Error(b.t, cb.Wait(bg))
	must.Equal(b.t, make([]uint32, 8), b.read(x))
	x.Release()
}

// caseLimits: what Metal forbids is refused, in words that name the kernel and the values, whatever the driver could
// do.
func caseLimits(b *bench) {
	x, out := b.zeros(64), b.zeros(64)
	for _, c := range []struct {
		kernel, says string
		group        int
		bind         func(e *metal.Encoder, param int, q metal.ParamInfo)
	}{
		{"twice_plus_one", "threadgroup (1025, 1, 1) is more than the limit of 1024 threads", 1025, nil},
		{"twice_plus_one", "(x): offset 2 is not a multiple of 4", 1, func(e *metal.Encoder, i int, _ metal.ParamInfo) {
			e.SetBuffer(i, x, 2)
		}},
		{"twice_plus_one", "(x): the kernel writes it, so it cannot be inline bytes", 1,
			func(e *metal.Encoder, i int, _ metal.ParamInfo) { e.SetBytes(i, make([]byte, 64)) }},
		{"store_at", "(at): 4097 inline bytes are more than the limit of 4096", 1,
			func(e *metal.Encoder, i int, q metal.ParamInfo) {
				if q.Name == "at" {
					e.SetBytes(i, make([]byte, 4097))
				} else {
					e.SetBuffer(i, x, 0)
				}
			}},
		{"add", "(n): 2 bytes are bound, and the kernel needs 4", 1,
			func(e *metal.Encoder, i int, q metal.ParamInfo) {
				if q.Name == "n" {
					e.SetBufferRange(i, metal.Range{Buf: x, Offset: 4, Bytes: 2})
				} else {
					e.SetBuffer(i, out, 0)
				}
			}},
		{"turn_dynamic", "32784 bytes of threadgroup memory are more than the limit of 32768", 1,
			func(e *metal.Encoder, i int, q metal.ParamInfo) {
				switch {
				case q.Threadgroup:
					e.SetThreadgroupBytes(i, 32769)
				case q.Name == "in":
					e.SetBuffer(i, x, 0)
				default:
					e.SetBuffer(i, out, 0)
				}
			}},
	} {
		cb := b.begin()
		p, e := b.kernel(c.kernel), cb.Encoder()
		e.SetPipeline(p)
		for i, q := range p.Params() {
			if c.bind != nil {
				c.bind(e, i, q)
			} else {
				e.SetBuffer(i, x, 0)
			}
		}
		err := e.Dispatch(threads(2000), threads(c.group))
		must.ErrorContains(b.t, err, c.says)
		must.ErrorContains(b.t, err, "kernel "+c.kernel)
		must.Equal(b.t, 0, len(cb.Commands()))
		b.finish(cb)
	}
	must.Equal(b.t, make([]uint32, 64), b.read(x))
	release(x, out)
}

func caseEmpty(b *bench) {
	cb := b.begin()
	b.finish(cb)
	cb = b.begin()
	must.NoError(b.t, cb.Encoder().Barrier())
	b.finish(cb)
	must.True(b.t, !cb.Timing().End.Before(cb.Timing().Start), "it ended before it began")
}

// caseGoroutines: many goroutines, several queues, buffers dropped as soon as they are encoded.
func caseGoroutines(b *bench) {
	const n = 257
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	kernel := b.kernel("next")
	for g := range 8 {
		wg.Go(func() {
			for range 4 {
				if err := b.chain(kernel, g, n); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must.NoError(b.t, err)
	}
	must.Equal(b.t, 0, b.d.Memory().Buffers, "live buffers")
}

// chain steps n words eight times through new buffers, on queue g.
func (b *bench) chain(kernel *metal.Pipeline, g, n int) error {
	d := b.d
	x, err := d.AllocCopy(bg, make([]byte, 4*n), nil)
	if err != nil {
		return err
	}
	cb := d.NewCommandBuffer(g%3, "chain")
	var want uint32
	for range 8 {
		y, err := d.Alloc(bg, int64(4*n))
		if err != nil {
			return err
		}
		e := cb.Encoder()
		e.SetPipeline(kernel)
		for i, q := range kernel.Params() {
			e.SetBuffer(i, map[string]*metal.Buffer{"in": x, "out": y}[q.Name], 0)
		}
		if err := e.Dispatch(threads(n), threads(64)); err != nil {
			return err
		}
		x.Release()
		x, want = y, step(want)
	}
	defer x.Release()
	if err := errors.Join(cb.Commit(), cb.Wait(bg)); err != nil {
		return err
	}
	for i, got := range b.read(x) {
		if got != want {
			return fmt.Errorf("goroutine %d, word %d: %d, want %d", g, i, got, want)
		}
	}
	return nil
}

// caseClose: Close waits for what was committed. It must be the last to use its device.
func caseClose(b *bench) {
	x := b.zeros(1000)
	var cbs []*metal.CommandBuffer
	for range 10 {
		cb := b.begin()
		b.encode(cb, "twice_plus_one", threads(1000), threads(100), buf("x", x))
		must.NoError(b.t, cb.Commit())
		cbs = append(cbs, cb)
	}
	var got []uint32
	cbs[9].OnComplete(func(error) { got = b.read(x) }) // the host's view lasts as long as anything is pending
	must.NoError(b.t, b.d.Close())
	for _, cb := range cbs {
		must.Equal(b.t, metal.StatusCompleted, cb.Status())
		must.NoError(b.t, cb.Err())
	}
	must.Equal(b.t, 1000, len(got))
	must.Equal(b.t, uint32(1<<10-1), got[999])
	must.Error(b.t, x.ReadBytes(make([]byte, 1), 0), "bytes of a closed device")
	x.Release()
}
