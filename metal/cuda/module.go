package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/front"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

// module is a compiled source.
type module struct {
	d       *Driver
	text    front.Text
	ends    bool // its kernels do
	kernels []atomic.Pointer[kernel]
	loaded  *programs
	length  int64
}

// programs are what a module has loaded.
type programs struct {
	mu    sync.Mutex
	all   []program
	bytes int64
}

// kernel is an entry point. Its texts differ in what they take for granted of a launch.
type kernel struct {
	k       *kir.Kernel
	files   []string
	ends    bool
	loaded  *programs
	mu      sync.Mutex               // of who adds a text
	entries atomic.Pointer[[]*entry] // the usual one first
}

// entry is a kernel's text, loaded.
type entry struct {
	text   *ptx.Text
	source string
	f      function
	shared int // what its launches may have of shared memory
}

// wants is what a launch asks of a text.
type wants struct {
	align  []int // by Param: that of its address
	inline []int // by Param: how many bytes come with the launch; -1: it has an address
}

// Names lists the entry points.
func (m *module) Names() []string { return m.text.Names() }

// Bytes is about what the module takes.
func (m *module) Bytes() int64 {
	m.loaded.mu.Lock()
	defer m.loaded.mu.Unlock()
	n := 8*m.length + m.loaded.bytes
	for i := range m.kernels {
		if k := m.kernels[i].Load(); k != nil {
			n += k.k.Bytes()
		}
	}
	return n
}

// Compile reads MSL text.
func (d *Driver) Compile(ctx context.Context, src metal.Source) (_ metal.Module, err error) {
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
	m := &module{d: d, text: text, ends: src.Options.Portable, length: int64(len(src.Text)),
		kernels: make([]atomic.Pointer[kernel], len(text.Names())), loaded: &programs{}}
	runtime.AddCleanup(m, d.unload, m.loaded)
	return m, nil
}

// unload gives up what a module has loaded that nobody can launch any more.
func (d *Driver) unload(p *programs) {
	go func() {
		_ = d.call(func() (err error) {
			for _, x := range p.all {
				err = errors.Join(err, d.lib.Unload(x))
			}
			return err
		})
	}()
}

// Kernel makes an entry point ready: the text that most launches need is loaded.
func (m *module) Kernel(i int) (_ metal.Reflection, err error) {
	k, err := m.text.Kernel(i)
	if err != nil {
		return metal.Reflection{}, err
	}
	r := front.Reflect(k)
	if r.Refused != nil {
		return r, nil
	}
	if err := launch.Check(k); err != nil {
		return metal.Reflection{}, err
	}
	x := &kernel{k: k, files: m.text.Files(), ends: m.ends, loaded: m.loaded}
	err = m.d.call(func() error {
		_, err := x.add(m.d, x.usual())
		return err
	})
	if errors.Is(err, ptx.ErrFloat64) || errors.Is(err, ptx.ErrWaits) {
		r.Refused = err
		return r, nil
	}
	if err != nil {
		return metal.Reflection{}, err
	}
	m.kernels[i].Store(x)
	return r, nil
}

const (
	// fullAlign is what the addresses of buffers are multiples of, but for views that begin within one.
	fullAlign = 16
	// leastAlign is what those are multiples of, if their elements are no smaller.
	leastAlign = 4
	// roomInline is how many bytes of a constant array of any length may come with a launch.
	roomInline = 128
	// longText is the length from which texts are compiled with less effort, which else takes minutes.
	longText = 60000
)

// usual is what most launches ask: whole buffers, and constants that come with the launch.
func (x *kernel) usual() wants {
	w := wants{make([]int, len(x.k.Params)), make([]int, len(x.k.Params))}
	for i, p := range x.k.Params {
		w.align[i], w.inline[i] = fullAlign, -1
		if p.Space == kir.Constant {
			if w.inline[i] = roomInline; p.MinBytes > 0 {
				w.inline[i] = p.MinBytes
			}
		}
	}
	return w
}

// fits reports whether a launch can use the text.
func (e *entry) fits(w wants) bool {
	for i, o := range e.text.Layout.Objects {
		if o.Shared {
			continue
		}
		if n := w.inline[i]; n >= 0 && o.Inline > 0 {
			if n > o.Inline {
				return false
			}
		} else if o.Inline > 0 || w.align[i]%o.Align != 0 {
			return false
		}
	}
	return true
}

// entryFor returns a text for a launch.
func (x *kernel) entryFor(d *Driver, w wants) (*entry, error) {
	if all := x.entries.Load(); all != nil {
		for _, e := range *all {
			if e.fits(w) {
				return e, nil
			}
		}
	}
	// What one launch asks others will: so few texts as may be.
	less := wants{make([]int, len(w.align)), make([]int, len(w.align))}
	aligned, element := true, true
	for i, a := range w.align {
		aligned = aligned && a%fullAlign == 0
		element = element && a%x.elementAlign(i) == 0
	}
	for i, n := range w.inline {
		switch {
		case aligned:
			less.align[i] = fullAlign
		case element:
			less.align[i] = x.elementAlign(i)
		default:
			less.align[i] = 1
		}
		if less.inline[i] = n; n > roomInline {
			for less.inline[i] = roomInline; less.inline[i] < n; {
				less.inline[i] *= 2
			}
		} else if n > 0 {
			less.inline[i] = max(n, x.usual().inline[i])
		}
	}
	return x.add(d, less)
}

// elementAlign is what the addresses of a Param's views are multiples of, as a rule.
func (x *kernel) elementAlign(i int) int {
	n := x.k.Params[i].ElemSize
	return min(leastAlign, max(1, n&-n))
}

// add prints and loads a text. One that differs in nothing from another shares its program.
func (x *kernel) add(d *Driver, w wants) (*entry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []*entry
	if p := x.entries.Load(); p != nil {
		all = *p
	}
	for _, e := range all {
		if e.fits(w) {
			return e, nil
		}
	}
	opt := ptx.Options{SM: d.sm, Align: w.align, Inline: make([]int, len(w.inline)), Ends: x.ends}
	for i, n := range w.inline {
		opt.Inline[i] = max(0, n)
	}
	text, err := ptx.Print(x.k, opt)
	if err != nil {
		return nil, err
	}
	e := &entry{text: text, source: text.String()}
	for _, o := range all {
		if o.source == e.source {
			e.f, e.source = o.f, o.source
		}
	}
	if e.f == 0 {
		if e.f, err = x.load(d, e); err != nil {
			return nil, err
		}
	}
	all = append(all[:len(all):len(all)], e)
	x.entries.Store(&all)
	return e, nil
}

func (x *kernel) load(d *Driver, e *entry) (function, error) {
	level := 4
	if len(e.source) > longText {
		level = 1
	}
	p, err := d.lib.Load(e.source, level)
	if err != nil {
		return 0, fmt.Errorf("[%s] the text is refused: %w", x.k.Name, err)
	}
	x.loaded.mu.Lock()
	x.loaded.all = append(x.loaded.all, p)
	x.loaded.bytes += int64(2 * len(e.source))
	x.loaded.mu.Unlock()
	return d.lib.Function(p, e.text.Entry)
}

// allow permits launches of a text with so many bytes of shared memory.
func (x *kernel) allow(d *Driver, e *entry, shared int) error {
	const always = 48 << 10
	if shared <= always {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if shared <= e.shared {
		return nil
	}
	if err := d.lib.AllowShared(e.f, shared); err != nil {
		return fmt.Errorf("[%s] %d bytes of threadgroup memory: %w", x.k.Name, shared, err)
	}
	e.shared = shared
	return nil
}
