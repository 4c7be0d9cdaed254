package tensor

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// dry is what a recorder has that makes a take: buffers without memory, in a command buffer that is cancelled. No
// buffer serves twice, so that a replay decides by the memory of the day which ones do.
type dry struct {
	dev    *metal.Device
	inline map[*byte]inlineAt // the bytes of stand-ins for inline inputs
	bufs   map[*metal.Buffer]*dryBuffer
	over   []*storage // of inputs that may be written over
	users  int        // users' kernels that are still to be recorded
}

// inlineAt is a byte of an inline input.
type inlineAt struct {
	input int
	at    int64
}

// dryBuffer is what a take has to know of a buffer.
type dryBuffer struct {
	input  int   // that it stands for, -1: none
	base   int64 // where its first element lies then
	tail   bool  // there is memory behind its elements
	fill   bool  // as in allocator.alloc
	upload bool  // the host writes it: bytes, or those of an inline input from a place on
	bytes  []byte
	from   inlineAt
}

// alloc is a buffer without memory.
func (d *dry) alloc(n int64, o *metal.Origin, fill bool) *metal.Buffer {
	buf := d.dev.StandIn(n, o)
	d.bufs[buf] = &dryBuffer{input: -1, fill: fill}
	return buf
}

// upload is a buffer for bytes that the host will write.
func (d *dry) upload(b []byte, o *metal.Origin) *metal.Buffer {
	buf := d.alloc(int64(max(len(b), leastBuffer)), o, true)
	to := d.bufs[buf]
	to.upload = true
	if at, ok := d.inlineOf(b); ok {
		to.from = at
	} else {
		to.from.input = -1
		to.bytes = slices.Clone(b)
	}
	return buf
}

// isInput reports whether a buffer stands for an input's.
func (d *dry) isInput(b *metal.Buffer) bool {
	known := d.bufs[b]
	return known != nil && known.input >= 0
}

// inlineOf says which inline input bytes are of.
func (d *dry) inlineOf(b []byte) (inlineAt, bool) {
	if len(b) == 0 {
		return inlineAt{}, false
	}
	at, ok := d.inline[&b[0]]
	return at, ok
}

// layout is how an input lies: what a take depends on.
type layout struct {
	View
	spec     Spec
	writable bool // its memory may be written over when its readers in the graph have run
	filled   bool // see Rules.Fills
}

// offsetClass is what offsets that kernels need not tell apart are equal by: none, or one of an alignment.
const offsetClass = 64

// class is the offset that stands for the view's, and whether there is memory behind its elements.
func (l *layout) class() (offset int64, tail bool) {
	low, high := l.span(l.spec)
	if l.buf == nil {
		return l.OffsetBytes, l.OffsetBytes+high < int64(len(l.inline))
	}
	if l.OffsetBytes != 0 {
		offset = l.OffsetBytes%offsetClass + offsetClass*((-low+2*offsetClass-1)/offsetClass)
	}
	return offset, l.OffsetBytes+high < l.buf.Len()
}

// standInTail is the memory behind the elements of a stand-in that has some.
const standInTail = 4 << 10

// standIn is a ready array without memory that lies as an input does. Its offset is that of its class.
func (d *dry) standIn(s *Stream, i int, l *layout) *Array {
	v := View{Strides: l.Strides}
	var tail bool
	v.OffsetBytes, tail = l.class()
	n := &Node{id: nodeIDs.Add(1), op: constantOp}
	n.out = n.single[:]
	n.out[0].spec, n.out[0].filled = l.spec, l.filled
	if l.buf == nil {
		v.inline = make([]byte, len(l.inline))
		for k := range v.inline {
			d.inline[&v.inline[k]] = inlineAt{i, int64(k)}
		}
	} else {
		_, high := l.span(l.spec)
		size := max(v.OffsetBytes+high, leastBuffer)
		if tail {
			size += standInTail
		}
		v.buf = d.dev.StandIn(size, nil)
		d.bufs[v.buf] = &dryBuffer{input: i, base: v.OffsetBytes, tail: tail}
		v.owner = &storage{buf: v.buf, dev: s.dev, stream: s, external: !l.writable}
		v.owner.hold()
		if l.writable {
			d.over = append(d.over, v.owner)
		}
	}
	n.out[0].data = v
	n.state.Store(int32(Ready))
	return n.array(0)
}

// errNoTake is why there is no take of a graph whose calls cannot be recorded.
var errNoTake = errors.New("BUG: a call of a compiled function cannot be recorded")

// capture makes a take of the recording: of the outputs that are needed, for inputs that lie in these ways, with the
// order of sums of a call that is alike or not (see SetBatchInvariant). The recorder of the stream is in the middle of
// a segment, which does not notice.
func (r *Recording) capture(of *recorder, in []layout, need []bool, alike bool) (t *take, err error) {
	rec := &recorder{}
	rec.init(of.s)
	rec.exec.texts = of.exec.texts
	d := &dry{dev: of.dev, inline: map[*byte]inlineAt{}, bufs: map[*metal.Buffer]*dryBuffer{}}
	rec.dry, rec.memory.dry, rec.batcher.dry = d, d, true
	args, consts := make([]*Array, len(r.specs)), make([]*Array, len(r.consts))
	var standIns []*Array
	for i := range in {
		x := d.standIn(of.s, i, &in[i])
		standIns = append(standIns, x)
		if i < len(r.reads) {
			args[r.reads[i]] = x
		} else {
			consts[r.read[i-len(r.reads)]] = x
		}
	}
	for i, s := range r.specs {
		if args[i] == nil {
			args[i] = (&stepConst{spec: s}).standIn()
		}
	}
	for i := range r.consts {
		if consts[i] == nil {
			consts[i] = r.consts[i].standIn()
		}
	}
	outs, err := r.build(&Ctx{Stream: of.s}, args, consts, need)
	if err != nil {
		return nil, err
	}
	for _, x := range standIns { // nobody reads them but the graph
		Drop(x)
	}
	// Roots are asked for, so that they are stored; nodes that nobody needs were not built.
	j := &job{proof: proof{holder: of.job.proof.holder}, ctx: of.job.ctx, cancel: func(error) {}, fallback: of.s}
	j.chains = []streamChain{{stream: of.s, chain: &metal.Chain{}}}
	seg := &segment{job: j, stream: of.s}
	for i, x := range outs {
		if need[i] {
			x.node.out[x.out].asked = true
			seg.gather(x.node, alike)
		}
	}
	t, err = rec.take(seg, outs, need, len(in), r.ahead.Load())
	runtime.KeepAlive(outs)
	if err == nil {
		t.stream = of.s
	}
	return t, err
}

// gather makes tasks of a node and of what it reads, inputs first, as claiming does. Where alike is set, they were
// built under SetBatchInvariant.
func (seg *segment) gather(root *Node, alike bool) {
	type frame struct {
		n    *Node
		next int
	}
	var frames []frame
	for next := root; ; {
		if next != nil && next.now() == Lazy {
			next.state.Store(int32(Scheduled))
			next.alike = next.alike || alike
			frames = append(frames, frame{n: next})
		}
		if len(frames) == 0 {
			return
		}
		f := &frames[len(frames)-1]
		n := f.n
		if reads := n.specFrom(len(n.in)); f.next < reads {
			next = n.in[f.next].Node
			f.next++
			continue
		}
		next, frames = nil, frames[:len(frames)-1]
		n.runs, n.seg, n.slot = seg.stream, seg, int32(len(seg.tasks))
		seg.tasks = append(seg.tasks, task{n, n.in, n.specFrom(len(n.in))})
	}
}

// take plans and records a segment of which nothing is to run. Ahead says that indices are checked as soon as they are
// there, wherever the calls are that use them.
func (rec *recorder) take(seg *segment, outs []*Array, need []bool, inputs int, ahead bool) (t *take, err error) {
	rec.beginSegment(seg)
	p := &rec.plan
	p.fuse, p.lead = fuse.Load(), ahead
	p.countReaders(seg)
	rec.findLive(rec.s)
	p.makeUnits(seg)
	p.orderUnits(seg, seg.job.proof)
	p.leadIndices(seg)
	batch := rec.batcher.open()
	batch.cb = seg.job.chain(rec.s).NewCommandBuffer(rec.dev, rec.s.index, "")
	defer batch.cb.Cancel(context.Canceled)
	enc := batch.cb.Encoder()
	enc.ShareBytes(func(b []byte) bool { _, ok := rec.dry.inlineOf(b); return ok })
	t = newTake(rec.dry, inputs)
	rec.dry.countUsers(seg)
	for _, u := range p.units {
		root := seg.tasks[u.root].node
		if early := p.order.early; ahead && (len(early) != len(seg.tasks) || !early[u.root]) {
			ahead = false
			t.checkAll(rec, batch)
		}
		from, checks := enc.Len(), len(batch.checks)
		rec.recordUnit(u)
		if err := root.failure(); err != nil {
			return nil, err
		}
		if seg.job.stopped.Load() || rec.batcher.batch != batch {
			return nil, errNoTake
		}
		t.addUnit(root, batch.cb.Commands()[from:], batch.checks[checks:])
		rec.dry.recorded(root)
	}
	for _, c := range batch.checks {
		c.buf.Release()
	}
	for i, x := range outs {
		if need[i] {
			if err := t.addOutput(i, x); err != nil {
				return nil, err
			}
		}
	}
	t.flops, t.written = seg.job.flops.Load(), seg.job.bytes.Load()
	t.finish()
	return t, nil
}

// countUsers counts the users' kernels of a segment. What writes over inputs comes behind all of them: from there on
// all commands run to their end, and a user's kernel may have none.
func (d *dry) countUsers(seg *segment) {
	for i := range seg.tasks {
		if seg.tasks[i].node.op.partial {
			d.users++
		}
	}
	for _, st := range d.over {
		st.external = d.users > 0
	}
}

// recorded notes that a call is recorded.
func (d *dry) recorded(n *Node) {
	if !n.op.partial {
		return
	}
	if d.users--; d.users == 0 {
		for _, st := range d.over {
			st.external = false
		}
	}
}

// checkAll checks the indices that are there of calls that are recorded later.
func (t *take) checkAll(rec *recorder, batch *batch) {
	enc := batch.cb.Encoder()
	for i := range rec.seg.tasks {
		n := rec.seg.tasks[i].node
		if n == nil || !rec.gates.checkable(n) {
			continue
		}
		from, checks := enc.Len(), len(batch.checks)
		rec.batcher.op, rec.batcher.place = n.op, n.Place()
		if rec.gates.checkAhead(n) {
			t.addUnit(n, batch.cb.Commands()[from:], batch.checks[checks:])
			t.ahead = append(t.ahead, n)
		}
		rec.memory.giveBack()
		rec.exec.kernel.begin()
	}
}
