package template

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Limits bound what a template may take. Zero values stand for the defaults.
type Limits struct {
	Output int // bytes of the result; default 16 MiB
	Memory int // bytes of all values that it makes, as long as it runs; default 256 MiB
	Steps  int // expressions and statements that it runs; default 20 million
	Depth  int // of calls of macros and loops; default 200
	// Take is told of bytes before the template makes them, and its error ends the template: for callers who count what it
	// takes with other things. Nil: nobody counts.
	Take func(bytes int) error
}

func (l Limits) orDefault() Limits {
	set := func(n *int, value int) {
		if *n <= 0 {
			*n = value
		}
	}
	set(&l.Output, 16<<20)
	set(&l.Memory, 256<<20)
	set(&l.Steps, 20_000_000)
	set(&l.Depth, 200)
	return l
}

// Options say how a template is rendered.
type Options struct {
	Limits
	Now func() time.Time // for strftime_now; default time.Now
}

// Span is a range of bytes of the output.
type Span struct{ From, To int }

// budget bounds one rendering, and knows where it is.
type budget struct {
	source string
	pos    int // where the template is, for errors
	ctx    context.Context
	limits Limits
	steps  int
	bytes  int
	untold int // of bytes, to Limits.Take
	depth  int
}

// values does what Python does with values; it takes from a budget.
type values struct{ budget }

// run is one rendering.
type run struct {
	values
	now   func() time.Time
	out   *strings.Builder
	main  *strings.Builder // what is the output in the end
	scope *scope
	spans []Span // of generation blocks
	ctl   control
	piped any // what a filter block has written
}

// control says that a loop is being left.
type control int

const (
	goesOn control = iota
	breaks
	continues
)

// Render runs the template with these variables. An error of the template is an *Error; a context that ends, or a limit
// that is passed, is an error too, and there is no output then.
func (t *Template) Render(ctx context.Context, vars *Dict, o Options) (string, error) {
	text, _, err := t.RenderSpans(ctx, vars, o)
	return text, err
}

// RenderSpans is Render, and gives the parts of the output that generation blocks have written: what the model is to
// learn to say.
func (t *Template) RenderSpans(ctx context.Context, vars *Dict, o Options) (text string, spans []Span, err error) {
	r := &run{now: o.Now, main: &strings.Builder{}}
	r.budget = budget{source: t.source, ctx: ctx, limits: o.orDefault()}
	if r.now == nil {
		r.now = time.Now
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Error:
			text, spans, err = "", nil, e
		case stopped:
			text, spans, err = "", nil, fmt.Errorf("[template] stopped: %w", e.error)
		default:
			panic(e)
		}
	}()
	r.out = r.main
	r.scope = &scope{vars: map[string]any{}}
	for _, k := range vars.Keys() {
		r.scope.vars[k], _ = vars.Get(k)
	}
	r.scope = &scope{parent: r.scope}
	r.checkContext()
	r.exec(t.body)
	return r.main.String(), r.spans, nil
}

// stopped is the error of a context.
type stopped struct{ error }

func (r *budget) checkContext() {
	if err := r.ctx.Err(); err != nil {
		panic(stopped{context.Cause(r.ctx)})
	}
}

// fail stops the template with an error at the place where it is.
func (r *budget) fail(format string, args ...any) {
	panic(errorAt(r.source, r.pos, format, args...))
}

// step counts what the template does.
func (r *budget) step() {
	if r.steps++; r.steps > r.limits.Steps {
		r.fail("the template takes more than %d steps", r.limits.Steps)
	}
	if r.steps%1024 == 0 && r.ctx != nil {
		r.checkContext()
	}
}

// work counts n bytes or items that are looked at.
func (r *budget) work(n int) {
	for ; n > 0; n -= 4096 {
		r.step()
	}
}

// alloc counts memory; it is called before the memory is taken, if that can be much.
func (r *budget) alloc(n int) {
	if n < 0 || n > r.limits.Memory-r.bytes {
		r.fail("the template takes more than %d bytes of memory", r.limits.Memory)
	}
	r.bytes += n
	r.taken(n)
	r.work(n)
}

// taken tells who counts that n bytes are made, now and then.
func (r *budget) taken(n int) {
	if r.limits.Take == nil {
		return
	}
	if r.untold += n; r.untold < tellAfter {
		return
	}
	n, r.untold = r.untold, 0
	if err := r.limits.Take(n); err != nil {
		panic(stopped{err})
	}
}

// tellAfter is how many bytes are made before Limits.Take is told.
const tellAfter = 16 << 10

// itemBytes is what an item of a list counts.
const itemBytes = 16

// enter counts nesting; the caller defers what it returns.
func (r *budget) enter() func() {
	if r.depth++; r.depth > r.limits.Depth {
		r.fail("macros and loops are nested more than %d deep", r.limits.Depth)
	}
	return func() { r.depth-- }
}

// write adds to the output.
func (r *run) write(s string) {
	if r.out == r.main && len(s) > r.limits.Output-r.out.Len() {
		r.fail("the output is longer than %d bytes", r.limits.Output)
	}
	if r.out != r.main {
		r.alloc(len(s))
	} else {
		r.taken(2 * len(s)) // the buffer grows
	}
	r.out.WriteString(s)
}

// capture gives what f writes.
func (r *run) capture(f func()) string {
	out := r.out
	r.out = &strings.Builder{}
	f()
	text := r.out.String()
	r.out = out
	return text
}

// scope holds the variables of a block.
type scope struct {
	vars   map[string]any
	parent *scope
}

func (s *scope) set(name string, value any) {
	if s.vars == nil {
		s.vars = map[string]any{}
	}
	s.vars[name] = value
}

// look finds a variable, or a global.
func (r *run) look(name string) any {
	for s := r.scope; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	if f, ok := globalTable[name]; ok {
		return f
	}
	return undefined{name: name}
}

// inner runs f in a scope of its own.
func (r *run) inner(f func()) {
	outer := r.scope
	r.scope = &scope{parent: outer}
	f()
	r.scope = outer
}
