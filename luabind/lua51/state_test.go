package lua51

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

func newTestState(t *testing.T) *State {
	t.Helper()
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	t.Cleanup(s.L.Close)
	return s
}

// run compiles and runs a chunk as a host does.
func run(s *State, src, name string) ([]lua.LValue, error) {
	proto, err := s.Compile(context.Background(), strings.NewReader(src), name)
	if err != nil {
		return nil, err
	}
	return s.Protect(nil, s.L.NewFunctionFromProto(proto))
}

// The libraries do what the manual says.
// What is no ASCII letter stays as it is, as in C's locale; gopher-lua reads UTF-8, and breaks other texts.
func TestBytewiseStrings(t *testing.T) {
	s := New(Options{})
	defer s.L.Close()
	require.NoError(t, s.L.DoString(`
		assert(("a\195\169\255z"):upper() == "A\195\169\255Z")
		assert(("A\195\137\255Z"):lower() == "a\195\137\255z")
		assert(("a\0\255z"):reverse() == "z\255\0a" and (""):reverse() == "" and (""):upper() == "")
		local long = ("ab\255"):rep(5000)
		assert(long:upper() == ("AB\255"):rep(5000) and long:reverse() == ("\255ba"):rep(5000))
		assert(("x"):rep(0/0) == "" and ("x"):rep(-1) == "" and (""):rep(1/0) == "" and ("ab"):rep(2.7) == "abab")`))
}

func TestLibraries(t *testing.T) {
	s := newTestState(t)
	const fails = `
		-- fails calls f and wants an error whose text matches one of the patterns between |.
		function fails(patterns, f, ...)
			local ok, e = pcall(f, ...)
			if ok then error("no error, want " .. patterns, 2) end
			for p in (patterns .. "|"):gmatch("(.-)|") do
				if tostring(e):find(p) then return end
			end
			error("the error is " .. tostring(e) .. ", want " .. patterns, 2)
		end`
	_, err := run(s, fails, "fails")
	require.NoError(t, err)
	src, err := os.ReadFile("testdata/libraries.lua")
	require.NoError(t, err)
	_, err = run(s, string(src), "libraries.lua")
	require.NoError(t, err)
	require.Equal(t, 0, s.L.GetTop(), "values are left on the stack")
}

// os.exit passes pcall, xpcall and coroutines, and the state lives on.
func TestExitStatus(t *testing.T) {
	s := newTestState(t)
	for src, want := range map[string]int{
		`pcall(function() os.exit(3) end)`:                                                    3,
		`xpcall(function() os.exit(false) end, function() error("asked") end)`:                1,
		`coroutine.resume(coroutine.create(function() pcall(function() os.exit(4) end) end))`: 4,
		`coroutine.wrap(function() os.exit() end)()`:                                          0,
	} {
		_, err := run(s, src+` error("not here")`, "exit")
		var api *lua.ApiError
		require.ErrorAs(t, err, &api, src)
		status, exits := ExitStatus(api.Object)
		require.True(t, exits, src)
		require.Equal(t, want, status, src)
		out, err := run(s, "return 1 + 1", "after")
		require.NoError(t, err)
		require.Equal(t, []lua.LValue{lua.LNumber(2)}, out)
	}
}

// What the yield that a coroutine's body ends with gives is what the body returns.
func TestCoroutineReturnsYield(t *testing.T) {
	out, err := run(newTestState(t), `
		local co = coroutine.create(function(...) return coroutine.yield(...) end)
		local ok, a, b = coroutine.resume(co, 1, 2)
		assert(ok and a == 1 and b == 2 and coroutine.status(co) == "suspended")
		ok, a, b = coroutine.resume(co, 3, 4)
		assert(ok and a == 3 and b == 4 and coroutine.status(co) == "dead")
		ok, a = coroutine.resume(co)
		assert(not ok and a:find("dead"))
		local f = coroutine.wrap(function() return coroutine.yield(5) end)
		assert(f() == 5)
		return f(6)`, "yields")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNumber(6)}, out)
}

// A yield that a metamethod, an iterator or a function of Go's would have to outlive is an error, in the coroutine.
func TestYieldsAcross(t *testing.T) {
	for _, text := range []string{
		`return setmetatable({}, {__index = function() coroutine.yield(3) end}).foo`,
		`return setmetatable({}, {__add = function() return (coroutine.yield(3)) end}) + 1`,
		`local t = setmetatable({}, {__lt = function() coroutine.yield() end}) return t < t`,
		`return setmetatable({}, {__concat = function() return (coroutine.yield()) end}) .. "x"`,
		`setmetatable({}, {__newindex = function() coroutine.yield(3) end}).foo = 1`,
		`for x in coroutine.yield, 2 do end`,
		`for x in function() local x = coroutine.yield() return x end do end`,
		`table.sort({3, 2, 1}, function() coroutine.yield() end)`,
		`return (string.gsub("x", "x", function() coroutine.yield() end))`,
		`local ok, message = pcall(function() coroutine.yield(1) end) assert(not ok) error(message, 0)`,
	} {
		out, err := run(newTestState(t), `
			local co = coroutine.create(function() `+text+` end)
			local ok, message = coroutine.resume(co)
			assert(coroutine.status(co) == "dead")
			return ok, message`, "yields")
		require.NoError(t, err, text)
		require.Equal(t, lua.LFalse, out[0], text)
		require.Equal(t, YieldAcross+" metamethod/C-call boundary", out[1].String(), text)
	}
}

// Functions that call each other, tail calls and iterators that resume coroutines yield as ever.
func TestYieldsBelowCalls(t *testing.T) {
	out, err := run(newTestState(t), `
		local object = setmetatable({}, {__call = function(_, x) return coroutine.yield(x) + 1 end})
		local function deep(n, x) if n == 0 then return (object(x)) end local y = deep(n - 1, x) return y + 1 end
		local function tail(n, x) if n == 0 then return coroutine.yield(x) end return tail(n - 1, x) end
		local f = coroutine.wrap(function()
			local sum = deep(50, 1)
			for i in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do sum = sum + coroutine.yield(i) end
			return sum + tail(1000, 4)
		end)
		assert(f() == 1)
		for i = 1, 3 do assert(f(100) == i) end
		assert(f(100) == 4)
		return f(7)`, "yields")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNumber(100 + 1 + 50 + 300 + 7)}, out)
}

// Errors of Go code, the engine's own and the parser's pass the hooks of the host; without hooks they are strings
// with their place.
func TestHooks(t *testing.T) {
	bug := func(s *State) { s.L.SetGlobal("bug", s.Func(func(*lua.LState) int { var p *int; return *p })) }
	plain := newTestState(t)
	bug(plain)
	out, err := run(plain, "return pcall(bug)", "chunk")
	require.NoError(t, err)
	require.Equal(t, lua.LFalse, out[0])
	require.Contains(t, out[1].String(), "BUG: runtime error: invalid memory address")

	closed := New(Options{Sandbox: true})
	defer closed.L.Close()
	bug(closed)
	out, err = run(closed, "return select(2, pcall(bug))", "chunk")
	require.NoError(t, err)
	require.NotContains(t, out[0].String(), ".go:", "which is about the host")

	var s *State
	s = New(Options{
		Raise: func(err error) { s.L.Error(lua.LString("raised "+strings.SplitN(err.Error(), "\n", 2)[0]), 0) },
		Explain: func(_ *lua.LState, v lua.LValue) lua.LValue {
			return lua.LString("explained " + v.String())
		},
		SyntaxHint: func(e *SyntaxError) string { return "; hint at " + e.Token },
	})
	defer s.L.Close()
	bug(s)
	out, err = run(s, "return select(2, pcall(bug))", "chunk")
	require.NoError(t, err)
	require.Equal(t, "explained raised BUG: runtime error: invalid memory address or nil pointer dereference",
		out[0].String())
	_, err = run(s, "x = = 1", "chunk")
	var se *SyntaxError
	require.ErrorAs(t, err, &se)
	require.Equal(t, "chunk:1: syntax error near '='; hint at =", err.Error())
	require.False(t, se.AtEnd())
	_, err = run(s, "if x then", "chunk")
	require.True(t, errors.As(err, &se) && se.AtEnd(), "%v", err)
	out, err = run(s, "return io, os, dofile, loadfile", "chunk")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNil, lua.LNil, lua.LNil, lua.LNil}, out)
}

// The innermost line is found past tail calls, Go functions, protected calls and coroutines, and chunks of a library.
// Tracebacks name each frame once.
func TestLines(t *testing.T) {
	s := New(Options{})
	defer s.L.Close()
	var lines, traces []string
	s.L.SetGlobal("note", s.Func(func(*lua.LState) int {
		source, line := s.Line("lib:")
		lines = append(lines, fmt.Sprintf("%s:%d", source, line))
		traces = append(traces, s.Traceback())
		return 0
	}))
	run := func(name, text string) {
		proto, err := s.Compile(context.Background(), strings.NewReader(text), name)
		require.NoError(t, err)
		_, err = s.Protect(nil, s.L.NewFunctionFromProto(proto))
		require.NoError(t, err)
	}
	run("lib:calls", `
		function tail(f) return f() end
		function deep(n) if n > 0 then return deep(n - 1) end note() end
		function safe() return pcall(function() tail(note) end) end`)
	run("script", `
		local function lost() return tail(note) end
		local function here()
			lost()
			deep(3)
			tail(function() note() end)
		end
		local function there()
			here()
			safe()
			coroutine.wrap(function()
				tail(note)
			end)()
		end
		there()`)
	require.Equal(t, []string{"script:4", "script:5", "script:6", "script:10", "script:12"}, lines)
	require.Equal(t, "stack traceback:\n\tlib:calls:3: in function <lib:calls:3>\n\tscript:5: in function 'here'\n"+
		"\tscript:9: in function 'there'\n\tscript:15: in main chunk", traces[1])
	require.Equal(t, "", func() string { source, _ := s.Line(""); return source }())
}
