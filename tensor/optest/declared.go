package optest

import (
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Call is a function of mx as a Subject takes it, called through its signature: the inputs are its parameters that take
// arrays, in their order (one list of them, if the first parameter takes a list), and named are further arguments, a
// name and a value in turn: Call("roll", "shift", 2, "axis", 0).
func Call(name string, named ...any) Func {
	covered.Store(name, true)
	return func(in []*tensor.Array) []*tensor.Array {
		f := sig.Lookup(name)
		if f == nil {
			return []*tensor.Array{tensor.Fail(tensor.Call(nil), name, "there is no such function")}
		}
		args := map[string]any{}
		for i := 0; i < len(named); i += 2 {
			args[named[i].(string)] = named[i+1]
		}
		rest := make([]any, len(in))
		for i, x := range in {
			rest[i] = x
		}
		var pos []any
		switch first := &f.Params[0]; {
		case first.Many:
			pos = rest
		case first.Is(sig.KindArrays):
			args[first.Name] = rest
		default:
			for i := range f.Params {
				p := &f.Params[i]
				if _, given := args[p.Name]; takesArray(p) && !given && len(rest) > 0 {
					args[p.Name], rest = rest[0], rest[1:]
				}
			}
		}
		outs, err := Invoke(f, pos, args)
		if err != nil {
			return []*tensor.Array{tensor.FailWith(tensor.Call(nil), name, err)}
		}
		return outs
	}
}

func takesArray(p *sig.Param) bool {
	return arrayKind(p.Kind()) || p.Is(sig.KindArray) || p.Is(sig.KindIndices) || p.Is(sig.KindFill)
}

// Elementwise checks element-wise functions of as many arrays as there are generators, and where the arrays come from
// those they must be smooth. Dtypes that MLX refuses by the golden data are left out. The functions' names stand
// between spaces, and each is an op's name.
func Elementwise(t *testing.T, names string, gens ...Gen) {
	t.Helper()
	for _, name := range strings.Fields(names) {
		op := elementwise(t, name, gens)
		op.Second = true
		Run(t, op)
	}
}

// Flat is Elementwise for functions whose derivative is zero wherever there is one.
func Flat(t *testing.T, names string, gens ...Gen) {
	t.Helper()
	for _, name := range strings.Fields(names) {
		op := elementwise(t, name, gens)
		op.NonDiff = true
		Run(t, op)
	}
}

// elementwise is a function over arrays of one shape, of shapes that are broadcast, scalars and no elements.
func elementwise(t *testing.T, name string, gens []Gen) Subject {
	t.Helper()
	op := Subject{Name: name, Fn: Call(name)}
	refused := refusedDTypes(t, name)
	for _, d := range layoutDTypes {
		if !refused[d] {
			op.DTypes = append(op.DTypes, d)
		}
	}
	shapes := [][]string{{"n,m"}, {""}, {"0,n"}}
	if len(gens) > 1 {
		shapes = [][]string{{"n,m", "n,m"}, {"n,1", "m"}, {"", "n"}, {"0,n", "n"}}
	}
	for _, dims := range shapes {
		var c Case
		for i, g := range gens {
			c.Inputs = append(c.Inputs, In(dims[min(i, 1)], g))
		}
		op.Cases = append(op.Cases, c)
	}
	return op
}

// refusedDTypes are the dtypes of which MLX refuses to compute a function.
func refusedDTypes(t *testing.T, name string) map[tensor.DType]bool {
	t.Helper()
	refused, computed := map[tensor.DType]bool{}, map[tensor.DType]bool{}
	for _, c := range GoldenCalls(t) {
		if c.Fn != name {
			continue
		}
		for i := range c.Cases {
			specs := c.Specs(t, i)
			for _, s := range specs {
				if s.DType != specs[0].DType {
					specs = nil
					break
				}
			}
			if len(specs) > 0 && c.Cases[i].Refused {
				refused[specs[0].DType] = true
			} else if len(specs) > 0 {
				computed[specs[0].DType] = true
			}
		}
	}
	for d := range computed {
		delete(refused, d)
	}
	return refused
}
