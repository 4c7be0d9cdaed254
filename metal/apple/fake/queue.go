package fake

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mlxlua/mlxlua/metal/apple/objc"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// More of Metal's numbers.
const (
	statusNotEnqueued = 0
	statusCommitted   = 2
	statusCompleted   = 4
	statusError       = 5
)

// queue is MTLCommandQueue.
type queue struct {
	most    int // command buffers that have not ended
	open    int
	waiting []*commandBuffer
	live    bool // a goroutine runs them
	ignores bool // after an error
}

// commandBuffer is MTLCommandBuffer, without references to what it uses.
type commandBuffer struct {
	q          *queue
	status     uint64
	encoder    *encoder // that is open
	steps      []step
	start, end float64
	problem    *problemOf
}

// step is a launch, or a barrier.
type step struct {
	barrier   bool
	pipeline  *object
	p         *pipeline
	buffers   []binding // by parameter
	grid, tg  [3]int
	threadMem []int
}

// binding is what a launch has in the place of a parameter.
type binding struct {
	buffer *object
	at     uint64
	bytes  []byte
}

// encoder is MTLComputeCommandEncoder.
type encoder struct {
	b        *commandBuffer
	ended    bool
	pipeline *object
	buffers  [mostBuffers]binding
	memory   [mostBuffers]uint64
}

// newQueue makes a queue. Called with mu held.
func (r *Runtime) newQueue(most int) *object {
	if most <= 0 {
		r.problem("a queue of %d command buffers", most)
	}
	return r.make("MTLCommandQueue", &queue{most: most})
}

// performBuffer does what a message to a queue or a command buffer says. Called with mu held.
func (r *Runtime) performBuffer(o *object, m *objc.Message) uint64 {
	if q, ok := o.is.(*queue); ok {
		if q.open == q.most { // Metal waits here, without end if who asks is who would commit
			r.problem("the queue has no command buffer left")
		}
		q.open++
		b := &commandBuffer{q: q}
		c := r.make("MTLCommandBuffer", b)
		o.refs++ // it keeps its queue
		c.gone = func() {
			if b.encoder != nil {
				r.problem("a command encoder is released without endEncoding")
			}
			if b.status == statusNotEnqueued {
				q.open--
			}
			r.release(o)
		}
		return uint64(r.autorelease(c))
	}
	b := o.is.(*commandBuffer)
	switch m.Sel {
	case objc.SetLabel:
		r.string(&m.Args[0])
	case objc.ComputeCommandEncoder:
		const concurrent = 1
		if b.encoder != nil || b.status != statusNotEnqueued || m.Args[0].Words[0] != concurrent {
			r.problem("an encoder is asked for while another is open, or after commit, or no concurrent one")
		}
		b.encoder = &encoder{b: b}
		return uint64(r.autorelease(r.make("MTLComputeCommandEncoder", b.encoder)))
	case objc.Commit:
		if b.encoder != nil || b.status != statusNotEnqueued {
			r.problem("commit with an open encoder, or twice")
		}
		b.status = statusCommitted
		o.refs++ // Metal keeps it until it has ended
		q := b.q
		q.waiting = append(q.waiting, b)
		if !q.live {
			q.live = true
			go r.serve(q)
		}
	case objc.WaitUntilCompleted:
		if b.status == statusNotEnqueued {
			r.problem("who waits for a command buffer that was not committed waits for ever")
		}
		for b.status < statusCompleted {
			r.changed.Wait()
		}
	case objc.Status:
		return b.status
	case objc.ErrorOf:
		if b.problem == nil {
			return 0
		}
		return uint64(r.autorelease(r.make("NSError", b.problem)))
	}
	return 0
}

// serve runs a queue's command buffers, one after another.
func (r *Runtime) serve(q *queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(q.waiting) > 0 {
		b := q.waiting[0]
		q.waiting = q.waiting[1:]
		b.start = seconds()
		r.execute(b)
		b.end = seconds()
		q.open--
		if b.status = statusCompleted; b.problem != nil {
			b.status, q.ignores = statusError, true
		}
		for _, o := range r.objects {
			if o.is == any(b) {
				r.release(o)
			}
		}
		r.changed.Broadcast()
	}
	q.live = false
}

var began = time.Now()

func seconds() float64 { return 1000 + time.Since(began).Seconds() }

// execute runs the steps of a command buffer: those between two barriers in any order. Called with mu held, which it
// lets go while kernels run.
func (r *Runtime) execute(b *commandBuffer) {
	switch {
	case b.q.ignores:
		b.problem = &problemOf{codeIgnored, "Ignored (for causing prior/excessive GPU errors) " +
			"(00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)"}
		return
	case len(r.fail) > 0:
		b.problem = &problemOf{r.fail[0].code, r.fail[0].text}
		r.fail = r.fail[1:]
		return
	}
	for len(b.steps) > 0 {
		n := slices.IndexFunc(b.steps, func(s step) bool { return s.barrier })
		if n < 0 {
			n = len(b.steps)
		}
		some := b.steps[:n]
		b.steps = b.steps[min(n+1, len(b.steps)):]
		r.r.Shuffle(n, func(i, j int) { some[i], some[j] = some[j], some[i] })
		for i := range some {
			r.step(b, &some[i])
			if b.problem != nil {
				return
			}
		}
	}
}

// step runs a launch. Called with mu held.
func (r *Runtime) step(b *commandBuffer, s *step) {
	l := &launch.Launch{Grid: s.grid, Threadgroup: s.tg, ThreadgroupBytes: s.threadMem}
	dead := s.pipeline.refs <= 0
	for _, x := range s.buffers {
		if x.buffer == nil {
			l.Buffers, l.Fixed = append(l.Buffers, x.bytes), append(l.Fixed, x.bytes != nil)
			continue
		}
		dead = dead || x.buffer.refs <= 0
		l.Buffers = append(l.Buffers, x.buffer.is.(*buffer).bytes[x.at:])
		l.Fixed = append(l.Fixed, false)
	}
	if dead {
		r.problems = append(r.problems, fmt.Sprintf("kernel %s runs with what was released", s.p.k.Name))
		b.problem = &problemOf{codeInvalidResource,
			"Invalid Resource (00000009:kIOGPUCommandBufferCallbackErrorInvalidResource)"}
		return
	}
	r.launches++
	r.mu.Unlock()
	err := guarded(func() error { return s.p.run(l) })
	r.mu.Lock()
	var fault *launch.Fault
	if errors.As(err, &fault) {
		b.problem = &problemOf{codePageFault, "Caused GPU Address Fault Error " +
			"(0000000b:kIOGPUCommandBufferCallbackErrorPageFault)"}
	} else if err != nil {
		b.problem = &problemOf{1, err.Error()}
	}
}

// guarded calls f, where a fault of memory is a panic: mapped files may have become shorter.
func guarded(f func() error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return f()
}

// performEncoder does what a message to an encoder says. Called with mu held.
func (r *Runtime) performEncoder(o *object, e *encoder, m *objc.Message) uint64 {
	if e.ended {
		r.problem("%s after endEncoding", objc.Rows[m.Sel].Name)
	}
	a := m.Args
	slot := func(n uint64) uint64 {
		if n >= mostBuffers {
			r.problem("%s at index %d: the last is %d", objc.Rows[m.Sel].Name, n, mostBuffers-1)
		}
		return n
	}
	switch m.Sel {
	case objc.SetComputePipelineState:
		e.pipeline = r.find(objc.Object(a[0].Words[0]), "a pipeline")
		if _, ok := e.pipeline.is.(*pipeline); !ok {
			r.problem("%s is no pipeline", e.pipeline.class)
		}
	case objc.SetBuffer:
		x := r.find(objc.Object(a[0].Words[0]), "a buffer")
		b, ok := x.is.(*buffer)
		if !ok || a[1].Words[0] >= uint64(len(b.bytes)) {
			r.problem("a buffer is bound at %d of %s", a[1].Words[0], x.class)
		}
		e.buffers[slot(a[2].Words[0])] = binding{buffer: x, at: a[1].Words[0]}
	case objc.SetBytes:
		const most = 4096
		if n := a[1].Words[0]; n == 0 || n >= most || int(n) > a[0].Bytes {
			r.problem("%d inline bytes of %d: there have to be fewer than %d", n, a[0].Bytes, most)
		}
		e.buffers[slot(a[2].Words[0])] = binding{bytes: slices.Clone(bytesOf(&a[0], a[1].Words[0]))}
	case objc.SetThreadgroupMemoryLength:
		if a[0].Words[0] == 0 || a[0].Words[0]%16 != 0 {
			r.problem("%d bytes of threadgroup memory: they have to be a multiple of 16", a[0].Words[0])
		}
		e.memory[slot(a[1].Words[0])] = a[0].Words[0]
	case objc.DispatchThreads:
		r.dispatch(e, a[0].Words, a[1].Words)
	case objc.MemoryBarrier:
		const buffers = 1
		if a[0].Words[0] != buffers {
			r.problem("a barrier of scope %d", a[0].Words[0])
		}
		e.b.steps = append(e.b.steps, step{barrier: true})
	case objc.EndEncoding:
		e.ended = true
		e.b.encoder = nil
	}
	return 0
}

// dispatch records a launch, with what is bound by now. Called with mu held.
func (r *Runtime) dispatch(e *encoder, grid, tg [3]uint64) {
	if e.pipeline == nil {
		r.problem("a dispatch without a pipeline")
	}
	p := r.find(e.pipeline.id, "a dispatch").is.(*pipeline)
	s := step{pipeline: e.pipeline, p: p}
	threads, used := uint64(1), p.static
	for i := range 3 {
		if grid[i] == 0 || tg[i] == 0 || grid[i] > 1<<32-1 {
			r.problem("kernel %s: grid %v, threadgroup %v", p.k.Name, grid, tg)
		}
		threads *= tg[i]
		s.grid[i], s.tg[i] = int(grid[i]), int(tg[i])
	}
	if threads > uint64(p.threads) {
		r.problem("kernel %s: %d threads of a threadgroup, and the pipeline permits %d", p.k.Name, threads, p.threads)
	}
	for _, q := range p.k.Params {
		var b binding
		n := 0
		if q.Space == kir.Threadgroup {
			n = int(e.memory[q.Index])
			used += uint64(n)
			if n == 0 {
				r.problem("kernel %s: nobody set the length of %s", p.k.Name, q.Name)
			}
		} else if b = e.buffers[q.Index]; b.buffer == nil && b.bytes == nil {
			r.problem("kernel %s: nothing is bound to %s", p.k.Name, q.Name)
		} else {
			r.aligned(p.k, q, b)
		}
		s.buffers, s.threadMem = append(s.buffers, b), append(s.threadMem, n)
	}
	if used > mostThreadgroup {
		r.problem("kernel %s: %d bytes of threadgroup memory", p.k.Name, used)
	}
	e.b.steps = append(e.b.steps, s)
}

// aligned checks that a binding suits its parameter. Called with mu held.
func (r *Runtime) aligned(k *kir.Kernel, q kir.Param, b binding) {
	if b.buffer == nil {
		if q.Space != kir.Constant && q.Write {
			r.problem("kernel %s writes to inline bytes", k.Name)
		}
		return
	}
	r.find(b.buffer.id, "a buffer of kernel "+k.Name)
	align := uint64(4)
	if q.Space != kir.Constant {
		n := uint64(max(q.ElemSize, 1))
		align = min(n&-n, 16)
	}
	if b.at%align != 0 {
		r.problem("kernel %s: %s is bound at %d, no multiple of %d", k.Name, q.Name, b.at, align)
	}
}
