package lua51

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// Conditions are seen where they are calls, and where they are names and fields that got a call's result; the value
// of the program is that of Lua 5.1 in each case.
func TestConditions(t *testing.T) {
	for src, want := range map[string]string{
		"if u() then return 1 end":                                  "call",
		"if not u() then return 1 end return 2":                     "call",
		"while u() do return 1 end":                                 "call",
		"repeat local x = 1 until u() return 1":                     "call",
		"return (u() and 1)":                                        "call",
		"local x = u() or 2 return x == u and 3 or 1":               "call",
		"if nope and u() then return 3 end return 1":                "",
		"if 1 == 1 and u() then return 1 end":                       "call",
		"if not (u() or 1) then return 3 end return 1":              "call",
		"if false then elseif u() then return 1 end":                "call",
		"local x = u() if x then return 1 end":                      "name",
		"x = u() if x then return 1 end":                            "name",
		"local t = {x = u()} if t.x then return 1 end":              "name",
		"local t = {} t.x = u() if t.x then return 1 end":           "name",
		"local a, b = 1, u() if b then return 1 end":                "name",
		"local x = nope or u() x = x or 3 return x == 3 and 3 or 1": "name",
		"local x = held if x then return 1 end":                     "",
		"if held then return 1 end":                                 "",
		"if u() ~= nil then return 1 end":                           "",
		"if u() == nil or false then return 3 end return 1":         "",
		"if n() then return 1 end":                                  "",
		"if (many()) then return 1 end":                             "call",
		"return (1 == 1 and many() or 1) ~= 1 and 1":                "",
		"return (1 == 1 and u() or 1) ~= 1 and 1":                   "",
		"return many() and 1 or 2":                                  "call",
		"if 1 == 1 and many() or 1 then return 1 end":               "call",
		"local x = many() or 2 return x ~= 2 and 1 or 3":            "name",
		"return select('#', many() and 1)":                          "call",
	} {
		t.Run(src, func(t *testing.T) {
			value, got := &lua.LUserData{}, ""
			s := New(Options{Sure: "u", Condition: func(v lua.LValue, call bool) {
				require.Same(t, value, v)
				got = map[bool]string{true: "call", false: "name"}[call]
			}})
			defer s.L.Close()
			s.L.SetGlobal("held", value)
			s.L.SetGlobal("u", s.L.NewFunction(func(L *lua.LState) int { L.Push(value); return 1 }))
			s.L.SetGlobal("n", s.L.NewFunction(func(L *lua.LState) int { L.Push(lua.LNumber(1)); return 1 }))
			s.L.SetGlobal("many", s.L.NewFunction(func(L *lua.LState) int { L.Push(value); L.Push(value); return 2 }))
			out, err := run(s, src, "test")
			require.NoError(t, err)
			require.Equal(t, want, got)
			if fmt.Sprint(out) != "[2]" {
				require.Equal(t, "[1]", fmt.Sprint(out))
			}
		})
	}
}

// The condition of a chunk that has its environment changed, or whose strings are those of the marks, is seen too.
func TestConditionsHideNowhere(t *testing.T) {
	seen := 0
	s := New(Options{Condition: func(lua.LValue, bool) { seen++ }})
	defer s.L.Close()
	s.L.SetGlobal("u", s.L.NewFunction(func(L *lua.LState) int { L.Push(&lua.LUserData{}); return 1 }))
	_, err := run(s, `local f = loadstring("if u() then end") setfenv(f, {u = u}) f()
		for k in pairs(_G) do assert(not tostring(k):find("sees")) end
		local co = coroutine.wrap(function() if coroutine.yield(1) then return 5 end end)
		assert(co() == 1 and co(u()) == 5)`, "test")
	require.NoError(t, err)
	require.Equal(t, 2, seen)
}

// Chunks are called what Lua 5.1.5 calls them.
func TestChunkNames(t *testing.T) {
	for source, want := range map[string]string{
		"error('x')":                          `[string "error('x')"]`,
		"local a=1\nerror('x')":               `[string "local a=1..."]`,
		"\nerror('x')":                        `[string "..."]`,
		"ab\rc":                               `[string "ab..."]`,
		"":                                    `[string ""]`,
		"=named":                              "named",
		"@file.lua":                           "file.lua",
		"=" + strings.Repeat("n", 80):         strings.Repeat("n", 59),
		"@" + strings.Repeat("0123456789", 8): "...8901234567890123456789012345678901234567890123456789",
		strings.Repeat("a", 43):               `[string "` + strings.Repeat("a", 43) + `"]`,
		strings.Repeat("a", 44):               `[string "` + strings.Repeat("a", 43) + `..."]`,
	} {
		require.Equal(t, want, chunkName(source))
	}
	s := newTestState(t)
	for src, want := range map[string]string{
		`return select(2, pcall(loadstring("local x = 1\nerror('oops')")))`: "" +
			`[string "local x = 1..."]:2: oops`,
		`return select(2, pcall(loadstring("error('oops')", "=there")))`: `there:1: oops`,
		`return select(2, loadstring("x x", "my chunk"))`:                `[string "my chunk"]:1: parse error near 'x'`,
		`return select(2, pcall(load(function() local s = text text = nil return s end)))`: "" +
			`(load):1: in parts`,
	} {
		s.L.SetGlobal("text", lua.LString("error('in parts')"))
		out, err := run(s, src, "test")
		require.NoError(t, err)
		require.Equal(t, want, out[0].String())
	}
}

// A yield that cannot be says so, and not that there is no coroutine.
func TestYieldsAcrossCalls(t *testing.T) {
	s := newTestState(t)
	out, err := run(s, `
		local co = coroutine.create(function() return pcall(function() coroutine.yield(1) end) end)
		local _, _, inside = coroutine.resume(co)
		return inside, select(2, pcall(coroutine.yield))`, "test")
	require.NoError(t, err)
	require.Contains(t, out[0].String(), YieldAcross)
	require.Contains(t, out[1].String(), YieldAcross)
}
