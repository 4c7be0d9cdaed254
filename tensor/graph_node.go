package tensor

import (
	"fmt"
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

// The states that are Scheduled to all but the engine.
const (
	submitted State = -1 // a root of an evaluation that nobody has claimed
	undone    State = -2 // claimed, and not computed: it is lazy again when its evaluation is over
)

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
	mu       sync.Mutex  // guards in, rare, taskDone and the outputs' handle, dead and data
	slot     int32       // its index in seg
	taskDone bool        // its task reads in no more
	alike    bool        // its products have one order of sums for all rows: see SetBatchInvariant
	sure     bool        // it cannot fail, nor can what it depends on: see cannotFail; not changed
	proven   atomic.Bool // the same, found by mayFail when what it depends on had been computed
	stream   *Stream
	runs     *Stream // where it runs, once it is claimed: stream, or the default one of that time
	seenBy   uint64  // the walk that saw it last; guarded by schedMu
	in       []Value
	traces   *traceSet // the traces it depends on: those of its inputs
	few      [2]Value  // in, where there are few
	seg      *segment  // what it was claimed for
	holder   *Holder   // whose looks say which outputs can be read; nil: the collector does

	out   []output
	id    uint64
	attrs any
	place compactPlace
	rare  *rare

	changes atomic.Pointer[nodeChanges] // that its outputs are values of; stored with mu held

	// Few large objects are made, watched and looked at faster than many small ones:
	single [1]output // out, where there is one
	home   storage   // the first output's, where it has one of its own
	handle Array     // the first output's first handle, where the output does not watch it
}

// rare is what few nodes need.
type rare struct {
	prepared any // what the Prepare rule gave, for Run
	err      error
	done     chan struct{} // closed at Ready or Failed, or when it is lazy again; made when first waited for
	gaveUp   *job          // the last that claimed it and did not compute it
}

// extra is n.rare, made if need be. Called with mu held, or before the node is shared.
func (n *Node) extra() *rare {
	if n.rare == nil {
		n.rare = &rare{}
	}
	return n.rare
}

type output struct {
	spec    Spec
	data    View                // set when its kernel is recorded, valid when ready
	handle  weak.Pointer[Array] // the Array on this output, to learn whether someone may still read it
	weak    bool                // handle is set
	dead    bool                // no one may: the handle was freed or dropped
	spent   bool                // its last reader is recorded: its storage serves later calls, unless the reader is undone
	gone    bool                // its data was given back, or never written, because no one could read it
	filled  bool                // one element in memory stands for all: see Rules.Fills; set with data
	owners  int32               // handles that Own made and nobody freed: beyond the first
	asked   bool                // it is asked for, and so is written; changed by claiming and undoing only
	readers readers
	// reached is the holder's last look that reached the output: see Holder.
	reached atomic.Uint64
}

// readers counts the nodes that have still to read an output: those whose tasks are not recorded, which wait, and those
// whose commands have not run.
type readers struct{ n atomic.Int64 }

// recordedReader is what a reader counts that is recorded; one that waits counts 1.
const recordedReader = 1 << 32

// waiting is the number of readers that are not recorded.
func (r *readers) waiting() int32 { return int32(r.n.Load()) }

// none reports whether there is no reader.
func (r *readers) none() bool { return r.n.Load() == 0 }

var nodeIDs atomic.Uint64

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
		o.watch(a)
	}
	return a
}

// watch makes a the handle that tells whether somebody may still read the output.
func (o *output) watch(a *Array) { o.handle = weak.Make(a) }

// weakBytes is the size from which an output watches its handle: below, writing it costs less than asking.
const weakBytes = 1 << 20

// State is how far the node has come.
func (n *Node) State() State {
	if n.now() == Lazy {
		claimAll(nil) // it may be an input of what was handed over
	}
	if s := n.now(); s >= Lazy {
		return s
	}
	return Scheduled
}

// now is State where it does not matter what was handed over and not claimed: that is submitted, or Lazy as yet. It may
// be undone.
func (n *Node) now() State { return State(n.state.Load()) }

// claimable reports whether an evaluation that depends on the node has to claim it.
func (n *Node) claimable() bool {
	s := n.now()
	return s == Lazy || s == submitted
}

// pending reports whether an evaluation has claimed the node and is not done with it.
func (n *Node) pending() bool {
	s := n.now()
	return s == Scheduled || s == undone
}

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

// specFrom is the index of the first input of which only shape and dtype are read.
func (n *Node) specFrom(in int) int {
	if n.op.specFrom == nil {
		return in
	}
	return n.op.specFrom(n.attrs, in)
}

// SpecOnly reports whether only shape and dtype of input i are read.
func (n *Node) SpecOnly(i, inputs int) bool { return i >= n.specFrom(inputs) }

// IsIndex reports whether input i of several is read as indices.
func (n *Node) IsIndex(i, inputs int) bool {
	return n.op.indicesFrom != nil && i >= n.op.indicesFrom(n.attrs, inputs) && !n.SpecOnly(i, inputs)
}

// Fixed reports whether the call's attributes fit its inputs' present shapes only.
func (n *Node) Fixed() bool { return n.op.fixed != nil && n.op.fixed(n.attrs) }

// CanMerge reports whether two calls with equal attributes and inputs are one.
func (n *Node) CanMerge() bool { return !n.op.noMerge }

// IsView reports whether the node's outputs may be views of its first input's bytes.
func (n *Node) IsView() bool { return n.op.view != nil }

// String names the node in messages.
func (n *Node) String() string { return fmt.Sprintf("%s #%d", n.op.name, n.id) }
