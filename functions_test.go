package mlxlua_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
)

// asked is the key of a value in a context.
type asked struct{}

// layer is a struct of a host's: with fields, a tag, and methods of both kinds.
type layer struct {
	Name   string `lua:"name"`
	Sizes  []int
	Weight *mlxlua.Array
	Scale  float64
	hidden int
}

// Grow changes the layer.
func (l *layer) Grow(by int) (int, error) {
	if by < 0 {
		return 0, errors.New("cannot shrink")
	}
	l.hidden += by
	l.Sizes = append(l.Sizes, l.hidden)
	return l.hidden, nil
}

// Total needs no pointer.
func (l layer) Total(ctx context.Context, more ...float64) float64 {
	sum := l.Scale
	for _, n := range l.Sizes {
		sum += float64(n)
	}
	for _, x := range more {
		sum += x
	}
	if ctx.Err() != nil {
		return -1
	}
	return sum
}

// String is its text.
func (l *layer) String() string { return fmt.Sprintf("layer %s of %d", l.Name, len(l.Sizes)) }

// TestAnyFunction: Go functions of any type are functions in Lua: arguments become the types of the parameters, a
// context is the call's, results become values, and a last error the script's.
func TestAnyFunction(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	ctx := context.WithValue(t.Context(), asked{}, "of the call")
	type point struct{ X, Y float32 }
	type celsius float64
	for name, f := range map[string]any{
		"add":     func(a, b int) int { return a + b },
		"join":    func(sep string, parts ...string) string { return strings.Join(parts, sep) },
		"nothing": func() {},
		"several": func(on bool) (string, []float64, map[string]int) {
			return fmt.Sprint(on), []float64{1, 2}, map[string]int{"a": 1}
		},
		"fails":   func(text string) (int, error) { return 0, errors.New("failed: " + text) },
		"works":   func() (int, error) { return 7, nil },
		"only":    func() error { return nil },
		"called":  func(ctx context.Context) any { return ctx.Value(asked{}) },
		"turned":  func(p point) point { return point{p.Y, p.X} },
		"where":   func(p *point) bool { return p == nil },
		"bytes":   func(b []byte) int { return len(b) },
		"matrix":  func(rows [][]int8) int { return int(rows[1][0]) },
		"pair":    func(p [2]uint16) uint16 { return p[0] + p[1] },
		"counts":  func(m map[string]celsius) celsius { return m["a"] },
		"numbers": func(m map[int]string) string { return m[2] },
		"any":     func(vs ...any) string { return fmt.Sprint(vs) },
		"size":    func(x *mlxlua.Array) int { return x.Size() },
		"twice": func(ctx context.Context, f mlxlua.Func, v any) ([]any, error) {
			out, err := f(ctx, []any{v})
			if err != nil {
				return nil, err
			}
			return f(ctx, out)
		},
		"mapped": func(list []float64, f func(float64) float64) []float64 {
			out := make([]float64, len(list))
			for i, x := range list {
				out[i] = f(x)
			}
			return out
		},
		"tried":   func(f func(string) (int, error)) string { _, err := f("x"); return fmt.Sprint(err != nil) },
		"panics":  func(i int) int { return []int{1}[i] },
		"complex": func(z complex128) complex128 { return z * z },
	} {
		require.NoError(t, s.Set(name, f), name)
	}
	for source, want := range map[string][]any{
		`return add(2, 3)`:                           {5.0},
		`return join("-", "a", "b", "c"), join("-")`: {"a-b-c", ""},
		`return nothing()`:                           nil,
		`return several(true)`: {"true", []any{1.0, 2.0},
			map[string]any{"a": 1.0}},
		`return works(), only()`:                                                 {7.0},
		`return called()`:                                                        {"of the call"},
		`return turned({X = 1, Y = 2})`:                                          {map[string]any{"X": 2.0, "Y": 1.0}},
		`return where(), where(nil), where({X = 1})`:                             {true, true, false},
		`return bytes("four"), bytes({1, 2})`:                                    {4.0, 2.0},
		`return matrix({{}, {-5}}), pair({3, 4})`:                                {-5.0, 7.0},
		`return counts({a = 36.6}), counts({}), numbers({"x", "y"})`:             {36.6, 0.0, "y"},
		`return any(1, "a", nil, true)`:                                          {"[1 a <nil> true]"},
		`return size(mx.ones({2, 3}))`:                                           {6.0},
		`return twice(function(x) return x * 3 end, 2)`:                          {[]any{18.0}},
		`return mapped({1, 2}, function(x) return x + 0.5 end)`:                  {[]any{1.5, 2.5}},
		`return tried(function(x) error(x) end), tried(function() return 1 end)`: {"true", "false"},
		`return select(2, pcall(fails, "why"))`:                                  {"script:1: failed: why"},
		`return tostring(complex(mx.complex(0, 1)))`:                             {"-1+0j"},
	} {
		out, err := s.Run(ctx, "script", source)
		require.NoError(t, err, source)
		if source == `return select(2, pcall(fails, "why"))` {
			out[0] = fmt.Sprint(out[0])
		}
		require.Equal(t, want, out, source)
	}
	for source, want := range map[string]string{
		`add(1)`:                      "script:1: argument 2: is nil, want int: ",
		`add(1, 2, 3)`:                "script:1: got 3 arguments, want 2: ",
		`add(1, 1.5)`:                 "argument 2: is the number 1.5, want int: ",
		`add(1, 2^70)`:                "argument 2: is the number 1.18059162071741",
		`add("1", 2)`:                 `argument 1: is the string "1", want int: `,
		`join("-", 1)`:                "argument 2: is the number 1, want string: ",
		`matrix({{1}, {200}})`:        "argument 1[2][1]: is the number 200, want int8: ",
		`pair({1, 2, 3})`:             "argument 1: is a table, want [2]uint16: ",
		`turned({X = 1, Z = 2})`:      `argument 1: has the name "Z", which is no field of mlxlua_test.point: `,
		`turned({X = true})`:          "argument 1.X: is true, want float32: ",
		`size(3)`:                     "argument 1: is the number 3, want *Array: ",
		`mapped({1}, print, 1)`:       "got 3 arguments, want 2: ",
		`mapped({1}, function() end)`: "result 1 of a script's function: is nil, want float64",
		`mapped({1}, function() error("inside") end)`: "inside",
		`panics(3)`: "a Go function panicked: runtime error: index out of range [3] with length 1",
	} {
		_, err := s.Run(ctx, "script", source)
		require.ErrorContains(t, err, want, source)
		var script *mlxlua.ScriptError
		require.ErrorAs(t, err, &script)
		require.Equal(t, strings.HasPrefix(source, "panics") || strings.HasPrefix(source, "mapped({1}, function"),
			script.Go != nil, source)
	}
	require.ErrorContains(t, s.Set("x", (func(int))(nil)), "a nil func(int) has no counterpart in Lua")
}

// TestMethods: a struct's methods are callable on its table. They act on the struct of Go with what the script has set,
// and the table has its fields afterwards; Go gets the struct back.
func TestMethods(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{Sandbox: true})
	l := &layer{Name: "first", Sizes: []int{1}, Scale: 0.5}
	require.NoError(t, s.Set("l", l))
	require.NoError(t, s.Set("copied", *l))
	require.NoError(t, s.Set("name_of", func(l *layer) string { return l.Name }))
	require.NoError(t, s.Set("same", func(other any) bool { return other == any(l) }))
	out, err := s.Run(t.Context(), "script", `
		local n = l:Grow(3)
		l:Grow(2)
		assert(#l.Sizes == 3 and l.Sizes[3] == 5)
		l.name, l.Scale = "second", 10
		local fields = {}
		for k in pairs(l) do fields[#fields + 1] = k end
		table.sort(fields)
		return n, l:Total(), l:Total(1, 2), tostring(l), name_of(l), same(l), same(copied),
			fields, copied:Grow(1), name_of(copied)`)
	require.NoError(t, err)
	require.Equal(t, []any{3.0, 19.0, 22.0, "layer second of 3", "second", true, false,
		[]any{"Scale", "Sizes", "name"}, 1.0, "first"}, out)
	require.Equal(t, layer{Name: "second", Sizes: []int{1, 3, 5}, Scale: 10, hidden: 5}, *l)
	require.Same(t, l, get(t, s, "l"))
	require.Equal(t, []int{1, 1}, get(t, s, "copied").(layer).Sizes)
	for source, want := range map[string]string{
		`l:Grow(-1)`: "script:1: cannot shrink",
		`l.Grow(1)`: "Grow is a method of *mlxlua_test.layer: " +
			"call it as object:Grow(...), it got the number 1",
		`l:Grow()`:                    "argument 1: is nil, want int",
		`l.Scale = "x" l:Total()`:     `the field Scale: is the string "x", want float64`,
		`l.grow()`:                    "nil",
		`getmetatable(l).__index = 1`: "index",
		`setmetatable(l, {})`:         "protected metatable",
	} {
		_, err := s.Run(t.Context(), "script", source)
		require.ErrorContains(t, err, want, source)
		l.Scale = 10
		require.NoError(t, s.Set("l", l))
	}
}

// TestFromSliceWithoutAShape: elements without a shape lie in one dimension.
func TestFromSliceWithoutAShape(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{3}, []int(mlxlua.FromSlice([]float32{1, 2, 3}).Shape()))
	require.Equal(t, []int{1}, []int(mlxlua.FromSlice([]int32{5}).Shape()))
	require.Equal(t, []int{0}, []int(mlxlua.FromSlice[float32](nil).Shape()))
	require.Equal(t, []int{}, []int(mlxlua.FromSlice([]int32{5}, []int{}...).Shape()))
	require.Equal(t, []int{}, []int(mlxlua.Scalar(int32(5)).Shape()))
	require.Equal(t, []int{2, 1}, []int(mlxlua.FromSlice([]int32{5, 6}, 2, 1).Shape()))
}
