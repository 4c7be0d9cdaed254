package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// Shape is the sizes of an array's dimensions, outermost first. The shape of a scalar has no dimensions.
type Shape []int

// Size is the number of elements.
func (s Shape) Size() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Equal reports whether both have the same dimensions.
func (s Shape) Equal(t Shape) bool { return slices.Equal(s, t) }

// Clone is a copy.
func (s Shape) Clone() Shape { return append(make(Shape, 0, len(s)), s...) }

// String is the shape as MLX prints it: (3, 4), (3,), ().
func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('(')
	for i, d := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(d))
	}
	if len(s) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}

// MaxDims is how many dimensions an array may have.
const MaxDims = 1024

// CheckDims refuses to have more dimensions than MaxDims: ops that walk lists of axes ask before they begin.
func CheckDims(n int) error {
	if n > MaxDims {
		return fmt.Errorf("an array of %d dimensions: at most %d are possible", n, MaxDims)
	}
	return nil
}

// Check refuses negative dimensions, too many of them, and shapes whose element count or byte count overflows.
func (s Shape) Check(d DType) error {
	if err := CheckDims(len(s)); err != nil {
		return err
	}
	n := int64(d.Size())
	for _, dim := range s {
		if dim < 0 {
			return fmt.Errorf("negative dimension in shape %v", s)
		}
		if dim > math.MaxInt32 {
			return fmt.Errorf("dimension %d of shape %v is over 2147483647", dim, s)
		}
	}
	if slices.Contains(s, 0) {
		return nil
	}
	for _, dim := range s {
		if n > math.MaxInt64/int64(dim) {
			return fmt.Errorf("shape %v of %v has more than 2^63 bytes", s, d)
		}
		n *= int64(dim)
	}
	return nil
}

// Strides are the row-major strides in elements.
func (s Shape) Strides() []int {
	st := make([]int, len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		st[i] = n
		n *= s[i]
	}
	return st
}

// Broadcast is the common shape of a and b by NumPy's rule. Where it is the shape of the one with more dimensions, it
// is that itself and not a copy: it may be appended to, but its dimensions must not be changed.
func Broadcast(a, b Shape) (Shape, error) {
	long, short := a, b
	if len(b) > len(a) {
		long, short = b, a
	}
	out, copied := long[:len(long):len(long)], false
	off := len(long) - len(short)
	for i, d := range short {
		switch l := long[off+i]; {
		case l == d || d == 1:
		case l == 1:
			if !copied {
				out, copied = long.Clone(), true
			}
			out[off+i] = d
		default:
			return nil, fmt.Errorf("shapes %v and %v cannot be broadcast", a, b)
		}
	}
	return out, nil
}

// Axis turns an axis that may count from the end into one that counts from 0.
func Axis(axis, ndim int) (int, error) {
	if axis < -ndim || axis >= ndim {
		return 0, fmt.Errorf("axis %d is out of range for an array with %s", axis, Count(ndim, "dimension"))
	}
	if axis < 0 {
		axis += ndim
	}
	return axis, nil
}

// Axes normalises a list of axes, refuses repeated ones, and sorts it. A nil list means all axes.
func Axes(axes []int, ndim int) ([]int, error) {
	return appendAxes(make([]int, 0, max(len(axes), ndim)), axes, ndim)
}

// appendAxes is Axes, appended to an empty slice.
func appendAxes(out, axes []int, ndim int) ([]int, error) {
	if axes == nil {
		for i := range ndim {
			out = append(out, i)
		}
		return out, nil
	}
	for _, a := range axes {
		n, err := Axis(a, ndim)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	slices.Sort(out)
	for i := 1; i < len(out); i++ {
		if out[i] == out[i-1] {
			return nil, fmt.Errorf("axes %v name one axis twice", Shape(axes).Clone()) // a copy: axes is on the stack
		}
	}
	return out, nil
}

// Ints is an interned list of integers: comparable with ==, as attributes must be. The zero Ints is nil, which is
// not the empty list.
type Ints struct{ h unique.Handle[ints] }

// ints is what is interned: lists that are not long without any other object.
type ints struct {
	n    int
	few  [6]int
	rest string // the others, as varints
}

// MakeInts interns a list; nil gives the zero Ints.
func MakeInts(v []int) Ints {
	if v == nil {
		return Ints{}
	}
	key := ints{n: len(v)}
	if n := copy(key.few[:], v); n < len(v) {
		var b []byte
		for _, x := range v[n:] {
			b = binary.AppendVarint(b, int64(x))
		}
		key.rest = string(b)
	}
	return Ints{unique.Make(key)}
}

// IsNil reports whether i is the zero Ints.
func (i Ints) IsNil() bool { return i == Ints{} }

// Len is the length of the list, 0 for the zero Ints.
func (i Ints) Len() int {
	if i.IsNil() {
		return 0
	}
	return i.h.Value().n
}

// Append appends the list to out.
func (i Ints) Append(out []int) []int {
	if i.IsNil() {
		return out
	}
	key := i.h.Value()
	out = append(out, key.few[:min(key.n, len(key.few))]...)
	for rest := []byte(key.rest); len(rest) > 0; {
		x, n := binary.Varint(rest)
		out, rest = append(out, int(x)), rest[n:]
	}
	return out
}

// Slice is a fresh copy of the list, nil for the zero Ints.
func (i Ints) Slice() []int {
	if i.IsNil() {
		return nil
	}
	return i.Append(make([]int, 0, i.Len()))
}

// AppendAxes is Axes of the list, appended to out, which must be empty: room for it may be on the caller's stack.
func (i Ints) AppendAxes(out []int, ndim int) ([]int, error) {
	if i.IsNil() {
		return appendAxes(out, nil, ndim)
	}
	var few [8]int
	return appendAxes(out, i.Append(few[:0]), ndim)
}

// String prints the list.
func (i Ints) String() string { return fmt.Sprint(i.Slice()) }

// F64 is a float64 attribute, compared by its bits (so that NaN equals itself and 0 differs from -0).
type F64 uint64

// MakeF64 makes an attribute of v.
func MakeF64(v float64) F64 { return F64(math.Float64bits(v)) }

// Float is the number.
func (f F64) Float() float64 { return math.Float64frombits(uint64(f)) }
