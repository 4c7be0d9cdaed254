package tensor

import (
	"context"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// inlineBytes is the size up to which a constant stays in its node.
const inlineBytes = 64

// FromBytes is an array of the spec whose elements are a copy of b, in row-major order, in memory of the call's device:
// it is ready at once. It fails if b's length does not fit, or if the device's memory does not hold it.
func FromBytes(c *Ctx, spec Spec, b []byte) *Array {
	const op = "array"
	if err := spec.Shape.Check(spec.DType); err != nil {
		return failed(c, op, c.Errorf(op, "%w", err))
	}
	if int64(len(b)) != spec.NBytes() {
		return Fail(c, op, "%d bytes do not fill %v", len(b), spec)
	}
	v := View{Strides: spec.Shape.Strides()}
	dev := c.device()
	if len(b) <= inlineBytes || dev == nil {
		v.inline = slices.Clone(b)
	} else {
		buf, err := dev.AllocCopy(context.Background(), b, &metal.Origin{Op: op, Place: c.place(), Shape: spec.Shape.Clone(),
			Type: spec.DType.String(), Account: c.holder().account(), Owner: c.holder().memory()})
		if err != nil {
			return failed(c, op, c.Errorf(op, "%w", err))
		}
		v.buf, v.owner = buf, newStorage(dev, buf, c.holder())
	}
	return constant(c, spec, v)
}

// FromMapping is an array of the spec whose elements lie in a file's mapping from offset on, in row-major order:
// nothing is read before somebody reads them, and nothing is allocated. The array keeps the mapping. It fails if the
// elements are not within the file, and with metal.ErrNotMapped where the call's device cannot use them in place.
func FromMapping(c *Ctx, spec Spec, m *metal.Mapping, offset int64) (*Array, error) {
	const op = "load"
	if err := spec.Shape.Check(spec.DType); err != nil {
		return nil, err
	}
	dev := c.device()
	if dev == nil || spec.NBytes() == 0 {
		return nil, metal.ErrNotMapped
	}
	buf, err := dev.MappedBuffer(m, offset, spec.NBytes())
	if err != nil {
		return nil, err
	}
	buf.SetOrigin(metal.Origin{Op: op, Place: c.place(), Shape: spec.Shape.Clone(), Type: spec.DType.String()})
	st := newStorage(dev, buf, c.holder())
	st.external = true
	return constant(c, spec, View{buf: buf, owner: st, Strides: spec.Shape.Strides()}), nil
}

// constantOp stands for the op of an array that was made from data.
var constantOp = &Op{name: "array", noMerge: true}

// IsConstant reports whether the node is no call of an op but data (FromBytes).
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
		v.owner.hold()
	}
	n.adopt(c.holder())
	if v.owner != nil && n.holder.lists(v.buf) {
		n.holder.list(n, 0, v.owner)
	}
	n.state.Store(int32(Ready))
	return n.array(0)
}
