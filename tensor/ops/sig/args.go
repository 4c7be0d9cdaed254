package sig

import "github.com/mlxlua/mlxlua/tensor"

// Args are the arguments of a call. Reading one as another type than its kind's panics, as reading one that the
// signature does not have does: that is a mistake in the room, which its golden data find.
type Args struct {
	// Ctx is where the call is built and runs.
	Ctx *tensor.Ctx
	// V are the values by parameter, in the types that Kind names; nil where an optional one was not given.
	V []any
	// Positional is how many arguments were given by position.
	Positional int
}

// Fill is what an array is filled with: a number, or an array, whose values are broadcast.
type Fill struct {
	Number float64
	Array  *tensor.Array // nil: Number
}

// DType is the dtype that the value gives an array where none is asked for; number is that of numbers.
func (f *Fill) DType(number tensor.DType) tensor.DType {
	if f.Array != nil {
		return f.Array.DType()
	}
	return number
}

// IntLists is an integer (Depth 0), a list of integers (1), or a list of lists (2). Lists of depth 0 and 1 are
// Lists[0].
type IntLists struct {
	Lists [][]int
	Depth int
}

func get[T any](a *Args, i int) T {
	v := a.V[i]
	if v == nil {
		var none T
		return none
	}
	return v.(T)
}

// Given says whether argument i has a value: one that was given, or a default.
func (a *Args) Given(i int) bool { return a.V[i] != nil }

// Array is argument i of a kind of arrays, or nil.
func (a *Args) Array(i int) *tensor.Array { return get[*tensor.Array](a, i) }

// Arrays is argument i, a list of arrays.
func (a *Args) Arrays(i int) []*tensor.Array { return get[[]*tensor.Array](a, i) }

// Int is argument i, an integer, or 0.
func (a *Args) Int(i int) int { return get[int](a, i) }

// Axis is argument i, one axis, or nil for MLX's None.
func (a *Args) Axis(i int) *int {
	if a.V[i] == nil {
		return nil
	}
	n := a.Int(i)
	return &n
}

// Ints is argument i, a list of integers or axes, or nil. Nobody may change it.
func (a *Args) Ints(i int) []int { return get[[]int](a, i) }

// IntLists is argument i of that kind, or nil.
func (a *Args) IntLists(i int) *IntLists { return get[*IntLists](a, i) }

// Number is argument i, a number, or 0.
func (a *Args) Number(i int) float64 { return get[float64](a, i) }

// NumberOrNone is argument i, a number, or nil.
func (a *Args) NumberOrNone(i int) *float64 {
	if a.V[i] == nil {
		return nil
	}
	v := a.Number(i)
	return &v
}

// Seed is argument i, 64 bits.
func (a *Args) Seed(i int) uint64 { return get[uint64](a, i) }

// Bool is argument i, a boolean, or false.
func (a *Args) Bool(i int) bool { return get[bool](a, i) }

// Text is argument i, a string, or "".
func (a *Args) Text(i int) string { return get[string](a, i) }

// Fill is argument i, what an array is filled with.
func (a *Args) Fill(i int) *Fill { return get[*Fill](a, i) }

// Shape is argument i, a shape, or that of a scalar.
func (a *Args) Shape(i int) tensor.ShapeArg {
	if p := get[*tensor.ShapeArg](a, i); p != nil {
		return *p
	}
	return tensor.ShapeArg{}
}

// DType is argument i, a dtype that is given or has a default.
func (a *Args) DType(i int) tensor.DType { return a.V[i].(tensor.DType) }

// DTypeOr is argument i, a dtype, or def.
func (a *Args) DTypeOr(i int, def tensor.DType) tensor.DType {
	if a.V[i] == nil {
		return def
	}
	return a.DType(i)
}

// DTypeOrNone is argument i, a dtype, or nil.
func (a *Args) DTypeOrNone(i int) *tensor.DType {
	if a.V[i] == nil {
		return nil
	}
	d := a.V[i].(tensor.DType)
	return &d
}

// As is argument i if it has type T: one of several kinds that the parameter takes, or a word.
func As[T any](a *Args, i int) (T, bool) {
	v, ok := a.V[i].(T)
	return v, ok
}
