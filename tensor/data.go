package tensor

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// storage owns a buffer for the outputs that lie in it. When it becomes garbage the buffer goes back to the pool;
// sooner where the engine can prove that no one will read it again.
type storage struct {
	buf      *metal.Buffer
	owned    *metal.Owned // nil while no one but the engine can reach the outputs: it gives the buffer back itself
	dev      *metal.Device
	stream   *Stream      // whose kernels wrote it; nil: the host did
	users    atomic.Int32 // outputs that lie in it
	pins     atomic.Int32 // host views that are open
	shared   atomic.Bool  // another stream reads it too, or the host does when a command buffer has run
	external bool         // someone outside holds the buffer: it must not be written
}

// newStorage takes over one reference of buf, for the collector to give back.
func newStorage(dev *metal.Device, s *Stream, buf *metal.Buffer) *storage {
	st := &storage{dev: dev, stream: s, buf: buf}
	st.own()
	return st
}

// own ties the buffer to the collector.
func (st *storage) own() {
	if st.owned == nil {
		st.owned = metal.OwnedBy(st, st.buf)
	}
}

// take gives the reference on the buffer to the caller: no output lies in it any more. It is nil if that was done
// before.
func (st *storage) take() *metal.Buffer {
	if st.owned != nil {
		return st.owned.Stop()
	}
	buf := st.buf
	st.buf = nil
	return buf
}

// writable says whether the stream may write to the storage once no output lies in it.
func (st *storage) writable(s *Stream) bool {
	return st.stream == s && !st.external && !st.shared.Load() && st.pins.Load() == 0
}

// crowd hands out storages of small buffers that the collector gives back, a few of which share one clean-up: it runs
// when none of them is reachable.
type crowd struct {
	room   []storage // those of the newest few that are left
	owners *metal.Owners
	bytes  int64 // that the newest few own
}

// crowdBytes is the most that a few storages own together, and so the most that a reachable array keeps from the pool
// of those computed beside it.
const crowdBytes = 4 << 10

// next is a storage that owns one reference of buf, of crowdBytes at most.
func (c *crowd) next(dev *metal.Device, buf *metal.Buffer) *storage {
	if len(c.room) == 0 || c.bytes+buf.Len() > crowdBytes {
		few := new([metal.MaxOwners]storage)
		c.room, c.owners, c.bytes = few[:], metal.OwnersBy(few, dev), 0
	}
	st := &c.room[0]
	c.room = c.room[1:]
	c.bytes += buf.Len()
	st.owned = c.owners.Own(buf)
	return st
}

// inlineBytes is the size up to which a constant stays in its node.
const inlineBytes = 64

// FromBytes is an array of the spec whose elements are a copy of b, in row-major order: it is ready at once. It
// fails if b's length does not fit, or if the device's memory does not hold it.
func FromBytes(c *Ctx, spec Spec, b []byte) *Array {
	const op = "array"
	if err := spec.Shape.Check(spec.DType); err != nil {
		return failed(c, op, c.Errorf(op, "%w", err))
	}
	if int64(len(b)) != spec.NBytes() {
		return Fail(c, op, "%d bytes do not fill %v", len(b), spec)
	}
	v := View{Strides: spec.Shape.Strides()}
	dev := currentDevice()
	if len(b) <= inlineBytes || dev == nil {
		v.inline = slices.Clone(b)
	} else {
		buf, err := dev.AllocCopy(b)
		if err != nil {
			return failed(c, op, c.Errorf(op, "%w", err))
		}
		w := c.place()
		buf.SetOrigin(metal.Origin{Op: op, Place: w, Shape: spec.Shape.Clone(),
			Type: spec.DType.String()})
		v.buf, v.owner = buf, newStorage(dev, nil, buf)
	}
	return constant(c, spec, v)
}

// constantOp stands for the op of an array that was made from data.
var constantOp = &Op{name: "array", noMerge: true}

// IsConstant says whether the node is no call of an op but data (FromBytes).
func (n *Node) IsConstant() bool { return n.op == constantOp }

func constant(c *Ctx, spec Spec, v View) *Array {
	n := &Node{id: nodeIDs.Add(1), op: constantOp}
	n.out = n.single[:]
	if c != nil {
		n.place = compacted(c.Place)
	}
	n.out[0].spec = Spec{spec.Shape.Clone(), spec.DType}
	n.out[0].data = v
	if v.owner != nil {
		v.owner.users.Add(1)
	}
	n.state.Store(int32(Ready))
	return n.array(0)
}

// Bytes evaluates x and gives its elements in row-major order, as a copy. It fails like Eval, if x is an input
// of a transform that has no values or depends on one, and if the copy is larger than the device's memory limit: a
// broadcast array of a few bytes may have elements without end.
func (x *Array) Bytes(ctx context.Context) ([]byte, error) {
	spec, v, release, err := x.HostView(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := Fits(spec); err != nil {
		return nil, (&Ctx{Place: x.node.Place()}).Errorf("item", "a copy of the elements: %w", err)
	}
	out := make([]byte, spec.NBytes())
	if len(out) > 0 {
		strided(out, spec, v)
	}
	return out, nil
}

// Fits says why an array of that spec cannot be held with elements of its own: it is larger than the default device's
// memory limit. Without a device everything fits.
func Fits(spec Spec) error {
	dev := currentDevice()
	if dev == nil {
		return nil
	}
	if n, limit := spec.NBytes(), dev.Memory().Limit; n > limit {
		return fmt.Errorf("%v takes %d bytes, more than the memory limit of %d", spec, n, limit)
	}
	return nil
}

// HostView evaluates x and gives its elements where they lie: see View.Bytes. They stay valid, and must not be
// changed, until release is called. It fails as Bytes does.
func (x *Array) HostView(ctx context.Context) (spec Spec, v View, release func(), err error) {
	if err := x.readable("item"); err != nil {
		return Spec{}, View{}, nil, err
	}
	if err := evaluate(ctx, "item", x); err != nil {
		return Spec{}, View{}, nil, err
	}
	n := x.node
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.out[x.out]
	if o.gone {
		if w := x.freed.Load(); w != nil {
			return Spec{}, View{}, nil, x.freedError("item", *w)
		}
		c := &Ctx{Place: n.Place()}
		return Spec{}, View{}, nil, c.Errorf("item", "the value of %v was dropped: it had been declared unread",
			x.describe())
	}
	v = o.data
	if err := o.unwritten(); err != nil {
		return Spec{}, View{}, nil, (&Ctx{Place: n.Place()}).Errorf("item", "%w", err)
	}
	if st := v.owner; st != nil {
		st.pins.Add(1)
		v.buf.Retain()
		buf := v.buf
		var once atomic.Bool
		release = func() {
			if once.CompareAndSwap(false, true) {
				buf.Release()
				st.pins.Add(-1)
			}
		}
	} else {
		release = func() {}
	}
	runtime.KeepAlive(x)
	return Spec{o.spec.Shape.Clone(), o.spec.DType}, v, release, nil
}

// unwritten says under validation which elements of an output no kernel has written. Of outputs whose elements do not
// lie side by side it knows nothing.
func (o *output) unwritten() error {
	v, size := o.data, int64(o.spec.DType.Size())
	if v.buf == nil || !v.Contiguous(o.spec.Shape) {
		return nil
	}
	at, bytes, writer := metal.Range{Buf: v.buf, Offset: v.OffsetBytes, Bytes: o.spec.NBytes()}.Unwritten()
	if at < 0 {
		return nil
	}
	return fmt.Errorf("%d of the %d elements of %v were never written, the first at %d, by %s", (bytes+size-1)/size,
		o.spec.Shape.Size(), o.spec, at/size, writer)
}

// readable says why the values of x cannot be read.
func (x *Array) readable(op string) error {
	if x == nil {
		return &OpError{Op: op, Msg: "the array is nil"}
	}
	if err := x.Err(); err != nil {
		return err
	}
	if w := x.freed.Load(); w != nil {
		return x.freedError(op, *w)
	}
	t := x.node.abstractTrace()
	if t == nil {
		return nil
	}
	if t.ended.Load() {
		return x.outlived(op, t, &Ctx{Place: x.node.Place()})
	}
	what := "depends on an input of " + t.name
	if x.node.IsPlaceholder() {
		what = "is an input of " + t.name
	}
	return (&Ctx{Place: x.node.Place()}).Errorf(op, "%s %s: its values are not known while f is traced",
		x.describe(), what)
}

func (x *Array) freedError(op string, at Place) error {
	return (&Ctx{Place: x.node.Place()}).Errorf(op, "the array made at %s was freed at %s",
		orUnknown(x.node.Place()), orUnknown(at))
}
