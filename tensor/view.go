package tensor

import "github.com/mlxlua/mlxlua/metal"

// View is where an array's elements lie: strides in elements, the offset in bytes. Its shape stands in the Spec beside it.
type View struct {
	buf         *metal.Buffer
	owner       *storage // keeps buf from the pool
	OffsetBytes int64
	Strides     []int
}

// Contiguous says whether elements of that shape lie in row-major order without gaps.
func (v View) Contiguous(s Shape) bool {
	want := 1
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == 0 {
			return true
		}
		if s[i] != 1 && v.Strides[i] != want {
			return false
		}
		want *= s[i]
	}
	return true
}
