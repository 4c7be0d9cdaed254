package apple

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
	"github.com/mlxlua/mlxlua/metal/front"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// module is a compiled source.
type module struct {
	d       *Driver
	src     metal.Source
	text    front.Text
	library objc.Object
	kernels []atomic.Pointer[kernel]
	holds   *holding
}

// kernel is an entry point, ready to be launched.
type kernel struct {
	pipeline objc.Object
	threads  int // of a threadgroup, at most
}

// holding is objects of a module, which are released when nobody can launch its kernels any more. Guarded by the
// driver's mu.
type holding struct{ objects []objc.Object }

func (h *holding) take() []objc.Object {
	all := h.objects
	h.objects = nil
	return all
}

// Names lists the entry points.
func (m *module) Names() []string { return m.text.Names() }

// textFactor is about how many bytes what Metal makes of a text takes for each of its bytes.
const textFactor = 40

// Bytes is about what the module takes.
func (m *module) Bytes() int64 { return textFactor * int64(len(m.src.Text)) }

// Compile reads MSL text, and has Metal compile it.
func (d *Driver) Compile(ctx context.Context, src metal.Source) (_ metal.Module, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("[compile] BUG: %v in %s", r, src.Label)
		}
	}()
	if ctx == nil {
		ctx = context.Background()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	text, err := d.compile(ctx, src)
	if err != nil {
		return nil, err
	}
	var m *module
	err = d.call(func(c *objc.Caller) (err error) {
		m, err = d.library(c, src, text)
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// library has Metal compile a text.
func (d *Driver) library(c *objc.Caller, src metal.Source, text front.Text) (*module, error) {
	options := d.options(c, src.Options)
	whole := c.String(wholeText(src))
	defer c.Release(options, whole)
	var problem objc.Object
	library := c.Object(d.device, objc.NewLibraryWithSource, objc.Obj(whole), objc.Obj(options), objc.Out(&problem))
	if library == 0 { // with a library the problem is warnings
		return nil, fmt.Errorf("[%s] Metal refuses the text: %s", src.Label, problemText(c, problem))
	}
	m := &module{d: d, src: src, text: text, library: library, holds: &holding{objects: []objc.Object{library}},
		kernels: make([]atomic.Pointer[kernel], len(text.Names()))}
	d.mu.Lock()
	d.held[m.holds] = struct{}{}
	d.mu.Unlock()
	runtime.AddCleanup(m, d.release, m.holds)
	return m, nil
}

// release gives back what a module held. After Close there is nothing left of it.
func (d *Driver) release(h *holding) {
	go func() {
		_ = d.call(func(c *objc.Caller) error {
			d.mu.Lock()
			all := h.take()
			delete(d.held, h)
			d.mu.Unlock()
			c.Release(all...)
			return nil
		})
	}()
}

// Metal's numbers of math modes.
const (
	mathSafe         = 0
	mathRelaxed      = 1
	functionsFast    = 0
	functionsPrecise = 1
)

// options are those that a text is compiled with. Kernels of ours are precise, and so are users' that ask for it.
// Metal's own default may take it that there are no infinities and no NaNs, which we never do: relaxed is the fastest
// here, and before macOS 15, which has no such mode, precise.
func (d *Driver) options(c *objc.Caller, o metal.Options) objc.Object {
	options := c.New("MTLCompileOptions")
	c.Send(options, objc.SetLanguageVersion, objc.Num(languageVersion))
	if !c.Has(options, objc.SetMathMode) {
		c.Send(options, objc.SetFastMathEnabled, objc.Yes(false))
		return options
	}
	mode, functions := int64(mathSafe), int64(functionsPrecise)
	if !o.Portable && o.MathMode != metal.MathSafe {
		mode = mathRelaxed
		if o.MathMode == metal.MathFast {
			functions = functionsFast
		}
	}
	c.Send(options, objc.SetMathMode, objc.Signed(mode))
	c.Send(options, objc.SetMathFloatingPointFunctions, objc.Signed(functions))
	return options
}

// problemText is what an NSError says.
func problemText(c *objc.Caller, problem objc.Object) string {
	if problem == 0 {
		return "it does not say why"
	}
	return strings.TrimSpace(c.Text(c.Object(problem, objc.LocalizedDescription)))
}

// Kernel makes an entry point ready.
func (m *module) Kernel(i int) (r metal.Reflection, err error) {
	err = m.d.call(func(c *objc.Caller) (err error) {
		r, err = m.make(c, i)
		return err
	})
	return r, err
}

// make makes an entry point ready. What Metal refuses of it is no fault of the others.
func (m *module) make(c *objc.Caller, i int) (metal.Reflection, error) {
	k, err := m.text.Kernel(i)
	if err != nil {
		return metal.Reflection{}, err
	}
	r := front.Reflect(k)
	if r.Refused != nil {
		return r, nil
	}
	pipeline, err := m.pipeline(c, r.Name)
	if err != nil {
		r.Refused = fmt.Errorf("[%s] %w", r.Name, err)
		return r, nil
	}
	m.d.mu.Lock()
	m.holds.objects = append(m.holds.objects, pipeline)
	m.d.mu.Unlock()
	threads := int(c.Send(pipeline, objc.MaxTotalThreadsPerThreadgroup))
	width := c.Send(pipeline, objc.ThreadExecutionWidth)
	if limit := m.d.info.Limits; threads <= 0 || width != uint64(limit.SimdWidth) {
		r.Refused = fmt.Errorf("[%s] Metal says that it runs %d threads of a threadgroup, in SIMD-groups of %d, and mlxlua "+
			"needs %d", r.Name, threads, width, limit.SimdWidth)
		return r, nil
	}
	if r.MaxThreads <= 0 || threads < r.MaxThreads {
		r.MaxThreads = threads
	}
	r.StaticTG = max(r.StaticTG, int64(c.Send(pipeline, objc.StaticThreadgroupMemoryLength)))
	m.kernels[i].Store(&kernel{pipeline: pipeline, threads: threads})
	return r, nil
}

// pipeline makes a pipeline of the kernel of a name. For kernels of ours, which choose their threadgroups by what the
// device permits all kernels, Metal is told to permit that.
func (m *module) pipeline(c *objc.Caller, name string) (objc.Object, error) {
	function, err := m.function(c, name)
	if err != nil {
		return 0, err
	}
	label, order := c.String(name), c.New("MTLComputePipelineDescriptor")
	defer c.Release(function, label, order)
	c.Send(order, objc.SetLabel, objc.Obj(label))
	c.Send(order, objc.SetComputeFunction, objc.Obj(function))
	if m.src.Options.Portable {
		c.Send(order, objc.SetMaxTotalThreadsPerThreadgroup, objc.Num(uint64(m.d.info.Limits.ThreadsPerGroup)))
	}
	var problem objc.Object
	pipeline := c.Object(m.d.device, objc.NewComputePipelineState, objc.Obj(order), objc.Num(0), objc.Nothing(),
		objc.Out(&problem))
	if pipeline == 0 {
		return 0, fmt.Errorf("no pipeline could be made of the kernel: %s", problemText(c, problem))
	}
	return pipeline, nil
}

// function finds a kernel in the library, with the values of its function constants.
func (m *module) function(c *objc.Caller, name string) (objc.Object, error) {
	text := c.String(name)
	defer c.Release(text)
	var function, problem objc.Object
	if constants := constantsOf(m.text); len(constants) > 0 {
		values := c.New("MTLFunctionConstantValues")
		defer c.Release(values)
		for _, k := range constants {
			number, ok := dataType(k.Type)
			if !ok {
				return 0, fmt.Errorf("the function constant %d is of type %s, which Metal has no number for", k.Index, k.Type)
			}
			c.Send(values, objc.SetConstantValue, objc.Bytes(k.Value), objc.Num(number), objc.Num(uint64(k.Index)))
		}
		function = c.Object(m.library, objc.NewFunctionWithConstants, objc.Obj(text), objc.Obj(values), objc.Out(&problem))
	} else {
		function = c.Object(m.library, objc.NewFunctionWithName, objc.Obj(text))
	}
	switch {
	case function != 0:
		return function, nil
	case problem != 0:
		return 0, fmt.Errorf("no function could be made of it: %s", problemText(c, problem))
	}
	return 0, errors.New("there is no such kernel in what Metal made of the text")
}

// constantsOf are the values that a text's function constants have.
func constantsOf(text front.Text) []msl.ConstantValue {
	if l, ok := text.(interface{ Constants() []msl.ConstantValue }); ok {
		return l.Constants()
	}
	return nil
}

// dataType is Metal's number of a scalar's or vector's type.
func dataType(name string) (uint64, bool) {
	scalar, n := name, uint64(1)
	if last := name[len(name)-1]; last >= '2' && last <= '4' {
		scalar, n = name[:len(name)-1], uint64(last-'0')
	}
	first, ok := map[string]uint64{"float": 3, "half": 16, "int": 29, "uint": 33, "short": 37, "ushort": 41, "char": 45,
		"uchar": 49, "bool": 53, "long": 81, "ulong": 85, "bfloat": 121}[scalar]
	return first + n - 1, ok
}
