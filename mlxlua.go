// Package mlxlua embeds Lua scripts that compute with tensors, after Apple's MLX, in Go programs: no cgo, no Python,
// no C compiler. Open gives a State with the module mx; scripts build lazy graphs, and the device runs them.
//
//	state, err := mlxlua.Open(mlxlua.Options{})
//	if err != nil {
//		return err
//	}
//	defer state.Close()
//	_, err = state.RunFile(ctx, "model.lua")
package mlxlua

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/mlxlua/mlxlua/luabind"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// Options are what a State is opened with; the zero value is right for programs.
type Options struct {
	// Device is "auto" or "" for the best there is, or a name such as "cpu": see OpenDevice. One that is missing is an
	// error. In a sandbox "auto" is "checked".
	Device string
	// Threads is how many threads run kernels, 0 for one for each processor. All states share the device: it has the
	// threads that the first Open asks for, and to ask for others later is an error.
	Threads int
	// Seed starts the state's random numbers; the states of a Pool get seeds that follow from it.
	Seed uint64
	// Libraries opens Lua's io and os libraries and lets scripts load files.
	Libraries bool
	// Stdout is where print and io.stdout write; nil means os.Stdout.
	Stdout io.Writer
	// Stderr is where warnings go, such as that a condition is an array, and the lines of mx.train's progress. Nil means
	// os.Stderr; in a sandbox that warnings go where print writes, and that there is no progress. A state gives a hundred
	// warnings at most.
	Stderr io.Writer
	// Strict makes an error of such a condition.
	Strict bool

	// Sandbox is for scripts of strangers: whatever Libraries says there are no files, processes, debug library or
	// bytecode, functions that change or tell what all states share are refused, and mx, its modules and their classes
	// stay as they are. MemoryLimit, ArrayLimit, WriteLimit
	// and SourceLimit are then 256 MiB, 1 GiB, 1 GiB and 1 MiB unless they are given; TimeLimit and InstructionLimit, or a
	// context with a deadline, are the host's to set. What a script hands over to mx.async_eval is waited for when the
	// call ends.
	Sandbox bool
	// ReadFiles and WriteFiles are the files and folders that scripts may read and write by mx.load, mx.save and the like
	// without Libraries; symbolic links that lead out of them are refused. With Libraries they have no effect.
	ReadFiles, WriteFiles []string
	// WriteLimit bounds the bytes that the files have together which a state writes so. One that is replaced counts no
	// more, and one of a few bytes counts as 4 KiB.
	WriteLimit int64
	// Modules is where require looks for modules, and nowhere else: a.b is a/b.lua or a/b/init.lua there. With Libraries
	// it has no effect. Links in os.DirFS's folder lead out of it; in that of an os.Root they do not.
	Modules fs.FS
	// MemoryLimit bounds the bytes of what a script has in Go's memory: strings, tables, functions, coroutines, code,
	// graphs that were not evaluated, compiled kernels, and what compilers make of long texts. A call that reaches it
	// ends. It also bounds what Go gets of one call, with what stands in many places counted in each, so that hosts can
	// write results as JSON.
	MemoryLimit int64
	// ArrayLimit bounds the bytes of device memory that a script's arrays hold. What does not fit is an error that the
	// script can catch, as that of the device's own limit.
	ArrayLimit int64
	// InstructionLimit bounds the Lua instructions of one call: Run, RunFile or Call.
	InstructionLimit int64
	// TimeLimit bounds the time of one call, and KernelTimeLimit the time that the device works for it. In a sandbox, and
	// where one of these two is given, arrays that Go gets are computed by then: results, what Get gives, arguments of Go
	// functions, at any depth of lists and maps. What they take is the call's, and so is the error of a limit; reading
	// them later only copies. Their elements, counted in each place, must fit into ArrayLimit.
	TimeLimit, KernelTimeLimit time.Duration
	// SourceLimit bounds the bytes of a text that is compiled, also by load.
	SourceLimit int64
}

// check refuses limits that cannot be meant, and paths that stand for the working directory by mistake.
func (opt *Options) check() error {
	for name, n := range map[string]int64{"WriteLimit": opt.WriteLimit, "MemoryLimit": opt.MemoryLimit,
		"ArrayLimit": opt.ArrayLimit, "InstructionLimit": opt.InstructionLimit, "SourceLimit": opt.SourceLimit,
		"TimeLimit": int64(opt.TimeLimit), "KernelTimeLimit": int64(opt.KernelTimeLimit)} {
		if n < 0 {
			return fmt.Errorf("[options] %s is %d: want 0, for none or the sandbox's, or more", name, n)
		}
	}
	if slices.Contains(opt.ReadFiles, "") || slices.Contains(opt.WriteFiles, "") {
		return errors.New(`[options] ReadFiles or WriteFiles has an empty path: want files or folders, "." for this one`)
	}
	return nil
}

// ErrLimit is what the error of a call wraps that one of Options' limits ended.
var ErrLimit = luabind.ErrLimit

// State is a Lua state with the module mx. It belongs to one goroutine at a time: where it is in use by another one,
// all methods but Close fail with ErrBusy. Go functions that a script calls may call them, also by goroutines that they
// wait for and that use the context which the function got. A program may have as many states as it likes, and they
// share the device; a Pool has them ready. Open makes a State; the zero State, and nil, are closed.
type State struct{ s *luabind.State }

// Array is an n-dimensional array. It is computed when its elements are wanted, and may be used by any goroutine; what
// a script in a sandbox has made is computed in its calls only (Options.TimeLimit). The functions of the packages below
// tensor/ops take and give arrays too. Its methods for hosts are these:
//
//	func (x *Array) Bytes(ctx context.Context) ([]byte, error) // the elements in row-major order, as a copy
//	func (x *Array) DType() tensor.DType                       // of the elements
//	func (x *Array) Dim(axis int) (int, error)                 // the size along an axis, a negative one from the end
//	func (x *Array) Err() error                                // of an array that an op could not make
//	func (x *Array) Free(c *tensor.Ctx)                        // gives the memory back; later use is an error
//	func (x *Array) NDim() int                                 // how many dimensions there are
//	func (x *Array) Shape() tensor.Shape                       // a copy: a []int
//	func (x *Array) Size() int                                 // how many elements there are
//	func (x *Array) State() tensor.State                       // how far the computation has come
//	func (x *Array) String() string                            // dtype and shape; it computes nothing
//	func (x *Array) Wait(ctx context.Context) error            // for what mx.async_eval was given
type Array = tensor.Array

// Func is a Go function that scripts can call, see State.Set, and a function of Lua's as Go sees it. It takes and gives
// values as State.Run does. A function of Lua's belongs to its state, and to the goroutine that uses that.
type Func = func(ctx context.Context, args []any) ([]any, error)

// GoError is the error of a Go function that a script has called, with its place; errors.As finds it in a ScriptError:
//
//	type GoError struct {
//		Function string // its name in Go
//		File     string // where it is, or where it panicked
//		Line     int
//		Err      error // what it returned, or says what it panicked with
//	}
//	func (e *GoError) Error() string // what Err says
//	func (e *GoError) Unwrap() error // Err
type GoError = luabind.GoError

// ScriptError is an error that a script did not catch. errors.As finds it in what Run, Call and a Func return:
//
//	type ScriptError struct {
//		Message        string   // with the op, the values and the line
//		Value          any      // what error was called with, as Run's results are
//		File           string   // the script's line that raised it, or where a text is no Lua: "" if there is none
//		Line           int
//		Column, Length int      // what on the line is wrong, in bytes, where a text is no Lua; Column 0: nobody knows
//		Traceback      string   // Lua's, innermost call first; "" for what is not a run-time error
//		Exit           *int     // the status of an os.exit that was called
//		Go             *GoError // the Go function that the script called and that has failed, if that was it
//		Cause          error    // ErrLimit, a context's error, an error of the engine; nil: there is none
//	}
//	func (e *ScriptError) Error() string // Message
//	func (e *ScriptError) Unwrap() error // Cause
type ScriptError = luabind.ScriptError

// Open opens the device, unless that was done before, and a Lua state.
func Open(opt Options) (*State, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if opt.Sandbox && (opt.Device == "" || opt.Device == "auto") {
		opt.Device = "checked"
	}
	if err := openDevice(opt.Device, opt.Threads); err != nil {
		return nil, err
	}
	if opt.Sandbox {
		opt.ArrayLimit = cmp.Or(opt.ArrayLimit, 1<<30)
		opt.MemoryLimit = cmp.Or(opt.MemoryLimit, 256<<20)
		opt.WriteLimit = cmp.Or(opt.WriteLimit, 1<<30)
		opt.SourceLimit = cmp.Or(opt.SourceLimit, 1<<20)
	}
	limits := luabind.Limits{Arrays: opt.ArrayLimit, Time: opt.TimeLimit, Kernels: opt.KernelTimeLimit}
	limits.Memory, limits.Instructions, limits.Source = opt.MemoryLimit, opt.InstructionLimit, opt.SourceLimit
	return &State{luabind.New(luabind.Options{Seed: opt.Seed, Libraries: opt.Libraries, Strict: opt.Strict,
		Stdout: opt.Stdout, Stderr: opt.Stderr, Sandbox: opt.Sandbox, Read: opt.ReadFiles, Write: opt.WriteFiles,
		WriteBytes: opt.WriteLimit, Modules: opt.Modules, Limits: limits})}, nil
}

// ErrClosed is the error of whatever is asked of a State after Close.
var ErrClosed = luabind.ErrClosed

// ErrBusy is the error of whatever is asked of a State, or of a Func that is one of its functions, while another
// goroutine uses it.
var ErrBusy = luabind.ErrBusy

// Close ends the state; any goroutine may call it, also twice. Calls under way run to their end, later ones fail with
// ErrClosed. Arrays that Go still holds stay usable; the memory of those that only scripts held comes back.
func (s *State) Close() {
	if !s.zero() {
		s.s.Close()
	}
}

func (s *State) zero() bool { return s == nil || s.s == nil }

// enter begins a use of the state, which luabind.Leave ends.
func (s *State) enter(ctx context.Context) error {
	if s.zero() {
		return ErrClosed
	}
	return luabind.Enter(ctx, s.s)
}

// Run runs Lua source text; name stands in messages. The results are Go values: nil, bool, float64, complex64, string,
// *Array, []any, map[string]any, Func. An error that pcall gave is what error was called with, or its message. A table
// that occurs twice is one value twice; one that holds itself, or that is neither a list nor a map of names, is an
// error. A cancelled ctx stops the script and its kernels. Errors are *ScriptError. Arrays are lazy: who reads one has
// it computed; in a sandbox, or under limits of time, the call has done that.
func (s *State) Run(ctx context.Context, name, source string, args ...any) ([]any, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("[run] %w", err)
	}
	defer luabind.Leave(s.s)
	in, err := s.toLua(ctx, args)
	if err != nil {
		return nil, err
	}
	return luabind.Results(ctx, s.s, func(ctx context.Context) ([]luabind.Value, error) {
		return s.s.Run(ctx, strings.NewReader(source), name, in...)
	})
}

// RunFile runs a script file; see Run.
func (s *State) RunFile(ctx context.Context, path string, args ...any) ([]any, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("[run] %w", err)
	}
	defer luabind.Leave(s.s)
	in, err := s.toLua(ctx, args)
	if err != nil {
		return nil, err
	}
	return luabind.Results(ctx, s.s, func(ctx context.Context) ([]luabind.Value, error) {
		return s.s.RunFile(ctx, path, in...)
	})
}

// Set sets a global variable: to nil, a bool, a number of any type, a string, an *Array, a dtype, a function; to a
// []byte, which becomes a string; or to slices, maps with keys that are strings or integers, structs (by the names of
// their exported fields, or of `lua:"name"` tags) and pointers to such, which become tables. What has no counterpart in
// Lua is an error: integers beyond 2^53 that float64 has not, values that hold themselves.
//
// A function is a Func, or of any type. Then arguments become the types of its parameters, or the call is an error: nil
// where there are too few; Lua's functions where a function is wanted; tables as slices, maps and structs. A first
// parameter that is a context is the call's. A last result that is an error is the script's error unless it is nil.
//
// Exported methods of a struct, and of the pointer to it, are methods of its table, object:Method(x), for scripts in a
// sandbox too. They act on the struct, which gets the fields that the script has set, and whose fields the table has
// afterwards. Where Go gets the table it is the struct, or the pointer, again. String is what tostring gives.
func (s *State) Set(name string, v any) error {
	if err := s.enter(context.Background()); err != nil {
		return fmt.Errorf("[set] %s: %w", name, err)
	}
	defer luabind.Leave(s.s)
	x, err := s.s.ToLua(v)
	if err != nil {
		return fmt.Errorf("[set] %s: %w", name, err)
	}
	if err := s.s.SetGlobal(name, x); err != nil {
		return fmt.Errorf("[set] %s: %w", name, err)
	}
	return nil
}

// Get is a global variable's value, as Run's results; nil where there is none. A table that no Go value can carry is an
// error that says why.
func (s *State) Get(name string) (any, error) {
	if err := s.enter(context.Background()); err != nil {
		return nil, fmt.Errorf("[get] %s: %w", name, err)
	}
	defer luabind.Leave(s.s)
	v, err := s.s.ToGo(context.Background(), s.s.Global(name))
	if err != nil {
		return nil, fmt.Errorf("[get] %s: %w", name, err)
	}
	return v, nil
}

// Call calls a global Lua function, or what else can be called: a compiled function, a kernel, a layer; see Run.
func (s *State) Call(ctx context.Context, function string, args ...any) ([]any, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("[call] %s: %w", function, err)
	}
	defer luabind.Leave(s.s)
	f := s.s.Function(function)
	if f == nil {
		return nil, fmt.Errorf("[call] there is no global function %q", function)
	}
	return f(ctx, args)
}

func (s *State) toLua(ctx context.Context, vs []any) ([]luabind.Value, error) {
	out, err := s.s.ToLuaAll(ctx, vs)
	if err != nil {
		return nil, fmt.Errorf("[run] argument %w", err)
	}
	return out, nil
}

// FromSlice makes an array of Go values, copied, in row-major order; without a shape it has one dimension. Its dtype
// follows from T; an element count that does not fit the shape gives an array whose Err says so.
func FromSlice[T ops.Element](v []T, shape ...int) *Array {
	if shape == nil {
		shape = []int{len(v)}
	}
	return ops.FromSlice(v, shape, tensor.Call(nil)) // its errors name the caller's line
}

// Scalar makes an array without dimensions of a Go value.
func Scalar[T ops.Element](v T) *Array { return ops.FromSlice([]T{v}, []int{}, tensor.Call(nil)) }

// ToSlice evaluates an array and gives its elements in row-major order. T must hold the array's dtype: float32 for
// mx.float32, and so on; of float16 and bfloat16 the script makes one by x:astype(mx.float32). A cancelled ctx stops
// the work. What a script in a sandbox returned is computed already: see Options.TimeLimit.
func ToSlice[T ops.Element](ctx context.Context, x *Array) ([]T, error) {
	return ops.ToSlice[T](ctx, x)
}

// Bytes evaluates an array and gives its elements in row-major order, little-endian. A cancelled ctx stops the work.
func Bytes(ctx context.Context, x *Array) ([]byte, error) { return x.Bytes(ctx) }
