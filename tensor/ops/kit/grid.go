package kit

import (
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// Grid is the threads that a kernel runs over, and how many of them are a threadgroup.
type Grid struct{ Threads, Group metal.Size }

// groupThreads is the threads of a threadgroup of kernels that do not ask for a number.
const groupThreads = 256

// Line is n threads in one dimension.
func Line(n int) Grid {
	return Grid{metal.Size{X: n, Y: 1, Z: 1}, metal.Size{X: min(n, groupThreads), Y: 1, Z: 1}}
}

// Plane is x times y threads: a threadgroup takes a row, or several where rows are short.
func Plane(x, y int) Grid {
	gx := min(x, groupThreads)
	return Grid{metal.Size{X: x, Y: y, Z: 1}, metal.Size{X: gx, Y: min(y, max(groupThreads/gx, 1)), Z: 1}}
}

// Tiles is x times y threads in z layers: threadgroups are at most 64 wide, so that neighbouring rows share what they
// read.
func Tiles(x, y, z int) Grid {
	gx := min(x, 64)
	return Grid{metal.Size{X: x, Y: y, Z: z}, metal.Size{X: gx, Y: min(y, max(groupThreads/gx, 1)), Z: 1}}
}

// Simds is y SIMD-groups in z layers; a threadgroup takes at most each of them.
func Simds(y, z, each int) Grid {
	return Grid{metal.Size{X: 32, Y: y, Z: z}, metal.Size{X: 32, Y: min(y, each), Z: 1}}
}

// Many is so many SIMD-groups that all execution units of the call's device have work, and those that begin late some
// more.
func Many(r *tensor.Run) int {
	const least = 64
	i := r.Info()
	return max(least, i.Threads*max(i.Simds, 1))
}

// Rows is a SIMD-group for each of n rows.
func Rows(n int) Grid { return Simds(n, 1, 8) }

// EachLane is how many elements a lane of a SIMD-group has of a row of n that stays in registers: 0 where they are
// many, or not the same for all.
func EachLane(n int) int {
	const most = 8
	if n%32 != 0 || n > most*32 {
		return 0
	}
	return n / 32
}

// CheckCount refuses n things where kernels count at most so many; what names them.
func CheckCount(n, most int, what string) error {
	if n > most {
		return fmt.Errorf("%d %s, the most are %d", n, what, most)
	}
	return nil
}

// RowsOf is how many rows an array of that shape has, along its last axis, and their length; more of either than
// kernels count are refused.
func RowsOf(s tensor.Shape) (rows, n int, err error) {
	n = s[len(s)-1]
	rows = s[:len(s)-1].Size()
	return rows, n, CheckRows(rows, n)
}

// CheckRows refuses more rows than a grid has room for, and longer ones than kernels count.
func CheckRows(rows, n int) error {
	if max(rows, n) > math.MaxUint32 {
		return fmt.Errorf("%d rows of %d elements, the most of either are %d", rows, n, math.MaxUint32)
	}
	return nil
}
