package tensor

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// ShapeArg is a shape as a user writes it: numbers, single dimensions of arrays, and whole shapes of arrays, in any
// mixture. Dimensions of arrays are not read when the graph is built: they are resolved by Shape rules, so that a
// replay at another shape follows them. Build one with Sizes, ShapeOf, DimOf and Concat.
type ShapeArg struct{ parts []shapePart }

type shapePart struct {
	n    int    // a number, if of is nil
	of   *Array // else a dimension of this array
	axis int    // or all of them, if axis is allAxes
}

const allAxes = int(^uint(0)>>1) * -1

// Sizes is a shape of numbers; ops that allow it take -1 for a size to be inferred.
func Sizes(n ...int) ShapeArg {
	s := ShapeArg{parts: make([]shapePart, len(n))}
	for i, v := range n {
		s.parts[i].n = v
	}
	return s
}

// ShapeOf is the shape of x.
func ShapeOf(x *Array) ShapeArg { return ShapeArg{[]shapePart{{of: x, axis: allAxes}}} }

// DimOf is the shape of one dimension: x's size along axis (negative: from the end).
func DimOf(x *Array, axis int) ShapeArg { return ShapeArg{[]shapePart{{of: x, axis: axis}}} }

// Concat joins shapes.
func Concat(s ...ShapeArg) ShapeArg {
	var out ShapeArg
	for _, p := range s {
		out.parts = append(out.parts, p.parts...)
	}
	return out
}

// Arrays visits the arrays that the shape refers to.
func (s ShapeArg) Arrays(visit func(x *Array)) {
	for _, p := range s.parts {
		if p.of != nil {
			visit(p.of)
		}
	}
}

// Numbers is the shape as numbers, if it has no parts that refer to arrays.
func (s ShapeArg) Numbers() ([]int, bool) {
	out := make([]int, len(s.parts))
	for i, p := range s.parts {
		if p.of != nil {
			return nil, false
		}
		out[i] = p.n
	}
	return out, true
}

// Bind appends the arrays that s refers to to in and gives s as an attribute that refers to them by their index. An
// op passes them as its last inputs, and its Rules say (SpecFrom) that only their shapes are read.
func (s ShapeArg) Bind(in []*Array) (Dims, []*Array) {
	operands := len(in)
	few := [8]dim{}
	parts := few[:0]
	for _, p := range s.parts {
		d := dim{n: p.n}
		if p.of != nil {
			k := slices.Index(in[operands:], p.of) + operands
			if k < operands { // operands keep their own places: a reference is an input of its own
				k = len(in)
				in = append(in, p.of)
			}
			d = dim{n: p.axis, input: k + 1}
		}
		parts = append(parts, d)
	}
	return makeDims(parts), in
}

// Dims is a bound ShapeArg: a comparable attribute.
type Dims struct{ h unique.Handle[dims] }

// dims is what is interned: shapes that are not long without any other object.
type dims struct {
	n    int
	few  [4]dim
	rest string // the others, two varints each
}

// dim is a part of a bound shape.
type dim struct {
	n     int // a number, if input is 0
	input int // else axis n, or allAxes, of input input-1
}

// parts appends the parts to out.
func (d Dims) parts(out []dim) []dim {
	if d == (Dims{}) {
		return out
	}
	key := d.h.Value()
	out = append(out, key.few[:min(key.n, len(key.few))]...)
	for rest := []byte(key.rest); len(rest) > 0; {
		v, n := binary.Varint(rest)
		input, m := binary.Varint(rest[n:])
		out, rest = append(out, dim{int(v), int(input)}), rest[n+m:]
	}
	return out
}

// Resolve gives the numbers, with the shapes of the op's inputs filled in.
func (d Dims) Resolve(in []Spec) ([]int, error) {
	var few [8]dim
	parts := d.parts(few[:0])
	out := make([]int, 0, max(len(parts), 4))
	for _, p := range parts {
		if p.input == 0 {
			out = append(out, p.n)
			continue
		}
		if p.input > len(in) {
			return nil, fmt.Errorf("BUG: dims %v of %d inputs", d, len(in))
		}
		of := in[p.input-1].Shape
		if p.n == allAxes {
			out = append(out, of...)
			continue
		}
		axis, err := Axis(p.n, len(of))
		if err != nil {
			return nil, err
		}
		out = append(out, of[axis])
	}
	return out, nil
}

// Shape resolves to a shape and refuses negative sizes.
func (d Dims) Shape(in []Spec) (Shape, error) {
	n, err := d.Resolve(in)
	if err != nil {
		return nil, err
	}
	for _, v := range n {
		if v < 0 {
			return nil, fmt.Errorf("negative dimension in shape %v", Shape(n))
		}
	}
	return n, nil
}

// String is the shape as it was written, with @i:axis for dimensions of input i.
func (d Dims) String() string {
	var b strings.Builder
	b.WriteByte('(')
	for i, p := range d.parts(nil) {
		if i > 0 {
			b.WriteString(", ")
		}
		switch {
		case p.input == 0:
			b.WriteString(strconv.Itoa(p.n))
		case p.n == allAxes:
			fmt.Fprintf(&b, "@%d", p.input-1)
		default:
			fmt.Fprintf(&b, "@%d:%d", p.input-1, p.n)
		}
	}
	b.WriteByte(')')
	return b.String()
}

// DimsList is a list of Dims: a comparable attribute.
type DimsList struct{ h unique.Handle[dimsCell] }

// dimsCell is a list's first element and the others.
type dimsCell struct {
	first  Dims
	others DimsList
}

// MakeDimsList interns a list.
func MakeDimsList(d ...Dims) DimsList {
	var l DimsList
	for _, x := range slices.Backward(d) {
		l = DimsList{unique.Make(dimsCell{x, l})}
	}
	return l
}

// Slice is the list.
func (l DimsList) Slice() []Dims {
	var out []Dims
	for l != (DimsList{}) {
		cell := l.h.Value()
		out, l = append(out, cell.first), cell.others
	}
	return out
}

// IsConst reports whether d has no part that refers to an input.
func (d Dims) IsConst() bool {
	var few [8]dim
	return !slices.ContainsFunc(d.parts(few[:0]), func(p dim) bool { return p.input != 0 })
}

// ShapeFunc computes a shape from the shapes of a call's inputs. It runs on the goroutine that makes or replays the
// call, never on a stream's, and must not keep or change what it is given. It is compared by identity.
type ShapeFunc struct {
	F func(in []Shape) ([]int, error)
}

// Call runs the function on copies and gives a copy of its result.
func (f *ShapeFunc) Call(in []Spec) ([]int, error) {
	shapes := make([]Shape, len(in))
	for i, s := range in {
		shapes[i] = s.Shape.Clone()
	}
	out, err := f.F(shapes)
	return slices.Clone(out), err
}

// Unbind turns a bound shape back into one that refers to the arrays in, for batching rules: batch is each array's
// batch axis (-1 or a nil list: none), which the references leave out.
func (d Dims) Unbind(in []*Array, batch []int) (ShapeArg, error) {
	var s ShapeArg
	for _, p := range d.parts(nil) {
		if p.input == 0 {
			s.parts = append(s.parts, shapePart{n: p.n})
			continue
		}
		k := p.input - 1
		if k >= len(in) {
			return s, fmt.Errorf("BUG: dims %v of %d inputs", d, len(in))
		}
		axes := make([]int, 0, in[k].NDim())
		for axis := range in[k].NDim() {
			if batch == nil || axis != batch[k] {
				axes = append(axes, axis)
			}
		}
		if p.n != allAxes {
			axis, err := Axis(p.n, len(axes))
			if err != nil {
				return s, err
			}
			axes = axes[axis : axis+1]
		}
		for _, axis := range axes {
			s.parts = append(s.parts, shapePart{of: in[k], axis: axis})
		}
	}
	return s, nil
}
