package tensor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
)

// recorder turns segments into command buffers, on its stream's goroutine.
type recorder struct {
	s   *Stream
	dev *metal.Device

	job    *job
	seg    *segment
	batch  *batch
	plan   plan
	temps  []*metal.Buffer // of the call being encoded
	lent   []*metal.Buffer // those of them that someone reads after the call
	free   freeList
	crowd  crowd // of the segment being encoded
	pieces []int // that strides are cut from

	texts   map[string]metal.Source // generated kernels by key
	key     []byte
	members []int32 // of the unit that is being encoded
	op      *Op     // that the last of them calls
	place   Place   // and the line
	first   int     // its first command in the batch
	early   *error  // of its commands in earlier batches
	short   bool    // there was no memory for it
	begins  bool    // no batch of the segment was handed over
	kernel  kernelScratch
	rule    Run           // of the Run rule that is being executed
	spare   kernelScratch // for a copy that a rule makes while its own kernel is being prepared
}

// The size of a command buffer: it is handed over when it is as large, so that memory comes back during long
// evaluations and the device has work while the rest is encoded.
const (
	batchCommands = 64
	firstCommands = 16 // of an evaluation's first, when the device is idle
	idleCommands  = 32 // of later ones: a device that is idle again is faster than its encoder
	batchBytes    = 64 << 20
	maxPending    = 16
)

func (e *recorder) init(s *Stream) {
	e.s, e.dev = s, s.dev
	e.texts = map[string]metal.Source{}
}

// run plans and encodes a segment.
func (e *recorder) run(seg *segment) {
	e.seg, e.job, e.begins = seg, seg.job, true
	defer e.end(seg)
	planning := e.span("plan", "plan")
	e.order()
	e.refuse()
	planning.End(Place{})
	for _, u := range e.plan.units {
		e.unit(u)
		if e.full() {
			e.commit(false)
		}
	}
}

// refuse fails what cannot fit in memory before anything runs: nobody should wait for the rest to learn of it.
func (e *recorder) refuse() {
	limit := e.dev.Memory().Limit
	refused := false
	for _, u := range e.plan.units {
		n := e.seg.tasks[u.root].node
		if n.op.view != nil {
			continue
		}
		for i := range n.out {
			bytes := n.out[i].spec.NBytes()
			if bytes <= limit {
				continue
			}
			buf, err := e.dev.Alloc(e.job.ctx, bytes) // it says why
			if err != nil {
				n.settle(n.runError(err))
				refused = true
				break
			}
			buf.Release()
		}
	}
	if !refused {
		return
	}
	for i := range e.seg.tasks {
		t := &e.seg.tasks[i]
		for _, v := range t.reads() {
			if err := v.Node.failure(); err != nil {
				t.node.settle(err)
				break
			}
		}
	}
}

// end hands the rest of a segment over; what a bug left undone fails.
func (e *recorder) end(seg *segment) {
	if r := recover(); r != nil {
		err := fmt.Errorf("BUG: planning panicked: %v\n%s", r, debug.Stack())
		for i := range seg.tasks {
			if n := seg.tasks[i].node; n != nil {
				n.settle(n.runError(err))
			}
		}
	}
	e.members, e.early = e.members[:0], nil
	e.free.flush()
	e.crowd = crowd{} // evaluations do not keep each other's memory
	e.commit(true)
	tasks := seg.tasks
	seg.tasks = nil // the nodes hold on to seg
	if seg.whole {
		spareTasks.put(tasks)
	}
	e.seg, e.job = nil, nil
}

// open is the batch that is being filled.
func (e *recorder) open() *batch {
	if e.batch == nil {
		e.batch = &batch{job: e.job, ended: make(chan struct{}), nodes: e.s.spare.get()}
	}
	return e.batch
}

// encoder is the command buffer's, for a command of that label.
func (e *recorder) encoder(label string) *metal.Encoder {
	b := e.open()
	if b.cb == nil {
		b.cb = e.dev.NewCommandBuffer(e.s.index, "")
	}
	enc := b.cb.Encoder()
	if b.cb.Validating() && e.place != (Place{}) {
		label = strings.TrimSpace(label + " " + e.place.String())
	}
	enc.Label(label)
	return enc
}

// commands counts the commands of the batch so far.
func (e *recorder) commands() int {
	if e.batch == nil || e.batch.cb == nil {
		return 0
	}
	return e.batch.cb.Encoder().Len()
}

func (e *recorder) full() bool {
	if e.batch == nil || e.batch.cb == nil {
		return e.batch != nil && len(e.batch.nodes) >= 4*batchCommands
	}
	n := e.commands()
	least := idleCommands
	if e.begins {
		least = firstCommands
	}
	if n >= least && n < batchCommands {
		e.s.mu.Lock()
		idle := len(e.s.pending) == 0
		e.s.mu.Unlock()
		if idle {
			return true
		}
	}
	return n >= batchCommands || e.batch.bytes >= batchBytes
}

// commit hands the batch over; last says that it ends the segment.
func (e *recorder) commit(last bool) {
	b := e.batch
	if b == nil {
		if !last {
			return
		}
		b = e.open()
	}
	e.batch, e.begins = nil, false
	b.last = last
	if n := len(e.members); n > 0 && b.cb != nil && b.cb.Encoder().Len() > e.first {
		e.split(b)
	}
	e.first = 0
	s := e.s
	s.mu.Lock()
	s.pending = append(s.pending, b)
	s.mu.Unlock()
	cb := b.cb
	if cb == nil {
		s.complete(b, nil)
		return
	}
	j := b.job
	b.commands = cb.Encoder().Len()
	cb.OnComplete(func(err error) {
		j.forget(cb)
		s.ran(b)
		s.complete(b, err)
	})
	j.watch(cb)
	if err := cb.Commit(); err != nil {
		return // it has ended, and its nodes with it
	}
	e.throttle(maxPending)
}

// split notes that a batch holds the first commands of the unit that is being encoded.
func (e *recorder) split(b *batch) {
	if e.early == nil {
		e.early = new(error)
	}
	for _, slot := range e.members {
		t := &e.seg.tasks[slot]
		b.nodes = append(b.nodes, settling{node: t.node, in: t.reads(), first: e.first, last: b.cb.Encoder().Len(),
			early: e.early, more: true})
	}
}

// throttle waits until the stream has fewer than n batches pending.
func (e *recorder) throttle(n int) {
	for {
		e.s.mu.Lock()
		var ended chan struct{}
		if len(e.s.pending) >= n {
			ended = e.s.pending[0].ended
		}
		e.s.mu.Unlock()
		if ended == nil {
			return
		}
		<-ended
	}
}

// drain hands over what is encoded and waits until all of the stream's commands have run, or the evaluation is
// cancelled.
func (e *recorder) drain() error {
	if e.batch != nil {
		e.commit(false)
	}
	e.throttle(1)
	if e.job.ctx.Err() != nil {
		return context.Cause(e.job.ctx)
	}
	return nil
}

// unit encodes a unit; its nodes fail with what goes wrong.
func (e *recorder) unit(u unit) {
	e.members = e.plan.members(u, e.members[:0])
	members := e.members
	if len(members) > 1 && e.anyFailed(members) {
		e.alone(members, nil)
		return
	}
	e.short = false
	e.first, e.early = e.commands(), nil
	err := e.seg.tasks[members[0]].node.failure()
	if err == nil {
		root := &e.seg.tasks[members[len(members)-1]]
		encoding := e.span("encode", root.node.op.name)
		if err = e.encode(members); err == nil && e.plan.check {
			err = e.inspect(root)
		}
		encoding.End(root.node.Place())
		e.kernel.begin()
	}
	if err != nil {
		for _, slot := range members {
			e.seg.tasks[slot].node.unplace()
		}
		if len(members) > 1 {
			if !e.short {
				err = nil
			}
			e.alone(members, err) // what cannot be encoded fails alone
			return
		}
	}
	e.members = e.members[:0]
	for _, slot := range members {
		e.finish(&e.seg.tasks[slot], err)
	}
	e.giveBack()
}

// alone encodes members one by one. Where there was no memory for them together (short is the error), the root would
// not have any either, and steps that only lead to it would take more, and time, in vain: these fail at once.
func (e *recorder) alone(members []int32, short error) {
	members = append([]int32(nil), members...)
	e.members = e.members[:0]
	wanted := make([]bool, len(members))
	for i := len(members) - 1; i >= 0; i-- {
		slot := members[i]
		wanted[i] = wanted[i] || short == nil || i < len(members)-1 && e.plan.live[e.plan.base[slot]]
		for _, v := range e.seg.tasks[slot].reads() {
			if k := slices.Index(members, v.Node.slot); wanted[i] && v.Node.seg == e.seg && k >= 0 {
				wanted[k] = true
			}
		}
	}
	for i, slot := range members {
		e.plan.next[slot] = -1
		if wanted[i] {
			e.unit(unit{slot, slot})
		} else {
			e.finish(&e.seg.tasks[slot], short)
		}
	}
}

func (e *recorder) anyFailed(members []int32) bool {
	for _, slot := range members {
		if e.seg.tasks[slot].node.now() == Failed {
			return true
		}
		for _, v := range e.seg.tasks[slot].reads() {
			if v.Node.now() == Failed {
				return true
			}
		}
	}
	return false
}

// encode encodes the members' commands.
func (e *recorder) encode(members []int32) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: executing the op panicked: %v\n%s", r, debug.Stack())
		}
	}()
	if e.job.ctx.Err() != nil {
		return context.Cause(e.job.ctx)
	}
	for _, slot := range members {
		if err := e.await(&e.seg.tasks[slot]); err != nil {
			return err
		}
	}
	root := &e.seg.tasks[members[len(members)-1]]
	e.op, e.place = root.node.op, root.node.Place()
	switch p := root.node.op; {
	case p.expr != nil:
		return e.elementwise(members)
	case p.reduce != nil:
		return e.reduce(members)
	case p.view != nil:
		return e.view(root)
	case p.run != nil:
		return e.call(root)
	case p.host != nil:
		return e.host(root)
	}
	return errors.New("BUG: the op has no executor")
}

// await waits for inputs that other streams compute, and returns the error of a failed input.
func (e *recorder) await(t *task) error {
	for _, v := range t.reads() {
		n := v.Node
		if n.now() == Scheduled && n.runs != e.s {
			if e.batch != nil {
				e.commit(false)
			}
			if err := n.wait(e.job.ctx); err != nil && n.now() != Failed {
				return err
			}
		}
		if err := n.failure(); err != nil {
			return err
		}
	}
	return nil
}

// finish records a task whose commands are encoded, or could not be, and lets go of what it read.
func (e *recorder) finish(t *task, err error) {
	if err == nil {
		b := e.open()
		b.nodes = append(b.nodes, settling{node: t.node, in: t.reads(), first: e.first, last: e.commands(),
			early: e.early})
		for i := range t.node.out {
			e.let(Value{t.node, i})
		}
	}
	for _, v := range t.reads() {
		v.Node.out[v.Out].uses.Add(-1)
		e.let(v)
	}
	if err != nil {
		t.node.settleLast(t.node.runError(err))
	}
	*t = task{} // a long segment must not keep what it has read
}

// unplace takes outputs back whose commands could not be encoded.
func (n *Node) unplace() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.out {
		if st := n.detach(i); st != nil {
			if buf := st.take(); buf != nil {
				buf.Release()
			}
		}
		n.out[i].gone = false
	}
}

// let gives a value's storage back for later calls if no one will read the value.
func (e *recorder) let(v Value) {
	o := &v.Node.out[v.Out]
	if o.uses.Load() != 0 || o.asked && v.Node.now() < Ready || !v.unheld() {
		return
	}
	v.Node.mu.Lock()
	st := v.Node.detach(v.Out)
	v.Node.mu.Unlock()
	if st == nil {
		return
	}
	writable := st.writable(e.s)
	buf := st.take()
	switch {
	case buf == nil:
	case writable:
		e.recycle(buf)
	default:
		buf.Release()
	}
}

// pipeline compiles, or finds, a kernel.
func (e *recorder) pipeline(src metal.Source, entry string) (*metal.Pipeline, error) {
	var compiling Span
	if timeline.Load() != nil && !e.dev.LibraryCached(src) {
		compiling = e.span("compile", src.Label)
	}
	lib, err := e.dev.Library(e.job.ctx, src)
	compiling.End(e.place)
	if err != nil {
		return nil, err
	}
	return lib.Pipeline(entry)
}

// dispatch binds arguments and encodes a launch.
func (e *recorder) dispatch(label string, p *metal.Pipeline, grid, threadgroup metal.Size, args []Arg) error {
	if len(args) != len(p.Params()) {
		return fmt.Errorf("kernel %s has %d parameters, %d were given", p.Name(), len(p.Params()), len(args))
	}
	for i := range args {
		if a := &args[i]; a.kind == argBad {
			return fmt.Errorf("kernel %s, argument %d: %s", p.Name(), i, string(a.view.inline))
		} else if a.kind == argView && a.view.buf == nil && p.Params()[i].Write {
			v, err := e.upload(a.view)
			if err != nil {
				return err
			}
			a.view = v
		}
	}
	enc := e.encoder(label)
	enc.SetPipeline(p)
	for i := range args {
		a := &args[i]
		switch {
		case a.kind == argBytes:
			enc.SetBytes(i, a.view.inline)
		case a.kind == argSmall:
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], uint64(a.view.OffsetBytes))
			enc.SetBytes(i, word[:a.n])
		case a.view.buf != nil:
			enc.SetBuffer(i, a.view.buf, a.view.OffsetBytes)
		case a.view.OffsetBytes <= int64(len(a.view.inline)):
			enc.SetBytes(i, a.view.inline[a.view.OffsetBytes:])
		}
	}
	return enc.Dispatch(grid, threadgroup)
}

// check has f called with a result's bytes when the batch has run: until then no later command may write to them.
func (e *recorder) check(n *Node, o Operand, f func([]byte) error) {
	if o.buf == nil {
		return
	}
	o.buf.Retain()
	e.lend(o.buf)
	if o.owner != nil {
		o.owner.shared.Store(true)
	}
	b := e.open()
	b.checks = append(b.checks, check{n, o.buf, o.OffsetBytes, o.NBytes(), f})
}
