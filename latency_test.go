package mlxlua_test

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/internal/serial"
)

// stop is a script that takes long, and what it needs made before.
type stop struct{ name, before, source string }

// stops are those scripts, by what they take long at.
var stops = []stop{
	{"a loop", ``, `while true do end`},
	{"a pattern", ``, `return (("a"):rep(30)):find(("a*"):rep(30) .. "b")`},
	{"plain find", `s = ("a"):rep(2^28)`, `while true do s:find("ab", 1, true) end`},
	{"rep", ``, `while true do local s = ("a"):rep(2^28) end`},
	{"upper", `s = ("a"):rep(2^27)`, `while true do local s = s:upper() end`},
	{"reverse", `s = ("a"):rep(2^27)`, `while true do local s = s:reverse() end`},
	{"concatenation", `s = ("a"):rep(2^26)`, `while true do local s = s .. s .. s .. s end`},
	{"format", `s = ("a"):rep(2^26)`, `while true do local s = ("%s%s"):format(s, s) end`},
	{"format %q", `s = ("\n"):rep(2^25)`, `while true do local s = ("%q"):format(s) end`},
	{"gsub", `s = ("a"):rep(2^24)`, `return (s:gsub("a", "b"))`},
	{"gsub by a function", `s = ("a"):rep(2^24)`, `return (s:gsub("a", function() end))`},
	{"gmatch", `s = ("a"):rep(2^27)`, `for w in s:gmatch("b") do end`},
	{"byte", `s = ("a"):rep(2^20)`, `while true do s:byte(1, 1e6) end`},
	{"tostring of a number's text", `s = ("1"):rep(2^24)`, `while true do tonumber(s) end`},
	{"comparison", `s, t = ("a"):rep(2^27) .. "b", ("a"):rep(2^27) .. "c"`, `while true do local x = s < t end`},
	{"table.concat", `t = {} for i = 1, 1e6 do t[i] = "abc" end`, `while true do table.concat(t, ",") end`},
	{"sort", `t = {} for i = 1, 1e6 do t[i] = (i * 7919) % 1000003 end`, `table.sort(t)`},
	{"insert in front", `t = {} for i = 1, 3e6 do t[i] = i end`, `while true do table.insert(t, 1, 0) end`},
	{"remove in front", `t = {} for i = 1, 3e6 do t[i] = i end`, `while true do table.remove(t, 1) end`},
	{"unpack", `t = {} for i = 1, 1e6 do t[i] = i end`, `while true do select("#", unpack(t)) end`},
	{"next", `t = {} for i = 1, 1e6 do t["k" .. i] = i end`, `while true do for k, v in pairs(t) do end end`},
	{"maxn", `t = {} for i = 1, 3e6 do t[i] = i end`, `while true do table.maxn(t) end`},
	{"loadstring", `s = "return 1" .. ("+1"):rep(5e6)`, `return loadstring(s)`},
	{"loadstring of many functions",
		`s = ("local function f() return f end "):rep(150) s = ("do " .. s .. " end "):rep(2000)`,
		`return loadstring(s)`},
	{"loadstring of many constants",
		`t = {} for i = 1, 1e5 do t[i] = "x=" .. i .. "." end s = table.concat(t, " ")`,
		`return loadstring(s)`},
	{"load in pieces", ``, `return load(function() return "x = 1 " end)`},
	{"coroutines", ``, `while true do coroutine.wrap(function() coroutine.yield() end)() end`},
	{"pcall", ``, `while true do pcall(error) end`},
	{"mx.array of a table", `t = {} for i = 1, 2e6 do t[i] = i end`, `while true do mx.array(t) end`},
	{"mx.array of nested tables", `t = {} for i = 1, 1e6 do t[i] = {1, 2, 3} end`, `while true do mx.array(t) end`},
	{"tolist", `x = mx.ones({5e6}) + 1 mx.eval(x)`, `while true do x:tolist() end`},
	{"print", `x = mx.ones({3, 3, 3, 3, 3, 3}) + 1 mx.eval(x)`, `while true do tostring(x) end`},
	{"a tree", `t = {} for i = 1, 1e6 do t[i] = {a = i} end`,
		`while true do mx.utils.tree_map(function(x) return x end, t) end`},
	{"tree_flatten", `t = {} for i = 1, 3e5 do t[i] = {a = i} end`, `while true do mx.utils.tree_flatten(t) end`},
	{"eval of a tree", `t = {} for i = 1, 1e6 do t[i] = {a = i} end`, `while true do mx.eval(t) end`},
	{"building", `x = mx.ones({2})`, `while true do x = x + 1 end`},
	{"eval of a large graph", `x = mx.ones({2}) for i = 1, 3e5 do x = mx.sin(x) + 1 end`, `mx.eval(x)`},
	{"a gradient", `function f(x) for i = 1, 1e5 do x = mx.sin(x) end return x:sum() end`,
		`while true do mx.grad(f)(mx.ones({2})) end`},
	{"a batched function", `function f(x) for i = 1, 1e5 do x = mx.sin(x) end return x:sum() end`,
		`while true do mx.vmap(f)(mx.ones({2, 2})) end`},
	{"a compiled function", `function f(x) for i = 1, 1e5 do x = mx.sin(x) end return x:sum() end`,
		`while true do mx.compile(f)(mx.ones({2})) end`},
	{"a kernel", ``, endless + `mx.eval(y)`},
	{"a long kernel's text", `s = ("v = v * 0.5f + 1.0f; "):rep(2e5)`, `local k = mx.fast.metal_kernel{name = "long",
		input_names = {"x"}, output_names = {"out"}, source = "float v = x[0]; " .. s ..
		"out[thread_position_in_grid.x] = v;"} mx.eval(k{inputs = {mx.zeros({64})}, grid = {64, 1, 1},
		threadgroup = {32, 1, 1}, output_shapes = {{64}}, output_dtypes = {mx.float32}})`},
	{"a matrix product", `x = mx.random.normal({4000, 4000}) mx.eval(x)`, `while true do mx.eval(mx.matmul(x, x)) end`},
	{"svd", `x = mx.random.normal({1500, 1500}) mx.eval(x)`, `mx.eval(mx.linalg.svd(x, {stream = mx.cpu}))`},
	{"eigh", `x = mx.random.normal({1500, 1500}) mx.eval(x)`, `mx.eval(mx.linalg.eigh(x, {stream = mx.cpu}))`},
	{"eig", `x = mx.random.normal({1000, 1000}) mx.eval(x)`, `mx.eval(mx.linalg.eig(x, {stream = mx.cpu}))`},
	{"inverse", `x = mx.random.normal({3000, 3000}) mx.eval(x)`, `mx.eval(mx.linalg.inv(x, {stream = mx.cpu}))`},
	{"cholesky", `x = mx.eye(4000) mx.eval(x)`, `mx.eval(mx.linalg.cholesky(x, {stream = mx.cpu}))`},
	{"qr", `x = mx.random.normal({1500, 1500}) mx.eval(x)`, `mx.eval(mx.linalg.qr(x, {stream = mx.cpu}))`},
	{"lu", `x = mx.random.normal({2500, 2500}) mx.eval(x)`, `mx.eval(mx.linalg.lu(x, {stream = mx.cpu}))`},
	{"a sort of an array", `x = mx.random.normal({3e7}) mx.eval(x)`, `while true do mx.eval(mx.sort(x)) end`},
	{"a result", ``, `local t = {} for i = 1, 3e5 do t[i] = {i, {i}} end return t, t`},
}

var allStops = flag.Bool("stops", false, "TestContextStopsEverything tries all of its scripts, which takes minutes")

// TestContextStopsEverything: whatever a script is at, a cancelled context ends it within 100 ms on an idle machine;
// the test bears a busy one. go test -v prints the times.
func TestContextStopsEverything(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	const bound = 300 * time.Millisecond
	some := []string{"a pattern", "gsub", "upper", "unpack", "tostring of a number's text", "loadstring",
		"mx.array of nested tables", "tolist", "a gradient", "a kernel", "svd", "a result"}
	for _, c := range stops {
		if !*allStops && !slices.Contains(some, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			least := time.Hour
			for try := range 20 { // on a busy machine one of many is undisturbed
				least = min(least, stopTime(t, c.before, c.source))
				if least < 100*time.Millisecond || least < bound && (try >= 4 || brief.Run()) {
					break
				}
			}
			t.Log(c.name, least)
			require.Less(t, least, bound)
		})
	}
}

// stopTime is how long a script goes on after its context is done; 0 if it ended before.
func stopTime(t *testing.T, before, source string) time.Duration {
	s := open(t, mlxlua.Options{})
	defer s.Close()
	_, err := s.Run(t.Context(), "before", before)
	require.NoError(t, err)
	const deadline = 150 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	end, _ := ctx.Deadline()
	_, err = s.Run(ctx, "long", source)
	after := time.Since(end)
	if err == nil || !strings.Contains(err.Error(), "deadline") && after < 0 {
		t.Logf("it ended by itself %v before: %v", -after, err)
	} else {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	return max(after, 0)
}
