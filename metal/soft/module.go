package soft

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/front"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// module is a compiled source.
type module struct {
	text        front.Text
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
		if err := launch.Check(k); err != nil {
			return metal.Reflection{}, err
		}
		p, err := newExecutable(k, m.text.Files(), m.executor)
		if err != nil {
			return metal.Reflection{}, err
		}
		m.executables[i].Store(p)
	}
	return front.Reflect(k), nil
}
