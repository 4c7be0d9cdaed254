// Package compile makes functions over arrays run from a recorded graph: a function is traced once for each
// signature, the graph is simplified, and later calls replay it without running the function. It sees ops through
// their rules only.
package compile

import (
	"context"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/internal/goroutine"
	"github.com/mlxlua/mlxlua/tensor"
)

// Options say how a function is compiled. The zero Options retrace for every new shape.
type Options struct {
	// Shapeless replays a trace at other shapes of the same ranks and dtypes: Shape rules run again. Where the
	// function read a dimension as a number, a call at which that dimension differs traces again.
	Shapeless bool
	// Check runs the function as well on every call and compares the results' bytes.
	Check bool
	// CacheSize bounds the traces that are kept; the one unused for longest goes first. 0: 64.
	CacheSize int
	// Captures lists the arrays that the function uses beside its inputs; it is asked on every call. They, or
	// stand-ins in a trace, are passed to the function after the inputs proper, and it must use what it is passed.
	Captures func() []*tensor.Array
	// CaptureNames says, for Explain, where each of Captures comes from.
	CaptureNames func() []string
	// Key is what else a trace depends on: constants and the structure of arguments. It is asked on every call.
	Key func() string
	// Forget is told of each Key that no trace in the cache depends on any more, for what the caller keeps by key. It
	// must not call the Function.
	Forget func(key string)
	// Place is the line that runs, asked when a dimension is read.
	Place func() tensor.Place
	// Warn, if there is one, is told once when call upon call was traced again, or three times in all for one number that
	// changes: why the last one was, and what to write instead. It must not call the Function.
	Warn func(text string)
	// InputName names an input of the call under way, and KeyChange says what differs in its Key from that of the last
	// trace ("" if nobody knows), and the name of the number that has changed, if it is one; for Warn. Nil: inputs have
	// numbers.
	InputName func(i int) string
	KeyChange func() (why, number string)
	// Context bounds the evaluations that Check needs; nil: nothing does.
	Context func() context.Context
}

// Function is a compiled function. Several goroutines may call it.
type Function struct {
	f   func([]*tensor.Array) ([]*tensor.Array, error)
	opt Options

	mu       sync.Mutex
	entries  []*entry // least recently used first
	flights  []*flight
	calls    int
	traces   int
	hits     int
	evicted  int
	again    int            // traces since the last replay of an earlier one, but the first
	numbers  map[string]int // traces because of numbers that have changed, by their names
	warned   bool
	history  []string // why each trace was made
	captures []string
}

// entry is a trace in the cache.
type entry struct {
	sig  signature
	plan *plan
}

var disabled atomic.Bool

func init() {
	if v := os.Getenv("MLX_DISABLE_COMPILE"); v != "" && v != "0" {
		disabled.Store(true)
	}
}

// Disable makes all compiled functions run as if they were not compiled. MLX_DISABLE_COMPILE=1 in the environment does
// so from the start.
func Disable() { disabled.Store(true) }

// Enable undoes Disable.
func Enable() { disabled.Store(false) }

// New gives the compiled f. It is traced when it is called.
func New(f func([]*tensor.Array) ([]*tensor.Array, error), opt Options) *Function {
	if opt.CacheSize <= 0 {
		opt.CacheSize = 64
	}
	return &Function{f: f, opt: opt}
}

// Call gives the function's outputs for the inputs, lazily as the function itself would. The error is the
// function's, or says which input cannot be used. A nil Ctx stands for the Go caller's line.
func (fn *Function) Call(c *tensor.Ctx, in ...*tensor.Array) ([]*tensor.Array, error) {
	c = tensor.Call([]*tensor.Ctx{c})
	all := slices.Clone(in)
	if fn.opt.Captures != nil {
		all = append(all, fn.opt.Captures()...)
	}
	for i, x := range all {
		if x == nil {
			return nil, c.Errorf("compile", "input %d is nil", i)
		}
		if err := x.Err(); err != nil {
			return nil, err
		}
	}
	if disabled.Load() {
		return fn.f(all)
	}
	outs, err := fn.replay(c, all)
	if err == nil && fn.opt.Check {
		err = fn.check(c, all, outs)
	}
	if err != nil {
		return nil, err
	}
	return outs, nil
}

// flight is a trace that is being made.
type flight struct {
	sig       signature
	goroutine uintptr       // that makes it
	landed    chan struct{} // closed when it is made, or has failed
}

// replay finds a trace that fits and replays it, or makes one. Goroutines that need one trace at the same time make it
// once.
func (fn *Function) replay(c *tensor.Ctx, in []*tensor.Array) ([]*tensor.Array, error) {
	sig := fn.signature(c, in)
	fn.mu.Lock()
	fn.calls++
	fn.mu.Unlock()
	var misfit error
	tried := map[*entry]bool{}
	for {
		fn.mu.Lock()
		var fitting []*entry
		for _, e := range slices.Backward(fn.entries) {
			if !tried[e] && e.sig.equal(sig, fn.opt.Shapeless) {
				fitting = append(fitting, e)
			}
		}
		var mine, other *flight
		if len(fitting) == 0 {
			if other = fn.otherFlight(sig); other == nil {
				mine = &flight{sig: sig, goroutine: goroutine.ID(), landed: make(chan struct{})}
				fn.flights = append(fn.flights, mine)
			}
		}
		fn.mu.Unlock()
		for _, e := range fitting {
			tried[e] = true
			outs, err := e.plan.call(c, in)
			if err == nil {
				fn.noteHit(e)
				return outs, nil
			}
			if end := c.Step(); end != nil { // which may be why it fails
				fn.leave(mine)
				return nil, end
			}
			if misfit == nil { // of the trace used last
				misfit = err
			}
		}
		switch {
		case mine != nil:
			return fn.traceAndReplay(c, in, mine, misfit)
		case other != nil:
			<-other.landed
		}
	}
}

// otherFlight is a trace for the signature that another goroutine makes: a function that calls itself while it is
// traced must not wait for itself. Called with mu held.
func (fn *Function) otherFlight(sig signature) *flight {
	me := goroutine.ID()
	for _, f := range fn.flights {
		if f.goroutine != me && f.sig.equal(sig, fn.opt.Shapeless) {
			return f
		}
	}
	return nil
}

// traceAndReplay makes a trace and replays it.
func (fn *Function) traceAndReplay(c *tensor.Ctx, in []*tensor.Array, f *flight,
	misfit error) ([]*tensor.Array, error) {
	defer fn.leave(f)
	p, err := (&traced{f: fn.f, in: f.sig.specs, place: fn.opt.Place}).trace(c)
	if err != nil {
		return nil, err
	}
	outs, err := p.call(c, in)
	if err != nil {
		return nil, err
	}
	fn.addEntry(&entry{sig: f.sig, plan: p}, misfit)
	return outs, nil
}

// leave ends a flight: f may be nil.
func (fn *Function) leave(f *flight) {
	if f == nil {
		return
	}
	fn.mu.Lock()
	fn.flights = slices.DeleteFunc(fn.flights, func(g *flight) bool { return g == f })
	fn.mu.Unlock()
	close(f.landed)
}

func (fn *Function) noteHit(e *entry) {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	fn.hits++
	fn.again = 0
	if i := slices.Index(fn.entries, e); i >= 0 {
		fn.entries = append(slices.Delete(fn.entries, i, i+1), e)
	}
}

func (fn *Function) addEntry(e *entry, misfit error) {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	fn.traces++
	fn.noteTrace(e, misfit)
	if e.plan.foreign { // it holds values of a surrounding trace that are not among its inputs: it serves one call only
		return
	}
	fn.entries = append(fn.entries, e)
	if over := len(fn.entries) - fn.opt.CacheSize; over > 0 {
		fn.evicted += over
		gone := slices.Clone(fn.entries[:over])
		fn.entries = slices.Delete(fn.entries, 0, over)
		fn.forget(gone)
	}
	if fn.opt.CaptureNames != nil {
		fn.captures = fn.opt.CaptureNames()
	}
}

// forget tells of keys that went with evicted traces. Called with mu held.
func (fn *Function) forget(gone []*entry) {
	if fn.opt.Forget == nil {
		return
	}
	for _, g := range gone {
		if !slices.ContainsFunc(fn.entries, func(e *entry) bool { return e.sig.key == g.sig.key }) {
			fn.opt.Forget(g.sig.key)
		}
	}
}

// Constants visits the arrays that traces keep beside their inputs.
func (fn *Function) Constants(visit func(x *tensor.Array)) {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	for _, e := range fn.entries {
		for _, x := range e.plan.consts {
			visit(x)
		}
	}
}

// Stats are a Function's counters.
type Stats struct {
	Calls, Traces, Hits int // Hits: calls that replayed an earlier trace
	Size, Cap, Evicted  int // of the cache, in traces
}

// Stats gives the counters.
func (fn *Function) Stats() Stats {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	return Stats{Calls: fn.calls, Traces: fn.traces, Hits: fn.hits, Size: len(fn.entries), Cap: fn.opt.CacheSize,
		Evicted: fn.evicted}
}

// signature is what a trace depends on, beside guards.
type signature struct {
	key    string
	stream *tensor.Stream // the call's: ops that name none run there
	specs  []tensor.Spec
}

func (fn *Function) signature(c *tensor.Ctx, in []*tensor.Array) signature {
	s := signature{stream: c.Stream}
	if s.stream == nil {
		s.stream, _ = tensor.DefaultStream(tensor.DefaultDevice()) // nil as long as no device is open
	}
	if fn.opt.Key != nil {
		s.key = fn.opt.Key()
	}
	s.specs = make([]tensor.Spec, len(in))
	for i, x := range in {
		s.specs[i] = x.Spec()
	}
	return s
}

func (s signature) equal(t signature, shapeless bool) bool {
	if s.key != t.key || s.stream != t.stream || len(s.specs) != len(t.specs) {
		return false
	}
	for i, a := range s.specs {
		b := t.specs[i]
		if a.DType != b.DType || len(a.Shape) != len(b.Shape) || !shapeless && !a.Shape.Equal(b.Shape) {
			return false
		}
	}
	return true
}
