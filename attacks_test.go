package mlxlua_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/serial"
)

// attack is a script that wants more than its sandbox has, and what it gets: a limit, or an error with a text.
type attack struct{ name, source, want string }

const limit = "[limits]"

var attacks = []attack{
	// Memory.
	{"doubling", `local s = "x" for i = 1, 40 do s = s .. s end`, limit},
	{"doubling and catching",
		`while true do pcall(function() local s = "x" for i = 1, 40 do s = s .. s end end) end`, limit},
	{"long chains", `local s = ("x"):rep(2^20) while true do s = s..s..s..s..s..s..s..s..s..s end`, limit},
	{"a list of strings", `local t = {} while true do t[#t+1] = ("x"):rep(1e6) .. #t end`, limit},
	{"coroutines", `local t = {} for i = 1, 200000 do t[i] = coroutine.create(function() end) end`, limit},
	{"coroutines under way", `local t = {} for i = 1, 200000 do
		t[i] = coroutine.wrap(function() coroutine.yield() end) t[i]() end`, limit},
	{"coroutines with stacks", `local l = {} for i = 1, 1e5 do l[i] = i end local t = {} while true do
		local c = coroutine.wrap(function(...) coroutine.yield() return ... end) c(unpack(l)) t[#t+1] = c end`, limit},
	{"tables", `local t while true do t = {t} end`, limit},
	{"tables of names", `local t = {} for i = 1, 1e9 do t["k" .. i] = i end`, limit},
	{"tables of numbers", `local t = {} for i = 1, 1e9 do t[i] = i end`, limit},
	{"tables of fractions", `local t = {} for i = 1, 1e9 do t[i + 0.5] = i end`, limit},
	{"a far element", `local t = {} t[60000000] = 1`, limit},
	{"far elements in a variable",
		`local n = 60000000 for i = 1, 100 do local t = {} t[n] = 1 _G["t" .. i] = t end`, limit},
	{"a far element by rawset", `rawset({}, 60000000, 1)`, limit},
	{"a far element by insert", `table.insert({}, 60000000, 1)`, limit},
	{"globals", `local n = 0 while true do n = n + 1 _G["g" .. n] = n end`, limit},
	{"closures", `local f while true do local g = f f = function() return g end end`, limit},
	{"closures with variables", `local l = {} while true do local a, b, c = 1, 2, 3
		l[#l+1] = function() a = b + c return a end end`, limit},
	{"rep", `local t = {} for i = 1, 1e6 do t[i] = ("x"):rep(2^24) end`, limit},
	{"one rep", `return ("x"):rep(2^28)`, limit},
	{"gsub", `local s = ("x"):rep(2^16) while true do s = s:gsub("x", "xx") end`, limit},
	{"gsub within gsub",
		`local function f(n) local s = ("x"):rep(2^20) return (s:gsub("x$", function() return f(n + 1) end)) end
		return f(1)`, ""},
	{"gsub of long replacements", `local r = ("y"):rep(1e6) return (("x"):rep(1e6):gsub("x", r))`, limit},
	{"concat",
		`local t = {} for i = 1, 1000 do t[i] = ("x"):rep(1e5) end return table.concat(t, ("y"):rep(1e5))`, limit},
	{"format", `local s = ("x"):rep(2^20) while true do s = ("%s%s"):format(s, s) end`, limit},
	{"upper", `local s, t = ("x"):rep(2^20), {} while true do t[#t+1] = s:upper() end`, limit},
	{"patterns", `local s = ("a"):rep(4e6) return s:find(s .. "b*")`, limit},
	{"many patterns", `for i = 1, 1e6 do ("x"):find(("a"):rep(1e5) .. i .. "b*") end`, limit},
	{"varargs", `local function f(...) return f(1, 2, 3, 4, 5, 6, 7, 8, ...) end f()`, ""},
	{"coroutines in each other", `local a, b
		a = coroutine.create(function() return coroutine.resume(b) end)
		b = coroutine.create(function() return coroutine.resume(a) end)
		local f, g
		f = coroutine.wrap(function() return g() end)
		g = coroutine.wrap(function() return f() end)
		pcall(f)
		error(select(4, coroutine.resume(a)))`, "cannot resume normal coroutine"},
	{"metamethods in coroutines", `local function again()
			local t = setmetatable({}, {__index = function(t, n) return n == 0 and (again() or 1) or t[n - 1] end})
			local ok, e = coroutine.resume(coroutine.create(function() return t[9000] end))
			return not ok and error(e, 0)
		end
		again()`, ""},
	{"recursion", `local function f() return 1 + f() end f()`, "stack overflow"},
	{"recursion and catching", `local function f() pcall(f) return 1 + f() end f()`, ""},
	{"a list of an array", `local x = mx.zeros({20000000}) local t = x:tolist()`, limit},
	{"arrays without end", `local t = {} while true do t[#t+1] = mx.ones({64}) end`, limit},
	{"errors without end",
		`local e while true do local was = e local _, x = pcall(error, {was}) e = x end`, limit},
	{"metatables", `local t while true do t = setmetatable({}, {__index = t}) end`, limit},
	{"gmatch",
		`local t = {} while true do t[#t+1] = ("x"):rep(1e5):gmatch("x") t[#t+1] = ("y"):rep(1e5) .. #t end`, limit},
	{"loaded texts",
		`local t = {} while true do t[#t+1] = loadstring("return '" .. ("x"):rep(1e5) .. #t .. "'")() end`, limit},
	{"a print of one text in many places", `local s = ("x"):rep(8e6) print(s, s, s, s, s, s)`,
		"the script's memory is full"},
	{"a tostring that grows", `local s = "" while true do s = s .. tostring(s) .. "x" end`, limit},
	// Time.
	{"a loop", `while true do end`, limit},
	{"a loop that catches", `while true do pcall(function() while true do end end) end`, limit},
	{"a loop in a handler", `xpcall(error, function() while true do end end)`, limit},
	{"a loop under many deep handlers", `
		local function down(n, f) if n == 0 then return f() end return 1 + down(n - 1, f) end
		local function level(n) if n == 0 then while true do end end
			return xpcall(function() return down(600, function() return level(n - 1) end) end, function() return 1 end) end
		level(30)`, limit},
	{"a loop in a coroutine", `coroutine.wrap(function() while true do end end)()`, limit},
	{"goto", `::a:: goto a`, limit},
	{"a slow pattern", `return (("a"):rep(30)):find(("a*"):rep(30) .. "b")`, limit},
	{"a slow search", `return (("a"):rep(1e6)):find((".-"):rep(8) .. "b")`, limit},
	{"a slow sort", `local t = {} for i = 1, 1e5 do t[i] = i end
		table.sort(t, function(a, b) for i = 1, 1e5 do end return a < b end)`, limit},
	{"a sort of long texts that are alike", `local t = {("x"):rep(7e6) .. 1, ("x"):rep(7e6) .. 2}
		for i = 3, 3000 do t[i] = t[i % 2 + 1] end table.sort(t)`, limit},
	{"a loop in a metamethod",
		`return #setmetatable({}, {__index = function() while true do end end}).x`, limit},
	{"tail calls", `local function f() return f() end f()`, limit},
	{"a kernel without end",
		`local k = mx.fast.metal_kernel{name = "spin", input_names = {"x"}, output_names = {"out"},
		source = "float v = x[0]; while (v < 1.0f) { v = v * 0.5f; } out[thread_position_in_grid.x] = v;"}
		mx.eval(k{inputs = {mx.zeros({64})}, grid = {64, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {{64}},
		output_dtypes = {mx.float32}})`, limit},
	// Texts.
	{"a long text", `assert(loadstring("return 1" .. ("+1"):rep(1e6)))`, limit},
	{"a long name that is not there", `return mx[("x"):rep(1e7)]`, "no mx.xxx"},
	{"a long method that is not there", `return mx.ones({1})[("x"):rep(1e7)]`, "no method or property"},
	{"a print of many dimensions", `local t = {} for i = 1, 30 do t[i] = 2 end
		return tostring(mx.broadcast_to(mx.ones({1}), t))`, limit},
	{"a print of many empty dimensions", `local t = {} for i = 1, 30 do t[i] = 2 end t[31] = 0
		return tostring(mx.zeros(t))`, limit},
	{"an endless loop whose error is returned", `return pcall(function() while true do end end)`, limit},
	{"an endless loop whose error a handler returns", `return xpcall(function() while true do end end, print)`, limit},
	{"an endless loop in a returned coroutine",
		`return coroutine.resume(coroutine.create(function() while true do end end))`, limit},
	{"an endless reader", `return load(function() while true do end end)`, limit},
	{"a long text in pieces", `local n = 0 return load(function() n = n + 1 return " x = 1 " end)`, limit},
	{"a deep text", `return loadstring("return " .. ("("):rep(3e5) .. "1")()`, ""},
	{"deep blocks", `return loadstring(("do "):rep(1e5) .. ("end "):rep(1e5))()`, ""},
	{"bytecode", `return loadstring("\27Lua\81\0\1\4\8\4\8\0")()`, ""},
	{"many constants", `local t = {} for i = 1, 25000 do t[i] = "x=" .. i .. "." end
		assert(loadstring(table.concat(t, " ")))`, limit},
	{"many gotos", `assert(loadstring(("goto a "):rep(30000) .. " ::a::"))`, limit},
	{"many labels", `local t = {} for i = 1, 20000 do t[i] = "::a" .. i .. "::" end
		assert(loadstring(table.concat(t, " ")))`, limit},
	{"many functions", `assert(loadstring(("function f() end "):rep(15000)))`, limit},
	{"a table in many places as an array", `local a, b, c = {}, {}, {} for i = 1, 1000 do a[i] = 1 end
		for i = 1, 1000 do b[i] = a end for i = 1, 1000 do c[i] = b end return mx.array(c)`, limit},
	// Functions of Go's that walk what a script gives them.
	{"a JSON text of many tables", `return require("lm.host").decode("[" .. ("[],"):rep(2^20) .. "1]")`, limit},
	{"a deep JSON text", `assert(require("lm.host").decode(("["):rep(1e6)))`, "nested more than 100 deep"},
	{"a table in many places as JSON", `local t = {1} for i = 1, 60 do t = {t, t} end
		return require("lm.host").encode(t)`, limit},
	{"a long text in many places as JSON", `local s, t = ("x"):rep(2^20), {} for i = 1, 1000 do t[i] = s end
		return require("lm.host").encode(t)`, limit},
	{"a text of control characters as JSON", `return require("lm.host").encode(("\0"):rep(28e6))`,
		"the script's memory is full"},
	{"a deep template", `assert(require("lm.host").render("{{ " .. ("("):rep(1e5) .. (")"):rep(1e5) .. " }}",
		'{"messages": []}', false))`, ""},
	{"a template of long values", `return require("lm.host").render(
		"{% for i in range(1000) %}{% set x = 'x' * 1000000 %}{% endfor %}", '{"messages": []}', false)`,
		"the script's memory is full"},
	{"a template of much text", `return require("lm.host").render(
		"{% for i in range(100000) %}{{ 'a long text ' * 20 }}{% endfor %}", '{"messages": []}', false)`,
		"the script's memory is full"},
	{"a long template", `return require("lm.host").render(("{{a}}"):rep(2e5), '{"messages": []}', false)`,
		"the script's memory is full"},
	{"a conversation of many objects", `return require("lm.host").render("",
		'{"messages": [' .. ("{},"):rep(1e6) .. '1]}', false)`, "the script's memory is full"},
	{"bars without end", `mx.plot.hist({1, 2}, 1e9)`, "bins is 1000000000, want at most"},
	{"bars of many rows", `mx.plot.hist({1, 2}, 2^20)`, "the script's memory is full"},
	{"a plot of one list in many places", `local text, t, l = ("x"):rep(28e6), {}, {} for i = 1, 3000 do l[i] = i end
		for i = 1, 500 do t[i] = l end mx.plot.line(t) return text`, "the script's memory is full"},
	{"a plot of many numbers", `mx.plot.line(mx.zeros({1e7}))`, limit},
	{"a plot without end", `while true do mx.plot.scatter(mx.random.normal({2e5}), mx.zeros({2e5})) end`, limit},
	{"a large picture", `mx.data.draw_image(mx.zeros({10000, 10000}, mx.uint8))`, limit},
	{"many dimensions", `local t = {} for i = 1, 1e4 do t[i] = 1 end mx.eval(mx.tile(mx.ones({2}), t))`,
		"an array of 10000 dimensions: at most 1024 are possible"},
	{"an index of many parts", `return mx.ones({1})[("None,"):rep(1e5) .. "0"]`,
		"an array of 100000 dimensions: at most 1024 are possible"},
	{"many operands", `local t = {} for i = 1, 3000 do t[i] = mx.ones({2}) end
		return mx.einsum_path(("a,"):rep(2999) .. "a->a", unpack(t))`, ""},
	{"long subscripts", `return mx.einsum(("a"):rep(1e7), mx.ones({1}))`, "have 10000000 bytes, at most 65536 are read"},
	// What is not there.
	{"io", `return io.open("/etc/passwd")`, "nil"},
	{"os", `os.execute("true")`, "nil"},
	{"dofile", `dofile("/etc/passwd")`, "a nil value"},
	{"debug", `return debug.getregistry()`, "nil"},
	{"debug by require", `return require("debug").getregistry()`, "not found"},
	{"loadlib", `package.loadlib("libc.so", "system")`, "a nil value"},
	{"a path of its own", `package.path = "/etc/?" return require("passwd")`, "not found"},
	{"a module outside", `return require("../secret")`,
		"not found:\n\tno field package.preload['../secret']\n\tno package '../secret'"},
	{"the host's limits", `mx.set_memory_limit(1)`, "sandbox"},
	{"reading arrays", `return mx.load("/etc/passwd", "npy")`, "no access to files"},
	{"writing arrays", `mx.save("x.npy", mx.ones({2}))`, "no access to files"},
	{"models", `return require("lm").load("x")`, "lm: x: this state has no access to files"},
	{"dump", `return string.dump(function() end)`, "a nil value"},
	// Errors.
	{"an error whose text fails", `error(setmetatable({}, {__tostring = function(s) error(s) end}))`, "(error object is"},
	{"an error whose text fails, in a coroutine", `coroutine.wrap(function()
		error(setmetatable({}, {__tostring = function(s) error(s) end})) end)()`, "(error object is"},
	{"an error whose text fails, in a handler", `xpcall(function() error("x") end, function()
		error(setmetatable({}, {__tostring = function(s) error(s) end})) end) error({})`, "(error object is"},
	{"an error whose text fails, in a kernel's grid", `local k = mx.fast.metal_kernel{name = "k", input_names = {"x"},
		output_names = {"o"}, source = "o[0] = x[0];"} local e = setmetatable({}, {__tostring = function(s) error(s) end})
		k{inputs = {mx.ones({1})}, grid = function() error(e) end, threadgroup = {1, 1, 1}, output_shapes = {{1}},
		output_dtypes = {mx.float32}}`, "(error object is"},
	{"an error whose text is endless", `error(setmetatable({}, {__tostring = function() while true do end end}))`, limit},
	// Results.
	{"globals as a result", `return _G`, "holds itself"},
	{"a wide tree", `local t = {} for i = 1, 60 do t = {t, t} end return t`, "[limits] Go would get more"},
	{"a wide tree as an error", `local t = {} for i = 1, 60 do t = {t, t} end error(t)`, "(error object is"},
	{"a long text in many places", `local s, t = ("x"):rep(1e6), {} for i = 1, 1000 do t[i] = s end return t`,
		"[limits] Go would get more"},
}

// TestAttacks: each attack ends in an error that the host sees, soon, and the host goes on.
func TestAttacks(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	require.GreaterOrEqual(t, len(attacks), 60)
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			opt := mlxlua.Options{Sandbox: true, MemoryLimit: 32 << 20, TimeLimit: 300 * time.Millisecond,
				SourceLimit: 256 << 10, Modules: fstest.MapFS{"m/n.lua": {Data: []byte("return 7")}}}
			if a.want != limit && a.want != "" {
				opt.TimeLimit = time.Minute // on a busy machine too it ends for its own reason
			}
			s := open(t, opt)
			took := stopwatch()
			_, err := s.Run(context.Background(), "attack", a.source)
			spent := took()
			require.ErrorContains(t, err, a.want)
			if a.want == limit && !strings.Contains(err.Error(), "source text") {
				require.ErrorIs(t, err, mlxlua.ErrLimit)
			}
			require.Less(t, spent, 2*time.Second)
			out, err := s.Run(context.Background(), "after", `return require("m.n") + 1`)
			if errors.Is(err, mlxlua.ErrLimit) {
				return // its globals fill the memory
			}
			require.NoError(t, err)
			require.Equal(t, []any{8.0}, out)
		})
	}
}

// TestLargeTextsAreNoAttacks: a text of data, and one of many functions, are compiled in a sandbox.
func TestLargeTextsAreNoAttacks(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{Sandbox: true})
	out, err := s.Run(t.Context(), "large", `local t = {} for i = 1, 15000 do t[i] = "'name" .. i .. "'" end
		local data = loadstring("return {" .. table.concat(t, ",") .. "}")()
		assert(loadstring(("function f(x) return x + 1 end "):rep(5000)))()
		return #data, data[15000], f(1)`)
	require.NoError(t, err)
	require.Equal(t, []any{15000.0, "name15000", 2.0}, out)
}

// TestInstructionLimit: each call has as many instructions.
func TestInstructionLimit(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{InstructionLimit: 10000})
	for range 3 {
		_, err := s.Run(context.Background(), "short", `for i = 1, 1000 do end`)
		require.NoError(t, err)
	}
	_, err := s.Run(context.Background(), "long", `for i = 1, 100000 do end`)
	require.ErrorIs(t, err, mlxlua.ErrLimit)
	_, err = s.Run(context.Background(), "short", `for i = 1, 1000 do end`)
	require.NoError(t, err)
}

// TestGarbageIsNoMemory: what a script drops does not count, however much it makes.
func TestGarbageIsNoMemory(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{Sandbox: true, MemoryLimit: 16 << 20})
	out, err := s.Run(context.Background(), "garbage", `
		local keep = {}
		for i = 1, 3000 do
			local s = ("x"):rep(1e5) .. i
			keep[i % 50 + 1] = s:sub(1, 1000) .. i
			local t = {} for j = 1, 20 do t[j] = {j} end
			coroutine.wrap(function() coroutine.yield() end)()
		end
		return #keep`)
	require.NoError(t, err)
	require.Equal(t, []any{50.0}, out)
}

// TestParsingEndsWithTheContext: so does the parser, within a text that takes seconds.
func TestParsingEndsWithTheContext(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	s := open(t, mlxlua.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	text := "return 1" + strings.Repeat("+1", 20e6)
	took := stopwatch()
	_, err := s.Run(ctx, "long", text)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, took(), time.Second)
}

// A host runs a script of a stranger: it gets no files, 16 MiB and a second.
func ExampleOptions_sandbox() {
	state, err := mlxlua.Open(mlxlua.Options{Sandbox: true, MemoryLimit: 16 << 20, TimeLimit: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer state.Close()
	_, err = state.Run(context.Background(), "stranger", `local s = "x" for i = 1, 40 do s = s .. s end`)
	fmt.Println(errors.Is(err, mlxlua.ErrLimit))
	out, err := state.Run(context.Background(), "stranger", `return io, 6 * 7`)
	fmt.Println(out, err)
	// Output:
	// true
	// [<nil> 42] <nil>
}

// require finds modules in any fs.FS, such as an embed.FS.
func ExampleOptions_modules() {
	modules := fstest.MapFS{"geometry/area.lua": {Data: []byte("return {square = function(a) return a * a end}")}}
	state, err := mlxlua.Open(mlxlua.Options{Modules: modules})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer state.Close()
	out, err := state.Run(context.Background(), "main", `return require("geometry.area").square(3)`)
	fmt.Println(out, err)
	// Output: [9] <nil>
}
