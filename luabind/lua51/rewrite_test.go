package lua51

// More of the faults of gopher-lua v1.1.2, as in compile_test.go: those that rewrite.go mends. What is wanted are the
// results of Lua 5.1, and of Lua 5.2 where there is a goto.

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Issue 440: of several values that are assigned together, one that goes to a local variable is computed in its
// register, where the values after it find it in place of the old one.
func TestAssignedTogether(t *testing.T) {
	const mul = "error: chunk:1: cannot perform mul operation between number and function"
	checkFaults(t, []fault{
		{"exchange", `local a, b = 1, 2; a, b = b, a; return a, b`, "2 1", "2 2"},
		{"sum and product", `local x, y = 3, 4; x, y = x + y, x * y; return x, y`, "7 12", "7 28"},
		{"index", `local t, i = {1, 2, 3}, 1; i, t[2] = i + 1, i; return i, t[2]`, "2 1", "2 2"},
		{"chain", `local a, x = 1, 2; x = (a or x) and x; return x`, "2", "1"},
		{"call in parentheses", `local function g(x) return 2 * x end
			local function h(a) local b = 5; a = (g(a)); return a, b end return h(3)`, "6 5", mul},
		{"value too many", `local function g(x) return 2 * x end
			local function h(a) local b = 5; a = g(a), 2; return a, b end return h(3)`, "6 5", mul},
	})
	for src, want := range map[string]string{
		`local t = {}; g, t.y = 1, 2; return g, t.y`:                                                       "1 2",
		`local t, up, u, v = {}, 0, 1, 2; (function() up, t.y = u, v end)() return up, t.y`:                "1 2",
		`local t = {}; t.a, g, t.b, h = 1, 2, 3; return t.a, g, t.b, h`:                                    "1 2 3 nil",
		`local t, i = {1, 2}, 1; i, t[i] = i + 1, 20; return i, t[1]`:                                      "2 20",
		`local t, i = {1, 2}, 1; t[i], i = 20, i + 1; return i, t[1]`:                                      "2 20",
		`local u = {n = 1}; local old = u; u, u.n = {n = 9}, 7; return old.n, u.n`:                         "7 9",
		`local u = {n = 1}; local old = u; u.n, u = 7, {n = 9}; return old.n, u.n`:                         "7 9",
		`local m, n = 1; m, n = n, m; return m, n`:                                                         "nil 1",
		`a, b = 1, 2; a, b = b, a; return a, b`:                                                            "2 1",
		`local a, b = 1, 2; (function() a, b = b, a end)(); return a, b`:                                   "2 1",
		`local a, b, c = 1, 2, 3; a, b, c = c, (function() return a, b end)(); return a, b, c`:             "3 1 2",
		`local a, b = 1, 2; local n = 0; a, b = b, a, (function() n = n + 1 end)(); return a, b, n`:        "2 1 1",
		`local a, b = 1, 2; while true do a, b = b, a; if a == 1 then break end end return a, b`:           "1 2",
		`local a, b = 1, 2; for _ = 1, 3 do a, b = b, a end return a, b`:                                   "2 1",
		`local a, b = 1, 2; local f = function(...) a, b = ... end; f(5, 6); return a, b`:                  "5 6",
		`local t, k = {}, 2; k, t[k], t[k + 1] = 10, "a", "b"; return k, t[2], t[3], t[10] == nil`:         "10 a b true",
		`local a = {1, 2}; a[1], a[2] = a[2], a[1]; return a[1], a[2]`:                                     "2 1",
		`local s = {}; local x, y = 0, 1; while y < 50 do s[#s + 1] = x; x, y = y, x + y end return #s, x`: "9 34",
	} {
		require.Equal(t, want, outcome(t, src, true), src)
	}
}

// A break, or a goto, leaves blocks whose variables functions have captured.
func TestJumpsCloseVariables(t *testing.T) {
	checkFaults(t, []fault{
		{"break", `local f while true do if true then local x = 1; f = function() return x end; break end end
			local y = 99; return f(), y`, "1 99", "99 99"},
		{"break of a numeric loop", `local f for i = 1, 3 do
				if i == 2 then local x = i; f = function() x = x + 1 return x end; break end end
			local a, b, c, d, e, g = 1, 2, 3, 4, 5, 6; return f(), a, b, c, d, e, g`, "3 1 2 3 4 5 6", "6 1 2 3 4 6 6"},
		{"break of repeat", `local f repeat do local x = 1; f = function() return x end; break end until false
			local y = 99; return f(), y`, "1 99", "99 99"},
		{"break of a generic loop", `local f for i in pairs{1} do do local x = i; f = function() return x end; break end end
			local a, b, c, d, e = 5, 6, 7, 8, 9; return f()`, "1", "9"},
		{"goto of the same block", `local x = 0; local function inc() x = x + 1 end
			for i = 1, 3 do goto cont ::cont:: end; inc(); return x`, "1", "0"},
		{"goto of an outer block", `local x = 0; local function inc() x = x + 1 end
			for i = 1, 3 do if i == 2 then goto cont end inc() ::cont:: end; inc(); return x`, "3", "1"},
		{"goto back", `local n, x = 0, 0; local function inc() x = x + 1 end
			::top:: n = n + 1; inc(); if n < 3 then goto top end return x`, "3", "1"},
	})
	for src, want := range map[string]string{
		`local fs = {} do local i = 1 ::top:: local y = i; fs[i] = function() y = y + 1 return y end
			i = i + 1; if i < 4 then goto top end end return fs[1](), fs[2](), fs[3](), fs[1]()`: "2 3 4 3",
		`local f for i = 1, 3 do for j = 1, 3 do local x = i * j; if x == 4 then
			f = function() x = x + 1 return x, i, j end goto done end end end ::done::
			local a, b, c, d, e, g, h, k, l, m = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; return f()`: "5 2 2",
		`local i, log = 1, {} while i <= 5 do local j = i; i = i + 1; if j == 2 then goto continue end
			log[#log + 1] = function() j = j + 100 return j + i end ::continue:: end
			return log[1](), log[2](), i`: "107 109 6",
		`local n = 0 for i = 1, 3 do for j = 1, 3 do if j == 2 then local z = j; local f = function() return z end
			n = n + f(); break end end end return n`: "6",
	} {
		require.Equal(t, want, outcome(t, src, true), src)
	}
}

// The variable of local f = function ... end is not visible in the function.
func TestLocalOfFunction(t *testing.T) {
	checkFaults(t, []fault{
		{"global of the name", `local type = function(x) return type and "s" .. type(x) end
			return pcall(type, 1)`, "true snumber", "false chunk:1: stack overflow"},
		{"local of the name", `local x = 5; local x = function() return type(x) end
			return x()`, "number", "function"},
	})
	require.Equal(t, "6", outcome(t, `local function f(n) return n == 0 and 0 or n + f(n - 1) end return f(3)`, true))
	require.Equal(t, "nil", outcome(t, `local f = function() return f end return tostring(f())`, true))
}

// What a loop over an iterator starts with may take calls of results of calls.
func TestIteratorFromCalls(t *testing.T) {
	const makers = `local function count(n) return function(_, c) c = (c or 0) + 1 if c <= n then return c end end end
		local function maker() return count end local s = 0 `
	const call = "error: chunk:2: attempt to call a non-function object"
	checkFaults(t, []fault{
		{"result of a call", makers + `for i in maker()(4) do s = s + i end return s`, "10", call},
		{"vararg", makers + `return (function(...) for i in (...)(3) do s = s + i end return s end)(count)`, "6", call},
	})
	for src, want := range map[string]string{
		makers + `for i in maker()(4), nil, 2 do s = s + i end return s`:                       "7",
		makers + `for i in ({count})[1](4) do if i == 3 then break end s = s + i end return s`: "3",
		`local s = "" for w in ("a b"):upper():gmatch("%a") do s = s .. w end return s`:        "AB",
	} {
		require.Equal(t, want, outcome(t, src, true), src)
	}
}

// Positional items of table constructors go to the table 50 at a time.
func TestTableConstructorBatches(t *testing.T) {
	items := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, strconv.Itoa(i+1))
		}
		return strings.Join(list, ", ")
	}
	checkFaults(t, []fault{
		{"key after a full batch", `local x = 3; local t = {` + items(50) + `, k = x + 100, l = x}
			return #t, t[1], t[2], t[50], t.k`, "50 1 2 50 103", "50 103 2 50 103"},
		{"call after a full batch", `local function f() return 7, 8 end local t = {` + items(100) + `, f()}
			return #t, t[1], t[51], t[52], t[101], t[102]`, "102 1 51 52 7 8", "100 1 7 8 nil nil"},
		{"key and call", `local function f() return 7, 8 end local t = {` + items(50) + `, k = f(), f()}
			return #t, t[1], t[51], t[52], t.k`, "52 1 7 8 7", "50 7 nil nil 7"},
		{"key between batches", `local x = 3; local t = {` + items(50) + `, k = x + 100, ` + items(51) + `}
			return #t, t[1], t[51], t[101]`, "101 1 1 51", "101 103 1 51"},
		{"last call with a key", `local t = {1, n = math.floor(5)} return #t, t[2], t.n`, "1 nil 5", "2 5 5"},
		{"vararg with a key", `return (function(...) local t = {1, n = ...} return #t, t.n end)(4, 5)`, "1 4", "2 4"},
	})
	for n := range 103 {
		src := `local function f() return 7, 8 end local t = {` + items(n)
		if n > 0 {
			src += ", "
		}
		src += `a = f(), f()} local sum = 0 for _, v in ipairs(t) do sum = sum + v end return #t, sum, t.a`
		want := strconv.Itoa(n+2) + " " + strconv.Itoa(n*(n+1)/2+15) + " 7"
		require.Equal(t, want, outcome(t, src, true), "%d items", n)
	}
}
