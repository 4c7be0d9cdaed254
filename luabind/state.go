// Package luabind binds the engine to Lua: arrays as userdata, functions as the rooms of the ops and rows_*.go declare
// them, trees of tables, transforms, custom kernels. lua51 below it opens the Lua states; they and cmd are the only
// importers of gopher-lua.
package luabind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
)

// State is a Lua state with the module mx. It belongs to one goroutine at a time.
type State struct {
	*lua51.State
	random *random.State
	stream *tensor.Stream // the default stream of ops; nil: the device's

	mx     *module
	arrays *arrayType
	dtypes map[tensor.DType]*lua.LUserData
	metas  map[string]*lua.LTable // metatables of the other userdata, by kind
	files  bool                   // whether scripts may read files

	precision int        // of printed arrays: places after the point, or shortest
	wired     float64    // the limit of mx.set_wired_limit
	recording *recording // of mx.metal.start_capture; nil: none is under way

	tracer    *lua.LFunction // the message handler of the host's calls
	capturer  *capturer      // of captures, where none is under way
	scopes    scopes
	spareArgs []*args // of calls that have ended, for the next ones

	work  handedOver
	looks looks
	life  life
}

// Options are what a State is opened with.
type Options struct {
	Seed uint64 // of the state's random numbers
	// Libraries says whether Lua's io and os libraries and file loading are there. The rest of the standard library
	// always is.
	Libraries bool
	Stdout    io.Writer // where print writes; nil: os.Stdout
}

// New opens a Lua state with mx loaded: require("mx") gives it, and it is a global.
func New(opt Options) *State {
	s := &State{random: random.NewState(opt.Seed), precision: shortest, metas: map[string]*lua.LTable{},
		dtypes: map[tensor.DType]*lua.LUserData{}}
	s.files = opt.Libraries
	s.State = lua51.New(lua51.Options{Seed: opt.Seed, Libraries: opt.Libraries, Stdout: opt.Stdout,
		Raise: s.raise, Explain: explain, SyntaxHint: syntaxHint})
	s.life.end = func() {
		s.L.Close()
		s.looks.close()
	}
	s.looks.open(s)
	s.openCollector()
	s.openMX()
	s.tracer = s.Func(s.traceback)
	s.looks.libraries()
	return s
}

// Run compiles and runs a chunk with arguments and gives its results. A cancelled context stops Lua code and the
// device's work alike; a nil one is context.Background(). The error is a *ScriptError, ErrClosed after Close.
func (s *State) Run(ctx context.Context, src io.Reader, name string, args ...lua.LValue) ([]lua.LValue, error) {
	proto, err := s.Compile(src, name)
	if err != nil {
		return nil, syntaxFailure(err)
	}
	return s.Call(ctx, s.L.NewFunctionFromProto(proto), args...)
}

// RunFile runs a script file; a first line that starts with # is skipped.
func (s *State) RunFile(ctx context.Context, path string, args ...lua.LValue) ([]lua.LValue, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &ScriptError{Message: fmt.Sprintf("cannot open %s: %v", path, errors.Unwrap(err))}
	}
	defer f.Close()
	src, err := lua51.WithoutShebang(f)
	if err != nil {
		return nil, &ScriptError{Message: fmt.Sprintf("cannot read %s: %v", path, err)}
	}
	return s.Run(ctx, src, path, args...)
}

// Call calls a Lua function and gives its results. Within a call of Lua's it runs below that one.
func (s *State) Call(ctx context.Context, fn lua.LValue, args ...lua.LValue) (out []lua.LValue, err error) {
	if err := s.life.enter(); err != nil {
		return nil, err
	}
	defer s.life.leave()
	if ctx == nil {
		ctx = context.Background()
	}
	outer := s.L.Context()
	if ctx.Done() != nil {
		lua51.SetContext(s.L, ctx)
		defer lua51.SetContext(s.L, outer)
	}
	defer func() {
		if p := recover(); p != nil {
			err = s.scriptError(panicError(p))
		}
	}()
	s.looks.give(fn)
	s.looks.give(args...)
	out, err = s.Protect(s.tracer, fn, args...)
	s.looks.give(out...)
	if s.Idle() {
		s.looks.ifDue()
	}
	if err == nil {
		return out, nil
	}
	if exit := s.scriptError(err); ctx.Err() == nil || exit.Exit != nil {
		return nil, exit
	}
	return nil, &ScriptError{Message: "interrupted: " + context.Cause(ctx).Error(), Cause: ctx.Err()}
}

// panicError is a panic that crossed protect: an error raised in too deep a call, or a bug.
func panicError(p any) error {
	if err, ok := p.(*lua.ApiError); ok {
		return err
	}
	return fmt.Errorf("BUG: %v\n%s", p, debug.Stack())
}

// call is the Ctx of an op called from the running Lua line.
func (s *State) call() *tensor.Ctx {
	return &tensor.Ctx{Stream: s.stream, Place: s.where(), Holder: s.looks.holder}
}

// where is the innermost line of a script.
func (s *State) where() (w tensor.Place) {
	s.Frames(1, "Sl", func(dbg *lua.Debug) bool {
		if strings.HasPrefix(dbg.Source, libraryPrefix) {
			return true
		}
		w = tensor.Place{File: dbg.Source, Line: dbg.CurrentLine}
		return false
	})
	return w
}
