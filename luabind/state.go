// Package luabind binds the engine to Lua: arrays as userdata, functions by the rows of rows_*.go, trees of tables,
// transforms, custom kernels. It is the only importer of gopher-lua besides cmd.
package luabind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
)

// State is a Lua state with the module mx. It belongs to one goroutine at a time.
type State struct {
	L      *lua.LState
	random *random.State
	stream *tensor.Stream // the default stream of ops; nil: the device's

	mx     *lua.LTable
	arrays *lua.LTable // metatable of arrays
	dtypes map[tensor.DType]*lua.LUserData
	metas  map[string]*lua.LTable // metatables of the other userdata, by kind
	funcs  map[string]*function   // by full name: "softmax", "random.uniform"
	help   map[*lua.LFunction]*function
	stdout io.Writer
	files  bool // whether scripts may read files

	tracer    *lua.LFunction // the message handler of the host's calls
	handler   *lua.LFunction // of every protected call
	walker    *capturer      // of captures, where none is under way
	protected []protection   // the protected calls under way, outermost first
	scopes    []*scope       // the calls of mx.scope under way, outermost first
	spares    []*lua.LState  // threads for the next ones
	resumes   int            // coroutines that are resumed within each other
	nested    int            // Go functions under way, in each other
	spareArgs []*args        // of calls that have ended, for the next ones

	work     handedOver
	patterns map[patternKey]*pattern
	life     life
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
	L := lua.NewState(lua.Options{SkipOpenLibs: true, IncludeGoStackTrace: false, RegistrySize: 1 << 10,
		RegistryGrowStep: 1 << 12, RegistryMaxSize: 1 << 22, CallStackSize: maxCalls, MinimizeStackMemory: true})
	s := &State{L: L, random: random.NewState(opt.Seed), metas: map[string]*lua.LTable{},
		dtypes: map[tensor.DType]*lua.LUserData{}, funcs: map[string]*function{}, help: map[*lua.LFunction]*function{}}
	s.files = opt.Libraries
	s.openLibraries(opt)
	s.openMX()
	s.tracer = s.fn(s.traceback)
	return s
}

// maxCalls is how deep Lua functions may call each other, as Lua 5.1's LUAI_MAXCALLS.
const maxCalls = 20000

// Run compiles and runs a chunk with arguments and gives its results. A cancelled context stops Lua code and the
// device's work alike; a nil one is context.Background(). The error is a *ScriptError, ErrClosed after Close.
func (s *State) Run(ctx context.Context, src io.Reader, name string, args ...lua.LValue) ([]lua.LValue, error) {
	proto, err := compileChunk(src, name)
	if err != nil {
		return nil, &ScriptError{Message: err.Error()}
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
	src, err := skipShebang(f)
	if err != nil {
		return nil, &ScriptError{Message: fmt.Sprintf("cannot read %s: %v", path, err)}
	}
	return s.Run(ctx, src, path, args...)
}

// skipShebang leaves an empty line in place of a first line that starts with #, so that line numbers stay right.
func skipShebang(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	first, err := b.Peek(1)
	if err == io.EOF || err == nil && first[0] != '#' {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		c, err := b.ReadByte()
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if c == '\n' {
			return b, b.UnreadByte()
		}
	}
}

// Call calls a Lua function and gives its results. Within a call of Lua's it runs below that one.
func (s *State) Call(ctx context.Context, fn lua.LValue, args ...lua.LValue) (out []lua.LValue, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if ctx == nil {
		ctx = context.Background()
	}
	outer := s.L.Context()
	if ctx.Done() != nil {
		setContext(s.L, ctx)
		defer setContext(s.L, outer)
	}
	defer func() {
		if p := recover(); p != nil {
			err = s.scriptError(panicError(p))
		}
	}()
	out, err = s.protect(s.tracer, fn, args...)
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

// ctx is the context of the running call.
func (s *State) ctx() context.Context {
	if c := s.L.Context(); c != nil {
		return c
	}
	return context.Background()
}

// call is the Ctx of an op called from the running Lua line.
func (s *State) call() *tensor.Ctx { return &tensor.Ctx{Stream: s.stream, Place: s.where()} }

// where is the innermost line of a script.
func (s *State) where() (w tensor.Place) {
	s.frames(1, "Sl", func(dbg *lua.Debug) bool {
		if strings.HasPrefix(dbg.Source, libraryPrefix) {
			return true
		}
		w = tensor.Place{File: dbg.Source, Line: dbg.CurrentLine}
		return false
	})
	return w
}

// frames visits the Lua functions under way, innermost first, until visit says no: those of the running thread from a
// level on (0 is the function that runs: in Go's code, the Go function itself), and those of the threads that wait
// for it.
func (s *State) frames(level int, what string, visit func(dbg *lua.Debug) bool) {
	outer := len(s.protected)
	for L := s.L; L != nil; level = 0 {
		for ; ; level++ {
			dbg, ok := L.GetStack(level)
			if !ok {
				break
			}
			if _, err := L.GetInfo(what, dbg, lua.LNil); err == nil && dbg.CurrentLine > 0 && !visit(dbg) {
				return
			}
		}
		if L.Parent != nil {
			L = L.Parent
			continue
		}
		for outer--; outer >= 0 && s.protected[outer].thread != L; outer-- {
			continue
		}
		if outer < 0 {
			return
		}
		L = s.protected[outer].caller
	}
}

// openLibraries opens Lua's standard library. Whatever compiles source text goes through compileChunk.
func (s *State) openLibraries(opt Options) {
	open := func(name string, f lua.LGFunction) {
		s.L.Push(s.L.NewFunction(f))
		s.L.Push(lua.LString(name))
		s.L.Call(1, 0)
	}
	open(lua.LoadLibName, lua.OpenPackage)
	open(lua.BaseLibName, lua.OpenBase)
	open(lua.TabLibName, lua.OpenTable)
	open(lua.StringLibName, lua.OpenString)
	open(lua.MathLibName, lua.OpenMath)
	s.L.GetGlobal(lua.MathLibName).(*lua.LTable).RawSetString("huge", lua.LNumber(math.Inf(1))) // not the largest number
	open(lua.CoroutineLibName, lua.OpenCoroutine)
	open(lua.DebugLibName, lua.OpenDebug)
	if opt.Libraries {
		open(lua.IoLibName, lua.OpenIo)
		open(lua.OsLibName, lua.OpenOs)
	}
	s.openProtected()
	s.replaceLoaders(opt)
	s.guardLibraries()
	s.openCollector()
	s.openToNumber()
	s.openStringArithmetic()
	s.openMathRandom(opt.Seed)
	s.stdout = opt.Stdout
	if s.stdout == nil {
		s.stdout = os.Stdout
	}
	s.L.SetGlobal("print", s.fn(func(L *lua.LState) int {
		var line strings.Builder
		for i := 1; i <= L.GetTop(); i++ {
			if i > 1 {
				line.WriteByte('\t')
			}
			line.WriteString(L.ToStringMeta(L.Get(i)).String())
		}
		s.write(line.String() + "\n")
		return 0
	}))
}

// write prints text; an error of the output is the script's.
func (s *State) write(text string) {
	if _, err := io.WriteString(s.stdout, text); err != nil {
		s.raise(fmt.Errorf("print: %w", err))
	}
}
