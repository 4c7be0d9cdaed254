package luabind

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// TestTreesCanBeInterrupted: a cancelled context ends the walk over a table of which no entry is an array.
func TestTreesCanBeInterrupted(t *testing.T) {
	t.Parallel()
	large := &lua.LTable{}
	for i := range 4096 {
		large.RawSetInt(i+1, lua.LNumber(i))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, once := range []bool{false, true} {
		w := treeWalk{ctx: ctx, once: once}
		require.NoError(t, w.add(large, 0))
		require.Equal(t, 4096, w.entries)
	}
	stop := errors.New("stop")
	cancel(stop)
	for _, once := range []bool{false, true} {
		w := treeWalk{ctx: ctx, once: once}
		require.ErrorIs(t, w.add(large, 0), stop)
		require.Equal(t, 1024, w.entries)
	}
}

// TestRemovedKeysTakeNoTime: gopher-lua's tables never forget a key, and Next passes over each that was removed. A
// compiled function that reaches such tables is not slower for it, and finds what they hold in the order of before.
func TestRemovedKeysTakeNoTime(t *testing.T) {
	serial.Because(t, "it compares times")
	s := New(Options{})
	defer s.Close()
	s.L.SetGlobal("clock", s.L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LNumber(time.Now().UnixNano()))
		return 1
	}))
	script := `
		local mx = require('mx')
		local x = mx.array{1, 2, 3}
		local function reaching(n)
			local by_table, by_name, list = {}, {}, {}
			local first, second = {}, {}
			for i = 1, n do
				local key = {}
				by_table[key], by_name["k" .. i], list[i] = x, x, x
				if i == n / 4 then by_table[first] = mx.array(10) end
				if i == n / 2 then by_table[second] = mx.array(20) end
				by_table[key], by_name["k" .. i], list[i - 1] = nil, nil, nil
			end
			if n == 0 then by_table[first], by_table[second], list[1] = mx.array(10), mx.array(20), x end
			by_name.a, by_name.b = mx.array(3), mx.array(4)
			local traces = 0
			local f = mx.compile(function(y)
				count = (count or 0) + 1
				return y * by_table[first] - by_table[second] + by_name.a * by_name.b + list[#list]
			end)
			local best = 1 / 0
			local before = count or 0
			for i = 1, 20 do
				local start = clock()
				local y = f(x)
				best = math.min(best, clock() - start)
				assert(mx.array_equal(y, mx.array{3, 14, 25}):item(), tostring(y))
				by_table[first] = mx.array(10)
			end
			assert(count - before == 1, "one trace, not " .. count - before)
			return best
		end
		local few, many = reaching(0), reaching(40000)
		return many / few`
	out, err := s.Run(t.Context(), strings.NewReader(script), "script")
	require.NoError(t, err)
	require.Less(t, float64(out[0].(lua.LNumber)), 100.0,
		"how much slower a call is for 40,000 keys that were removed; elements of a list that are nil are passed over still")
}
