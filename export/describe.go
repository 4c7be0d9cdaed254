package export

import (
	"context"
	"reflect"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/tensor"
)

// Named is a value of a trace, which has a letter for its name.
type Named struct {
	Name  string
	Spec  tensor.Spec
	Array *tensor.Array // of a constant
}

// Called is a call in a trace.
type Called struct {
	Op              string
	Inputs, Outputs []Named
	Attrs           []any // bools, numbers, strings, dtypes, lists of integers
}

// Description says in names what a trace consists of.
type Description struct {
	Inputs, Outputs, Constants []Named
	Calls                      []Called
}

// Describe gives names to what the trace has, at the shapes it was recorded for.
func (t *Trace) Describe(ctx context.Context) (*Description, error) {
	g := t.Program.Graph(len(t.Inputs))
	specs, err := t.specs(ctx, g)
	if err != nil {
		return nil, err
	}
	names := map[compile.Ref]string{}
	list := func(refs []compile.Ref) (out []Named) {
		for _, r := range refs {
			if names[r] == "" {
				names[r] = letters(len(names))
			}
			v := Named{Name: names[r], Spec: specs[r]}
			if r.Kind == 'c' {
				v.Array = g.Consts[r.I]
			}
			out = append(out, v)
		}
		return out
	}
	numbered := func(kind byte, first, n int) []Named {
		refs := make([]compile.Ref, n)
		for i := range refs {
			refs[i] = compile.Ref{Kind: kind, I: first + i}
		}
		return list(refs)
	}
	d := &Description{Inputs: numbered('i', 0, g.Inputs), Outputs: list(g.Outs),
		Constants: numbered('c', 0, len(g.Consts))}
	slots := 0
	for _, s := range g.Steps {
		call := Called{Op: s.Op.Name(), Inputs: list(s.In), Outputs: numbered('s', slots, s.Outs)}
		call.Attrs = attributes(call.Attrs, reflect.ValueOf(s.Attrs))
		d.Calls = append(d.Calls, call)
		slots += s.Outs
	}
	return d, nil
}

// attributes appends the fields of attributes.
func attributes(out []any, v reflect.Value) []any {
	if v.CanInterface() {
		switch x := v.Interface().(type) {
		case tensor.DType:
			return append(out, x)
		case tensor.F64:
			return append(out, x.Float())
		case tensor.Ints:
			return append(out, x.Slice())
		case interface{ String() string }:
			return append(out, x.String())
		}
	}
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			out = attributes(out, v.Field(i))
		}
	case v.Kind() == reflect.Bool:
		out = append(out, v.Bool())
	case v.Kind() == reflect.String:
		out = append(out, v.String())
	case v.CanInt():
		out = append(out, float64(v.Int()))
	case v.CanUint():
		out = append(out, float64(v.Uint()))
	}
	return out
}
