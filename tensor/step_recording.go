package tensor

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// Recording is a graph that a transform builds again and again on other inputs of the same shapes and dtypes. A call of
// it is one node. The first time that such a node is evaluated for inputs that lie in a certain way, the graph is built
// and planned, and the commands that the recorder makes of it are kept: a take. From then on they are encoded again, on
// the buffers of the day. Any goroutine may call its methods.
type Recording struct {
	specs  []Spec // of the inputs
	reads  []int  // the inputs whose elements are read, in the order of the node's inputs
	consts []stepConst
	read   []int // the same of consts: the node reads them behind the inputs
	outs   []Spec
	starts []int // by output: the node's input that it starts as a copy of, or -1
	fails  bool  // a call may fail, though it was right: it checks indices
	build  StepBuilder
	ahead  atomic.Bool // indices are checked before what writes over inputs
	calls  atomic.Bool // a library's routine computes something: no input is written over
	user   bool        // a user's kernel is among the calls: it may fail, and never end

	mu    sync.Mutex
	takes []*take // least recently used first
	made  int     // takes so far
}

// StepBuilder builds the graph of a Recording on inputs and constants, as far as the outputs depend on it that are
// needed: what it makes for others it leaves out, and those are nil. It is called on a stream's goroutine.
type StepBuilder func(c *Ctx, in, consts []*Array, need []bool) ([]*Array, error)

// StepShape is what a transform knows of the graph of a Recording.
type StepShape struct {
	Inputs []Spec
	Consts []*Array // what the graph uses beside the inputs
	Outs   []Spec   // of its outputs, each of which is one of a call in the graph
	// Reads and ConstReads say of which inputs and constants the graph reads the elements, not only the spec.
	Reads, ConstReads []bool
	// Starts says for each output which input it starts as a copy of, to be changed in place; -1: none.
	Starts []int
	Fails  bool // a call in the graph checks indices
	// Unending says that a call in the graph may never end: see Replayed.Unending.
	Unending bool
}

// What a Recording keeps at most: takes, and bytes of all but the last.
const (
	mostTakes     = 8
	mostTakeBytes = 8 << 20
)

// NewRecording is the recording of a graph.
func NewRecording(s StepShape, build StepBuilder) *Recording {
	r := &Recording{specs: s.Inputs, outs: s.Outs, fails: s.Fails, user: s.Unending, build: build}
	place := map[int]int{}
	for i, reads := range s.Reads {
		if reads {
			place[i] = len(r.reads)
			r.reads = append(r.reads, i)
		}
	}
	for i, x := range s.Consts {
		k := stepConst{spec: x.Spec()}
		if s.ConstReads[i] && !k.takeInline(x) {
			k.x = x
			r.read = append(r.read, i)
		}
		r.consts = append(r.consts, k)
	}
	for _, i := range s.Starts {
		at, ok := place[i]
		if !ok {
			at = -1
		}
		r.starts = append(r.starts, at)
	}
	return r
}

// stepConst is what a graph uses beside its inputs: an array that the node reads, or the bytes of a small one, or a
// spec alone.
type stepConst struct {
	spec   Spec
	x      *Array
	view   View // with inline bytes
	filled bool
}

// takeInline takes the bytes of a small constant, and reports whether x is one.
func (k *stepConst) takeInline(x *Array) bool {
	n := x.vertex()
	if n.now() != Ready {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.out[x.out]
	if o.data.inline == nil || o.gone || o.spent {
		return false
	}
	k.view, k.filled = o.data, o.filled
	return true
}

// standIn is a ready array with the bytes, or one whose elements nobody reads.
func (k *stepConst) standIn() *Array {
	v := k.view
	if v.inline == nil {
		v = View{inline: []byte{}, Strides: k.spec.Shape.Strides()}
	}
	x := constant(nil, k.spec, v)
	x.node.out[0].filled = k.filled
	return x
}

// Call gives the outputs of the graph for inputs, which have the recording's specs: lazily, as one node.
func (r *Recording) Call(c *Ctx, in []*Array) ([]*Array, error) {
	args := make([]*Array, 0, len(r.reads)+len(r.read))
	for _, i := range r.reads {
		args = append(args, in[i])
	}
	for _, i := range r.read {
		args = append(args, r.consts[i].x)
	}
	op := stepOp
	if r.user {
		op = userStepOp
	}
	first, others := apply(c, op, r, args)
	if err := first.Err(); err != nil {
		return nil, err
	}
	return handlesOf(first, others), nil
}

// stepOp is the op of a recording's calls. Its attributes are the recording.
var stepOp = &Op{
	name: "compiled", defined: true, noMerge: true, temporary: "a temporary of compiled",
	copied: "a contiguous copy for compiled",
	shape: func(_ []Spec, a any, outs []Shape) ([]Shape, error) {
		for _, s := range a.(*Recording).outs {
			outs = append(outs, s.Shape)
		}
		return outs, nil
	},
	dtype: func(_ []Spec, a any, outs []DType) ([]DType, error) {
		for _, s := range a.(*Recording).outs {
			outs = append(outs, s.DType)
		}
		return outs, nil
	},
	indicesFrom: func(a any, n int) int { // as if all inputs were indices
		if a.(*Recording).fails {
			return 0
		}
		return n
	},
	updates: func(a any, out int) int { return a.(*Recording).starts[out] },
	record:  func(rec *recorder, t *task) error { return rec.steps.record(t) },
}

// userStepOp is stepOp for recordings with users' kernels.
var userStepOp = func() *Op {
	op := *stepOp
	op.partial = true
	return &op
}()

// find is the take of a key on a stream, which is the most recently used one from now on; nil: there is none.
func (r *Recording) find(key []byte, s *Stream) *take {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, t := range slices.Backward(r.takes) {
		if t.stream == s && string(key) == t.key {
			if i != len(r.takes)-1 {
				r.takes = append(slices.Delete(r.takes, i, i+1), t)
			}
			return t
		}
	}
	return nil
}

// keep adds a take, in the place of an earlier one of its key.
func (r *Recording) keep(t *take) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	r.takes = slices.DeleteFunc(r.takes, func(o *take) bool {
		same := o.stream == t.stream && o.key == t.key
		if same {
			o.drop()
		}
		return same
	})
	r.takes = append(r.takes, t)
	for len(r.takes) > 1 && (len(r.takes) > mostTakes || r.takeBytes() > mostTakeBytes) {
		r.takes[0].drop()
		r.takes = slices.Delete(r.takes, 0, 1)
	}
}

// Drop lets go of the takes: calls make new ones where they need them.
func (r *Recording) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.takes {
		t.drop()
	}
	r.takes = nil
}

// takeBytes is what the takes take. Called with mu held.
func (r *Recording) takeBytes() (n int64) {
	for _, t := range r.takes {
		n += t.bytes + t.formBytes()
	}
	return n
}

// Takes is how many lists of commands were made so far, for inputs that lie in different ways, and how many are kept.
func (r *Recording) Takes() (made, kept int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made, len(r.takes)
}

// Commands is how many commands the take used last has; 0: there is none.
func (r *Recording) Commands() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.takes) == 0 {
		return 0
	}
	return len(r.takes[len(r.takes)-1].cmds)
}

// What a Recording takes in memory, in bytes: about, and rather more than less.
const (
	recordingBytes = 512
	takeBytes      = 512
	commandBytes   = 256
	bindingBytes   = 80
	seatBytes      = 256
)

// Bytes is about what the recording takes in memory beside its constants. What libraries of it have that are not in
// their cache any more counts.
func (r *Recording) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := recordingBytes + specBytes*int64(len(r.specs)+len(r.outs)) + r.takeBytes()
	seen := map[*metal.Library]bool{}
	for _, t := range r.takes {
		for _, l := range t.libs {
			if !seen[l] && !l.Cached() {
				n += l.Bytes()
			}
			seen[l] = true
		}
	}
	return n
}

// specBytes is what a Spec takes.
const specBytes = 96

// Recordable says why the call, which has so many inputs, cannot be part of a Recording; "": it can. What the rules say
// decides, not which op it is. What the host computes of nothing but specs is the same each time, and so is what the
// program says of specs: see Prepared.
func (k *Replayed) Recordable(inputs int) string {
	switch p := k.Op; {
	case p.host != nil && (!p.sure || p.noMerge || k.Reads(inputs) > 0):
		return p.name + " is computed on the host"
	}
	return ""
}

// Unending reports whether the call runs a user's kernel: it may fail though it was right, and never end.
func (k *Replayed) Unending() bool { return k.Op.partial }

// Reads is of how many of its first inputs the call reads the elements, of others only the spec.
func (k *Replayed) Reads(inputs int) int {
	if k.Op.specFrom == nil {
		return inputs
	}
	return k.Op.specFrom(k.Attrs, inputs)
}

// ChecksIndices reports whether the call, which has so many inputs, fails where an index is out of range.
func (k *Replayed) ChecksIndices(inputs int) bool {
	return k.Op.indicesFrom != nil && k.Op.indicesFrom(k.Attrs, inputs) < k.Reads(inputs)
}

// Starts is the input that output out of the call starts as a copy of, or that it is a view of; -1: there is none.
func (k *Replayed) Starts(out int) int {
	if k.Op.view != nil {
		return 0
	}
	return k.Op.starts(k.Attrs, out)
}

// Updates reports whether output out of the call is an input that the call changes.
func (k *Replayed) Updates(out int) bool { return k.Op.view == nil && k.Op.starts(k.Attrs, out) >= 0 }

// Watched says why no calls of recordings are to be made just now, since somebody looks at each op; "": nobody does.
func Watched() string {
	switch {
	case checkNaN.Load():
		return "every result is searched for NaNs"
	case profile.Load() != nil:
		return "a profile is taken of each op"
	}
	return ""
}
