package luabind

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

var (
	typeOfFunc    = reflect.TypeFor[Func]()
	typeOfContext = reflect.TypeFor[context.Context]()
	typeOfError   = reflect.TypeFor[error]()
	typeOfAny     = reflect.TypeFor[any]()
	typeOfArray   = reflect.TypeFor[*tensor.Array]()
)

// anyFunction is a Go function of any type as Lua sees it. Arguments are turned into the types of its parameters, but
// for a context, which is the call's; a last result that is an error is the call's error.
func anyFunction(s *State, f reflect.Value) (*lua.LFunction, error) {
	if f.IsNil() {
		return nil, fmt.Errorf("a nil %v has no counterpart in Lua: want a function, or nil itself", f.Type())
	}
	if f.CanConvert(typeOfFunc) {
		return goFunction(s, f.Convert(typeOfFunc).Interface().(Func)), nil
	}
	g := &goCall{s: s, name: functionName(f.Pointer()), code: f.Pointer(), f: f}
	return s.Func(func(L *lua.LState) int { return g.run(lua51.Args(L)) }), nil
}

// goCall is a Go function that is called by reflection.
type goCall struct {
	s    *State
	name string
	code uintptr // where it is
	f    reflect.Value
}

// run calls the function with arguments of Lua's, and pushes its results.
func (g *goCall) run(args []lua.LValue) int {
	s := g.s
	values, err := s.ToGoAll(s.Context(), "argument", args)
	if err != nil {
		s.raise(err)
	}
	ctx, takeBack := s.life.lend(s.Context())
	out, err := callSafely(g.code, func() ([]any, error) {
		in, err := g.in(ctx, values)
		if err != nil {
			return nil, err
		}
		return goResults(g.f.Call(in))
	})
	takeBack()
	if err != nil {
		s.raise(err)
	}
	list, err := s.ToLuaAll(s.Context(), out)
	if err != nil {
		s.raise(fmt.Errorf("a Go function's result %w", err))
	}
	for _, v := range list {
		s.L.Push(v)
	}
	return len(list)
}

// badArgument is an error of an argument, which the function has not seen.
type badArgument struct{ error }

// in are the arguments by the types of the parameters. Those that are left out are nil, where the type has that.
func (g *goCall) in(ctx context.Context, args []any) ([]reflect.Value, error) {
	t := g.f.Type()
	var in []reflect.Value
	first := 0
	if t.NumIn() > 0 && t.In(0) == typeOfContext && !(t.IsVariadic() && t.NumIn() == 1) {
		in, first = append(in, reflect.ValueOf(ctx)), 1
	}
	fixed := t.NumIn() - first
	if t.IsVariadic() {
		fixed--
	}
	for len(args) > fixed && !t.IsVariadic() && args[len(args)-1] == nil {
		args = args[:len(args)-1]
	}
	if len(args) > fixed && !t.IsVariadic() {
		return nil, badArgument{fmt.Errorf("got %s, want %d: %s", tensor.Count(len(args), "argument"), fixed, g.usage(first))}
	}
	for i := range max(fixed, len(args)) {
		want := t.In(min(first+i, t.NumIn()-1))
		if i >= fixed {
			want = want.Elem()
		}
		var v any
		if i < len(args) {
			v = args[i]
		}
		x, err := into(g.s, ctx, v, want)
		if err != nil {
			return nil, badArgument{fmt.Errorf("%w: %s", under(fmt.Sprintf("argument %d", i+1), err), g.usage(first))}
		}
		in = append(in, x)
	}
	return in, nil
}

// usage is the function with the types of its parameters.
func (g *goCall) usage(first int) string {
	t := g.f.Type()
	var types []string
	for i := first; i < t.NumIn(); i++ {
		name := typeText(t.In(i))
		if t.IsVariadic() && i == t.NumIn()-1 {
			name = "..." + typeText(t.In(i).Elem())
		}
		types = append(types, name)
	}
	return g.name + "(" + strings.Join(types, ", ") + ")"
}

// typeText is a type in messages.
func typeText(t reflect.Type) string {
	return strings.NewReplacer("tensor.Array", "Array", "interface {}", "any").Replace(t.String())
}

// goResults are a Go function's results without its error.
func goResults(out []reflect.Value) ([]any, error) {
	if n := len(out); n > 0 && out[n-1].Type() == typeOfError {
		if err, ok := out[n-1].Interface().(error); ok {
			return nil, err
		}
		out = out[:n-1]
	}
	list := make([]any, len(out))
	for i, v := range out {
		if v.Kind() == reflect.Func && v.IsNil() || v.Type() == typeOfArray && v.IsNil() {
			continue // which says that there is none
		}
		list[i] = v.Interface()
	}
	return list, nil
}

// mismatch is the error of a value that a type does not take.
func mismatch(v any, want reflect.Type) error {
	return fmt.Errorf("is %s, want %s", goText(v), typeText(want))
}

// goText names a value that ToGo made, for messages.
func goText(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case bool:
		return fmt.Sprint(v)
	case float64:
		return "the number " + lua.LNumber(v).String()
	case string:
		return "the string " + quote(v)
	case []any, map[string]any:
		return "a table"
	case Func:
		return "a function"
	case *tensor.Array:
		return "an array " + v.Spec().String()
	case lua.LValue:
		return describe(v)
	}
	return "a Go value of type " + typeText(reflect.TypeOf(v))
}

// into turns a value that ToGo made into one of a type.
func into(s *State, ctx context.Context, v any, want reflect.Type) (reflect.Value, error) {
	if v != nil {
		switch given := reflect.ValueOf(v); {
		case want == typeOfAny, given.Type() == want:
			out := reflect.New(want).Elem()
			out.Set(given)
			return out, nil
		case want.Kind() == reflect.Interface && given.Type().Implements(want):
			return given.Convert(want), nil
		case given.Kind() == reflect.Pointer && given.Type().Elem() == want: // an object, where its value is wanted
			return given.Elem(), nil
		}
	}
	out := reflect.New(want).Elem()
	switch want.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func:
		if v == nil {
			return out, nil
		}
	}
	switch kind := want.Kind(); kind {
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return out, mismatch(v, want)
		}
		out.SetBool(b)
	case reflect.String:
		text, ok := v.(string)
		if !ok {
			return out, mismatch(v, want)
		}
		out.SetString(text)
	case reflect.Slice, reflect.Array:
		return out, intoList(s, ctx, v, out)
	case reflect.Map:
		return out, intoMap(s, ctx, v, out)
	case reflect.Struct:
		return out, intoStruct(s, ctx, v, out)
	case reflect.Pointer:
		if want == typeOfArray {
			return out, mismatch(v, want)
		}
		inner, err := into(s, ctx, v, want.Elem())
		if err != nil {
			return out, err
		}
		out.Set(reflect.New(want.Elem()))
		out.Elem().Set(inner)
	case reflect.Func:
		f, ok := v.(Func)
		if !ok {
			return out, mismatch(v, want)
		}
		return typedFunction(s, ctx, f, want), nil
	default:
		return out, intoNumber(v, out)
	}
	return out, nil
}

// intoNumber sets a number, if out's type holds it exactly: a float rounds.
func intoNumber(v any, out reflect.Value) error {
	switch kind := out.Kind(); {
	case out.CanInt(), out.CanUint():
		n, ok := v.(float64)
		if !ok {
			return mismatch(v, out.Type())
		}
		const most = 1 << 63
		if n != math.Trunc(n) || out.CanInt() && (n < -most || n >= most || out.OverflowInt(int64(n))) ||
			out.CanUint() && (n < 0 || n >= 2*most || out.OverflowUint(uint64(n))) {
			return mismatch(v, out.Type())
		}
		if out.CanInt() {
			out.SetInt(int64(n))
		} else {
			out.SetUint(uint64(n))
		}
	case kind == reflect.Float32, kind == reflect.Float64:
		n, ok := v.(float64)
		if !ok {
			return mismatch(v, out.Type())
		}
		out.SetFloat(n)
	case kind == reflect.Complex64, kind == reflect.Complex128:
		switch z := v.(type) {
		case complex64:
			out.SetComplex(complex128(z))
		case float64:
			out.SetComplex(complex(z, 0))
		default:
			return mismatch(v, out.Type())
		}
	default:
		return mismatch(v, out.Type())
	}
	return nil
}

// intoList sets the elements of a slice or an array.
func intoList(s *State, ctx context.Context, v any, out reflect.Value) error {
	if text, ok := v.(string); ok && out.Kind() == reflect.Slice && out.Type().Elem().Kind() == reflect.Uint8 {
		out.SetBytes([]byte(text))
		return nil
	}
	list, ok := v.([]any)
	if empty, is := v.(map[string]any); is && len(empty) == 0 {
		list, ok = nil, true
	}
	if !ok || out.Kind() == reflect.Array && out.Len() != len(list) {
		return mismatch(v, out.Type())
	}
	if out.Kind() == reflect.Slice {
		out.Set(reflect.MakeSlice(out.Type(), len(list), len(list)))
	}
	for i, item := range list {
		if err := stopped(ctx, i); err != nil {
			return err
		}
		x, err := into(s, ctx, item, out.Type().Elem())
		if err != nil {
			return under(fmt.Sprintf("[%d]", i+1), err)
		}
		out.Index(i).Set(x)
	}
	return nil
}

// intoMap sets the entries of a map: of names, or by the items' numbers.
func intoMap(s *State, ctx context.Context, v any, out reflect.Value) error {
	entries := map[any]any{}
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			entries[name] = item
		}
	case []any:
		for i, item := range v {
			entries[float64(i+1)] = item
		}
	default:
		return mismatch(v, out.Type())
	}
	out.Set(reflect.MakeMapWithSize(out.Type(), len(entries)))
	for key, item := range entries {
		k, err := into(s, ctx, key, out.Type().Key())
		if err != nil {
			return fmt.Errorf("has a key that %w", err)
		}
		x, err := into(s, ctx, item, out.Type().Elem())
		if err != nil {
			return under(fmt.Sprintf("[%v]", key), err)
		}
		out.SetMapIndex(k, x)
	}
	return nil
}

// intoStruct sets a struct's fields by their names in Lua. A name that is no field's is an error.
func intoStruct(s *State, ctx context.Context, v any, out reflect.Value) error {
	entries, ok := v.(map[string]any)
	if !ok {
		return mismatch(v, out.Type())
	}
	known := map[string]bool{}
	for _, f := range luaFields(out.Type()) {
		known[f.name] = true
		item, given := entries[f.name]
		if !given || item == nil {
			continue
		}
		x, err := into(s, ctx, item, f.Type)
		if err != nil {
			return under("."+f.name, err)
		}
		field, err := out.FieldByIndexErr(f.Index)
		if err != nil {
			return under("."+f.name, errors.New("is a field of an embedded pointer, which is nil"))
		}
		field.Set(x)
	}
	for name := range entries {
		if !known[name] {
			return fmt.Errorf("has the name %s, which is no field of %s", quote(name), typeText(out.Type()))
		}
	}
	return nil
}

// luaField is a field of a struct that scripts see, and its name there.
type luaField struct {
	name string
	reflect.StructField
}

// luaFields are the fields of a struct that scripts see: the exported ones, those of embedded structs among them, by
// their names or tags.
func luaFields(t reflect.Type) (out []luaField) {
	for _, f := range reflect.VisibleFields(t) {
		tag, tagged := f.Tag.Lookup("lua")
		if !f.IsExported() || f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct || tag == "-" {
			continue
		}
		name := f.Name
		if tagged {
			name = tag
		}
		out = append(out, luaField{name, f})
	}
	return out
}

// typedFunction is a function of a script as a Go function of a type. Errors are its last result, if that is an error;
// else they are panics, which the script that has called Go gets as its error.
func typedFunction(s *State, ctx context.Context, f Func, t reflect.Type) reflect.Value {
	return reflect.MakeFunc(t, func(in []reflect.Value) []reflect.Value {
		ctx := ctx
		if len(in) > 0 && t.In(0) == typeOfContext {
			if given, ok := in[0].Interface().(context.Context); ok {
				ctx = given
			}
			in = in[1:]
		}
		if t.IsVariadic() {
			last := in[len(in)-1]
			in = slices.Clip(in[:len(in)-1])
			for i := range last.Len() {
				in = append(in, last.Index(i))
			}
		}
		args := make([]any, len(in))
		for i, v := range in {
			args[i] = v.Interface()
		}
		n := t.NumOut()
		fails := n > 0 && t.Out(n-1) == typeOfError
		if fails {
			n--
		}
		out := make([]reflect.Value, t.NumOut())
		for i := range out {
			out[i] = reflect.Zero(t.Out(i))
		}
		results, err := f(ctx, args)
		for i := 0; i < n && err == nil; i++ {
			var v any
			if i < len(results) {
				v = results[i]
			}
			var x reflect.Value
			if x, err = into(s, ctx, v, t.Out(i)); err != nil {
				err = under(fmt.Sprintf("result %d of a script's function", i+1), err)
				break
			}
			out[i] = x
		}
		switch {
		case err != nil && !fails:
			panic(err)
		case err != nil:
			out[n] = reflect.ValueOf(&err).Elem()
		}
		return out
	})
}
