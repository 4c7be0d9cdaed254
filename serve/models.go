package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// models are those that a server knows, of which some are loaded.
type models struct {
	opt Options

	mu     sync.Mutex
	slots  map[string]*slot
	closed bool
	change chan struct{} // closed, and made anew, when a slot's use has changed
}

// slot is a model by name.
type slot struct {
	Model
	loaded *model
	users  int
	busy   bool // it is being loaded or dropped
	used   time.Time
	timer  *time.Timer
}

func newModels(opt Options) *models {
	ms := &models{opt: opt, slots: map[string]*slot{}, change: make(chan struct{})}
	for _, m := range opt.Models {
		ms.slots[m.Name] = &slot{Model: m}
	}
	return ms
}

// changed wakes those who wait. It needs mu.
func (ms *models) changed() {
	close(ms.change)
	ms.change = make(chan struct{})
}

// get is a model by its name, "" where there is one only. It is loaded if need be, and stays until release is called.
func (ms *models) get(ctx context.Context, name string) (m *model, release func(), err error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if name == "" && len(ms.opt.Models) == 1 {
		name = ms.opt.Models[0].Name
	}
	s := ms.slots[name]
	if s == nil {
		if name == "" {
			return nil, nil, invalid("model", "you must provide a model parameter")
		}
		return nil, nil, &failure{status: http.StatusNotFound, param: "model", code: "model_not_found",
			message: fmt.Sprintf("The model %q does not exist", name)}
	}
	for {
		switch {
		case ms.closed:
			return nil, nil, &failure{status: http.StatusServiceUnavailable, message: errClosed.Error()}
		case s.loaded != nil && !s.busy && !s.loaded.failed.Load():
			s.users++
			if s.timer != nil {
				s.timer.Stop()
			}
			return s.loaded, func() { ms.release(s) }, nil
		case s.busy:
		case s.loaded != nil && s.users == 0:
			ms.drop(s)
			continue
		case s.loaded != nil: // it has failed, and those who use it are about to notice
		default:
			if ms.room() {
				if err := ms.load(ctx, s); err != nil {
					return nil, nil, err
				}
				continue
			}
		}
		if err := ms.wait(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// wait waits for a change. It needs mu, which it gives up meanwhile.
func (ms *models) wait(ctx context.Context) error {
	change := ms.change
	ms.mu.Unlock()
	defer ms.mu.Lock()
	select {
	case <-change:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// room reports whether one model more may be loaded, and drops one that nobody uses if that takes it. It needs mu.
func (ms *models) room() bool {
	count := 0
	var oldest *slot
	for _, s := range ms.slots {
		if s.loaded == nil && !s.busy {
			continue
		}
		count++
		if s.users == 0 && !s.busy && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if count < cmp.Or(ms.opt.Loaded, 1) {
		return true
	}
	if oldest != nil {
		ms.drop(oldest)
		return ms.room()
	}
	return false
}

// drop lets a model go. It needs mu, which it gives up meanwhile.
func (ms *models) drop(s *slot) {
	m := s.loaded
	s.busy = true
	ms.mu.Unlock()
	m.close()
	ms.mu.Lock()
	s.loaded, s.busy = nil, false
	ms.changed()
}

// load loads a model. It needs mu, which it gives up meanwhile. A request that ends does not end it: others may wait.
func (ms *models) load(ctx context.Context, s *slot) error {
	s.busy = true
	ms.mu.Unlock()
	m, err := load(context.WithoutCancel(ctx), s.Path, ms.options(s))
	ms.mu.Lock()
	s.busy = false
	if err == nil {
		s.loaded, s.used = m, time.Now()
	}
	ms.changed()
	if err != nil {
		return &failure{status: http.StatusServiceUnavailable, message: fmt.Sprintf("the model %s cannot be loaded: %v",
			s.Name, err)}
	}
	return nil
}

// options are those of scripts/lm/engine.lua.
func (ms *models) options(s *slot) map[string]any {
	o := ms.opt
	out := map[string]any{"invariant": o.Invariant}
	for name, n := range map[string]int64{"most": int64(o.Rows), "waiting": int64(o.Waiting), "chunk": int64(o.Chunk),
		"context": int64(o.Context), "max_tokens": int64(o.MaxTokens), "bytes": o.Cache, "prefixes": o.Prefixes,
		"kv_bits": int64(o.KVBits), "kv_group_size": int64(o.KVGroup)} {
		if n != 0 {
			out[name] = float64(n)
		}
	}
	if s.Tokenizer != "" {
		out["tokenizer"] = s.Tokenizer
	}
	if len(o.Ignore) > 0 {
		list := make([]any, len(o.Ignore))
		for i, key := range o.Ignore {
			list[i] = key
		}
		out["ignore"] = list
	}
	return out
}

// release ends a use.
func (ms *models) release(s *slot) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	s.users--
	s.used = time.Now()
	if s.users == 0 && ms.opt.Idle > 0 && !ms.closed {
		used := s.used
		s.timer = time.AfterFunc(ms.opt.Idle, func() {
			ms.mu.Lock()
			defer ms.mu.Unlock()
			if s.users == 0 && !s.busy && s.loaded != nil && s.used.Equal(used) {
				ms.drop(s)
			}
		})
	}
	ms.changed()
}

// close waits until nobody uses a model, or ctx has ended, and drops all.
func (ms *models) close(ctx context.Context) error {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	var err error
	for _, s := range ms.slots {
		for (s.users > 0 || s.busy) && err == nil {
			err = ms.wait(ctx)
		}
	}
	ms.closed = true
	for _, s := range ms.slots {
		if s.timer != nil {
			s.timer.Stop()
		}
		for s.busy {
			if e := ms.wait(context.Background()); e != nil {
				return e
			}
		}
		if s.loaded != nil {
			ms.drop(s)
		}
	}
	ms.changed()
	return err
}

// list is GET /v1/models.
func (s *Server) list(w http.ResponseWriter, _ *http.Request) error {
	data := make([]any, 0, len(s.opt.Models))
	for _, m := range s.opt.Models {
		data = append(data, s.card(m.Name))
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": data})
	return nil
}

// one is GET /v1/models/{name}.
func (s *Server) one(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if s.models.slots[name] == nil {
		return &failure{status: http.StatusNotFound, param: "model", code: "model_not_found",
			message: fmt.Sprintf("The model %q does not exist", name)}
	}
	reply(w, http.StatusOK, s.card(name))
	return nil
}

func (s *Server) card(name string) any {
	return map[string]any{"id": name, "object": "model", "created": s.started.Unix(), "owned_by": "mlxlua"}
}
