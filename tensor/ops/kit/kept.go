package kit

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor"
)

// KeptMSL loads rows into threadgroup memory, for kernels whose variants have Kept, T and ACC.
//
//go:embed kept.metal
var KeptMSL string

// Kept is how many elements of a row stay in threadgroup memory, and how many SIMD-groups a row has; the zero Kept:
// none do, and it has one.
type Kept struct{ kept, simds int }

// KeepRows keeps rows of n elements of type acc in threadgroup memory on a device that is a GPU, if they are not too
// long for several to be kept at once. A row has at most so many SIMD-groups, which results do not depend on.
func KeepRows(r *tensor.Run, n int, acc tensor.DType, simds int) Kept {
	const most, step = 31 << 10, 512 // bytes of Metal's 32 KiB, elements
	if !r.Info().GPU || (n+step-1)*acc.Size() > most || n == 0 {
		return Kept{}
	}
	k := Kept{kept: (n + step - 1) / step * step, simds: 1}
	for k.simds < simds && n > 256*k.simds {
		k.simds *= 2
	}
	return k
}

// Over is the threads for n rows.
func (k Kept) Over(n int) Grid {
	if k.kept == 0 {
		return Rows(n)
	}
	return Simds(n*k.simds, 1, k.simds)
}
