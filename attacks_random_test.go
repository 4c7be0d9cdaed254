package mlxlua_test

import (
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/serial"
)

var attackTime = flag.Duration("attacks", 2*time.Second, "how long TestRandomAttacks makes random attacks")
var attackSeed = flag.Uint64("attackseed", 1, "the number of TestRandomAttacks' first attack")

// Pieces of random attacks: expressions, and statements with V for an expression. They share the variables s, a string,
// t, a table, n, a number, x, an array, k, a kernel, and f, a function.
var attackValues = []string{`s`, `s .. s`, `t`, `{t, s}`, `#s`, `s:rep(7)`, `s:rep(n)`, `s:upper()`, `n * 3`,
	`-n`, `nil`, `0/0`,
	`function() return s, t end`, `function(...) return f(...) end`, `coroutine.create(f)`, `coroutine.wrap(f)`,
	`table.concat({s, s, s}, s)`, `s:gsub(".", "%0%0")`, `s:gsub("(x*)x", "%1")`, `s:find((".-"):rep(5) .. "y")`,
	`("%s%s"):format(s, s)`, `("%99d"):format(n)`, `{unpack(t)}`, `{s:byte(1, -1)}`, `setmetatable({}, {__index = t})`,
	`setmetatable({}, {__index = f, __newindex = f, __call = f, __concat = f, __tostring = f})`,
	`loadstring("return " .. n)`, `loadstring(("("):rep(n % 300) .. s)`,
	`loadstring("local a = {" .. ("1,"):rep(n % 1e5) .. "}")`,
	`tostring(t) .. s`, `t[n]`, `tonumber(s)`, `string.char(n % 256):rep(99)`,
	`mx.ones({8})`, `mx.ones({n % 1e6 + 1})`, `mx.zeros({n, n})`, `x + x`, `x * V`, `mx.concatenate({x, x})`,
	`mx.outer(x, x)`,
	`mx.random.normal({n % 1000 + 1, 100})`, `x:tolist()`, `tostring(x)`, `mx.sort(x)`, `mx.eval(x)`, `x:item()`,
	`mx.array(t)`, `mx.broadcast_to(x, {n % 1e4 + 1, x.size})`, `mx.matmul(x, x)`, `mx.cumsum(x) + 1`, `mx.fft.fft(x)`,
	`mx.linalg.svd(mx.random.normal({n % 300 + 2, 200}), {stream = mx.cpu})`,
	`mx.repeat_array and 1 or mx.tile(x, {n % 99 + 1})`,
	`mx.grad(function(y) return (y * y):sum() end)(x)`, `mx.vmap(function(y) return y * 2 end)(x)`,
	`mx.compile(function(y) return mx.sin(y) * n end)(x)`, `mx.stop_gradient(x)`, `mx.as_strided(x, {n}, {0})`,
	`k{inputs = {x}, grid = {n, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {{n % 1e5}},
		output_dtypes = {mx.float32}}[1]`,
	`require("lm.host").encode(t)`, `require("lm.host").decode(s)`,
	`require("lm.host").decode("[" .. ("[],"):rep(n) .. "1]")`,
	`require("lm.host").render(s, "{}", true)`, `mx.plot.line(x)`, `mx.plot.hist(x, n)`, `mx.plot.image(t)`, `help(s)`,
	`mx.einsum(s, x, x)`, `mx.expand_dims(x, t)`, `x[s]`, `mx.reshape(x, t)`,
	`mx.utils.tree_flatten(t)`, `mx.utils.tree_map(function(v) return v end, t)`, `mx.load("/etc/passwd", "npy")`,
	`require("m" .. n)`, `getfenv(0)`, `_G`, `mx`, `debug`, `io`, `help(mx)`, `mx.scope(function() return x + 1 end)`}

var attackSteps = []string{`s = tostring(V)`, `t[#t + 1] = V`, `t[n] = V`, `n = n * 2 + 1`, `n = n % 1000`,
	`t["k" .. n] = V`,
	`t = {t, V}`, `pcall(f, V)`, `local y = V`, `local y, z = V, V`, `s = s .. s`, `s = "x"`, `t = {}`,
	`f = function() t[#t + 1] = V if n < 1e9 then n = n + 1 return f() end end`,
	`f = function(...) return V, ... end`, `f = function() return 1 + #tostring(f(V)) end`,
	`table.sort(t, function(a, b) n = n + 1 return n % 3 == 0 end)`, `table.insert(t, 1, V)`, `table.remove(t)`,
	`for i = 1, 1e5 do local y = V end`, `for i = 1, 100 do t[#t + 1] = V end`,
	`pcall(coroutine.wrap(function() f(V) end))`,
	`local c = coroutine.wrap(function() coroutine.yield(V) end) c() t[#t + 1] = c`, `_G["g" .. n] = V`,
	`s = (s:gsub("x", function() n = n + 1 return s:sub(1, 9) end))`, `xpcall(f, function() return V end)`, `f(V)`,
	`error(V)`, `pcall(error, {V, t})`, `pcall(error, setmetatable({}, {__tostring = function() return V end}))`,
	`x = V`, `x = x + 1`, `x = mx.ones({64})`, `x = mx.concatenate({x, x})`, `mx.eval(V)`, `mx.async_eval(V)`,
	`pcall(mx.eval, t)`,
	`mx.eval(x)`, `setmetatable(_G, {__index = function(_, k) return V end})`,
	`setmetatable(t, {__gc = f, __len = f, __mode = "k"})`,
	`getmetatable("").__index = V`, `string.rep = V`, `mx.random.seed(n)`, `collectgarbage()`, `setfenv(f, t)`,
	`repeat local y = V until V`, `goto out do local y = V end ::out::`, `while n < 1e4 do n = n + 1 local y = V end`}

const attackKernel = `local k = mx.fast.metal_kernel{name = "k", input_names = {"a"}, output_names = {"out"}, source =
	"uint i = thread_position_in_grid.x; float v = a[0];" ..
	"while (v < 2.0f && i > 7) { v = v * 0.5f + a[i % 3]; } out[i] = v;"}
`

// randomAttack is a script of dangerous pieces that does not end by itself.
func randomAttack(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	var fill func(text string, depth int) string
	fill = func(text string, depth int) string {
		for strings.Contains(text, "V") {
			v := "s"
			if depth < 3 {
				v = "(" + fill(pick(attackValues), depth+1) + ")"
			}
			text = strings.Replace(text, "V", v, 1)
		}
		return text
	}
	var b strings.Builder
	b.WriteString("local s, t, n, x = 'x', {}, 1, mx.ones({3}) local f = function() end\n" + attackKernel)
	protected := r.IntN(2) == 0
	b.WriteString("local function step()\n")
	for range 2 + r.IntN(8) {
		step := fill(pick(attackSteps), 0)
		if r.IntN(3) == 0 {
			step = "pcall(function() " + step + " end)"
		}
		b.WriteString("do " + step + " end\n")
	}
	b.WriteString("end\nlocal pcall = pcall while true do ")
	if protected {
		return b.String() + "pcall(step) end"
	}
	return b.String() + "step() end"
}

// TestRandomAttacks: random scripts out of dangerous pieces end soon in an error that the host sees, whatever they come
// to, and the host goes on.
func TestRandomAttacks(t *testing.T) {
	serial.Because(t, "it measures the process's memory and each attack's time")
	host := open(t, mlxlua.Options{})
	count, errors, slowest, slow := 0, 0, time.Duration(0), uint64(0)
	for begun := time.Now(); time.Since(begun) < *attackTime; count++ {
		seed := *attackSeed + uint64(count)
		source := randomAttack(seed)
		s, err := mlxlua.Open(mlxlua.Options{Sandbox: true, MemoryLimit: 32 << 20, ArrayLimit: 64 << 20,
			Seed: seed, Stdout: io.Discard,
			TimeLimit: 200 * time.Millisecond})
		require.NoError(t, err)
		begun := time.Now()
		_, err = s.Run(context.Background(), "random", source)
		took := time.Since(begun)
		require.Error(t, err, "seed %d\n%s", seed, source)
		if !strings.Contains(err.Error(), "[limits]") {
			errors++
		}
		require.NotContains(t, err.Error(), "BUG", "seed %d\n%s", seed, source)
		require.Less(t, took, 20*time.Second, "seed %d\n%s", seed, source) // a bound for a hang, not for a busy machine
		if took > slowest {
			slowest, slow = took, seed
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		require.Less(t, m.Sys, uint64(2<<30), "seed %d\n%s", seed, source)
		s.Close()
		out, err := host.Run(context.Background(), "host", `return mx.sum(mx.ones({1000}) + 1):item()`)
		require.NoError(t, err, "after seed %d", seed)
		require.Equal(t, []any{2000.0}, out)
	}
	t.Logf("%d attacks, %d of them with an error of their own before a limit, the slowest, %d, took %v", count,
		errors, slow, slowest)
}
