package luabind

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// randomSteps is what scripts of random training steps share. A script defines body(g), which changes st; g are the
// numbers of a step: indices, and what decides whether it fails. Step is that with Adam for the parameter st.p, eager
// or compiled. Walk takes steps, whose results are computed as way says; look computes all there is.
const randomSteps = `
local optim = require("mx.optimizers")
mx.random.seed(7)
u = mx.ones({1, n})
wide = mx.fast.metal_kernel{name = "wide", input_names = {"a", "at"}, output_names = {"out"},
  source = "uint i = thread_position_in_grid.x; out[i + at[0]] = a[i];"}
function shifted(x, at)
  return wide{inputs = {x, at}, grid = {x.size, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {x.shape},
    output_dtypes = {x.dtype}}
end
bump = mx.fast.metal_kernel{name = "bump", input_names = {"x", "at"}, output_names = {"n"}, mutable_inputs = {"x"},
  atomic_outputs = true, source = [==[
    uint i = thread_position_in_grid.x;
    x[i + at[0]] = x[i] * 0.5f + 1;
    atomic_fetch_add_explicit(&n[0], 1, memory_order_relaxed);]==]}
function bumped(x, at)
  local n, y = bump{inputs = {x, at}, grid = function(s) return {s[1][1] * s[1][2]} end, threadgroup = {32, 1, 1},
    output_shapes = {function() return {1} end}, output_dtypes = {mx.int32}, init_value = 0}
  return mx.stop_gradient(y) * (n / n)
end
local side = mx.new_stream(mx.default_device())
function beside(f) return mx.stream(side, f) end
function needed(x) -- by the state, whatever becomes of x
  st.count = st.count + mx.isnan(x):sum()
  return x
end
local Net = nn.class("Net")
function Net:init()
  self.p = mx.ones({n})
  for i, name in ipairs{"a", "b", "c"} do self[name] = mx.sin(mx.arange(n) * i) end
  self.d = mx.arange(4 * n):reshape({4, n}) / n
  self.e = self.d * 2
  self.count = mx.array(0)
end
st = Net()
local opt = optim.Adam(1e-2)
st:freeze()
st:unfreeze{keys = {"p"}}
local gradient = nn.value_and_grad(st, function(g)
  body(g)
  return (mx.stop_gradient(st.a) * st.p):sum()
end)
function step(g)
  local l, grads = gradient(g)
  opt:update(st, grads)
  return l
end
all = {st, opt.state, mx.random.state}
if compiled then step = mx.compile(step, {inputs = all, outputs = all}) end
function numbers(i, j, bad)
  return {i = mx.array({bad == "index" and 9 or i}, mx.int32), j = mx.array({bad == "take" and -9 or j}, mx.int32),
    h = bad == "host" and -mx.eye(1) or mx.eye(1), s = mx.array(bad == "nan" and -1 or 1),
    o = mx.array({bad == "kernel" and 1e6 or 0}, mx.int32), m = mx.zeros({bad == "memory" and 300000 or 4})}
end
local streams = {mx.new_stream(mx.default_device()), mx.new_stream(mx.default_device())}
function walk(way, list)
  for k, g in ipairs(list) do
    local l
    if way == "losses" then -- and not that of a step that fails
      mx.stream(streams[k % 2 + 1], function() l = step(numbers(unpack(g))) end)
      if g[3] == "" then l:item() end
    else
      l = step(numbers(unpack(g)))
    end
    if way == "each" then mx.eval(l, all) end
    if way == "value first" then l:item() mx.eval(all) end
    if way == "parts" then
      mx.eval(st.c, st.d)
      if compiled then mx.eval(mx.random.state, opt.state) end -- else the optimizer's part is a step of its own
      mx.eval(all)
    end
    if way == "async" then mx.async_eval(l, all) end
    if way == "async parts" then mx.async_eval(st.b) mx.async_eval(st.d, l) mx.async_eval(all) end
  end
  if way ~= "unasked" then finish() end
end
function finish()
  mx.eval(all)
  mx.synchronize()
end
function look()
  for _ = 1, 3 do pcall(mx.synchronize) pcall(mx.eval, all) end
  mx.eval(all)
  local values = {}
  local function list(t)
    local keys = {}
    for k in pairs(t) do keys[#keys + 1] = k end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for _, k in ipairs(keys) do
      if type(t[k]) == "table" then list(t[k]) elseif mx.type(t[k]) == "array" then values[#values + 1] = t[k] end
    end
  end
  list({st.a, st.b, st.c, st.d, st.e, st.count, st.p, opt.state, mx.random.state[1]})
  return values
end
local function shot(t)
  local out = {}
  for k, v in pairs(t) do out[k] = type(v) == "table" and shot(v) or v end
  return out
end
local function put(t, s)
  for k, v in pairs(s) do
    if type(v) == "table" then put(t[k], v) elseif rawget(t, k) ~= v then t[k] = v end
  end
end
shots = {}
function keep(i) shots[i] = {shot(st), shot(opt.state), mx.random.state[1]} end
function back(i)
  put(st, shots[i][1]) put(opt.state, shots[i][2])
  mx.random.state[1] = shots[i][3]
end
`

// randomStatements are what a random step is made of: X, Y and Z are vectors of the state, D one of two larger arrays.
var randomStatements = []string{
	"st.X = st.Y * 0.5 + st.Z",
	"st.X = mx.sin(st.Y) + mx.mean(st.X)",
	"st.X, st.Y = st.Y, st.X",
	"st.X = mx.where(mx.greater(st.Y, 0), st.Z, st.X)",
	"st.X = st.X + 0.1 * mx.random.normal({n})",
	"st.X = st.X + st.p * 0.5",
	"st.count = st.count + 1",
	"st.D = needed(mx.slice_update(st.D, st.X:reshape({1, n}), g.i, {0}))",
	"st.D = mx.slice_update(st.D, u, mx.minimum(g.j, 3), {0})",
	"st.D = needed(mx.put_along_axis(st.D, mx.broadcast_to(mx.reshape(g.i, {1, 1}), {1, n}), u * 2, 0))",
	"st.D = needed(st.D:at(g.i):add(st.Y))",
	"st.D = st.D * 0.5",
	"st.X = st.X + needed(mx.take(st.D, g.j, 0)[0])",
	"st.X = st.X * needed(mx.linalg.cholesky(g.h):sum())",
	"st.X = st.X * needed(mx.sqrt(g.s))",
	"st.X = st.X + needed(mx.stop_gradient(shifted(mx.zeros({64}), g.o)):max())",
	"st.D = needed(bumped(st.D, g.o))",
	"st.X = beside(function() return mx.cos(st.Y) + mx.mean(st.Z) end) * 0.5",
	"st.D = st.D + beside(function() return needed(mx.take(st.D, g.j, 0)) * 0.1 end)",
	"st.X = st.X + needed(mx.cumsum(mx.broadcast_to(mx.mean(st.X) * 0, {g.m.shape[1], 256}), 0):sum())",
}

// stepFailures are the ways in which random steps fail, with what a statement has then.
var stepFailures = map[string]string{"index": "g.i", "take": "take(", "host": "g.h", "nan": "g.s", "kernel": "g.o",
	"memory": "g.m"}

// randomProgram is a script with a random step, and the ways in which that can fail.
func randomProgram(r *rand.Rand, nan bool) (text string, failures []string) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var b strings.Builder
	fmt.Fprintf(&b, "n, compiled = %d, %v\nfunction body(g)\n", []int{8, 3000, 60000}[r.IntN(3)], r.IntN(2) == 0)
	for range 2 + r.IntN(7) {
		s := pick(randomStatements...)
		if strings.Contains(s, "g.m") && strings.Contains(b.String(), "g.m") {
			continue
		}
		for _, v := range []string{"X", "Y", "Z"} {
			s = strings.ReplaceAll(s, "st."+v, "st."+pick("a", "b", "c"))
		}
		fmt.Fprintln(&b, strings.ReplaceAll(s, "st.D", "st."+pick("d", "e")))
	}
	b.WriteString("end\n")
	for kind, of := range stepFailures {
		if strings.Contains(b.String(), of) && (kind != "nan" || nan) {
			failures = append(failures, kind)
		}
	}
	slices.Sort(failures)
	return b.String() + randomSteps, failures
}

// TestRandomSteps: steps of random programs that fail, are stopped, or find no memory, leave the state as it was before
// them or, where they were only stopped, after one of them; never a mixture. MLXLUA_STEPS is how many programs there
// are.
func TestRandomSteps(t *testing.T) {
	programs := 40
	if testing.Short() {
		programs = 12
	}
	if n, err := strconv.Atoi(os.Getenv("MLXLUA_STEPS")); err == nil {
		programs = n
	}
	for seed := range uint64(programs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			nan := r.IntN(6) == 0
			defer tensor.CheckNaN(tensor.CheckNaN(nan))
			text, failures := randomProgram(r, nan)
			withOwnDevice(t, metal.DeviceOptions{MemoryLimit: 96 << 20})
			randomRounds(t, r, text, failures)
		})
	}
}

// TestAStepThatCannotFitIsUndone: an eager step of which something asks for more memory than there is may have been
// computed in part before anybody learns of it. It is undone as a whole.
func TestAStepThatCannotFitIsUndone(t *testing.T) {
	body := `st.b = st.b + st.p * 0.5
st.a = beside(function() return mx.cos(st.b) end) * 0.5
st.c = st.b * 0.5 + st.c
st.a = st.a + mx.cumsum(mx.broadcast_to(mx.mean(st.a) * 0, {g.m.shape[1], 256}), 0):sum()`
	for _, way := range []string{"each", "parts", "async parts"} {
		for _, steps := range []string{"{3, 1, 'memory'}", "{2, 2, ''}, {3, 1, 'memory'}"} {
			withOwnDevice(t, metal.DeviceOptions{MemoryLimit: 96 << 20})
			s := New(Options{Libraries: true})
			_, err := s.Run(background, strings.NewReader("n, compiled = 8, false\nfunction body(g)\n"+body+"\nend\n"+
				randomSteps+"mx.eval(all)"), "steps.lua")
			require.NoError(t, err)
			_, err = s.Run(background, strings.NewReader(fmt.Sprintf("walk(%q, {%s})", way, steps)), "walk.lua")
			require.ErrorContains(t, err, "[cumsum] [alloc] 307 MB is more than the memory limit")
			_, err = s.Run(background, strings.NewReader("return look()"), "look.lua")
			require.NoError(t, err, "%s, %s", way, steps)
			s.Close()
		}
	}
}

// randomRounds takes some steps at a time, some of which fail, and compares with a state that takes those only that
// count.
func randomRounds(t *testing.T, r *rand.Rand, text string, failures []string) {
	got, want := New(Options{Libraries: true}), New(Options{Libraries: true})
	defer got.Close()
	defer want.Close()
	run := func(s *State, ctx context.Context, text string) error {
		_, err := s.Run(ctx, strings.NewReader(text), "steps.lua")
		return err
	}
	look := func(s *State) (out [][]byte) {
		values, err := s.Run(background, strings.NewReader("return look()"), "look.lua")
		require.NoError(t, err)
		for _, x := range s.arraysIn("test", values) {
			b, err := x.Bytes(background)
			require.NoError(t, err)
			out = append(out, b)
		}
		return out
	}
	for _, s := range []*State{got, want} {
		require.NoError(t, run(s, background, text+"mx.eval(all)"))
	}
	var took time.Duration // of a round
	eager := strings.Contains(text, ", false\nfunction")
	for round := range 10 {
		way := []string{"each", "value first", "parts", "async", "async parts", "losses", "at the end"}[r.IntN(7)]
		good, steps := 1+r.IntN(3), []string{}
		bad := ""
		for k := range good {
			if bad = ""; len(failures) > 0 && round > 0 && r.IntN(4) == 0 {
				bad = failures[r.IntN(len(failures))]
			}
			if steps = append(steps, fmt.Sprintf("{%d, %d, %q}", r.IntN(4), r.IntN(4), bad)); bad != "" {
				good = k
				break
			}
		}
		for range r.IntN(3) { // that it does not come to
			if bad == "" {
				break
			}
			steps = append(steps, fmt.Sprintf("{%d, %d, %q}", r.IntN(4), r.IntN(4), ""))
		}
		if way == "losses" && (bad == "memory" || bad == "nan") {
			way = "each" // nobody foresees these in what is not asked for
		}
		ctx, stopped := background, r.IntN(3) == 0 && round > 1
		if stopped {
			c, cancel := context.WithCancelCause(background)
			time.AfterFunc(time.Duration(r.Int64N(int64(took)+1)), func() { cancel(errors.New("Ctrl-C")) })
			ctx = c
		}
		call := fmt.Sprintf("walk(%q, {%s})", way, strings.Join(steps, ", "))
		if stopped && eager { // between its parts an eager step has been taken by half
			require.NoError(t, run(got, background, fmt.Sprintf("walk('unasked', {%s})", strings.Join(steps, ", "))))
			call = "finish()"
		}
		t.Log(call)
		begun := time.Now()
		err := run(got, ctx, call)
		took = time.Since(begun)
		stopped = stopped && ctx.Err() != nil
		if bad != "" {
			require.Error(t, err, "%s", call)
		} else if !stopped {
			require.NoError(t, err, "%s", call)
		}
		is := look(got)
		states := [][][]byte{}
		for k := 0; k <= good; k++ {
			if k > 0 {
				require.NoError(t, run(want, background, fmt.Sprintf("walk('each', {%s})", steps[k-1])))
			}
			states = append(states, look(want))
			require.NoError(t, run(want, background, fmt.Sprintf("keep(%d)", k)))
		}
		same := func(state [][]byte) bool {
			return slices.EqualFunc(state, is, func(a, b []byte) bool { return slices.Equal(a, b) })
		}
		at := slices.IndexFunc(states, same)
		if !stopped && at < good || at < 0 {
			differ := make([][]int, len(states))
			for k, state := range states {
				for i := range is {
					if !slices.Equal(is[i], state[i]) {
						differ[k] = append(differ[k], i)
					}
				}
			}
			require.Fail(t, "another state", "round %d, %s %v: want %d; differ: %v; stopped: %v, error: %v\n%s", round,
				call, steps, good, differ, stopped, err, text[:strings.Index(text, "optim =")])
		}
		require.NoError(t, run(want, background, fmt.Sprintf("back(%d)", at)))
	}
}

var background = context.Background()
