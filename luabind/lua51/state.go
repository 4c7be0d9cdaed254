// Package lua51 opens states of gopher-lua that behave as the Lua 5.1 manual says, and compiles chunks for them. It
// knows no tensors. What it mends, gopher-lua 1.1.2 does wrongly or without bounds: programs that it miscompiles,
// errors that tear closures from their variables, patterns and strings that take for ever, numbers read by Go's rules.
// Each fault has a test that says what the pinned version does, so that a mended one shows itself.
package lua51

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"

	lua "github.com/yuin/gopher-lua"
)

// Options are what a State is opened with.
type Options struct {
	Seed uint64 // of math.random
	// Libraries says whether Lua's io and os libraries and file loading are there. The rest of the standard library
	// always is.
	Libraries bool
	Sandbox   bool      // leaves out what scripts of strangers should not have, Libraries too: see openSandbox
	Limits    Limits    // of what scripts take
	Modules   fs.FS     // where require looks for modules; nil: nowhere, but for the files that Libraries allow
	Stdout    io.Writer // where print and io.stdout write; nil: os.Stdout

	// Raise raises an error of Go code as a Lua error and does not return; nil: as a string with its place.
	Raise func(err error)
	// Explain may replace the value of an error that reaches a protected call, while the frames of the call that
	// failed are still there: it is how a host adds hints to the engine's own errors. nil: the value stays.
	Explain func(L *lua.LState, value lua.LValue) lua.LValue
	// TypeName is what messages call the type of a userdata; "": userdata, as they do where it is nil.
	TypeName func(ud *lua.LUserData) string
	// Weigh begins a measuring of live memory: it tells what the state has beside Lua's values, and gives what tells
	// what hangs on userdata. nil: there is none.
	Weigh func(m *Measure) (behind func(ud *lua.LUserData))
	// SyntaxHint is what a host adds to the text of a syntax error, or "". nil: nothing.
	SyntaxHint func(err *SyntaxError) string
	// Condition sees a userdata that is a condition of the running line: the operand of if, while, until, not, and the
	// left one of `and` and `or`. What `a and b or c` gives where a holds is none. call: it is what a call gave that is
	// not asked for nil, as it is in `found(k) or made(k)`; else it may be what a name or field holds, those that the
	// chunk gives a call's result somewhere. nil: conditions are not looked at.
	Condition func(v lua.LValue, call bool)
	Sure      string // the module whose functions never give nil
}

// State is a state of gopher-lua that behaves as Lua 5.1. It belongs to one goroutine at a time.
type State struct {
	Folds
	Freezer
	threads
	maker
	files files

	opt      Options
	patterns map[patternKey]*pattern
	numbered numbered       // the objects of a sandbox
	seed     func(n uint64) // of math.random

	passing map[uintptr]bool              // what Passes says yes to
	basic   map[lua.LValueType]lua.LValue // the metatables of types without one for each value

	embedded embedded
}

// startRegisters is how many registers a thread has room for at first.
const startRegisters = 1 << 10

// maxCalls is how deep Lua functions may call each other, as Lua 5.1's LUAI_MAXCALLS.
const maxCalls = 20000

// New opens a state with Lua's standard library.
func New(opt Options) *State {
	L := lua.NewState(lua.Options{SkipOpenLibs: true, IncludeGoStackTrace: false, RegistrySize: startRegisters,
		RegistryGrowStep: 1 << 12, RegistryMaxSize: 1 << 22, CallStackSize: maxCalls, MinimizeStackMemory: true})
	if opt.Stdout == nil {
		opt.Stdout = os.Stdout
	}
	opt.Libraries = opt.Libraries && !opt.Sandbox
	s := &State{threads: threads{L: L}, opt: opt}
	s.maker.s = s
	L.G.Registry.RawSetString(stateKey, &lua.LUserData{Value: s})
	s.openLibraries()
	if opt.Limits != (Limits{}) || opt.Sandbox {
		s.meter = &meter{s: s, limits: opt.Limits}
	}
	return s
}

// Context is the context of the running call.
func (s *State) Context() context.Context {
	if ctx := s.L.Context(); ctx != nil {
		return Plain(ctx)
	}
	return context.Background()
}

// SetContext gives a thread a context, or none where ctx is nil.
func SetContext(L *lua.LState, ctx context.Context) {
	if m, ok := ctx.(machineContext); ok {
		ctx = m.on(L)
	}
	if ctx == nil {
		L.RemoveContext()
	} else {
		L.SetContext(ctx)
	}
}

// Method sets a field of a table, which may be a module or a metatable, to a function.
func (s *State) Method(t *lua.LTable, name string, f lua.LGFunction) *lua.LFunction {
	fn := s.Func(f)
	t.RawSetString(name, fn)
	return fn
}

// onCaller is f on the thread that calls it.
func (s *State) onCaller(f lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		caller := s.L
		s.L = L
		s.nested++
		defer func() {
			s.L = caller
			s.nested--
		}()
		defer s.bug()
		if s.nested > maxNested {
			s.raise(fmt.Errorf("%s: Go and Lua functions call each other too deeply", tooDeep))
		}
		n := f(L)
		if s.meter != nil {
			s.meter.texts(L, n)
		}
		return n
	}
}

// bug turns a panic of Go's into a Lua error that says BUG; Lua errors, which are panics too, pass. A script in a
// sandbox does not see the stack, which has paths of the host.
func (s *State) bug() {
	switch p := recover().(type) {
	case nil:
	case runtime.Error:
		if s.opt.Sandbox {
			s.raise(fmt.Errorf("BUG: %v", p))
		}
		s.raise(fmt.Errorf("BUG: %v\n%s", p, debug.Stack()))
	default:
		panic(p)
	}
}

// raise raises an error of Go code; it does not return.
func (s *State) raise(err error) {
	if s.opt.Raise != nil {
		s.opt.Raise(err)
	}
	s.fail("%v", err)
}

// fail raises an error at the running Lua line.
func (s *State) fail(format string, v ...any) { s.L.RaiseError("%s", fmt.Sprintf(format, v...)) }

// poll ends a library function whose context is done.
func (s *State) poll() {
	if err := s.Broken(); err != nil {
		s.raise(err)
	}
	if err := s.Context().Err(); err != nil {
		s.fail("%v", err)
	}
}

// Args are the arguments of the Go function that runs on a thread.
func Args(L *lua.LState) []lua.LValue {
	out := make([]lua.LValue, L.GetTop())
	for i := range out {
		out[i] = L.Get(i + 1)
	}
	return out
}

// Text is a value's text as tostring gives it.
func Text(L *lua.LState, v lua.LValue) string {
	shown, _ := asText(textOf(L, v))
	return shown
}

// SetOutput has print write to w from now on.
func SetOutput(s *State, w io.Writer) { s.opt.Stdout = w }

// Output is where print writes.
func Output(s *State) io.Writer { return s.opt.Stdout }

// Write prints text; an error of the output is the script's.
func (s *State) Write(text string) {
	if _, err := io.WriteString(s.opt.Stdout, text); err != nil {
		s.raise(fmt.Errorf("print: %w", err))
	}
}

// openLibraries opens Lua's standard library. Whatever compiles source text goes through State.Compile.
func (s *State) openLibraries() {
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
	open(lua.CoroutineLibName, lua.OpenCoroutine)
	open(lua.DebugLibName, lua.OpenDebug)
	if s.opt.Libraries {
		open(lua.OsLibName, lua.OpenOs)
		s.openIO()
	}
	s.openPassing()
	s.openModules()
	s.openBase()
	s.openMath()
	if s.opt.Libraries {
		s.openOS()
	}
	s.openProtected()
	s.openCoroutines()
	s.replaceLoaders()
	s.openStrings()
	s.openTables()
	s.openStringArithmetic()
	s.openMathRandom()
	s.openMetatables()
	s.openOld()
	s.openDebug()
	s.openFolding()
	openSandbox(s)
	openFrozen(s)
	openEmbedded(s)
}

// library is the table of a library that is open.
func (s *State) library(name string) *lua.LTable { return s.L.GetGlobal(name).(*lua.LTable) }
