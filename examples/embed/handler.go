package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/mlxlua/mlxlua"
)

//go:embed scripts/score.lua
var scoreText string

//go:embed scripts
var scripts embed.FS

// scoreFiles is a folder with score.lua, "" for the one that is part of the program: so it runs from anywhere.
func scoreFiles(folder string) (fs.FS, error) {
	if folder == "" {
		return fs.Sub(scripts, "scripts")
	}
	return os.DirFS(folder), nil
}

// The limits of a user's script.
const (
	sourceLimit = 64 << 10
	outputLimit = 64 << 10
	timeLimit   = 2 * time.Second
)

// Handler runs the scripts of users: POST / with a script's text gives a Reply as JSON. Each runs in a state that
// nobody had before, without files, under limits; it finds the functions of score.lua, which is compiled anew when it
// has changed.
type Handler struct {
	pool   *mlxlua.Pool
	score  *mlxlua.Script
	report func(format string, v ...any)
}

// Reply is what a script came to.
type Reply struct {
	Results []any  `json:"results,omitempty"`
	Output  string `json:"output,omitempty"` // what it printed
	Error   string `json:"error,omitempty"`
	Value   any    `json:"value,omitempty"` // what it called error with
	File    string `json:"file,omitempty"`  // and where
	Line    int    `json:"line,omitempty"`
	Limit   bool   `json:"limit,omitempty"` // a limit ended it
}

// NewHandler makes a handler whose score.lua is in files; report is told of what goes wrong with it. Close ends it.
func NewHandler(ctx context.Context, files fs.FS, report func(format string, v ...any)) (*Handler, error) {
	h := &Handler{report: report}
	var err error
	h.score, err = mlxlua.LoadScript(ctx, mlxlua.ScriptOptions{Files: files, Name: "score.lua",
		Try: func(ctx context.Context, candidate *mlxlua.Script) error { // a version that does not run is refused
			s, err := mlxlua.Open(mlxlua.Options{Sandbox: true, TimeLimit: timeLimit, Stdout: io.Discard})
			if err != nil {
				return err
			}
			defer s.Close()
			_, err = candidate.Run(ctx, s)
			return err
		}})
	if err != nil {
		return nil, err
	}
	h.pool, err = mlxlua.NewPool(ctx, mlxlua.PoolOptions{
		Options: mlxlua.Options{Sandbox: true, MemoryLimit: 32 << 20, ArrayLimit: 128 << 20, SourceLimit: sourceLimit,
			TimeLimit: timeLimit, InstructionLimit: 1e9, Stdout: io.Discard},
		Prepare: func(ctx context.Context, s *mlxlua.State) error {
			_, err := h.score.Run(ctx, s)
			return err
		},
		Most: 16,
	})
	return h, err
}

// Close ends the handler.
func (h *Handler) Close() { h.pool.Close() }

// ServeHTTP runs the script that is the request's body.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST a script", http.StatusMethodNotAllowed)
		return
	}
	source, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sourceLimit))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	h.refresh(r.Context())
	var reply Reply
	err = h.pool.Do(r.Context(), func(s *mlxlua.State) error {
		reply = perform(r.Context(), s, string(source))
		return nil
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case reply.Limit:
		w.WriteHeader(http.StatusRequestTimeout)
	case reply.Error != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
	if err := json.NewEncoder(w).Encode(reply); err != nil {
		h.report("reply: %v", err)
	}
}

// refresh has later states begin with the score.lua of now. A broken one is reported, and the one before stays.
func (h *Handler) refresh(ctx context.Context) {
	changed, err := h.score.Refresh(ctx)
	if err == nil && changed {
		err = h.pool.Renew(ctx)
	}
	if err != nil {
		h.report("score.lua stays at version %d: %v", h.score.Version(), err)
	}
}

// perform runs a user's script.
func perform(ctx context.Context, s *mlxlua.State, source string) Reply {
	out := &boundedOutput{}
	if err := s.SetStdout(out); err != nil {
		return Reply{Error: err.Error()}
	}
	results, err := s.Run(ctx, "script", source)
	if err == nil {
		results, err = plain(ctx, s, results)
	}
	if err == nil {
		if where, what := unwritable(results); what != "" {
			err = fmt.Errorf("result%s is %s, which json has not", where, what)
		}
	}
	if err == nil {
		return Reply{Results: results, Output: out.text.String()}
	}
	reply := Reply{Error: err.Error(), Output: out.text.String(), Limit: errors.Is(err, mlxlua.ErrLimit)}
	var failure *mlxlua.ScriptError
	if errors.As(err, &failure) {
		reply.File, reply.Line = failure.File, failure.Line
		if _, what := unwritable(failure.Value); what == "" {
			reply.Value = failure.Value
		}
	}
	return reply
}

// plain makes lists of arrays, and texts of numbers that JSON has not, under the limits of a call of their own.
func plain(ctx context.Context, s *mlxlua.State, results []any) ([]any, error) {
	for i, r := range results {
		switch r := r.(type) {
		case *mlxlua.Array:
			list, err := s.Run(ctx, "result", `return (...):tolist()`, r)
			if err != nil {
				return nil, fmt.Errorf("result %d: %w", i+1, err)
			}
			results[i] = list[0]
		case float64:
			if math.IsNaN(r) || math.IsInf(r, 0) {
				results[i] = fmt.Sprint(r)
			}
		}
	}
	return results, nil
}

// unwritable says where in a value something is that JSON has not, and what: NaN, or what stayed a value of Lua, which
// encoding/json would take apart; "" where there is none. The state's MemoryLimit bounds how much there is to look at.
func unwritable(v any) (where, what string) {
	switch v := v.(type) {
	case nil, bool, string:
		return "", ""
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "", fmt.Sprint(v)
		}
		return "", ""
	case []any:
		for i, item := range v {
			if where, what = unwritable(item); what != "" {
				return fmt.Sprintf("[%d]%s", i+1, where), what
			}
		}
		return "", ""
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if where, what = unwritable(v[name]); what != "" {
				return "." + name + where, what
			}
		}
		return "", ""
	case mlxlua.Func:
		return "", "a function"
	}
	return "", fmt.Sprintf("of type %T", v)
}

// boundedOutput keeps what a script prints, up to outputLimit: more is the script's error.
type boundedOutput struct{ text bytes.Buffer }

// Write keeps p if there is room for it.
func (o *boundedOutput) Write(p []byte) (int, error) {
	if o.text.Len()+len(p) > outputLimit {
		return 0, fmt.Errorf("the output is longer than %d bytes", outputLimit)
	}
	return o.text.Write(p)
}
