package lua51

// The faults of gopher-lua v1.1.2 that scripts can meet. Each test states what the pinned version does to a program
// and what Lua 5.1's manual asks for; where Compile mends it, the same program is run through it. When a newer
// gopher-lua mends one, its test fails and says which workaround can go.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// outcome runs src, compiled as it is or through Compile, for at most a million instructions, and gives its
// results as text, or "error: " and the message.
func outcome(t *testing.T, src string, mend bool) string {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	state.SetContext(&fuel{Context: context.Background(), left: 1 << 20})
	var fn *lua.LFunction
	if mend {
		proto, err := Compile(strings.NewReader(src), "chunk")
		require.NoError(t, err, src)
		fn = state.NewFunctionFromProto(proto)
	} else {
		var err error
		fn, err = state.Load(strings.NewReader(src), "chunk")
		require.NoError(t, err, src)
	}
	state.Push(fn)
	if err := state.PCall(0, lua.MultRet, nil); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return "error: " + line
	}
	var out []string
	for i := 1; i <= state.GetTop(); i++ {
		out = append(out, state.Get(i).String())
	}
	return strings.Join(out, " ")
}

// fuel is a context that is done after a number of polls, so that an endless program stops without a clock.
type fuel struct {
	context.Context
	left int
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (f *fuel) Done() <-chan struct{} {
	if f.left--; f.left <= 0 {
		return closed
	}
	return nil
}

func (f *fuel) Err() error {
	if f.left <= 0 {
		return context.Canceled
	}
	return nil
}

type fault struct {
	name, src string
	want      string // what Lua 5.1 gives
	got       string // what the pinned version gives without the workaround
}

func checkFaults(t *testing.T, faults []fault) {
	t.Helper()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			require.NotEqual(t, f.want, f.got, "this table is for faults")
			require.Equal(t, f.want, outcome(t, f.src, true), "through Compile")
			require.Equal(t, f.got, outcome(t, f.src, false),
				"gopher-lua has changed here: if it now gives %q, drop the workaround", f.want)
		})
	}
}

// Issue 514: a loop over an iterator sets only as many of generator, state and control as it has variables.
func TestGenericForRegisters(t *testing.T) {
	const iterator = `local seen = {}
		local function it(s, c) seen[#seen+1] = tostring(s) .. "/" .. tostring(c); if not c then return 1 end end `
	checkFaults(t, []fault{
		{"two variables, bare function", iterator + `for a, b in it do end for a, b in it do end
			return table.concat(seen, " ")`, "nil/nil nil/1 nil/nil nil/1", "nil/nil nil/1 nil/1"},
		{"one variable, state from a call", `local function one() return 1 end
			local got; for x in function(s, c) got = s end, one() do end return tostring(got)`, "1", "nil"},
	})
}

// Issue 540: a backward jump whose target is a jump goes astray, because that jump's distance is read as a label.
func TestJumpToJump(t *testing.T) {
	checkFaults(t, []fault{
		{"lost results", `for k in pairs({1}) do if false then local x end end return 1`, "1", ""},
		{"panic", `local n = 0 for k in pairs({1,2,3}) do if false then local x end n = n + 1 end return n`,
			"3", "error: runtime error: index out of range [16] with length 16"},
		{"if nil", `local n = 0 for k in pairs({1,2,3}) do if nil then n = 5 end n = n + 1 end return n`,
			"3", "error: runtime error: index out of range [16] with length 16"},
		{"wrong branch", `local n = 0 for k in pairs({1,2,3}) do
			if false and k then n = 100 else n = n + 1 end end return n`, "3", "100"},
	})
}

// TestJumpToJumpNeighbours are programs of the same shape which must be right on both paths.
func TestJumpToJumpNeighbours(t *testing.T) {
	for src, want := range map[string]string{
		`local n = 0 for k in pairs({1,2,3}) do break end return 1`:                                     "1",
		`local n = 0 for k in pairs({1,2,3}) do goto c ; ::c:: n = n + 1 end return n`:                  "3",
		`local n = 0 while true do if false then local x end n = n + 1 if n == 3 then return n end end`: "3",
		`local n = 0 repeat if false then n = 9 end n = n + 1 until n >= 3 return n`:                    "3",
		`local n = 0 ::top:: goto mid ::mid:: n = n + 1 if n < 3 then goto top end return n`:            "3",
		`local n = 0 for k in pairs({1,2,3}) do while false do n = n + 100 end n = n + 1 end return n`:  "3",
		`local n = 0 for k = 1, 3 do if false then local x end n = n + 1 end return n`:                  "3",
		`local n = 0 for k in pairs({1,2}) do do goto cont end n = 9 local z ::cont:: end return n`:     "0",
		`local function f() return 1, 2 end return (true and f())`:                                      "1",
		`local function f() return 1, 2 end return true and f()`:                                        "1",
		`local function f(...) return true and ... end return f(1, 2)`:                                  "1",
		`return not nil, not 0, nil and 1, 1 and nil`:                                                   "true false nil nil",
		`local t = {} function t.f() return 1 end function t:g() return self.f() end return t:g()`:      "1",
	} {
		require.Equal(t, want, outcome(t, src, true), "%s, through Compile", src)
		require.Equal(t, want, outcome(t, src, false), "%s", src)
	}
}

// Issues 310 and 524: assigning to a field of a constant writes to whatever the register of the constant's index holds.
func TestAssignToConstant(t *testing.T) {
	const number = "error: chunk:1: attempt to index a non-table object(number) with key 'k'"
	checkFaults(t, []fault{
		{"wrong object named", `(123).k = nil`, number,
			"error: chunk:1: attempt to index a non-table object(string) with key 'k'"},
		{"nearby table changed", `local t = {}; (5).k = 1; return t.k`, number, "1"},
		{"folded constant", `local t = {}; (1 + 2).k = 1; return t.k`, number, "1"},
		{"panic", `debug.setmetatable("", {}) do ("Lua").k = 1 end`,
			"error: chunk:1: attempt to index a non-table object(string) with key 'k'",
			"error: runtime error: invalid memory address or nil pointer dereference"},
	})
	require.Equal(t, "1", outcome(t, `local t, n = {}; (n or t).k = 1; return t.k`, true))
	require.Equal(t, "1", outcome(t, `local t, n = {}; (n or t).k, n = 1, 2; return t.k`, true))
	require.Equal(t, "1", outcome(t, `local t = {} local function f(...) (...).k = 1 end f(t, 2) return t.k`, true))
}

// Issue 537: a table constructor of more than 25,550 items loses the last ones in silence; here it is an error.
func TestLargeTableConstructor(t *testing.T) {
	items := func(n int) string { return "local t = {" + strings.Repeat("7,", n) + "} return #t" }
	require.Equal(t, "25550", outcome(t, items(maxTableItems+1), false), "gopher-lua has changed: raise maxTableItems")
	require.Equal(t, "25550", outcome(t, items(maxTableItems), true))
	_, err := Compile(strings.NewReader("local x\nx = 1 "+items(maxTableItems+1)), "chunk")
	require.EqualError(t, err, "chunk:2: table constructor has 25551 items, at most 25550 are allowed: "+
		"build it in a loop or read a file")
}

// The compiler recurses on the syntax tree; the stack of a goroutine is bounded, and exhausting it ends the process.
func TestNestingIsBounded(t *testing.T) {
	_, err := Compile(strings.NewReader("return "+strings.Repeat("- ", 1000000)+"1"), "chunk")
	require.ErrorContains(t, err, "chunk is nested more than 10000 levels deep")
	require.Equal(t, "5000", outcome(t, "return 0"+strings.Repeat("+1", 5000), true))
}

func TestCompileErrors(t *testing.T) {
	for src, want := range map[string]string{
		"x = = 1":             "syntax error",
		"goto nowhere":        "nowhere",
		"x = 'unfinished":     "unterminated string",
		"break":               "break",
		"return ...; x = 1":   "syntax error",
		"local x <const> = 1": "syntax error",
		"f() = 1":             "",
		"\x00\xff":            "",
		"--[[ never ends":     "multiline comment",
	} {
		_, err := Compile(strings.NewReader(src), "chunk")
		require.Error(t, err, src)
		require.ErrorContains(t, err, want, src)
	}
}

// A string or a comment that nothing ends is named by the place where it begins.
func TestUnclosed(t *testing.T) {
	for src, want := range map[string]SyntaxError{
		`x = "abc`:                               {Line: 1, Column: 5, Token: `"abc`, early: true},
		"y = 1\n  x = 'it\\'s --\n z = 2 'b'":    {Line: 2, Column: 7, Token: `'it\'s --`},
		"x = [==[ a ]] ]=]\nmore":                {Line: 1, Column: 5, Token: "[==[ a ]] ]=]", early: true},
		"f('--', [[\"]], \"'\") -- it's\n--[[ a": {Line: 2, Column: 1, Token: "--[[ a", early: true},
		"--[[ a ]] x = \"\\\n\\\"":               {Line: 1, Column: 15, Token: `"\`, early: true},
		"\nx = \"a\r\n":                          {Line: 2, Column: 5, Token: `"a`},
		"x = 'é" + strings.Repeat("é", 40):       {Line: 1, Column: 5, Token: "'" + strings.Repeat("é", 19), early: true},
	} {
		_, err := Compile(strings.NewReader(src), "chunk")
		var e *SyntaxError
		require.ErrorAs(t, err, &e, src)
		require.Equal(t, []any{want.Line, want.Column, want.Token, want.early},
			[]any{e.Line, e.Column, e.Token, e.AtEnd()}, src)
	}
	for _, src := range []string{"--", "#!it's\nx = 1", "a[[[x]]]", "x = '\\''", `s = "[["`, "--[=x\ny = 1"} {
		require.Negative(t, unclosed(src), src)
	}
}

// Issue 521: a context is polled between instructions only. A library function of Go never looks at it, however long it
// runs, so luabind must replace those whose time or memory a script can choose: string.rep, format, find, match,
// gmatch and gsub, table.concat, table.sort and unpack.
func TestContextIsPolledBetweenInstructionsOnly(t *testing.T) {
	state := lua.NewState()
	defer state.Close()
	ctx, cancel := context.WithCancel(context.Background())
	state.SetContext(ctx)
	calls := 0
	state.SetGlobal("callback", state.NewFunction(func(*lua.LState) int { calls++; cancel(); return 0 }))
	err := state.DoString(`local s = string.rep("a", 1000) string.gsub(s, "a", callback) after = true`)
	require.ErrorContains(t, err, "context canceled")
	require.Equal(t, lua.LNil, state.GetGlobal("after"), "the next instruction must not run")
	require.Equal(t, 1000, calls, "gopher-lua has changed: gsub stops when its context is cancelled")

	rep := state.GetField(state.GetGlobal("string"), "rep")
	require.NoError(t, state.CallByParam(lua.P{Fn: rep, NRet: 1, Protect: true}, lua.LString("ab"), lua.LNumber(3)),
		"gopher-lua has changed: Go functions are refused once the context is done")
	require.Equal(t, "ababab", state.Get(-1).String())
}

// A context ends loops of every kind, since each executes instructions; pcall does not hold a cancelled script.
func TestContextEndsLoops(t *testing.T) {
	for _, src := range []string{
		`while true do end`, `repeat until false`, `::top:: goto top`, `for i = 1, math.huge do end`,
		`for k in function() return 1 end do end`,
		`local co = coroutine.wrap(function() while true do end end) co()`,
		`while true do pcall(error) end`,
		`while true do pcall(function() while true do end end) end`,
	} {
		state := lua.NewState()
		defer state.Close()
		ctx, cancel := context.WithCancel(context.Background())
		state.SetContext(ctx)
		state.SetGlobal("cancel", state.NewFunction(func(*lua.LState) int { cancel(); return 0 }))
		proto, err := Compile(strings.NewReader("cancel() "+src), "chunk")
		require.NoError(t, err, src)
		state.Push(state.NewFunctionFromProto(proto))
		require.ErrorContains(t, state.PCall(0, 0, nil), "context canceled", src)
	}
}

// The traceback of an error lists every tail call of every frame before it is cut to 20 lines, so a script that ends
// after n tail calls makes n strings. PCall with a handler of its own does not build that traceback.
func TestTailCallsLengthenTracebacks(t *testing.T) {
	const src = `local function f(n) if n == 0 then error("end") end return f(n - 1) end f(100000)`
	allocated := func(handler lua.LGFunction) uint64 {
		state := lua.NewState()
		defer state.Close()
		fn, err := state.LoadString(src)
		require.NoError(t, err)
		var h *lua.LFunction
		if handler != nil {
			h = state.NewFunction(handler)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		state.Push(fn)
		require.ErrorContains(t, state.PCall(0, 0, h), "end")
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	keep := func(*lua.LState) int { return 1 }
	require.Greater(t, allocated(nil), allocated(keep)+1<<20,
		"gopher-lua has changed: tracebacks no longer grow with tail calls")
}

// Random expressions of `and`, `or`, `not` and constants, where gopher-lua's compiler is weakest, in every position of
// a program; Go computes what Lua's manual says.
func TestLogicalExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		e, v := logical(r, 4)
		truth := v != "nil" && v != "false"
		branch, count := "no", 0
		if truth {
			branch, count = "yes", 3
		}
		src := fmt.Sprintf(`local N, F, T, A, B = nil, false, true, 1, 2
			local function id(x) return x end
			local r = %[1]s
			local branch if %[1]s then branch = "yes" else branch = "no" end
			local n = 0 for _ in pairs({1,2,3}) do if %[1]s then n = n + 1 end end
			local m = 0 for _, q in ipairs({1,2,3}) do local x = %[1]s; if x then m = m + 1 end end
			local w = 0 while %[1]s do w = w + 1 if w == 3 then break end end
			local u = 0 repeat u = u + 1 until u == 3 or not (%[1]s)
			local t = {%[1]s, k = %[1]s}
			return tostring(r), branch, n, m, w, u, tostring(t.k), tostring(id(%[1]s)), tostring(not (%[1]s))`, e)
		want := fmt.Sprintf("%s %s %d %d %d %d %s %s %t", v, branch, count, count, count, max(count, 1), v, v, !truth)
		require.Equal(t, want, outcome(t, src, true), e)
	}
}

// logical gives a random expression and its value as text.
func logical(r *rand.Rand, depth int) (expr, value string) {
	if depth == 0 || r.IntN(4) == 0 {
		leaves := strings.Fields("nil false true 1 2 N F T A B id(N) id(A) (1==2) (A<B)")
		values := strings.Fields("nil false true 1 2 nil false true 1 2 nil 1 false true")
		i := r.IntN(len(leaves))
		return leaves[i], values[i]
	}
	l, lv := logical(r, depth-1)
	truth := lv != "nil" && lv != "false"
	switch r.IntN(3) {
	case 0:
		return "not (" + l + ")", fmt.Sprint(!truth)
	case 1:
		right, rv := logical(r, depth-1)
		if truth {
			return "(" + l + " and " + right + ")", rv
		}
		return "(" + l + " and " + right + ")", lv
	}
	right, rv := logical(r, depth-1)
	if truth {
		return "(" + l + " or " + right + ")", lv
	}
	return "(" + l + " or " + right + ")", rv
}
