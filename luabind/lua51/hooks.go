package lua51

import (
	"context"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// machineContext is a context that the virtual machine asks before each instruction. It is of one thread.
type machineContext interface {
	context.Context
	on(L *lua.LState) context.Context // the one for another thread
	plain() context.Context           // what Go code runs under
}

// hook calls a function of the script's at each new line, or after so many instructions: gopher-lua asks the context
// before each instruction whether it is done. Calls and returns it cannot tell.
type hook struct {
	context.Context
	*hooking
	L     *lua.LState
	frame reflect.Value // the variable with the thread's running frame
}

// hooking is what the hooks of all threads of a coroutine share. The function is in the registry.
type hooking struct {
	s      *State
	mask   string
	lines  bool
	count  int // instructions; 0: they are not counted
	left   int
	last   *lua.LState // the thread that ran last
	depth  int         // of the frame that ran last
	pc     int         // of its instruction
	called bool        // the function runs
}

// hookKey is where gopher-lua's registry has the function of the hook.
const hookKey = "lua51.hook"

func (h *hook) on(L *lua.LState) context.Context {
	inner := h.Context
	if m, ok := inner.(machineContext); ok {
		inner = m.on(L)
	}
	return &hook{inner, h.hooking, L, current(L)}
}

func (h *hook) plain() context.Context { return Plain(h.Context) }

// Done is asked by the virtual machine before each instruction.
func (h *hook) Done() <-chan struct{} {
	if !h.called {
		h.look(frame{h.frame.Elem()})
	}
	return h.Context.Done()
}

// look calls the function if the instruction that is about to run is one that it wants.
func (h *hook) look(f frame) {
	if h.count > 0 {
		if h.left--; h.left == 0 {
			h.left = h.count
			h.call("count", lua.LNil)
		}
	}
	if !h.lines {
		return
	}
	pc, before := f.pc(), h.pc
	if h.last != h.L || h.depth != f.depth() { // after a call, or at the begin of a function, which is at 0
		before = pc - 1
	}
	h.last, h.depth, h.pc = h.L, f.depth(), pc
	if pc == 0 || pc <= before || f.lineOf(pc) != f.lineOf(before) {
		h.call("line", lua.LNumber(f.lineOf(pc)))
	}
}

func (h *hook) call(event string, line lua.LValue) {
	h.called, h.s.hooked = true, true
	defer func() { h.called, h.s.hooked = false, false }()
	h.L.Push(h.L.G.Registry.RawGetString(hookKey))
	h.L.Push(lua.LString(event))
	h.L.Push(line)
	h.L.Call(2, 0)
}

// withoutHook is a context without the hook that it may be.
func withoutHook(ctx context.Context) context.Context {
	if h, ok := ctx.(*hook); ok {
		return h.Context
	}
	return ctx
}

// setHook gives the running coroutine a hook, or takes it away where h is nil.
func (s *State) setHook(h *hooking) {
	set := func(L *lua.LState) {
		inner := withoutHook(L.Context())
		if h == nil || inner == nil {
			SetContext(L, inner)
			return
		}
		L.SetContext(&hook{inner, h, L, current(L)})
	}
	set(s.L)
	for i := len(s.running) - 1; i >= 0 && !s.running[i].coroutine; i-- {
		set(s.running[i].caller)
	}
}

// keptHook is the hook that a coroutine has while it waits; nil: none. It keeps no context of the call that has set it.
func keptHook(th *lua.LState) *hooking {
	if h, ok := th.Context().(*hook); ok {
		return h.hooking
	}
	return nil
}

// openHooks makes debug.sethook and debug.gethook. A hook is of the coroutine that sets it, until the call from the
// host ends.
func (d *debugLibrary) openHooks(lib *lua.LTable) {
	s := d.s
	s.Method(lib, "sethook", func(L *lua.LState) int {
		co, taken := d.thread(L)
		if co != nil {
			s.fail("a hook is for the running coroutine")
		}
		if L.Get(1+taken) == lua.LNil {
			s.setHook(nil)
			return 0
		}
		if L.Context() == nil { // its machine would not ask
			s.fail("there are no hooks where the host has called without a context that can end")
		}
		mask := textArg(L, 2+taken)
		f, count := L.CheckFunction(1+taken), optional(L, 3+taken, integerArg, 0)
		if strings.ContainsAny(mask, "cr") {
			s.fail("a hook sees lines and counts instructions, it does not see calls and returns: mask %q", mask)
		}
		h := &hooking{s: s, lines: strings.Contains(mask, "l"), count: max(count, 0), left: count}
		if h.lines {
			h.mask = "l"
		}
		L.G.Registry.RawSetString(hookKey, f)
		if !h.lines && h.count == 0 {
			h = nil
		}
		s.setHook(h)
		return 0
	})
	s.Method(lib, "gethook", func(L *lua.LState) int {
		h, ok := L.Context().(*hook)
		if co, _ := d.thread(L); !ok || co != nil {
			L.Push(lua.LNil)
			L.Push(lua.LString(""))
			L.Push(lua.LNumber(0))
			return 3
		}
		L.Push(L.G.Registry.RawGetString(hookKey))
		L.Push(lua.LString(h.mask))
		L.Push(lua.LNumber(h.count))
		return 3
	})
}
