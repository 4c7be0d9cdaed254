package tensor

import (
	"reflect"
	"sync/atomic"
)

// work counts what a holder does to graphs between two calls of HolderLimits.Going: transforms of transforms come to
// millions of nodes without a line of a script in between.
type work struct {
	made     int64        // bytes of all nodes made so far
	steps    int          // since Going was asked
	asked    int64        // made, then
	stopped  error        // what it said
	building int          // transforms under way, in each other
	since    mark         // the outermost of them began
	call     mark         // a script called last what makes nodes
	claimed  atomic.Int64 // bytes of nodes that are being computed
}

// mark is a point in what a holder does.
type mark struct {
	made int64  // bytes of nodes
	node uint64 // the newest that there was
}

func (w *work) now() mark { return mark{w.made, nodeIDs.Load()} }

// held is the point from which on Go code may hold nodes that no array leads to: that of transforms under way, and in a
// call of an op that of the call.
func (w *work) held(inCall bool) mark {
	switch {
	case w.building > 0:
		return w.since
	case inCall:
		return w.call
	}
	return w.now()
}

// Going is asked after so many steps, or so many bytes of nodes.
const (
	askAfter      = 128
	askAfterBytes = 256 << 10
)

// Step counts a step of building a graph or of going over one: a call of an op is a step. It fails where the holder's
// program has to end. The Ctx may be nil.
func (c *Ctx) Step() error {
	if c == nil || c.Holder == nil {
		return nil
	}
	h := c.Holder
	w := &h.work
	if w.steps++; w.stopped == nil && w.steps < askAfter && w.made-w.asked < askAfterBytes {
		return nil
	}
	return h.ask(0) // again after an error, which may have been an inner call's
}

// reserve is Step for a node of which outputs are about to be made.
func (c *Ctx) reserve(outputs int) error {
	if c == nil || c.Holder == nil || outputs < askAfter {
		return nil
	}
	return c.Holder.ask(outputBytes * int64(outputs))
}

func (h *Holder) ask(more int64) error {
	w := &h.work
	if w.steps, w.asked = 0, w.made; h.limits.Going != nil {
		w.stopped = h.limits.Going(more)
	}
	return w.stopped
}

// Called says that a script calls an op: nodes that were made before are held by its arrays, or by nobody, but for
// those of transforms under way.
func (h *Holder) Called() { h.work.call = h.work.now() }

// Building says that Go code that calls scripts holds what it makes until done is called: a graph under way that no
// array leads to.
func (c *Ctx) Building() (done func()) {
	if c == nil || c.Holder == nil {
		return func() {}
	}
	w := &c.Holder.work
	if w.building++; w.building == 1 {
		w.since = w.now()
	}
	return func() { w.building-- }
}

// Made is how many bytes the nodes have taken that the holder has made so far.
func (h *Holder) Made() int64 { return h.work.made }

// UnderWay is how many bytes the nodes take that are just being computed, and that Go code under way has made: the call
// of an op, where it is that which asks.
func (h *Holder) UnderWay(inCall bool) int64 {
	return h.work.claimed.Load() + h.work.made - h.work.held(inCall).made
}

// What nodes take in memory, besides their outputs' elements: about, and rather more than less.
const (
	nodeBytes   = 640 // with one output and two inputs
	readyBytes  = 320 // the buffer of one that is ready
	outputBytes = 240 // another output
	inputBytes  = 16  // one of many inputs
	dimBytes    = 16  // of a shape and of strides
	attrBytes   = 8   // of an attribute, for each dimension around it
	taskBytes   = 256 // of a node that is being computed
)

// sizeOf is about what a node takes where its attributes are as long as shapes around it let expect.
func sizeOf(n *Node) int64 {
	b, dims := int64(nodeBytes), 0
	for i := range n.out {
		dims += len(n.out[i].spec.Shape)
	}
	b += outputBytes*int64(len(n.out)-1) + dimBytes*int64(dims)
	if len(n.in) > len(n.few) {
		b += inputBytes * int64(len(n.in))
	}
	return b + attrBytes*int64(dims)
}

// Graph measures what arrays keep in memory beside their elements.
type Graph struct {
	seen     map[*Node]struct{}
	interned map[uintptr]bool
	todo     []*Node
	own      uint64 // nodes from this one on are counted otherwise
}

// Graph begins a measuring of the holder's arrays, without what UnderWay counts.
func (h *Holder) Graph(inCall bool) *Graph {
	return &Graph{seen: map[*Node]struct{}{}, interned: map[uintptr]bool{}, own: h.work.held(inCall).node + 1}
}

// Behind is how many bytes the nodes take that x needs and that were not counted before.
func (g *Graph) Behind(x *Array) (bytes int64) {
	if x == nil || x.node == nil {
		return 0
	}
	g.add(x.node)
	for len(g.todo) > 0 {
		n := g.todo[len(g.todo)-1]
		g.todo = g.todo[:len(g.todo)-1]
		if n.id < g.own {
			bytes += sizeOf(n)
			if n.attrs != nil {
				bytes += g.held(reflect.ValueOf(n.attrs))
			}
		}
		n.mu.Lock()
		if s := n.now(); s == Ready && n.id < g.own {
			bytes += readyBytes
		}
		for _, v := range n.in {
			g.add(v.Node)
		}
		n.mu.Unlock()
	}
	return bytes
}

func (g *Graph) add(n *Node) {
	if _, ok := g.seen[n]; !ok {
		g.seen[n] = struct{}{}
		g.todo = append(g.todo, n)
	}
}

// held is what attributes keep in memory beside themselves: texts, lists, and what is interned, which counts once.
func (g *Graph) held(v reflect.Value) (bytes int64) {
	t := v.Type()
	switch {
	case flat(t):
	case t.Kind() == reflect.String:
		return int64(v.Len())
	case t.Kind() == reflect.Slice:
		bytes = int64(v.Len()) * int64(t.Elem().Size())
		fallthrough
	case t.Kind() == reflect.Array:
		for i := 0; i < v.Len() && !flat(t.Elem()); i++ {
			bytes += g.held(v.Index(i))
		}
	case t.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if t.PkgPath() != "unique" || f.Kind() != reflect.Pointer {
				bytes += g.held(f)
			} else if at := f.Pointer(); at != 0 && !g.interned[at] {
				g.interned[at] = true
				bytes += int64(f.Type().Elem().Size()) + g.held(f.Elem())
			}
		}
	}
	return bytes
}

// flat reports whether values of a type hold nothing beside themselves, as far as their kind tells.
func flat(t reflect.Type) bool {
	k := t.Kind()
	return k >= reflect.Bool && k <= reflect.Complex128 || k == reflect.Array && flat(t.Elem())
}
