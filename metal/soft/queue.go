package soft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// queue holds command buffers that wait for their turn. It has a goroutine while it is not empty.
type queue struct {
	jobs []*job
}

// job is a command buffer: its tag, so that those of other queues that come after it find it.
type job struct {
	cb    *metal.CommandBuffer
	done  func(metal.Result)
	after []*job        // of other queues
	over  bool          // it has run, or it was told that it did not; guarded by the driver's mu
	ended chan struct{} // closed then; nil while nobody waits
}

// leave notes that the job is over.
func (d *Driver) leave(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j.over = true; j.ended != nil {
		close(j.ended)
	}
}

// behind lists the jobs that a command buffer waits for. Called with mu held.
func (d *Driver) behind(cb *metal.CommandBuffer) (after []*job) {
	for _, o := range cb.Behind() {
		j, ok := o.Tag().(*job)
		if !ok || j.over {
			continue
		}
		if j.ended == nil {
			j.ended = make(chan struct{})
		}
		after = append(after, j)
	}
	return after
}

// comes reports whether it is the job's turn, once what it comes after is over: that has run, and the job is not
// stopped.
func (d *Driver) comes(j *job) bool {
	if len(j.after) == 0 {
		return true
	}
	var stopped <-chan struct{}
	if d.info.Stops != metal.StopsNever {
		stopped = j.cb.Context().Done()
	}
	for _, o := range j.after {
		select {
		case <-o.ended:
		case <-stopped:
			return false
		}
	}
	j.after = nil
	return d.info.Stops == metal.StopsNever || j.cb.Missed() == nil
}

// Submit queues a command buffer and returns. Those of one queue run one after another.
func (d *Driver) Submit(n int, cb *metal.CommandBuffer, done func(metal.Result)) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		done(metal.Result{Err: errClosed})
		return
	}
	d.busy.Add(1)
	q := d.queues[n]
	if q == nil {
		q = &queue{}
		d.queues[n] = q
		go d.serve(n, q)
	}
	j := &job{cb: cb, done: done, after: d.behind(cb)}
	cb.SetTag(j)
	q.jobs = append(q.jobs, j)
	d.mu.Unlock()
}

// serve runs a queue's command buffers until there are none. That one has ended is told, in order, while the next one
// runs: who is told has much to do, and processors would wait for it. Only an error is told first, and what validation
// finds.
func (d *Driver) serve(n int, q *queue) {
	telling := make(chan struct{}, 1) // holds something while nobody is told
	telling <- struct{}{}
	for {
		d.mu.Lock()
		if len(q.jobs) == 0 {
			delete(d.queues, n)
			d.mu.Unlock()
			return
		}
		j := q.jobs[0]
		q.jobs[0] = nil
		q.jobs = q.jobs[1:]
		d.mu.Unlock()
		var r metal.Result
		if d.comes(j) {
			r = d.execute(j.cb)
		} else {
			r = metal.Result{Ran: make([]bool, len(j.cb.Commands())), Midway: -1}
		}
		if r.Ran == nil {
			d.leave(j)
		}
		<-telling
		tell := func() {
			j.done(r)
			if r.Ran != nil { // who comes after it asks what became of it
				d.leave(j)
			}
			d.busy.Done()
			telling <- struct{}{}
		}
		good := r.Err == nil && r.Failed == nil && r.Ran == nil
		if d.mu.Lock(); good && len(q.jobs) > 0 && !j.cb.Validating() {
			go tell()
			d.mu.Unlock()
			continue
		}
		d.mu.Unlock()
		tell()
	}
}

// execution is what running commands needs, used again for later command buffers: hundreds of small launches come each
// millisecond, and objects made for each would be most of what they leave to the garbage collector.
type execution struct {
	d        *Driver
	launch   launch.Launch
	at       []int // the commands up to the next barrier, in the order of their execution
	task     *task // calls work
	launches []*concurrentLaunch
	runs     []run // the launches under way

	// Of the command buffer:
	cb      *metal.CommandBuffer
	cmds    []metal.Command
	stop    *atomic.Bool
	unit    int   // that the last command belongs to which has begun
	first   int   // the first command behind the last barrier
	ran     []int // those since then that have run
	result  metal.Result
	stopped bool
}

func newExecution(d *Driver) *execution {
	x := &execution{d: d}
	x.task = d.pool.newTask(x.work)
	return x
}

// done forgets what belongs to the last command buffer.
func (x *execution) done() {
	forget(&x.launch)
	for _, s := range x.launches {
		forget(&s.launch)
		s.run = nil
	}
	clear(x.runs[:cap(x.runs)])
	x.runs = x.runs[:0]
	x.cb, x.cmds, x.stop, x.unit, x.result, x.stopped = nil, nil, nil, 0, metal.Result{}, false
}

// forget makes a launch of none, which keeps the lists' memory.
func forget(l *launch.Launch) {
	clear(l.Buffers[:cap(l.Buffers)])
	clear(l.Written[:cap(l.Written)])
	*l = launch.Launch{Buffers: l.Buffers[:0], Fixed: l.Fixed[:0], ThreadgroupBytes: l.ThreadgroupBytes[:0],
		Written: l.Written[:0]}
}

// execute runs the commands of a command buffer: in order, or under validation shuffled between barriers, the same way
// each time. One that fails does not stop the others.
func (d *Driver) execute(cb *metal.CommandBuffer) (r metal.Result) {
	x := d.spare.Get().(*execution)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a buffer may be a file's bytes: see caught
	defer func() {
		if p := recover(); p != nil { // x may still be in use
			r = metal.Result{Err: fmt.Errorf("[soft] BUG: %v", p)}
			return
		}
		x.done()
		d.spare.Put(x)
	}()
	d.pool.open(x.task)
	defer d.pool.shut(x.task)
	x.cb, x.cmds, x.stop = cb, cb.Commands(), cb.Stop()
	if d.info.Stops == metal.StopsNever {
		x.stop = &never
	}
	x.result.Start = time.Now()
	x.launch.Validate = cb.Validating()
	if cb.Measures() {
		x.result.Took = make([]time.Duration, len(x.cmds))
	}
	var order *rand.Rand
	if cb.Validating() {
		order = rand.New(rand.NewPCG(cb.ID(), 1))
	}
	for i := 0; i < len(x.cmds) && !x.stopped && x.result.Err == nil; {
		j := i
		for j < len(x.cmds) && x.cmds[j].Kind != metal.CmdBarrier {
			j++
		}
		x.between(i, j, order)
		i = j + 1
	}
	return x.result
}

// never is the flag of what cannot be stopped.
var never atomic.Bool

// between runs the commands from i up to j, between two barriers.
func (x *execution) between(i, j int, order *rand.Rand) {
	at := x.at[:0]
	for k := i; k < j; k++ {
		at = append(at, k)
	}
	x.at, x.first, x.ran = at, i, x.ran[:0]
	if order != nil && !slices.ContainsFunc(x.cmds[i:j], func(c metal.Command) bool { return c.Unit != 0 }) {
		order.Shuffle(len(at), func(a, b int) { at[a], at[b] = at[b], at[a] })
	}
	together := !x.cb.Validating() && x.result.Took == nil && x.d.pool.n.Load() > 0
	for n := 0; n < len(at) && !x.stopped && x.result.Err == nil; {
		if together {
			if m := x.concurrent(at[n:]); m > 0 {
				n += m
				continue
			}
		}
		x.alone(at[n])
		n++
	}
}

// begins reports whether command k is to run: it ends the command buffer where that is to stop, and skips the command
// where its word says so.
func (x *execution) begins(k int) bool {
	c := &x.cmds[k]
	if x.stop.Load() && (c.Unit == 0 || c.Unit != x.unit) {
		x.end(-1)
		return false
	}
	x.unit = c.Unit
	if c.Kind != metal.CmdGate && isSet(c.Unless) {
		x.ran = append(x.ran, k)
		return false
	}
	if err := x.cb.Check(k); err != nil {
		x.result.Err = err
		return false
	}
	return true
}

// interrupt is the flag that stops command k while it runs; nil for one that must run to its end.
func (x *execution) interrupt(k int) *atomic.Bool {
	if x.cmds[k].Unit != 0 {
		return nil
	}
	return x.stop
}

// alone runs command k.
func (x *execution) alone(k int) {
	if !x.begins(k) {
		return
	}
	x.launch.Interrupt = x.interrupt(k)
	begun := time.Time{}
	if x.result.Took != nil {
		begun = time.Now()
	}
	err := x.command(&x.cmds[k])
	if x.result.Took != nil {
		x.result.Took[k] = time.Since(begun)
	}
	if f := x.launch.Interrupt; err != nil && f != nil && f.Load() && errors.Is(err, launch.ErrInterrupted) {
		x.end(k)
		return
	}
	x.ended(k, err)
}

// ended notes that command k has run, and how.
func (x *execution) ended(k int, err error) {
	x.ran = append(x.ran, k)
	if err == nil {
		return
	}
	x.result.Failed = append(x.result.Failed, &metal.CommandError{Index: k, Err: err})
	if word := x.cmds[k].Fault; word.Buf != nil {
		if b, err := rangeBytes(word); err == nil {
			binary.LittleEndian.PutUint32(b, 1)
		}
	}
}

// end ends the command buffer early; midway is a command that was stopped while it ran, or -1.
func (x *execution) end(midway int) {
	ran := make([]bool, len(x.cmds))
	for i := range x.first {
		ran[i] = true
	}
	for _, i := range x.ran {
		ran[i] = true
	}
	x.stopped, x.result.Ran, x.result.Midway = true, ran, midway
}

// isSet reports whether a word of a range is not 0.
func isSet(r metal.Range) bool {
	if r.Buf == nil {
		return false
	}
	b, err := rangeBytes(r)
	for ; err == nil && len(b) >= 4; b = b[4:] {
		if binary.LittleEndian.Uint32(b) != 0 {
			return true
		}
	}
	return err != nil
}

// rangeBytes returns a range's bytes.
func rangeBytes(r metal.Range) ([]byte, error) {
	if r.Buf == nil {
		return nil, nil
	}
	if n := r.Buf.Len(); r.Offset < 0 || r.Bytes < 0 || r.Offset > n || r.Bytes > n-r.Offset {
		return nil, fmt.Errorf("[soft] %d bytes at offset %d are outside of %s of %d bytes",
			r.Bytes, r.Offset, r.Buf, n)
	}
	mem, at := r.Buf.Memory()
	at += r.Offset
	return mem.Handle.(*allocation).bytes[at : at+r.Bytes : at+r.Bytes], nil
}

func (x *execution) command(c *metal.Command) error {
	switch c.Kind {
	case metal.CmdCopy:
		src, err := rangeBytes(c.Src)
		if err != nil {
			return err
		}
		dst, err := rangeBytes(c.Dst)
		if err != nil {
			return err
		}
		if len(src) > copyPart && c.Src.Buf != c.Dst.Buf && !c.Src.Buf.Mapped() {
			x.runs = append(x.runs[:0], &copying{dst: dst, src: src})
			x.perform()
			return nil
		}
		return c.Src.Buf.Guard(func() error {
			copy(dst, src)
			return nil
		})
	case metal.CmdFill:
		dst, err := rangeBytes(c.Dst)
		if err == nil {
			fill(dst, c.Pattern)
		}
		return err
	case metal.CmdDispatch:
		return x.dispatch(c)
	case metal.CmdGate:
		dst, err := rangeBytes(c.Dst)
		if err != nil {
			return err
		}
		word := uint32(0)
		if isSet(c.Unless) || slices.ContainsFunc(c.Words, isSet) {
			word = 1
		}
		binary.LittleEndian.PutUint32(dst, word)
		return nil
	case metal.CmdCall:
		return x.call(c.Call)
	}
	return fmt.Errorf("[soft] command of kind %d", c.Kind)
}

// call has the library compute a routine.
func (x *execution) call(c *metal.Call) (err error) {
	var sides [2][][]byte
	for i, ranges := range [2][]metal.Range{c.Reads, c.Writes} {
		sides[i] = make([][]byte, len(ranges))
		for j, r := range ranges {
			if sides[i][j], err = rangeBytes(r); err != nil {
				return err
			}
		}
	}
	return x.d.library.Call(c.Routine, sides[0], sides[1])
}

// fill repeats the pattern over b, doubling what is already there.
func fill(b, pattern []byte) {
	if len(pattern) == 0 {
		return
	}
	n := copy(b, pattern)
	for n < len(b) {
		n += copy(b[n:], b[:n])
	}
}

// dispatch runs a kernel on this goroutine and the workers.
func (x *execution) dispatch(c *metal.Command) error {
	r, err := ready(c, &x.launch)
	if err != nil {
		return err
	}
	x.runs = append(x.runs[:0], r)
	x.perform()
	if err = ended(r); err != nil && x.launch.Validate {
		return explain(c, err)
	}
	return err
}

// ready makes a launch of a command. L, whose lists it uses, is for the launch until that has ended.
func ready(c *metal.Command, l *launch.Launch) (run, error) {
	m, ok := c.Pipeline.Library().Module().(*module)
	if !ok {
		return nil, fmt.Errorf("[%s] the kernel was compiled by another driver", c.Pipeline.Name())
	}
	l.Grid = [3]int{c.Grid.X, c.Grid.Y, c.Grid.Z}
	l.Threadgroup = [3]int{c.Threadgroup.X, c.Threadgroup.Y, c.Threadgroup.Z}
	l.Buffers, l.Fixed, l.ThreadgroupBytes = l.Buffers[:0], l.Fixed[:0], l.ThreadgroupBytes[:0]
	l.Written = l.Written[:0]
	for _, a := range c.Args {
		b, written := a.Bytes, []bool(nil)
		if a.Buffer.Buf != nil {
			var err error
			if b, err = rangeBytes(a.Buffer); err != nil {
				return nil, err
			}
			if l.Validate {
				written = a.Buffer.Written()
			}
		}
		l.Buffers, l.ThreadgroupBytes = append(l.Buffers, b), append(l.ThreadgroupBytes, a.TGBytes)
		l.Fixed, l.Written = append(l.Fixed, a.Buffer.Buf == nil), append(l.Written, written)
	}
	return m.executables[c.Pipeline.Index()].Load().start(l)
}

// explain adds to the fault of a buffer's access whose memory that is, and if nothing wrote it who should have.
func explain(c *metal.Command, err error) error {
	var f *launch.Fault
	if !errors.As(err, &f) || f.Param < 0 || c.Args[f.Param].Buffer.Buf == nil {
		return err
	}
	r := c.Args[f.Param].Buffer
	if !f.Unwritten {
		return fmt.Errorf("%w: %s", err, r.Buf)
	}
	if c.Writes(f.Param) {
		return fmt.Errorf("%w: %s, which this kernel itself is to write: no earlier command wrote that element", err, r.Buf)
	}
	if _, _, writer := r.Unwritten(); writer != "" {
		return fmt.Errorf("%w: %s, which %s, should have written", err, r.Buf, writer)
	}
	return fmt.Errorf("%w: %s, which nothing wrote", err, r.Buf)
}
