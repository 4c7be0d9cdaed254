// Package luabind binds the engine to Lua: arrays as userdata, functions as the rooms of the ops and rows_*.go declare
// them, trees of tables, transforms, custom kernels. lua51 below it opens the Lua states; they and cmd are the only
// importers of gopher-lua.
package luabind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"runtime/debug"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
)

// State is a Lua state with the module mx. It belongs to one goroutine at a time.
type State struct {
	*lua51.State
	opt    Options
	random *random.State
	stream *tensor.Stream   // the default stream of ops; nil: the device's
	own    *tensor.Stream   // the stream of a state in a sandbox
	others []*tensor.Stream // that such a state uses: of other devices

	mx       *module
	packages programPackages
	standard []*lua.LTable // Lua's libraries
	arrays   *arrayType
	dtypes   map[tensor.DType]*lua.LUserData
	metas    map[string]*lua.LTable // metatables of the other userdata, by kind
	files    bool                   // whether scripts may use all files
	allowed  allowedFiles           // those that they may use otherwise
	bounds   bounds
	status   bool // whether a line of mx.train.status stands on a terminal
	warnings warnings
	written  written // by scripts

	precision int        // of printed arrays: places after the point, or shortest
	wired     float64    // the limit of mx.set_wired_limit
	recording *recording // of mx.metal.start_capture; nil: none is under way

	tracer    *lua.LFunction               // the message handler of the host's calls
	goMethods map[reflect.Type]*lua.LTable // of structs of Go that scripts have, by the types of pointers to them
	// ownMethods is what the methods of the library's classes check self by.
	ownMethods *lua.LFunction
	capturer   *capturer // of captures, where none is under way
	scopes     scopes
	// transforming are the transforms whose functions are under way, outermost first.
	transforming []string
	spareArgs    []*args // of calls that have ended, for the next ones

	work handedOver
	// changes are what the script's state may go back to.
	changes changes
	looks   looks
	life    life
}

// Options are what a State is opened with.
type Options struct {
	Seed uint64 // of the state's random numbers
	// Libraries says whether Lua's io and os libraries and file loading are there. The rest of the standard library
	// always is.
	Libraries bool
	// Sandbox is for scripts of strangers: there are no files, processes, debug library or bytecode, whatever Libraries
	// says, and what concerns the whole process is refused.
	Sandbox bool
	// Read and Write are the files and folders that the functions of mx may read and write without Libraries.
	Read, Write []string
	WriteBytes  int64     // that those files may have together; 0: any number
	Modules     fs.FS     // where require looks for modules, a.b at a/b.lua; nil: nowhere
	Limits      Limits    // of what scripts take
	Strict      bool      // a condition that is an array, which is always true, is an error instead of a warning
	Stdout      io.Writer // where print and io.stdout write; nil: os.Stdout
	Stderr      io.Writer // where warnings go; nil: os.Stderr, in a sandbox where print writes
	// Columns is how wide what is drawn as text may be where the environment does not say; nil: 80.
	Columns func() int
}

// New opens a Lua state with mx loaded: require("mx") gives it, and it is a global.
func New(opt Options) *State {
	s := &State{opt: opt, random: random.NewState(opt.Seed), precision: shortest, metas: map[string]*lua.LTable{},
		dtypes: map[tensor.DType]*lua.LUserData{}}
	s.files, s.allowed = opt.Libraries && !opt.Sandbox, allow(opt.Read, opt.Write)
	s.warnings.s, s.bounds.s = s, s
	s.written.unbounded, s.written.most = s.files || opt.WriteBytes == 0, opt.WriteBytes
	s.State = lua51.New(lua51.Options{Seed: opt.Seed, Libraries: opt.Libraries, Stdout: printStream(s),
		Sandbox: opt.Sandbox, Modules: opt.Modules, Limits: opt.Limits.Limits, Weigh: s.bounds.weigh,
		Raise: s.raise, SyntaxHint: syntaxHint, TypeName: typeInMessages, Sure: sureModule,
		Explain:   func(L *lua.LState, v lua.LValue) lua.LValue { return explain(s, L, v) },
		Condition: func(v lua.LValue, call bool) { condition(s, v, call) }})
	s.life.back.L = &s.life.mu
	s.life.end = func() {
		lua51.Close(s.State)
		s.changes.forget()
		s.looks.close()
		giveStream(s)
	}
	s.looks.open(s)
	for _, name := range libraryNames {
		if t, ok := s.L.GetGlobal(name).(*lua.LTable); ok {
			s.standard = append(s.standard, t)
		}
	}
	s.openCollector()
	s.openMX()
	if opt.Sandbox {
		refuseShared(s)
		keepLibraries(s)
		takeStream(s)
	}
	s.tracer = s.Func(s.traceback)
	s.looks.libraries()
	return s
}

// Run compiles and runs a chunk with arguments and gives its results. A cancelled context stops Lua code and the
// device's work alike; a nil one is context.Background(). The error is a *ScriptError, ErrClosed after Close.
func (s *State) Run(ctx context.Context, src io.Reader, name string, args ...lua.LValue) ([]lua.LValue, error) {
	if err := s.life.enter(ctx); err != nil {
		return nil, err
	}
	defer s.life.leave()
	ctx, cancel := s.bounds.begin(ctx)
	defer cancel()
	proto, err := s.Compile(ctx, src, name)
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
	if err := s.life.enter(ctx); err != nil {
		return nil, err
	}
	defer s.life.leave()
	ctx, cancel := s.bounds.begin(ctx)
	defer cancel()
	outer := s.L.Context()
	ctx, stepping, end := metered(ctx, s)
	defer end()
	if stepping != nil {
		lua51.SetContext(s.L, stepping)
		defer lua51.SetContext(s.L, outer)
	} else if ctx.Done() != nil {
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
	if err == nil && ctx.Err() != nil { // a script may have caught that, and returned before its next instruction
		err = context.Cause(ctx)
	}
	err = settle(ctx, s, err)
	s.looks.give(out...)
	s.looks.give(lua51.Raised(err))
	if s.Idle() {
		s.looks.ifDue()
	}
	if reached := s.Broken(); reached != nil {
		e := &ScriptError{Message: reached.Error(), Cause: reached}
		if err != nil {
			se := s.scriptError(err)
			e.File, e.Line, e.Traceback = se.File, se.Line, se.Traceback
		}
		return nil, e
	}
	if err == nil {
		return out, nil
	}
	return nil, interrupted(ctx, s.scriptError(err))
}

// interrupted is the error of a call that has failed: that of its context, if it is done.
func interrupted(ctx context.Context, err *ScriptError) *ScriptError {
	if ctx.Err() == nil || err.Exit != nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, lua51.ErrLimit) {
		return &ScriptError{Message: cause.Error(), Cause: cause}
	}
	return &ScriptError{Message: "interrupted: " + context.Cause(ctx).Error(), Cause: ctx.Err()}
}

// metered is the context of a call, and, where there are limits, the one that Lua code runs under.
func metered(ctx context.Context, s *State) (plain, stepping context.Context, end func()) {
	stepping, end = s.Metered(ctx)
	if stepping == ctx {
		return ctx, nil, end
	}
	return lua51.Plain(stepping), stepping, end
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
	s.looks.holder.Called()
	return &tensor.Ctx{Stream: s.stream, Place: s.where(), Holder: s.looks.holder}
}

// where is the innermost line of a script.
func (s *State) where() tensor.Place {
	source, line := s.Line(libraryPrefix)
	return tensor.Place{File: source, Line: line}
}
