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

	rec     *recorder
	task    *task
	ctx     context.Context
	until   time.Time       // when limits end the evaluation; zero: they do not
	buffers []*metal.Buffer // in which In and Out lie
	staged  []staged        // outputs that lie in memory which the host cannot address
	end     []func()        // gives back what copies for the host are charged
}

// staged is a host's copy of what a buffer will hold.
type staged struct {
	buf   *metal.Buffer
	bytes []byte
}

// Context is done when the evaluation is cancelled.
func (h *HostCall) Context() context.Context { return h.ctx }

func newHostCall(rec *recorder, t *task) *HostCall {
	return &HostCall{rec: rec, task: t, ctx: rec.job.ctx, In: make([]HostOperand, len(t.in))}
}

// record computes a node in Go: it waits for all that was encoded before, unless the node reads no input's elements.
func (h *HostCall) record() error {
	rec, t := h.rec, h.task
	defer h.release()
	if t.from == 0 {
		return h.atOnce()
	}
	views := make([]View, len(t.in))
	for i, v := range t.in {
		h.In[i].Spec = v.Spec()
		if i >= t.from || v.Spec().Shape.Size() == 0 {
			continue
		}
		o, err := rec.places.operand(v)
		if err != nil {
			return err
		}
		if !o.RowContiguous() {
			if o, err = rec.exec.contiguous(o); err != nil {
				return err
			}
		}
		views[i] = o.View
		if o.buf != nil {
			h.buffers = append(h.buffers, o.buf)
		}
	}
	err := rec.batcher.drain()
	if err != nil {
		return err
	}
	for i, v := range t.reads() {
		if err := v.Node.failure(); err != nil {
			return err
		}
		if n := v.Spec().NBytes(); n > 0 {
			if h.In[i].Bytes, err = h.read(views[i], n); err != nil {
				return err
			}
		}
	}
	h.Out = make([]HostOperand, len(t.node.out))
	for i := range t.node.out {
		o := &t.node.out[i]
		origin := t.node.origin(i)
		buf, err := rec.memory.fresh(max(o.spec.NBytes(), leastBuffer), &origin, true) // the host writes to it
		if err != nil {
			return err
		}
		rec.places.allotIn(t.node, i, buf)
		h.Out[i].Spec = o.spec
		if n := o.spec.NBytes(); n > 0 {
			if h.Out[i].Bytes, err = h.write(buf, n); err != nil {
				return err
			}
		}
	}
	return h.call()
}

// read is the n bytes of a view for the rule to read.
func (h *HostCall) read(v View, n int64) ([]byte, error) {
	if v.buf == nil {
		return v.inline[v.OffsetBytes:][:n:n], nil
	}
	if v.buf.Host() == nil {
		if err := h.reserve(n); err != nil {
			return nil, err
		}
	}
	return hostBytes(v.buf, v.OffsetBytes, n)
}

// write is n zeros for the rule to fill, which are a buffer's bytes once the rule has ended.
func (h *HostCall) write(buf *metal.Buffer, n int64) ([]byte, error) {
	if b := buf.Host(); b != nil {
		h.buffers = append(h.buffers, buf)
		clear(b[:n])
		return b[:n:n], nil
	}
	if err := h.reserve(n); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	h.staged = append(h.staged, staged{buf, b})
	return b, nil
}

// reserve charges a copy for the host to whom the call's memory is charged.
func (h *HostCall) reserve(n int64) error {
	end, err := h.rec.dev.Reserve(h.ctx, h.rec.batcher.account, n)
	if err == nil {
		h.end = append(h.end, end)
	}
	return err
}

// release ends the use of copies for the host.
func (h *HostCall) release() {
	for _, end := range h.end {
		end()
	}
}

// atOnce computes a node that reads nothing but specs: what is encoded goes on meanwhile, and small outputs are
// constants of later kernels.
func (h *HostCall) atOnce() error {
	rec, t := h.rec, h.task
	for i, v := range t.in {
		h.In[i].Spec = v.Spec()
	}
	h.Out = make([]HostOperand, len(t.node.out))
	views := make([]View, len(h.Out))
	for i := range h.Out {
		spec := t.node.out[i].spec
		h.Out[i].Spec, views[i].Strides = spec, spec.Shape.Strides()
		n := spec.NBytes()
		if n <= inlineBytes || rec.dry != nil {
			views[i].inline = make([]byte, n)
			h.Out[i].Bytes = views[i].inline
			continue
		}
		origin := t.node.origin(i)
		buf, err := rec.memory.fresh(n, &origin, true) // of the free list kernels may have still to read some
		if err != nil {
			return err
		}
		views[i].buf, views[i].owner = buf, &storage{dev: rec.dev, stream: rec.s, buf: buf}
		if h.Out[i].Bytes, err = h.write(buf, n); err != nil {
			return err
		}
		rec.places.setData(t.node, i, views[i])
	}
	if err := h.call(); err != nil {
		return err
	}
	for i, v := range views {
		if v.buf != nil {
			continue
		}
		if len(v.inline) > inlineBytes { // for a take
			origin := t.node.origin(i)
			buf := rec.dry.upload(v.inline, &origin)
			v = View{buf: buf, owner: &storage{dev: rec.dev, stream: rec.s, buf: buf}, Strides: v.Strides}
		}
		rec.places.setData(t.node, i, v)
	}
	return nil
}

// call runs the rule, and has memory that the host cannot address get its outputs.
func (h *HostCall) call() error {
	t, n := h.task, h.task.node
	if p := profile.Load(); p != nil {
		begun := time.Now()
		defer func() { p.addHost(t, time.Since(begun)) }()
	}
	if k := n.holder.kernels(); k != nil {
		j := h.rec.job
		begun := time.Now()
		h.until = k.end(begun)
		if k.bounded() {
			timer := time.AfterFunc(k.left(), func() { j.overrun(k) })
			defer timer.Stop()
		}
		defer func() { k.charge(time.Since(begun)) }()
	}
	if err := protected(func() error { return n.op.host(h, n.attrs) }); err != nil {
		return err
	}
	for _, s := range h.staged {
		if err := s.buf.WriteBytes(0, s.bytes); err != nil {
			return err
		}
	}
	return nil
}
