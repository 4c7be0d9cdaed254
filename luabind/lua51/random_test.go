package lua51

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// A seed decides a state's numbers, whatever other states do; they are spread as Lua 5.1 says.
func TestMathRandom(t *testing.T) {
	draw := func(s *State, src string) string {
		require.NoError(t, s.L.DoString(src+`
			local out = {} for i = 1, 20 do out[i] = math.random(1e6) end result = table.concat(out, " ")`))
		return s.L.GetGlobal("result").(lua.LString).String()
	}
	a, b := newTestState(t), newTestState(t)
	first := draw(a, "")
	require.Equal(t, first, draw(b, ""), "states begin with their seed")
	require.NotEqual(t, first, draw(a, ""))
	seeded := draw(a, "math.randomseed(3)")
	require.Equal(t, seeded, draw(b, "math.randomseed(3)"))
	require.NotEqual(t, seeded, draw(a, "math.randomseed(4)"))
	require.NotEqual(t, seeded, draw(a, "math.randomseed(3.5)"))

	require.NoError(t, a.L.DoString(`
		local seen, sum = {}, 0
		for i = 1, 2000 do
			local x, n, m = math.random(), math.random(6), math.random(-3, 2)
			assert(x >= 0 and x < 1)
			sum = sum + x
			seen["n" .. n], seen["m" .. m] = true, true
		end
		assert(math.abs(sum / 2000 - 0.5) < 0.05)
		for i = 1, 6 do
			assert(seen["n" .. i] and seen["m" .. i - 4])
			seen["n" .. i], seen["m" .. i - 4] = nil, nil
		end
		assert(next(seen) == nil)
		assert(math.random(7, 7) == 7 and math.random(2.9) <= 2)
		local far = math.random(-2^60, 2^60)
		assert(far >= -2^60 and far <= 2^60)`))
	for src, want := range map[string]string{
		"math.random(0)":             "interval is empty",
		"math.random(5, 1)":          "bad argument #2 to random (interval is empty",
		"math.random(0/0)":           "interval is empty",
		"math.random(-math.huge, 1)": "has no end",
		"math.random('x')":           "number expected, got string",
		"math.random(1, 2, 3)":       "wrong number of arguments",
		"math.randomseed()":          "number expected",
	} {
		require.ErrorContains(t, a.L.DoString(src), want, src)
	}
}
