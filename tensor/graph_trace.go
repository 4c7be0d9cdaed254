package tensor

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Trace is a transform's hold on the graph: while it is open, nodes that depend on its inputs keep what they read,
// so that the transform can walk them. Its inputs are made by Watch (they have values: grad, jvp) or Placeholder
// (they have none: vmap, compile).
type Trace struct {
	name     string
	abstract bool
	ended    atomic.Bool
	onRead   func(x *Array, axis int)

	mu   sync.Mutex
	kept []*Node // evaluated while the trace was open, with their inputs; guarded by mu
}

// NewTrace opens a trace for the transform of that name. Where onRead is not nil it is told of every dimension of a
// dependent array that someone reads as a number: axis counts from 0, or is WholeSize.
func NewTrace(name string, onRead func(x *Array, axis int)) *Trace {
	return &Trace{name: name, onRead: onRead}
}

// Placeholder is an input without a value: evaluating what depends on it is an error that names the transform.
func (t *Trace) Placeholder(c *Ctx, s Spec) *Array {
	t.abstract = true
	n := &Node{id: nodeIDs.Add(1), op: placeholderOp, out: []output{{spec: Spec{s.Shape.Clone(), s.DType}}},
		place: compacted(c.Place), traces: &traceSet{t}}
	return n.array(0)
}

var placeholderOp = &Op{name: "input", noMerge: true}

// IsPlaceholder reports whether the node is an input made by Placeholder.
func (n *Node) IsPlaceholder() bool { return n.op == placeholderOp }

// Watch is a stand-in for x whose dependents the trace can tell from x's other dependents.
func (t *Trace) Watch(c *Ctx, x *Array) *Array {
	if x.vertex().now() == Failed {
		return x
	}
	y := watchOp.One(c, None{}, x)
	if y.node.now() != Failed {
		y.node.traces = y.node.traces.merge(&traceSet{t})
	}
	return y
}

// End closes the trace: nodes made for it may let go of what they read.
func (t *Trace) End() {
	t.ended.Store(true)
	t.mu.Lock()
	kept := t.kept
	t.kept = nil
	t.mu.Unlock()
	for _, n := range kept {
		n.forget()
	}
}

// keep remembers a node that is evaluated while t is open, to forget its inputs when t ends. It reports whether t is
// open.
func (t *Trace) keep(n *Node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended.Load() {
		return false
	}
	t.kept = append(t.kept, n)
	return true
}

// forget lets go of the inputs of a node that was evaluated, if no other trace holds it.
func (n *Node) forget() {
	if n.inOpenTrace() {
		return
	}
	n.mu.Lock()
	if n.now() <= Lazy { // it reads them yet
		n.mu.Unlock()
		return
	}
	in := slices.Clone(n.in)
	n.dropInputs()
	n.mu.Unlock()
	addUses(n, in, -1)
}

// DependsOn reports whether x depends on an input of t.
func (t *Trace) DependsOn(x *Array) bool { return slices.Contains(x.vertex().traces.list(), t) }

// Has reports whether the node depends on an input of t.
func (t *Trace) Has(n *Node) bool { return slices.Contains(n.traces.list(), t) }

// traceSet are the traces that a node depends on. Most depend on none: nil. It is never changed.
type traceSet []*Trace

func (s *traceSet) list() []*Trace {
	if s == nil {
		return nil
	}
	return *s
}

// merge is the union, without traces that are over: an array that is updated step by step, with one transform each,
// would gather them without end.
func (s *traceSet) merge(with *traceSet) *traceSet {
	if s == nil && !slices.ContainsFunc(*with, (*Trace).over) {
		return with
	}
	for _, t := range *with {
		if !t.over() && !slices.Contains(s.list(), t) {
			union := traceSet(append(slices.Clip(s.list()), t))
			s = &union
		}
	}
	return s
}

// over reports whether the trace has ended and arrays that depend on it are like all others.
func (t *Trace) over() bool { return !t.abstract && t.ended.Load() }

// Traced reports whether x depends on an input of a transform that has not ended.
func Traced(x *Array) bool { return x.vertex().inOpenTrace() }

// abstractTrace is a trace on whose placeholders n depends, if there is one.
func (n *Node) abstractTrace() *Trace {
	for _, t := range n.traces.list() {
		if t.abstract {
			return t
		}
	}
	return nil
}

// inOpenTrace reports whether an open trace may still walk the node.
func (n *Node) inOpenTrace() bool {
	for _, t := range n.traces.list() {
		if !t.ended.Load() {
			return true
		}
	}
	return false
}

// watchOp is the identity, as a view.
var watchOp = Declare[None]("watch")

func init() {
	watchOp.Define(Rules[None]{
		Shape: func(in []Spec, _ None, outs []Shape) ([]Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType: func(in []Spec, _ None, outs []DType) ([]DType, error) {
			return append(outs, in[0].DType), nil
		},
		View: SameView[None],
		VJP:  func(g *VJP[None]) []*Array { return g.Cot },
		JVP:  func(g *JVP[None]) []*Array { return g.Tan },
		VMap: func(g *VMap[None]) ([]*Array, []int) { return []*Array{watchOp.One(g.Ctx, None{}, g.In[0])}, g.Axes },
	})
}
