package fast

import (
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// constantElements is the size below which an input is bound in the constant address space, as MLX does.
const constantElements = 8

// kernelAttributes are Metal's position attributes that a body may name, with their types.
var kernelAttributes = [...][2]string{
	{"dispatch_quadgroups_per_threadgroup", "uint"},
	{"dispatch_simdgroups_per_threadgroup", "uint"},
	{"dispatch_threads_per_threadgroup", "uint3"},
	{"grid_origin", "uint3"},
	{"grid_size", "uint3"},
	{"quadgroup_index_in_threadgroup", "uint"},
	{"quadgroups_per_threadgroup", "uint"},
	{"simdgroup_index_in_threadgroup", "uint"},
	{"simdgroups_per_threadgroup", "uint"},
	{"thread_execution_width", "uint"},
	{"thread_index_in_quadgroup", "uint"},
	{"thread_index_in_simdgroup", "uint"},
	{"thread_index_in_threadgroup", "uint"},
	{"thread_position_in_grid", "uint3"},
	{"thread_position_in_threadgroup", "uint3"},
	{"threadgroup_position_in_grid", "uint3"},
	{"threadgroups_per_grid", "uint3"},
	{"threads_per_grid", "uint3"},
	{"threads_per_simdgroup", "uint"},
	{"threads_per_threadgroup", "uint3"},
}

// kernelSource is a generated kernel and how its parameters are bound, in order.
type kernelSource struct {
	text  string
	entry string
	binds []kernelBind
}

type kernelBind struct {
	what bindKind
	of   int // input or output
}

type bindKind uint8

const (
	bindInput   bindKind = iota
	bindMutable          // of is the output
	bindShape
	bindStrides
	bindNDim
	bindOutput
)

// kernelSources remembers the latest generated kernels by what decides them.
var kernelSources kit.Cache[kernelVariant, kernelSource]

type kernelVariant struct {
	decl     unique.Handle[kernelDecl]
	template unique.Handle[string]
	dtypes   tensor.Ints
	inputs   tensor.Ints // of each the dtype, whether it is small and whether it has dimensions
}

// sourceFor is generate, without the work of it for a kernel that was generated before.
func sourceFor(a kernelAttrs, in []tensor.Spec) kernelSource {
	codes := make([]int, len(in))
	for i, s := range in {
		codes[i] = 4 * int(s.DType)
		if s.Shape.Size() < constantElements {
			codes[i]++
		}
		if len(s.Shape) == 0 {
			codes[i] += 2
		}
	}
	v := kernelVariant{a.decl, a.template, a.dtypes, tensor.MakeInts(codes)}
	return kernelSources.Get(v, func() kernelSource { return generate(a, in) })
}

// generate writes the kernel around the body as MLX does: a template if there are template arguments, inputs of fewer
// than 8 elements in constant memory unless they are mutable, inputs without dimensions as references, shapes, strides,
// ranks and positions where the body names them. #line directives make messages speak of the user's own lines.
func generate(a kernelAttrs, in []tensor.Spec) kernelSource {
	d := a.decl.Value()
	k := kernelSource{entry: "custom_kernel_" + identifier(d.name)}
	words := identifiers(d.source)
	var params []string
	param := func(what bindKind, of int, decl string) {
		params = append(params, fmt.Sprintf("  %s [[buffer(%d)]]", decl, len(k.binds)))
		k.binds = append(k.binds, kernelBind{what, of})
	}
	outputs, mutable := split(d.outputs), d.mutable.Slice()
	for i, name := range split(d.inputs) {
		s := in[i]
		what, of, space, ref := bindInput, i, "const device", "*"
		if n := slices.Index(mutable, i); n >= 0 {
			what, of, space = bindMutable, len(outputs)+n, "device"
		} else if s.Shape.Size() < constantElements {
			space = "const constant"
		}
		if len(s.Shape) == 0 {
			ref = "&"
		}
		param(what, of, space+" "+s.DType.MSL()+ref+" "+name)
		if len(s.Shape) == 0 {
			continue
		}
		if words[name+"_shape"] {
			param(bindShape, i, "const constant int* "+name+"_shape")
		}
		if words[name+"_strides"] {
			param(bindStrides, i, "const constant int64_t* "+name+"_strides")
		}
		if words[name+"_ndim"] {
			param(bindNDim, i, "const constant int& "+name+"_ndim")
		}
	}
	dtypes := a.dtypes.Slice()
	for i, name := range outputs {
		t := tensor.DType(dtypes[i]).MSL()
		if d.atomic {
			t = "atomic<" + t + ">"
		}
		param(bindOutput, i, "device "+t+"* "+name)
	}
	for _, attr := range kernelAttributes {
		if words[attr[0]] {
			params = append(params, "  "+attr[1]+" "+attr[0]+" [["+attr[0]+"]]")
		}
	}
	k.text = kernelText(d, a.template.Value(), k.entry, params)
	return k
}

func kernelText(d kernelDecl, template, entry string, params []string) string {
	var b strings.Builder
	if d.header != "" {
		fmt.Fprintf(&b, "#line 1 \"header\"\n%s\n", d.header)
	}
	b.WriteString("#line 1 \"signature\"\n")
	var formal, actual []string
	if template != "" {
		for _, t := range strings.Split(template, ";") {
			decl, value, _ := strings.Cut(t, "=")
			formal = append(formal, decl)
			actual = append(actual, value)
		}
		fmt.Fprintf(&b, "template <%s>\n", strings.Join(formal, ", "))
	}
	list := strings.Join(params, ",\n")
	fmt.Fprintf(&b, "[[kernel]] void %s(\n%s) {\n#line 1 \"source\"\n%s\n}\n", entry, list, d.source)
	if template != "" {
		instance := entry + "<" + strings.Join(actual, ", ") + ">"
		fmt.Fprintf(&b, "template [[host_name(\"%s\")]] [[kernel]] decltype(%s) %s;\n", entry, instance, instance)
	}
	return b.String()
}

func split(names string) []string {
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

// identifier turns a label into part of an identifier.
func identifier(label string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (r == '_' || isIdentifier("a"+string(r))) {
			return r
		}
		return '_'
	}, label)
}

// identifiers is the set of identifiers in a text. MLX searches for substrings; whole words are what users mean.
func identifiers(text string) map[string]bool {
	words := map[string]bool{}
	start := -1
	for i := 0; i <= len(text); i++ {
		inWord := i < len(text) && isIdentifier("a"+text[i:i+1])
		switch {
		case inWord && start < 0:
			start = i
		case !inWord && start >= 0:
			words[text[start:i]] = true
			start = -1
		}
	}
	return words
}

// runKernel generates the source for the inputs at hand, binds and dispatches it.
func runKernel(r *tensor.Run, a kernelAttrs) error {
	d := a.decl.Value()
	if err := r.Unchecked(); err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	specs := make([]tensor.Spec, a.operands)
	inputs := make([]tensor.Operand, a.operands)
	for i := range specs {
		specs[i] = r.In[i].Spec
		var err error
		if d.strided {
			inputs[i], err = r.Expanded(i)
		} else {
			inputs[i], err = r.Contiguous(i)
		}
		if err != nil {
			return err
		}
	}
	outputs, mutable := r.Out[:len(a.shapes.Slice())], d.mutable.Slice()
	for i, of := range mutable {
		inputs[of] = r.Out[len(outputs)+i]
	}
	k := sourceFor(a, specs)
	options := metal.Options{MathMode: d.mathMode, Constants: a.constants.Value()}
	p, err := r.Kernel(metal.Source{Label: d.name, Text: k.text, Options: options}, k.entry)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	if a.hasInit {
		for _, out := range outputs {
			element, err := ops.AppendNumber(nil, a.init.Float(), out.DType)
			if err != nil {
				return fmt.Errorf("%s: init_value: %w", d.name, err)
			}
			if err := r.Fill(out, element); err != nil {
				return err
			}
		}
	}
	l := r.Prepared.(launch)
	if l.grid.Count() == 0 {
		return nil
	}
	if err := k.check(d, p); err != nil {
		return err
	}
	args := make([]tensor.Arg, len(k.binds))
	for i, bind := range k.binds {
		switch bind.what {
		case bindInput:
			args[i] = inputs[bind.of].Only()
		case bindShape:
			args[i] = tensor.Const(toInt32(specs[bind.of].Shape))
		case bindStrides:
			args[i] = tensor.Const(toInt64(inputs[bind.of].Strides))
		case bindNDim:
			args[i] = tensor.Const(int32(len(specs[bind.of].Shape)))
		case bindMutable, bindOutput:
			args[i] = r.Out[bind.of].Only()
		}
	}
	return r.Dispatch(p, l.grid, l.group, args...)
}

// check refuses a pipeline that is not of the generated signature, which a header's macros can change: inputs are const
// there, so that no write to them goes unnoticed.
func (k kernelSource) check(d kernelDecl, p *metal.Pipeline) error {
	params := p.Params()
	if len(params) != len(k.binds) {
		return fmt.Errorf("%s: the kernel has %d parameters, its signature %d: the header changes it", d.name, len(params),
			len(k.binds))
	}
	for i, bind := range k.binds {
		if bind.what == bindInput && !params[i].ReadOnly {
			return fmt.Errorf("%s: the header changes what const means in the kernel's signature: its input %s could be "+
				"written, see mutable_inputs", d.name, params[i].Name)
		}
	}
	return nil
}

func toInt32(v []int) []int32 {
	out := make([]int32, len(v))
	for i, x := range v {
		out[i] = int32(x)
	}
	return out
}

func toInt64(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}
