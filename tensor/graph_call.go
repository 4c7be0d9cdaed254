package tensor

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
)

// Prepared is what the rules of a call have asked the program for, such as a user's functions of shapes: they are not
// asked again for inputs of the same specs.
type Prepared struct {
	shapes   []Shape // of the outputs
	prepared any     // what the Prepare rule gave
}

// PreparedBy is that of the call whose output x is; nil: there is nothing.
func PreparedBy(x *Array) *Prepared {
	n := x.vertex()
	if n.op.prepare == nil {
		return nil
	}
	k := &Prepared{prepared: n.rare.prepared}
	for i := range n.out {
		k.shapes = append(k.shapes, n.out[i].spec.Shape)
	}
	return k
}

// apply makes a Node of a call with outputs as the rules say. Its handles are the first, and those that follow.
func apply(c *Ctx, p *Op, attrs any, in []*Array) (result *Array, others []*Array) {
	return applyAs(c, p, attrs, in, nil)
}

// applyAs is apply where it is known what the program says of the call; nil: it is not.
func applyAs(c *Ctx, p *Op, attrs any, in []*Array, as *Prepared) (result *Array, others []*Array) {
	defer func() {
		if r := recover(); r != nil { // no panic crosses the API: a rule's is a bug of the op
			result, others = Fail(c, p.name, "BUG: a rule panicked: %v\n%s", r, debug.Stack()), nil
		}
	}()
	if err := c.Step(); err != nil {
		return failed(c, p.name, err), nil
	}
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
	if err := n.infer(c, scratch, as); err != nil {
		return failed(c, p.name, c.Errorf(p.name, "%w", err)), nil
	}
	var err error
	if n.stream, err = c.stream(); err != nil {
		return failed(c, p.name, err), nil
	}
	switch {
	case as != nil:
		n.extra().prepared = as.prepared
	case p.prepare != nil:
		if n.extra().prepared, err = p.prepare(specs, attrs); err != nil {
			return failed(c, p.name, c.Errorf(p.name, "%w", err)), nil
		}
	}
	n.id = nodeIDs.Add(1)
	n.adopt(c.Holder)
	n.sure = cannotFail(n)
	result = n.array(0)
	for i := range n.out[1:] {
		others = append(others, n.array(i+1))
	}
	addUses(n, n.in, 1)
	runtime.KeepAlive(in) // until the uses are counted, the handles are what keeps the inputs observable
	return result, others
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

// infer runs the Shape and DType rules; as is as in applyAs.
func (n *Node) infer(c *Ctx, l *specList, as *Prepared) error {
	p := n.op
	if !p.defined {
		return errors.New("BUG: the op has no rules")
	}
	dtypes, err := p.dtype(l.specs, n.attrs, l.dtypes[:0])
	if err != nil {
		return err
	}
	var shapes []Shape
	if as != nil {
		shapes = as.shapes
	} else if shapes, err = p.shape(l.specs, n.attrs, l.shapes[:0]); err != nil {
		return err
	}
	if len(shapes) != len(dtypes) || len(shapes) == 0 {
		return errors.New("BUG: Shape and DType rules disagree on the number of outputs")
	}
	if err := c.reserve(len(shapes)); err != nil {
		return err
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

// FailWith is Fail with a given error as the cause.
func FailWith(c *Ctx, op string, err error) *Array { return failed(c, op, err) }

// Replay calls the node's op again, with its attributes, on other inputs: shapes and dtypes are inferred anew.
func (n *Node) Replay(c *Ctx, in []*Array) []*Array {
	if c == nil {
		c = &Ctx{Stream: n.stream, Place: n.Place()}
	}
	first, others := apply(c, n.op, n.attrs, in)
	return handlesOf(first.keepInvariant(n.alike), others)
}

// Replayed is a call without its inputs: what a replay makes again on others.
type Replayed struct {
	Op     *Op
	Attrs  any
	Stream *Stream // nil: the replay's
	place  compactPlace
	alike  bool // see SetBatchInvariant
}

// Replayed is the node's call.
func (n *Node) Replayed() Replayed { return Replayed{n.op, n.attrs, n.stream, n.place, n.alike} }

// BatchInvariant reports whether the call was built under SetBatchInvariant.
func (n *Node) BatchInvariant() bool { return n.alike }

// Place is the line that made the call: zero where it is not known.
func (k *Replayed) Place() Place { return k.place.place() }

// Into makes the call again, with the outputs put into out, one for each. It runs on the call's stream and comes from
// its line, if it has them, else on those of c, whose holder has the outputs. Where the call cannot be made each of
// them is the failed array.
func (k *Replayed) Into(c *Ctx, out, in []*Array) { k.IntoAs(c, out, in, nil) }

// IntoAs is Into for inputs of the specs that an earlier call had, of which it is known what the program gave for it;
// nil: nothing is.
func (k *Replayed) IntoAs(c *Ctx, out, in []*Array, as *Prepared) {
	at := Ctx{Stream: k.Stream, Place: k.Place(), Holder: c.Holder}
	if at.Stream == nil {
		at.Stream = c.Stream
	}
	if k.place == (compactPlace{}) {
		at.Place = c.Place
	}
	first, others := applyAs(&at, k.Op, k.Attrs, in, as)
	first.keepInvariant(k.alike)
	for i := range out {
		out[i] = first
	}
	copy(out[1:], others)
}

// handlesOf lists the handles of a call.
func handlesOf(first *Array, others []*Array) []*Array { return append([]*Array{first}, others...) }

// Call makes a Node of a call of the op and gives its outputs; a call that cannot be made gives one failed Array.
func (o *OpOf[A]) Call(c *Ctx, attrs A, in ...*Array) []*Array {
	return handlesOf(apply(c, &o.op, attrs, in))
}

// One is Call for an op of one output.
func (o *OpOf[A]) One(c *Ctx, attrs A, in ...*Array) *Array {
	x, _ := apply(c, &o.op, attrs, in)
	return x
}
