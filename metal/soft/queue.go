package soft

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// queue holds command buffers that wait for their turn. It has a goroutine while it is not empty.
type queue struct {
	jobs []job
}

type job struct {
	cb   *metal.CommandBuffer
	done func(error)
}

// Submit queues a command buffer and returns. Those of one queue run one after another.
func (d *Driver) Submit(n int, cb *metal.CommandBuffer, done func(error)) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		done(errClosed)
		return
	}
	d.busy.Add(1)
	q := d.queues[n]
	if q == nil {
		q = &queue{}
		d.queues[n] = q
		go d.serve(n, q)
	}
	q.jobs = append(q.jobs, job{cb, done})
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
		q.jobs[0] = job{}
		q.jobs = q.jobs[1:]
		d.mu.Unlock()
		err := d.execute(j.cb)
		<-telling
		tell := func() {
			j.done(err)
			d.busy.Done()
			telling <- struct{}{}
		}
		if d.mu.Lock(); err == nil && len(q.jobs) > 0 && !j.cb.Validating() {
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
	d      *Driver
	launch launch.Launch
	at     []int // the commands up to the next barrier, in the order of their execution
	task   *task // calls work
	sides  []*side
	runs   []run // the launches under way
}

func newExecution(d *Driver) *execution {
	x := &execution{d: d}
	x.task = d.pool.newTask(x.work)
	return x
}

// done forgets what belongs to the last command buffer.
func (x *execution) done() {
	forget(&x.launch)
	for _, s := range x.sides {
		forget(&s.launch)
		s.run = nil
	}
	clear(x.runs[:cap(x.runs)])
	x.runs = x.runs[:0]
}

// forget makes a launch of none, which keeps the lists' memory.
func forget(l *launch.Launch) {
	clear(l.Buffers[:cap(l.Buffers)])
	clear(l.Written[:cap(l.Written)])
	*l = launch.Launch{Buffers: l.Buffers[:0], Fixed: l.Fixed[:0], ThreadgroupBytes: l.ThreadgroupBytes[:0],
		Written: l.Written[:0]}
}

// execute runs the commands of a command buffer: in order, or under validation shuffled between barriers, the same way
// each time. One that fails does not stop the others: its error is a metal.CommandError.
func (d *Driver) execute(cb *metal.CommandBuffer) (err error) {
	x := d.spare.Get().(*execution)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a buffer may be a file's bytes: see caught
	defer func() {
		if r := recover(); r != nil { // x may still be in use
			err = fmt.Errorf("[soft] BUG: %v", r)
			return
		}
		x.done()
		d.spare.Put(x)
	}()
	var failed []error
	d.pool.busy.Add(1)
	defer d.pool.busy.Add(-1)
	cb.Started()
	cmds := cb.Commands()
	x.launch.Validate = cb.Validating()
	measures := cb.Measures()
	var order *rand.Rand
	if cb.Validating() {
		order = rand.New(rand.NewPCG(cb.ID(), 1))
	}
	for i := 0; i < len(cmds); {
		j := i
		for j < len(cmds) && cmds[j].Kind != metal.CmdBarrier {
			j++
		}
		at := x.at[:0]
		for k := i; k < j; k++ {
			at = append(at, k)
		}
		x.at = at
		if order != nil && !slices.ContainsFunc(cmds[i:j], func(c metal.Command) bool { return c.Unit != 0 }) {
			order.Shuffle(len(at), func(a, b int) { at[a], at[b] = at[b], at[a] })
		}
		together := !cb.Validating() && !measures && d.pool.n > 0
		for n := 0; n < len(at); n++ {
			k := at[n]
			if together {
				m, end := x.beside(cb, cmds, i, at[:n], at[n:], &failed)
				if end != nil {
					return end
				}
				if m > 0 {
					n += m - 1
					continue
				}
			}
			if cb.StopBefore(k) {
				return interrupted(cb, i, at[:n], -1, failed)
			}
			if err := cb.Check(k); err != nil {
				return err
			}
			x.launch.Interrupt = cb.Interrupt(k)
			begun := time.Time{}
			if measures {
				begun = time.Now()
			}
			err := x.command(&cmds[k])
			if measures {
				cb.Ran(k, time.Since(begun))
			}
			if err != nil {
				if f := x.launch.Interrupt; f != nil && f.Load() && errors.Is(err, launch.ErrInterrupted) {
					return interrupted(cb, i, at[:n], k, failed)
				}
				failed = append(failed, cb.Failed(k, err))
			}
		}
		i = j + 1
	}
	return errors.Join(failed...)
}

// interrupted returns the error of a command buffer of which the first commands have run, the ones listed too, and one
// of them perhaps midway.
func interrupted(cb *metal.CommandBuffer, first int, listed []int, midway int, failed []error) error {
	ran := make([]bool, len(cb.Commands()))
	for i := range first {
		ran[i] = true
	}
	for _, i := range listed {
		ran[i] = true
	}
	return cb.Interrupted(ran, midway, errors.Join(failed...))
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
	}
	return fmt.Errorf("[soft] command of kind %d", c.Kind)
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
