package serve

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua"
)

//go:embed engine.lua
var engineScript string

// request is what scripts/lm/engine.lua takes: see Engine:add there.
type request = map[string]any

// event is what happens to a request: a piece of text, a token, the end.
type event struct {
	text   string
	token  *token
	reason string // "stop", "length", "error"; "" while it goes on
	stop   string // the stop text that has ended it
	why    string // of an error

	prompt, said, cached int // tokens, at the end
}

// token is a token with the logarithms of the probabilities of it and of the best ones.
type token struct {
	ranked
	best []ranked
}

type ranked struct {
	bytes   string
	logprob float64
}

// job is a request in the hands of a model. Its events are kept until they are read: the engine waits for nobody.
type job struct {
	request request
	taken   chan error // once: whether the engine has it
	ready   chan struct{}
	prompt  int    // tokens
	opening string // the end of the prompt's text

	mu     sync.Mutex
	events []event

	id float64 // the engine's; the model's goroutine alone uses it
}

// tell adds an event.
func (j *job) tell(e event) {
	j.mu.Lock()
	j.events = append(j.events, e)
	j.mu.Unlock()
	select {
	case j.ready <- struct{}{}:
	default:
	}
}

// next are the events that have come.
func (j *job) next() []event {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.events
	j.events = nil
	return out
}

// figures are an engine's numbers of now.
type figures struct {
	running, reading, waiting   float64
	bytes, prefixes             float64
	steps, stepped, read        float64
	prompts, said, cached, done float64
}

// about is what an engine says of its model.
type about struct {
	template string
	context  float64
}

// model is a model that is loaded: a Lua state that one goroutine uses.
type model struct {
	about
	jobs, ended chan *job
	stop        context.CancelFunc
	stopped     chan struct{}
	figures     atomic.Pointer[figures]
	failed      atomic.Bool // it answers nobody any more
}

// load loads a model and starts its goroutine.
func load(ctx context.Context, path string, options map[string]any) (*model, error) {
	state, err := mlxlua.Open(mlxlua.Options{Libraries: true})
	if err != nil {
		return nil, err
	}
	m := &model{jobs: make(chan *job), ended: make(chan *job), stopped: make(chan struct{})}
	m.figures.Store(&figures{})
	_, err = state.Run(ctx, "engine.lua", engineScript)
	var out []any
	if err == nil {
		out, err = state.Call(ctx, "open", path, options)
	}
	if err != nil {
		state.Close()
		return nil, err
	}
	said := out[0].(map[string]any)
	m.template, _ = said["template"].(string)
	m.context, _ = said["context"].(float64)
	var running context.Context
	running, m.stop = context.WithCancel(context.Background())
	go m.run(running, state)
	return m, nil
}

// close ends the goroutine; what it still had has failed.
func (m *model) close() {
	m.stop()
	<-m.stopped
}

var (
	errClosed = errors.New("the server is shutting down")
	errFailed = errors.New("the model has failed")
)

// submit hands a request over. ready gets something, unless it is full, when there are events; these come until one has
// a reason. Who stops to read calls leave.
func (m *model) submit(ctx context.Context, r request, ready chan struct{}) (*job, error) {
	j := &job{request: r, taken: make(chan error, 1), ready: ready}
	select {
	case m.jobs <- j:
	case <-m.stopped:
		return nil, &failure{status: 503, message: errClosed.Error()}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := <-j.taken; err != nil {
		return nil, err
	}
	return j, nil
}

// leave gives a job up: its place is free at once. Of one that has ended it is nothing.
func (m *model) leave(j *job) {
	select {
	case m.ended <- j:
	case <-m.stopped:
	}
}

// run is the goroutine of a model: between two turns of the engine it takes what has come.
func (m *model) run(ctx context.Context, state *mlxlua.State) {
	defer close(m.stopped)
	defer state.Close()
	e := &engine{m: m, state: state, jobs: map[float64]*job{}}
	for idle := true; ; {
		if idle {
			select {
			case j := <-m.jobs:
				e.add(ctx, j)
			case <-m.ended: // it is over
			case <-ctx.Done():
			}
		}
		for more := true; more && ctx.Err() == nil; {
			select {
			case j := <-m.jobs:
				e.add(ctx, j)
			case j := <-m.ended:
				e.cancel(ctx, j)
			default:
				more = false
			}
		}
		err := ctx.Err()
		if err == nil {
			idle, err = e.turn(ctx)
		}
		if err != nil {
			m.failed.Store(true)
			if ctx.Err() != nil {
				err = errClosed
			}
			for _, j := range e.jobs {
				j.tell(event{reason: "error", why: err.Error()})
			}
			return
		}
	}
}

// engine is the Lua state's side of a model.
type engine struct {
	m     *model
	state *mlxlua.State
	jobs  map[float64]*job
	sums  figures
}

// add hands a request to the engine.
func (e *engine) add(ctx context.Context, j *job) {
	out, err := e.state.Call(ctx, "add", j.request)
	if err != nil {
		j.taken <- refused(err)
		return
	}
	j.id, j.request = out[0].(float64), nil
	j.prompt = int(out[1].(float64))
	j.opening, _ = out[2].(string)
	e.jobs[j.id] = j
	j.taken <- nil
}

// refused is the error of a request that the engine does not take.
func refused(err error) error {
	var script *mlxlua.ScriptError
	if errors.As(err, &script) {
		if t, ok := script.Value.(map[string]any); ok {
			status, _ := t["status"].(float64)
			message, _ := t["message"].(string)
			param, _ := t["param"].(string)
			return &failure{status: int(status), message: message, param: param}
		}
	}
	return &failure{status: 500, message: err.Error()}
}

func (e *engine) cancel(ctx context.Context, j *job) {
	if e.jobs[j.id] != j {
		return
	}
	delete(e.jobs, j.id)
	_, _ = e.state.Call(ctx, "cancel", j.id) // it takes a text out of a list
}

// turn goes on with all texts and tells what happened.
func (e *engine) turn(ctx context.Context) (idle bool, err error) {
	out, err := e.state.Call(ctx, "turn")
	if err != nil {
		return false, fmt.Errorf("%w: %w", errFailed, err)
	}
	events, _ := out[0].([]any)
	for _, v := range events {
		t := v.(map[string]any)
		j := e.jobs[t["id"].(float64)]
		if j == nil {
			continue
		}
		ev := eventOf(t)
		if ev.reason != "" {
			delete(e.jobs, j.id)
			e.sums.done++
			e.sums.prompts += float64(ev.prompt)
			e.sums.said += float64(ev.said)
			e.sums.cached += float64(ev.cached)
		}
		j.tell(ev)
	}
	f := e.sums
	for name, into := range map[string]*float64{"running": &f.running, "reading": &f.reading, "waiting": &f.waiting,
		"bytes": &f.bytes, "prefixes": &f.prefixes, "steps": &f.steps, "stepped": &f.stepped, "read": &f.read} {
		*into, _ = out[2].(map[string]any)[name].(float64)
	}
	e.m.figures.Store(&f)
	return out[1].(bool), nil
}

// eventOf is an event as Engine:turn tells it.
func eventOf(t map[string]any) event {
	number := func(name string) int { n, _ := t[name].(float64); return int(n) }
	var e event
	e.text, _ = t["text"].(string)
	e.reason, _ = t["reason"].(string)
	e.why, _ = t["why"].(string)
	e.stop, _ = t["stop"].(string)
	e.prompt, e.said, e.cached = number("prompt"), number("said"), number("cached")
	pair := func(v any) (r ranked) {
		list := v.([]any)
		r.bytes, _ = list[0].(string)
		r.logprob, _ = list[1].(float64)
		return r
	}
	if v, ok := t["token"].([]any); ok {
		e.token = &token{ranked: pair(v)}
		best, _ := v[2].([]any)
		for _, b := range best {
			e.token.best = append(e.token.best, pair(b))
		}
	}
	return e
}
