package tensor

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Array is a handle on one output of a Node: an n-dimensional array, computed when someone reads it. It is immutable
// and may be used by any goroutine. An op that has nothing to do, such as a reshape to the same shape, gives its
// argument's own handle: see Own. The zero Array and a nil one hold nothing: they have no dimensions, reading their
// values is an error, and so is an op's result that would depend on them.
type Array struct {
	node  *Node
	out   int32
	owned atomic.Int32          // how: notOwned, ownedOnce or shared
	of    *Array                // the handle that the output watches, where this is a further one: kept as long as this
	freed atomic.Pointer[Place] // where Free was called
}

// nothing is the node of arrays that were not made by an op.
var nothing = failed(nil, "array", errors.New("a zero Array has no value: arrays come from operations")).node

// vertex is the node that x stands for.
func (x *Array) vertex() *Node { return x.Value().Node }

// Own gives x to an owner who will Free it or drop it: the first one gets x itself, each later one a handle of its
// own on the same output. The bytes live until all owners have freed theirs.
func (x *Array) Own() *Array {
	if x == nil || x.owned.CompareAndSwap(notOwned, ownedOnce) || x.vertex().now() == Failed {
		return x
	}
	a := &Array{node: x.node, out: x.out, of: x}
	a.owned.Store(ownedOnce)
	x.vertex().mu.Lock()
	defer x.vertex().mu.Unlock()
	x.vertex().out[x.out].owners++
	return a
}

// How a handle is owned.
const (
	notOwned  = iota
	ownedOnce // Own gave it to its first owner
	shared    // others than that owner may have it
	ended     // it was given up
)

// Share says that others than x's owner have got x itself, not a handle of their own.
func (x *Array) Share() {
	for x != nil {
		was := x.owned.Load()
		if was == ended || x.owned.CompareAndSwap(was, shared) {
			return
		}
	}
}

// Sole reports whether the owner that Own gave x to is the only one who has it.
func (x *Array) Sole() bool { return x != nil && x.owned.Load() == ownedOnce }

// Value is the node output that x stands for.
func (x *Array) Value() Value {
	if x == nil || x.node == nil {
		return Value{Node: nothing}
	}
	return Value{x.node, int(x.out)}
}

// Spec is x's shape and dtype, for engine code: it is no read (see Shape). The shape must not be changed.
func (x *Array) Spec() Spec { return x.Value().Spec() }

// Shape is a copy of x's shape. In a trace it is a read of every dimension: compile guards them.
func (x *Array) Shape() Shape {
	s := x.Spec().Shape.Clone()
	for axis := range s {
		x.read(axis)
	}
	return s
}

// Dim is x's size along an axis (negative: from the end). In a trace it is a read of that dimension only.
func (x *Array) Dim(axis int) (int, error) {
	s := x.Spec().Shape
	a, err := Axis(axis, len(s))
	if err != nil {
		return 0, err
	}
	x.read(a)
	return s[a], nil
}

// Size is the number of elements. In a trace it is a read of that number only: other sizes of the dimensions may
// give the same.
func (x *Array) Size() int {
	x.read(WholeSize)
	return x.Spec().Shape.Size()
}

// WholeSize stands in place of an axis where the number of elements is read: see NewTrace and Read.
const WholeSize = -1

// Read is Size for axis WholeSize, and Dim for others.
func (x *Array) Read(axis int) (int, error) {
	if axis == WholeSize {
		return x.Size(), nil
	}
	return x.Dim(axis)
}

func (x *Array) read(axis int) {
	for _, t := range x.vertex().traces.list() {
		if t.onRead != nil && !t.ended.Load() {
			t.onRead(x, axis)
		}
	}
}

// NDim is the number of dimensions. It is no read: ranks never change in a replay.
func (x *Array) NDim() int { return len(x.Spec().Shape) }

// DType is the elements' type.
func (x *Array) DType() DType { return x.Spec().DType }

// Err is the error of a failed array, or nil. It does not evaluate.
func (x *Array) Err() error {
	if x.vertex().now() == Failed {
		return x.vertex().rare.err
	}
	return nil
}

// State is how far x's computation has come.
func (x *Array) State() State { return x.vertex().State() }

// usable says why x cannot be an input of op.
func (x *Array) usable(op string, c *Ctx) error {
	if x == nil || x.node == nil {
		return c.Errorf(op, "an input is nil or a zero Array")
	}
	if w := x.freed.Load(); w != nil {
		return c.Errorf(op, "the array made at %s was freed at %s", orUnknown(x.vertex().Place()), orUnknown(*w))
	}
	if err := x.Err(); err != nil {
		return err
	}
	if t := x.vertex().abstractTrace(); t != nil && t.ended.Load() {
		return x.outlived(op, t, c)
	}
	if err := x.outside(op, c); err != nil {
		return err
	}
	return x.poisoned(op, c)
}

// outlived is the error of an array without values that was kept beyond the trace that it was made in.
func (x *Array) outlived(op string, t *Trace, c *Ctx) error {
	return c.Errorf(op, "the array made at %s belongs to a %s trace that has ended: "+
		"return it from the function instead of keeping it", orUnknown(x.vertex().Place()), t.name)
}

func orUnknown(w Place) string {
	if s := w.String(); s != "" {
		return s
	}
	return "an unknown line"
}

// Free says that x will not be read again: its bytes are given back as soon as nothing that was built from it needs
// them. Later use of x is an error that names both lines.
func (x *Array) Free(c *Ctx) {
	if x == nil || x.node == nil {
		return
	}
	if c == nil {
		c = &Ctx{}
	}
	if at := c.Place; x.freed.CompareAndSwap(nil, &at) {
		Drop(x)
	}
}

// String is the array's dtype and shape, or why it has none, for messages of Go programs: it evaluates nothing.
func (x *Array) String() string {
	switch {
	case x == nil:
		return "no array"
	case x.Err() != nil:
		return "failed array: " + x.Err().Error()
	}
	return "array " + x.Spec().String()
}

// describe names x in messages.
func (x *Array) describe() string {
	return fmt.Sprintf("%v made at %s", x.Spec(), orUnknown(x.vertex().Place()))
}
