package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"
)

// answers are those to one request, each a job of its own.
type answers struct {
	m       *model
	jobs    []*job
	ready   chan struct{}
	left    int // that have not ended
	began   time.Time
	first   time.Duration // until the first token; 0: there is none
	said    int
	cached  int
	over    []bool
	release func()
}

// drop ends one answer whose rest nobody wants, of which so many tokens have come.
func (a *answers) drop(i, said int) {
	if !a.over[i] {
		a.over[i] = true
		a.left--
		a.said += said
		a.m.leave(a.jobs[i])
	}
}

// ask hands requests over to a model by name. What they return has to be ended.
func (s *Server) ask(ctx context.Context, m *model, release func(), requests []request) (*answers, error) {
	a := &answers{m: m, ready: make(chan struct{}, 1), began: time.Now(), release: release, left: len(requests),
		over: make([]bool, len(requests))}
	for _, r := range requests {
		j, err := m.submit(ctx, r, a.ready)
		if err != nil {
			a.end()
			return nil, err
		}
		a.jobs = append(a.jobs, j)
	}
	return a, nil
}

// end gives up what has not ended.
func (a *answers) end() {
	for _, j := range a.jobs {
		a.m.leave(j)
	}
	a.release()
}

// each calls f with the events of all answers, by their numbers, until the last one has ended. An answer that fails is
// the error.
func (a *answers) each(ctx context.Context, f func(i int, e event) error) error {
	for a.left > 0 {
		select {
		case <-a.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for i, j := range a.jobs {
			for _, e := range j.next() {
				if a.first == 0 {
					a.first = time.Since(a.began)
				}
				if a.over[i] {
					continue
				}
				if e.reason != "" {
					a.over[i] = true
					a.left--
					a.said += e.said
					a.cached += e.cached
				}
				if e.reason == "error" {
					return &failure{status: http.StatusInternalServerError, message: e.why}
				}
				if err := f(i, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// usage is what a request has used, in OpenAI's form. prompts are the tokens of prompts.
func (a *answers) usage(prompts int) any {
	cached := min(a.cached, prompts)
	return map[string]any{"prompt_tokens": prompts, "completion_tokens": a.said, "total_tokens": prompts + a.said,
		"prompt_tokens_details": map[string]any{"cached_tokens": cached}}
}

// newID is an identifier of an answer.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return prefix + hex.EncodeToString(b[:])
}

// sse writes server-sent events.
type sse struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// newSSE begins a stream of events.
func newSSE(w http.ResponseWriter) *sse {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &sse{w, http.NewResponseController(w)}
}

// send writes an event; name is its type, "" for none.
func (s *sse) send(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text := "data: " + string(b) + "\n\n"
	if name != "" {
		text = "event: " + name + "\n" + text
	}
	return s.write(text)
}

func (s *sse) write(text string) error {
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.c.Flush()
}

// finish ends a stream in OpenAI's form: with an error, if there is one.
func (s *sse) finish(err error) {
	if err != nil {
		_ = s.send("", failureOf(err).body(false))
		return
	}
	_ = s.write("data: [DONE]\n\n")
}
