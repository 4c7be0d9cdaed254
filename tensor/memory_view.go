package tensor

import "github.com/mlxlua/mlxlua/metal"

// View is where an array's elements lie: strides in elements, the offset in bytes. Its shape stands in the Spec
// beside it.
type View struct {
	buf         *metal.Buffer
	owner       *storage // keeps buf from the pool
	inline      []byte   // the bytes themselves, where there is no buffer: small constants
	OffsetBytes int64
	Strides     []int
}

// Contiguous reports whether elements of that shape lie in row-major order without gaps.
func (v View) Contiguous(s Shape) bool { return contiguous(s, v.Strides) }

func contiguous(s Shape, strides []int) bool {
	want := 1
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == 0 {
			return true
		}
		if s[i] != 1 && strides[i] != want {
			return false
		}
		want *= s[i]
	}
	return true
}

// SameView is a View rule: output 0 lies as input 0 does.
func SameView[A any](_ []Spec, v View, _ A, out []Operand) bool {
	copy(out[0].Strides, v.Strides)
	return true
}

// span is the range of bytes that elements of that spec occupy, relative to OffsetBytes: low is 0 or less.
func (v View) span(s Spec) (low, high int64) {
	size := int64(s.DType.Size())
	high = size
	for i, d := range s.Shape {
		if d == 0 {
			return 0, 0
		}
		step := int64(d-1) * int64(v.Strides[i]) * size
		if step < 0 {
			low += step
		} else {
			high += step
		}
	}
	return low, high
}

// broadcast is the view seen as an array of a larger shape: new and repeated dimensions have stride 0.
func (v View) broadcast(from, to Shape) View { return v.broadcastInto(make([]int, len(to)), from, to) }

// broadcastInto is broadcast with the strides in st, which is zero.
func (v View) broadcastInto(st []int, from, to Shape) View {
	off := len(to) - len(from)
	for i := range from {
		if from[i] == to[off+i] && from[i] != 1 {
			st[off+i] = v.Strides[i]
		}
	}
	v.Strides = st
	return v
}
