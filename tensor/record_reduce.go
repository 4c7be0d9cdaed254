package tensor

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// reduce encodes a reduction, with the element-wise members that only it reads computed on the way.
func (x *executor) reduce(members []int32) error {
	root := x.seg.tasks[members[len(members)-1]].node
	shape, err := x.reduction(members)
	if err != nil {
		return err
	}
	out := root.out[0].spec
	x.job.bytes.Add(Spec{shape, x.kernel.specs[0].DType}.NBytes())
	if err := x.places.allot(root, 0, true); err != nil || out.Shape.Size() == 0 {
		return err
	}
	return x.passes(root.op.name, shape, Operand{out, root.out[0].data})
}

// reduction fills the scratch with a reduction and what is computed on the way, and gives the shape that it goes over.
// If it has outputs, its first pass is planned.
func (x *executor) reduction(members []int32) (Shape, error) {
	k := &x.kernel
	root := &x.seg.tasks[members[len(members)-1]]
	k.specs = k.specs[:0]
	for _, v := range root.in {
		k.specs = append(k.specs, v.Spec())
	}
	specs := k.specs
	axes, reducer, err := root.node.op.reduce(root.node.attrs, specs)
	if err != nil {
		return nil, err
	}
	shape := specs[0].Shape
	k.reduced = resize(k.reduced, len(shape))
	reduced := k.reduced
	outputs, elements := 1, 1
	for _, a := range axes {
		reduced[a] = true
	}
	inner := false
	for d, n := range shape {
		if reduced[d] {
			elements *= n
		} else {
			outputs *= n
		}
		if n != 1 {
			inner = reduced[d]
		}
	}
	out := root.node.out[0].spec
	if outputs != out.Shape.Size() {
		return nil, fmt.Errorf("BUG: reducing axes %v of %v does not give %v", axes, shape, out.Shape)
	}
	if err := x.addSteps(members[:len(members)-1], shape); err != nil {
		return nil, err
	}
	if len(members) == 1 {
		if err := x.addOperand(root.in[0], shape); err != nil {
			return nil, err
		}
	}
	if outputs > 0 {
		pass := k.firstPass(shape, outputs, elements, inner, reducer.Acc)
		k.plan.Plan(k.arrange(shape, k.ops), reduced)
		k.red = kernelgen.Reduction{Expr: k.expr, Reducer: reducer, OutType: out.DType.MSL(), Pass: pass}
	}
	return shape, nil
}

// firstPass chooses a reduction's first kernel. If that reduces the last axes alone, k.reduced become these, and
// k.rest says which of the others are left.
func (k *kernelScratch) firstPass(shape Shape, outputs, elements int, inner bool, acc string) kernelgen.Pass {
	k.rest = k.rest[:0]
	first, trailing, split := kernelgen.Split(shape, k.reduced, acc)
	if !split {
		return kernelgen.FirstPass(outputs, elements, inner, acc)
	}
	at := len(shape) - trailing
	k.rest = append(k.rest, k.reduced[:at]...)
	clear(k.reduced[:at])
	return first
}

// beginPass fits the scratch's next pass to how its operands lie.
func (k *kernelScratch) beginPass() {
	red, plan := &k.red, &k.plan
	red.Pass = red.Pass.For(plan, len(red.Expr.Steps))
	for i := range plan.Strides {
		if red.Expr.Operands[i].Class != kernelgen.Scalar {
			red.Expr.Operands[i].Class = plan.Class(i)
		}
	}
}

// passes encodes the kernels of the scratch's reduction: one, or more through temporaries for long ones.
func (x *executor) passes(label string, shape Shape, out Operand) error {
	k := &x.kernel
	red, plan, ops := &k.red, &k.plan, k.ops
	for {
		k.beginPass()
		pass := &red.Pass
		next, again := pass.NextPass()
		to := out
		if again || pass.Raw {
			acc := kernelgen.AccSize(red.Reducer.Acc)
			origin := x.memory.origin(x.batcher.op.temporary)
			buf, err := x.memory.alloc(int64(pass.Outputs)*int64(pass.Parts)*int64(acc), &origin, true)
			if err != nil {
				return err
			}
			x.memory.temps = append(x.memory.temps, buf)
			to = Operand{View: View{buf: buf}}
		}
		if err := x.pass(label, shape, ops, to); err != nil || !again && !pass.Raw {
			return err
		}
		// The accumulators are the next pass's elements.
		acc := red.Reducer.Acc
		if pass.Raw {
			next = k.planRest(shape[:len(k.rest)])
		}
		*red = kernelgen.Reduction{Reducer: red.Reducer, OutType: red.OutType, Pass: next}
		red.Reducer.Load = "$0"
		red.Expr.Operands = []kernelgen.Operand{{Type: acc}}
		if again {
			stride := []int{next.Reduced, 1}
			if next.Spread == kernelgen.Lane {
				stride = []int{1, next.Outputs}
			}
			l := kernelgen.Layout{Shape: []int{next.Outputs, next.Reduced}, Strides: [][]int{stride}, Base: []int{0}}
			plan.Plan(&l, []bool{false, true})
		}
		ops = []Operand{{View: to.View}}
		shape = nil
	}
}

// planRest plans the reduction of accumulators of that shape along the axes that the first step left.
func (k *kernelScratch) planRest(shape Shape) kernelgen.Pass {
	outputs, elements := 1, 1
	for d, n := range shape {
		if k.rest[d] {
			elements *= n
		} else {
			outputs *= n
		}
	}
	l := kernelgen.Layout{Shape: shape.Clone(), Strides: [][]int{shape.Strides()}, Base: []int{0}}
	k.plan.Plan(&l, k.rest)
	return kernelgen.FirstPass(outputs, elements, false, k.red.Reducer.Acc)
}

// pass encodes one kernel of the scratch's reduction. A nil shape says that the only operand is a whole buffer.
func (x *executor) pass(label string, shape Shape, ops []Operand, to Operand) error {
	k := &x.kernel
	red, plan := &k.red, &k.plan
	x.key = red.Key(append(x.key[:0], 'r'))
	float64s := red.Expr.Float64() || red.OutType == "double" || red.Reducer.Acc == "double"
	src := x.source(label, float64s, func() string { return kernelgen.PrintReduce(red) })
	p, err := x.pipeline(src, kernelgen.ReduceEntry)
	if err != nil {
		return err
	}
	scalar := func(i int) bool { return red.Expr.Operands[i].Class == kernelgen.Scalar }
	numbers, err := x.numbers(plan.Numbers(k.list[:0], red.Pass, scalar), red.Pass.Wide)
	if err != nil {
		return err
	}
	enc := x.batcher.encoder(label)
	enc.SetPipeline(p)
	for i, o := range ops {
		switch {
		case shape == nil:
			enc.SetBuffer(i, o.buf, 0)
		case shape.Size() == 0 && o.buf == nil:
			enc.SetBytes(i, make([]byte, leastBuffer))
		case shape.Size() == 0:
			enc.SetBuffer(i, o.buf, 0)
		case scalar(i):
			bind(enc, i, o.View, o.OffsetBytes, int64(o.DType.Size()))
		default:
			bindSpan(enc, i, o, shape)
		}
	}
	enc.SetBuffer(len(ops), to.buf, to.OffsetBytes)
	bind(enc, len(ops)+1, numbers, 0, int64(len(k.numbers)))
	return enc.Dispatch(threads(red.Pass.Threads()), groupSize)
}
