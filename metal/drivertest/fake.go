package drivertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// Body is what a fake kernel does, in Go: it sees the whole dispatch.
type Body func(ctx context.Context, c metal.Command) error

// FakeKernel is a kernel that Fake knows: what a compiler would find out about it, and what it does, if anything.
type FakeKernel struct {
	metal.Reflection
	Body Body
}

// Kernel describes a kernel by short words, one a parameter, in the order of their buffer indices: "name:mode", where
// mode is made of r (reads), w (writes), a (atomic), k (const), c (in the constant address space, and const) and t
// (threadgroup memory).
func Kernel(name string, body Body, params ...string) FakeKernel {
	k := FakeKernel{Reflection: metal.Reflection{Name: name, MaxThreads: 1024}, Body: body}
	buffers, groups := 0, 0
	for _, s := range params {
		n, mode, _ := strings.Cut(s, ":")
		has := func(c string) bool { return strings.Contains(mode, c) }
		p := metal.ParamInfo{
			Name: n, Index: buffers, ElemSize: 4, Read: has("r"), Write: has("w"), Atomic: has("a"),
			ReadOnly: has("k") || has("c"), Constant: has("c"), Threadgroup: has("t"),
		}
		if p.Threadgroup {
			p.Index = groups
			groups++
		} else {
			buffers++
		}
		k.Params = append(k.Params, p)
	}
	return k
}

// Fake is a driver without a processor. It knows kernels by name, records the command buffers that it is given, and
// completes them when the test says so, in any order, or by itself after Auto. A text compiles if all its "kernel void
// NAME" are known. When a command buffer completes without an error, the kernels' bodies, copies and fills run.
type Fake struct {
	// OnCompile, if set, is called by each compilation; its error fails it.
	OnCompile func(context.Context, metal.Source) error
	// OnAlloc, if set, is called by each allocation; its error fails it.
	OnAlloc func(n int64) error
	// Reverse runs the commands between two barriers backwards, as a device may.
	Reverse bool
	// Library computes routines; nil: the fake offers none.
	Library Library
	// Forms keep steps, of which the fake runs what the forms make; nil: it keeps none.
	Forms *Forms

	info     metal.Info
	mu       sync.Mutex
	kernels  map[string]FakeKernel
	compiles int
	made     atomic.Int64
	subs     []*submission
	last     map[int]*submission // by queue
	auto     bool
	memory   map[*byte]int64
	closed   bool
	work     sync.WaitGroup
}

// submission is a command buffer that the fake was given.
type submission struct {
	cb       *metal.CommandBuffer
	done     func(metal.Result)
	previous *submission
	behind   []*submission
	ended    chan struct{}
	once     sync.Once
}

// NewFake returns a fake with 1 GiB of memory that knows the kernels given.
func NewFake(kernels ...FakeKernel) *Fake {
	f := &Fake{
		info: metal.Info{
			Name: "fake", Kind: "cpu", ID: "fake", Host: true, Faults: metal.FaultsPlaced, Version: "fake-1", Threads: 1,
			Cache: 1 << 20,
			Stops: metal.StopsMidway, Skips: true,
			Memory: 1 << 30, Limits: metal.MetalLimits(1 << 40),
		},
		kernels: map[string]FakeKernel{}, last: map[int]*submission{}, memory: map[*byte]int64{},
	}
	f.Define(kernels...)
	return f
}

// Define adds kernels, or replaces those of the same names.
func (f *Fake) Define(kernels ...FakeKernel) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range kernels {
		f.kernels[k.Name] = k
	}
}

// SetInfo changes what Info returns; before a device is made.
func (f *Fake) SetInfo(change func(*metal.Info)) { change(&f.info) }

// Auto makes the fake complete command buffers by itself, asynchronously, those of one queue in order.
func (f *Fake) Auto() *Fake {
	f.mu.Lock()
	f.auto = true
	f.mu.Unlock()
	return f
}

// Source is a text that declares the kernels named, for Compile.
func Source(label string, kernels ...string) metal.Source {
	var b strings.Builder
	for _, k := range kernels {
		fmt.Fprintf(&b, "kernel void %s() {}\n", k)
	}
	return metal.Source{Label: label, Text: b.String()}
}

// Info describes the fake.
func (f *Fake) Info() metal.Info { return f.info }

const page = 16 << 10

// address is where a slice's memory begins.
func address(b []byte) int64 { return int64(reflect.ValueOf(b).Pointer()) }

// Alloc returns zeroed memory, aligned to 16 KiB.
func (f *Fake) Alloc(n int64) (metal.Memory, error) {
	if f.OnAlloc != nil {
		if err := f.OnAlloc(n); err != nil {
			return metal.Memory{}, err
		}
	}
	if n <= 0 {
		return metal.Memory{}, fmt.Errorf("[alloc] %d bytes", n)
	}
	raw := make([]byte, n+page)
	at := (page - address(raw)%page) % page
	b := raw[at : at+n : at+n]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory[&b[0]] = n
	return metal.Memory{Size: n, Host: b, Handle: &b[0]}, nil
}

// Free takes memory back; memory that is not the fake's, or was freed before, is a bug, and panics.
func (f *Fake) Free(m metal.Memory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		panic("BUG: Free after Close")
	}
	p := &m.Host[0]
	if _, ok := f.memory[p]; !ok {
		panic("BUG: Free of memory that is not allocated")
	}
	delete(f.memory, p)
}

// Read copies from memory.
func (f *Fake) Read(dst []byte, mem metal.Memory, offset int64) error {
	copy(dst, mem.Host[offset:])
	return nil
}

// Write copies to memory.
func (f *Fake) Write(mem metal.Memory, offset int64, src []byte) error {
	copy(mem.Host[offset:], src)
	return nil
}

// Allocated is how many bytes are allocated, in how many pieces.
func (f *Fake) Allocated() (bytes int64, pieces int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.memory {
		bytes += n
	}
	return bytes, len(f.memory)
}

var kernelDecl = regexp.MustCompile(`kernel\s+void\s+(\w+)`)

// module is what the fake compiles to.
type module struct {
	kernels []FakeKernel
	made    *atomic.Int64
}

// Names lists the kernels.
func (m *module) Names() []string {
	var out []string
	for _, k := range m.kernels {
		out = append(out, k.Name)
	}
	return out
}

// Kernel describes a kernel.
func (m *module) Kernel(i int) (metal.Reflection, error) {
	m.made.Add(1)
	return m.kernels[i].Reflection, nil
}

// Compile looks up the kernels that the text declares.
func (f *Fake) Compile(ctx context.Context, src metal.Source) (metal.Module, error) {
	f.mu.Lock()
	f.compiles++
	f.mu.Unlock()
	if f.OnCompile != nil {
		if err := f.OnCompile(ctx, src); err != nil {
			return nil, err
		}
	}
	m := &module{made: &f.made}
	var errs []error
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range kernelDecl.FindAllStringSubmatch(src.Text, -1) {
		k, ok := f.kernels[d[1]]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: unknown kernel %s", src.Label, d[1]))
		}
		m.kernels = append(m.kernels, k)
	}
	return m, errors.Join(errs...)
}

// Compiles is how often Compile was called.
func (f *Fake) Compiles() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.compiles
}

// Made is how many kernels were asked for.
func (f *Fake) Made() int { return int(f.made.Load()) }

// Submit records the command buffer.
func (f *Fake) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &submission{cb: cb, done: done, previous: f.last[queue], ended: make(chan struct{})}
	f.last[queue] = s
	for _, o := range cb.Behind() {
		if before, ok := o.Tag().(*submission); ok {
			s.behind = append(s.behind, before)
		}
	}
	cb.SetTag(s)
	if !f.auto {
		f.subs = append(f.subs, s)
		return
	}
	f.work.Add(1)
	go func() {
		defer f.work.Done()
		if s.previous != nil {
			<-s.previous.ended
			s.previous = nil
		}
		for _, o := range s.behind {
			select {
			case <-o.ended:
			case <-cb.Context().Done():
			}
		}
		s.behind = nil
		f.finish(s, nil)
	}()
}

// Submitted lists the command buffers in the order of their submission; an automatic fake keeps no list.
func (f *Fake) Submitted() []*metal.CommandBuffer {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*metal.CommandBuffer
	for _, s := range f.subs {
		out = append(out, s.cb)
	}
	return out
}

// Complete ends the i-th command buffer submitted: with err, or if that is nil by running its commands, whose error it
// then ends with.
func (f *Fake) Complete(i int, err error) {
	f.mu.Lock()
	s := f.subs[i]
	f.mu.Unlock()
	f.finish(s, err)
}

// CompleteAll ends all command buffers that have not ended, in the order of their submission.
func (f *Fake) CompleteAll() {
	f.mu.Lock()
	subs := f.subs
	f.mu.Unlock()
	for _, s := range subs {
		select {
		case <-s.ended:
		default:
			f.finish(s, nil)
		}
	}
}

func (f *Fake) finish(s *submission, err error) {
	r := metal.Result{Err: err}
	switch {
	case err != nil:
	case s.cb.Missed() != nil:
		r = metal.Result{Ran: make([]bool, len(s.cb.Commands())), Midway: -1}
	default:
		r = f.run(s.cb)
	}
	s.done(r)
	s.once.Do(func() { close(s.ended) })
}

// run executes the commands of a command buffer.
func (f *Fake) run(cb *metal.CommandBuffer) metal.Result {
	cmds, stop, unit := cb.Commands(), cb.Stop(), 0
	if f.Forms != nil {
		cmds = f.Forms.Commands(cb)
	}
	ran := make([]bool, len(cmds))
	var failed []*metal.CommandError
	for i := 0; i < len(cmds); {
		j := i
		for j < len(cmds) && cmds[j].Kind != metal.CmdBarrier {
			j++
		}
		for k := i; k < j; k++ {
			at := k
			if f.Reverse && !slices.ContainsFunc(cmds[i:j], func(c metal.Command) bool { return c.Unit != 0 }) {
				at = i + j - 1 - k
			}
			c := cmds[at]
			if stop.Load() && (c.Unit == 0 || c.Unit != unit) {
				return metal.Result{Ran: ran, Midway: -1, Failed: failed}
			}
			unit = c.Unit
			if err := cb.Check(at); err != nil {
				return metal.Result{Err: err}
			}
			ctx := cb.Context()
			if c.Unit != 0 {
				ctx = context.Background()
			}
			if c.Kind == metal.CmdGate || !wordSet(c.Unless) {
				if err := f.command(ctx, c); err != nil {
					if ctx.Err() != nil {
						return metal.Result{Ran: ran, Midway: at, Failed: failed}
					}
					failed = append(failed, &metal.CommandError{Index: at, Err: err})
					if c.Fault.Buf != nil {
						copy(Bytes(c.Fault), []byte{1, 0, 0, 0})
					}
				}
			}
			ran[at] = true
		}
		if j < len(cmds) {
			ran[j] = true
		}
		i = j + 1
	}
	return metal.Result{Failed: failed}
}

// wordSet reports whether a word of a range is not 0.
func wordSet(r metal.Range) bool {
	return r.Buf != nil && slices.ContainsFunc(Bytes(r), func(b byte) bool { return b != 0 })
}

func (f *Fake) command(ctx context.Context, c metal.Command) error {
	switch c.Kind {
	case metal.CmdCopy:
		copy(Bytes(c.Dst), Bytes(c.Src))
	case metal.CmdFill:
		for b := Bytes(c.Dst); len(b) > 0; {
			b = b[copy(b, c.Pattern):]
		}
	case metal.CmdGate:
		word := byte(0)
		if wordSet(c.Unless) || slices.ContainsFunc(c.Words, wordSet) {
			word = 1
		}
		copy(Bytes(c.Dst), []byte{word, 0, 0, 0})
	case metal.CmdCall:
		return f.Library.Call(c.Call.Routine, allBytes(c.Call.Reads), allBytes(c.Call.Writes))
	case metal.CmdDispatch:
		m := c.Pipeline.Library().Module().(*module)
		if body := m.kernels[c.Pipeline.Index()].Body; body != nil {
			return body(ctx, c)
		}
	}
	return nil
}

// KeepStep makes a form of a step, if there are Forms.
func (f *Fake) KeepStep(s *metal.Step) metal.StepForm {
	if f.Forms == nil {
		return nil
	}
	return f.Forms.KeepStep(s)
}

// Offers reports whether the fake's library computes a routine.
func (f *Fake) Offers(r metal.Routine) bool { return f.Library != nil && f.Library.Offers(r) }

// allBytes are the host's views of ranges.
func allBytes(ranges []metal.Range) (all [][]byte) {
	for _, r := range ranges {
		all = append(all, Bytes(r))
	}
	return all
}

// Bytes is the host's view of a range.
func Bytes(r metal.Range) []byte { return r.Buf.Host()[r.Offset : r.Offset+r.Bytes] }

// ArgBytes is the host's view of what is bound to a parameter: a buffer's range or inline bytes.
func ArgBytes(a metal.Arg) []byte {
	if a.Buffer.Buf == nil {
		return a.Bytes
	}
	return Bytes(a.Buffer)
}

// Close waits for what an automatic fake runs, and drops all memory.
func (f *Fake) Close() error {
	f.work.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	clear(f.memory)
	return nil
}
