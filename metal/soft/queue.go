package soft

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/interp"
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

// serve runs a queue's command buffers until there are none.
func (d *Driver) serve(n int, q *queue) {
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
		j.done(d.execute(j.cb))
		d.busy.Done()
	}
}

// execute runs the commands of a command buffer: in order, or under validation shuffled between barriers, the same way
// each time. One that fails does not stop the others: its error is a metal.CommandError.
func (d *Driver) execute(cb *metal.CommandBuffer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("[soft] BUG: %v", r)
		}
	}()
	var failed []error
	ctx := cb.Context()
	var interrupt atomic.Bool
	defer context.AfterFunc(ctx, func() { interrupt.Store(true) })()
	cb.Started()
	cmds := cb.Commands()
	order := rand.New(rand.NewPCG(cb.ID(), 1))
	for i := 0; i < len(cmds); {
		j := i
		for j < len(cmds) && cmds[j].Kind != metal.CmdBarrier {
			j++
		}
		at := make([]int, 0, j-i)
		for k := i; k < j; k++ {
			at = append(at, k)
		}
		if cb.Validating() {
			order.Shuffle(len(at), func(a, b int) { at[a], at[b] = at[b], at[a] })
		}
		for _, k := range at {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := cb.Check(k); err != nil {
				return err
			}
			if err := d.command(&cmds[k], &interrupt, cb.Validating()); err != nil {
				if errors.Is(err, interp.ErrInterrupted) && ctx.Err() != nil {
					return context.Cause(ctx)
				}
				failed = append(failed, &metal.CommandError{Index: k, Err: err})
			}
		}
		i = j + 1
	}
	return errors.Join(failed...)
}

// rangeBytes is the host's view of a range.
func rangeBytes(r metal.Range) ([]byte, error) {
	if r.Buf == nil {
		return nil, nil
	}
	b := r.Buf.Bytes()
	if r.Offset < 0 || r.Bytes < 0 || r.Offset > int64(len(b)) || r.Bytes > int64(len(b))-r.Offset {
		return nil, fmt.Errorf("[soft] %d bytes at offset %d are outside of %s of %d bytes",
			r.Bytes, r.Offset, r.Buf, len(b))
	}
	return b[r.Offset : r.Offset+r.Bytes : r.Offset+r.Bytes], nil
}

func (d *Driver) command(c *metal.Command, interrupt *atomic.Bool, validate bool) error {
	switch c.Kind {
	case metal.CmdCopy:
		src, err := rangeBytes(c.Src)
		if err != nil {
			return err
		}
		dst, err := rangeBytes(c.Dst)
		if err == nil {
			copy(dst, src)
		}
		return err
	case metal.CmdFill:
		dst, err := rangeBytes(c.Dst)
		if err == nil {
			fill(dst, c.Pattern)
		}
		return err
	case metal.CmdDispatch:
		return d.dispatch(c, interrupt, validate)
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
func (d *Driver) dispatch(c *metal.Command, interrupt *atomic.Bool, validate bool) error {
	m, ok := c.Pipeline.Library().Module().(*module)
	if !ok {
		return fmt.Errorf("[%s] the kernel was compiled by another driver", c.Pipeline.Name())
	}
	l := interp.Launch{
		Grid:        [3]int{c.Grid.X, c.Grid.Y, c.Grid.Z},
		Threadgroup: [3]int{c.Threadgroup.X, c.Threadgroup.Y, c.Threadgroup.Z},
		Interrupt:   interrupt, Validate: validate,
		Buffers: make([][]byte, len(c.Args)), ThreadgroupBytes: make([]int, len(c.Args)),
	}
	for i, a := range c.Args {
		l.Buffers[i], l.ThreadgroupBytes[i] = a.Bytes, a.TGBytes
		if a.Buffer.Buf == nil {
			continue
		}
		b, err := rangeBytes(a.Buffer)
		if err != nil {
			return err
		}
		l.Buffers[i] = b
	}
	run, err := m.programs[c.Pipeline.Index()].NewRun(l)
	if err != nil {
		return err
	}
	var bug atomic.Pointer[error]
	d.pool.run(run.Parallelism()-1, func() {
		defer func() {
			if r := recover(); r != nil {
				err := fmt.Errorf("[%s] BUG: %v", c.Pipeline.Name(), r)
				bug.Store(&err)
			}
		}()
		run.Work()
	})
	if e := bug.Load(); e != nil {
		return *e
	}
	return run.Err()
}
