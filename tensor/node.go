package tensor

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"weak"
)

// State is how far a Node has come.
type State int32

// The states. Ready and Failed are final.
const (
	Lazy      State = iota // not asked for
	Scheduled              // handed to its stream
	Ready                  // computed: its outputs have data
	Failed                 // its error says why
)

// submitted is the state of a root of an evaluation that nobody has claimed: Scheduled to all but those who claim.
const submitted State = -1

// String is the state's name.
func (s State) String() string { return [...]string{"lazy", "scheduled", "ready", "failed"}[s] }

// Value is one output of a Node.
type Value struct {
	Node *Node
	Out  int
}

// Spec is the value's shape and dtype. It is no read: rules and the planner use it; see Array.Shape.
func (v Value) Spec() Spec { return v.Node.out[v.Out].spec }

// Node is a call of an op: a vertex of the graph. Its outputs' shapes are fixed when it is made. It points at the
// Nodes it reads, never at handles, and lets go of them as soon as it is scheduled, unless a transform may still
// walk it.
type Node struct {
	// What scheduling looks at comes first, in few cache lines: it visits thousands of nodes before one of them runs.
	op       *Op
	state    atomic.Int32
	mu       sync.Mutex // guards in, rare, taskDone and the outputs' handle, dead and data
	slot     int32      // its index in seg
	taskDone bool       // its task reads in no more
	stream   *Stream
	runs     *Stream // where it runs, once it is claimed: stream, or the default one of that time
	mark     uint64  // the walk that saw it last; guarded by schedMu
	in       []Value
	traces   *traceSet // the traces it depends on: those of its inputs
	few      [2]Value  // in, where there are few
	seg      *segment  // what it was claimed for

	out   []output
	id    uint64
	attrs any
	place compactPlace
	rare  *rare

	// Few large objects are made, watched and looked at faster than many small ones:
	single [1]output // out, where there is one
	home   storage   // the first output's, where it has one of its own
	handle Array     // the first output's first handle, where the output does not watch it
}

// rare is what few nodes need.
type rare struct {
	prepared any // what the Prepare rule gave, for Run
	err      error
	done     chan struct{} // closed at Ready or Failed; made when first waited for
}

// extra is n.rare, made if need be. Called with mu held, or before the node is shared.
func (n *Node) extra() *rare {
	if n.rare == nil {
		n.rare = &rare{}
	}
	return n.rare
}

type output struct {
	spec   Spec
	data   View                // set when its kernel is encoded, valid when ready
	handle weak.Pointer[Array] // the Array on this output, to learn whether someone may still read it
	weak   bool                // handle is set
	dead   bool                // no one may: the handle was freed or dropped
	gone   bool                // its data was given back, or never written, because no one could read it
	owners int32               // handles that Own made and nobody freed: beyond the first
	asked  bool                // it was asked for when the node was claimed; never changed after that
	uses   atomic.Int32        // nodes that have still to read it
}

var nodeIDs atomic.Uint64

// apply makes a Node of a call with outputs as the rules say. Its handles are the first, and those that follow.
func apply(c *Ctx, p *Op, attrs any, in []*Array) (result *Array, more []*Array) {
	defer func() {
		if r := recover(); r != nil { // no panic crosses the API: a rule's is a bug of the op
			result, more = Fail(c, p.name, "BUG: a rule panicked: %v\n%s", r, debug.Stack()), nil
		}
	}()
	if timeline.Load() != nil {
		defer BeginSpan("build", p.name).End(c.place())
	}
	n := &Node{op: p, attrs: attrs, place: compacted(c.Place)}
	if n.in = n.few[:min(len(in), len(n.few))]; len(in) > len(n.few) {
		n.in = make([]Value, len(in))
	}
	scratch := specLists.Get().(*specList)
	defer scratch.giveBack()
	specs := scratch.of(len(in))
	for i, x := range in {
		if err := x.usable(p.name, c); err != nil {
			return failed(c, p.name, err), nil
		}
		n.in[i] = x.Value()
		specs[i] = n.in[i].Spec()
		if x.node.traces != nil {
			n.traces = n.traces.merge(x.node.traces)
		}
	}
	if err := n.infer(scratch); err != nil {
		return failed(c, p.name, c.Errorf(p.name, "%w", err)), nil
	}
	var err error
	if n.stream, err = c.stream(); err != nil {
		return failed(c, p.name, err), nil
	}
	if p.prepare != nil {
		if n.extra().prepared, err = p.prepare(specs, attrs); err != nil {
			return failed(c, p.name, c.Errorf(p.name, "%w", err)), nil
		}
	}
	n.id = nodeIDs.Add(1)
	result = n.array(0)
	for i := range n.out[1:] {
		more = append(more, n.array(i+1))
	}
	addUses(n, n.in, 1)
	runtime.KeepAlive(in) // until the uses are counted, the handles are what keeps the inputs observable
	return result, more
}

// specList is what rules get to see of a call's inputs, and where they put what they say of its outputs. They do not
// keep it.
type specList struct {
	specs  []Spec
	shapes [4]Shape
	dtypes [4]DType
}

var specLists = sync.Pool{New: func() any { return new(specList) }}

func (l *specList) of(n int) []Spec {
	l.specs = resize(l.specs, n)
	return l.specs
}

func (l *specList) giveBack() {
	clear(l.specs)
	clear(l.shapes[:])
	specLists.Put(l)
}

// infer runs the Shape and DType rules.
func (n *Node) infer(l *specList) error {
	p := n.op
	if !p.defined {
		return errors.New("BUG: the op has no rules")
	}
	dtypes, err := p.dtype(l.specs, n.attrs, l.dtypes[:0])
	if err != nil {
		return err
	}
	shapes, err := p.shape(l.specs, n.attrs, l.shapes[:0])
	if err != nil {
		return err
	}
	if len(shapes) != len(dtypes) || len(shapes) == 0 {
		return errors.New("BUG: Shape and DType rules disagree on the number of outputs")
	}
	if n.out = n.single[:]; len(shapes) != 1 {
		n.out = make([]output, len(shapes))
	}
	for i := range n.out {
		n.out[i].spec = Spec{shapes[i], dtypes[i]}
		if err := shapes[i].Check(dtypes[i]); err != nil {
			return err
		}
	}
	return nil
}

// failed is the array of a call that could not be made.
func failed(c *Ctx, op string, err error) *Array {
	var oe *OpError
	if !errors.As(err, &oe) {
		err = c.Errorf(op, "%w", err)
	}
	n := &Node{id: nodeIDs.Add(1), op: failedOp, rare: &rare{err: err}}
	if c != nil {
		n.place = compacted(c.Place)
	}
	n.out = n.single[:]
	n.state.Store(int32(Failed))
	return n.array(0)
}

// failedOp stands for the op of a call that could not be made.
var failedOp = &Op{name: "failed"}

// Fail is an array that carries an error: an op given a bad argument returns it.
func Fail(c *Ctx, op, format string, args ...any) *Array {
	return failed(c, op, c.Errorf(op, format, args...))
}

// array makes the first handle of an output; there is one at a time unless a transform makes another.
func (n *Node) array(i int) *Array {
	o := &n.out[i]
	o.weak = o.spec.NBytes() >= weakBytes
	if i == 0 && !o.weak {
		n.handle.node = n
		return &n.handle
	}
	a := &Array{node: n, out: int32(i)}
	if o.weak {
		o.handle = weak.Make(a)
	}
	return a
}

// weakBytes is the size from which an output watches its handle: below, writing it costs less than asking.
const weakBytes = 1 << 20

// State is how far the node has come.
func (n *Node) State() State {
	if n.now() == Lazy {
		claimAll(nil) // it may be an input of what was handed over
	}
	if s := n.now(); s != submitted {
		return s
	}
	return Scheduled
}

// now is State where it does not matter what was handed over and not claimed: that is submitted, or Lazy as yet.
func (n *Node) now() State { return State(n.state.Load()) }

// claimable says whether an evaluation that depends on the node has to claim it.
func (n *Node) claimable() bool { return n.now() <= Lazy }

// ID is a number that later nodes exceed.
func (n *Node) ID() uint64 { return n.id }

// Op is the node's op.
func (n *Node) Op() *Op { return n.op }

// Attrs are the attributes of the call.
func (n *Node) Attrs() any { return n.attrs }

// Place is the line that made the node.
func (n *Node) Place() Place { return n.place.place() }

// Stream is where the node runs.
func (n *Node) Stream() *Stream { return n.stream }

// NumOut is the number of outputs.
func (n *Node) NumOut() int { return len(n.out) }

// Inputs are what the node reads; empty after it was scheduled outside of transforms.
func (n *Node) Inputs() []Value {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Value(nil), n.in...)
}

// SpecFrom is the index of the first input of which only shape and dtype are read.
func (n *Node) specFrom(in int) int {
	if n.op.specFrom == nil {
		return in
	}
	return n.op.specFrom(n.attrs, in)
}

// SpecOnly says whether only shape and dtype of input i are read.
func (n *Node) SpecOnly(i, inputs int) bool { return i >= n.specFrom(inputs) }

// Fixed says that the call's attributes fit its inputs' present shapes only.
func (n *Node) Fixed() bool { return n.op.fixed != nil && n.op.fixed(n.attrs) }

// CanMerge says whether two calls with equal attributes and inputs are one.
func (n *Node) CanMerge() bool { return !n.op.noMerge }

// MayWrite says whether the call may change its inputs' bytes.
func (n *Node) MayWrite() bool { return n.op.writes != nil && n.op.writes(n.attrs) }

// IsView says whether the node's outputs may be views of its first input's bytes.
func (n *Node) IsView() bool { return n.op.view != nil }

// Replay calls the node's op again, with its attributes, on other inputs: shapes and dtypes are inferred anew.
func (n *Node) Replay(c *Ctx, in []*Array) []*Array {
	if c == nil {
		c = &Ctx{Stream: n.stream, Place: n.Place()}
	}
	return all(apply(c, n.op, n.attrs, in))
}

// ReplayInto is Replay on the node's stream and from its line, with the outputs put into out, one for each of the
// node's. Where the call cannot be made each of them is the failed array.
func (n *Node) ReplayInto(out, in []*Array) {
	first, more := apply(&Ctx{Stream: n.stream, Place: n.Place()}, n.op, n.attrs, in)
	for i := range out {
		out[i] = first
	}
	copy(out[1:], more)
}

// all lists the handles of a call.
func all(first *Array, more []*Array) []*Array { return append([]*Array{first}, more...) }

// Call makes a Node of a call of the op and gives its outputs; a call that cannot be made gives one failed Array.
func (o *OpOf[A]) Call(c *Ctx, attrs A, in ...*Array) []*Array {
	return all(apply(c, &o.op, attrs, in))
}

// One is Call for an op of one output.
func (o *OpOf[A]) One(c *Ctx, attrs A, in ...*Array) *Array {
	x, _ := apply(c, &o.op, attrs, in)
	return x
}

// FailWith is Fail with a given error as the cause.
func FailWith(c *Ctx, op string, err error) *Array { return failed(c, op, err) }
