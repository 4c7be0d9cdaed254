package tensor

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal"
)

// placer knows in which memory values lie: where inputs are found, which outputs get memory of their own or take that
// of a value which nobody reads any more, and when memory serves later calls.
type placer struct {
	*current
	s       *Stream
	dev     *metal.Device
	memory  *allocator
	batcher *batcher
	gates   *gates
}

// allot allocates output i of a node, row-contiguous. Filled says that all of it is written before any of it is read.
func (p *placer) allot(n *Node, i int, filled bool) error {
	origin := n.origin(i)
	buf, err := p.memory.alloc(n.out[i].spec.NBytes(), &origin, filled)
	if err != nil {
		return err
	}
	p.allotIn(n, i, buf)
	return nil
}

// allotIn makes a buffer output i of a node, whose origin it has.
func (p *placer) allotIn(n *Node, i int, buf *metal.Buffer) {
	o := &n.out[i]
	var st *storage
	switch {
	case buf.Len() <= groupBytes/2 && p.plan.live[int(p.plan.base[n.slot])+i]:
		st = p.memory.group.next(p.dev, buf)
	case i == 0:
		st = &n.home
		st.reset()
	default:
		st = &storage{}
	}
	st.buf, st.dev, st.stream = buf, p.dev, p.s
	p.setData(n, i, View{buf: buf, owner: st, Strides: p.memory.strides(o.spec.Shape)})
}

// setData makes v the data of output i of a node of the segment.
func (p *placer) setData(n *Node, i int, v View) {
	if st := v.owner; st != nil {
		st.hold()
		if p.plan.live[int(p.plan.base[n.slot])+i] {
			held := n.holder.lists(v.buf) && n.out[i].reached.Load() != escaped
			st.own(held)
			if held {
				n.holder.list(n, i, st)
			}
		}
	}
	n.mu.Lock()
	n.out[i].data = v
	n.mu.Unlock()
}

// operand is where an input's elements lie, in memory that this device can read: what lies elsewhere is copied.
func (p *placer) operand(v Value) (Operand, error) {
	o, err := p.located(v)
	if st := o.owner; err == nil && st != nil && st.dev != nil && st.dev != p.dev {
		o.View, err = p.memory.replica(o.View, o.Spec, p.batcher.computing(v.Node, st.dev))
	}
	return o, err
}

// located is where an input's elements lie, in whichever device's memory.
func (p *placer) located(v Value) (Operand, error) {
	o := &v.Node.out[v.Out]
	if p.preview != nil {
		return Operand{o.spec, p.preview.view(v)}, nil
	}
	v.Node.mu.Lock()
	data, gone := o.data, o.gone || o.spent
	v.Node.mu.Unlock()
	if gone {
		return Operand{}, fmt.Errorf("the value of %v was dropped: it had been declared unread", v.Node)
	}
	if data.buf == nil && len(data.inline) > inlineBytes {
		var err error
		if data, err = p.memory.upload(data); err != nil {
			return Operand{}, err
		}
	}
	if st := data.owner; st != nil && st.stream != p.s {
		st.shared.Store(true)
	}
	return Operand{o.spec, data}, nil
}

// mayOverwrite reports whether the members may write over a value that lies in st: nothing reads it after them. In this
// order: without a handle no host view opens any more, what may be spent is behind a gate from now on, and an undoing
// that was faster has given it a handle.
func (p *placer) mayOverwrite(v Value, st *storage, members []int32) bool {
	return p.lastRead(v, members) && st.writable(p.s) && p.gates.maySpend(v) && v.unheld(p.job.proof)
}

// lastRead reports whether nothing reads the value after the members have. Who asked for it and let go of it does not.
func (p *placer) lastRead(v Value, members []int32) bool {
	var reads int32
	for _, slot := range members {
		for _, r := range p.seg.tasks[slot].reads() {
			if r == v {
				reads++
			}
		}
	}
	o := &v.Node.out[v.Out]
	return o.readers.waiting() == reads && v.unheld(p.job.proof)
}

// spendUnread has later calls use a value's storage if no one will read the value. When all that read it have run, and
// have not been undone, it is gone.
func (p *placer) spendUnread(v Value) {
	o := &v.Node.out[v.Out]
	if o.readers.waiting() != 0 || !v.unheld(p.job.proof) {
		return
	}
	if !p.gates.maySpend(v) {
		p.gates.keep(v)
		return
	}
	v.Node.mu.Lock()
	if !v.unheldLocked(p.job.proof) { // an undoing has just given it back
		v.Node.mu.Unlock()
		return
	}
	st := o.data.owner
	spend := !o.spent && !o.gone
	o.spent = true
	v.Node.mu.Unlock()
	if spend && st != nil && st.users.Add(-1) == 0 && st.writable(p.s) {
		st.buf.Retain()
		p.memory.recycle(st.buf)
	}
	if !p.dev.Retains() && !v.changing() { // nothing is kept, to see what that prevents
		v.Node.mu.Lock()
		v.Node.drop(v.Out)
		v.Node.mu.Unlock()
	}
}

// release gives a user of a storage back.
func (p *placer) release(st *storage) {
	st.users.Add(-1)
	if st.holders.Add(-1) == 0 {
		if buf := st.take(); buf != nil {
			p.memory.recycle(buf)
		}
	}
}

// checkAtEnd has f called with a result's bytes when the batch has run: until then no later command may write to them.
func (p *placer) checkAtEnd(n *Node, o Operand, f func([]byte) error) {
	if o.buf != nil {
		p.checkBytes(n, o, o.NBytes(), f)
	}
}

// checkBytes is checkAtEnd of n bytes at the operand's place.
func (p *placer) checkBytes(n *Node, o Operand, bytes int64, f func([]byte) error) {
	o.buf.Retain()
	p.memory.lend(o.buf)
	if o.owner != nil {
		o.owner.shared.Store(true)
	}
	b := p.batcher.open()
	c := &check{node: n, buf: o.buf, at: o.OffsetBytes, n: bytes, f: f, first: p.batcher.first,
		last: p.batcher.commands()}
	b.checks = append(b.checks, c)
	if changes.n.Load() > 0 {
		p.batcher.checks = append(p.batcher.checks, c)
	}
}
