package metal_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

func TestLibraryIdentity(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "x:r", "y:w"))
	d := open(t, f, metal.DeviceOptions{})
	base := drivertest.Source("name", "k")
	lib := func(change func(*metal.Source)) *metal.Library {
		s := base
		change(&s)
		l, err := d.Library(bg, s)
		require.NoError(t, err)
		return l
	}
	first := lib(func(*metal.Source) {})
	require.Same(t, first, lib(func(*metal.Source) {}))
	require.Same(t, first, lib(func(s *metal.Source) { s.Label = "another name" }), "a name is a label only")
	require.NotSame(t, first, lib(func(s *metal.Source) { s.Text += " " }))
	require.NotSame(t, first, lib(func(s *metal.Source) { s.Options.MathMode = metal.MathSafe }))
	require.NotSame(t, first, lib(func(s *metal.Source) { s.Options.Portable = true }))
	require.Equal(t, metal.LibraryStats{Hits: 2, Misses: 4, Size: 4, Cap: 1024}, d.LibraryStats())
	require.Equal(t, 4, f.Compiles())

	_, err := d.Library(bg, metal.Source{Label: "wide", Options: metal.Options{Float64: true}})
	require.EqualError(t, err, "[library] wide asks for float64: device fake has none")

	other := drivertest.NewFake(drivertest.Kernel("k", nil))
	other.SetInfo(func(i *metal.Info) { i.Version = "fake-2" })
	l, err := open(t, other, metal.DeviceOptions{}).Library(bg, base)
	require.NoError(t, err)
	require.NotEqual(t, first.Key(), l.Key(), "the toolchain is part of the key")
}

// TestKeyFieldsAreDelimited: texts and options that would be one string if written one after the other.
func TestKeyFieldsAreDelimited(t *testing.T) {
	var seen [][]byte
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{Ablate: metal.Ablations{Hash: func(b []byte) metal.Key {
		seen = append(seen, append([]byte(nil), b...))
		return metal.Key{}
	}}})
	const fast = "0 false false"
	for _, text := range []string{"a", "a" + fast, "a" + fast + "1", "a" + fast + "1cpu"} {
		_, err := d.Library(bg, metal.Source{Text: text})
		require.NoError(t, err)
	}
	for i := range seen {
		for j := range i {
			a, b := seen[i], seen[j]
			require.NotEqual(t, a, b)
			n := min(len(a), len(b))
			require.NotEqual(t, a[:n], b[:n], "no field string may begin another")
		}
	}
}

func TestForcedHashCollision(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("a", nil), drivertest.Kernel("b", nil))
	d := open(t, f, metal.DeviceOptions{Ablate: metal.Ablations{Hash: func([]byte) metal.Key { return metal.Key{7} }}})
	for range 2 {
		for _, k := range []string{"a", "b"} {
			l, err := d.Library(bg, drivertest.Source("same", k))
			require.NoError(t, err)
			require.Equal(t, []string{k}, l.Kernels())
		}
	}
	require.Equal(t, 2, f.Compiles())
}

func TestConcurrentFirstUseCompilesOnce(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil))
	go1 := make(chan struct{})
	f.OnCompile = func(context.Context, metal.Source) error { <-go1; return nil }
	d := open(t, f, metal.DeviceOptions{})
	var wg sync.WaitGroup
	libs := make([]*metal.Library, 32)
	var asked sync.WaitGroup
	asked.Add(len(libs))
	for i := range libs {
		wg.Go(func() {
			asked.Done()
			libs[i], _ = d.Library(bg, drivertest.Source(fmt.Sprint(i), "k"))
		})
	}
	asked.Wait()
	close(go1)
	wg.Wait()
	for _, l := range libs {
		require.NotNil(t, l)
		require.Same(t, libs[0], l)
	}
	require.Equal(t, 1, f.Compiles())
	s := d.LibraryStats()
	require.Equal(t, []int64{1, 31}, []int64{s.Misses, s.Hits})
}

func TestCompileErrorsAreNotCached(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil))
	d := open(t, f, metal.DeviceOptions{})
	f.OnCompile = func(context.Context, metal.Source) error { return errors.New("1:1: no") }
	_, err := d.Library(bg, drivertest.Source("x", "k"))
	require.EqualError(t, err, "1:1: no")
	require.Zero(t, d.LibraryStats().Size)
	f.OnCompile = func(context.Context, metal.Source) error { panic("oops") }
	_, err = d.Library(bg, drivertest.Source("x", "k"))
	require.EqualError(t, err, "[library] BUG: the compiler panicked on x: oops")
	f.OnCompile = nil
	_, err = d.Library(bg, drivertest.Source("x", "k"))
	require.NoError(t, err)
}

// TestClosedDevicesKeepNoLibraries: streams refer to their device for as long as the program runs.
func TestClosedDevicesKeepNoLibraries(t *testing.T) {
	d, err := metal.NewDevice(drivertest.NewFake(drivertest.Kernel("k", nil)), metal.DeviceOptions{})
	require.NoError(t, err)
	l, err := d.Library(bg, drivertest.Source("x", "k"))
	require.NoError(t, err)
	var gone atomic.Bool
	runtime.AddCleanup(l, func(struct{}) { gone.Store(true) }, struct{}{})
	l = nil
	require.NoError(t, d.Close())
	require.Eventually(t, func() bool { runtime.GC(); return gone.Load() }, 10*time.Second, time.Millisecond)
	require.Zero(t, d.LibraryStats().Size)
}

// TestCompileIsGivenUpByTheLastCaller: one caller's cancellation must not fail another's compilation.
func TestCompileIsGivenUpByTheLastCaller(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil))
	started := make(chan context.Context, 2)
	f.OnCompile = func(ctx context.Context, _ metal.Source) error {
		started <- ctx
		<-ctx.Done()
		return ctx.Err()
	}
	d := open(t, f, metal.DeviceOptions{})
	ctxA, cancelA := context.WithCancel(bg)
	ctxB, cancelB := context.WithCancel(bg)
	errs := make(chan error)
	get := func(ctx context.Context) {
		_, err := d.Library(ctx, drivertest.Source("x", "k"))
		errs <- err
	}
	go get(ctxA)
	compiler := <-started
	hits := d.LibraryStats().Hits
	go get(ctxB)
	for d.LibraryStats().Hits == hits { // until B has joined
		runtime.Gosched()
	}
	cancelA()
	require.ErrorIs(t, <-errs, context.Canceled)
	require.NoError(t, compiler.Err(), "B still wants it")
	cancelB()
	require.ErrorIs(t, <-errs, context.Canceled)
	<-compiler.Done()
	f.OnCompile = nil
	_, err := d.Library(bg, drivertest.Source("x", "k"))
	require.NoError(t, err, "the next caller begins anew")
}

func TestLibraryCacheIsBoundedAndPinned(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "x:w"))
	d := open(t, f, metal.DeviceOptions{LibraryCap: 3})
	get := func(i int) *metal.Library {
		s := drivertest.Source("", "k")
		s.Text += fmt.Sprint("// ", i)
		l, err := d.Library(bg, s)
		require.NoError(t, err)
		return l
	}
	b := alloc(t, d, 64)
	defer b.Release()
	cb := d.NewCommandBuffer(0, "")
	for i := range 5 {
		p, err := get(i).Pipeline("k")
		require.NoError(t, err)
		e := cb.Encoder()
		e.SetPipeline(p)
		e.SetBuffer(0, b, 0)
		require.NoError(t, e.Dispatch(metal.Size{X: 1, Y: 1, Z: 1}, metal.Size{X: 1, Y: 1, Z: 1}))
	}
	require.NoError(t, cb.Commit())
	s := d.LibraryStats()
	require.Equal(t, []int{5, 5}, []int{s.Size, s.Pinned}, "more than the cap, while they are in flight")
	get(5)
	for i := range 5 {
		get(i)
	}
	require.Equal(t, 6, f.Compiles(), "nothing in flight was evicted")
	f.Complete(0, nil)
	s = d.LibraryStats()
	require.Equal(t, []int{3, 0}, []int{s.Size, s.Pinned})
	for i := 4; i >= 2; i-- {
		get(i)
	}
	require.Equal(t, 6, f.Compiles(), "the most recently used stayed")
	get(0)
	require.Equal(t, 7, f.Compiles())
}

func TestPipelineErrors(t *testing.T) {
	many := make([]string, 32)
	for i := range many {
		many[i] = fmt.Sprintf("p%d:r", i)
	}
	big := drivertest.Kernel("big", nil)
	big.StaticTG = 40000
	unfit := drivertest.Kernel("unfit", nil)
	unfit.Refused = errors.New("it is too much")
	f := drivertest.NewFake(drivertest.Kernel("many", nil, many...), big, unfit)
	d := open(t, f, metal.DeviceOptions{})
	l, err := d.Library(bg, drivertest.Source("lib", "many", "big", "unfit"))
	require.NoError(t, err)
	_, err = l.Pipeline("none")
	require.EqualError(t, err,
		"[pipeline] library lib ("+l.Key().String()+`) has no kernel "none": it has many, big, unfit`)
	_, err = l.Pipeline("many")
	require.EqualError(t, err, "[pipeline] kernel many has 32 buffer parameters: the limit is 31")
	_, err = l.Pipeline("big")
	require.EqualError(t, err, "[pipeline] kernel big declares 40000 bytes of threadgroup memory: the limit is 32768")
	_, err = l.Pipeline("unfit")
	require.EqualError(t, err, "it is too much")
}

// twoBodies runs two sources of one label, whose kernels write different numbers, in one command buffer.
func twoBodies(t *testing.T, opt metal.DeviceOptions) ([2]byte, error) {
	write := func(v byte) drivertest.Body {
		return func(_ context.Context, c metal.Command) error { drivertest.ArgBytes(c.Args[0])[0] = v; return nil }
	}
	f := drivertest.NewFake(drivertest.Kernel("half", write(1), "x:w"), drivertest.Kernel("float", write(2), "x:w"))
	d := open(t, f, opt)
	cb := d.NewCommandBuffer(0, "")
	var out [2]byte
	x := [2]*metal.Buffer{alloc(t, d, 4), alloc(t, d, 4)}
	for i, k := range []string{"half", "float"} {
		l, err := d.Library(bg, drivertest.Source("paroquant", k))
		require.NoError(t, err)
		p, err := l.Pipeline(l.Kernels()[0])
		require.NoError(t, err)
		e := cb.Encoder()
		e.SetPipeline(p)
		e.SetBuffer(0, x[i], 0)
		require.NoError(t, e.Dispatch(metal.Size{X: 1, Y: 1, Z: 1}, metal.Size{X: 1, Y: 1, Z: 1}))
	}
	require.NoError(t, cb.Commit())
	f.CompleteAll()
	err := cb.Wait(bg)
	for i := range x {
		out[i] = x[i].Host()[0]
		x[i].Release()
	}
	return out, err
}

// TestSameNameOtherSource is MLX's issues 3263 and 3434: one kernel name with two sources, in one command buffer.
func TestSameNameOtherSource(t *testing.T) {
	for range 10 {
		got, err := twoBodies(t, metal.DeviceOptions{Validate: true})
		require.NoError(t, err)
		require.Equal(t, [2]byte{1, 2}, got)

		got, err = twoBodies(t, metal.DeviceOptions{Ablate: metal.Ablations{KeyByName: true}})
		require.NoError(t, err)
		require.Equal(t, [2]byte{1, 1}, got, "with the ablation the second source is never seen")

		_, err = twoBodies(t, metal.DeviceOptions{Validate: true,
			Ablate: metal.Ablations{KeyByName: true, ClearOnMismatch: true}})
		require.ErrorContains(t, err, "command buffer references deallocated object: library paroquant (")
		require.ErrorContains(t, err, "in kernel half, command 0")
	}
}

func BenchmarkLibraryHit(b *testing.B) {
	d := open(b, drivertest.NewFake(drivertest.Kernel("k", nil)), metal.DeviceOptions{})
	s := drivertest.Source("x", "k")
	s.Text += string(make([]byte, 4000))
	for b.Loop() {
		if _, err := d.Library(bg, s); err != nil {
			b.Fatal(err)
		}
	}
}

// A kernel is made when it is asked for, once.
func TestKernelsAreMadeWhenAskedFor(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("a", nil), drivertest.Kernel("b", nil), drivertest.Kernel("c", nil))
	d := open(t, f, metal.DeviceOptions{})
	l, err := d.Library(bg, drivertest.Source("three", "a", "b", "c"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, l.Kernels())
	require.Zero(t, f.Made())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p, err := l.Pipeline("b")
			if err != nil || p.Index() != 1 {
				t.Errorf("pipeline b: %v", err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, f.Made())
}
