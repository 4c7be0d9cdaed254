package serve

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
)

// Options are what a Server is made with. Numbers that are 0 mean what is written beside them.
type Options struct {
	Models []Model // at least one
	Loaded int     // how many are in memory at once; the least recently used one goes: 1
	Idle   time.Duration
	Keys   []string // one of which a client has to know; none: anybody may ask

	Rows      int   // texts that a model goes on with at once: 16
	Waiting   int   // requests to a model that wait beside, further ones are refused: 256
	Chunk     int   // tokens of a prompt that are read between two steps of the others: 512
	Context   int   // tokens of a text at most: as many as the model and CacheBytes allow
	MaxTokens int   // tokens of an answer whose request does not say it: 512
	Cache     int64 // bytes for the keys and values of a model's texts: 2 GiB
	Prefixes  int64 // bytes for what is kept of earlier texts; negative: none is kept; 512 MiB
	KVBits    int   // keys and values are kept in so many bits: as they are
	KVGroup   int   // by groups of so many: 64
	Invariant bool  // answers are the same to the last bit whatever is computed beside them; this takes time
	Ignore    []string

	MostBody int64 // bytes of a request: 32 MiB
	Errors   func(err error)
}

// Model is a model that a Server knows by a name. Path is what lm.load takes: a directory, a .gguf file, or a
// repository in the cache. Tokenizer is another place for its tokenizer.
type Model struct{ Name, Path, Tokenizer string }

// Server answers requests. Its methods may be called by any goroutine.
type Server struct {
	opt     Options
	models  *models
	mux     *http.ServeMux
	metrics metrics
	closing atomic.Bool
	started time.Time
}

// New is a Server. It loads no model before the first request: see Load.
func New(opt Options) (*Server, error) {
	if len(opt.Models) == 0 {
		return nil, errors.New("[serve] there are no models")
	}
	names := map[string]bool{}
	for _, m := range opt.Models {
		if m.Name == "" || m.Path == "" || names[m.Name] {
			return nil, fmt.Errorf("[serve] the model %q of %q: names are not empty, and no two are alike", m.Name, m.Path)
		}
		names[m.Name] = true
	}
	for name, n := range map[string]int{"Loaded": opt.Loaded, "Rows": opt.Rows, "Waiting": opt.Waiting, "Chunk": opt.Chunk,
		"Context": opt.Context, "MaxTokens": opt.MaxTokens, "KVBits": opt.KVBits, "KVGroup": opt.KVGroup} {
		if n < 0 {
			return nil, fmt.Errorf("[serve] %s is %d: want 0, or more", name, n)
		}
	}
	if opt.MostBody == 0 {
		opt.MostBody = 32 << 20
	}
	s := &Server{opt: opt, mux: http.NewServeMux(), started: time.Now()}
	s.models = newModels(opt)
	s.handle("POST /v1/chat/completions", s.chat)
	s.handle("POST /v1/completions", s.completions)
	s.handle("POST /v1/messages", s.messages)
	s.handle("GET /v1/models", s.list)
	s.handle("GET /v1/models/{name...}", s.one)
	s.mux.HandleFunc("GET /health", s.health)
	s.servePage()
	s.handle("GET /metrics", s.writeMetrics)
	return s, nil
}

// Load loads a model before somebody asks for it.
func (s *Server) Load(ctx context.Context, name string) error {
	_, release, err := s.models.get(ctx, name)
	if err == nil {
		release()
	}
	return err
}

// Shutdown refuses new requests, waits until those that there are have ended, or ctx has, and lets the models go.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	return s.models.close(ctx)
}

// handler answers a request, or says why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle adds a path for those who have a key.
func (s *Server) handle(pattern string, h handler) {
	_, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimSuffix(path, "{name...}")
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		out := &counted{ResponseWriter: w}
		began := time.Now()
		anthropic := strings.HasPrefix(path, "/v1/messages")
		defer func() { s.metrics.request(path, out.status, time.Since(began)) }()
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler {
					panic(v)
				}
				s.report(fmt.Errorf("BUG: %v\n%s", v, debug.Stack()))
				if out.status == 0 {
					refuse(out, &failure{status: 500, message: "a mistake of the server's"}, anthropic)
				}
			}
		}()
		err := s.admitted(r)
		if err == nil {
			err = h(out, r)
		}
		if err != nil && out.status == 0 {
			if f := failureOf(err); f.status >= 500 {
				s.report(err)
			}
			refuse(out, err, anthropic)
		}
	})
}

func (s *Server) report(err error) {
	if s.opt.Errors != nil {
		s.opt.Errors(err)
	}
}

// admitted reports why a request is not looked at: the server ends, or the client has no key.
func (s *Server) admitted(r *http.Request) error {
	if s.closing.Load() {
		return &failure{status: http.StatusServiceUnavailable, message: errClosed.Error()}
	}
	if len(s.opt.Keys) == 0 {
		return nil
	}
	key := r.Header.Get("X-Api-Key")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		key = bearer
	}
	for _, known := range s.opt.Keys {
		if subtle.ConstantTimeCompare([]byte(key), []byte(known)) == 1 {
			return nil
		}
	}
	return &failure{status: http.StatusUnauthorized, code: "invalid_api_key", message: "Incorrect API key provided"}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	f := &failure{status: http.StatusNotFound, message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "" {
			w.Header().Set("Allow", method)
			f = &failure{status: http.StatusMethodNotAllowed, message: fmt.Sprintf("Not allowed to %s on %s, want %s",
				r.Method, r.URL.Path, method)}
		}
	}
	refuse(w, f, strings.HasPrefix(r.URL.Path, "/v1/messages"))
}

// body reads a request's fields.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (*fields, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.opt.MostBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &failure{status: http.StatusRequestEntityTooLarge,
			message: fmt.Sprintf("the body has more than %d bytes", s.opt.MostBody)}
	case err != nil:
		return nil, invalid("", "the body cannot be read: %v", err)
	}
	f, bad := readFields(b)
	if bad != nil {
		return nil, bad
	}
	return f, nil
}

// counted remembers the status of a response.
type counted struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (c *counted) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write notes that there is a status.
func (c *counted) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.closing.Load() {
		reply(w, http.StatusServiceUnavailable, map[string]any{"status": "ending"})
		return
	}
	reply(w, http.StatusOK, map[string]any{"status": "ok"})
}
