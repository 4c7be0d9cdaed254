package metal

import (
	"fmt"
	"math/bits"
)

const (
	granule   = 16 << 10  // driver allocations are multiples of it: Apple's page
	minSlot   = 64        // bytes: a cache line, the widest vector
	maxSlot   = 128 << 10 // up to here buffers share slabs
	maxFine   = 1 << 20   // up to here sizes come in eight classes to a doubling
	slotKinds = 8 + 8*8   // 64..512 by 64, then eight to each of the eight doublings up to maxSlot
)

// roundUp is n rounded up to a multiple of m, a power of two.
func roundUp(n, m int64) int64 { return (n + m - 1) &^ (m - 1) }

// sizeClass is the size that an allocation of n bytes costs; at most an eighth more than n from 512 bytes to 128 KiB
// and past 1 MiB, plus rounding to 16 KiB above 128 KiB.
func sizeClass(n int64) int64 {
	switch {
	case n <= minSlot:
		return minSlot
	case n <= 512:
		return roundUp(n, minSlot)
	case n <= maxFine:
		n = roundUp(n, int64(1)<<(bits.Len64(uint64(n-1))-1)/8)
		if n > maxSlot {
			n = roundUp(n, granule)
		}
		return n
	}
	return roundUp(n, granule)
}

// slotKind numbers the slot sizes from 0; size is one that sizeClass returned, at most maxSlot.
func slotKind(size int64) int {
	if size <= 512 {
		return int(size/minSlot) - 1
	}
	k := bits.Len64(uint64(size - 1)) // 2^(k-1) < size <= 2^k
	half := int64(1) << (k - 1)
	return 8 + (k-10)*8 + int((size-half)/(half/8)) - 1
}

// slabSize is the driver allocation that slots of a size are cut from: eight slots at least.
func slabSize(slot int64) int64 {
	switch {
	case slot <= 8<<10:
		return 64 << 10
	case slot <= 32<<10:
		return 256 << 10
	}
	return 1 << 20
}

// slack is how much larger than asked a block may be that is used again.
func slack(need int64) int64 { return max(need/8, granule) }

// formatBytes is for messages: three significant digits, decimal units.
func formatBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	for _, u := range []string{"kB", "MB", "GB", "TB", "PB", "EB"} {
		v /= 1000
		switch {
		case v < 9.995:
			return fmt.Sprintf("%.2f %s", v, u)
		case v < 99.95:
			return fmt.Sprintf("%.1f %s", v, u)
		case v < 999.5 || u == "EB":
			return fmt.Sprintf("%.0f %s", v, u)
		}
	}
	return ""
}
