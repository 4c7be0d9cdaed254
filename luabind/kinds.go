package luabind

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// converter makes a Go value of an argument; its error goes on from the parameter's name ("is ..., want ...").
type converter func(a *args, v lua.LValue) (any, error)

// kinds are the converters by the parameters' kinds.
var kinds map[string]converter

func init() {
	kinds = map[string]converter{
		"array":    toArray,
		"operand":  toArray, // a number takes its dtype from the call's other operands: see args.weak
		"indices":  toIndices,
		"arrays":   toArrays,
		"axis":     toAxis,
		"axes":     toAxes,
		"ints":     toInts,
		"int":      func(_ *args, v lua.LValue) (any, error) { return toInt(v) },
		"number":   toNumber,
		"bool":     toBool,
		"string":   toText,
		"dtype":    toDType,
		"shape":    toShape,
		"function": toFunction,
		"table":    toTable,
		"list":     func(_ *args, v lua.LValue) (any, error) { return v, nil }, // whatever it is, but no table of names
		"value":    func(_ *args, v lua.LValue) (any, error) { return v, nil }, // what is no table
		"any":      func(_ *args, v lua.LValue) (any, error) { return v, nil },
		"tree":     func(_ *args, v lua.LValue) (any, error) { return v, nil },
	}
}

// takesTable says whether an empty table is a value of that kind: elsewhere it holds no keywords.
func takesTable(kind string) bool {
	switch kind {
	case "indices", "arrays", "axes", "ints", "shape", "table", "list", "any", "tree":
		return true
	}
	return false
}

// takesTree says whether a table with string keys is a value of that kind.
func takesTree(kind string) bool { return kind == "table" || kind == "any" || kind == "tree" }

func wrong(v lua.LValue, want string) error { return fmt.Errorf("is %s, want %s", describe(v), want) }

func toArray(a *args, v lua.LValue) (any, error) {
	switch v := v.(type) {
	case lua.LNumber:
		return number(a.ctx, float64(v)), nil
	case lua.LBool:
		return ops.FromSlice([]bool{bool(v)}, []int{}, a.ctx), nil
	}
	if x, ok := array(v); ok {
		return x, nil
	}
	return nil, wrong(v, "an array")
}

// toIndices is for arrays of indices: a table of integers is an int32 array; floats are refused.
func toIndices(a *args, v lua.LValue) (any, error) {
	if t, ok := v.(*lua.LTable); ok {
		x, err := arrayOf(a.ctx, t, tensor.Int32, true)
		if err != nil {
			return nil, err
		}
		return x, nil
	}
	x, err := toArray(a, v)
	if err != nil {
		return nil, err
	}
	if d := x.(*tensor.Array).DType(); !d.IsInteger() && d != tensor.Bool {
		return nil, fmt.Errorf("is an array of %v, want integers: make them by x:astype(mx.int32)", d)
	}
	return x, nil
}

func toArrays(a *args, v lua.LValue) (any, error) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil, wrong(v, "a table of arrays")
	}
	out := make([]*tensor.Array, t.Len())
	for i := range out {
		x, err := toArray(a, t.RawGetInt(i+1))
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i+1, err)
		}
		out[i] = x.(*tensor.Array)
	}
	return out, nil
}

// toInt is an integer. It must be integral and within 53 bits.
func toInt(v lua.LValue) (int, error) {
	n, ok := v.(lua.LNumber)
	if !ok {
		return 0, wrong(v, "an integer")
	}
	f := float64(n)
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, fmt.Errorf("is %v, want an integer", f)
	}
	return int(f), nil
}

func intList(t *lua.LTable) ([]int, error) { return appendInts(make([]int, 0, t.Len()), t) }

// appendInts appends a table's integers to out.
func appendInts(out []int, t *lua.LTable) ([]int, error) {
	for i := 1; i <= t.Len(); i++ {
		n, err := toInt(t.RawGetInt(i))
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
		out = append(out, n)
	}
	return out, nil
}

// toAxis is one axis; false is MLX's None.
func toAxis(_ *args, v lua.LValue) (any, error) {
	if v == lua.LFalse {
		return nil, nil
	}
	if _, ok := v.(lua.LNumber); !ok {
		return nil, wrong(v, "an axis")
	}
	return toInt(v)
}

// someAxes are the lists of one axis that scripts ask for all the time: nobody changes one.
var someAxes = func() (lists [8]any) {
	for i := range lists {
		lists[i] = []int{i - len(lists)/2}
	}
	return lists
}()

// toAxes is one axis or a list; false is MLX's None.
func toAxes(_ *args, v lua.LValue) (any, error) {
	switch v := v.(type) {
	case lua.LBool:
		if !bool(v) {
			return nil, nil
		}
	case lua.LNumber:
		n, err := toInt(v)
		if i := n + len(someAxes)/2; err == nil && i >= 0 && i < len(someAxes) {
			return someAxes[i], nil
		}
		return []int{n}, err
	case *lua.LTable:
		return intList(v)
	}
	return nil, wrong(v, "an axis or a table of axes")
}

func toInts(_ *args, v lua.LValue) (any, error) {
	switch v := v.(type) {
	case lua.LNumber:
		n, err := toInt(v)
		return []int{n}, err
	case *lua.LTable:
		return intList(v)
	}
	return nil, wrong(v, "an integer or a table of integers")
}

func toNumber(_ *args, v lua.LValue) (any, error) {
	if n, ok := v.(lua.LNumber); ok {
		return float64(n), nil
	}
	return nil, wrong(v, "a number")
}

func toBool(_ *args, v lua.LValue) (any, error) {
	if b, ok := v.(lua.LBool); ok {
		return bool(b), nil
	}
	return nil, wrong(v, "true or false")
}

func toText(_ *args, v lua.LValue) (any, error) {
	if t, ok := v.(lua.LString); ok {
		return string(t), nil
	}
	return nil, wrong(v, "a string")
}

func toDType(_ *args, v lua.LValue) (any, error) {
	if d, ok := unwrap[tensor.DType](v); ok {
		return d, nil
	}
	return nil, wrong(v, "a dtype such as mx.float32")
}

// toShape is a shape, as a pointer; see shapeOf.
func toShape(a *args, v lua.LValue) (any, error) {
	shape, err := shapeOf(v)
	if err != nil {
		return nil, err
	}
	p := &a.first
	if slices.Contains(a.v, any(p)) {
		p = new(tensor.ShapeArg)
	}
	*p = shape
	return p, nil
}

// shapeOf is a shape: a table of sizes, a number, dims, or an array, which stands for its shape.
func shapeOf(v lua.LValue) (tensor.ShapeArg, error) {
	if x, ok := array(v); ok {
		return tensor.ShapeOf(x), nil
	}
	if d, ok := unwrap[tensor.ShapeArg](v); ok {
		return d, nil
	}
	switch v := v.(type) {
	case lua.LNumber:
		n, err := toInt(v)
		return tensor.Sizes(n), err
	case *lua.LTable:
		var few [8]int
		n, err := appendInts(few[:0], v)
		return tensor.Sizes(n...), err
	}
	return tensor.ShapeArg{}, wrong(v, "a shape: a table of sizes, or an array that stands for its shape")
}

func toFunction(_ *args, v lua.LValue) (any, error) {
	if f, ok := v.(*lua.LFunction); ok {
		return f, nil
	}
	return nil, wrong(v, "a function")
}

func toTable(_ *args, v lua.LValue) (any, error) {
	if t, ok := v.(*lua.LTable); ok {
		return t, nil
	}
	return nil, wrong(v, "a table")
}

// complexNumber is a complex value in Lua: mx.complex(re, im).
type complexNumber complex64

// String is MLX's text of the number: 1+2j.
func (c complexNumber) String() string {
	re, im := real(complex64(c)), imag(complex64(c))
	if im >= 0 || im != im {
		return formatFloat(float64(re)) + "+" + formatFloat(float64(im)) + "j"
	}
	return formatFloat(float64(re)) + "-" + formatFloat(-float64(im)) + "j"
}

// formatFloat is a number as C++ streams print it: six significant digits, %g.
func formatFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		if math.Signbit(v) {
			return "-nan"
		}
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
