package tensor

import (
	"context"
	"time"

	"github.com/mlxlua/mlxlua/metal"
)

// HostOperand is an input or output of a Host rule: Bytes are its elements in row-major order. Inputs must not be
// changed. Where only an input's spec is read it has no Bytes.
type HostOperand struct {
	Spec
	Bytes []byte
}

// HostCall is a call that is computed in Go. It is valid during the rule only.
type HostCall struct {
	In  []HostOperand
	Out []HostOperand // zeroed

	ctx     context.Context
	until   time.Time       // when limits end the evaluation; zero: they do not
	buffers []*metal.Buffer // in which In and Out lie
}

// Context is done when the evaluation is cancelled.
func (h *HostCall) Context() context.Context { return h.ctx }

// hostRule computes a node in Go: it waits for all that was encoded before, unless the node reads no input's elements.
func (rec *recorder) hostRule(t *task) error {
	h := &HostCall{ctx: rec.job.ctx, In: make([]HostOperand, len(t.in))}
	if t.from == 0 {
		return rec.hostAtOnce(t, h)
	}
	views := make([]View, len(t.in))
	for i, v := range t.in {
		h.In[i].Spec = v.Spec()
		if i >= t.from || v.Spec().Shape.Size() == 0 {
			continue
		}
		o, err := rec.operand(v)
		if err != nil {
			return err
		}
		if !o.RowContiguous() {
			if o, err = rec.contiguous(o); err != nil {
				return err
			}
		}
		views[i] = o.View
		if o.buf != nil {
			h.buffers = append(h.buffers, o.buf)
		}
	}
	if err := rec.batcher.drain(); err != nil {
		return err
	}
	for i, v := range t.reads() {
		if err := v.Node.failure(); err != nil {
			return err
		}
		if n := v.Spec().NBytes(); n > 0 {
			h.In[i].Bytes = views[i].Bytes()[views[i].OffsetBytes:][:n:n]
		}
	}
	h.Out = make([]HostOperand, len(t.node.out))
	for i := range t.node.out {
		o := &t.node.out[i]
		origin := t.node.origin(i)
		buf, err := rec.memory.fresh(max(o.spec.NBytes(), leastBuffer), &origin) // the host writes to it, not a command
		if err != nil {
			return err
		}
		rec.allotIn(t.node, i, buf)
		h.buffers = append(h.buffers, buf)
		h.Out[i].Spec = o.spec
		if n := o.spec.NBytes(); n > 0 {
			h.Out[i].Bytes = o.data.Bytes()[o.data.OffsetBytes:][:n:n]
			clear(h.Out[i].Bytes)
		}
	}
	return rec.callHost(t, h)
}

// hostAtOnce computes a node that reads nothing but specs: what is encoded goes on meanwhile, and small outputs are
// constants of later kernels.
func (rec *recorder) hostAtOnce(t *task, h *HostCall) error {
	for i, v := range t.in {
		h.In[i].Spec = v.Spec()
	}
	h.Out = make([]HostOperand, len(t.node.out))
	views := make([]View, len(h.Out))
	for i := range h.Out {
		spec := t.node.out[i].spec
		h.Out[i].Spec, views[i].Strides = spec, spec.Shape.Strides()
		n := spec.NBytes()
		if n <= inlineBytes {
			views[i].inline = make([]byte, n)
			h.Out[i].Bytes = views[i].inline
			continue
		}
		origin := t.node.origin(i)
		buf, err := rec.memory.fresh(n, &origin) // no buffer of the free list: kernels may have still to read those
		if err != nil {
			return err
		}
		views[i].buf, views[i].owner = buf, &storage{dev: rec.dev, stream: rec.s, buf: buf}
		h.buffers = append(h.buffers, buf)
		h.Out[i].Bytes = buf.Bytes()[:n:n]
		clear(h.Out[i].Bytes)
		rec.setData(t.node, i, views[i])
	}
	if err := rec.callHost(t, h); err != nil {
		return err
	}
	for i, v := range views {
		if v.buf == nil {
			rec.setData(t.node, i, v)
		}
	}
	return nil
}

func (rec *recorder) callHost(t *task, h *HostCall) error {
	n := t.node
	if p := profile.Load(); p != nil {
		begun := time.Now()
		defer func() { p.addHost(t, time.Since(begun)) }()
	}
	if k := n.holder.kernels(); k != nil {
		j := rec.job
		begun := time.Now()
		h.until = k.end(begun)
		if k.bounded() {
			timer := time.AfterFunc(k.left(), func() { j.overrun(k) })
			defer timer.Stop()
		}
		defer func() { k.charge(time.Since(begun)) }()
	}
	return protected(func() error { return n.op.host(h, n.attrs) })
}
