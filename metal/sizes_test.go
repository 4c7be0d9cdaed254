package metal

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizeClassWaste(t *testing.T) {
	check := func(n int64) {
		size := sizeClass(n)
		require.GreaterOrEqual(t, size, n, "%d", n)
		require.Zero(t, size%minSlot, "%d", n)
		require.Equal(t, size, sizeClass(size), "a class must be its own: %d", n)
		switch {
		case n < 512:
			require.Less(t, size-n, int64(minSlot), "%d", n)
		case n <= maxSlot:
			require.LessOrEqual(t, size-n, n/8, "%d", n)
		default:
			require.LessOrEqual(t, size-n, n/8+granule, "%d", n)
			require.Zero(t, size%granule, "%d", n)
		}
	}
	for n := int64(1); n < 5000; n++ {
		check(n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		check(1 + r.Int64N(int64(1)<<(9+r.IntN(30))))
	}
}

func TestSlotKindsAreDistinctAndDense(t *testing.T) {
	seen := map[int]int64{}
	for n := int64(1); n <= maxSlot; n += 7 {
		size := sizeClass(n)
		k := slotKind(size)
		if old, ok := seen[k]; ok {
			require.Equal(t, old, size)
		}
		seen[k] = size
		require.GreaterOrEqual(t, slabSize(size)/size, int64(8))
	}
	seen[slotKind(maxSlot)] = maxSlot
	require.Len(t, seen, slotKinds)
	for k := range slotKinds {
		require.Contains(t, seen, k)
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.00 kB", 18_400_000_000: "18.4 GB", 4e12: "4.00 TB", 999_900: "1.00 MB",
		123_456_789: "123 MB", 1<<63 - 1: "9.22 EB",
	} {
		require.Equal(t, want, formatBytes(n))
	}
}

// TestSpansAgainstBits compares the sets with plain arrays of bits.
func TestSpansAgainstBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var s spans
		var bits [64]bool
		for range 40 {
			lo := r.Int64N(64)
			hi := lo + r.Int64N(64-lo+1)
			any := false
			for i := lo; i < hi; i++ {
				any = any || bits[i]
			}
			require.Equal(t, any, s.overlaps(lo, hi), "%v %d %d", s, lo, hi)
			if r.IntN(3) == 0 {
				continue
			}
			s.add(lo, hi)
			for i := lo; i < hi; i++ {
				bits[i] = true
			}
			for i := 1; i < len(s); i++ {
				require.Less(t, s[i-1].hi, s[i].lo, "%v", s)
			}
			for _, v := range s {
				require.Less(t, v.lo, v.hi)
			}
		}
	}
}
