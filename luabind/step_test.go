package luabind

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
)

// TestRecordedTrainingPeak: a compiled training step is one node, and writes the new state over the old one, though it
// looks up words and labels, which may fail: all indices are checked before.
func TestRecordedTrainingPeak(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	s := newTestState(t)
	got := asked(t, s, `
		local nn, optim = mx.nn, mx.optimizers
		local model = nn.Sequential(nn.Embedding(2000, 256), nn.Linear(256, 256), nn.relu, nn.Linear(256, 10))
		local optimizer = optim.Adam({learning_rate = 1e-3})
		local x, y = mx.random.randint(0, 2000, {32}), mx.random.randint(0, 10, {32})
		optimizer:init(model:trainable_parameters())
		mx.eval(model:parameters(), optimizer.state, x, y)
		local function loss(m, x, y) return nn.losses.cross_entropy(m(x), y, {reduction = "mean"}) end
		local vg = nn.value_and_grad(model, loss)
		local state = {model, optimizer.state}
		local step = mx.compile(function(x, y)
			local l, g = vg(model, x, y)
			optimizer:update(model, g)
			return l
		end, {inputs = state, outputs = state})
		for i = 1, 12 do
			if i == 5 then
				collectgarbage()
				mx.reset_peak_memory()
			end
			mx.eval(step(x, y), state)
		end
		local over = (mx.get_peak_memory() - mx.get_active_memory()) / 2^20
		return over .. " " .. step:explain():match("recorded: [0-9]+ calls as one node")`)
	var over float64
	var text string
	n, err := fmt.Sscanf(got.String(), "%f %s", &over, &text)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, "recorded:", text)
	require.Less(t, over, 3.5, "MiB: the gradient of the table takes 2")
}

// TestStepsNearTheLimit: calls that change inputs in place are recorded too where most of the memory is taken.
func TestStepsNearTheLimit(t *testing.T) {
	withDevice(t, metal.DeviceOptions{MemoryLimit: 16 << 20})
	require.NoError(t, runLua(t, `
		local held, x, y = mx.arange(3 * 1024 * 1024), mx.zeros({64, 64}), mx.zeros({64, 64})
		local row = mx.ones({1, 64})
		mx.eval(held, x, y, row)
		local step = mx.compile(function(x, y, i)
			x = mx.slice_update(x * 2, row, i, {0})
			return x, mx.slice_update(y + x, row, i, {0})
		end)
		for k = 1, 6 do
			x, y = step(x, y, mx.array({k}, mx.int32))
			mx.eval(x, y)
		end
		assert(x:sum():item() == 64 * 63 and y[6]:sum():item() == 64)
		assert(step:explain():find("recorded: [0-9]+ calls as one node"), step:explain())`))
}
