package fast

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// KernelConfig declares a custom kernel: the arguments of mx.fast.metal_kernel.
type KernelConfig struct {
	Name        string   // a label for messages; kernels are told apart by their content
	InputNames  []string // the inputs' names in Source
	OutputNames []string // the outputs' names in Source; at least one unless there are MutableInputs
	// MutableInputs are those of InputNames that the kernel may change: it gets a copy of such an input, or its own
	// memory where nobody else holds it, as device T*. What that holds afterwards is a further output of each call, behind
	// those of OutputNames. Writes to any other input are errors.
	MutableInputs []string
	Source        string // the kernel's body in MSL; its signature is generated
	Header        string // MSL before the kernel: includes, helper functions, macros
	// Strided hands inputs that are not row-contiguous to the kernel as they are (MLX's ensure_row_contiguous=False);
	// the body then uses <name>_strides. By default such inputs are copied first.
	Strided       bool
	AtomicOutputs bool           // outputs are device atomic<T>*
	MathMode      metal.MathMode // compile_options.math_mode; MLX's default is metal.MathSafe
}

// MetalKernel is a declared custom kernel. It may be called by any goroutine.
type MetalKernel struct {
	decl  unique.Handle[kernelDecl]
	names kernelNames
}

// kernelDecl is the content of a declaration: two declarations of the same content are one.
type kernelDecl struct {
	name, inputs, outputs, source, header string
	mutable                               tensor.Ints // which inputs are, in the order of the outputs
	strided, atomic                       bool
	mathMode                              metal.MathMode
}

// kernelNames are those of a declaration; results are out and the mutable inputs.
type kernelNames struct{ in, out, results []string }

// NewMetalKernel declares a kernel; see KernelConfig. It fails if a name is not an identifier or stands twice.
func NewMetalKernel(cfg KernelConfig) (*MetalKernel, error) {
	if cfg.Name == "" {
		return nil, errors.New("[metal_kernel] name is empty")
	}
	if len(cfg.OutputNames)+len(cfg.MutableInputs) == 0 {
		return nil, fmt.Errorf("[metal_kernel] %s: output_names is empty, a kernel needs at least one output", cfg.Name)
	}
	seen := map[string]bool{}
	for _, list := range [][]string{cfg.InputNames, cfg.OutputNames} {
		for _, n := range list {
			if !isIdentifier(n) {
				return nil, fmt.Errorf("[metal_kernel] %s: %q is not a valid name for an input or output", cfg.Name, n)
			}
			if seen[n] {
				return nil, fmt.Errorf("[metal_kernel] %s: the name %q is given twice", cfg.Name, n)
			}
			seen[n] = true
		}
	}
	var mutable []int
	for _, n := range cfg.MutableInputs {
		i := slices.Index(cfg.InputNames, n)
		if i < 0 {
			return nil, fmt.Errorf("[metal_kernel] %s: mutable_inputs has %q, which is none of the inputs %s", cfg.Name, n,
				strings.Join(cfg.InputNames, ", "))
		}
		if slices.Contains(mutable, i) {
			return nil, fmt.Errorf("[metal_kernel] %s: mutable_inputs has %q twice", cfg.Name, n)
		}
		mutable = append(mutable, i)
	}
	d := kernelDecl{cfg.Name, strings.Join(cfg.InputNames, ","), strings.Join(cfg.OutputNames, ","), cfg.Source,
		cfg.Header, tensor.MakeInts(mutable), cfg.Strided, cfg.AtomicOutputs, cfg.MathMode}
	names := kernelNames{slices.Clone(cfg.InputNames), slices.Clone(cfg.OutputNames),
		slices.Concat(cfg.OutputNames, cfg.MutableInputs)}
	return &MetalKernel{unique.Make(d), names}, nil
}

// Bytes is about what the declaration takes in memory.
func (k *MetalKernel) Bytes() int64 {
	const beside = 400 // with the table of all declarations
	d := k.decl.Value()
	n := beside + len(d.name) + len(d.source) + len(d.header) + 2*(len(d.inputs)+len(d.outputs))
	return int64(n + 16*(len(k.names.in)+len(k.names.out)))
}

// String is the kernel's name with those of its inputs and outputs.
func (k *MetalKernel) String() string {
	return fmt.Sprintf("metal_kernel %s(%s) -> %s", k.decl.Value().name, strings.Join(k.names.in, ", "),
		strings.Join(k.names.results, ", "))
}

func isIdentifier(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// TemplateArg is a template argument of a custom kernel: Value is a tensor.DType, an int or a bool.
type TemplateArg struct {
	Name  string
	Value any
}

// Constant is a value for a function constant.
type Constant = metal.Constant

// Extent is a kernel's grid or threadgroup, in threads. Give one of its fields.
type Extent struct {
	Dims  tensor.ShapeArg   // one to three sizes, numbers or dimensions of arrays; missing ones are 1
	Cover *tensor.Array     // as many threads in x as this array has elements
	Func  *tensor.ShapeFunc // one to three sizes computed from the inputs' shapes
}

// Threads is an Extent of numbers.
func Threads(n ...int) Extent { return Extent{Dims: tensor.Sizes(n...)} }

// OutputShape is the shape of a custom kernel's output: Dims, or Func of the inputs' shapes.
type OutputShape struct {
	Dims tensor.ShapeArg
	Func *tensor.ShapeFunc
}

// KernelCall is the arguments of a call of a custom kernel.
type KernelCall struct {
	Inputs       []*tensor.Array
	Template     []TemplateArg
	Grid         Extent // threads, not threadgroups
	Threadgroup  Extent // cut to the grid in each dimension, as Metal's dispatchThreads does
	OutputShapes []OutputShape
	OutputDTypes []tensor.DType
	InitValue    *float64 // outputs are filled with it before the launch, but for mutable inputs
	// Constants are the values of function constants that the header declares.
	Constants []Constant
	// Verbose, if not nil, is given the generated source text at the call.
	Verbose func(source string)
}

// kernelAttrs is a call as the user wrote it.
type kernelAttrs struct {
	decl     unique.Handle[kernelDecl]
	template unique.Handle[string] // "typename T=float;int N=3", see templateText
	// constants are those of the function, as metal.ConstantsText writes them.
	constants unique.Handle[string]
	operands  int // inputs of the kernel; arrays that stand for shapes follow
	grid      extentAttr
	group     extentAttr
	shapes    tensor.DimsList // entry i is the i-th output's, unless funcs has it
	dtypes    tensor.Ints
	init      tensor.F64
	hasInit   bool
	funcs     *kernelFuncs // nil if no shape is a function
}

type extentAttr struct {
	dims  tensor.Dims
	total bool // dims is a whole shape, its element count is meant
}

type kernelFuncs struct {
	shapes      []*tensor.ShapeFunc // nil entries: in attrs.shapes
	grid, group *tensor.ShapeFunc
}

// launch is what a call's shapes come to; Prepare makes it.
type launch struct{ grid, group metal.Size }

var metalKernelOp = tensor.Declare[kernelAttrs]("metal_kernel")

// Call launches the kernel: the graph's node runs it when its outputs are evaluated. The result has one array for each
// output name, and one for each mutable input. There is no gradient: wrap the call in a custom_function to give it one.
func (k *MetalKernel) Call(call KernelCall, ctx ...*tensor.Ctx) []*tensor.Array {
	c := tensor.Call(ctx)
	attrs, in, err := k.attrs(call)
	if err != nil {
		return repeatFail(c, len(k.names.results), err)
	}
	if call.Verbose != nil {
		specs := make([]tensor.Spec, len(call.Inputs))
		for i, x := range call.Inputs {
			specs[i] = x.Spec()
		}
		call.Verbose(generate(attrs, specs).text)
	}
	out := metalKernelOp.Call(c, attrs, in...)
	if len(out) != len(k.names.results) {
		return repeatFail(c, len(k.names.results), out[0].Err())
	}
	return out
}

func repeatFail(c *tensor.Ctx, n int, err error) []*tensor.Array {
	out := make([]*tensor.Array, n)
	for i := range out {
		out[i] = tensor.FailWith(c, "metal_kernel", err)
	}
	return out
}

// attrs checks a call's arguments and turns them into attributes and inputs.
func (k *MetalKernel) attrs(call KernelCall) (kernelAttrs, []*tensor.Array, error) {
	name := k.decl.Value().name
	for _, n := range []struct {
		what      string
		got, want int
	}{
		{"inputs", len(call.Inputs), len(k.names.in)},
		{"output_shapes", len(call.OutputShapes), len(k.names.out)},
		{"output_dtypes", len(call.OutputDTypes), len(k.names.out)},
	} {
		if n.got != n.want {
			return kernelAttrs{}, nil, fmt.Errorf("%s: %s has %d entries, the kernel declares %d", name, n.what, n.got, n.want)
		}
	}
	template, err := templateText(call.Template)
	if err != nil {
		return kernelAttrs{}, nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, t := range call.Template {
		for what, names := range map[string][]string{"input": k.names.in, "output": k.names.out} {
			if slices.Contains(names, t.Name) {
				return kernelAttrs{}, nil, fmt.Errorf("%s: '%s' is the name of a template argument and of an %s", name, t.Name,
					what)
			}
		}
	}
	constants, err := metal.ConstantsText(call.Constants)
	if err != nil {
		return kernelAttrs{}, nil, fmt.Errorf("%s: constants: %w", name, err)
	}
	a := kernelAttrs{decl: k.decl, template: unique.Make(template), constants: unique.Make(constants),
		operands: len(call.Inputs)}
	in := append([]*tensor.Array(nil), call.Inputs...)
	var funcs kernelFuncs
	a.grid, in, funcs.grid = bindExtent(call.Grid, in)
	a.group, in, funcs.group = bindExtent(call.Threadgroup, in)
	dims := make([]tensor.Dims, len(call.OutputShapes))
	funcs.shapes = make([]*tensor.ShapeFunc, len(call.OutputShapes))
	useFuncs := funcs.grid != nil || funcs.group != nil
	for i, s := range call.OutputShapes {
		if funcs.shapes[i] = s.Func; s.Func != nil {
			useFuncs = true
			continue
		}
		dims[i], in = s.Dims.Bind(in)
	}
	if useFuncs {
		a.funcs = &funcs
	}
	a.shapes = tensor.MakeDimsList(dims...)
	codes := make([]int, len(call.OutputDTypes))
	for i, d := range call.OutputDTypes {
		codes[i] = int(d)
	}
	a.dtypes = tensor.MakeInts(codes)
	if call.InitValue != nil {
		for _, d := range call.OutputDTypes {
			if _, err := ops.AppendNumber(nil, *call.InitValue, d); err != nil {
				return kernelAttrs{}, nil, fmt.Errorf("%s: init_value: %w", name, err)
			}
		}
		a.init, a.hasInit = tensor.MakeF64(*call.InitValue), true
	}
	return a, in, nil
}

func bindExtent(e Extent, in []*tensor.Array) (extentAttr, []*tensor.Array, *tensor.ShapeFunc) {
	if e.Func != nil {
		return extentAttr{}, in, e.Func
	}
	if e.Cover != nil {
		d, in := tensor.ShapeOf(e.Cover).Bind(in)
		return extentAttr{d, true}, in, nil
	}
	d, in := e.Dims.Bind(in)
	return extentAttr{dims: d}, in, nil
}

// templateText is the template arguments in one string: "typename T=float;int N=3;bool B=true".
func templateText(args []TemplateArg) (string, error) {
	seen := map[string]bool{}
	parts := make([]string, len(args))
	for i, t := range args {
		if !isIdentifier(t.Name) {
			return "", fmt.Errorf("template argument %q is not a valid name", t.Name)
		}
		if seen[t.Name] {
			return "", fmt.Errorf("template argument %q is given twice", t.Name)
		}
		seen[t.Name] = true
		switch v := t.Value.(type) {
		case tensor.DType:
			parts[i] = "typename " + t.Name + "=" + v.MSL()
		case int:
			if int(int32(v)) != v {
				return "", fmt.Errorf("template argument %s = %d is not an int32", t.Name, v)
			}
			parts[i] = fmt.Sprintf("int %s=%d", t.Name, v)
		case bool:
			parts[i] = fmt.Sprintf("bool %s=%t", t.Name, v)
		default:
			return "", fmt.Errorf("template argument %s is a %T, want a dtype, an integer or a bool", t.Name, t.Value)
		}
	}
	return strings.Join(parts, ";"), nil
}

func init() {
	metalKernelOp.Define(tensor.Rules[kernelAttrs]{
		Shape:    kernelShapes,
		DType:    kernelDTypes,
		SpecFrom: func(a kernelAttrs, _ int) int { return a.operands },
		Prepare:  func(in []tensor.Spec, a kernelAttrs) (any, error) { return prepareLaunch(in, a) },
		Fixed:    kernelFixed,
		Updates:  kernelUpdates,
		Partial:  true,
		Covers:   func(a kernelAttrs) bool { return a.hasInit },
		Run:      runKernel,
	})
}

func kernelShapes(in []tensor.Spec, a kernelAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
	for i, d := range a.shapes.Slice() {
		var n []int
		var err error
		if a.funcs != nil && a.funcs.shapes[i] != nil {
			n, err = a.funcs.shapes[i].Call(in[:a.operands])
		} else {
			n, err = d.Resolve(in)
		}
		if err != nil {
			d := a.decl.Value()
			return nil, fmt.Errorf("%s: the shape of output %s: %w", d.name, split(d.outputs)[i], err)
		}
		outs = append(outs, n)
	}
	for _, i := range a.decl.Value().mutable.Slice() {
		outs = append(outs, in[i].Shape)
	}
	return outs, nil
}

func kernelDTypes(in []tensor.Spec, a kernelAttrs, outs []tensor.DType) ([]tensor.DType, error) {
	var some [8]int
	for _, code := range a.dtypes.Append(some[:0]) {
		outs = append(outs, tensor.DType(code))
	}
	for _, i := range a.decl.Value().mutable.Slice() {
		outs = append(outs, in[i].DType)
	}
	return outs, nil
}

// kernelUpdates is the input that output out starts as, of those that the kernel may change.
func kernelUpdates(a kernelAttrs, out int) int {
	mutable := a.decl.Value().mutable.Slice()
	if i := out - len(a.shapes.Slice()); i >= 0 {
		return mutable[i]
	}
	return -1
}

// kernelFixed reports whether grid or an output's shape is all numbers: a call at other input shapes is then another
// call.
func kernelFixed(a kernelAttrs) bool {
	if f := a.funcs; (f == nil || f.grid == nil) && a.grid.dims.IsConst() {
		return true
	}
	for i, d := range a.shapes.Slice() {
		if f := a.funcs; (f == nil || f.shapes[i] == nil) && d.IsConst() {
			return true
		}
	}
	return false
}

func prepareLaunch(in []tensor.Spec, a kernelAttrs) (launch, error) {
	var l launch
	var err error
	var gridFn, groupFn *tensor.ShapeFunc
	if a.funcs != nil {
		gridFn, groupFn = a.funcs.grid, a.funcs.group
	}
	name := a.decl.Value().name
	if l.grid, err = extent(in, a, a.grid, gridFn); err != nil {
		return l, fmt.Errorf("%s: grid: %w", name, err)
	}
	if l.group, err = extent(in, a, a.group, groupFn); err != nil {
		return l, fmt.Errorf("%s: threadgroup: %w", name, err)
	}
	if l.group.X == 0 || l.group.Y == 0 || l.group.Z == 0 {
		return l, fmt.Errorf("%s: threadgroup (%d, %d, %d) has no threads", name, l.group.X, l.group.Y, l.group.Z)
	}
	return l, nil
}

func extent(in []tensor.Spec, a kernelAttrs, e extentAttr, f *tensor.ShapeFunc) (metal.Size, error) {
	var n []int
	var err error
	if f != nil {
		n, err = f.Call(in[:a.operands])
	} else {
		n, err = e.dims.Resolve(in)
	}
	if err != nil {
		return metal.Size{}, err
	}
	if e.total {
		n = []int{tensor.Shape(n).Size()}
	}
	if len(n) < 1 || len(n) > 3 {
		return metal.Size{}, fmt.Errorf("it has %d sizes %v, want 1 to 3", len(n), tensor.Shape(n))
	}
	for _, v := range n {
		if v < 0 || v > 1<<31-1 {
			return metal.Size{}, fmt.Errorf("size %d of %v is not between 0 and 2147483647", v, tensor.Shape(n))
		}
	}
	n = append(n, 1, 1)
	return metal.Size{X: n[0], Y: n[1], Z: n[2]}, nil
}
