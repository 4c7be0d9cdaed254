package luabind

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/tensor"
)

// Eager loops, each in a process of its own: the most memory that they hold at a time, and what a round takes, beside
// the same loops whose arrays are freed by hand, or whose functions are compiled.
//
//	go test ./luabind -run '^$' -bench Eager -benchtime 1x

// eagerProgram defines round(i), of which so many are run. a is 4 Mi float32, 16 MiB, where the setup does not say
// otherwise.
type eagerProgram struct {
	name, setup, round string
	rounds             int
	most               float64 // MiB at the peak
	heap               bool    // beside 1 GiB of pointers of the program's own
}

const (
	eagerArray = `a = mx.sin(mx.arange(4 * 1024 * 1024):astype(mx.float32)) `
	eagerGelu  = eagerArray + `local function f(x) local u = x * 2 + 1 return 0.5 * u * (1 + mx.erf(u * 0.707)) end `
	// A perceptron of three layers in batches of 256, with momentum: weights, momenta and a batch take 3.2 MiB.
	eagerMLP = `
		local sizes = {256, 384, 384, 16}
		local p, m = {}, {}
		for i = 1, 3 do
			p[i] = {w = mx.random.normal({sizes[i], sizes[i + 1]}) * 0.05, b = mx.zeros({sizes[i + 1]})}
			m[i] = {w = mx.zeros_like(p[i].w), b = mx.zeros_like(p[i].b)}
		end
		local x, target = mx.random.normal({256, 256}), mx.random.normal({256, 16})
		local function loss(p)
			local h = x
			for i = 1, 3 do
				h = mx.matmul(h, p[i].w) + p[i].b
				if i < 3 then h = nn.gelu(h) end
			end
			return mx.mean((h - target) ^ 2)
		end
		local gradient = mx.value_and_grad(loss)
		mx.eval(p, m, x, target)
		function step()
			local l, g = gradient(p)
			for i = 1, 3 do
				for k, v in pairs(g[i]) do
					m[i][k] = m[i][k] * 0.9 + v
					p[i][k] = p[i][k] - m[i][k] * 0.01
				end
			end
			return l
		end `
)

var eagerPrograms = []eagerProgram{
	{"result dropped", eagerArray, `local y = mx.exp(a) mx.eval(y)`, 300, 40, false},
	{"result dropped, big heap", eagerArray, `local y = mx.exp(a) mx.eval(y)`, 300, 40, true},
	{"result dropped, freed", eagerArray, `local y = mx.exp(a) mx.eval(y) y:free()`, 300, 40, false},
	{"running sum", eagerArray + `s = a`, `s = s * 0.5 + a mx.eval(s)`, 3000, 40, false},
	{"running sum, freed", eagerArray + `s = a * 1`,
		`local h = s * 0.5 local r = h + a h:free() s:free() s = r mx.eval(s)`, 3000, 40, false},
	{"index assignment", eagerArray + `y = a * 1 mx.eval(y)`, `y[0] = i mx.eval(y)`, 100, 40, false},
	{"update of a part", eagerArray + `c, u = a * 1, mx.ones({1024}) mx.eval(c, u) a = nil`,
		`c = mx.slice_update(c, u, mx.array({i * 1024}, mx.int32), {0}) mx.eval(c)`, 1000, 20, false},
	{"function of steps", eagerGelu, `local y = f(a) mx.eval(y)`, 30, 40, false},
	{"function of steps, compiled", eagerGelu + `f = mx.compile(f)`, `local y = f(a) mx.eval(y)`, 30, 40, false},
	{"variance", eagerArray, `local y = mx.var(a) mx.eval(y)`, 20, 40, false},
	{"variance, freed", eagerArray, `local y = mx.var(a) mx.eval(y) y:free()`, 20, 40, false},
	{"async", `a = mx.sin(mx.arange(1024 * 1024):astype(mx.float32))`, `local y = mx.exp(a) mx.async_eval(y)`,
		2000, 80, false},
	{"training", eagerMLP, `mx.eval(step(), p, m)`, 1500, 0, false},
	{"training, big heap", eagerMLP, `mx.eval(step(), p, m)`, 1500, 0, true},
	{"training, one step", eagerMLP, `collectgarbage() mx.eval(step(), p, m)`, 20, 0, false},
	{"training, loss read now and then", eagerMLP,
		`local l = step() mx.eval(p, m) if i % 100 == 0 then l:item() end`, 1500, 0, false},
	{"hybrid", "--eager", `local x = forward() mx.eval(x)`, 100, 0, false},
	{"hybrid, compiled", "--compiled", `local x = forward() mx.eval(x)`, 100, 0, false},
}

// eagerResult is what a process says of its program.
type eagerResult struct {
	Peak        float64 // MiB
	Round       float64 // ms
	Collections int64   // garbage collections that the engine asked for
}

// eagerTarget is what the pointers of a big heap point at.
var eagerTarget int

// eagerVariable is the environment variable that names the program which a process of this test runs.
const eagerVariable = "MLXLUA_TEST_EAGER"

// TestEagerProcess is the process.
func TestEagerProcess(t *testing.T) {
	serial.Because(t, "it is a process of its own, which it measures")
	name := os.Getenv(eagerVariable)
	if name == "" {
		t.Skip("other tests run it in a process")
	}
	for _, p := range eagerPrograms {
		if p.name != name {
			continue
		}
		b, err := json.Marshal(p.run(t))
		require.NoError(t, err)
		fmt.Printf("eager %s\n", b)
	}
}

func (p *eagerProgram) run(t *testing.T) eagerResult {
	ctx := context.Background()
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.Close()
	setup := p.setup
	var args []lua.LValue
	if strings.HasPrefix(setup, "--") {
		if args = hybridLayers(4); setup == "--eager" {
			args = append(args, lua.LString(setup))
		}
		setup = hybridText(t, false) + decoding + " start(2) "
	}
	_, err := s.Run(ctx, strings.NewReader(setup+`
		if a then mx.eval(a) end
		function rounds(n) for i = 1, n do `+p.round+` end end
		function begin() collectgarbage() mx.reset_peak_memory() end`), "eager.lua", args...)
	require.NoError(t, err)
	call := func(name string, args ...lua.LValue) {
		_, err := s.Call(ctx, s.Global(name), args...)
		require.NoError(t, err)
		require.NoError(t, tensor.Synchronize(ctx))
	}
	call("rounds", lua.LNumber(3))
	call("begin")
	var heap [][]*int
	for p.heap && len(heap) < 1<<10 {
		heap = append(heap, make([]*int, 1<<20/8))
		for i := range heap[len(heap)-1] {
			heap[len(heap)-1][i] = &eagerTarget
		}
	}
	runtime.GC()
	dev := defaultDevice()
	collections, start := dev.Memory().Collections, time.Now()
	call("rounds", lua.LNumber(p.rounds))
	took := time.Since(start)
	m := dev.Memory()
	runtime.KeepAlive(heap)
	return eagerResult{Peak: float64(m.Peak) / (1 << 20), Round: took.Seconds() * 1e3 / float64(p.rounds),
		Collections: m.Collections - collections}
}

// eager runs a program in a process.
func eager(t testing.TB, name string) (r eagerResult) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestEagerProcess$")
	cmd.Env = append(os.Environ(), eagerVariable+"="+name)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(line, "eager "); ok {
			require.NoError(t, json.Unmarshal([]byte(text), &r))
			return r
		}
	}
	t.Fatalf("the process said nothing: %s", out)
	return r
}

// TestEagerMemory: eager loops hold what compiled ones or careful ones do, and no collection is forced.
func TestEagerMemory(t *testing.T) {
	t.Parallel()
	onlyMemory(t)
	if testing.Short() {
		t.Skip("a dozen processes")
	}
	peaks := map[string]float64{}
	for _, p := range eagerPrograms {
		if p.heap {
			continue // what it is compared with is a time
		}
		r := eager(t, p.name)
		peaks[p.name] = r.Peak
		if p.most > 0 {
			require.LessOrEqual(t, r.Peak, p.most, p.name)
		}
		if !strings.Contains(p.round, "collectgarbage") {
			require.Zero(t, r.Collections, p.name)
		}
	}
	require.LessOrEqual(t, peaks["training"], 1.5*peaks["training, one step"])
	require.LessOrEqual(t, peaks["training, loss read now and then"], 1.5*peaks["training, one step"])
	require.LessOrEqual(t, peaks["hybrid"], 1.2*peaks["hybrid, compiled"])
}

// BenchmarkEager gives the best of as many processes as -benchtime says.
func BenchmarkEager(b *testing.B) {
	for _, p := range eagerPrograms {
		b.Run(p.name, func(b *testing.B) {
			var best eagerResult
			for i := range b.N {
				if r := eager(b, p.name); i == 0 || r.Round < best.Round {
					best = r
				}
			}
			b.ReportMetric(best.Peak, "MiB")
			b.ReportMetric(best.Round, "ms/round")
			b.ReportMetric(float64(best.Collections), "collections")
			b.ReportMetric(0, "ns/op")
		})
	}
}
