package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

// slot is what a command buffer needs beside its commands' own memory while it is on the stream.
type slot struct {
	records *allocation // a control block for each command: zeros, but after a fault
	bytes   *allocation // inline bytes that do not come with a launch
	staging pinned      // the same bytes on the host
	notice  pinned      // a word that is set where something is to be read
	over    event
	times   []event // before each command, and behind the last
	timed   bool
	used    int // bytes of staging
}

// step is something to be done on the stream.
type step struct {
	command int
	launch  kernelLaunch
	do      func(s stream) error // something else; nil: it is a launch
}

// issue puts a job on the stream.
func (q *queue) issue(j *job) {
	d := q.d
	if lost := d.lost.Load(); lost != nil {
		j.void, j.err = true, lost
		return
	}
	if j.cb.Stop().Load() || j.cb.Missed() != nil {
		j.void = true
		return
	}
	err := d.lib.Enter()
	if err == nil {
		defer d.lib.Leave()
		err = q.put(j)
	}
	if err != nil { // some of it may be on the stream: its slot is not used again
		j.err, j.slot, j.void = d.checked(err), nil, true
		clear(q.steps)
		q.steps = q.steps[:0]
	}
}

// put is issue between Enter and Leave.
func (q *queue) put(j *job) (err error) {
	d := q.d
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("[cuda] BUG: %v", p)
		}
	}()
	if q.stream == 0 {
		if q.stream, err = d.lib.NewStream(); err != nil {
			return err
		}
	}
	if err := d.move.before(q.stream, &q.seen); err != nil {
		return err
	}
	cmds := j.cb.Commands()
	s, err := q.slot(cmds)
	if err != nil {
		return err
	}
	d.mu.Lock()
	c := q.chains[any(j.cb.Stop())]
	after := slices.Clone(j.after)
	d.mu.Unlock()
	if c != nil {
		q.enter(j, c)
	}
	j.slot = s
	if err := q.parts(j); err != nil {
		return err
	}
	if s.timed = j.cb.Measures(); s.timed {
		for len(s.times) <= len(cmds) {
			e, err := d.lib.NewEvent(true)
			if err != nil {
				return err
			}
			s.times = append(s.times, e)
		}
	}
	for _, k := range order(j.cb, cmds) {
		if err := q.prepare(j, k, &cmds[k]); err != nil {
			if isFinal(err) {
				return err
			}
			q.fails(j, k, &cmds[k], err)
		}
	}
	for _, o := range after {
		if o.q != q && o.slot != nil {
			if err := d.lib.Wait(q.stream, o.slot.over); err != nil {
				return err
			}
		}
	}
	q.cutParts(j)
	if s.used > 0 {
		if err := d.lib.CopyIn(q.stream, s.bytes.address, s.staging.bytes[:s.used]); err != nil {
			return err
		}
	}
	if err := q.perform(j, cmds); err != nil {
		return err
	}
	return d.lib.Record(s.over, q.stream)
}

// perform does the steps on the stream.
func (q *queue) perform(j *job, cmds []metal.Command) error {
	d, s, next := q.d, j.slot, 0
	mark := func(upTo int) error {
		for ; s.timed && next <= upTo; next++ {
			if err := d.lib.Record(s.times[next], q.stream); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 0; i < len(q.steps); i++ {
		if p := j.partOf(q.steps[i].command); p != nil && p.at == i {
			done, err := q.launchPart(p, q.steps[i:i+p.steps])
			if err != nil {
				return err
			}
			if done {
				i += p.steps - 1
				continue
			}
		}
		x := &q.steps[i]
		if err := mark(x.command); err != nil {
			return err
		}
		var err error
		if x.do != nil {
			err = x.do(q.stream)
		} else {
			err = d.lib.Launch(q.stream, &x.launch)
		}
		if err != nil {
			if isFinal(err) {
				return err
			}
			q.fails(j, x.command, &cmds[x.command], err)
			if w := cmds[x.command].Fault; w.Buf != nil {
				if err := d.lib.CopyIn(q.stream, addressOf(w), d.one()); err != nil {
					return err
				}
			}
		}
	}
	clear(q.steps)
	q.steps = q.steps[:0]
	return mark(len(cmds))
}

// fails notes that a command fails which was not issued, and sets its word.
func (q *queue) fails(j *job, k int, c *metal.Command, err error) {
	j.failed = append(j.failed, &metal.CommandError{Index: k, Err: err})
	if w := c.Fault; w.Buf != nil && !slices.ContainsFunc(q.steps, func(x step) bool { return x.command == k }) {
		to, d := addressOf(w), q.d
		q.steps = append(q.steps, step{command: k, do: func(s stream) error { return d.lib.CopyIn(s, to, d.one()) }})
	}
}

// order is that of the commands' execution: theirs, or under validation shuffled between barriers, the same way each
// time.
func order(cb *metal.CommandBuffer, cmds []metal.Command) []int {
	at := make([]int, 0, len(cmds))
	var r *rand.Rand
	if cb.Validating() && !cb.Measures() {
		r = rand.New(rand.NewPCG(cb.ID(), 1))
	}
	for i := 0; i < len(cmds); {
		first, whole := len(at), false
		for ; i < len(cmds) && cmds[i].Kind != metal.CmdBarrier; i++ {
			at = append(at, i)
			whole = whole || cmds[i].Unit != 0
		}
		if some := at[first:]; r != nil && !whole {
			r.Shuffle(len(some), func(a, b int) { some[a], some[b] = some[b], some[a] })
		}
		i++
	}
	return at
}

// slot returns a slot for commands.
func (q *queue) slot(cmds []metal.Command) (*slot, error) {
	d := q.d
	d.mu.Lock()
	var s *slot
	if n := len(q.slots); n > 0 {
		s, q.slots = q.slots[n-1], q.slots[:n-1]
	}
	q.blocks = append(q.blocks, q.returned...)
	q.returned = q.returned[:0]
	d.mu.Unlock()
	if s == nil {
		s = &slot{}
		var err error
		if s.over, err = d.lib.NewEvent(false); err != nil {
			return nil, err
		}
		if s.notice, err = d.lib.Pin(wordBytes); err != nil {
			return nil, err
		}
		clear(s.notice.bytes)
	}
	s.used = 0
	inline := 0
	for i := range cmds {
		for _, a := range cmds[i].Args {
			inline += int(roundUp(int64(len(a.Bytes)), fullAlign))
		}
		inline += int(roundUp(int64(len(cmds[i].Pattern)), fullAlign))
	}
	if err := d.hold(&s.records, ptx.ControlBytes*len(cmds), true, q.stream); err != nil {
		return nil, err
	}
	if err := d.hold(&s.bytes, inline, false, q.stream); err != nil {
		return nil, err
	}
	if len(s.staging.bytes) < int(s.bytes.bytes) {
		if s.staging.bytes != nil {
			if err := d.lib.Unpin(s.staging); err != nil {
				return nil, err
			}
		}
		var err error
		if s.staging, err = d.lib.Pin(int(s.bytes.bytes)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// hold makes an allocation one of at least n bytes, which are zero if they are to be.
func (d *Driver) hold(a **allocation, n int, zero bool, s stream) (err error) {
	if *a != nil && (*a).bytes >= int64(n) {
		return nil
	}
	if *a != nil {
		err = d.heap.release(d.lib, *a)
	}
	if err == nil {
		*a, err = d.heap.alloc(d.lib, int64(max(n, alignment)))
	}
	if err == nil && zero {
		err = d.lib.Fill8(s, (*a).address, (*a).bytes, 0)
	}
	return err
}

// addressOf is where a range lies.
func addressOf(r metal.Range) address {
	mem, at := r.Buf.Memory()
	return mem.Handle.(*allocation).address + address(at+r.Offset)
}

// inside is the error of a range that is not inside its buffer.
func inside(r metal.Range) error {
	if n := r.Buf.Len(); r.Offset < 0 || r.Bytes < 0 || r.Offset > n || r.Bytes > n-r.Offset {
		return fmt.Errorf("[cuda] %d bytes at offset %d are outside of %s of %d bytes", r.Bytes, r.Offset, r.Buf, n)
	}
	return nil
}

// prepare makes steps of a command.
func (q *queue) prepare(j *job, k int, c *metal.Command) error {
	switch c.Kind {
	case metal.CmdDispatch:
		return q.dispatch(j, k, c)
	case metal.CmdCopy:
		return q.copies(j, k, c)
	case metal.CmdFill:
		return q.fills(j, k, c)
	case metal.CmdGate:
		return q.gates(j, k, c)
	case metal.CmdCall:
		return q.calls(j, k, c)
	}
	return fmt.Errorf("[cuda] command of kind %d", c.Kind)
}

// words are what a launch of command k is told by, and tells by.
func (q *queue) words(j *job, k int, c *metal.Command, a *ptx.Arguments) {
	a.Control = j.slot.records.address + address(ptx.ControlBytes*k)
	a.Notice = j.slot.notice.address
	if p := j.partOf(k); p != nil {
		a.Control = p.x.records.address + address(ptx.ControlBytes*(k-p.First))
		a.Notice = p.x.notice.address
	}
	if c.Unless.Buf != nil && c.Kind != metal.CmdGate {
		a.Skips[1] = addressOf(c.Unless)
	}
	if c.Fault.Buf != nil {
		a.FaultWord = addressOf(c.Fault)
	}
	if j.chain != nil {
		a.Skips[0], a.Tag = j.chain.words+wordBytes, j.base+uint32(k)+1
	}
}

// dispatch makes launches of a kernel.
func (q *queue) dispatch(j *job, k int, c *metal.Command) error {
	m, ok := c.Pipeline.Library().Module().(*module)
	if !ok || m.d != q.d {
		return fmt.Errorf("[%s] the kernel was compiled by another driver", c.Pipeline.Name())
	}
	x := m.kernels[c.Pipeline.Index()].Load()
	n := len(c.Args)
	a := ptx.Arguments{Grid: [3]int{c.Grid.X, c.Grid.Y, c.Grid.Z},
		Threadgroup: [3]int{c.Threadgroup.X, c.Threadgroup.Y, c.Threadgroup.Z},
		Addresses:   make([]uint64, n), Lengths: make([]uint64, n), Inline: make([][]byte, n)}
	w := wants{make([]int, n), make([]int, n)}
	for i := range c.Args {
		arg := &c.Args[i]
		w.align[i], w.inline[i] = fullAlign, -1
		switch {
		case arg.Buffer.Buf != nil:
			if err := inside(arg.Buffer); err != nil {
				return err
			}
			a.Addresses[i], a.Lengths[i] = addressOf(arg.Buffer), uint64(arg.Buffer.Bytes)
			w.align[i] = int(min(fullAlign, (a.Addresses[i]|fullAlign)&-(a.Addresses[i]|fullAlign)))
		case arg.Bytes != nil:
			a.Inline[i], a.Lengths[i], w.inline[i] = arg.Bytes, uint64(len(arg.Bytes)), len(arg.Bytes)
		default:
			a.Lengths[i] = uint64(arg.TGBytes)
		}
	}
	e, err := x.entryFor(q.d, w)
	if err != nil {
		return err
	}
	for i, o := range e.text.Layout.Objects {
		if a.Inline[i] != nil && o.Inline == 0 {
			a.Addresses[i], a.Inline[i] = q.stage(j, a.Inline[i]), nil
		}
	}
	if e.text.Asks && c.Unit == 0 {
		chain, err := q.chainOf(j)
		if err != nil {
			return err
		}
		a.Stop = chain.words
	}
	q.words(j, k, c, &a)
	return q.launches(k, x, e, &a)
}

// stage puts bytes where the card will have them.
func (q *queue) stage(j *job, b []byte) address {
	s := j.slot
	at := s.used
	copy(s.staging.bytes[at:], b)
	s.used += int(roundUp(int64(len(b)), fullAlign))
	return s.bytes.address + address(at)
}

// A launch has so many blocks at most in each dimension; a larger grid is several.
var mostBlocks = [3]int{1<<31 - 1, 1<<16 - 1, 1<<16 - 1}

// launches makes steps of a launch.
func (q *queue) launches(k int, x *kernel, e *entry, a *ptx.Arguments) error {
	groups := ptx.Blocks(a.Grid, a.Threadgroup)
	shared := e.text.Layout.Shared(a)
	if err := x.allow(q.d, e, shared); err != nil {
		return err
	}
	block := ptx.Block(a.Threadgroup)
	for z := 0; z < groups[2]; z += mostBlocks[2] {
		for y := 0; y < groups[1]; y += mostBlocks[1] {
			for w := 0; w < groups[0]; w += mostBlocks[0] {
				a.Origin = [3]int{w, y, z}
				b, err := a.Bytes(&e.text.Layout)
				if err != nil {
					return err
				}
				s := step{command: k, launch: kernelLaunch{f: e.f, block: block, shared: shared, parameter: b}}
				for i := range 3 {
					s.launch.blocks[i] = min(mostBlocks[i], groups[i]-a.Origin[i])
				}
				q.steps = append(q.steps, s)
			}
		}
	}
	return nil
}

// result waits for a job and says how it ended.
func (j *job) result() (r metal.Result) {
	d := j.q.d
	cmds := j.cb.Commands()
	if j.slot != nil && j.err == nil {
		j.err = d.checked(d.until(j.slot.over))
	}
	if j.err == nil && j.slot != nil {
		j.err = d.checked(j.read(cmds, &r))
	}
	switch {
	case j.err != nil:
		return metal.Result{Err: j.err}
	case j.void:
		return metal.Result{Ran: make([]bool, len(cmds)), Midway: -1}
	}
	return r
}

// read looks at what a job has left.
func (j *job) read(cmds []metal.Command, r *metal.Result) error {
	q, s := j.q, j.slot
	d := q.d
	if err := d.lib.Enter(); err != nil {
		return err
	}
	defer d.lib.Leave()
	r.Failed = j.failed
	told, err := j.faults(r, s.notice, s.records, 0, len(cmds))
	if err != nil {
		return err
	}
	for i := range j.parts {
		p := &j.parts[i]
		if _, err := j.faults(r, p.x.notice, p.x.records, p.First, p.Last); err != nil {
			return err
		}
		p.form.give(p.x)
	}
	slices.SortStableFunc(r.Failed, func(a, b *metal.CommandError) int { return a.Index - b.Index })
	if j.chain != nil {
		ran, midway, err := d.ran(j, told)
		if err != nil {
			return err
		}
		if ran != nil {
			r.Ran, r.Midway = ran, midway
		}
		if err := q.leave(j); err != nil {
			return err
		}
	}
	if s.timed && r.Ran == nil {
		r.Took = make([]time.Duration, len(cmds))
		for i := range cmds {
			ms, err := d.lib.Between(s.times[i], s.times[i+1])
			if err != nil {
				return err
			}
			r.Took[i] = time.Duration(ms * float64(time.Millisecond))
		}
	}
	return nil
}

// faults reads the faults of commands from first up to last, whose control blocks lie one behind another, if the notice
// says that there is something to be read. What was told is forgotten then.
func (j *job) faults(r *metal.Result, notice pinned, records *allocation, first, last int) (told bool, err error) {
	if binary.LittleEndian.Uint32(notice.bytes) == 0 {
		return false, nil
	}
	d := j.q.d
	binary.LittleEndian.PutUint32(notice.bytes, 0)
	b := make([]byte, ptx.ControlBytes*(last-first))
	if err := d.move.read(b, records.address); err != nil {
		return true, err
	}
	cmds := j.cb.Commands()
	for k := first; k < last; k++ {
		if f, ok := ptx.FaultIn(b[ptx.ControlBytes*(k-first):]); ok {
			r.Failed = append(r.Failed, &metal.CommandError{Index: k, Err: faultOf(j.cb, &cmds[k], f)})
		}
	}
	return true, d.move.fill(records.address, records.bytes, 0)
}

// faultOf is what a command's kernel did wrong.
func faultOf(cb *metal.CommandBuffer, c *metal.Command, f ptx.Fault) error {
	if c.Pipeline == nil {
		return errors.New("[cuda] BUG: a fault of what is no kernel")
	}
	m := c.Pipeline.Library().Module().(*module)
	x := m.kernels[c.Pipeline.Index()].Load()
	all := *x.entries.Load()
	if f.Site >= len(all[0].text.Sites) {
		return fmt.Errorf("[%s] BUG: a fault at no place: %+v", x.k.Name, f)
	}
	fault := launch.Access{Kernel: x.k, Files: x.files, Instr: all[0].text.Sites[f.Site], Pointer: f.Pointer,
		Bytes: func(object int) uint64 {
			if i := object - 1; i < len(c.Args) {
				if a := &c.Args[i]; a.Buffer.Buf != nil {
					return uint64(a.Buffer.Bytes)
				} else if a.Bytes != nil {
					return uint64(len(a.Bytes))
				}
				return uint64(c.Args[i].TGBytes)
			}
			return uint64(x.k.Regions[object-1-len(c.Args)].Size)
		}}.Fault()
	if p := fault.Param; cb.Validating() && p >= 0 && c.Args[p].Buffer.Buf != nil {
		return fmt.Errorf("%w: %s", fault, c.Args[p].Buffer.Buf)
	}
	return fault
}
