package luabind

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// answersOfDTypes is testdata/dtypes.json: the rows of matrices are strings of 0 and 1.
type answersOfDTypes struct {
	Names, Kinds, Issubdtype, Isdtype []string
	CanCast                           []string                  `json:"can_cast"`
	ResultType                        [][]string                `json:"result_type"`
	Printed                           map[string]map[string]any // by precision, then by dtype
}

// asked runs a script that answers with one value.
func asked(t *testing.T, s *State, script string, args ...any) lua.LValue {
	t.Helper()
	script = fmt.Sprintf(script, args...)
	out, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') "+script), "asked")
	require.NoError(t, err, script)
	require.Len(t, out, 1, script)
	return out[0]
}

// What mx says of dtypes is what MLX says of them, and so is how arrays print.
func TestDTypeAnswers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/dtypes.json")
	require.NoError(t, err)
	var a answersOfDTypes
	require.NoError(t, json.Unmarshal(text, &a))
	s := newTestState(t)
	dtypes := a.Names[:len(a.CanCast)]
	bit := func(row string, i int) lua.LValue { return lua.LBool(row[i] == '1') }
	for i, x := range a.Names {
		for j, y := range a.Names {
			require.Equal(t, bit(a.Issubdtype[i], j), asked(t, s, "return mx.issubdtype(mx.%s, mx.%s)", x, y), "%s %s", x, y)
		}
	}
	for i, x := range dtypes {
		for j, k := range a.Kinds {
			require.Equal(t, bit(a.Isdtype[i], j), asked(t, s, "return mx.isdtype(mx.%s, %q)", x, k), "%s %s", x, k)
		}
		for j, y := range dtypes {
			require.Equal(t, bit(a.Isdtype[i], len(a.Kinds)+j), asked(t, s, "return mx.isdtype(mx.%s, {mx.%s})", x, y))
			require.Equal(t, bit(a.CanCast[i], j), asked(t, s, "return mx.can_cast(mx.zeros({}, mx.%s), mx.%s)", x, y))
			require.Equal(t, a.ResultType[i][j], asked(t, s,
				"return tostring(mx.result_type(mx.%s, mx.ones({}, mx.%s)))", x, y).String())
		}
	}
	require.Equal(t, "float32", asked(t, s, "return tostring(mx.result_type(mx.int8, mx.float16, mx.bfloat16))").String())
	for script, want := range map[string]string{
		"mx.issubdtype(1, mx.floating)":            "[issubdtype] arg1 is the number 1, want a dtype or a category",
		"mx.isdtype(mx.int8, 'whole')":             `[isdtype] kind is "whole", want bool, signed integer`,
		"mx.isdtype(mx.int8, {mx.int16, 'whole'})": `[isdtype] kind is "whole", want bool, signed integer`,
		"mx.result_type()":                         "[result_type] no array or dtype is given",
		"mx.result_type(mx.int8, 1)":               "[result_type] arrays_and_dtypes[2] is the number 1, want an array",
		"mx.can_cast('int8', mx.int16)":            "[can_cast] from_ is the string \"int8\", want an array or a dtype",
	} {
		_, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') return "+script), "asked")
		require.ErrorContains(t, err, want, script)
	}
	numbers := "0, -0.0, 1, 1.123456789, -2.5, 0.125, 12345.678, 1e10, 1e-7, 1/0, -1/0, 0/0"
	for precision, by := range a.Printed {
		for d, want := range by {
			if d == "complex" {
				require.Equal(t, want, asked(t, s, "mx.set_printoptions(%s) return tostring(mx.array(mx.complex(1.256, -2.5)))",
					precision).String())
				continue
			}
			var got []any
			for _, v := range strings.Split(numbers, ", ") {
				if d == "int32" && strings.ContainsAny(v, "/") || d == "int32" && v == "1e10" {
					continue
				}
				got = append(got, asked(t, s, "return mx.printoptions(%s, function() return "+
					"tostring(mx.array(%s, mx.float64):astype(mx.%s)) end)", precision, v, d).String())
			}
			for i, text := range want.([]any) {
				if strings.Contains(text.(string), "nan") { // the sign of a NaN is the processor's
					text, got[i] = strings.ReplaceAll(text.(string), "-nan", "nan"), strings.ReplaceAll(got[i].(string), "-nan", "nan")
				}
				require.Equal(t, text, got[i], "%s, precision %s", d, precision)
			}
		}
	}
}

// The options of a state are its own, and printoptions puts them back after an error.
func TestPrintOptions(t *testing.T) {
	t.Parallel()
	s, other := newTestState(t), newTestState(t)
	text := "return tostring(mx.array(0.123456789))"
	got := asked(t, s, "mx.set_printoptions{precision = 2} pcall(mx.printoptions, 4, function() error('x') end) "+text)
	require.Equal(t, "array(0.12, dtype=float32)", got.String())
	require.Equal(t, "array(0.123457, dtype=float32)", asked(t, other, text).String())
	require.Equal(t, lua.LNumber(2), asked(t, s, "return mx.get_printoptions().precision"))
	require.Equal(t, "array(0.123457, dtype=float32)", asked(t, s, "mx.set_printoptions() "+text).String())
	for script, want := range map[string]string{
		"mx.set_printoptions(-2)": "[set_printoptions] precision is -2, want -1 or a number of places",
		"mx.printoptions(2)":      "[printoptions] f is missing",
	} {
		_, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') "+script), "asked")
		require.ErrorContains(t, err, want)
	}
}
