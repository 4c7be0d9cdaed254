package apple

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

// More numbers of Metal's.
const (
	dispatchConcurrent = 1
	scopeBuffers       = 1
	statusCompleted    = 4
	statusError        = 5
	codeIgnored        = 4
	codeDeviceRemoved  = 11
	inlineBytes        = 4096 // from here on bytes need a buffer
)

const (
	// partCommands is how many commands a command buffer of Metal's has: the system ends one that takes seconds.
	partCommands = 64
	// mostParts is how many a job has under way: of all jobs of a queue together there must be fewer than mostBuffers, or
	// who asks for another waits without end.
	mostParts = mostBuffers / (depth + 1)
)

// mostIgnored is how many command buffers Metal may ignore, one after another, for errors of earlier ones.
const mostIgnored = 3

// part is a command buffer of Metal's, with some of a job's commands.
type part struct {
	buffer   objc.Object
	commands []int
}

// issue encodes a job's commands and hands them to Metal.
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
	d.with(func(c *objc.Caller) {
		e := &encoder{c: c, q: q, j: j}
		if j.err = e.all(); j.err != nil {
			j.void = true
			e.drop()
		}
	})
}

// ready makes the queue one that takes command buffers.
func (q *queue) ready(c *objc.Caller) error {
	d := q.d
	d.mu.Lock()
	failed := q.failed
	q.failed = false
	d.mu.Unlock()
	if failed { // nothing of it runs
		c.Release(q.object)
		q.object = 0
	}
	if q.object == 0 {
		q.object = c.Object(d.device, objc.NewCommandQueue, objc.Num(mostBuffers))
	}
	if q.object == 0 {
		return errors.New("[metal] Metal makes no command queue")
	}
	return nil
}

// encoder writes a job's commands.
type encoder struct {
	c *objc.Caller
	q *queue
	j *job

	part     part
	object   objc.Object // Metal's encoder, 0: none is open
	pipeline objc.Object // that is set
	since    bool        // something was encoded since the last barrier
}

// all encodes all commands.
func (e *encoder) all() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("[metal] BUG: %v", p)
		}
	}()
	if err := e.q.ready(e.c); err != nil {
		return err
	}
	cb := e.j.cb
	cmds := cb.Commands()
	alone := cb.Measures() || cb.Validating() // so that times, and errors, are a command's
	for _, k := range order(cb, cmds) {
		c := &cmds[k]
		if c.Kind == metal.CmdBarrier {
			if len(e.part.commands) >= partCommands { // commands of one buffer wait for those of another by themselves
				e.commit()
			} else if e.since {
				e.barrier()
			}
			continue
		}
		if e.object == 0 {
			if err := e.open(alone, c); err != nil {
				return err
			}
		}
		e.part.commands = append(e.part.commands, k)
		if err := e.command(c); err != nil {
			if err := e.fails(k, c, err); err != nil {
				return err
			}
		}
		if alone {
			e.commit()
		}
	}
	e.commit()
	return nil
}

// open begins a command buffer of Metal's. One with one command has its name, for Metal's own tools.
func (e *encoder) open(alone bool, c *metal.Command) error {
	buffer := e.c.Object(e.q.object, objc.CommandBuffer)
	if buffer == 0 {
		return errors.New("[metal] Metal makes no command buffer")
	}
	e.part.buffer = e.c.Object(buffer, objc.Retain)
	if alone || e.q.d.capturing.Load() {
		name := e.j.cb.Label()
		if c.Pipeline != nil && alone {
			name = c.Pipeline.Name()
		}
		label := e.c.String(name)
		e.c.Send(buffer, objc.SetLabel, objc.Obj(label))
		e.c.Release(label)
	}
	e.object = e.c.Object(buffer, objc.ComputeCommandEncoder, objc.Num(dispatchConcurrent))
	if e.object == 0 {
		return errors.New("[metal] Metal makes no encoder")
	}
	e.pipeline, e.since = 0, false
	return nil
}

// commit hands what was encoded to Metal.
func (e *encoder) commit() {
	if e.part.buffer == 0 {
		return
	}
	e.c.Send(e.object, objc.EndEncoding)
	e.c.Send(e.part.buffer, objc.Commit)
	e.j.parts = append(e.j.parts, e.part)
	e.part, e.object = part{}, 0
	if n := len(e.j.parts) - mostParts; n >= 0 {
		e.c.Send(e.j.parts[n].buffer, objc.WaitUntilCompleted)
	}
}

// drop gives up what was encoded and not handed over.
func (e *encoder) drop() {
	e.c.Send(e.object, objc.EndEncoding)
	e.c.Release(e.part.buffer)
	e.part, e.object = part{}, 0
}

// fails notes that a command fails which was not encoded, and sets its word.
func (e *encoder) fails(k int, c *metal.Command, err error) error {
	e.j.failed = append(e.j.failed, &metal.CommandError{Index: k, Err: err})
	if c.Fault.Buf == nil {
		return nil
	}
	return e.fill(c.Fault, []byte{1, 0, 0, 0})
}

// barrier has what follows see what was encoded before.
func (e *encoder) barrier() {
	e.c.Send(e.object, objc.MemoryBarrier, objc.Num(scopeBuffers))
	e.since = false
}

// command encodes a command.
func (e *encoder) command(c *metal.Command) error {
	switch c.Kind {
	case metal.CmdDispatch:
		return e.dispatch(c)
	case metal.CmdCopy:
		return e.copy(c.Dst, c.Src)
	case metal.CmdFill:
		return e.fill(c.Dst, c.Pattern)
	}
	return fmt.Errorf("[metal] command of kind %d", c.Kind)
}

// dispatch encodes a launch of a kernel. What Metal forbids Encoder.Dispatch has refused.
func (e *encoder) dispatch(c *metal.Command) error {
	m, ok := c.Pipeline.Library().Module().(*module)
	if !ok {
		return fmt.Errorf("[%s] the kernel was compiled by another driver", c.Pipeline.Name())
	}
	for i := range c.Args {
		if r := c.Args[i].Buffer; r.Buf != nil {
			if err := inside(r); err != nil {
				return err
			}
		}
	}
	params := c.Pipeline.Params()
	clone, err := e.suit(params, c.Args)
	if err != nil {
		return err
	}
	e.setPipeline(m.kernels[c.Pipeline.Index()].Load().pipeline)
	for i := range c.Args {
		a, index := &c.Args[i], params[i].Index
		switch {
		case params[i].Threadgroup:
			const step = 16
			n := max(step, (a.TGBytes+step-1)&^(step-1))
			e.c.Send(e.object, objc.SetThreadgroupMemoryLength, objc.Num(uint64(n)), objc.Num(uint64(index)))
		case clone != nil && clone[i] != 0:
			e.setBuffer(clone[i], 0, index)
		case a.Buffer.Buf != nil:
			buffer, at := place(a.Buffer)
			e.setBuffer(buffer, at, index)
		default:
			if err := e.setBytes(a.Bytes, index); err != nil {
				return err
			}
		}
	}
	e.launch(c.Grid, c.Threadgroup)
	return nil
}

// setPipeline sets a pipeline, unless it is set.
func (e *encoder) setPipeline(pipeline objc.Object) {
	if e.pipeline != pipeline {
		e.c.Send(e.object, objc.SetComputePipelineState, objc.Obj(pipeline))
		e.pipeline = pipeline
	}
}

func (e *encoder) setBuffer(buffer objc.Object, at int64, index int) {
	e.c.Send(e.object, objc.SetBuffer, objc.Obj(buffer), objc.Num(uint64(at)), objc.Num(uint64(index)))
}

// setBytes binds bytes, which Metal copies at once. Where there are none the kernel reads none, and something has to be
// bound.
func (e *encoder) setBytes(b []byte, index int) error {
	if len(b) == 0 {
		b = make([]byte, 16)
	}
	if len(b) < inlineBytes {
		e.c.Send(e.object, objc.SetBytes, objc.Bytes(b), objc.Num(uint64(len(b))), objc.Num(uint64(index)))
		return nil
	}
	buffer, err := e.newBytes(b)
	if err == nil {
		e.setBuffer(buffer, 0, index)
	}
	return err
}

// newBytes is a buffer with bytes that lives as long as the job.
func (e *encoder) newBytes(b []byte) (objc.Object, error) {
	buffer := e.c.Object(e.q.d.device, objc.NewBufferWithBytes, objc.Bytes(b), objc.Num(uint64(len(b))),
		objc.Num(storageShared))
	if buffer == 0 {
		return 0, fmt.Errorf("[metal] Metal makes no buffer of %d bytes", len(b))
	}
	e.j.bytes = append(e.j.bytes, buffer)
	return buffer, nil
}

// launch encodes a run of the pipeline over so many threads.
func (e *encoder) launch(grid, group metal.Size) {
	e.c.Send(e.object, objc.DispatchThreads, objc.Size(grid.X, grid.Y, grid.Z), objc.Size(group.X, group.Y, group.Z))
	e.since = true
}

// place is where a range lies: a buffer of Metal's, and the offset there.
func place(r metal.Range) (objc.Object, int64) {
	mem, at := r.Buf.Memory()
	return mem.Handle.(*allocation).buffer, at + r.Offset
}

// inside is the error of a range that is not inside its buffer.
func inside(r metal.Range) error {
	if n := r.Buf.Len(); r.Offset < 0 || r.Bytes < 0 || r.Offset > n || r.Bytes > n-r.Offset {
		return fmt.Errorf("[metal] %d bytes at offset %d are outside of %s of %d bytes", r.Bytes, r.Offset, r.Buf, n)
	}
	return nil
}

// order is that of the commands, barriers among them: theirs, or under validation shuffled between barriers, the same
// way each time.
func order(cb *metal.CommandBuffer, cmds []metal.Command) []int {
	at := make([]int, len(cmds))
	for i := range at {
		at[i] = i
	}
	if !cb.Validating() || cb.Measures() {
		return at
	}
	r := rand.New(rand.NewPCG(cb.ID(), 1))
	for i := 0; i < len(cmds); i++ {
		first, whole := i, false
		for ; i < len(cmds) && cmds[i].Kind != metal.CmdBarrier; i++ {
			whole = whole || cmds[i].Unit != 0
		}
		if some := at[first:i]; !whole {
			r.Shuffle(len(some), func(a, b int) { some[a], some[b] = some[b], some[a] })
		}
	}
	return at
}

// result waits for a job, and says how it went.
func (j *job) result(c *objc.Caller) metal.Result {
	cmds := j.cb.Commands()
	if j.void && j.err == nil {
		return metal.Result{Ran: make([]bool, len(cmds)), Midway: -1}
	}
	r := metal.Result{Err: j.err, Failed: j.failed}
	if j.cb.Measures() {
		r.Took = make([]time.Duration, len(cmds))
	}
	for i := len(j.parts) - 1; i >= 0; i-- { // when the last has ended the others have, as a rule
		c.Send(j.parts[i].buffer, objc.WaitUntilCompleted)
	}
	for i := range j.parts {
		p := &j.parts[i]
		if r.Err == nil {
			r.Err = j.q.d.ended(c, p, cmds)
		}
		if r.Took != nil {
			took := c.Double(p.buffer, objc.GPUEndTime) - c.Double(p.buffer, objc.GPUStartTime)
			for _, k := range p.commands { // there is one
				r.Took[k] = time.Duration(took * float64(time.Second))
			}
		}
		c.Release(p.buffer)
	}
	c.Release(j.bytes...)
	j.parts, j.bytes = nil, nil
	return r
}

// ended is the error of a command buffer that has ended: what it says now, not what it said before somebody waited.
func (d *Driver) ended(c *objc.Caller, p *part, cmds []metal.Command) error {
	status := c.Send(p.buffer, objc.Status)
	if status == statusCompleted {
		d.ignored.Store(0)
		return nil
	}
	if status != statusError {
		return fmt.Errorf("[metal] %s: Metal says that it has ended, and that its status is %d", namesOf(p, cmds), status)
	}
	problem := c.Object(p.buffer, objc.ErrorOf)
	code, text := int64(c.Send(problem, objc.Code)), c.Text(c.Object(problem, objc.LocalizedDescription))
	err := fmt.Errorf("[metal] %s: %s (Metal error %d)", namesOf(p, cmds), text, code)
	if code == codeDeviceRemoved || code == codeIgnored && d.ignored.Add(1) > mostIgnored {
		d.lost.CompareAndSwap(nil, &lostError{err})
		return d.lost.Load()
	}
	return err
}

// namesOf names the kernels of a part, one of which is at fault.
func namesOf(p *part, cmds []metal.Command) string {
	var names []string
	for _, k := range p.commands {
		name := "a copy or fill"
		if c := &cmds[k]; c.Pipeline != nil {
			name = c.Pipeline.Name()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return "kernel " + names[0]
	}
	return "one of the kernels " + strings.Join(names, ", ")
}
