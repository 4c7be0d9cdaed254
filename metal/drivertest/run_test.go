package drivertest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
)

// The suite is tried on a Fake whose kernels are Go functions: a right one passes, and each of a list of wrong ones
// fails the case that is there for it.

func get(b []byte, i int) uint32    { return binary.LittleEndian.Uint32(b[4*i:]) }
func put(b []byte, i int, v uint32) { binary.LittleEndian.PutUint32(b[4*i:], v) }

// each is a body that runs f for every thread with the bytes of all arguments.
func each(f func(a [][]byte, c metal.Command, x, y, z int) error) Body {
	return func(_ context.Context, c metal.Command) error {
		var a [][]byte
		for _, arg := range c.Args {
			a = append(a, ArgBytes(arg))
		}
		for z := range c.Grid.Z {
			for y := range c.Grid.Y {
				for x := range c.Grid.X {
					if err := f(a, c, x, y, z); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
}

func turn(a [][]byte, c metal.Command, x, _, _ int) error {
	tg := c.Threadgroup.X
	base := x / tg * tg
	put(a[1], x, get(a[0], base+min(tg, c.Grid.X-base)-1-(x-base)))
	return nil
}

func bound(kernel, param string, at uint32, b []byte) error {
	if int64(at) < int64(len(b)/4) {
		return nil
	}
	return fmt.Errorf("%s: %s[%d] is out of bounds: %d elements", kernel, param, at, len(b)/4)
}

func spin(ctx context.Context, _ metal.Command) error { <-ctx.Done(); return context.Cause(ctx) }

var tallyMu sync.Mutex

// model is a right driver for the suite's kernels.
func model() *Fake {
	add := Kernel("add", each(func(a [][]byte, _ metal.Command, x, _, _ int) error {
		if x < int(get(a[3], 0)) {
			put(a[2], x, math.Float32bits(math.Float32frombits(get(a[0], x))+math.Float32frombits(get(a[1], x))))
		}
		return nil
	}), "a:rk", "b:rk", "out:w", "n:rc")
	add.Params[3].MinBytes = 4
	turnKernel := Kernel("turn", each(turn), "in:r", "out:w")
	turnKernel.StaticTG = 1024
	var names []string
	for i := range 31 {
		names = append(names, fmt.Sprintf("x%d:r", i))
	}
	tooLarge := Kernel("too_large", nil, "out:w")
	tooLarge.StaticTG = 32772
	f := NewFake(add, turnKernel, tooLarge,
		Kernel("too_many", nil, append(names[:31:31], "out:w")...),
		Kernel("many", each(func(a [][]byte, _ metal.Command, _, _, _ int) error {
			sum := uint32(0)
			for _, b := range a[:30] {
				sum += get(b, 0)
			}
			put(a[30], 0, sum)
			return nil
		}), append(names[:30:30], "out:w")...),
		Kernel("large", each(func(a [][]byte, _ metal.Command, x, _, _ int) error {
			put(a[0], x, uint32(x)+5)
			return nil
		}), "out:w"),
		Kernel("turn_dynamic", each(turn), "in:r", "out:w", "s:rwt"),
		Kernel("next", each(func(a [][]byte, _ metal.Command, x, _, _ int) error {
			put(a[1], x, step(get(a[0], x)))
			return nil
		}), "in:rk", "out:w"),
		Kernel("change_input", each(func(a [][]byte, _ metal.Command, _, _, _ int) error {
			if get(a[2], 0) < 4 {
				return errors.New("change_input: write of in[0], which is an input")
			}
			put(a[1], 0, 7)
			return nil
		}), "in:rk", "out:w", "way:rc"),
		Kernel("twice_plus_one", each(func(a [][]byte, _ metal.Command, x, _, _ int) error {
			put(a[0], x, 2*get(a[0], x)+1)
			return nil
		}), "x:rw"),
		Kernel("place", each(func(a [][]byte, c metal.Command, x, y, z int) error {
			g, t := c.Grid, c.Threadgroup
			at := 4 * ((z*g.Y+y)*g.X + x)
			for i, v := range [4][3]int{
				{x, y, z}, {x % t.X, y % t.Y, z % t.Z}, {x / t.X, y / t.Y, z / t.Z},
				{min(t.X, g.X-x/t.X*t.X), min(t.Y, g.Y-y/t.Y*t.Y), min(t.Z, g.Z-z/t.Z*t.Z)},
			} {
				put(a[0], at+i, uint32(v[0]|v[1]<<8|v[2]<<16))
			}
			return nil
		}), "out:w"),
		Kernel("tally", each(func(a [][]byte, _ metal.Command, x, _, _ int) error {
			tallyMu.Lock()
			defer tallyMu.Unlock()
			put(a[0], x%3, get(a[0], x%3)+uint32(x))
			return nil
		}), "count:a"),
		Kernel("spin", spin, "flag:a"), Kernel("count_forever", spin, "x:rw"),
		Kernel("store_at", each(func(a [][]byte, _ metal.Command, _, _, _ int) error {
			at := get(a[1], 0)
			if err := bound("store_at", "target", at, a[0]); err != nil {
				return err
			}
			put(a[0], int(at), 1)
			return nil
		}), "target:w", "at:rc"),
		Kernel("load_at", each(func(a [][]byte, _ metal.Command, _, _, _ int) error {
			return bound("load_at", "origin", get(a[1], 0), a[0])
		}), "origin:r", "at:rc", "out:w"),
	).Auto()
	f.Reverse, f.Library, f.Forms = true, Products{}, &Forms{}
	f.OnAlloc = func(n int64) error {
		if n > 1<<30 {
			return errors.New("too much")
		}
		return nil
	}
	f.OnCompile = func(_ context.Context, s metal.Source) error {
		if strings.Contains(s.Text, "wrong_input") {
			return errors.New("write to 'in', which is an input")
		}
		if strings.Contains(s.Text, "undeclared") {
			return errors.New("3:12: undeclared_one\n4:16: undeclared_two")
		}
		if _, value, ok := strings.Cut(s.Text, "out[i] = "); ok && s.Label == "set" {
			var v uint32
			_, err := fmt.Sscan(strings.TrimSuffix(strings.Fields(value)[0], ";"), &v)
			f.Define(Kernel("set", each(func(a [][]byte, _ metal.Command, x, _, _ int) error {
				put(a[0], x, v)
				return nil
			}), "out:w"))
			return err
		}
		return nil
	}
	return f
}

func TestSuitePassesOnTheModel(t *testing.T) {
	Run(t, func(*testing.T) metal.Driver { return model() })
}

// failures is a testing.T that only remembers.
type failures struct {
	mu   sync.Mutex
	text string
}

func (f *failures) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text += fmt.Sprintf(format, args...)
}

func (f *failures) FailNow() { runtime.Goexit() }

// wrong is a driver with a defect.
type wrong struct {
	*Fake
	alloc  func(metal.Memory) metal.Memory
	submit func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result))
	info   func(*metal.Info)
}

func (w wrong) Alloc(n int64) (metal.Memory, error) {
	m, err := w.Fake.Alloc(n)
	if err == nil && w.alloc != nil {
		m = w.alloc(m)
	}
	return m, err
}

func (w wrong) Info() metal.Info {
	i := w.Fake.Info()
	if w.info != nil {
		w.info(&i)
	}
	return i
}

func (w wrong) Submit(q int, cb *metal.CommandBuffer, done func(metal.Result)) {
	if w.submit != nil {
		w.submit(w.Fake, q, cb, done)
		return
	}
	w.Fake.Submit(q, cb, done)
}

// forgetful says of an interrupted command buffer that nothing ran.
func forgetful() wrong {
	return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
		f.Submit(q, cb, func(r metal.Result) {
			clear(r.Ran)
			done(r)
		})
	}}
}

// persistent runs command buffers of one command also after an interruption.
func persistent() wrong {
	return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
		f.Submit(q, cb, func(r metal.Result) {
			if len(r.Ran) == 1 {
				r = metal.Result{Err: f.command(bg, cb.Commands()[0])}
			}
			done(r)
		})
	}}
}

// gateless runs commands whatever their words say.
func gateless() wrong {
	return wrong{Fake: model(), submit: func(f *Fake, _ int, cb *metal.CommandBuffer, done func(metal.Result)) {
		for _, c := range cb.Commands() {
			_ = f.command(cb.Context(), c)
		}
		done(metal.Result{})
	}}
}

// unnoted leaves no note of commands that have failed.
func unnoted() wrong {
	return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
		cmds := cb.Commands()
		for i := range cmds {
			cmds[i].Fault = metal.Range{}
		}
		f.Submit(q, cb, done)
	}}
}

// unmet runs command buffers as soon as it can, whatever they come after.
func unmet() wrong {
	var running sync.Mutex
	return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
		go func() {
			time.Sleep(time.Duration(2-q) * time.Millisecond)
			running.Lock()
			r := f.run(cb)
			running.Unlock()
			done(r)
		}()
	}}
}

// early makes calls before anything else runs.
func early() wrong {
	return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
		for _, c := range cb.Commands() {
			if c.Kind == metal.CmdCall {
				_ = f.command(bg, c)
			}
		}
		f.Library = nothing{f.Library}
		f.Submit(q, cb, done)
	}}
}

// nothing is a library that says that it computes.
type nothing struct{ Library }

func (nothing) Call(metal.Routine, [][]byte, [][]byte) error { return nil }

// defect is a wrong driver and the case that finds it.
type defect struct {
	defect, finds string
	driver        func() wrong
}

// redefine is a driver with another kernel.
func redefine(k FakeKernel) wrong {
	f := model()
	f.Define(k)
	return wrong{Fake: f}
}

// defectsOfInputs and of how command buffers end.
func defectsOfInputs() []defect {
	return []defect{
		{"inputs that can be written", "inputs are read-only", func() wrong {
			return redefine(Kernel("change_input", each(func(a [][]byte, _ metal.Command, _, _, _ int) error {
				put(a[0], 0, 7)
				return nil
			}), "in:rk", "out:w", "way:rc"))
		}},
		{"writes of inputs that compile", "inputs are read-only", func() wrong {
			f := model()
			f.Define(Kernel("wrong_input", nil, "in:rk", "out:w"))
			f.OnCompile = nil
			return wrong{Fake: f}
		}},
		{"no notion of const", "views of one buffer", func() wrong {
			return redefine(Kernel("next", nil, "in:r", "out:w"))
		}},
		{"a stop of what has run to its end", "stopped", func() wrong {
			return wrong{Fake: model(), submit: func(_ *Fake, _ int, cb *metal.CommandBuffer, done func(metal.Result)) {
				done(metal.Result{Ran: slices.Repeat([]bool{true}, len(cb.Commands())), Midway: -1})
			}}
		}},
		{"one fault for all", "a fault is one command's", func() wrong {
			return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
				f.Submit(q, cb, func(r metal.Result) {
					if len(r.Failed) > 0 {
						r = metal.Result{Err: r.Failed[0].Err}
					}
					done(r)
				})
			}}
		}},
	}
}

// TestSuiteFindsDefects: for each defect, the case named must fail.
func TestSuiteFindsDefects(t *testing.T) {
	for _, c := range append(append(defectsOfInputs(), defectsOfSteps()...), []defect{
		{"no version", "info", func() wrong {
			return wrong{Fake: model(), info: func(i *metal.Info) { i.Version = "" }}
		}},
		{"other limits", "info", func() wrong {
			return wrong{Fake: model(), info: func(i *metal.Info) { i.Limits.Buffers = 64 }}
		}},
		{"memory not zeroed", "alloc", func() wrong {
			return wrong{Fake: model(), alloc: func(m metal.Memory) metal.Memory { m.Host[0] = 1; return m }}
		}},
		{"one error at a time", "compile errors", func() wrong {
			f := model()
			f.OnCompile = func(context.Context, metal.Source) error { return errors.New("undeclared_one") }
			return wrong{Fake: f}
		}},
		{"input said to be written", "reflection", func() wrong {
			return redefine(Kernel("add", nil, "a:rw", "b:rk", "out:w", "n:rc"))
		}},
		{"no 31st buffer", "edges of the limits", func() wrong {
			return redefine(Kernel("many", nil, "x0:r", "out:w"))
		}},
		{"nothing runs", "dispatch", func() wrong { return redefine(Kernel("add", nil, "a:rk", "b:rk", "out:w", "n:rc")) }},
		{"bound ignored", "dispatch", func() wrong {
			return redefine(Kernel("add", each(func(a [][]byte, _ metal.Command, x, _, _ int) error {
				if 4*x < len(a[2]) {
					put(a[2], x, 1)
				}
				return nil
			}), "a:rk", "b:rk", "out:w", "n:rc"))
		}},
		{"full threadgroups at the edge", "threadgroup memory", func() wrong {
			return redefine(Kernel("turn", each(func(a [][]byte, c metal.Command, x, _, _ int) error {
				if from := x/256*256 + 255 - x%256; from < c.Grid.X {
					put(a[1], x, get(a[0], from))
				}
				return nil
			}), "in:r", "out:w"))
		}},
		{"lost updates", "atomics", func() wrong {
			return redefine(Kernel("tally", each(func(a [][]byte, _ metal.Command, x, _, _ int) error {
				put(a[0], x%3, uint32(x))
				return nil
			}), "count:a"))
		}},
		{"commands backwards, barriers ignored", "order in a command buffer", func() wrong {
			return wrong{Fake: model(), submit: func(f *Fake, _ int, cb *metal.CommandBuffer, done func(metal.Result)) {
				cmds := cb.Commands()
				for i := range cmds {
					_ = f.command(cb.Context(), cmds[len(cmds)-1-i])
				}
				done(metal.Result{})
			}}
		}},
		{"half of the queue dropped", "order in a queue", func() wrong {
			return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
				if cb.ID()%2 == 0 {
					done(metal.Result{})
					return
				}
				f.Submit(q, cb, done)
			}}
		}},
		{"no bounds checks", "faults", func() wrong {
			return redefine(Kernel("store_at", each(func([][]byte, metal.Command, int, int, int) error { return nil }),
				"target:w", "at:rc"))
		}},
		{"an interruption that forgets what ran", "interruption", forgetful},
		{"a chain that goes on after an interruption", "interruption", persistent},
		{"cancellation without its reason", "cancel", func() wrong {
			return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
				f.Submit(q, cb, func(r metal.Result) {
					if r.Ran != nil {
						r = metal.Result{Err: errors.New("failed")}
					}
					done(r)
				})
			}}
		}},
		{"gates that are always open", "gates", gateless},
		{"queues that do not meet", "meet", unmet},
		{"a queue that goes on after what was stopped", "meet what did not run", func() wrong {
			return wrong{Fake: model(), submit: func(f *Fake, q int, cb *metal.CommandBuffer, done func(metal.Result)) {
				f.Submit(q, cb, func(r metal.Result) {
					if q == 1 && r.Ran != nil {
						r = metal.Result{}
					}
					done(r)
				})
			}}
		}},
		{"calls before all else", "calls", early},
		{"faults of calls that no gate knows of", "calls behind gates", unnoted},
		{"faults that no gate knows of", "fault word", unnoted},
	}...) {
		t.Run(c.defect, func(t *testing.T) {
			rec, ended := &failures{}, make(chan struct{})
			go func() {
				defer close(ended)
				for _, k := range cases {
					if k.name == c.finds {
						k.on(rec, c.driver())
						return
					}
				}
				rec.Errorf("no case")
			}()
			<-ended
			require.NotEmpty(t, rec.text)
			require.NotEqual(t, "no case", rec.text)
		})
	}
}

func TestFakeIsStrict(t *testing.T) {
	f := NewFake()
	m, err := f.Alloc(10)
	require.NoError(t, err)
	bytes, pieces := f.Allocated()
	require.Equal(t, []int64{10, 1}, []int64{bytes, int64(pieces)})
	f.Free(m)
	require.Panics(t, func() { f.Free(m) })
	_, err = f.Compile(context.Background(), Source("x", "unknown"))
	require.EqualError(t, err, "x: unknown kernel unknown")
	require.NoError(t, f.Close())
	require.Panics(t, func() { f.Free(m) })
}
