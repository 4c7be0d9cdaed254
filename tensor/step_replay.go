package tensor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// steps records calls of recordings, for a recorder: what follows is scratch, kept between calls, and the take and the
// task of the call that is being recorded.
type steps struct {
	rec *recorder
	t   *task
	tk  *take

	in    []layout
	need  []bool
	key   []byte
	bufs  []*metal.Buffer // by seat
	base  []int64         // by seat: where its memory begins in the buffer
	made  metal.Origin    // of the buffer that is being allocated
	live  []bool          // by seat: bufs has a reference that is to be given back
	store []*storage
	old   []int // inputs that changes keep, and that may be written over behind a gate
	spare bool  // they are not to be

	part     *takePart // that is being encoded; nil: none
	partFrom int       // its first command in the batch
	partOf   *batch
}

// record records a call of a Recording.
func (k *steps) record(t *task) error {
	defer k.clear()
	err := k.attempt(t)
	if err == errKept {
		t.unplace()
		k.clear()
		k.spare = true
		err = k.attempt(t)
	}
	return err
}

// errKept is why a take cannot be used that writes over what a change keeps: it would do so before it is known that
// nothing fails.
var errKept = errors.New("BUG: nobody sees that a change keeps what is to be written over")

// attempt is record, which is to be tried again with spare set where it fails with errKept.
func (k *steps) attempt(t *task) error {
	r, rec := t.node.attrs.(*Recording), k.rec
	k.t = t
	if err := k.layouts(); err != nil {
		return err
	}
	k.needed()
	k.key = r.appendKey(k.key[:0], k.in, k.need, t.node.alike)
	k.tk = r.find(k.key, rec.s)
	if k.tk == nil || !rec.dev.UseLibraries(k.tk.libs, rec.job.proof.holder.Libraries()) {
		var err error
		k.tk, err = r.capture(rec, k.in, k.need, t.node.alike)
		if err == nil && k.late() && !r.ahead.Swap(true) {
			k.tk, err = r.capture(rec, k.in, k.need, t.node.alike)
		}
		if err != nil {
			return err
		}
		if k.tk.key = string(k.key); k.tk.callsWithin() { // a gate may have such a call begin a command buffer
			r.calls.Store(true)
			return k.attempt(t)
		}
		r.keep(k.tk)
	}
	if k.late() {
		return errKept
	}
	return k.replay()
}

// late reports whether the take writes over what a change keeps before all is checked.
func (k *steps) late() bool {
	return k.tk.checksLate && slices.ContainsFunc(k.old, func(i int) bool { return k.tk.seats[i].written })
}

// clear lets go of what the scratch refers to.
func (k *steps) clear() {
	k.t, k.tk, k.old, k.spare, k.part, k.partOf = nil, nil, k.old[:0], false, nil, nil
	clear(k.in)
	clear(k.bufs)
	clear(k.store)
}

// layouts finds how the inputs of a call lie.
func (k *steps) layouts() error {
	t := k.t
	k.in, k.old = resize(k.in, t.from), k.old[:0]
	for i, v := range t.reads() {
		o, err := k.rec.places.operand(v)
		if err != nil {
			return err
		}
		l := layout{View: o.View, spec: o.Spec, filled: v.Node.out[v.Out].filled, writable: k.mayWrite(v, &o)}
		if l.writable && v.changing() {
			if l.writable = !k.spare && k.mayGate(v); l.writable {
				k.old = append(k.old, i)
			}
		}
		k.in[i] = l
	}
	return nil
}

// mayWrite reports whether the call may write over an input, when it has read it: nobody else will, it lies alone in
// its memory, and an output takes as much.
func (k *steps) mayWrite(v Value, o *Operand) bool {
	rec, t, st := k.rec, k.t, o.owner
	if st == nil || rec.plan.single || t.node.attrs.(*Recording).calls.Load() {
		return false
	}
	if o.OffsetBytes != 0 || o.buf.Len() != max(o.NBytes(), leastBuffer) ||
		st.users.Load() != 1 || !t.hasOutput(o.Spec) || !t.readsOnce(v) {
		return false
	}
	return rec.places.lastRead(v, []int32{t.node.slot}) && st.writable(rec.s)
}

// mayGate reports whether there may be a gate behind which an input may be written over that changes keep. What the
// call itself may fail by is before it.
func (k *steps) mayGate(v Value) bool {
	g := &k.rec.gates
	g.updating = k.t.node
	defer func() { g.updating = nil }()
	ch := v.Node.changes.Load()
	return ch == nil || !slices.ContainsFunc(ch.old, func(o oldOutput) bool {
		return o.out == v.Out && !o.change.Over() && !g.mayGate(o.change)
	})
}

// gate makes the gates behind which inputs are written over that changes keep.
func (k *steps) gate() error {
	g := &k.rec.gates
	g.updating = k.t.node
	defer func() { g.updating = nil }()
	for _, i := range k.old {
		if v := k.t.in[i]; k.tk.seats[i].written && !(g.maySpend(v) && v.unheld(k.rec.job.proof)) {
			return errKept
		}
	}
	return nil
}

// hasOutput reports whether an output of the task has that spec.
func (t *task) hasOutput(s Spec) bool {
	for i := range t.node.out {
		if o := &t.node.out[i].spec; o.DType == s.DType && o.Shape.Equal(s.Shape) {
			return true
		}
	}
	return false
}

// needed finds which outputs of a call somebody reads.
func (k *steps) needed() {
	n, p := k.t.node, &k.rec.plan
	k.need = resize(k.need, len(n.out))
	base := int(p.base[n.slot])
	any := false
	for i := range k.need {
		k.need[i] = p.live[base+i] || p.edges[base+i] > 0
		any = any || k.need[i]
	}
	if !any { // it was asked for and let go of: one that nobody reads is as good as another
		k.need[0] = true
	}
}

// appendKey appends what a take depends on beside the stream.
func (r *Recording) appendKey(key []byte, in []layout, need []bool, alike bool) []byte {
	flag := func(b bool) {
		if b {
			key = append(key, 1)
		} else {
			key = append(key, 0)
		}
	}
	flag(fuse.Load())
	flag(alike)
	for _, n := range need {
		flag(n)
	}
	for i := range in {
		l := &in[i]
		offset, tail := l.class()
		flag(tail)
		flag(l.writable)
		flag(l.filled)
		if l.buf == nil {
			key = binary.AppendUvarint(append(key, 1), uint64(len(l.inline)))
		} else {
			key = append(key, 0)
		}
		key = binary.AppendVarint(key, offset)
		for d, s := range l.Strides {
			if l.spec.Shape[d] == 1 && !r.user { // which no element is reached by, but a user's kernel may look at
				s = 0
			}
			key = binary.AppendVarint(key, int64(s))
		}
	}
	return key
}

// replay encodes the commands of a take on the buffers of the day.
func (k *steps) replay() (err error) {
	rec, tk, q := k.rec, k.tk, &k.rec.batcher
	k.bufs, k.live, k.store = resize(k.bufs, len(tk.seats)), resize(k.live, len(tk.seats)), resize(k.store, len(tk.stores))
	k.base = resize(k.base, len(tk.seats))
	if b := q.open(); len(b.steps) > 0 && b.steps[len(b.steps)-1].node == k.t.node { // it was tried before
		b.steps = b.steps[:len(b.steps)-1]
	}
	for i := range k.in {
		k.bufs[i], k.base[i] = k.in[i].buf, k.in[i].OffsetBytes
	}
	if err := k.commons(); err != nil {
		return err
	}
	defer func() {
		for i, live := range k.live {
			if live && err == nil && !tk.seats[i].checked {
				rec.memory.recycle(k.bufs[i])
			} else if live { // a check keeps it, or commands that will not be recorded
				k.bufs[i].Release()
			}
		}
	}()
	if err := k.placeInputs(); err != nil {
		return err
	}
	for _, at := range tk.begin {
		if err := k.fill(at); err != nil {
			return err
		}
	}
	k.t.node.attrs.(*Recording).keepParts(tk, rec.dev)
	for i := range tk.units {
		u := &tk.units[i]
		k.unitsFrom(i)
		if err := k.replayUnit(u); err == errKept {
			return err
		} else if err != nil {
			return u.op.named(err, u.place)
		}
		of := k.unitsFrom(i)
		of.ends = append(of.ends, int32(q.commands()))
		if q.atomicGroup != 0 || k.part != nil || !q.full() {
			continue
		}
		if q.commit(false); rec.job.ctx.Err() != nil {
			return context.Cause(rec.job.ctx)
		}
	}
	rec.job.flops.Add(tk.flops)
	rec.job.bytes.Add(tk.written)
	k.placeOutputs()
	return nil
}

// stepUnits is which commands of a batch are those of the units of a take, for errors.
type stepUnits struct {
	node  *Node
	units []takeUnit // from the first that has commands there
	first int        // the first command
	ends  []int32    // behind the last one of each unit; units have more where the batch was handed over in between
}

// unitsFrom is what the batch that is being filled knows of the units of the call, of which the i-th is next.
func (k *steps) unitsFrom(i int) *stepUnits {
	b := k.rec.batcher.open()
	if n := len(b.steps); n == 0 || b.steps[n-1].node != k.t.node {
		units := k.tk.units[i:]
		b.steps = append(b.steps, stepUnits{k.t.node, units, k.rec.batcher.commands(), make([]int32, 0, len(units))})
	}
	return &b.steps[len(b.steps)-1]
}

// unitOf is the unit that a command is of, where the node is a call of a recording; else nil.
func (b *batch) unitOf(n *Node, command int) *takeUnit {
	for i := range b.steps {
		s := &b.steps[i]
		if s.node != n || command < s.first {
			continue
		}
		at := 0
		for at < len(s.ends) && int(s.ends[at]) <= command {
			at++
		}
		if at < len(s.units) {
			return &s.units[at]
		}
	}
	return nil
}

// placeInputs makes storages of inputs that outputs lie in.
func (k *steps) placeInputs() error {
	rec, tk := k.rec, k.tk
	for i := range tk.stores {
		to := &tk.stores[i]
		s := &tk.seats[to.seat]
		if s.input < 0 {
			continue
		}
		l := &k.in[s.input]
		st := l.owner
		if st == nil { // a temporary of this call: another device's bytes
			l.buf.Retain()
			rec.memory.lend(l.buf)
			st = &storage{dev: rec.dev, stream: rec.s, buf: l.buf, external: true}
		}
		k.store[i] = st
		if to.taken {
			l.buf.SetOrigin(k.origin(s))
		}
		k.placeStore(int32(i))
	}
	return nil
}

// origin is what messages say of the buffer in a seat.
func (k *steps) origin(s *seat) metal.Origin {
	o := s.origin
	o.Account, o.Owner = k.rec.batcher.account, k.rec.batcher.owner
	return o
}

// commons gives the seats that share a buffer theirs, but for validation, which looks at each by itself.
func (k *steps) commons() error {
	rec, tk := k.rec, k.tk
	if tk.commons == 0 || rec.dev.Validating() {
		return nil
	}
	k.made = rec.memory.origin(k.t.node.op.temporary)
	buf, err := rec.memory.alloc(tk.commons, &k.made, true)
	if err != nil {
		return err
	}
	rec.memory.temps = append(rec.memory.temps, buf)
	for i := range tk.seats {
		if s := &tk.seats[i]; s.common {
			k.bufs[i], k.base[i] = buf, s.at
		}
	}
	return nil
}

// fill gives a seat a buffer, if it has none.
func (k *steps) fill(at int32) (err error) {
	rec, s := k.rec, &k.tk.seats[at]
	if s.common && k.bufs[at] != nil {
		return nil
	}
	k.made = k.origin(s)
	origin := &k.made
	var buf *metal.Buffer
	if s.upload {
		b := s.bytes
		if s.from.input >= 0 {
			b = k.in[s.from.input].inline[s.from.at:]
		}
		b = append(make([]byte, 0, max(len(b), leastBuffer)), b...)[:s.length]
		buf, err = rec.dev.AllocCopy(rec.job.ctx, b, origin)
	} else {
		buf, err = rec.memory.alloc(s.length, origin, s.fill)
	}
	if err != nil {
		return err
	}
	k.bufs[at] = buf
	if s.store < 0 {
		k.live[at] = true
		return nil
	}
	n, to := k.t.node, &k.tk.stores[s.store]
	var st *storage
	switch {
	case buf.Len() <= groupBytes/2 && rec.plan.live[int(rec.plan.base[n.slot])+to.first]:
		st = rec.memory.group.next(rec.dev, buf)
	case to.first == 0:
		st = &n.home
		st.reset()
	default:
		st = &storage{}
	}
	st.buf, st.dev, st.stream, st.external = buf, rec.dev, rec.s, to.external
	k.store[s.store] = st
	k.placeStore(s.store)
	return nil
}

// placeStore says of the outputs that lie in a storage where that is: what goes wrong from then on gives it back.
func (k *steps) placeStore(store int32) {
	tk := k.tk
	for i := range tk.outs {
		o := &tk.outs[i]
		if o.store != store || !o.there {
			continue
		}
		at := tk.stores[store].seat
		v := View{buf: k.bufs[at], owner: k.store[store], OffsetBytes: o.offset, Strides: o.strides}
		if in := tk.seats[at].input; in >= 0 {
			v.OffsetBytes += k.in[in].OffsetBytes
		}
		k.rec.places.setData(k.t.node, i, v)
		k.t.node.out[i].filled = o.filled
	}
}

// placeOutputs says where the inline outputs lie.
func (k *steps) placeOutputs() {
	for i := range k.tk.outs {
		o := &k.tk.outs[i]
		if o.store >= 0 || !o.there {
			continue
		}
		v := View{inline: o.inline, OffsetBytes: o.offset, Strides: o.strides}
		if o.from.input >= 0 {
			v.inline = k.in[o.from.input].inline[o.from.at:]
		}
		k.rec.places.setData(k.t.node, i, v)
		k.t.node.out[i].filled = o.filled
	}
}

// replayUnit encodes the commands of a unit.
func (k *steps) replayUnit(u *takeUnit) error {
	rec, tk, q := k.rec, k.tk, &k.rec.batcher
	q.op, q.place = u.op, u.place
	for i := u.first; i < u.last; i++ {
		c := &tk.cmds[i]
		for _, at := range c.begin {
			if err := k.fill(at); err != nil {
				return err
			}
		}
		if int(i) == tk.indivisible {
			if err := k.gate(); err != nil {
				return err
			}
			q.indivisible()
		}
		if k.part == nil && len(tk.parts) > 0 {
			k.beginPart(int(i))
		}
		if err := k.encode(c); err != nil {
			return err
		}
		k.endPart(int(i))
		for _, at := range c.end {
			if k.live[at] { // else it shares its buffer
				rec.memory.recycle(k.bufs[at])
				k.live[at] = false
			}
		}
	}
	for i := range u.checks {
		c := &u.checks[i]
		s := &tk.seats[c.seat]
		o := Operand{View: View{buf: k.bufs[c.seat], OffsetBytes: c.at}}
		if s.store >= 0 {
			o.owner = k.store[s.store]
		}
		rec.places.checkBytes(k.t.node, o, c.n, c.f)
	}
	return nil
}

// rangeOf is what an argument is bound to.
func (k *steps) rangeOf(a *takeArg) metal.Range {
	r := metal.Range{Buf: k.bufs[a.seat], Offset: a.offset + k.base[a.seat], Bytes: a.n}
	if a.n == toEnd {
		r.Bytes = r.Buf.Len() - r.Offset
	}
	return r
}

// encode encodes a command.
func (k *steps) encode(c *takeCommand) error {
	enc := k.rec.batcher.encoder(c.label)
	switch c.kind {
	case metal.CmdCopy:
		return enc.Copy(k.rangeOf(&c.args[0]), k.rangeOf(&c.args[1]))
	case metal.CmdFill:
		return enc.Fill(k.rangeOf(&c.args[0]), c.pattern)
	case metal.CmdCall:
		ranges := make([]metal.Range, len(c.args))
		for i := range c.args {
			ranges[i] = k.rangeOf(&c.args[i])
		}
		return k.rec.batcher.call(c.label, c.routine, ranges[c.writes:], ranges[:c.writes])
	case metal.CmdDispatch:
	default:
		return fmt.Errorf("BUG: a take has a command of kind %d", c.kind)
	}
	enc.SetPipeline(c.pipeline)
	for i := range c.args {
		a := &c.args[i]
		switch {
		case a.seat >= 0:
			enc.SetBufferRange(i, k.rangeOf(a))
		case a.group > 0:
			enc.SetThreadgroupBytes(i, a.group)
		case a.from.input >= 0:
			enc.SetBytes(i, k.in[a.from.input].inline[a.from.at:][:a.n])
		default:
			enc.SetBytes(i, a.bytes)
		}
	}
	return enc.Dispatch(c.grid, c.group)
}
