package lua51

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// signed is a value as text, with the sign of a zero.
const signed = `
local function signed(v)
  if v ~= v then return "nan" end
  if v == 0 then return 1 / v < 0 and "-0" or "+0" end
  return tostring(v)
end
local huge = math.huge
local function minus(v) return -v end
`

// Zeros have the signs that Lua 5.1 gives them, in each operation on each two of some values: in registers, with a
// constant on either side, with the result in place of an operand, and where one is a text. The last programs have
// numerals -0: they are one constant with 0, whichever comes first in a function.
func TestSignsOfZeros(t *testing.T) {
	values := []string{"0", "minus(0)", "0.5", "-2", "3", "1e-200", "-1e-200", "1e308", "huge", "-huge"}
	var programs []string
	for _, op := range []string{"+", "-", "*", "/", "%", "^"} {
		for _, a := range values {
			p := signed
			for _, b := range values {
				p += fmt.Sprintf("do local a, b = %s, %s local c, d = a, b c = c %s b d = a %s d "+
					"print(signed(a %s b), signed(c), signed(d)) end\n", a, b, op, op, op)
			}
			programs = append(programs, p)
		}
		p := signed
		for _, a := range values {
			p += "do local a = " + a + strings.ReplaceAll(" print(signed(a ? 0), signed(0 ? a), signed(a ? -2), "+
				"signed(3 ? a)) a = math.max(-9, math.min(a, 9)) "+
				"print(signed(tostring(a) ? 2), signed(0 ? tostring(a))) end\n", "?", op)
		}
		programs = append(programs, p)
	}
	for _, p := range []string{
		`local z = 0 local m = -z print(signed(m), signed(-m), signed(- -m), m == z, m, 1 / m, ("%g"):format(m))`,
		`print(signed(0 * minus(1)), signed(minus(1) * 0), signed(minus(0) + minus(0)), signed(minus(0) - 0))`,
		`print(signed(tonumber("-0")), signed(tonumber("-0.0")), signed(-"0"), signed("-0" + 0), signed("-0" * 1))`,
		`for _, f in ipairs{math.ceil, math.floor, math.abs, math.sqrt, math.sin, math.tan, math.atan, math.asin} do
			print(signed(f(minus(0))), signed(f(0))) end print(signed(math.ceil(-0.5)), signed(math.fmod(-6, 3)))`,
		`print(signed(math.max(minus(0), 0)), signed(math.max(0, minus(0))), signed(math.min(0, minus(0))),
			signed(math.modf(minus(0))), signed(math.ldexp(minus(0), 3)), signed(math.rad(minus(0))))`,
		`for i = minus(0), 1 do print(signed(i)) end for i = 1, minus(0), -1 do print(signed(i)) end`,
		`local t = {minus(0)} print(signed(t[1]), signed(next({[minus(0)] = 1})), ({[0] = "a"})[minus(0)])`,
		`local function f(...) return ... end print(signed(f(minus(0) * 1)), signed(select(2, 1, minus(0) / 3)))`,
		`local c = coroutine.wrap(function(a) a = coroutine.yield(a * -1) return a - 0 end)
			print(signed(c(0)), signed(c(minus(0))))`,
		`local mt = {__mul = function(a, b) return minus(0) end, __sub = function(a, b) return 0 end}
			local o = setmetatable({}, mt) print(signed(o * 1), signed(1 * o), signed(o - minus(0)))`,
		`print(pcall(function() return {} * 0 end)) print(pcall(function(a) return a % 2 end)) print(pcall(function(a)
			return 2 ^ a.b end, {}))`,
		`print(5 % huge == 5 % huge, -5 % huge == -5 % huge, 1e17 % 7, 5.3 % 0.1, -7 % 3, 7 % -3, 1e308 % 3, -1 % 1e-320)`,
		`print(010, 0010 + 1, 1e400, -1e400, 1e400 - 1e400 ~= 0, 0xffffffffffffffff, 0x10000000000000000, 2 ^ 53 + 1)`,
		`print(1 + 2 * 3 - 4 / 8, 2 ^ -1, -2 ^ 2, 7 % 4 .. "", -3 .. "", 1e15 * 10 .. "", (2 - 3) .. "", 1 / 3)`,
		`local a, b = -0, 0 print(1 / a, 1 / b, a, b) print(-0 .. "", 0 .. "")`,
		`local a, b = 0, -0 print(1 / a, 1 / b, a, b) print(-0 .. "", 0 .. "")`,
		`print(0, 1 / 0, 1 / -0, -1 / 0, 0 / 0 ~= 0 / 0, 5 % 0 ~= 5 % -0, -0 ^ -1, (-0) ^ -1)`,
		`print(-0, 1 / 0, 1 / -0, -1 / 0, -0 ^ -1, (-0) ^ -1, -(-0)) print((function() return 1 / 0, -0 end)())`,
		`print(signed(0 * -1), 0) print(signed((function() return 0 / -3 end)()), signed((function() return -0x0 end)()))`,
		`print(signed((function() return 0, -0.0 - 0 end)()), signed((function() return 0 / (-1 / 0) end)()))`,
		`local x = 2 print(x / 0, x / -0, 0 / x, -0 / x, x * -0, 1 / (x * 0))`,
		`local t = {0, -0, [-0] = 1} print(signed(t[1]), signed(t[2]), t[0]) for i = -0, 0 do print(signed(i)) end`,
	} {
		programs = append(programs, signed+p)
	}
	same(t, "zeros", "", programs)
}

// Where gopher-lua is another one, its own instructions stay.
func TestInstructionsFit(t *testing.T) {
	state, fitting := reflect.TypeFor[lua.LState](), jumpTable[:]
	require.True(t, fits(state, fitting))
	require.NotEqual(t, reflect.ValueOf(plain[lua.OP_ADD]).Pointer(), reflect.ValueOf(jumpTable[lua.OP_ADD]).Pointer())
	require.False(t, fits(state, make([]executor, len(fitting))), "no table of this name")
	fields := func(change func(fields []reflect.StructField) []reflect.StructField) reflect.Type {
		var list []reflect.StructField
		for i := range state.NumField() {
			f := state.Field(i)
			f.PkgPath = "github.com/mlxlua/mlxlua/luabind/lua51"
			if f.IsExported() {
				f.PkgPath = ""
			}
			list = append(list, f)
		}
		return reflect.StructOf(change(list))
	}
	type list = []reflect.StructField
	require.True(t, fits(fields(func(f list) list { return f }), fitting))
	require.True(t, fits(fields(func(f list) list { return f[:11] }), fitting), "what comes behind does not matter")
	for name, change := range map[string]func(f list) list{
		"a field fewer":       func(f list) list { return f[:10] },
		"a field between":     func(f list) list { return append(list{{Name: "New", Type: reflect.TypeFor[int]()}}, f...) },
		"another name":        func(f list) list { f[7].Name = "registry"; return f },
		"another type":        func(f list) list { f[7].Type = reflect.TypeFor[*int](); return f },
		"another registry":    func(f list) list { f[7].Type = reflect.TypeFor[*struct{ top int }](); return f },
		"another kind":        func(f list) list { f[10].Type = reflect.TypeFor[int](); return f },
		"an option is larger": func(f list) list { f[5].Type = reflect.TypeFor[[9]int](); return f },
	} {
		require.False(t, fits(fields(change), fitting), name)
	}
	require.False(t, fits(reflect.TypeFor[int](), fitting))
}

// Instructions that fit and do something else are not used.
func TestInstructionsWork(t *testing.T) {
	require.True(t, works())
	kept := jumpTable
	defer func() { jumpTable = kept }()
	for op := lua.OP_ADD; op <= lua.OP_POW; op++ {
		jumpTable = kept
		jumpTable[op] = func(*lua.LState, uint32, unsafe.Pointer) int { panic("another machine") }
		require.False(t, works(), op)
		if op != lua.OP_MOD { // whose zeros are never negative
			jumpTable[op] = plain[op]
			require.False(t, works(), op)
		}
	}
}

// BenchmarkArithmetic runs a loop of numbers by gopher-lua's own instructions and by these.
func BenchmarkArithmetic(b *testing.B) {
	ours := jumpTable
	defer func() { jumpTable = ours }()
	for _, table := range []struct {
		name string
		of   [lua.OP_NOP + 1]executor
	}{{"plain", plain}, {"ours", ours}} {
		b.Run(table.name, func(b *testing.B) {
			jumpTable = table.of
			L := lua.NewState(lua.Options{SkipOpenLibs: true})
			defer L.Close()
			f, err := L.LoadString("local s, k = 0, 1.5 for i = 1, 1e4 do s = s + i * 0.5 - k / 3 end return s")
			require.NoError(b, err)
			for b.Loop() {
				L.Push(f)
				L.Call(0, 1)
				L.Pop(1)
			}
		})
	}
}
