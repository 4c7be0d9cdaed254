package tensor

import (
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
// op passes them as its last inputs, and its Rules say (SpecInputs) that only their shapes are read.
func (s ShapeArg) Bind(in []*Array) (Dims, []*Array) {
	var b strings.Builder
	operands := len(in)
	for i, p := range s.parts {
		if i > 0 {
			b.WriteByte(' ')
		}
		if p.of == nil {
			b.WriteString(strconv.Itoa(p.n))
			continue
		}
		k := slices.Index(in[operands:], p.of) + operands
		if k < operands { // operands keep their own places: a reference is an input of its own
			k = len(in)
			in = append(in, p.of)
		}
		fmt.Fprintf(&b, "@%d", k)
		if p.axis != allAxes {
			fmt.Fprintf(&b, ":%d", p.axis)
		}
	}
	return Dims{unique.Make(b.String())}, in
}

// Dims is a bound ShapeArg: a comparable attribute.
type Dims struct{ h unique.Handle[string] }

// MakeDims is a Dims of numbers only.
func MakeDims(n ...int) Dims { d, _ := Sizes(n...).Bind(nil); return d }

// Resolve gives the numbers, with the shapes of the op's inputs filled in.
func (d Dims) Resolve(in []Spec) ([]int, error) {
	if d == (Dims{}) || d.h.Value() == "" {
		return []int{}, nil
	}
	out := make([]int, 0, 4)
	for part, rest, more := "", d.h.Value(), true; more; {
		part, rest, more = strings.Cut(rest, " ")
		ref, isRef := strings.CutPrefix(part, "@")
		if !isRef {
			n, err := strconv.Atoi(part)
			if err != nil {
				return nil, fmt.Errorf("BUG: dims %q", part)
			}
			out = append(out, n)
			continue
		}
		input, axisText, single := strings.Cut(ref, ":")
		k, err := strconv.Atoi(input)
		if err != nil || k >= len(in) {
			return nil, fmt.Errorf("BUG: dims %q of %d inputs", part, len(in))
		}
		if !single {
			out = append(out, in[k].Shape...)
			continue
		}
		axis, _ := strconv.Atoi(axisText)
		axis, err = Axis(axis, len(in[k].Shape))
		if err != nil {
			return nil, err
		}
		out = append(out, in[k].Shape[axis])
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
	if d == (Dims{}) {
		return "()"
	}
	return "(" + strings.ReplaceAll(d.h.Value(), " ", ", ") + ")"
}

// DimsList is a list of Dims: a comparable attribute.
type DimsList struct{ h unique.Handle[string] }

// MakeDimsList interns a list.
func MakeDimsList(d ...Dims) DimsList {
	parts := make([]string, len(d))
	for i, x := range d {
		if x != (Dims{}) {
			parts[i] = x.h.Value()
		}
	}
	return DimsList{unique.Make(strconv.Itoa(len(d)) + ";" + strings.Join(parts, ";"))}
}

// Slice is the list.
func (l DimsList) Slice() []Dims {
	if l == (DimsList{}) {
		return nil
	}
	count, rest, _ := strings.Cut(l.h.Value(), ";")
	if count == "0" {
		return nil
	}
	var out []Dims
	for _, part := range strings.Split(rest, ";") {
		out = append(out, Dims{unique.Make(part)})
	}
	return out
}

// IsConst says whether d has no part that refers to an input.
func (d Dims) IsConst() bool { return d == (Dims{}) || !strings.Contains(d.h.Value(), "@") }

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
	if d == (Dims{}) || d.h.Value() == "" {
		return s, nil
	}
	for _, part := range strings.Split(d.h.Value(), " ") {
		ref, isRef := strings.CutPrefix(part, "@")
		if !isRef {
			n, err := strconv.Atoi(part)
			if err != nil {
				return s, fmt.Errorf("BUG: dims %q", part)
			}
			s.parts = append(s.parts, shapePart{n: n})
			continue
		}
		input, axisText, single := strings.Cut(ref, ":")
		k, err := strconv.Atoi(input)
		if err != nil || k >= len(in) {
			return s, fmt.Errorf("BUG: dims %q of %d inputs", part, len(in))
		}
		axes := make([]int, 0, in[k].NDim())
		for axis := range in[k].NDim() {
			if batch == nil || axis != batch[k] {
				axes = append(axes, axis)
			}
		}
		if single {
			axis, _ := strconv.Atoi(axisText)
			if axis, err = Axis(axis, len(axes)); err != nil {
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
