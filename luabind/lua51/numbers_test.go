package lua51

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// What Lua 5.1 gives, on a system where its strtoul has 64 bits.
func TestToNumber(t *testing.T) {
	s := newTestState(t)
	for src, want := range map[string]string{
		`tonumber("1e1"), tonumber("1e-3"), tonumber("5E3"), tonumber("1.5e3")`:                    "10 0.001 5000 1500",
		`tonumber(" 0x10 "), tonumber("-0x10"), tonumber("+5"), tonumber("\t-5\n"), tonumber(7)`:   "16 -16 5 -5 7",
		`tonumber("010"), tonumber("1."), tonumber("-.5"), tonumber("1e400")`:                      "10 1 -0.5 inf",
		`tonumber("."), tonumber("-"), tonumber(""), tonumber("1 2"), tonumber("0x")`:              "nil nil nil nil nil",
		`tonumber("1_000"), tonumber("0b11"), tonumber("0o7"), tonumber("1e"), tonumber("--1")`:    "nil nil nil nil nil",
		`tonumber("ff", 16), tonumber("0xFF", 16), tonumber("zZ", 36), tonumber("101", 2)`:         "255 255 1295 5",
		`tonumber("7", 2), tonumber("1e5", 10), tonumber(5, 10), tonumber(nil), tonumber({})`:      "nil 100000 5 nil nil",
		`"010" + 1, 1 - "010", "010" * "2", "0x10" / 4, "-7" % "3", 7 % "-3", "2" ^ 3, -"010"`:     "11 -9 20 4 2 -2 8 -10",
		`" 5\t" + 1, "1e1" + 0, ".5" + 0, "1e400" * 1, "5" % math.huge`:                            "6 10 0.5 inf nan",
		`"10" + setmetatable({}, {__add = function(a) return a .. "!" end}), ("x"):rep(2), #"abc"`: "10! xx 3",
		`setmetatable({}, {__sub = function(_, b) return b .. "!" end}) - "10", string.__index`:    "10! nil",
		`pcall(tonumber, "1", 37) == false, pcall(tonumber) == false`:                              "true true",
	} {
		require.NoError(t, s.L.DoString(`local function text(...) local out = {...}
			for i = 1, select("#", ...) do out[i] = tostring(out[i]) end return table.concat(out, " ") end
			result = text(`+src+`)`), src)
		require.Equal(t, want, s.L.GetGlobal("result").(lua.LString).String(), src)
	}
}
