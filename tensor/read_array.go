package tensor

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// Bytes evaluates x and gives its elements in row-major order, as a copy. It fails like Eval, if x is an input
// of a transform that has no values or depends on one, and if the copy is larger than the device's memory limit: a
// broadcast array of a few bytes may have elements without end.
func (x *Array) Bytes(ctx context.Context) ([]byte, error) {
	spec, v, release, err := x.HostView(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := Fits(nil, spec); err != nil {
		return nil, (&Ctx{Place: x.node.Place()}).Errorf("item", "a copy of the elements: %w", err)
	}
	out := make([]byte, spec.NBytes())
	if len(out) == 0 {
		return out, nil
	}
	err = v.Guard(func() error {
		v.copyTo(out, spec)
		return nil
	})
	if err != nil {
		return nil, (&Ctx{Place: x.node.Place()}).Errorf("item", "%w", err)
	}
	return out, nil
}

// Fits says why an array of that spec cannot be held with elements of its own: it is larger than the memory limit of
// the call's device. Without a device everything fits.
func Fits(c *Ctx, spec Spec) error {
	dev := c.device()
	if dev == nil {
		return nil
	}
	if n, limit := spec.NBytes(), dev.Memory().Limit; n > limit {
		return fmt.Errorf("%v takes %d bytes, more than the memory limit of %d", spec, n, limit)
	}
	return nil
}

// HostView evaluates x and gives its elements for reading: where they lie, if the host can address that, else a copy.
// They stay valid, and must not be changed, until release is called. It fails as Bytes does.
func (x *Array) HostView(ctx context.Context) (spec Spec, h HostView, release func(), err error) {
	spec, v, unpin, err := x.pinned(ctx)
	if err != nil {
		return Spec{}, HostView{}, nil, err
	}
	h, end, err := v.toHost(ctx, spec, x.node.holder.account())
	if err != nil {
		unpin()
		return Spec{}, HostView{}, nil, (&Ctx{Place: x.node.Place()}).Errorf("item", "%w", err)
	}
	var once sync.Once
	return spec, h, func() {
		once.Do(end)
		unpin()
	}, nil
}

// pinned evaluates x and says where its elements lie, which nobody writes to until release is called.
func (x *Array) pinned(ctx context.Context) (spec Spec, v View, release func(), err error) {
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
	if o.gone || o.spent {
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

// BufferBytes is the size of the buffers that arrays lie in, each counted once; of small constants, which lie in none,
// it is that of their elements. It fails if an array is not evaluated.
func BufferBytes(xs ...*Array) (bytes int64, err error) {
	seen := map[any]bool{}
	for _, x := range xs {
		if err := x.readable("get_array_buffer_size"); err != nil {
			return 0, err
		}
		if x.State() != Ready {
			c := &Ctx{Place: x.node.Place()}
			return 0, c.Errorf("get_array_buffer_size", "%v is not evaluated", x.describe())
		}
		_, v, release, err := x.pinned(context.Background())
		if err != nil {
			return 0, err
		}
		switch {
		case v.buf != nil && !seen[v.buf]:
			seen[v.buf] = true
			bytes += v.buf.Len()
		case v.buf == nil && len(v.inline) > 0 && !seen[&v.inline[0]]:
			seen[&v.inline[0]] = true
			bytes += int64(len(v.inline))
		}
		release()
	}
	return bytes, nil
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
	if writer == "" {
		writer = "any kernel"
	}
	return fmt.Errorf("%d of the %d elements of %v were never written, the first at %d, by %s", (bytes+size-1)/size,
		o.spec.Shape.Size(), o.spec, at/size, writer)
}

// Readable says why the values of x cannot be read, whatever is computed: it carries an error, was freed, or depends on
// inputs of a transform that have none.
func (x *Array) Readable() error { return x.readable("item") }

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
		c := &Ctx{Place: x.node.Place()}
		if err := x.outside(op, c); err != nil {
			return err
		}
		return x.poisoned(op, c)
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
