package luabind

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// steppers are programs that define step(i): loops as users write them, which evaluate one of the things that they
// hold. The memory that they need, and what a step costs, must not depend on how many steps came before.
var steppers = []struct{ name, program string }{
	{"only the loss", adam + `
function step(i) local loss = train(i) mx.eval(loss) last = loss end`},
	{"only w", adam + `
function step(i) train(i) mx.eval(w) end`},
	{"only the logits, holding m and v", adam + `
function step(i) train(i) local logits = mx.matmul(x, w) mx.eval(logits) last = logits end`},
	{"everything, compiled", adam + `
local compiled = mx.compile(function(w0, m0, v0) w, m, v = w0, m0, v0 local loss = train(1) return loss, w, m, v end)
function step(i) local loss loss, w, m, v = compiled(w, m, v) mx.eval(loss) last = loss end`},
	{"a KV cache, only the output", `
local width, room = 8, 64
local keys, values = mx.zeros({room, width}), mx.zeros({room, width})
function step(i)
  local q = mx.sin(mx.arange(width) * 0.1 + i)
  local at = i % room
  keys = keys:at(at):set(q * 0.5)
  values = values:at(at):set(q + 1)
  local weights = mx.softmax(mx.matmul(keys, q), -1)
  local out = mx.matmul(weights, values)
  mx.eval(out)
  last = out
end`},
	{"a recurrent state, only the output", `
local state = mx.zeros({4, 16})
local decay = mx.sigmoid(mx.arange(16) * 0.1)
function step(i)
  local x = mx.cos(mx.arange(16) + i)
  state = state * decay + mx.tanh(x)
  local y = mx.sum(state * x, 0)
  mx.async_eval(y)
  last = y
  if i % 10 == 0 then mx.eval(last) end
end`},
	{"a state that grows by views of itself", `
local x = mx.arange(64):astype(mx.float32)
function step(i)
  x = x:reshape({8, 8}).T:reshape({64}) + 1
  local top = x["0:4"]
  mx.eval(top)
  last = top
end`},
}

// adam is a linear model with Adam's state, written out.
const adam = `
x = mx.sin(mx.arange(12 * 4)):reshape({12, 4})
local target = mx.cos(mx.arange(12 * 3)):reshape({12, 3})
w, m, v = mx.zeros({4, 3}), mx.zeros({4, 3}), mx.zeros({4, 3})
local gradient = mx.value_and_grad(function(w) return mx.sum((mx.matmul(x, w) - target) ^ 2) end)
function train(i)
  local loss, g = gradient(w)
  m = m * 0.9 + g * 0.1
  v = v * 0.999 + g * g * 0.001
  w = w - m / (mx.sqrt(v) + 1e-8) * 0.01
  return loss
end
`

// stepping is a state with one of the programs.
type stepping struct {
	s    *State
	step lua.LValue
}

func newStepping(t *testing.T, program string) *stepping {
	t.Helper()
	s := New(Options{Stdout: &strings.Builder{}})
	t.Cleanup(s.Close)
	_, err := s.Run(context.Background(), strings.NewReader(program), "step.lua")
	require.NoError(t, err)
	return &stepping{s, s.Global("step")}
}

// run is step(i), and all that it handed over.
func (p *stepping) run(t *testing.T, i int) {
	t.Helper()
	_, err := p.s.Call(context.Background(), p.step, lua.LNumber(i))
	require.NoError(t, err)
	require.NoError(t, tensor.Synchronize(context.Background()))
}

// steps is how many steps the tests take.
func steps() int {
	switch {
	case *fire:
		return 10_000
	case testing.Short():
		return 300
	}
	return 2000
}

// TestFireMemory: after some steps, each gives the device as many commands as the one before, and what is alive when
// the garbage is gone stays the same.
func TestFireMemory(t *testing.T) {
	onlyMemory(t)
	for _, c := range steppers {
		t.Run(c.name, func(t *testing.T) {
			dev, drv := withDevice(t, metal.DeviceOptions{})
			p := newStepping(t, c.program)
			const settled, period = 80, 80 // multiples of the programs' own periods, and of 16: how often they look
			var perPeriod, live, buffers int64
			for i := 1; i <= steps(); i++ {
				p.run(t, i)
				if i%period != 0 || i < settled {
					continue
				}
				n := drv.dispatches.Swap(0)
				if i == settled {
					continue
				}
				if perPeriod == 0 {
					perPeriod = n
				}
				require.Equal(t, perPeriod, n, "commands of steps %d to %d", i-period+1, i)
				if i == 2*period || i == steps()/period*period {
					dev.Collect(context.Background())
					m := dev.Memory()
					if live == 0 {
						live, buffers = m.Active, int64(m.Buffers)
					}
					require.Equal(t, []int64{live, buffers}, []int64{m.Active, int64(m.Buffers)}, "after step %d: %v", i, dev.Live())
				}
			}
		})
	}
}

// TestFireGrowingInputs: inputs that grow by one element with each step leave memory of ever new sizes behind.
func TestFireGrowingInputs(t *testing.T) {
	dev, _ := withDevice(t, metal.DeviceOptions{})
	p := newStepping(t, `
function step(i)
  mx.scope(function()
    local x = mx.zeros({i, 1024}) + 1
    local y = x * 2
    mx.eval(x, y, mx.sum(y))
  end)
end`)
	n := steps() / 5
	var most, sum int64
	for i := 1; i <= n; i++ {
		p.run(t, i)
		sum += 2 * 4096 * int64(i)
		m := dev.Memory()
		most = max(most, m.Active+m.Cache)
	}
	require.Less(t, most, int64(40<<20)+4*4096*int64(n), "of %d", sum)
	if n >= 400 {
		require.Greater(t, sum, 4*most)
	}
}

// TestFireScope: when a scope has closed, nothing that was made in it is alive, and mx.memory.live names the lines of
// what is.
func TestFireScope(t *testing.T) {
	dev, _ := withDevice(t, metal.DeviceOptions{})
	require.NoError(t, runLua(t, `
assert(#mx.memory.live() == 0)
mx.scope(function()
  local x = mx.arange(1000) * 1.5
  local y = mx.softmax(x:reshape({10, 100}), -1)
  mx.eval(x, y, mx.sum(y))
  local live = mx.memory.live()
  assert(#live >= 2, #live)
  local lines = {}
  for _, b in ipairs(live) do lines[b.line or b.op] = b end
  local x, y = lines["fire.lua:4"], lines["fire.lua:5"]
  assert(x.op == "multiply" and x.dtype == "float32" and #x.shape == 1 and x.shape[1] == 1000 and x.nbytes >= 4000)
  assert(y.dtype == "float32" and y.shape[1] == 10 and y.shape[2] == 100)
end)
local live = mx.memory.live()
assert(#live == 0, live[1] and live[1].op)
local held
local kept = mx.scope(function() held = mx.keep(mx.ones({100}) * 2) local u = held + 1 mx.eval(u) return u end)
local live = mx.memory.live()
assert(#live == 2 and live[1].op == "multiply" and live[2].op == "add" and live[2].line == "fire.lua:18")
kept:free()
assert(#mx.memory.live() == 1)
held:free()
assert(#mx.memory.live() == 0)
`))
	dev.Collect(context.Background())
	require.Zero(t, dev.Memory().Buffers)
}

// prefill is 40 layers of six intermediates each, none of which is dropped by hand.
const prefill = `
local rows, width, layers = ...
local x = mx.zeros({rows, width}) + 1
for layer = 1, layers do
  local scores = x * 0.5 + layer
  local e = mx.exp(scores - mx.max(scores, -1, true))
  local p = e / mx.sum(e, -1, true)
  x = p * width
end
mx.eval(x)
assert(math.abs(mx.max(x):item() - 1) < 1e-5 and math.abs(mx.min(x):item() - 1) < 1e-5)
`

// TestFirePrefill: an eager prefill whose intermediates come to four times the memory limit. The planner learns by a
// look that nobody can read them: no collection is forced.
func TestFirePrefill(t *testing.T) {
	const width = 1024
	rows, layers, limit := 256, 40, int64(60<<20) // 6 arrays of 1 MiB in each layer
	switch {
	case *fire:
		rows, limit = 8704, 2<<30 // of 34 MiB
	case testing.Short():
		layers, limit = 10, 15<<20
	}
	require.GreaterOrEqual(t, int64(rows*width*4*layers*6), 4*limit-limit/20)
	dev, _ := withDevice(t, metal.DeviceOptions{MemoryLimit: limit})
	start := time.Now()
	require.NoError(t, runLua(t, prefill, lua.LNumber(rows), lua.LNumber(width), lua.LNumber(layers)))
	m := dev.Memory()
	require.LessOrEqual(t, m.Peak, limit)
	require.Zero(t, m.Collections)
	t.Logf("peak %d MiB, %v", m.Peak>>20, time.Since(start))
}

// projected is prefill with what makes a prefill long: each layer multiplies its input by four matrices of weights, as
// the projections of an attention layer do.
const projected = `
local rows, width, layers = ...
local x = mx.zeros({rows, width}) + 1
local weights = {}
for i = 1, 4 do weights[i] = mx.zeros({width, width}) + 1 / width end
mx.eval(weights)
for layer = 1, layers do
  local q, k, v = mx.matmul(x, weights[1]), mx.matmul(x, weights[2]), mx.matmul(x, weights[3])
  local scores = q * k + layer
  local e = mx.exp(scores - mx.max(scores, -1, true))
  local p = e / mx.sum(e, -1, true)
  x = mx.matmul(p * v * width, weights[4])
end
mx.eval(x)
assert(math.abs(mx.max(x):item() - 1) < 1e-3 and math.abs(mx.min(x):item() - 1) < 1e-3)
`

// TestFireLargeHeap is TestFirePrefill in a program with a Go heap of 1 GiB, in one chain, which no two threads can
// mark: a collection takes most of a second. The limit cannot hold all outputs whose handles may be alive, so that one
// is needed, and one must do; it takes under 10 % of the time. With -fire only: it takes memory and time.
func TestFireLargeHeap(t *testing.T) {
	if !*fire {
		t.Skip("with -fire only")
	}
	type node struct {
		next *node
		_    [48]byte
	}
	var heap *node
	for range (1 << 30) / 64 {
		heap = &node{next: heap}
	}
	dev, _ := withDevice(t, metal.DeviceOptions{MemoryLimit: 2 << 30})
	run := func(program string) metal.Stats {
		before, start := dev.Memory(), time.Now()
		require.NoError(t, runLua(t, program, lua.LNumber(8704), lua.LNumber(1024), lua.LNumber(40)))
		m, took := dev.Memory(), time.Since(start)
		m.CollectTime -= before.CollectTime
		m.Collections -= before.Collections
		t.Logf("%d collections, %v of %v, peak %d MiB", m.Collections, m.CollectTime, took, m.Peak>>20)
		if program == projected {
			require.Less(t, m.CollectTime, took/10)
		}
		return m
	}
	require.EqualValues(t, 1, run(prefill).Collections)
	require.LessOrEqual(t, run(projected).Collections, int64(3))
	require.NotNil(t, heap)
}
