package luabind

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// weighed is a Go value behind a userdata that takes more than a few words beside the Lua values and arrays that it
// holds (see holding). It is charged when the userdata is made, and measured with it.
type weighed interface {
	weight() int64
}

// Bytes of what hangs on userdata and beside them.
const (
	boxBytes      = 32  // of a value of few words
	arrayBytes    = 96  // of an array beside its node
	weakBytes     = 80  // of an entry of a weakSet, and what it points at
	scopedBytes   = 32  // of an array that a scope has noted
	valueBytes    = 16  // of a Lua value in a list of Go's
	compiledBytes = 900 // of a compiledFunction beside its Function
	tracedBytes   = 160
	writeBytes    = 96
	errorBytes    = 240
)

// weighing is a measuring of what a state has beside the Lua values that others see.
type weighing struct {
	m     *lua51.Measure
	graph *tensor.Graph
}

// weigh begins a measuring of live memory: it counts what hangs on no userdata, and gives what counts that which does.
func (b *bounds) weigh(m *lua51.Measure) (behind func(ud *lua.LUserData)) {
	s := b.s
	w := &weighing{m: m, graph: s.looks.holder.Graph(b.inCall)}
	m.Add(s.looks.holder.UnderWay(b.inCall))
	w.array(s.random.Key())
	w.value(s.packages.loaded)
	s.changes.reached(w)
	for _, sc := range s.scopes {
		m.Add(scopedBytes * int64(len(sc.made)))
	}
	if u := s.looks.holder.Libraries(); u != nil {
		if use := u.Use(); use.Bytes > 0 {
			m.Add(use.Bytes)
			m.Spare(func() { u.Drop(false) })
		}
	}
	s.looks.loosely(w)
	return w.userdata
}

// loosely tells of what nodes refer to, which may be garbage with them.
func (l *looks) loosely(w *weighing) {
	if len(l.traced.list)+len(l.custom.list)+len(l.shapes.list) == 0 {
		return
	}
	w.m.Spare(func() {}) // a collection tells
	l.traced.each(func(f *luaFunc) { f.reached(w) })
	l.custom.each(func(c *customCall) { c.reached(w) })
	l.shapes.each(func(c *shapeCall) { c.reached(w) })
	w.m.Add(weakBytes * int64(len(l.traced.list)+len(l.custom.list)+len(l.shapes.list)))
}

func (w *weighing) value(v lua.LValue) {
	if v != nil {
		w.m.Value(v)
	}
}

func (w *weighing) values(vs []lua.LValue) {
	w.m.Add(valueBytes * int64(len(vs)))
	for _, v := range vs {
		w.value(v)
	}
}

func (w *weighing) array(x *tensor.Array) {
	if x != nil {
		w.m.Add(arrayBytes + w.graph.Behind(x))
	}
}

// userdata counts what hangs on a userdata.
func (w *weighing) userdata(ud *lua.LUserData) {
	switch x := ud.Value.(type) {
	case *tensor.Array:
		w.array(x)
		return
	case weighed:
		w.m.Add(x.weight())
	default:
		w.m.Add(boxBytes)
	}
	if h, ok := ud.Value.(holding); ok {
		h.reached(w)
	}
	if k, ok := ud.Value.(*compiledFunction); ok {
		if k.known != nil && !k.known.busy { // what it holds is found again by a walk
			k.known = nil
		}
		if k.f.Recorded() {
			w.m.Spare(k.f.DropRecordings)
		}
		for _, objects := range k.held {
			for _, o := range objects {
				if v, ok := o.(lua.LValue); ok {
					w.value(v)
				}
			}
		}
	}
}

func (k *luaKernel) weight() int64 { return k.k.Bytes() }

func (e *luaError) weight() int64 {
	return errorBytes + int64(len(e.message)+len(e.op)+len(e.traceback))
}

func (k *compiledFunction) weight() int64 {
	n := int64(compiledBytes) + k.f.Bytes()
	for key, objects := range k.held {
		n += int64(len(key)) + valueBytes*int64(len(objects)) + tracedBytes
	}
	for after := range k.settled {
		n += int64(len(after)) + tracedBytes
	}
	for _, t := range k.traces {
		n += tracedBytes + writeBytes*int64(len(t.program.writes)+len(t.program.made)+len(t.program.inPlace))
	}
	return n
}

func (e *exporter) weight() int64 {
	n := int64(boxBytes + len(e.path) + len(e.file.Metadata))
	for _, t := range e.file.Traces {
		n += tracedBytes + t.Program.Bytes()
	}
	return n
}

func (f *imported) weight() int64 {
	n := int64(boxBytes + len(f.file.Metadata))
	for _, t := range f.file.Traces {
		n += tracedBytes + t.Program.Bytes()
	}
	return n
}
