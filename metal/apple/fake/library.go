package fake

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"

	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// Metal's numbers.
const (
	mathFast            = 2
	compileFailure      = 3
	mostThreadgroup     = 32 << 10
	mostThreads         = 1024
	mostBuffers         = 31
	languageVersion31   = 3<<16 | 1
	codePageFault       = 3
	codeIgnored         = 4
	codeInvalidResource = 9
)

// compileOptions is MTLCompileOptions.
type compileOptions struct {
	version   uint64 // 0: nobody set it, and the newest of the system is meant
	fast      bool
	mode      int64 // of numbers, from macOS 15 on
	functions int64
}

// MathModes are the modes of all texts so far, and of their functions, as Metal's numbers. Before macOS 15 only Fast
// counts.
func (r *Runtime) MathModes() (modes [][2]int64, fast []bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.options {
		modes, fast = append(modes, [2]int64{o.mode, o.functions}), append(fast, o.fast)
	}
	return modes, fast
}

// library is MTLLibrary.
type library struct {
	src  msl.Source
	text *msl.Library // with no constants
}

// function is MTLFunction.
type function struct {
	text  *msl.Library
	index int
}

// constants is MTLFunctionConstantValues.
type constants struct{ list []msl.FunctionConstant }

// descriptor is MTLComputePipelineDescriptor.
type descriptor struct {
	function *object
	threads  int
}

// pipeline is MTLComputePipelineState: a kernel, with what runs it.
type pipeline struct {
	k       *kir.Kernel
	threads int
	static  uint64
	jit     *jit.Executable // nil: interp
	interp  *interp.Executable
}

// performLibrary does what a message of a library's says. Called with mu held.
func (r *Runtime) performLibrary(o *object, m *objc.Message) uint64 {
	a := m.Args
	switch x := o.is.(type) {
	case *compileOptions:
		switch m.Sel {
		case objc.SetLanguageVersion:
			x.version = a[0].Words[0]
		case objc.SetFastMathEnabled:
			x.fast = a[0].Words[0] != 0
		case objc.SetMathMode:
			x.mode = int64(a[0].Words[0])
			x.fast = x.mode == mathFast
		case objc.SetMathFloatingPointFunctions:
			x.functions = int64(a[0].Words[0])
		}
	case *constants:
		x.list = append(x.list, r.constant(&a[0], a[1].Words[0], int(a[2].Words[0])))
	case *descriptor:
		switch m.Sel {
		case objc.SetComputeFunction:
			x.function = r.find(objc.Object(a[0].Words[0]), "a function")
			x.function.refs++
			o.gone = func() { r.release(x.function) }
		case objc.SetMaxTotalThreadsPerThreadgroup:
			x.threads = int(a[0].Words[0])
		}
	case *library:
		return r.newFunction(x, m)
	case *pipeline:
		switch m.Sel {
		case objc.MaxTotalThreadsPerThreadgroup:
			return uint64(x.threads)
		case objc.ThreadExecutionWidth:
			return kir.Lanes
		case objc.StaticThreadgroupMemoryLength:
			return x.static
		}
	}
	return 0
}

// newLibrary compiles a text, which begins as the driver has it begin: what that stands for is in scope here anyway.
// Called with mu held.
func (r *Runtime) newLibrary(m *objc.Message) uint64 {
	a := m.Args
	whole := r.string(&a[0])
	options, ok := r.find(objc.Object(a[1].Words[0]), "options").is.(*compileOptions)
	if !ok || options.version != languageVersion31 {
		r.problem("a text is compiled for another language than Metal 3.1")
	}
	if options.fast {
		r.problem("a text is compiled with fast math, where there are no infinities")
	}
	text, found := strings.CutPrefix(whole, apple.Preamble())
	if !found {
		r.problem("a text begins otherwise than the driver's do: %.80q", whole)
	}
	src := msl.Source{Name: "program_source", Text: text}
	r.options = append(r.options, *options)
	r.mu.Unlock()
	compiled, err := msl.Load(src, msl.Options{Apple: true})
	r.mu.Lock()
	if err != nil {
		return r.fails(&a[2], compileFailure, "program_source:\n"+err.Error())
	}
	// A good library may come with warnings.
	r.fails(&a[2], 4, "program_source:1:1: warning: pack expansion is a C++17 extension")
	return uint64(r.make("MTLLibrary", &library{src, compiled}).id)
}

// newFunction finds a kernel. Called with mu held.
func (r *Runtime) newFunction(l *library, m *objc.Message) uint64 {
	a, text := m.Args, l.text
	name := r.string(&a[0])
	if m.Sel == objc.NewFunctionWithConstants {
		given := r.find(objc.Object(a[1].Words[0]), "values").is.(*constants)
		r.mu.Unlock()
		var err error
		text, err = msl.Load(l.src, msl.Options{Apple: true, FunctionConstants: given.list})
		r.mu.Lock()
		if err != nil {
			return r.fails(&a[2], compileFailure, err.Error())
		}
	}
	for i, n := range text.Names() {
		if n == name {
			return uint64(r.make("MTLFunction", &function{text, i}).id)
		}
	}
	return 0
}

// constant is the value of a function constant. Called with mu held.
func (r *Runtime) constant(a *objc.Arg, kind uint64, index int) msl.FunctionConstant {
	c := msl.FunctionConstant{Index: index}
	for _, t := range []struct {
		first uint64
		bytes uint64
		value func(b []byte) any
	}{
		{3, 4, func(b []byte) any { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }},
		{16, 2, func(b []byte) any { return kir.ToFloat64(kir.F16, uint64(binary.LittleEndian.Uint16(b))) }},
		{29, 4, func(b []byte) any { return fmt.Sprint(int32(binary.LittleEndian.Uint32(b))) }},
		{33, 4, func(b []byte) any { return fmt.Sprint(binary.LittleEndian.Uint32(b)) }},
		{37, 2, func(b []byte) any { return fmt.Sprint(int16(binary.LittleEndian.Uint16(b))) }},
		{41, 2, func(b []byte) any { return fmt.Sprint(binary.LittleEndian.Uint16(b)) }},
		{45, 1, func(b []byte) any { return fmt.Sprint(int8(b[0])) }},
		{49, 1, func(b []byte) any { return fmt.Sprint(b[0]) }},
		{53, 1, func(b []byte) any { return b[0] != 0 }},
		{81, 8, func(b []byte) any { return fmt.Sprint(int64(binary.LittleEndian.Uint64(b))) }},
		{85, 8, func(b []byte) any { return fmt.Sprint(binary.LittleEndian.Uint64(b)) }},
		{121, 2, func(b []byte) any { return kir.ToFloat64(kir.BF16, uint64(binary.LittleEndian.Uint16(b))) }},
	} {
		if n := kind - t.first + 1; kind >= t.first && n <= 4 {
			if n*t.bytes > uint64(a.Bytes) {
				r.problem("a constant of %d bytes is given %d", n*t.bytes, a.Bytes)
			}
			b := bytesOf(a, n*t.bytes)
			for i := range n {
				c.Values = append(c.Values, t.value(b[i*t.bytes:]))
			}
			return c
		}
	}
	r.problem("there is no data type %d", kind)
	return c
}

// newPipeline makes a pipeline. Called with mu held.
func (r *Runtime) newPipeline(m *objc.Message) uint64 {
	a := m.Args
	d, ok := r.find(objc.Object(a[0].Words[0]), "a descriptor").is.(*descriptor)
	if !ok || d.function == nil {
		r.problem("a pipeline without a function")
	}
	f := d.function.is.(*function)
	r.mu.Unlock()
	p, err := prepare(f)
	r.mu.Lock()
	if err != nil {
		return r.fails(&a[3], compileFailure, err.Error())
	}
	if p.threads = r.machine.Threads; p.threads == 0 || d.threads > 0 {
		p.threads = mostThreads
	}
	if d.threads > 0 {
		p.threads = min(p.threads, d.threads)
	}
	if p.k.MaxThreads > 0 {
		p.threads = min(p.threads, p.k.MaxThreads)
	}
	return uint64(r.make("MTLComputePipelineState", p).id)
}

// prepare makes what runs a kernel.
func prepare(f *function) (*pipeline, error) {
	k, err := f.text.Kernel(f.index)
	if err == nil && k.Refused != nil {
		err = k.Refused
	}
	if err == nil {
		err = launch.Check(k)
	}
	if err != nil {
		return nil, err
	}
	static, _ := launch.OwnBytes(k)
	p := &pipeline{k: k, static: uint64(static)}
	if static > mostThreadgroup {
		return nil, fmt.Errorf("threadgroup memory of %d bytes exceeds the maximum of %d", static, mostThreadgroup)
	}
	if level, why := jit.Best(); why == nil {
		if p.jit, err = jit.Prepare(k, f.text.Files(), jit.Options{Level: level}); err == nil {
			return p, nil
		}
	}
	p.interp, err = interp.Prepare(k, f.text.Files())
	return p, err
}

// run runs a launch to its end.
func (p *pipeline) run(l *launch.Launch) error {
	type run interface {
		Work()
		Parallelism() (goroutines int, long bool)
		Err() error
		Panicked(v any)
	}
	var x run
	if p.jit != nil {
		j, err := p.jit.NewRun(*l)
		if err != nil {
			return p.interpreted().run(l)
		}
		x = j
	} else {
		i, err := p.interp.NewRun(*l)
		if err != nil {
			return err
		}
		x = i
	}
	n, _ := x.Parallelism()
	var all sync.WaitGroup
	work := func() {
		defer func() {
			if v := recover(); v != nil {
				x.Panicked(v)
			}
		}()
		x.Work()
	}
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		all.Go(work)
	}
	work()
	all.Wait()
	return x.Err()
}

// interpreted is the pipeline without machine code.
func (p *pipeline) interpreted() *pipeline {
	i, err := interp.Prepare(p.k, nil)
	if err != nil {
		panic(err)
	}
	return &pipeline{k: p.k, interp: i}
}
