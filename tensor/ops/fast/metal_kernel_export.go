package fast

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unique"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// AttrSchema implements tensor.AttrWriter.
func (kernelAttrs) AttrSchema() string { return "metal_kernel 3" }

// AppendAttr implements tensor.AttrWriter. Of a function of shapes it writes what it gives for these inputs: a file
// holds no functions.
func (a kernelAttrs) AppendAttr(b []byte, in []tensor.Spec) ([]byte, error) {
	d := a.decl.Value()
	for _, text := range []string{d.name, d.inputs, d.outputs, d.source, d.header, a.template.Value(),
		a.constants.Value()} {
		b = tensor.AppendText(b, text)
	}
	for _, n := range []int{flag(d.strided), flag(d.atomic), int(d.mathMode), a.operands, flag(a.hasInit), int(a.init)} {
		b = tensor.AppendInt(b, n)
	}
	b, _ = d.mutable.AppendAttr(b, in)
	for _, e := range []extentAttr{a.grid, a.group} {
		b, _ = e.dims.AppendAttr(tensor.AppendInt(b, flag(e.total)), in) // it cannot fail
	}
	b, _ = a.shapes.AppendAttr(b, in)
	for _, code := range a.dtypes.Slice() {
		b, _ = tensor.DType(code).AppendAttr(b, in)
	}
	if a.funcs == nil {
		return tensor.AppendInt(b, 0), nil
	}
	b = tensor.AppendInt(b, 1)
	if len(in) < a.operands {
		return nil, fmt.Errorf("%s has %s of %d", d.name, tensor.Count(len(in), "input"), a.operands)
	}
	for _, s := range in[:a.operands] {
		b, _ = tensor.MakeInts(append([]int{}, s.Shape...)).AppendAttr(b, in)
	}
	for _, f := range a.funcs.all() {
		if f == nil {
			b, _ = tensor.Ints{}.AppendAttr(b, in)
			continue
		}
		out, err := f.Call(in[:a.operands])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		b, _ = tensor.MakeInts(append([]int{}, out...)).AppendAttr(b, in)
	}
	return b, nil
}

// all lists the functions: those of the outputs, the grid's and the threadgroup's.
func (f *kernelFuncs) all() []*tensor.ShapeFunc {
	return append(slices.Clip(f.shapes), f.grid, f.group)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ParseAttr implements tensor.AttrReader.
func (a *kernelAttrs) ParseAttr(b []byte) ([]byte, error) {
	var texts [7]string
	var err error
	for i := range texts {
		if texts[i], b, err = tensor.ParseText(b); err != nil {
			return nil, err
		}
	}
	var n [6]int
	for i := range n {
		if n[i], b, err = tensor.ParseInt(b); err != nil {
			return nil, err
		}
	}
	var indices tensor.Ints
	if b, err = indices.ParseAttr(b); err != nil {
		return nil, err
	}
	inputs, mutable := split(texts[1]), []string(nil)
	for _, i := range indices.Slice() {
		if i < 0 || i >= len(inputs) {
			return nil, fmt.Errorf("%s has %s, and its input %d is mutable", texts[0], tensor.Count(len(inputs), "input"), i)
		}
		mutable = append(mutable, inputs[i])
	}
	k, err := NewMetalKernel(KernelConfig{Name: texts[0], InputNames: inputs, OutputNames: split(texts[2]),
		MutableInputs: mutable, Source: texts[3], Header: texts[4], Strided: n[0] != 0, AtomicOutputs: n[1] != 0,
		MathMode: metal.MathMode(n[2])})
	if err != nil {
		return nil, err
	}
	if _, err := metal.ParseConstants(texts[6]); err != nil {
		return nil, err
	}
	*a = kernelAttrs{decl: k.decl, template: unique.Make(texts[5]), constants: unique.Make(texts[6]), operands: n[3],
		hasInit: n[4] != 0, init: tensor.F64(n[5])}
	if n[2] < int(metal.MathFast) || n[2] > int(metal.MathSafe) || a.operands != len(k.names.in) {
		return nil, fmt.Errorf("%s has %d operands and the math mode %d", k, a.operands, n[2])
	}
	for _, e := range []*extentAttr{&a.grid, &a.group} {
		var total int
		if total, b, err = tensor.ParseInt(b); err != nil {
			return nil, err
		}
		if b, err = e.dims.ParseAttr(b); err != nil {
			return nil, err
		}
		e.total = total != 0
	}
	if b, err = a.shapes.ParseAttr(b); err != nil {
		return nil, err
	}
	codes := make([]int, len(k.names.out))
	for i := range codes {
		var d tensor.DType
		if b, err = d.ParseAttr(b); err != nil {
			return nil, err
		}
		codes[i] = int(d)
	}
	a.dtypes = tensor.MakeInts(codes)
	if n := len(a.shapes.Slice()); n != len(codes) {
		return nil, fmt.Errorf("%s has %s", k, tensor.Count(n, "shape"))
	}
	for _, part := range strings.Split(texts[5], ";") {
		if texts[5] != "" && !templatePart.MatchString(part) {
			return nil, fmt.Errorf("%s has the template argument %q", k, part)
		}
	}
	return a.parseFuncs(b, len(k.names.out))
}

// templatePart is an argument of a template as templateText writes it.
var templatePart = regexp.MustCompile(`^(typename [A-Za-z_][A-Za-z_0-9]*=[a-z_0-9]+|` +
	`int [A-Za-z_][A-Za-z_0-9]*=-?[0-9]+|bool [A-Za-z_][A-Za-z_0-9]*=(true|false))$`)

// parseFuncs reads what functions of shapes gave. They give it again for the same shapes, and an error for others.
func (a *kernelAttrs) parseFuncs(b []byte, outs int) ([]byte, error) {
	some, b, err := tensor.ParseInt(b)
	if err != nil || some == 0 {
		return b, err
	}
	shapes := make([]tensor.Shape, a.operands)
	for i := range shapes {
		var s tensor.Ints
		if b, err = s.ParseAttr(b); err != nil {
			return nil, err
		}
		shapes[i] = s.Slice()
	}
	funcs := make([]*tensor.ShapeFunc, outs+2)
	for i := range funcs {
		var given tensor.Ints
		if b, err = given.ParseAttr(b); err != nil {
			return nil, err
		}
		if given.IsNil() {
			continue
		}
		funcs[i] = &tensor.ShapeFunc{F: func(in []tensor.Shape) ([]int, error) {
			if !slices.EqualFunc(in, shapes, tensor.Shape.Equal) {
				return nil, fmt.Errorf("a function of shapes was exported for the shapes %v: these are %v", shapes, in)
			}
			return given.Slice(), nil
		}}
	}
	a.funcs = &kernelFuncs{shapes: funcs[:outs], grid: funcs[outs], group: funcs[outs+1]}
	return b, nil
}
