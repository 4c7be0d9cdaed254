package soft

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Text is a compiled source: what kernels it has, and each of them as kir, made when it is asked for. Its methods may
// be called from any goroutine.
type Text interface {
	Names() []string
	Kernel(i int) (*kir.Kernel, error)
	Files() []string // as kir.Module's
}

// Compiler reads MSL text; its error lists all that is wrong with it, but for kernels that are made later.
type Compiler func(ctx context.Context, src metal.Source) (Text, error)

// module is a compiled source.
type module struct {
	text        Text
	executor    executor
	executables []atomic.Pointer[executable]
}

// Names lists the entry points.
func (m *module) Names() []string { return m.text.Names() }

// Compile reads MSL text.
func (d *Driver) Compile(ctx context.Context, src metal.Source) (m metal.Module, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("[compile] BUG: %v in %s", r, src.Label)
		}
	}()
	if ctx != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	text, err := d.compile(ctx, src)
	if err != nil {
		return nil, err
	}
	return &module{text, d.executor, make([]atomic.Pointer[executable], len(text.Names()))}, nil
}

// Kernel makes an entry point ready.
func (m *module) Kernel(i int) (metal.Reflection, error) {
	k, err := m.text.Kernel(i)
	if err != nil {
		return metal.Reflection{}, err
	}
	if k.Refused == nil { // else there is no pipeline that could be launched
		if err := interp.Check(k); err != nil {
			return metal.Reflection{}, err
		}
		p, err := newExecutable(k, m.text.Files(), m.executor)
		if err != nil {
			return metal.Reflection{}, err
		}
		m.executables[i].Store(p)
	}
	return reflect(k), nil
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
