package luabind

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/stretchr/testify/require"
)

// A compiled function that is traced again and again says once which argument changed, and what to write.
func TestRetraceWarning(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"local f = mx.compile(function(x) return x + 1 end) for i = 1, 9 do f(mx.zeros({i})) end": "each of the last 4 " +
			"calls, now because argument 1 has shape (5,), not (4,): compile the function with shapeless = true",
		"local f = mx.compile(function(x, n) return x + n end) for i = 1, 9 do f(mx.zeros({2}), i) end": "argument 2 is " +
			"the number 3, not the number 2: pass a number that changes as an array\n",
		"local f = mx.compile(function(x, n) return x + n end) for i = 1, 9 do f(mx.zeros({i}), i) end": "argument 2 is " +
			"the number 3, not the number 2: pass a number that changes as an array\n",
		"local f = mx.compile(function(x, n) return x + n end)\n" +
			"for i = 1, 9 do for _ = 1, 3 do\nf(mx.zeros({2}), i) end end": "warning: warn:3: a compiled function was traced " +
			"3 times for one number, now because argument 2 is the number 3, not the number 2: pass a number that changes " +
			"as an array\n",
		"local t, n = {scale = {1}}, 0 local f = mx.compile(function(x) return x * t.scale[1] + n end)\n" +
			"for i = 1, 9 do t.scale[1] = i f(mx.zeros({2})) f(mx.zeros({2})) end": "t.scale[1] is the number 3, not " +
			"the number 2",
		"local t, n = {scale = {1}}, 0 local f = mx.compile(function(x) return x * t.scale[1] + n end)\n" +
			"for i = 1, 9 do n = i f(mx.zeros({2})) end": "3 times for one number, now because n is the number 3, not " +
			"the number 2",
		"local t = {[1] = 0 / 0, s = 1} local f = mx.compile(function(x) return x * t.s + t[1] end)\n" +
			"for i = 1, 9 do t.s = i f(mx.zeros({2})) end": "now because t.s is the number 3, not the number 2",
		"local t = {b = 0} local f = mx.compile(function(x) return x * t.b end)\n" +
			"for i = 1, 9 do t.b, t.a = i, i % 2 == 1 and 1 or nil f(mx.zeros({2})) end": "now because t.b is the number 3, " +
			"not the number 2",
		"local f = mx.compile(function(t) return t.x * t.y.n end)\n" +
			"for i = 1, 9 do f{x = mx.zeros({2}), y = {n = i}} end": "3 times for one number, now because argument 1.y.n is " +
			"the number 3, not the number 2",
		"local f = mx.compile(function(t) return t.x end)\n" +
			"for i = 1, 9 do f{x = mx.zeros({2}), n = 'n' .. i} end": "each of the last 4 calls, now because what stands " +
			"in tables, its own or its arguments', or in upvalues changed",
		"local f = mx.compile(function(x, n) return x + n end) for i = 1, 9 do f(mx.zeros({2}), i % 2) end": "",
		"local f = mx.compile(function(t) return t.a * t.x.shape[1] end, {shapeless = true})\n" +
			"for i = 1, 9 do f{a = mx.zeros({1}), x = mx.zeros({i})} end": "dimension 0 of input 1, read at warn:1, was",
		"local f = mx.compile(function(x) return x + 1 end) for i = 1, 9 do f(mx.zeros({i})) f(mx.zeros({i})) end": "",
	} {
		var out bytes.Buffer
		s := newTestState(t)
		s.opt.Stderr = &out
		_, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') "+script), "warn")
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, out.String(), script)
			continue
		}
		require.Contains(t, out.String(), want, script)
		require.Equal(t, 1, strings.Count(out.String(), "\n"))
	}
}

// --check-nan finds the op, its line and the first bad index inside of a compiled function, in a replay too.
func TestCheckNaNInCompiledFunctions(t *testing.T) {
	serial.Because(t, "the search for NaNs is switched on for the process")
	s := newTestState(t)
	got := asked(t, s, `mx.check_nan(true)
		local f = mx.compile(function(x)
			local y = x * 2
			return mx.log(y) + 1
		end)
		mx.eval(f(mx.array({1, 2, 3})))
		local _, err = pcall(mx.eval, f(mx.array({1, 2, -3})))
		mx.check_nan(false)
		return tostring(err)`)
	require.Contains(t, got.String(), "asked:4: [log] the output has a NaN at index (2,), and its inputs have none")
}
