package metal_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
)

// The text of constants is one for all orders, keeps each value, and reads back.
func TestConstantsText(t *testing.T) {
	list := []metal.Constant{
		{Name: "steel::align", Values: []any{true}}, {Index: 20, Values: []any{false, true}},
		{Name: "n", Values: []any{"18446744073709551615"}}, {Name: "x", Values: []any{0.1, math.Inf(-1), 0.5}},
	}
	text, err := metal.ConstantsText(list)
	require.NoError(t, err)
	back, err := metal.ParseConstants(text)
	require.NoError(t, err)
	require.ElementsMatch(t, list, back)
	again, err := metal.ConstantsText([]metal.Constant{list[2], list[3], list[0], list[1]})
	require.NoError(t, err)
	require.Equal(t, text, again)
	for want, c := range map[string][]metal.Constant{
		`"a b" is no name`:           {{Name: "a b", Values: []any{1.0}}},
		"a is given twice":           {{Name: "a", Values: []any{1.0}}, {Name: "a", Values: []any{2.0}}},
		"[3] has no value":           {{Index: 3}},
		`a is "1;b=f2", want digits`: {{Name: "a", Values: []any{"1;b=f2"}}},
		"a is a int":                 {{Name: "a", Values: []any{1}}},
	} {
		_, err := metal.ConstantsText(c)
		require.ErrorContains(t, err, want)
	}
	for _, text := range []string{"a", "a=", "a=1", "=f1", "a=f1;", "b=f1;a=f1", "[x]=f1", "a=fx", "a=f1,", "a=f01"} {
		_, err := metal.ParseConstants(text)
		require.Error(t, err, text)
	}
}
