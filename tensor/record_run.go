package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// Run is a call that is being executed: a Run rule encodes its kernels with it. It is valid during the rule only.
type Run struct {
	// In are the inputs; those of which only the spec is read have no View. Their strides are not negative.
	In []Operand
	// Out are the outputs: allocated, row-contiguous, with any contents; those with Rules.Updates hold an input's
	// elements, and are there when Updated has given output 0.
	Out []Operand
	// Prepared is what the Prepare rule gave.
	Prepared any

	e    *recorder
	node *Node
	in   []Value
	task *task
}

// Context is done when the evaluation is cancelled.
func (r *Run) Context() context.Context { return r.e.job.ctx }

// Device is where the call runs.
func (r *Run) Device() *metal.Device { return r.e.dev }

// Info describes the device.
func (r *Run) Info() metal.Info { return r.e.dev.Info() }

// Unchecked is the error of running a kernel of the caller's own on a device that does not keep it to its buffers,
// where that could be other callers': see HolderLimits.Checked.
func (r *Run) Unchecked() error {
	h, info := r.node.holder, r.Info()
	if h == nil || !h.limits.Checked || info.Faults == metal.FaultsPlaced {
		return nil
	}
	return fmt.Errorf("%s does not keep a kernel to its buffers, so kernels of scripts in a sandbox do not run there: "+
		"{stream = mx.cpu} runs them on the processor", info.Name)
}

// OpName is the op's name.
func (r *Run) OpName() string { return r.node.op.name }

// Place is the line that called the op.
func (r *Run) Place() Place { return r.node.Place() }

// Contiguous is input i, in row-major order: copied to a temporary if it is not. It fails when memory is short.
func (r *Run) Contiguous(i int) (Operand, error) { return r.ContiguousOf(r.In[i]) }

// AllContiguous is the first n inputs as Contiguous gives them, also in In from now on.
func (r *Run) AllContiguous(n int) ([]Operand, error) {
	for i := range n {
		var err error
		if r.In[i], err = r.Contiguous(i); err != nil {
			return nil, err
		}
	}
	return r.In[:n], nil
}

// Expanded is input i as it lies, but for arrays of one value that a creation function made, and views of them: they
// have one element in memory, and are copied to have all.
func (r *Run) Expanded(i int) (Operand, error) {
	if v := r.in[i]; !v.Node.out[v.Out].filled {
		return r.In[i], nil
	}
	return r.Contiguous(i)
}

// ContiguousOf is o in row-major order: copied to a temporary if it is not.
func (r *Run) ContiguousOf(o Operand) (Operand, error) {
	if o.RowContiguous() {
		return o, nil
	}
	return r.e.exec.contiguous(o)
}

// Temp is memory for an array of the spec, in row-major order, with any contents. It is given back after the call.
func (r *Run) Temp(spec Spec) (Operand, error) { return r.e.memory.temp(spec) }

// CopyTo copies src, broadcast to dst's shape and converted to its dtype, to dst; both may lie in any way, but must
// not overlap. It fails if the shapes do not fit.
func (r *Run) CopyTo(dst, src Operand) error { return r.e.exec.copyTo(dst, src) }

// Fill sets all elements of out to pattern, which is one element.
func (r *Run) Fill(out Operand, pattern []byte) error {
	if len(pattern) != out.DType.Size() {
		return fmt.Errorf("a pattern of %d bytes does not fill %v", len(pattern), out.DType)
	}
	if out.Shape.Size() == 0 {
		return nil
	}
	if !out.RowContiguous() || out.buf == nil {
		return r.e.exec.copyTo(out, Operand{Spec{Shape{}, out.DType}, View{inline: append([]byte(nil), pattern...)}})
	}
	enc := r.e.batcher.encoder(r.node.op.name)
	return enc.Fill(metal.Range{Buf: out.buf, Offset: out.OffsetBytes, Bytes: out.NBytes()}, pattern)
}

// Kernel is the pipeline of an entry point of MSL text: compiled on first use. It fails with the text's errors, and
// with the context's cause when the evaluation is cancelled.
func (r *Run) Kernel(src metal.Source, entry string) (*metal.Pipeline, error) {
	return r.e.exec.pipeline(src, entry)
}

// Dispatch encodes a run of a kernel over a grid of threads, with arguments in the order of its parameters. It
// fails if one does not fit.
func (r *Run) Dispatch(p *metal.Pipeline, grid, threadgroup metal.Size, args ...Arg) error {
	return r.e.exec.dispatch(r.node.op.name, p, grid, threadgroup, args)
}

// Changed says how many bytes of output 0 the kernels of an op with Updates write, for profiles: all, if nothing is
// said.
func (r *Run) Changed(bytes int64) {
	if u := r.e.batcher.update; u != nil {
		u.changed = bytes
	}
}

// Check has f called with the bytes of o (a temporary or an output, row-contiguous) when the kernels have run: its
// error becomes the node's. F runs on a goroutine of the driver: it must be quick, and must not keep the bytes.
func (r *Run) Check(o Operand, f func(b []byte) error) { r.e.places.checkAtEnd(r.node, o, f) }

// record runs the Run rule of a task's op. No rule keeps r, which serves the next one.
func (r *Run) record(rec *recorder, t *task) error {
	n := t.node
	defer func() {
		clear(r.In)
		clear(r.Out)
		*r = Run{In: r.In[:0], Out: r.Out[:0]}
	}()
	*r = Run{e: rec, node: n, in: t.in, task: t, In: resize(r.In, len(t.in)), Out: resize(r.Out, len(n.out))}
	if n.op.prepare != nil {
		r.Prepared = n.rare.prepared
	}
	for i, v := range t.in {
		r.In[i].Spec = v.Spec()
		if i >= t.from {
			continue
		}
		o, err := rec.places.operand(v)
		if err == nil && slices.ContainsFunc(o.Strides, func(s int) bool { return s < 0 }) {
			o, err = rec.exec.contiguous(o)
		}
		if err != nil {
			return err
		}
		r.In[i] = o
	}
	for i := range n.out {
		spec := n.out[i].spec
		if n.op.starts(n.attrs, i) >= 0 {
			if profile.Load() != nil {
				rec.batcher.updates().changed += spec.NBytes()
			}
			r.Out[i] = Operand{spec, View{Strides: spec.Shape.Strides()}}
			continue
		}
		if err := rec.places.allot(n, i, n.op.fillsOutputs(n.attrs)); err != nil {
			return err
		}
		r.Out[i] = Operand{spec, n.out[i].data}
	}
	if n.op.partial {
		if err := r.update(); err != nil {
			return err
		}
	}
	some := func(o Operand) bool { return o.Shape.Size() > 0 }
	if n.op.partial || slices.ContainsFunc(r.Out, some) {
		if err := n.op.run(r, n.attrs); err != nil {
			return err
		}
	}
	if n.op.updates == nil {
		return nil
	}
	_, err := r.Updated()
	return err
}

// Updated is output 0 of an op with Updates, which holds the input's elements. From then on the rule may change them;
// what it checks it has checked before.
func (r *Run) Updated() (Operand, error) {
	g := &r.e.gates
	if !r.node.op.partial { // which may fail when it runs
		g.updating = r.node
		defer func() { g.updating = nil }()
	}
	if err := r.update(); err != nil {
		return Operand{}, err
	}
	return r.Out[0], nil
}

// update makes the outputs that start as inputs, unless that was done.
func (r *Run) update() error {
	n := r.node
	for i := range n.out {
		from := n.op.starts(n.attrs, i)
		if from < 0 || r.Out[i].buf != nil {
			continue
		}
		if err := r.startFrom(i, from); err != nil {
			return err
		}
		r.Out[i].View = n.out[i].data
	}
	return nil
}

// startFrom makes output out a copy of input from, which the op changes in place, or its storage where nothing else
// reads it.
func (r *Run) startFrom(out, from int) error {
	rec, t, n := r.e, r.task, r.node
	if from >= t.from || !r.In[from].Shape.Equal(n.out[out].spec.Shape) {
		return errors.New("BUG: Updates names an input of another shape")
	}
	v, o := t.in[from], r.In[from]
	st := o.owner
	if st != nil && st.users.Load() > 1 {
		rec.gates.spendKept(st)
	}
	if st != nil && !rec.plan.single && o.RowContiguous() && o.OffsetBytes == 0 && o.DType == n.out[out].spec.DType &&
		o.buf.Len() == max(o.NBytes(), leastBuffer) && st.users.Load() == 1 && t.readsOnce(v) &&
		rec.places.mayOverwrite(v, st, []int32{n.slot}) {
		o.buf.SetOrigin(n.origin(out))
		rec.places.setData(n, out, View{buf: o.buf, owner: st, Strides: o.Shape.Strides()})
		if mem := rec.dev.Memory(); mem.Active > mem.Limit/2 && rec.batcher.batch != nil && !rec.batcher.dry {
			rec.batcher.commit(false) // its memory cannot come back while the unit is recorded
		}
		if n.op.partial {
			rec.batcher.spoils = true // it may never end, so it is not to run to its end
		} else {
			rec.batcher.indivisible()
		}
		return nil
	}
	if err := rec.places.allot(n, out, true); err != nil {
		return err
	}
	if u := rec.batcher.update; u != nil {
		u.copied += o.NBytes()
	}
	return rec.exec.copyTo(Operand{n.out[out].spec, n.out[out].data}, o)
}

// readsOnce reports whether only one input of the task is the value.
func (t *task) readsOnce(v Value) bool {
	reads := 0
	for _, r := range t.reads() {
		if r == v {
			reads++
		}
	}
	return reads == 1
}
