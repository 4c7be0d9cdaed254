package fast

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

//go:embed attention_products.metal
var attentionProductsText string

var weighKernels = kit.NewKernels[attentionKind](attentionProductsText)

// scoreBytes is about how many bytes of scores there are at a time.
const scoreBytes = 256 << 20

// byProducts computes an attention of many queries by a device's library: scores in float32 by one product, weights by
// a kernel, which has them in the dtype of the values, what they weigh by another product. It reports false, and has
// encoded nothing, where the library does not do that.
func (o attentionOperands) byProducts(r *tensor.Run, a attentionAttrs) (done bool, err error) {
	element, known := ops.RoutineElement(r.Out[0].DType)
	if !r.Info().GPU || !known || kit.Accumulator(r.Out[0].DType) != tensor.Float32 {
		return false, nil
	}
	queries, keys := o.q.Shape[2], o.k.Shape[2]
	p := productAttention{attentionOperands: o, Run: r, attrs: a, element: element, groups: o.q.Shape[1] / o.k.Shape[1]}
	if o.q.Strides[1] != queries*o.q.Strides[2] { // the rows of heads are rows of one matrix
		if p.q, err = r.ContiguousOf(o.q); err != nil {
			return true, err
		}
	}
	each := max(1, scoreBytes/(4*keys*p.groups*queries)) // heads of keys
	if rows := scoreBytes / (4 * keys); p.groups*queries > rows {
		return p.headByHead(min(max(rows, 1), queries))
	}
	for batch := range o.q.Shape[0] {
		for head := 0; head < o.k.Shape[1]; head += each {
			n := min(each, o.k.Shape[1]-head)
			if done, err = p.part(n, p.groups*queries, [4]int{batch, head * p.groups, 0, queries}); !done || err != nil {
				return done, err
			}
		}
	}
	return true, nil
}

// productAttention is an attention that a library computes.
type productAttention struct {
	attentionOperands
	*tensor.Run
	attrs   attentionAttrs
	element metal.Element
	groups  int
}

// headByHead makes so many queries of one head at a time.
func (p productAttention) headByHead(most int) (done bool, err error) {
	for batch := range p.q.Shape[0] {
		for head := range p.q.Shape[1] {
			for query := 0; query < p.q.Shape[2]; query += most {
				n := min(most, p.q.Shape[2]-query)
				if done, err = p.part(1, n, [4]int{batch, head, query, n}); !done || err != nil {
					return done, err
				}
			}
		}
	}
	return true, nil
}

// part makes so many rows of queries for each of n heads of keys: at says which they are, as Rows of the kernel does.
func (p productAttention) part(n, rows int, at [4]int) (done bool, err error) {
	out, keys, depth, width := p.Out[0], p.k.Shape[2], p.q.Shape[3], p.v.Shape[3]
	matrices := func(x tensor.Operand, head, row, rows, step int) (tensor.Operand, metal.Matrix) {
		x.OffsetBytes += int64(x.DType.Size()) * int64(at[0]*x.Strides[0]+head*x.Strides[1]+row*x.Strides[2])
		m := metal.Matrix{Lead: x.Strides[2], Step: step * x.Strides[1]}
		x.Shape, x.Strides = tensor.Shape{n, rows, x.Shape[3]}, []int{m.Step, m.Lead, 1}
		return x, m
	}
	q, mq := matrices(p.q, at[1], at[2], rows, p.groups)
	k, mk := matrices(p.k, at[1]/p.groups, 0, keys, 1)
	v, mv := matrices(p.v, at[1]/p.groups, 0, keys, 1)
	mk.Turned = true
	of := metal.MatMul{Element: p.element, M: rows, N: keys, K: depth, Batch: n, A: mq, B: mk, Single: true}
	by := metal.MatMul{Element: p.element, M: rows, N: width, K: keys, Batch: n,
		A: metal.Matrix{Lead: keys, Step: rows * keys}, B: mv}
	if mq.Lead < depth || mk.Lead < depth || mv.Lead < width || !p.Device().Offers(of) || !p.Device().Offers(by) {
		return false, nil
	}
	scores, err := p.Temp(tensor.Spec{Shape: tensor.Shape{n, rows, keys}, DType: tensor.Float32})
	if err != nil {
		return true, err
	}
	weights, err := p.Temp(tensor.Spec{Shape: tensor.Shape{n, rows, keys}, DType: out.DType})
	if err != nil {
		return true, err
	}
	if done, err := p.Call(of, []tensor.Operand{q, k}, []tensor.Operand{scores}); !done || err != nil {
		return done, err
	}
	kind := kindOf(out.DType, p.attrs)
	args := append([]tensor.Arg{scores.Arg(), weights.Arg(), p.params(out.DType, p.attrs, p.groups, 1).Arg(),
		kit.Params{}.Uint(at[:]...).Arg()}, p.optional...)
	const simds = 4
	over := kit.Simds(n*rows*simds, 1, simds)
	if err := weighKernels.Launch(p.Run, kind, "weigh", over, args...); err != nil {
		return true, err
	}
	out.OffsetBytes += int64(out.DType.Size()) * int64(width) *
		int64((at[0]*p.q.Shape[1]+at[1])*p.q.Shape[2]+at[2])
	out.Shape = tensor.Shape{n, rows, width}
	out.Strides = out.Shape.Strides()
	return p.Call(by, []tensor.Operand{weights, v}, []tensor.Operand{out})
}
