package ops

import (
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

// called has the device's library multiply, if it has one that does. It is asked for many rows and columns: the order
// of sums of few is that of the kernels.
func (p *matrixProduct) called() (done bool, err error) {
	element, known := RoutineElement(p.DType)
	shape, steps := kit.Merge(p.Batch, p.a.Strides, p.b.Strides)
	if p.Few() || !known || len(shape) > 1 {
		return false, nil
	}
	m := metal.MatMul{Element: element, M: p.Rows, N: p.Cols, K: p.Depth, Batch: p.Batch.Size()}
	var fits [2]bool
	m.A, fits[0] = laid(p.a, p.Rows, p.Depth)
	m.B, fits[1] = laid(p.b, p.Depth, p.Cols)
	if !fits[0] || !fits[1] || m.Batch == 0 {
		return false, nil
	}
	if len(shape) == 1 {
		m.A.Step, m.B.Step = steps[0][0], steps[1][0]
	}
	return p.Call(m, []tensor.Operand{allOf(p.a, p.Rows, p.Depth), allOf(p.b, p.Depth, p.Cols)}, p.Out[:1])
}

// RoutineElement is what routines call numbers of a dtype, if they know it.
func RoutineElement(d tensor.DType) (e metal.Element, ok bool) {
	e, ok = elements[d]
	return e, ok
}

var elements = map[tensor.DType]metal.Element{
	tensor.Float32: metal.Float32, tensor.Float16: metal.Float16, tensor.BFloat16: metal.BFloat16,
	tensor.Float64: metal.Float64, tensor.Complex64: metal.Complex64,
}

// laid is how the rows and columns of matrices lie, if a routine can be told.
func laid(x panels.Matrices, rows, cols int) (m metal.Matrix, ok bool) {
	row, col := x.Step[0], x.Step[1]
	if col != 1 && cols > 1 {
		m.Turned, rows, cols, row, col = true, cols, rows, col, row
	}
	if m.Lead = row; rows == 1 {
		m.Lead = cols
	}
	return m, (col == 1 || cols == 1) && m.Lead >= cols
}

// allOf is the matrices as one array.
func allOf(x panels.Matrices, rows, cols int) tensor.Operand {
	o := x.Operand
	o.Shape = append(x.Shape.Clone(), rows, cols)
	o.Strides = append(append([]int(nil), x.Strides...), x.Step[:]...)
	return o
}
