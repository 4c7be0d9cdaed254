//go:build unix

package luabind

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// hostPrograms are programs of which BenchmarkHost measures the function run.
var hostPrograms = map[string]string{
	"1000 small ops": `
		local x = mx.random.normal({16})
		local f = mx.compile(function(u) for _ = 1, 500 do u = u * 1.001 + 0.5 end return u end)
		function run() mx.eval(f(x)) end`,
	"token": `
		local model = lm.load(dir)
		mx.eval(model:parameters())
		local step, caches = lm.step(model), lm.caches(model)
		local prompt = {}
		for i = 1, 64 do prompt[i] = i * 7 % 500 end
		local token = mx.argmax(lm.prefill(model, mx.array({prompt}, mx.int32), caches), -1)
		mx.eval(token, caches:arrays())
		function run()
			token = mx.argmax(step(token, caches), -1)
			mx.eval(token, caches:arrays())
		end`,
	"training step": `
		local model = nn.Sequential(nn.Linear(64, 64), nn.relu, nn.Linear(64, 64), nn.relu, nn.Linear(64, 10))
		local optimizer = optim.Adam({learning_rate = 1e-3})
		local x, y = mx.random.normal({32, 64}), mx.random.randint(0, 10, {32})
		mx.eval(model:parameters(), x, y)
		local function loss(m, x, y) return nn.losses.cross_entropy(m(x), y, {reduction = "mean"}) end
		local vg = nn.value_and_grad(model, loss)
		local state = {model, optimizer.state}
		optimizer:init(model:trainable_parameters())
		local step = mx.compile(function(x, y)
			local l, g = vg(model, x, y)
			optimizer:update(model, g)
			return l
		end, {inputs = state, outputs = state})
		function run() mx.eval(step(x, y), state) end`,
	"functional training step": `
		local p = {}
		for i = 1, 3 do p[i] = {w = mx.random.normal({64, 64}), b = mx.zeros({64})} end
		local function loss(p, x, y)
			for i = 1, 3 do x = mx.maximum(mx.matmul(x, p[i].w) + p[i].b, 0) end
			return mx.mean(mx.square(x - y))
		end
		local function zeros(t)
			return utils.tree_map(mx.zeros_like, t)
		end
		local m, v, vg = zeros(p), zeros(p), mx.value_and_grad(loss)
		local x, y = mx.random.normal({32, 64}), mx.random.normal({32, 64})
		mx.eval(p, m, v, x, y)
		local step = mx.compile(function(p, m, v, x, y)
			local l, g = vg(p, x, y)
			m = utils.tree_map(function(m, g) return 0.9 * m + 0.1 * g end, m, g)
			v = utils.tree_map(function(v, g) return 0.999 * v + 0.001 * g * g end, v, g)
			p = utils.tree_map(function(p, m, v) return p - 1e-3 * m / (mx.sqrt(v) + 1e-8) end, p, m, v)
			return l, p, m, v
		end)
		function run()
			local l
			l, p, m, v = step(p, m, v, x, y)
			mx.eval(l, p, m, v)
		end`,
}

// BenchmarkHost is how long the host takes, from the call in Lua until a device that takes no time has run what it was
// given: compiled functions, with and without the fusion of ops.
//
//	go test ./luabind -run '^$' -bench Host -benchtime 300x
func BenchmarkHost(b *testing.B) {
	defer tensor.Poison(tensor.Poison(false))
	dir := filepath.Join(b.TempDir(), "model")
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	_, err := s.RunFile(b.Context(), "testdata/lm/random.lua", lua.LString(dir),
		lua.LString("../text/tokenizer/testdata/llama3.json"), lua.LString("12"), lua.LString("64"), lua.LString("64"),
		lua.LString("512"))
	s.Close()
	require.NoError(b, err)
	before, err := tensor.MetalDevice(tensor.DeviceID{Kind: tensor.CPU})
	require.NoError(b, err)
	null := drivertest.NewNull(soft.New(soft.Options{}))
	dev, err := metal.NewDevice(null, metal.DeviceOptions{})
	require.NoError(b, err)
	tensor.SetDevice(dev)
	defer tensor.SetDevice(before)
	for _, fused := range []bool{true, false} {
		for name, program := range hostPrograms {
			if !fused {
				name += ", each op by itself"
			}
			b.Run(name, func(b *testing.B) {
				defer tensor.SetFusion(tensor.SetFusion(fused))
				s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
				defer s.Close()
				run := func(text string, n int) {
					_, err := s.Run(b.Context(), strings.NewReader(text), "host.lua", lua.LString(dir), lua.LNumber(n))
					require.NoError(b, err)
				}
				run(`local mx, lm, dir = require("mx"), require("lm"), ...
					local nn, optim, utils = mx.nn, mx.optimizers, mx.utils
					`+program+`
					for _ = 1, 20 do run() end`, 0)
				from, before := null.Commands(), processorTime(b)
				b.ResetTimer()
				run(`local _, n = ... for _ = 1, n do run() end`, b.N)
				b.ReportMetric((processorTime(b)-before)*1e6/float64(b.N), "cpu-us/op")
				b.ReportMetric(float64(null.Commands()-from)/float64(b.N), "commands/op")
			})
		}
	}
}
