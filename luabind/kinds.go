package luabind

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// converter makes a Go value of an argument; its error goes on from the parameter's name ("is ..., want ...").
type converter func(a *args, v lua.LValue) (any, error)

// converters are by kind, with what each wants for messages.
var converters [sig.Kinds]struct {
	convert converter
	want    string
}

func init() {
	asIs := func(_ *args, v lua.LValue) (any, error) { return v, nil }
	for _, c := range []struct {
		kind    sig.Kind
		want    string
		convert converter
	}{
		{sig.KindArray, "an array", toArray},
		{sig.KindOperand, "an array or a number", toArray}, // a number among operands: see args.weak
		{sig.KindFloat, "an array or a number", toFloatArray},
		{sig.KindFill, "a number or an array", nil}, // see args.fill
		{sig.KindIndices, "an array of integers", toIndices},
		{sig.KindKey, "an array", toArray},
		{sig.KindSeed, "an integer, or a string of digits below 2^64", toSeed},
		{sig.KindArrays, "a table of arrays", toArrays},
		{sig.KindInt, "an integer", func(_ *args, v lua.LValue) (any, error) { return toInt(v) }},
		{sig.KindAxis, "an axis", toAxis},
		{sig.KindInts, "an integer or a table of integers", toInts},
		{sig.KindAxes, "an axis or a table of axes", toAxes},
		{sig.KindIntLists, "an integer, or a table of integers or of tables of them", toIntLists},
		{sig.KindNumber, "a number", toNumber},
		{sig.KindBool, "true or false", toBool},
		{sig.KindString, "a string", toText},
		{sig.KindStrings, "a table of strings", toTexts},
		{sig.KindDType, "a dtype such as mx.float32", toDType},
		{sig.KindShape, "a shape", toShape},
		{sig.KindFunction, "a function", toFunction},
		{sig.KindTable, "a table", toTable},
		{sig.KindList, "a list", asIs},
		{sig.KindValue, "a value", asIs},
		{sig.KindAny, "a value", asIs},
		{sig.KindTree, "a value", asIs},
	} {
		converters[c.kind].convert, converters[c.kind].want = c.convert, c.want
	}
}

// converterOf is the converter of a parameter: its kind's, or one that tries its words and its kinds in turn.
func converterOf(p sig.Param) converter {
	if len(p.Kinds) == 1 && len(p.Words) == 0 {
		c := converters[p.Kind()]
		if !takesBool(p) {
			return noBool(p, c.convert, c.want)
		}
		return c.convert
	}
	var wants []string
	for _, w := range p.Words {
		wants = append(wants, strconv.Quote(w))
	}
	for _, k := range p.Kinds {
		wants = append(wants, converters[k].want)
	}
	for i := len(wants) - 2; i >= 0; i-- { // an integer, or an integer or a table of integers
		if strings.HasPrefix(wants[i+1], wants[i]) {
			wants = slices.Delete(wants, i, i+1)
		}
	}
	want := wants[len(wants)-1]
	if len(wants) > 1 {
		want = strings.Join(wants[:len(wants)-1], ", ") + " or " + want
	}
	return func(a *args, v lua.LValue) (any, error) {
		if word, ok := v.(lua.LString); ok && slices.Contains(p.Words, string(word)) {
			return string(word), nil
		}
		for _, k := range p.Kinds {
			x, err := converters[k].convert(a, v)
			if err == nil || strings.HasPrefix(err.Error(), "[") { // of an element
				return x, err
			}
		}
		return nil, wrong(v, want)
	}
}

// takesTable reports whether an empty table is a value of the parameter: elsewhere it holds no keywords.
func (p *param) takesTable() bool {
	for _, k := range p.Kinds {
		switch k {
		case sig.KindIndices, sig.KindArrays, sig.KindAxes, sig.KindInts, sig.KindIntLists, sig.KindShape, sig.KindStrings,
			sig.KindTable, sig.KindList, sig.KindAny, sig.KindFill, sig.KindTree:
			return true
		}
	}
	return false
}

// takesTree reports whether a table with string keys is a value of the parameter.
func (p *param) takesTree() bool {
	return p.Is(sig.KindTable) || p.Is(sig.KindAny) || p.Is(sig.KindTree)
}

// takesBool reports whether a boolean may be a value of the parameter. It is an array only where MLX has an operand:
// where a number is wanted, or an array may be left out, false would pass for MLX's None, and be 0.
func takesBool(p sig.Param) bool {
	switch p.Kind() {
	case sig.KindArray, sig.KindOperand:
		return !p.Optional
	case sig.KindFloat, sig.KindIndices, sig.KindKey:
		return false
	}
	return true
}

// noBool is a converter of a parameter that takes no boolean.
func noBool(p sig.Param, convert converter, want string) converter {
	return func(a *args, v lua.LValue) (any, error) {
		switch {
		case v == lua.LFalse && p.Optional:
			return nil, fmt.Errorf("%w; nil leaves it out", wrong(v, want))
		case v.Type() == lua.LTBool:
			return nil, wrong(v, want)
		}
		return convert(a, v)
	}
}

func wrong(v lua.LValue, want string) error { return fmt.Errorf("is %s, want %s", describe(v), want) }

func toArray(a *args, v lua.LValue) (any, error) {
	switch v := v.(type) {
	case lua.LNumber:
		return number(a.Ctx, float64(v)), nil
	case lua.LBool:
		return ops.FromSlice([]bool{bool(v)}, []int{}, a.Ctx), nil
	}
	if x, ok := array(v); ok {
		return x, nil
	}
	return nil, wrong(v, "an array")
}

// toIndices is for arrays of indices: a table of integers is an int32 array; floats are refused.
func toIndices(a *args, v lua.LValue) (any, error) {
	if t, ok := v.(*lua.LTable); ok {
		x, err := arrayOf(a.s.Context(), a.Ctx, t, tensor.Int32, true)
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

// toFloatArray is an array; a number is float32.
func toFloatArray(a *args, v lua.LValue) (any, error) {
	if n, ok := v.(lua.LNumber); ok {
		return ops.Number(float64(n), tensor.Float32, a.Ctx), nil
	}
	return toArray(a, v)
}

// toSeed is a 64-bit seed: a number, or a string of digits where 53 bits are not enough.
func toSeed(_ *args, v lua.LValue) (any, error) {
	switch v := v.(type) {
	case lua.LNumber:
		n, err := toInt(v)
		return uint64(n), err
	case lua.LString:
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return n, nil
		}
	}
	return nil, wrong(v, "an integer, or a string of digits below 2^64")
}

// toIntLists is an integer, a list of integers, or a list of such lists.
func toIntLists(a *args, v lua.LValue) (any, error) {
	t, ok := v.(*lua.LTable)
	if !ok {
		n, err := toInt(v)
		return &sig.IntLists{Lists: [][]int{{n}}}, err
	}
	if _, nested := t.RawGetInt(1).(*lua.LTable); !nested {
		list, err := appendInts(nil, t)
		return &sig.IntLists{Lists: [][]int{list}, Depth: 1}, err
	}
	out := &sig.IntLists{Depth: 2}
	for i := 1; i <= t.Len(); i++ {
		inner, ok := t.RawGetInt(i).(*lua.LTable)
		if !ok {
			return nil, fmt.Errorf("[%d] %w", i, wrong(t.RawGetInt(i), "a table of integers"))
		}
		list, err := appendInts(nil, inner)
		if err != nil {
			return nil, fmt.Errorf("[%d]%w", i, err)
		}
		out.Lists = append(out.Lists, list)
	}
	return out, nil
}

// toTexts is a list of strings.
func toTexts(_ *args, v lua.LValue) (any, error) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil, wrong(v, "a table of strings")
	}
	out := make([]string, t.Len())
	for i := range out {
		text, ok := t.RawGetInt(i + 1).(lua.LString)
		if !ok {
			return nil, fmt.Errorf("[%d] %w", i+1, wrong(t.RawGetInt(i+1), "a string"))
		}
		out[i] = string(text)
	}
	return out, nil
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
	if slices.Contains(a.V, any(p)) {
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
	if d, ok := unwrap[dimsOf](v); ok {
		return d.ShapeArg, nil
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

func toFunction(a *args, v lua.LValue) (any, error) {
	if callable(a.s, v) {
		return v, nil
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
func (c complexNumber) String() string { return c.text(shortest) }

// text is the number's text with that many places after the point.
func (c complexNumber) text(precision int) string {
	re, im := real(complex64(c)), imag(complex64(c))
	if im >= 0 || im != im {
		return formatFloat(float64(re), precision) + "+" + formatFloat(float64(im), precision) + "j"
	}
	return formatFloat(float64(re), precision) + "-" + formatFloat(-float64(im), precision) + "j"
}

// formatFloat is a number as C++ streams print it: with that many places after the point; where precision is shortest,
// six significant digits, %g.
func formatFloat(v float64, precision int) string {
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
	if precision != shortest {
		return strconv.FormatFloat(v, 'f', precision, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
