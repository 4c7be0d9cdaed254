package soft

import (
	"context"
	"fmt"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Compiler turns MSL text into kir; its error lists all that is wrong with the text.
type Compiler func(ctx context.Context, src metal.Source) (*kir.Module, error)

// module is a compiled source.
type module struct {
	programs    []*program
	reflections []metal.Reflection
}

// Kernels lists the entry points.
func (m *module) Kernels() []metal.Reflection { return m.reflections }

// Compile turns MSL text into programs.
func (d *Driver) Compile(ctx context.Context, src metal.Source) (m metal.Module, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("[compile] BUG: %v in %s", r, src.Label)
		}
	}()
	if ctx != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	k, err := d.compile(ctx, src)
	if err != nil {
		return nil, err
	}
	return newModule(k, d.executor)
}

func newModule(k *kir.Module, e executor) (*module, error) {
	m := &module{}
	for _, kernel := range k.Kernels {
		m.reflections = append(m.reflections, reflect(kernel))
		if kernel.Refused != nil {
			m.programs = append(m.programs, nil) // there is no pipeline that could ask for it
			continue
		}
		if err := interp.Check(kernel); err != nil {
			return nil, err
		}
		p, err := newProgram(kernel, k.Files, e)
		if err != nil {
			return nil, err
		}
		m.programs = append(m.programs, p)
	}
	return m, nil
}

// reflect says about a kernel what the device model asks.
func reflect(k *kir.Kernel) metal.Reflection {
	r := metal.Reflection{Name: k.Name, MaxThreads: k.MaxThreads, Refused: k.Refused,
		Threads: metal.Size{X: k.Threads[0], Y: k.Threads[1], Z: k.Threads[2]}}
	for _, g := range k.Regions {
		if g.Space == kir.Threadgroup {
			r.StaticTG = (r.StaticTG+int64(g.Align)-1)&^int64(g.Align-1) + int64(g.Size)
		}
	}
	for _, p := range k.Params {
		r.Params = append(r.Params, metal.ParamInfo{
			Name: p.Name, Index: p.Index, Threadgroup: p.Space == kir.Threadgroup, Constant: p.Space == kir.Constant,
			ElemSize: p.ElemSize, MinBytes: int64(p.MinBytes), Read: p.Read, Write: p.Write, Atomic: p.Atomic,
		})
	}
	return r
}
