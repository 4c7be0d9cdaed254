package lua51

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"

	lua "github.com/yuin/gopher-lua"
)

// Limits bound what a script may take; 0 is no limit.
type Limits struct {
	Memory       int64 // bytes of what its values take in Lua: strings, tables, functions, coroutines, stacks
	Instructions int64 // of the virtual machine, in one call from the host
	Source       int64 // bytes of a text to compile
}

// ErrLimit is what errors of limits wrap.
var ErrLimit = errors.New("a limit was reached")

// limitError says which limit was reached.
func limitError(format string, v ...any) error {
	return fmt.Errorf("[limits] "+format+": %w", append(v, ErrLimit)...)
}

// meter counts what the scripts of a state take. gopher-lua asks the context before each instruction whether it is
// done, so a context of the meter's own sees every instruction before it runs: it counts them, and what those that make
// something are about to take. When as much has been made as there may be room for, it measures what is alive.
type meter struct {
	s      *State
	limits Limits
	steps  int64
	made   int64 // bytes since the last measuring
	room   int64 // how many may be made before the next
	held   int64 // bytes that Go functions under way hold and no measuring sees
	broken error // the limit that was reached: it ends all of the call from the host
	cancel context.CancelCauseFunc
	calls  int // from the host, in each other
}

// over is the channel of a context that is done.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Metered is the context for a call from the host, and what ends it. Without limits it is ctx.
func (s *State) Metered(ctx context.Context) (inner context.Context, end func()) {
	m := s.meter
	if m == nil {
		return ctx, func() {}
	}
	outer := m.cancel
	plain, cancel := context.WithCancelCause(ctx)
	if m.calls == 0 {
		m.steps, m.broken, m.held = 0, nil, 0
	}
	m.calls++
	m.cancel = cancel
	return newStepper(m, plain, s.L), func() {
		m.calls--
		m.cancel = outer
		cancel(nil)
	}
}

// Plain is the context for Go code that runs under a metered one.
func Plain(ctx context.Context) context.Context {
	if m, ok := ctx.(machineContext); ok {
		return m.plain()
	}
	return ctx
}

// Broken is the limit that the call under way, or the last one, has reached; nil: none.
func (s *State) Broken() error {
	if s.meter == nil {
		return nil
	}
	return s.meter.broken
}

// Charge tells that a Go function is about to make so many bytes for the script; past the limit it raises an error.
func (s *State) Charge(bytes int64) {
	if m := s.meter; m != nil {
		m.charge(s.L, bytes)
		if m.broken != nil {
			s.raise(m.broken)
		}
	}
}

// Made tells that Go code has made so many bytes for the script. Past the limit it is an error, and the call ends.
func (s *State) Made(bytes int64) error {
	m := s.meter
	if m == nil {
		return nil
	}
	m.charge(s.L, bytes)
	return m.broken
}

// hold is Charge for bytes that the function holds until it releases them.
func hold(s *State, bytes int64) (release func()) {
	m := s.meter
	if m == nil {
		return func() {}
	}
	s.Charge(bytes)
	m.held += bytes
	return func() { m.held -= bytes }
}

// Holding counts what a Go function holds that no measuring sees.
type Holding struct {
	s    *State
	held int64 // by the functions around this one
}

// Hold begins a Holding of a function that runs.
func Hold(s *State) *Holding {
	h := &Holding{s: s}
	if s.meter != nil {
		h.held = s.meter.held
	}
	return h
}

// Add counts further bytes. It is an error past the limit of memory, and where the context is done.
func (h *Holding) Add(bytes int64) error {
	if m := h.s.meter; m != nil {
		m.charge(h.s.L, bytes)
		if m.broken != nil {
			return m.broken
		}
		m.held += bytes
	}
	return h.s.Context().Err()
}

// End says that nothing is held any more.
func (h *Holding) End() {
	if h.s.meter != nil {
		h.s.meter.held = h.held
	}
}

// charge counts bytes that are about to be made.
func (m *meter) charge(L *lua.LState, bytes int64) {
	if m.limits.Memory == 0 || m.broken != nil {
		return
	}
	if m.made += bytes; m.made <= m.room && bytes >= 0 {
		return
	}
	used, spare := live(m.s, L)
	if used+m.held+bytes > m.limits.Memory && len(spare) > 0 {
		for _, f := range spare {
			f()
		}
		runtime.GC()
		used, _ = live(m.s, L)
	}
	used += m.held
	if bytes < 0 || used+bytes > m.limits.Memory {
		m.trip(limitError("the script's memory is full: %d bytes are in use, it asks for %d, the limit is %d", used, bytes,
			m.limits.Memory))
		return
	}
	m.made = bytes
	m.room = max(m.limits.Memory-used, m.limits.Memory/8)
}

func (m *meter) trip(err error) {
	m.broken = err
	if m.cancel != nil {
		m.cancel(err)
	}
}

// stepper is the meter's context on one thread.
type stepper struct {
	context.Context
	m     *meter
	L     *lua.LState
	frame reflect.Value // the variable with the thread's running frame
	top   int           // the most registers that were counted
}

func newStepper(m *meter, plain context.Context, L *lua.LState) *stepper {
	return &stepper{Context: plain, m: m, L: L, frame: current(L)}
}

// plain is the context for Go code.
func (p *stepper) plain() context.Context { return p.Context }

// on is the context for another thread.
func (p *stepper) on(L *lua.LState) context.Context {
	if p.L == L {
		return p
	}
	return newStepper(p.m, p.Context, L)
}

// Done is asked by the virtual machine before each instruction.
func (p *stepper) Done() <-chan struct{} {
	m := p.m
	m.steps++
	if m.broken == nil {
		if m.limits.Instructions > 0 && m.steps > m.limits.Instructions {
			m.trip(limitError("the script ran %d instructions, which is the limit", m.limits.Instructions))
		} else if m.limits.Memory > 0 || m.s.Freezer.names != nil {
			p.weigh()
		}
	}
	if m.broken != nil {
		return over
	}
	return p.Context.Done()
}

// Err is the limit that was reached, or the context's error.
func (p *stepper) Err() error {
	if p.m.broken != nil {
		return p.m.broken
	}
	return p.Context.Err()
}

// weigh counts what the instruction that is about to run will make, and refuses it if it would change a frozen table.
func (p *stepper) weigh() {
	frame := frame{p.frame.Elem()}
	op, a, b, c := frame.instruction()
	p.writes(frame, op, a, b)
	switch op {
	case lua.OP_CONCAT:
		bytes := int64(stringBytes)
		for i := b; i <= c; i++ {
			if text, ok := p.L.Get(i + 1).(lua.LString); ok {
				bytes += int64(len(text))
			} else {
				bytes += stringBytes
			}
		}
		p.m.charge(p.L, bytes)
	case lua.OP_NEWTABLE:
		p.m.charge(p.L, tableRoom(b, c))
	case lua.OP_CLOSURE:
		p.m.charge(p.L, functionBytes+8*upvalueBytes)
	case lua.OP_SETLIST:
		if b == 0 {
			b = p.L.GetTop() - a
		}
		p.m.charge(p.L, ElementBytes*int64(b))
	case lua.OP_SETTABLE:
		if t, ok := p.L.Get(a + 1).(*lua.LTable); ok {
			p.entry(t, p.operand(frame, b))
		}
	case lua.OP_SETTABLEKS:
		if t, ok := p.L.Get(a + 1).(*lua.LTable); ok {
			p.entry(t, p.operand(frame, b))
		}
	case lua.OP_SETGLOBAL:
		p.m.charge(p.L, stringBytes)
	case lua.OP_CALL, lua.OP_TAILCALL, lua.OP_VARARG, lua.OP_TFORLOOP:
		top := frame.base() + p.L.GetTop()
		if top > p.top {
			p.m.charge(p.L, ElementBytes*int64(top-p.top))
			p.top = top
		}
	}
}

// operand is a register's value, or a constant that is a number or a string; others are nil.
func (p *stepper) operand(f frame, rk int) lua.LValue {
	if rk < 1<<8 {
		return p.L.Get(rk + 1)
	}
	return f.constant(rk - 1<<8)
}

// entry counts a table's entry: all those before it too, where it becomes an element far behind the last.
func (p *stepper) entry(t *lua.LTable, key lua.LValue) { p.m.charge(p.L, entryBytes(t, key)) }

func entryBytes(t *lua.LTable, key lua.LValue) int64 {
	n, ok := key.(lua.LNumber)
	fields := reflect.ValueOf(t).Elem()
	if !ok || n < 1 || n >= lua.LNumber(lua.MaxArrayIndex) || n != lua.LNumber(int(n)) {
		switch {
		case !ok && t.RawGet(key) != lua.LNil:
			return 0
		case fields.Field(frameFields.keys).Len() == 0:
			if fields.Field(frameFields.array).Cap() > 0 {
				return firstKey + lateKeys
			}
			return firstKey
		}
		return KeyBytes
	}
	array := fields.Field(frameFields.array)
	switch room := array.Cap(); {
	case int(n) <= room:
		return 0
	case room == 0:
		return firstElement + ElementBytes*int64(n)
	default: // a larger one, beside the old one
		return ElementBytes * (int64(n) + int64(room)/4)
	}
}
