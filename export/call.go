package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// Call calls the function: it gives the outputs of the trace that the inputs fit, lazily. What it makes is a graph of
// ops like any other, which has gradients and batches. It is an error if no trace fits.
func (f *File) Call(c *tensor.Ctx, in Inputs) ([]*tensor.Array, error) {
	c = tensor.Call([]*tensor.Ctx{c})
	xs, names := in.list(), in.names()
	specs := make([]tensor.Spec, len(xs))
	for i, x := range xs {
		if x == nil {
			return nil, c.Errorf("import_function", "input %d is nil", i)
		}
		if err := x.Err(); err != nil {
			return nil, err
		}
		specs[i] = x.Spec()
	}
	var misfit error
	for _, t := range f.Traces {
		if t.Positional != len(in.Positional) || !slices.Equal(t.Names, names) || !f.fit(t, specs) {
			continue
		}
		outs, err := t.Program.Call(c, xs...)
		if err == nil {
			return outs, nil
		}
		if misfit == nil {
			misfit = err
		}
	}
	if misfit != nil {
		return nil, c.Errorf("import_function", "no trace in the file fits the inputs %s: %w",
			describe(len(in.Positional), names, specs), misfit)
	}
	var takes []string
	for _, t := range f.Traces {
		takes = append(takes, describe(t.Positional, t.Names, t.Inputs))
	}
	kind := "takes"
	if f.Shapeless {
		kind = "takes, at any sizes,"
	}
	const shown = 8
	if more := len(takes) - shown; more > 0 {
		takes = append(takes[:shown], fmt.Sprintf("%d more", more))
	}
	return nil, c.Errorf("import_function", "the inputs are %s; the function in the file %s %s",
		describe(len(in.Positional), names, specs), kind, strings.Join(takes, " or "))
}

// fit reports whether inputs of those specs are such as a trace was made for.
func (f *File) fit(t *Trace, specs []tensor.Spec) bool {
	return slices.EqualFunc(t.Inputs, specs, func(a, b tensor.Spec) bool {
		return a.DType == b.DType && len(a.Shape) == len(b.Shape) && (f.Shapeless || a.Shape.Equal(b.Shape))
	})
}

// describe lists inputs: "(float32 (3), z = int32 ())".
func describe(positional int, names []string, specs []tensor.Spec) string {
	parts := make([]string, len(specs))
	for i, s := range specs {
		parts[i] = s.String()
		if i >= positional {
			parts[i] = names[i-positional] + " = " + parts[i]
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
