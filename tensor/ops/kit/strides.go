package kit

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
)

// Collapse2 is collapse for two operands of one shape.
func Collapse2(s tensor.Shape, a, b []int) (shape []uint32, as, bs []int64) {
	most := max(len(s), 1)
	steps := make([]int64, 2*most)
	shape, as, bs = make([]uint32, 0, most), steps[:0:most], steps[most:most]
	for i, n := range s {
		if n == 1 {
			continue
		}
		k := len(shape) - 1
		if k >= 0 && as[k] == int64(n)*int64(a[i]) && bs[k] == int64(n)*int64(b[i]) {
			shape[k] *= uint32(n)
			as[k], bs[k] = int64(a[i]), int64(b[i])
			continue
		}
		shape, as, bs = append(shape, uint32(n)), append(as, int64(a[i])), append(bs, int64(b[i]))
	}
	if len(shape) == 0 {
		shape, as, bs = append(shape, 1), append(as, 0), append(bs, 0)
	}
	return shape, as, bs
}

// CheckBroadcast says why from does not broadcast to exactly to.
func CheckBroadcast(from, to tensor.Shape) error {
	if s, err := tensor.Broadcast(from, to); err != nil || !s.Equal(to) {
		return fmt.Errorf("shape %v does not broadcast to %v", from, to)
	}
	return nil
}

// BroadcastOperand is o seen in a shape that its own broadcasts to.
func BroadcastOperand(o tensor.Operand, to tensor.Shape) tensor.Operand {
	strides := make([]int, len(to))
	lead := len(to) - len(o.Shape)
	for i, n := range o.Shape {
		if n == to[lead+i] {
			strides[lead+i] = o.Strides[i]
		}
	}
	o.Shape, o.Strides = to, strides
	return o
}

// Collapse merges dimensions that one stride can step through, for kernels: there is at least one.
func Collapse(s tensor.Shape, strides []int) (shape []uint32, steps []int64) {
	for i, n := range s {
		if n == 1 {
			continue
		}
		if k := len(shape) - 1; k >= 0 && steps[k] == int64(n)*int64(strides[i]) {
			shape[k] *= uint32(n)
			steps[k] = int64(strides[i])
			continue
		}
		shape, steps = append(shape, uint32(n)), append(steps, int64(strides[i]))
	}
	if len(shape) == 0 {
		return []uint32{1}, []int64{0}
	}
	return shape, steps
}
