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
	l := interp.Launch{Interrupt: &interrupt, Validate: cb.Validating()} // its slices serve all dispatches
	order := rand.New(rand.NewPCG(cb.ID(), 1))
	var at []int // the commands up to the next barrier, in the order of their execution
	for i := 0; i < len(cmds); {
		j := i
		for j < len(cmds) && cmds[j].Kind != metal.CmdBarrier {
			j++
		}
		at = at[:0]
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
			if err := d.command(&cmds[k], &l); err != nil {
				if errors.Is(err, interp.ErrInterrupted) && ctx.Err() != nil {
					return context.Cause(ctx)
				}
				failed = append(failed, cb.Failed(k, err))
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

func (d *Driver) command(c *metal.Command, l *interp.Launch) error {
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
		return d.dispatch(c, l)
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

// dispatch runs a kernel on this goroutine and the workers. l holds what all launches of the command buffer share,
// and slices to
// use again.
func (d *Driver) dispatch(c *metal.Command, l *interp.Launch) error {
	m, ok := c.Pipeline.Library().Module().(*module)
	if !ok {
		return fmt.Errorf("[%s] the kernel was compiled by another driver", c.Pipeline.Name())
	}
	l.Grid = [3]int{c.Grid.X, c.Grid.Y, c.Grid.Z}
	l.Threadgroup = [3]int{c.Threadgroup.X, c.Threadgroup.Y, c.Threadgroup.Z}
	l.Buffers, l.ThreadgroupBytes, l.Written = l.Buffers[:0], l.ThreadgroupBytes[:0], l.Written[:0]
	for _, a := range c.Args {
		b, written := a.Bytes, []bool(nil)
		if a.Buffer.Buf != nil {
			var err error
			if b, err = rangeBytes(a.Buffer); err != nil {
				return err
			}
			if l.Validate {
				written = a.Buffer.Written()
			}
		}
		l.Buffers, l.ThreadgroupBytes = append(l.Buffers, b), append(l.ThreadgroupBytes, a.TGBytes)
		l.Written = append(l.Written, written)
	}
	r, err := m.programs[c.Pipeline.Index()].Load().start(*l)
	if err != nil {
		return err
	}
	if err = d.perform(c.Pipeline.Name(), r); err != nil && l.Validate {
		return explain(c, err)
	}
	return err
}

// explain adds to the fault of a buffer's access whose memory that is, and if nothing wrote it who should have.
func explain(c *metal.Command, err error) error {
	var f *interp.Fault
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
