package soft

import (
	"context"
	"fmt"
	"strings"
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
	length      int64 // of the text
	made        atomic.Int64
}

// textBytes is what a byte of code takes that has been read.
const textBytes = 40

// codeLength is how many bytes of a text are code: no blanks, no comments.
func codeLength(text string) (n int64) {
	for at := 0; at < len(text); at++ {
		end := -1
		switch rest := text[at:]; {
		case text[at] <= ' ':
			continue
		case strings.HasPrefix(rest, "//"):
			end = strings.IndexByte(rest, '\n')
		case strings.HasPrefix(rest, "/*"):
			end = strings.Index(rest[2:], "*/") + 3
		default:
			n++
			continue
		}
		if end < 3 && text[at:at+2] == "/*" || end < 0 { // to the text's end
			return n
		}
		at += end
	}
	return n
}

// Bytes is about what the module takes, machine code included.
func (m *module) Bytes() int64 {
	n := textBytes*m.length + m.made.Load()
	for i := range m.executables {
		if p := m.executables[i].Load(); p != nil {
			n += p.bytes()
		}
	}
	return n
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
	return &module{text: text, executor: d.executor, length: codeLength(src.Text),
		executables: make([]atomic.Pointer[executable], len(text.Names()))}, nil
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
		m.made.Add(k.Bytes())
	}
	return front.Reflect(k), nil
}
