package metal_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// tenant has buffers full of its own number.
type tenant struct {
	owner metal.Owner
	mark  byte
}

// alloc is a buffer of a tenant's, with or without the promise to fill it.
func (u tenant) alloc(t *testing.T, d *metal.Device, n int64, fill bool) *metal.Buffer {
	t.Helper()
	allocate := d.AllocFor
	if fill {
		allocate = d.AllocToFill
	}
	b, err := allocate(bg, n, &metal.Origin{Owner: u.owner})
	require.NoError(t, err)
	return b
}

func (u tenant) write(b []byte) {
	for i := range b {
		b[i] = u.mark
	}
}

// sees reports whether all bytes are the tenant's or zero, and how many are its own.
func (u tenant) sees(b []byte) (own int, foreign bool) {
	for _, c := range b {
		switch c {
		case u.mark:
			own++
		case 0:
		default:
			foreign = true
		}
	}
	return own, foreign
}

// TestMemoryChangesHandsEmpty allocates and frees at random for three owners. Nobody sees another one's byte, neither
// in what it gets nor, later, in what it promised to fill and did not; what one owner frees it gets again as it was.
func TestMemoryChangesHandsEmpty(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{CacheLimit: gib})
	rng := rand.New(rand.NewPCG(1, 2))
	users := []tenant{{0, 1}, {metal.NewOwner(), 2}, {metal.NewOwner(), 3}}
	type held struct {
		tenant
		buf *metal.Buffer
	}
	var live []held
	kept := 0
	sizes := []int64{1, 64, 100, 500, 520, 4000, 4096, 9000, 100 * kib, 120 * kib, 130 * kib, 300 * kib, 320 * kib}
	for range 20000 {
		if len(live) > 40 || len(live) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(live))
			live[i].buf.Release()
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		u, n := users[rng.IntN(3)], sizes[rng.IntN(len(sizes))]
		if n > 1 {
			n -= rng.Int64N(n/8 + 1)
		}
		fill := rng.IntN(3) == 0
		b := u.alloc(t, d, n, fill)
		switch {
		case !fill:
			own, foreign := u.sees(b.Host())
			require.False(t, foreign)
			kept += own
			u.write(b.Host()[:rng.Int64N(n+1)])
		case rng.IntN(2) == 0: // what was to fill it does
			u.write(b.Host())
			b.Settle()
		default: // it was cancelled
			u.write(b.Host()[:n/2])
		}
		live = append(live, held{u, b})
	}
	require.Positive(t, kept, "memory that comes back to its owner is not zeroed")
}

// TestOwnMemoryIsPreferred: of blocks that fit, one that needs no zeroing is taken before a younger one.
func TestOwnMemoryIsPreferred(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{CacheLimit: gib})
	a, b := tenant{metal.NewOwner(), 1}, tenant{metal.NewOwner(), 2}
	x, y := a.alloc(t, d, mib, false), b.alloc(t, d, mib, false)
	a.write(x.Host())
	b.write(y.Host())
	mine, theirs := &x.Host()[0], &y.Host()[0]
	x.Release()
	y.Release()
	got := a.alloc(t, d, mib, false)
	require.Same(t, mine, &got.Host()[0])
	got.Release()
	got = a.alloc(t, d, mib, true) // which needs none either
	require.Same(t, mine, &got.Host()[0], "the youngest")
	got.Release()
	y = b.alloc(t, d, mib, false)
	require.Same(t, theirs, &y.Host()[0])
	own, _ := b.sees(y.Host())
	require.EqualValues(t, mib, own)
	y.Release()
}

// TestBuffersChangeHands: a buffer that is given to another owner as it is shows that one its bytes, and is zeroed for
// everybody when it comes back.
func TestBuffersChangeHands(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{CacheLimit: gib})
	a, b := tenant{metal.NewOwner(), 1}, tenant{metal.NewOwner(), 2}
	for _, next := range []tenant{a, b} {
		x := a.alloc(t, d, mib, false)
		a.write(x.Host())
		require.True(t, x.Serves(a.owner, mib, false))
		x.SetOrigin(metal.Origin{Owner: b.owner})
		own, _ := a.sees(x.Host())
		require.EqualValues(t, mib, own)
		require.False(t, x.Serves(a.owner, mib, true))
		require.False(t, x.Serves(b.owner, mib, true), "what lies behind its end is the first one's")
		x.Release()
		y := next.alloc(t, d, mib, false)
		require.Equal(t, make([]byte, mib), y.Host())
		y.Release()
	}
}

// TestStaleBuffersServe: a buffer that its owner has still to fill serves nothing but what fills it again.
func TestStaleBuffersServe(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{CacheLimit: gib})
	a, b := tenant{metal.NewOwner(), 1}, tenant{metal.NewOwner(), 2}
	x := a.alloc(t, d, mib, false)
	a.write(x.Host())
	x.Release()
	y := b.alloc(t, d, mib-10, true)
	require.Equal(t, byte(1), y.Host()[0], "it is not zeroed in vain")
	require.True(t, y.Serves(b.owner, mib-10, true))
	require.False(t, y.Serves(b.owner, mib-11, true), "the last byte would never be written")
	require.False(t, y.Serves(b.owner, mib-10, false))
	require.False(t, y.Serves(a.owner, mib-10, true))
	y.Settle()
	require.True(t, y.Serves(b.owner, 5, false))
	y.Release()
}

// TestTaintedMemoryIsZeroed: what may hold another owner's bytes, since what was to write it has failed, is zeroed for
// its own owner too.
func TestTaintedMemoryIsZeroed(t *testing.T) {
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{CacheLimit: gib})
	a, b := tenant{metal.NewOwner(), 1}, tenant{metal.NewOwner(), 2}
	old := a.alloc(t, d, mib, false)
	a.write(old.Host())
	old.Release()
	stale := b.alloc(t, d, mib, true)
	require.Equal(t, byte(1), stale.Host()[0])
	stale.Settle()
	stale.Taint()
	stale.Release()
	again := b.alloc(t, d, mib, false)
	require.Equal(t, make([]byte, mib), again.Host())
	again.Release()
}
