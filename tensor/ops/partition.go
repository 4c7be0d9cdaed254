package ops

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// partitionAttrs: the element that comes to its place in the order, negative from the end.
type partitionAttrs struct{ Kth int }

// topKAttrs: how many elements, at least one.
type topKAttrs struct{ K int }

var (
	// All work along the last axis.
	partition    = tensor.Declare[partitionAttrs]("partition")
	argPartition = tensor.Declare[partitionAttrs]("argpartition")
	topK         = tensor.Declare[topKAttrs]("topk")
	argTopK      = tensor.Declare[topKAttrs]("argtopk")
)

func init() {
	check := func(in []tensor.Spec, kth int) (tensor.Shape, error) {
		s := in[0].Shape
		if len(s) == 0 {
			return nil, errors.New("a scalar has no axis to partition along")
		}
		if n := s[len(s)-1]; kth < -n || kth >= n {
			return nil, fmt.Errorf("kth is %d, out of range for the %d elements along the axis of shape %v", kth, n, s)
		}
		return s, nil
	}
	defineOrder(partition, argPartition,
		func(in []tensor.Spec, a partitionAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := check(in, a.Kth)
			return append(outs, s), err
		},
		func(r *tensor.Run, keys tensor.Operand, a partitionAttrs, index bool) error {
			n := keys.Shape[len(keys.Shape)-1]
			return selectRows(r, keys, (a.Kth+n)%n, keptPlaces{0, n}, index, r.Out[0])
		})
	defineOrder(topK, argTopK,
		func(in []tensor.Spec, a topKAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := check(in, -a.K)
			if err != nil {
				return nil, err
			}
			return append(outs, withLast(s, a.K)), nil
		},
		func(r *tensor.Run, keys tensor.Operand, a topKAttrs, index bool) error {
			return largestRows(r, keys, a.K, index, r.Out[0])
		})
}

// withLast is a shape with another last dimension.
func withLast(s tensor.Shape, n int) tensor.Shape {
	return append(slices.Clone(s[:len(s)-1]), n)
}

var _ = sig.Def("partition", "a kth:int axis:axis=-1", func(a *sig.Args) any {
	return Partition(a.Array(0), a.Int(1), a.Axis(2), a.Ctx)
})

// Partition is a with its elements along an axis (nil: the flattened array's) ordered so far that the one at kth is
// where [Sort] would put it, with none before it that is larger and none after it that is smaller. Kth counts from the
// end if it is negative; out of range it is an error, as is an axis out of range. The order is that of [Sort]. What
// order the elements on either side have is open.
func Partition(a *tensor.Array, kth int, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	return alongLast(tensor.Call(ctx), partition, partitionAttrs{kth}, a, axis)
}

var _ = sig.Def("argpartition", "a kth:int axis:axis=-1", func(a *sig.Args) any {
	return ArgPartition(a.Array(0), a.Int(1), a.Axis(2), a.Ctx)
})

// ArgPartition is the indices, as uint32, with which [TakeAlongAxis] partitions a: see [Partition]. No gradient flows.
func ArgPartition(a *tensor.Array, kth int, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	return alongLast(tensor.Call(ctx), argPartition, partitionAttrs{kth}, a, axis)
}

var _ = sig.Def("topk", "a k:int axis:axis=-1", func(a *sig.Args) any {
	return TopK(a.Array(0), a.Int(1), a.Axis(2), a.Ctx)
})

// TopK is the k largest of a's elements along an axis (nil: of the flattened array), in ascending order, in the order
// of [Sort]. A negative k, and one that is larger than the axis, are errors.
func TopK(a *tensor.Array, k int, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "topk"
	c := tensor.Call(ctx)
	if k < 0 {
		return tensor.Fail(c, op, "k is %d, want 0 or more", k)
	}
	y := byAxis(c, op, a, axis, func(x *tensor.Array) *tensor.Array {
		if k == 0 {
			return Slice(x, []Part{Ellipsis(), Span(0, 0, 1)}, c)
		}
		return topK.One(c, topKAttrs{k}, x)
	})
	return kit.FailedAs(c, op, y)
}
