package luabind

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// toGo is a value that Go's values can carry.
func toGo(s *State, v lua.LValue) any {
	out, err := s.ToGo(context.Background(), v)
	if err != nil {
		panic(err)
	}
	return out
}

func toGoAll(s *State, vs []lua.LValue) []any {
	out, err := s.ToGoAll(context.Background(), "result", vs)
	if err != nil {
		panic(err)
	}
	return out
}

// results runs a script and carries its results to Go.
func results(ctx context.Context, s *State, source string) ([]any, error) {
	return Results(ctx, s, func(ctx context.Context) ([]lua.LValue, error) {
		return s.Run(ctx, strings.NewReader(source), "script")
	})
}

// TestSharedTablesStayShared: a table in 2^60 places is one Go value, and comes back as one table.
func TestSharedTablesStayShared(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	out, err := results(t.Context(), s,
		`local t = {} for i = 1, 60 do t = {t, x and t or t} end return t, {a = t, b = t}`)
	require.NoError(t, err)
	depth := 0
	for list, ok := out[0].([]any); ok; list, ok = list[0].([]any) {
		require.Len(t, list, 2)
		depth++
		if next, ok := list[0].([]any); ok {
			require.Same(t, &next[0], &list[1].([]any)[0])
		}
	}
	require.Equal(t, 60, depth)
	back, err := s.ToLua(out)
	require.NoError(t, err)
	require.NoError(t, s.SetGlobal("back", back))
	same, err := results(t.Context(), s,
		`return back[2].a == back[1] and back[2].b == back[1] and back[1][1] == back[1][2]`)
	require.NoError(t, err)
	require.Equal(t, []any{true}, same)
}

// TestSharedTablesUnderALimit: what a host may write as a tree is no larger than the limit of memory, also where it is
// small because it is shared, as a result, as an argument of a Go function, and as what error was called with.
func TestSharedTablesUnderALimit(t *testing.T) {
	t.Parallel()
	s := New(Options{Limits: Limits{Limits: lua51.Limits{Memory: 8 << 20}}})
	defer s.Close()
	called := false
	f, err := s.ToLua(func(context.Context, []any) ([]any, error) { called = true; return nil, nil })
	require.NoError(t, err)
	require.NoError(t, s.SetGlobal("f", f))
	for _, tree := range []string{
		`local t = {1} for i = 1, 60 do t = {t, t} end `,
		`local t = {a = 1} for i = 1, 60 do t = {a = t, b = t} end `,
		`local x, t = ("x"):rep(1e5), {} for i = 1, 100 do t[i] = x end `,
		`local x, t = {[("x"):rep(1e5)] = 1}, {} for i = 1, 100 do t[i] = x end `,
	} {
		_, err := results(t.Context(), s, tree+"return t")
		require.ErrorIs(t, err, ErrLimit, tree)
		require.ErrorContains(t, err, "result 1")
		_, err = results(t.Context(), s, tree+"f(t)")
		require.ErrorIs(t, err, ErrLimit, tree)
		require.False(t, called)
		_, err = results(t.Context(), s, tree+"error(t)")
		var se *ScriptError
		require.ErrorAs(t, err, &se)
		require.IsType(t, &lua.LTable{}, se.Value)
	}
	out, err := results(t.Context(), s, `local t = {1} for i = 1, 12 do t = {t, t} end return t, ("x"):rep(2^20)`)
	require.NoError(t, err)
	require.Len(t, out, 2)
}

// TestWhatGoCannotCarry: tables that are no lists and no maps of names are errors that say where they are and why.
func TestWhatGoCannotCarry(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	for source, want := range map[string]string{
		`return _G`: "holds itself",
		`local t = {} t.a = {1, {b = t}} return 1, t`:         `result 2["a"][2]["b"]: the table holds itself`,
		`return {1, 2, x = 3}`:                                `result 1: a table has the items 1 to 2 and the key "x"`,
		`return {1, 2, [2.5] = 3}`:                            `the items 1 to 2 and the key 2.5`,
		`return {[true] = 1}`:                                 `result 1: a table has the key true`,
		`return {[-1] = 1}`:                                   `result 1: a table has the key -1`,
		`local t = {} for i = 1, 201 do t = {t} end return t`: `tables are nested deeper than 200 levels`,
	} {
		_, err := results(t.Context(), s, source)
		require.ErrorContains(t, err, want, source)
		var se *ScriptError
		require.ErrorAs(t, err, &se, source)
	}
	require.NoError(t, s.SetGlobal("f", goFunction(s, func(context.Context, []any) ([]any, error) { return nil, nil })))
	_, err := results(t.Context(), s, `f(1, {1, x = 2})`)
	require.ErrorContains(t, err, `script:1: argument 2: a table has the items 1 to 1 and the key "x"`)
	out, err := results(t.Context(), s, `return {1, nil, 3}, {}`)
	require.NoError(t, err)
	require.Equal(t, []any{[]any{1.0, nil, 3.0}, map[string]any{}}, out)
}

// TestConversionsEndWithTheContext: a done context ends a conversion, either way.
func TestConversionsEndWithTheContext(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	s := New(Options{})
	defer s.Close()
	out, err := s.Run(t.Context(), strings.NewReader(`local t = {} for i = 1, 3e5 do t[i] = {i} end return t`),
		"script")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Results(ctx, s, func(context.Context) ([]lua.LValue, error) { return out, nil })
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.ToLuaAll(ctx, []any{make([]int, 1e6)})
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	large := make([]any, 1<<22)
	for i := range large {
		large[i] = []int{i}
	}
	begun := time.Now()
	_, err = s.ToLuaAll(ctx, []any{large})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begun), 20*time.Second) // a bound for a hang, not for a busy machine
}

type celsius float32

type inner struct{ Level uint8 }

type settings struct {
	inner
	hidden  int
	Name    string   `lua:"name"`
	Skipped chan int `lua:"-"`
	Rates   []float32
	Next    *settings
}

// TestGoValuesInLua: what Go's types become.
func TestGoValuesInLua(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	shared := &settings{Name: "shared", hidden: 1}
	for _, c := range []struct {
		v    any
		want string
	}{
		{int8(-3), "v == -3"},
		{int16(-300), "v == -300"},
		{uint8(255), "v == 255"},
		{uint16(65535), "v == 65535"},
		{uint32(1<<32 - 1), "v == 4294967295"},
		{uint64(1 << 53), "v == 2^53"},
		{int64(-1 << 60), "v == -2^60"},
		{uint(7), "v == 7"},
		{celsius(0.5), "v == 0.5"},
		{time.Duration(5), "v == 5"},
		{complex64(complex(1, 2)), "v.re == 1 and v.im == 2"},
		{complex(3, 4), "v.re == 3 and v.im == 4"},
		{[]byte("a\x00b"), `v == "a\0b"`},
		{[]int{1, 2}, "#v == 2 and v[2] == 2"},
		{[3]bool{true}, "#v == 3 and v[1] and not v[2]"},
		{[]string{"a"}, `v[1] == "a"`}, {[][]float64{{1}, {2, 3}}, "v[2][2] == 3"}, {[]int(nil), "#v == 0"},
		{map[string]int{"a": 1}, "v.a == 1"},
		{map[int]string{7: "x"}, `v[7] == "x"`},
		{map[any]any{"k": 1, 2: "two"}, `v.k == 1 and v[2] == "two"`},
		{(*settings)(nil), "v == nil"},
		{shared, `v.name == "shared" and v.Next == nil and v.Level == 0 and v.Skipped == nil and v.hidden == nil`},
		{settings{inner: inner{9}, Rates: []float32{0.25}, Next: shared},
			`v.Level == 9 and v.Rates[1] == 0.25 and v.Next.name == "shared"`},
		{[]*settings{shared, shared}, "v[1] == v[2]"},
		{[]any{nil, 1}, "v[1] == nil and v[2] == 1"},
		{struct {
			Bias *tensor.Array
			Then Func
			N    int
		}{N: 1}, "v.Bias == nil and v.Then == nil and v.N == 1"},
	} {
		v, err := s.ToLua(c.v)
		require.NoError(t, err, "%T", c.v)
		require.NoError(t, s.SetGlobal("v", v))
		out, err := results(t.Context(), s, "return "+c.want)
		require.NoError(t, err, c.want)
		require.Equal(t, []any{true}, out, "%T %s", c.v, c.want)
	}
	number, err := s.ToLua([]complex128{complex(1, 2)})
	require.NoError(t, err)
	require.Equal(t, []any{complex64(complex(1, 2))}, toGo(s, number), "what goes in comes out")
	loop := &settings{}
	loop.Next = loop
	list := []any{nil}
	list[0] = list
	for want, v := range map[string]any{
		"the int64 9007199254740993 is no number of Lua":      int64(1<<53 + 1),
		"the uint64 18446744073709551615 is no number":        ^uint64(0),
		".Next: a Go value of type *luabind.settings holds":   loop,
		"[0]: a Go value of type []interface {} holds itself": list,
		"keys of type bool":                  map[bool]int{true: 1},
		`["c"]: a Go value of type chan int`: map[string]any{"c": make(chan int)},
		"has no counterpart in Lua: it has no exported fields and no methods": struct{ x int }{1},
		"two keys of a Go map are 1 in Lua":                                   map[any]any{1: "a", uint8(1): "b"},
		`have the name "x" in Lua`: struct {
			A int `lua:"x"`
			B int `lua:"x"`
		}{1, 2},
	} {
		_, err := s.ToLua(v)
		require.ErrorContains(t, err, want)
	}
	_, err = s.ToLuaAll(t.Context(), []any{1, []any{make(chan int)}})
	require.ErrorContains(t, err, "2[0]: a Go value of type chan int")
}

// TestCaughtErrors: what pcall gives Go instead of results is what error was called with, or the message.
func TestCaughtErrors(t *testing.T) {
	t.Parallel()
	s := New(Options{Limits: Limits{Limits: lua51.Limits{Memory: 8 << 20}}})
	defer s.Close()
	for name, f := range map[string]Func{
		"refuse": func(context.Context, []any) ([]any, error) { return nil, errors.New("refused") },
		"apply":  func(ctx context.Context, args []any) ([]any, error) { return args[0].(Func)(ctx, args[1:]) },
	} {
		v, err := s.ToLua(f)
		require.NoError(t, err)
		require.NoError(t, s.SetGlobal(name, v))
	}
	const broken = "script:1: [add] shapes (2,) and (3,) cannot be broadcast"
	for source, want := range map[string]any{
		`pcall(function() return mx.ones({2}) + mx.ones({3}) end)`:                              broken,
		`coroutine.resume(coroutine.create(function() return mx.ones({2}) + mx.ones({3}) end))`: broken,
		`pcall(refuse)`:                                     "script:1: refused",
		`pcall(error, {code = 5})`:                          map[string]any{"code": 5.0},
		`pcall(apply, function() error({code = 7}) end)`:    map[string]any{"code": 7.0},
		`pcall(apply, function() error("seven") end)`:       "script:1: seven",
		`pcall(apply, apply, function() error({1, 2}) end)`: []any{1.0, 2.0},
	} {
		out, err := results(t.Context(), s, "return "+source)
		require.NoError(t, err, source)
		require.Equal(t, []any{false, want}, out, source)
	}
	_, err := results(t.Context(), s, `local _, e = pcall(apply, function() error({("x"):rep(1e6)}) end)
		return {e, e, e, e, e, e, e, e, e}`)
	require.ErrorIs(t, err, ErrLimit, "what stands in nine places is counted nine times")
}

// TestWhatCanBeCalled: compiled functions, kernels and other objects that can be called are functions to Go.
func TestWhatCanBeCalled(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	out, err := results(t.Context(), s, `
		function square(x) return x * x end
		compiled, layer, number = mx.compile(square), mx.nn.Linear(2, 3), 1
		return compiled, mx.custom_function(square)`)
	require.NoError(t, err)
	x := ops.FromSlice([]float32{3}, nil, nil)
	for _, f := range append(out, s.Function("square"), s.Function("compiled")) {
		y, err := f.(Func)(t.Context(), []any{x})
		require.NoError(t, err)
		v, err := ops.ToSlice[float32](t.Context(), y[0].(*tensor.Array))
		require.NoError(t, err)
		require.Equal(t, []float32{9}, v)
	}
	require.NotNil(t, s.Function("layer"))
	require.Nil(t, s.Function("number"))
	require.Nil(t, s.Function("nothing"))
}

// TestErrorValues: an error that a script raises reaches the host with its value and its line.
func TestErrorValues(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	for _, c := range []struct {
		source, message string
		value           any
		line            int
	}{
		{"local x = 1\nerror({code = 5})", "(error object is a table value)", map[string]any{"code": 5.0}, 2},
		{"error({code = 5, message = 'no rows'})", "no rows", map[string]any{"code": 5.0, "message": "no rows"}, 1},
		{"error(setmetatable({}, {__tostring = function() return 'text' end}))", "text", map[string]any{}, 1},
		{"\n\nerror('plain', 0)", "plain", "plain", 3},
		{"error('placed')", "script:1: placed", "script:1: placed", 1},
		{"error(42)", "script:1: 42", "script:1: 42", 1}, // as in Lua 5.1, which takes a number for a text
		{"error(42, 0)", "42", 42.0, 1},
		{"\nreturn mx.ones({2}) + mx.ones({3})", "", nil, 2},
		{"return 1 +\n* 2", "", nil, 2},
	} {
		_, err := results(t.Context(), s, c.source)
		var se *ScriptError
		require.ErrorAs(t, err, &se, c.source)
		if c.message != "" {
			require.Equal(t, c.message, se.Message, c.source)
		}
		require.Equal(t, c.value, se.Value, c.source)
		require.Equal(t, "script", se.File, c.source)
		require.Equal(t, c.line, se.Line, c.source)
	}
	_, err := results(t.Context(), s, "local t = {} t.t = t error(t)")
	var se *ScriptError
	require.ErrorAs(t, err, &se)
	require.IsType(t, &lua.LTable{}, se.Value, "no Go value can carry it")
}
