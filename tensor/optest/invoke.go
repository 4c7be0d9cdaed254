package optest

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Invoke calls a function of mx by its signature, as luabind does for a script: with arguments by position and by name,
// which are arrays, numbers, booleans, strings, dtypes, nil, and lists ([]any) of those. It gives the arrays that the
// function does, or why it cannot be called so; the arrays may be failed.
func Invoke(f *sig.Func, pos []any, named map[string]any) (outs []*tensor.Array, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: %s: %v", f.Name, p)
		}
	}()
	a := &sig.Args{Ctx: tensor.Call(nil), V: make([]any, len(f.Params)), Positional: len(pos)}
	given := make([]bool, len(f.Params))
	raw := make([]any, len(f.Params))
	for i, v := range pos {
		if i < len(f.Params) && f.Params[i].Many {
			raw[i], given[i] = pos[i:], true
			break
		}
		if i >= len(f.Params) {
			return nil, fmt.Errorf("%d arguments, there are %d parameters", len(pos), len(f.Params))
		}
		raw[i], given[i] = v, true
	}
	for name, v := range named {
		i := slices.IndexFunc(f.Params, func(p sig.Param) bool { return p.Name == name })
		if i < 0 || f.Params[i].Many || given[i] {
			return nil, fmt.Errorf("there is no parameter %s to give by name", name)
		}
		raw[i], given[i] = v, true
	}
	for i := range f.Params {
		p := &f.Params[i]
		none := p.Kind() == sig.KindAxis || p.Kind() == sig.KindAxes
		switch {
		case given[i] && (raw[i] != nil || none && p.Default != ""): // MLX's None is none of the defaults
		case !p.Optional && !p.Many:
			return nil, fmt.Errorf("%s is missing", p.Name)
		default:
			given[i] = false
			if a.V[i] = p.Value; p.Value != nil && arrayKind(p.Kind()) {
				raw[i], given[i] = p.Value, true // a number
			}
		}
	}
	for _, last := range []bool{false, true} { // operands that are numbers, when the others are known
		for i := range f.Params {
			number := f.Params[i].Kind() == sig.KindOperand && !isArray(raw[i])
			if !given[i] || number != last {
				continue
			}
			if a.V[i], err = convert(a, f, i, raw[i]); err != nil {
				return nil, fmt.Errorf("%s %w", f.Params[i].Name, err)
			}
		}
	}
	return flat(f.Call(a))
}

func isArray(v any) bool { _, ok := v.(*tensor.Array); return ok }

func arrayKind(k sig.Kind) bool {
	return k == sig.KindArray || k == sig.KindOperand || k == sig.KindFloat
}

// flat lists the arrays of a result.
func flat(result any) ([]*tensor.Array, error) {
	switch r := result.(type) {
	case *tensor.Array:
		return []*tensor.Array{r}, nil
	case []*tensor.Array:
		return r, nil
	case sig.Table:
		return r, nil
	case error:
		return nil, r
	case sig.Several:
		var out []*tensor.Array
		for _, v := range r {
			xs, err := flat(v)
			if err != nil {
				return nil, err
			}
			out = append(out, xs...)
		}
		return out, nil
	case bool: // what is no array is one here, to be compared
		return []*tensor.Array{ops.FromSlice([]bool{r}, []int{})}, nil
	case int:
		return []*tensor.Array{ops.FromSlice([]int64{int64(r)}, []int{})}, nil
	case float64:
		return []*tensor.Array{ops.FromSlice([]float64{r}, []int{})}, nil
	case tensor.Shape:
		return []*tensor.Array{shapeArray(r)}, nil
	case tensor.DType:
		return []*tensor.Array{ops.Zeros(tensor.Sizes(), r)}, nil
	case string:
		return []*tensor.Array{ops.FromSlice([]byte(r), []int{len(r)})}, nil
	case sig.Lists:
		var out []*tensor.Array
		for _, v := range r {
			out = append(out, shapeArray(v))
		}
		return out, nil
	}
	return nil, fmt.Errorf("BUG: a result of type %T", result)
}

func shapeArray(s tensor.Shape) *tensor.Array {
	v := make([]int64, len(s))
	for i, n := range s {
		v[i] = int64(n)
	}
	return ops.FromSlice(v, []int{len(v)})
}

// convert makes the value that Args holds for parameter i.
func convert(a *sig.Args, f *sig.Func, i int, v any) (any, error) {
	p := &f.Params[i]
	if v == nil {
		return nil, nil
	}
	if p.Many {
		return convertMany(a, p, v.([]any))
	}
	if word, ok := v.(string); ok && slices.Contains(p.Words, word) {
		return word, nil
	}
	err := fmt.Errorf("is %v, want one of %v", v, p.Words)
	for _, k := range p.Kinds {
		var x any
		if k == sig.KindOperand {
			x, err = operand(a, f, i, v)
		} else {
			x, err = convertKind(a, k, v)
		}
		if err == nil {
			return x, nil
		}
	}
	return nil, err
}

func convertMany(a *sig.Args, p *sig.Param, list []any) (any, error) {
	arrays, others := []*tensor.Array{}, []any{}
	for _, v := range list {
		x, err := convertKind(a, p.Kind(), v)
		if err != nil {
			return nil, err
		}
		if y, ok := x.(*tensor.Array); ok {
			arrays = append(arrays, y)
		}
		others = append(others, x)
	}
	if len(p.Kinds) == 1 && p.Kind() == sig.KindArray {
		return arrays, nil
	}
	return others, nil
}

// operand is a number beside the first other operand that is an array.
func operand(a *sig.Args, f *sig.Func, i int, v any) (any, error) {
	n, ok := number(v)
	if !ok {
		return convertKind(a, sig.KindArray, v)
	}
	for j := range f.Params {
		if like, ok := a.V[j].(*tensor.Array); ok && j != i && f.Params[j].Kind() == sig.KindOperand {
			return ops.Scalar(n, like, a.Ctx), nil
		}
	}
	return convertKind(a, sig.KindArray, v)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

// convertKind makes a kind's value.
func convertKind(a *sig.Args, k sig.Kind, v any) (any, error) {
	n, isNumber := number(v)
	integer := isNumber && n == math.Trunc(n) && math.Abs(n) < 1<<53
	list, isList := v.([]any)
	x, isArray := v.(*tensor.Array)
	b, isBool := v.(bool)
	text, isText := v.(string)
	switch {
	case isArray && (arrayKind(k) || k == sig.KindKey):
		return x, nil
	case isArray && k == sig.KindIndices && (x.DType().IsInteger() || x.DType() == tensor.Bool || x.Err() != nil):
		return x, nil
	case isArray && k == sig.KindFill:
		return &sig.Fill{Array: x}, nil
	case isArray && k == sig.KindShape:
		s := tensor.ShapeOf(x)
		return &s, nil
	case isNumber && k == sig.KindFill:
		return &sig.Fill{Number: n}, nil
	case isNumber && k == sig.KindFloat:
		return ops.Number(n, tensor.Float32, a.Ctx), nil
	case integer && (k == sig.KindArray || k == sig.KindIndices) && n >= math.MinInt32 && n <= math.MaxInt32:
		return ops.Number(n, tensor.Int32, a.Ctx), nil
	case isNumber && k == sig.KindArray:
		return ops.Number(n, tensor.Float32, a.Ctx), nil
	case isBool && arrayKind(k):
		return ops.FromSlice([]bool{b}, []int{}, a.Ctx), nil
	case isBool && k == sig.KindFill:
		return &sig.Fill{Array: ops.FromSlice([]bool{b}, []int{}, a.Ctx)}, nil
	case isBool && k == sig.KindBool:
		return b, nil
	case integer && (k == sig.KindInt || k == sig.KindAxis):
		return int(n), nil
	case integer && k == sig.KindSeed:
		return uint64(n), nil
	case isNumber && k == sig.KindNumber:
		return n, nil
	case isText && k == sig.KindString:
		return text, nil
	case k == sig.KindDType:
		if d, ok := v.(tensor.DType); ok {
			return d, nil
		}
	case isList && k == sig.KindArrays:
		return convertArrays(a, list)
	case isList && k == sig.KindStrings:
		return convertAll[string](list)
	case integer || isList:
		return convertInts(k, n, list)
	}
	return nil, fmt.Errorf("is %v, want a value of kind %v", v, k)
}

func convertArrays(a *sig.Args, list []any) (any, error) {
	out := make([]*tensor.Array, len(list))
	for i, v := range list {
		x, err := convertKind(a, sig.KindArray, v)
		if err != nil {
			return nil, err
		}
		out[i] = x.(*tensor.Array)
	}
	return out, nil
}

func convertAll[T any](list []any) ([]T, error) {
	out := make([]T, len(list))
	for i, v := range list {
		x, ok := v.(T)
		if !ok {
			return nil, fmt.Errorf("is %v, want a list of %T", list, x)
		}
		out[i] = x
	}
	return out, nil
}

// convertInts makes the values of kinds that are lists of integers.
func convertInts(k sig.Kind, n float64, list []any) (any, error) {
	wrong := fmt.Errorf("is %v %v, want a value of kind %v", n, list, k)
	if k == sig.KindIntLists {
		return convertLists(n, list)
	}
	v := []int{int(n)}
	if list != nil {
		v = make([]int, len(list))
		for i, e := range list {
			n, ok := number(e)
			if !ok || n != math.Trunc(n) {
				return nil, wrong
			}
			v[i] = int(n)
		}
	}
	switch k {
	case sig.KindInts, sig.KindAxes:
		return v, nil
	case sig.KindShape:
		s := tensor.Sizes(v...)
		return &s, nil
	}
	return nil, wrong
}

func convertLists(n float64, list []any) (any, error) {
	if list == nil {
		return &sig.IntLists{Lists: [][]int{{int(n)}}}, nil
	}
	out := &sig.IntLists{Depth: 1}
	for _, e := range list {
		if _, ok := e.([]any); ok {
			out.Depth = 2
		}
	}
	if out.Depth == 1 {
		list = []any{list}
	}
	for _, e := range list {
		inner, ok := e.([]any)
		if !ok {
			return nil, fmt.Errorf("is %v, want a list of lists", list)
		}
		v, err := convertInts(sig.KindInts, 0, inner)
		if err != nil {
			return nil, err
		}
		out.Lists = append(out.Lists, v.([]int))
	}
	return out, nil
}
