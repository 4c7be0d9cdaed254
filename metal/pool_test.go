package metal_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
)

var bg = context.Background()

// open makes a device of a fake, and closes it after the test.
func open(t testing.TB, f *drivertest.Fake, opt metal.DeviceOptions) *metal.Device {
	d, err := metal.NewDevice(f, opt)
	require.NoError(t, err)
	t.Cleanup(func() {
		f.CompleteAll()
		require.NoError(t, d.Close())
		_, pieces := f.Allocated()
		require.Zero(t, pieces)
	})
	return d
}

func alloc(t testing.TB, d *metal.Device, n int64) *metal.Buffer {
	b, err := d.Alloc(bg, n)
	require.NoError(t, err)
	return b
}

func TestBufferCounts(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	b, err := d.AllocCopy(bg, []byte("hello"), nil)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b.Host()))
	require.Equal(t, 5, cap(b.Host()), "an append must not reach the neighbour")
	b.Retain()
	b.Release()
	require.True(t, b.Live())
	b.Release()
	require.False(t, b.Live())
	require.PanicsWithValue(t, "BUG: buffer (#1, 5 bytes) released below zero", b.Release)
	require.Panics(t, b.Retain)
	c := alloc(t, d, 5)
	require.Greater(t, c.ID(), b.ID(), "the same memory, but never the same buffer")
	c.Release()
	require.Zero(t, d.Memory().Active)
	require.Zero(t, d.Memory().Buffers)
}

func TestEmptyBuffer(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	b := alloc(t, d, 0)
	require.Zero(t, b.Len())
	require.Empty(t, b.Host())
	b.Release()
}

func TestAllocErrors(t *testing.T) {
	f := drivertest.NewFake()
	f.SetInfo(func(i *metal.Info) { i.Memory = 23_000_000_000 })
	collected := 0
	d := open(t, f, metal.DeviceOptions{Collect: func() { collected++ }})
	_, err := d.Alloc(bg, 4e11)
	require.EqualError(t, err, "[alloc] 400 GB is more than the memory limit of 18.4 GB (active 0 B, cache 0 B)")
	_, err = d.Alloc(bg, 20e9)
	require.EqualError(t, err, "[alloc] 20.0 GB is more than the memory limit of 18.4 GB (active 0 B, cache 0 B)")
	require.ErrorIs(t, err, metal.ErrNoMemory)
	_, err = d.Alloc(bg, 1<<62)
	require.ErrorContains(t, err, "[alloc] 4.61 EB is more than the largest buffer of device fake, 1.10 TB")
	_, err = d.Alloc(bg, -1)
	require.EqualError(t, err, "[alloc] the size is negative: -1 bytes")
	require.Zero(t, collected, "what can never fit fails at once")
	require.Zero(t, d.Memory().Active)
}

func TestDriverRefuses(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{})
	b := alloc(t, d, 4*mib)
	b.Release()
	require.Equal(t, 4*mib, d.Memory().Cache)
	f.OnAlloc = func(int64) error {
		if n, _ := f.Allocated(); n > 0 {
			return errors.New("out of memory")
		}
		return nil
	}
	b = alloc(t, d, 6*mib) // refused at first; the cache's 4 MiB go back; then it works
	f.OnAlloc = func(int64) error { return errors.New("out of memory") }
	_, err := d.Alloc(bg, 8*mib)
	require.EqualError(t, err, "[alloc] device fake refuses 8.39 MB: out of memory")
	require.ErrorIs(t, err, metal.ErrNoMemory)
	b.Release()
}

// TestPoolNeverOverlaps allocates and frees at random and fills each buffer with its own number: memory given out
// twice would show.
func TestPoolNeverOverlaps(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{MemoryLimit: 64 * mib, CacheLimit: 4 * mib})
	r := rand.New(rand.NewPCG(5, 6))
	type held struct {
		b *metal.Buffer
		n byte
	}
	var live []held
	drop := func(i int) {
		if b := live[i].b.Host(); bytes.Count(b, []byte{live[i].n}) != len(b) {
			t.Fatalf("%v was overwritten", live[i].b)
		}
		live[i].b.Release()
		live[i] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	for step := range 6000 {
		if len(live) > 0 && (r.IntN(100) < 45 || len(live) > 150) {
			drop(r.IntN(len(live)))
			continue
		}
		n := r.Int64N(int64(1) << (4 + r.IntN(15)))
		b, err := d.Alloc(bg, n)
		if err != nil {
			require.ErrorContains(t, err, "memory limit")
			drop(r.IntN(len(live)))
			continue
		}
		h := held{b, byte(step)}
		copy(b.Host(), bytes.Repeat([]byte{h.n}, int(n)))
		if n > 0 { // a cache line, the widest vector
			require.Zero(t, reflect.ValueOf(b.Host()).Pointer()%64)
		}
		live = append(live, h)
		m := d.Memory()
		got, _ := f.Allocated()
		require.Equal(t, got, m.Active+m.Cache)
		require.LessOrEqual(t, got, m.Limit)
		require.GreaterOrEqual(t, m.Peak, m.Active)
		require.Equal(t, len(live), m.Buffers)
	}
	for len(live) > 0 {
		drop(0)
	}
	require.Zero(t, d.Memory().Active)
	d.ClearCache()
	got, _ := f.Allocated()
	require.Zero(t, got)
}

func TestBigBuffersAreReusedTightly(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{})
	for _, n := range []int64{64 * mib, 10 * mib, 12 * mib} {
		defer alloc(t, d, n).Release()
	}
	a, b := alloc(t, d, 64*mib), alloc(t, d, 11*mib)
	a.Release()
	b.Release()
	c := alloc(t, d, 10*mib) // from the 11 MiB, not from the 64
	require.Equal(t, 64*mib, d.Memory().Cache)
	e := alloc(t, d, 40*mib) // 64 MiB would waste too much
	require.Equal(t, 64*mib, d.Memory().Cache)
	c.Release()
	e.Release()
}

// TestTheYoungestBufferIsUsedAgain: of those that fit the one that was freed last, whatever its size.
func TestTheYoungestBufferIsUsedAgain(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	sizes := []int64{320 * kib, 336 * kib, 320 * kib, 352 * kib, 336 * kib, 512 * kib}
	var all []*metal.Buffer
	for _, n := range sizes {
		b := alloc(t, d, n)
		require.True(t, b.Untouched())
		all = append(all, b)
	}
	where := func(b *metal.Buffer) *byte { return &b.Host()[0] }
	order := []int{3, 0, 5, 4, 2, 1}
	var freed []*byte
	for _, i := range order {
		freed = append(freed, where(all[i]))
		all[i].Release()
	}
	for _, want := range []int{5, 4, 3, 1, 0} { // all but the largest one, youngest first
		b := alloc(t, d, 320*kib)
		require.Same(t, freed[want], where(b))
		require.False(t, b.Untouched())
		defer b.Release()
	}
	b := alloc(t, d, 320*kib)
	require.True(t, b.Untouched(), "half of the largest would be wasted")
	b.Release()
	small := alloc(t, d, 100)
	require.False(t, small.Untouched(), "it shares pages")
	small.Release()
}

func TestGrowingSizesDoNotGrowTheCache(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{CacheLimit: 32 * mib})
	for n := mib; n < 24*mib; n += 256 * kib {
		alloc(t, d, n).Release()
		require.LessOrEqual(t, d.Memory().Cache, 32*mib)
	}
	require.Equal(t, 32*mib, d.SetCacheLimit(0))
	require.Zero(t, d.Memory().Cache)
	alloc(t, d, mib).Release()
	require.Zero(t, d.Memory().Cache)
}

func TestCacheMakesRoomBeforeTheLimitFails(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{MemoryLimit: 16 * mib, CacheLimit: gib})
	a, b := alloc(t, d, 5*mib), alloc(t, d, 5*mib)
	a.Release()
	b.Release()
	c := alloc(t, d, 16*mib)
	require.Zero(t, d.Memory().Cache)
	_, err := d.Alloc(bg, 1)
	require.ErrorContains(t, err, "[alloc] 1 B is more than what is left of the memory limit of 16.8 MB (active 16.8 MB,")
	require.Equal(t, 16*mib, d.SetMemoryLimit(32*mib))
	e := alloc(t, d, 1)
	c.Release()
	e.Release()
	d.SetMemoryLimit(0)
	require.Zero(t, d.Memory().Cache)
	require.Equal(t, 16*mib+64, d.Memory().Peak)
	d.ResetPeak()
	require.Zero(t, d.Memory().Peak)
}

func TestOldestCacheGoesFirst(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{CacheLimit: 10 * mib})
	a, b, c := alloc(t, d, 4*mib), alloc(t, d, 5*mib), alloc(t, d, 6*mib)
	b.Release()
	a.Release()
	c.Release() // 15 MiB cached: the oldest, b's 5, goes
	require.Equal(t, 10*mib, d.Memory().Cache)
	before, _ := f.Allocated()
	x, y := alloc(t, d, 4*mib), alloc(t, d, 6*mib)
	after, _ := f.Allocated()
	require.Equal(t, before, after, "both were cached")
	x.Release()
	y.Release()
}

// owner is something that the garbage collector takes by itself: 16 bytes and more have a block of their own.
type owner struct{ _ [4]*int }

// TestOwnedByGarbage shows that the buffers of dead owners are back when Collect returns, every time.
func TestOwnedByGarbage(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	for range 10 {
		keep := &owner{}
		metal.OwnedBy(keep, alloc(t, d, 100))
		for range 100 {
			metal.OwnedBy(&owner{}, alloc(t, d, 1000))
		}
		d.Collect(bg)
		require.Equal(t, 1, d.Memory().Buffers)
		require.Equal(t, int64(128), d.Memory().Owned)
		runtime.KeepAlive(keep)
		keep = nil
		d.Collect(bg)
		require.Zero(t, d.Memory().Buffers)
	}
}

// TestOwners: the buffers of one owner are back when it is dead, those before that which were let go by hand; what was
// taken back stays with the caller.
func TestOwners(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	for range 10 {
		own := &owner{}
		os := metal.NewOwnedGroup(own, d)
		var bufs []*metal.Buffer
		var hs []*metal.Owned
		for i := range metal.MaxOwnedGroup {
			require.False(t, os.Full())
			bufs = append(bufs, alloc(t, d, int64(64*(i+1))))
			hs = append(hs, os.Own(bufs[i]))
		}
		require.True(t, os.Full())
		require.Panics(t, func() { os.Own(bufs[0]) })
		require.Equal(t, int64(64*36), d.Memory().Owned)
		require.True(t, hs[1].Release())
		require.False(t, bufs[1].Live())
		require.Same(t, bufs[2], hs[2].Stop())
		d.Collect(bg)
		for i, b := range bufs {
			require.Equal(t, i != 1, b.Live(), "the owner lives: buffer %d", i)
		}
		runtime.KeepAlive(own)
		own = nil
		d.Collect(bg)
		for i, b := range bufs {
			require.Equal(t, i == 2, b.Live(), "the owner is dead: buffer %d", i)
		}
		require.Zero(t, d.Memory().Owned)
		bufs[2].Release()
		require.Zero(t, d.Memory().Buffers)
	}
	require.Panics(t, func() { metal.NewOwnedGroup(&owner{}, d).Own(nil) })
}

func TestOwnedLetsGoOnce(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	own, b := &owner{}, alloc(t, d, 100)
	h := metal.OwnedBy(own, b)
	require.Same(t, b, h.Buffer())
	require.True(t, h.Release())
	require.False(t, h.Release())
	require.Nil(t, h.Stop())
	require.False(t, b.Live())
	c := alloc(t, d, 100)
	h = metal.OwnedBy(own, c)
	require.Same(t, c, h.Stop())
	require.False(t, h.Release())
	runtime.KeepAlive(own)
	own = nil
	d.Collect(bg)
	require.True(t, c.Live(), "Stop gave the reference back to the caller")
	c.Release()
	require.Panics(t, func() { metal.OwnedBy(&owner{}, c) })
}

func TestBudgetCollectsGarbage(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{MemoryLimit: 20 * mib})
	for range 50 {
		b, err := d.Alloc(bg, 3*mib)
		require.NoError(t, err)
		metal.OwnedBy(&owner{}, b)
	}
	require.NotZero(t, d.Memory().Collections)
}

// pending commits a command buffer that keeps 15 MiB until it completes.
func pending(t *testing.T, d *metal.Device) {
	a := alloc(t, d, 15*mib)
	cb := d.NewCommandBuffer(0, "")
	cb.AddTemporary(a)
	a.Release()
	require.NoError(t, cb.Commit())
}

// allocLater asks for 10 MiB, which may have to wait, gives them back and sends the error.
func allocLater(ctx context.Context, d *metal.Device) <-chan error {
	got := make(chan error)
	go func() {
		b, err := d.Alloc(ctx, 10*mib)
		if err == nil {
			b.Release()
		}
		got <- err
	}()
	return got
}

func TestBudgetWaitsForPendingCommandBuffers(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{MemoryLimit: 20 * mib})
	pending(t, d)
	got := allocLater(bg, d)
	f.Complete(0, nil)
	require.NoError(t, <-got)
}

func TestBudgetWaitIsCancelled(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{MemoryLimit: 20 * mib})
	pending(t, d)
	ctx, cancel := context.WithCancelCause(bg)
	why := errors.New("the user pressed Ctrl-C")
	got := allocLater(ctx, d)
	cancel(why)
	require.ErrorIs(t, <-got, why)
	f.Complete(0, nil)
}

// TestBudgetCollectsAgainAfterCompletion: what a command buffer kept may be garbage only when that has completed.
func TestBudgetCollectsAgainAfterCompletion(t *testing.T) {
	f := drivertest.NewFake()
	started := make(chan struct{}, 100)
	var h *metal.Owned
	release := false
	c := &clock{}
	opt := c.options(20*mib, func() {
		if release {
			h.Release()
		}
		started <- struct{}{}
	})
	d := open(t, f, opt)
	c.pass(time.Hour) // collections are affordable
	own := &owner{}
	h = metal.OwnedBy(own, alloc(t, d, 15*mib))
	cb := d.NewCommandBuffer(0, "")
	cb.AddTemporary(h.Buffer())
	require.NoError(t, cb.Commit())
	got := allocLater(bg, d)
	<-started // collected in vain
	release = true
	f.Complete(0, nil)
	require.NoError(t, <-got)
	runtime.KeepAlive(own)
}

// clock is a time and a heap that a test sets.
type clock struct{ now, heap atomic.Int64 }

// options are those of a device that goes by the clock.
func (c *clock) options(limit int64, collect func()) metal.DeviceOptions {
	return metal.DeviceOptions{MemoryLimit: limit, Collect: collect, Heap: c.heap.Load,
		Now: func() time.Time { return time.Unix(0, c.now.Load()) }}
}

func (c *clock) pass(d time.Duration) { c.now.Add(int64(d)) }

// TestPacing counts collections by the rule: more than max(64 MiB, half) owned since the last one.
func TestPacing(t *testing.T) {
	ran := make(chan struct{}, 10)
	c := &clock{}
	d := open(t, drivertest.NewFake(), c.options(gib, func() { ran <- struct{}{} }))
	c.pass(time.Hour)
	own := &owner{}
	var hs []*metal.Owned
	hold := func(n int64) { hs = append(hs, metal.OwnedBy(own, alloc(t, d, n))) }
	for range 100 {
		alloc(t, d, 10*mib).Release() // counted by hand: no reason to collect
	}
	hold(64 * mib)
	require.Zero(t, d.Memory().Collections)
	hold(mib)
	<-ran
	d.Collect(bg) // waits for the paced one, then runs its own
	require.Equal(t, int64(2), d.Memory().Collections)
	require.Equal(t, 65*mib, d.Memory().Owned)
	for _, h := range hs {
		h.Release()
	}
	require.Zero(t, d.Memory().Owned)
	runtime.KeepAlive(own)
}

// TestPacingByCost: a collection begins when 19 times its cost has passed since the last one, or since the device was
// made. Before the first the heap says what it will cost; then it is the last one's cost, for a heap of today's size.
func TestPacingByCost(t *testing.T) {
	ran := make(chan struct{}, 10)
	c := &clock{}
	var d *metal.Device
	const gigabyte, second = 1e9, time.Second
	c.heap.Store(gigabyte)
	d = open(t, drivertest.NewFake(), c.options(gib, func() {
		c.pass(2 * second)
		ran <- struct{}{}
	}))
	own := &owner{}
	defer runtime.KeepAlive(own)
	due := func(want bool) {
		t.Helper()
		before := d.Memory().Collections
		h := metal.OwnedBy(own, alloc(t, d, 65*mib))
		defer h.Release()
		if !want {
			require.Equal(t, before, d.Memory().Collections)
			require.Empty(t, ran)
			return
		}
		<-ran
		for d.Memory().Collections == before { // the one that has run is being counted
			runtime.Gosched()
		}
	}
	cost, affordable := d.CollectCost()
	require.Equal(t, second+200*time.Microsecond, cost)
	require.False(t, affordable)
	due(false)
	c.pass(19 * second)
	due(false)
	c.pass(19 * 200 * time.Microsecond)
	due(true)
	cost, _ = d.CollectCost()
	require.Equal(t, 2*second, cost)
	c.pass(19*2*second - 1)
	due(false)
	c.pass(1)
	due(true)
	c.heap.Store(gigabyte / 2)
	c.pass(19*second + second/10)
	due(true)
	cost, _ = d.CollectCost()
	require.Equal(t, 2*second, cost)
	require.Equal(t, 6*second, d.Memory().CollectTime)
}

// TestBudgetPrefersWaiting: where a collection is not affordable, and command buffers may give back what an allocation
// needs, it waits for them.
func TestBudgetPrefersWaiting(t *testing.T) {
	f := drivertest.NewFake()
	c := &clock{}
	c.heap.Store(1e9)
	d := open(t, f, c.options(20*mib, func() { t.Error("collected") }))
	own := &owner{}
	defer runtime.KeepAlive(own)
	metal.OwnedBy(own, alloc(t, d, mib))
	pending(t, d)
	got := allocLater(bg, d)
	f.Complete(0, nil)
	require.NoError(t, <-got)
	require.Zero(t, d.Memory().Collections)
}

func TestValidationPoisonsFreedMemory(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{Validate: true})
	b := alloc(t, d, 1000)
	view := b.Host()
	require.Equal(t, ^uint32(0), binary.LittleEndian.Uint32(view), "new memory is not zero by luck")
	clear(view)
	b.Release()
	for _, c := range view {
		require.Equal(t, byte(0xFF), c)
	}
}

func TestValidationByEnvironment(t *testing.T) {
	for value, on := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv(metal.ValidateEnv, value)
		require.Equal(t, on, open(t, drivertest.NewFake(), metal.DeviceOptions{}).Validating(), value)
	}
}

func TestCloseLeavesHeldBuffersHarmless(t *testing.T) {
	f := drivertest.NewFake()
	d, err := metal.NewDevice(f, metal.DeviceOptions{Validate: true})
	require.NoError(t, err)
	b := alloc(t, d, 1000)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.Nil(t, b.Host())
	b.Release()
	_, err = d.Alloc(bg, 1)
	require.EqualError(t, err, "[alloc] the device is closed")
	_, err = d.Library(bg, drivertest.Source("a"))
	require.EqualError(t, err, "[library] the device is closed")
	require.EqualError(t, d.NewCommandBuffer(0, "").Commit(), "[commit] the device is closed")
	d.ClearCache()
}

func BenchmarkAllocSmall(b *testing.B) {
	d := open(b, drivertest.NewFake(), metal.DeviceOptions{})
	for b.Loop() {
		x, _ := d.Alloc(bg, 4096)
		x.Release()
	}
}

// TestHeldMemory: what somebody looks after asks for no collection, unless it is late; what escapes that counts as any
// other.
func TestHeldMemory(t *testing.T) {
	collections := 0
	var hours atomic.Int64
	start := time.Now()
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{Collect: func() { collections++ },
		Heap: func() int64 { return 0 },
		Now:  func() time.Time { return start.Add(time.Duration(hours.Load()) * time.Hour) }})
	var held []*metal.Owned
	var owners []*[64]byte
	owner := func() *[64]byte {
		owners = append(owners, new([64]byte))
		return owners[len(owners)-1]
	}
	hold := func(n int64) { held = append(held, metal.TrackedBy(owner(), alloc(t, d, n))) }
	collected := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return d.Memory().Collections == n }, 10*time.Second, time.Millisecond)
		hours.Add(1)
	}
	hours.Add(1)
	hold(32 * mib)
	d.AddUntracked(200 * mib)
	require.Never(t, func() bool { return d.Memory().Collections > 0 }, 50*time.Millisecond, time.Millisecond,
		"most of what was late has come back since")
	d.AddUntracked(-200 * mib)
	for range 9 {
		hold(32 * mib)
	}
	require.EqualValues(t, 320*mib, d.Memory().Owned)
	require.Zero(t, d.Memory().Collections)
	d.AddUntracked(100 * mib)
	require.Zero(t, d.Memory().Collections, "less than half of what is held")
	d.AddUntracked(-100 * mib)
	d.AddUntracked(200 * mib)
	collected(1)
	d.AddUntracked(-200 * mib)
	for _, o := range held {
		o.Untrack()
	}
	require.Eventually(t, func() bool { // the first one may not be over
		alloc(t, d, mib).Release()
		return d.Memory().Collections == 2
	}, 10*time.Second, time.Millisecond)
	b := alloc(t, d, mib)
	b.Retain()
	first, second := metal.TrackedBy(owner(), b), metal.OwnedBy(owner(), b)
	require.EqualValues(t, 321*mib, d.Memory().Owned)
	first.Release()
	second.Release()
	for _, o := range held {
		o.Release()
	}
	require.Zero(t, d.Memory().Owned)
	require.Positive(t, collections)
	runtime.KeepAlive(owners)
}

// TestFormsGoWhereMemoryIsShort: what a driver keeps of steps counts for its device's limit, and goes before an
// allocation fails: what was recorded longest ago first. Then the commands run one by one.
func TestFormsGoWhereMemoryIsShort(t *testing.T) {
	const limit = 4 << 20
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "a:r", "b:w"))
	f.Forms = &drivertest.Forms{}
	d := open(t, f, metal.DeviceOptions{MemoryLimit: limit})
	x := alloc(t, d, 64)
	defer x.Release()
	record := func(k *metal.KeptStep, n int) int {
		cb := d.NewCommandBuffer(0, "")
		for range n {
			require.NoError(t, cb.Encoder().Fill(x.All(), []byte{1}))
		}
		cb.Encoder().Replayed(k, 0, []metal.Range{x.All()}, nil)
		parts := len(cb.Parts())
		require.NoError(t, cb.Commit())
		f.CompleteAll()
		return parts
	}
	const commands, takes = 500, 500_000 // a fake's form takes 1000 bytes a command
	fill := metal.StepCommand{Kind: metal.CmdFill, Pattern: []byte{1}, Writes: 1,
		Args: []metal.StepArg{{N: metal.ToEnd, Value: -1}}}
	var kept []*metal.KeptStep
	for range 4 {
		k := d.KeepStep(&metal.Step{Slots: 1, Commands: slices.Repeat([]metal.StepCommand{fill}, commands)})
		require.Equal(t, 1, record(k, commands))
		kept = append(kept, k)
	}
	require.Equal(t, int64(4*takes), d.Memory().Kept)
	require.Equal(t, 1, record(kept[0], commands)) // the second was recorded longest ago
	large := alloc(t, d, limit-3*takes-200_000)
	require.Equal(t, []bool{false, true, false, false}, []bool{kept[0].Dropped(), kept[1].Dropped(), kept[2].Dropped(),
		kept[3].Dropped()})
	require.Equal(t, int64(3*takes), d.Memory().Kept)
	require.Zero(t, record(kept[1], commands))
	large.Release()
	large = alloc(t, d, limit-100_000)
	require.Zero(t, d.Memory().Kept)
	number, _ := f.Forms.Counts()
	require.Zero(t, number)
	large.Release()
	_, err := d.Alloc(bg, limit+1)
	require.ErrorIs(t, err, metal.ErrNoMemory)
}
