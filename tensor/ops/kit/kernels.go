package kit

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// Kernels are the kernels of a .metal file in their variants. A variant is a struct: each field becomes a macro that
// the text asks for, in capitals (wholeRows is WHOLE_ROWS). A dtype is its MSL type, true is 1, a string stands as it
// is; fields of structs within count as the variant's own, pointers as none. A method Macros() string of the variant
// gives MSL that stands between those macros and the text. What a variant needs is put together once: it takes longer
// than a launch.
type Kernels[V comparable] struct {
	text    string
	sources Cache[V, metal.Source]
}

// NewKernels are the kernels of a text, which may have parts.
func NewKernels[V comparable](text ...string) *Kernels[V] {
	if reflect.TypeFor[V]().Kind() != reflect.Struct {
		panic(fmt.Sprintf("BUG: variants are %v, no struct", reflect.TypeFor[V]()))
	}
	return &Kernels[V]{text: strings.Join(text, "\n")}
}

// Plain is the variant of a text that has one only.
type Plain struct{}

// Source is a variant's text with the options of built-in kernels: the portable dialect, and double where a macro is
// float64.
func (k *Kernels[V]) Source(v V) metal.Source {
	return k.sources.Get(v, func() metal.Source {
		var text strings.Builder
		float64s := define(&text, reflect.ValueOf(v))
		if m, ok := any(v).(interface{ Macros() string }); ok {
			text.WriteString(m.Macros())
		}
		text.WriteString(k.text)
		return metal.Source{
			Text:    text.String(),
			Options: metal.Options{MathMode: metal.MathSafe, Portable: true, Float64: float64s},
		}
	})
}

// define writes a macro for each field of a variant, and reports whether one is float64.
func define(text *strings.Builder, v reflect.Value) (float64s bool) {
	for i := range v.NumField() {
		f, field := v.Field(i), v.Type().Field(i)
		name := macroName(field.Name)
		switch {
		case field.Type == reflect.TypeFor[tensor.DType]():
			d := tensor.DType(f.Uint())
			float64s = float64s || d == tensor.Float64
			fmt.Fprintf(text, "#define %s %s\n", name, d.MSL())
		case f.Kind() == reflect.Struct:
			float64s = define(text, f) || float64s
		case f.Kind() == reflect.Bool && f.Bool():
			fmt.Fprintf(text, "#define %s 1\n", name)
		case f.Kind() == reflect.Bool:
			fmt.Fprintf(text, "#define %s 0\n", name)
		case f.CanInt():
			fmt.Fprintf(text, "#define %s %d\n", name, f.Int())
		case f.CanUint():
			fmt.Fprintf(text, "#define %s %d\n", name, f.Uint())
		case f.Kind() == reflect.String:
			fmt.Fprintf(text, "#define %s %s\n", name, f.String())
		case f.Kind() == reflect.Pointer:
		default:
			panic(fmt.Sprintf("BUG: field %s of a variant is a %v", field.Name, field.Type))
		}
	}
	return float64s
}

// macroName is a field's name as a macro's.
func macroName(field string) string {
	var b strings.Builder
	lower := false
	for _, r := range field {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// Pipeline is an entry point of a variant, for rules that launch it more than once.
func (k *Kernels[V]) Pipeline(r *tensor.Run, v V, entry string) (*metal.Pipeline, error) {
	src := k.Source(v)
	src.Label = r.OpName()
	return r.Kernel(src, entry)
}

// Launch runs an entry point of a variant over a grid, with arguments in the order of its parameters.
func (k *Kernels[V]) Launch(r *tensor.Run, v V, entry string, over Grid, args ...tensor.Arg) error {
	p, err := k.Pipeline(r, v, entry)
	if err != nil {
		return err
	}
	return r.Dispatch(p, over.Threads, over.Group, args...)
}
