package mlxlua

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/luabind"
)

// Script is a file of Lua source text that is compiled once and run in any number of states, and compiled anew when it
// has changed. Any goroutine may use it.
type Script struct {
	opt     ScriptOptions
	current atomic.Pointer[version]

	mu     sync.Mutex
	broken []byte // the last text that was refused
	why    error
}

// version is a text and what it was compiled to.
type version struct {
	number int
	text   []byte
	chunk  *luabind.Chunk
}

// ScriptOptions say where a Script is and when a new version of it is good.
type ScriptOptions struct {
	Files fs.FS  // such as os.DirFS("scripts") or an embed.FS
	Name  string // of the file in Files; it stands in messages
	// Try may run a new version, in a state of its own, before that replaces the old one: an error refuses it. nil: what
	// compiles is good.
	Try func(ctx context.Context, candidate *Script) error
}

// LoadScript reads and compiles a script; a text that is no Lua is a *ScriptError.
func LoadScript(ctx context.Context, opt ScriptOptions) (*Script, error) {
	s := &Script{opt: opt}
	if _, err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Refresh compiles the file anew if its text has changed, and reports whether there is a new version. A text that is
// still being written is waited for. A file that cannot be read or compiled, or that Try refuses, is an error, and the
// version before stays the one that runs.
func (s *Script) Refresh(ctx context.Context) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := fs.ReadFile(s.opt.Files, s.opt.Name)
	if err != nil {
		return false, fmt.Errorf("[script] %w", err)
	}
	old := s.current.Load()
	if old != nil {
		if text, err = s.settled(ctx, text, old); err != nil {
			return false, err
		}
	}
	if old != nil && bytes.Equal(text, old.text) {
		s.broken = nil
		return false, nil
	}
	if s.broken != nil && bytes.Equal(text, s.broken) {
		return false, s.why
	}
	next := &version{number: 1, text: text}
	if old != nil {
		next.number = old.number + 1
	}
	if next.chunk, err = luabind.CompileChunk(ctx, bytes.NewReader(text), s.opt.Name); err == nil && s.opt.Try != nil {
		candidate := &Script{opt: s.opt}
		candidate.current.Store(next)
		err = s.opt.Try(ctx, candidate)
	}
	if err != nil {
		if ctx == nil || ctx.Err() == nil {
			s.broken, s.why = text, err
		}
		return false, err
	}
	s.current.Store(next)
	s.broken = nil
	return true, nil
}

// settleTime is how long a new text must stay before it counts, as editors empty a file before they write it, and
// mostLooks how often that is asked of a file which does not stay.
const (
	settleTime = 10 * time.Millisecond
	mostLooks  = 100
)

// settled is the file's text, read again until it has stopped to change, if it is not the one that runs, nor one that
// was refused. It needs mu.
func (s *Script) settled(ctx context.Context, text []byte, old *version) ([]byte, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	for range mostLooks {
		if bytes.Equal(text, old.text) || s.broken != nil && bytes.Equal(text, s.broken) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("[script] %w", context.Cause(ctx))
		case <-time.After(settleTime):
		}
		again, err := fs.ReadFile(s.opt.Files, s.opt.Name)
		if err != nil {
			return nil, fmt.Errorf("[script] %w", err)
		}
		if bytes.Equal(again, text) {
			break
		}
		text = again
	}
	return text, nil
}

// Watch looks every so often whether the file has changed, until ctx is done. Tell is called with nil after a new
// version has begun, and once with each error; it must not block.
func (s *Script) Watch(ctx context.Context, every time.Duration, tell func(err error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var told error
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := s.Refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && changed, err != nil && (told == nil || told.Error() != err.Error()):
			tell(err)
		}
		told = err
	}
}

// Version numbers the texts that have run, from 1.
func (s *Script) Version() int { return s.current.Load().number }

// Run runs the script's version of now in a state: see State.Run.
func (s *Script) Run(ctx context.Context, state *State, args ...any) ([]any, error) {
	if err := state.enter(ctx); err != nil {
		return nil, fmt.Errorf("[run] %w", err)
	}
	defer luabind.Leave(state.s)
	in, err := state.toLua(ctx, args)
	if err != nil {
		return nil, err
	}
	return luabind.Results(ctx, state.s, func(ctx context.Context) ([]luabind.Value, error) {
		return luabind.RunChunk(ctx, state.s, s.current.Load().chunk, in...)
	})
}
