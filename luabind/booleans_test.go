package luabind

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A boolean is an array where MLX has an operand, and nowhere else.
func TestBooleansAreNoNumbers(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for expr, want := range map[string]string{ // as MLX prints them
		"mx.array({1.5, 2}) + true":                           "array([2.5, 3], dtype=float32)",
		"mx.maximum(mx.array({1.5, 0}), true)":                "array([1.5, 1], dtype=float32)",
		"mx.where(true, mx.array({1.5}), 0)":                  "array([1.5], dtype=float32)",
		"mx.logical_and(mx.array({true, true}), false)":       "array([False, False], dtype=bool)",
		"mx.full({2}, true)":                                  "array([True, True], dtype=bool)",
		"mx.array(true)":                                      "array(True, dtype=bool)",
		"mx.exp(false)":                                       "array(1, dtype=float32)",
		"mx.sort(mx.array({{2, 1}, {0, 3}}), {axis = false})": "array([0, 1, 2, 3], dtype=float32)",
	} {
		out, err := s.Run(context.Background(), strings.NewReader("return tostring("+expr+")"), "chunk")
		require.NoError(t, err)
		require.Equal(t, want, out[0].String(), expr)
	}
	x := "local x, i = mx.array({{1.5, -2.5}}), mx.array({0}, mx.int32) "
	for call, want := range map[string]string{
		"mx.clip(x, -1, false)":                       "a_max is false, want an array or a number; nil leaves it out",
		"mx.clip(x, true, 1)":                         "a_min is true, want an array or a number",
		"mx.pad(x, 1, {constant_values = true})":      "constant_values is true, want an array or a number",
		"mx.take(x, true)":                            "indices is true, want an array of integers",
		"mx.random.normal({2}, {loc = false})":        "loc is false, want an array or a number",
		"mx.random.uniform(false, 1, {2})":            "low is false, want an array or a number",
		"mx.random.uniform(0, 1, {2}, {key = false})": "key is false, want an array; nil leaves it out",
		"mx.fast.layer_norm(x, false, nil, 1e-5)":     "weight is false, want an array; nil leaves it out",
		"mx.complex(1, true)":                         "im is true, want",
		"mx.linspace(false, 1, 3)":                    "start is false, want a number",
		"mx.zeros({true})":                            "shape [1] is true|shape[1] is true",
		"mx.sum(x, true)":                             "axis is true, want an axis",
		"mx.std(x, {ddof = true})":                    "ddof is true",
		"mx.random.key(true)":                         "seed is true, want an integer",
		"mx.reshape(x, {2, true})":                    "[2] is true, want an integer",
	} {
		_, err := s.Run(context.Background(), strings.NewReader(x+"local y = "+call+" return y"), "chunk")
		require.Error(t, err, call)
		require.True(t, slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool {
			return strings.Contains(err.Error(), w)
		}), "%s: %v", call, err)
	}
}
