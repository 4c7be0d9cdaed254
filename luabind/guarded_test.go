package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// guardedSetup is a training step whose loss, update or whatever else can be stopped: hang() waits for ever once
// hanging is set; and what tells whether a later step that fails is undone.
const guardedSetup = `
nn, optim, data, train = require("mx.nn"), require("mx.optimizers"), require("mx.data"), require("mx.train")
mx.random.seed(1)
function hang() if hanging then stop() while true do end end end
model = nn.Linear(2, 4)
model.extra = mx.ones({1})
opt = optim.SGD(0.1)
function loss(x, y) hang() return nn.losses.cross_entropy(model(x), y, {reduction = "mean"}) end
gradient = nn.value_and_grad(model, loss)
x, good, bad = mx.ones({3, 2}), mx.arange(3), mx.arange(3) * 50
function step(y) local _, g = gradient(x, y) opt:update(model, g) end
function undone()
  hanging = false
  local weight, key = model.weight:tolist(), mx.random.state[1]:tolist()
  step(bad)
  fails("100", function() mx.eval(model:parameters()) end)
  same(model.weight, weight)
  step(good)
  mx.eval(model:parameters())
  assert(not pcall(same, model.weight, weight), "the step has changed nothing")
end
`

// guardedCalls are calls that are stopped while tables, or the random state, hold something else for a time, with what
// has to be so then.
var guardedCalls = []struct{ name, setup, call, after string }{
	{"value_and_grad", "", "step(good)", "undone()"},
	{"checkpoint", "checkpointed = nn.checkpoint(model, function(x) hang() return model(x) end)", "checkpointed(x)",
		"undone()"},
	{"update", `
		slow = optim.Optimizer()
		function slow:init_single() end
		function slow:apply_single(g, p, state) state.seen = g hang() return p end`,
		"slow:update(model, {weight = model.weight})", "assert(not slow.state.weight) undone()"},
	{"tostring", `
		local Slow = nn.class("Slow")
		function Slow:_extra_repr() hang() return "well" end
		m = Slow()`, "print(m)", `hanging = false assert(tostring(m) == "Slow(well)") undone()`},
	{"a loader's key", `
		loader = data.DataLoader(mx.arange(4), 2, {transform = function(x) hang() return x end, key = mx.random.key(5)})
		before = mx.random.state[1]:tolist()`, "loader()()", "same(mx.random.state[1], before) undone()"},
	{"evaluate", "measure = {m = hang} one = function() return ipairs({1}) end",
		"train.evaluate(model, one, measure, {compile = false})", "assert(model.training) undone()"},
	{"load_checkpoint", `
		file = os.tmpname() .. ".safetensors"
		train.save_checkpoint(file, {a = model})
		Slow = nn.class("Slow", nn.Linear)
		function Slow:load_weights(w) nn.Linear.load_weights(self, w) hang() end
		other = Slow(2, 4)
		other.extra = mx.ones({1})
		before = other.weight`, "train.load_checkpoint(file, {a = other})",
		"assert(other.weight == before) os.remove(file) undone()"},
}

// TestStoppedCalls: what ends a host's call, and no pcall catches, ends the functions of the library as an error does.
func TestStoppedCalls(t *testing.T) {
	serial.Because(t, "it stops work at moments that it measures")
	for _, c := range guardedCalls {
		t.Run(c.name, func(t *testing.T) {
			s := newTestState(t)
			run := func(ctx context.Context, text string) error {
				_, err := s.Run(ctx, strings.NewReader(text), "test")
				return err
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s.L.SetGlobal("stop", s.L.NewFunction(func(*lua.LState) int { cancel(); return 0 }))
			require.NoError(t, run(context.Background(), guardedSetup+c.setup))
			require.ErrorIs(t, run(ctx, "hanging = true "+c.call), context.Canceled)
			require.NoError(t, run(context.Background(), c.after))
		})
	}
}

// TestLimitedSteps: so does a limit, of instructions or of memory.
func TestLimitedSteps(t *testing.T) {
	serial.Because(t, "it stops work at moments that it measures")
	limits := Limits{}
	limits.Instructions, limits.Memory = 1<<20, 16<<20
	s := New(Options{Limits: limits})
	t.Cleanup(s.Close)
	run := func(text string) error {
		_, err := s.Run(context.Background(), strings.NewReader(text), "test")
		return err
	}
	s.L.SetGlobal("stop", s.L.NewFunction(func(*lua.LState) int { return 0 }))
	require.NoError(t, run(strings.ReplaceAll(prelude, "local function", "function")))
	require.NoError(t, run(guardedSetup))
	require.ErrorIs(t, run("hanging = true step(good)"), ErrLimit)
	require.NoError(t, run("undone()"))
	err := run(`hang = function() local kept = {} while true do kept[#kept + 1] = ("x"):rep(1000) .. #kept end end
		step(good)`)
	require.ErrorContains(t, err, "memory is full")
	require.NoError(t, run("hang = function() end undone()"))
}
