package luabind

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

var callsFile = flag.String("calls", "testdata/calls.txt", "the calls that TestCalls makes, by testdata/calls.py")

// precision is the distance from 1 to the next number. MLX computes several functions of float64 in float32.
var precision = map[tensor.DType]float64{
	tensor.Float16: 0x1p-10, tensor.BFloat16: 0x1p-7, tensor.Float32: 0x1p-23, tensor.Float64: 0x1p-23,
	tensor.Complex64: 0x1p-23,
}

// TestCalls makes random calls from Lua, which MLX answered: the same dtypes, shapes and values, or an error in both.
func TestCalls(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	s := newTestState(t)
	require.Greater(t, makeCalls(t, s, *callsFile), 1000)
}

var nestedFile = flag.String("nested", "testdata/nested.txt",
	"the calls that TestNestedTransforms makes, by testdata/nested.py")

// TestNestedTransforms makes calls of random nested transforms (vmap of grad of compile ...), which MLX answered.
func TestNestedTransforms(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	s := newTestState(t)
	_, err := s.Run(t.Context(), strings.NewReader("weights = {require('mx').array(1.5)}"), "nested")
	require.NoError(t, err)
	require.Greater(t, makeCalls(t, s, *nestedFile), 100)
}

// makeCalls makes the calls in a file and gives their number.
func makeCalls(t *testing.T, s *State, file string) (made int) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	s.L.SetGlobal("nz", lua.LNumber(math.Copysign(0, -1))) // a Lua program's constants do not tell 0 from -0
	wrong := 0
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		col := strings.Split(line, "\t")
		require.Len(t, col, 3, "line %d", n+1)
		tol, err := strconv.ParseFloat(col[1], 64)
		require.NoError(t, err)
		made++
		if diff := callDiffers(s, col[0], col[2], tol); diff != "" && wrong < 1000 {
			t.Errorf("line %d: %s\n%s", n+1, col[0], diff)
			wrong++
		}
	}
	return made
}

// TestEmptyTables: an empty table after a call's arguments holds no keywords, unless an empty list is a value of the
// parameter in its place. All functions get one more {} in the calls of TestCalls, and MLX's answers stay.
func TestEmptyTables(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	text, err := os.ReadFile("testdata/calls.txt")
	require.NoError(t, err)
	s := newTestState(t)
	s.L.SetGlobal("nz", lua.LNumber(math.Copysign(0, -1)))
	loadLibrary(s)
	names := map[string]int{}
	for name, f := range s.mx.funcs {
		if f.many >= 0 {
			continue
		}
		module, last := s.mx.LTable, name
		if m, rest, ok := strings.Cut(name, "."); ok {
			module, last = s.mx.inner[m], rest
		}
		plain := s.Entry(module, last)
		s.SetEntry(module, last, s.L.NewFunction(func(L *lua.LState) int {
			n := L.GetTop()
			t, _ := L.Get(n).(*lua.LTable)
			keywords := t != nil && t.Len() == 0
			if !keywords && !(n < len(f.params) && f.params[n].takesTable()) {
				L.Push(L.NewTable())
				names[name]++
			}
			L.Insert(plain, 1)
			L.Call(L.GetTop()-1, lua.MultRet)
			return L.GetTop()
		}))
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	lines = append(lines, "mx.sort(mx.array({3, 1, 2}))\t0\tfloat32 (3) 1 2 3",
		"mx.logcumsumexp(mx.array({0, -mx.inf}))\t0\tfloat32 (2) 0 0",
		"mx.take(mx.array({3, 1}), mx.array({1}, mx.int32))\t0\tfloat32 (1) 1",
		"mx.argmax(mx.array({3, 1, 4}))\t0\tuint32 () 2", "mx.sum(mx.array({3, 1, 4}), 0)\t0\tfloat32 () 8")
	for n, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		col := strings.Split(line, "\t")
		tol, err := strconv.ParseFloat(col[1], 64)
		require.NoError(t, err)
		require.Empty(t, callDiffers(s, col[0], col[2], tol), "line %d: %s", n+1, col[0])
	}
	require.Greater(t, len(names), 60)
	require.Positive(t, names["logcumsumexp"]*names["sort"]*names["take"]*names["argmax"]*names["sum"])
}

// callDiffers says how what a Lua expression gives differs from what it should, "" if it does not.
func callDiffers(s *State, code, want string, tol float64) string {
	got, err := callOutputs(s, code)
	switch {
	case err != nil && want == "error":
		return ""
	case err != nil:
		return fmt.Sprintf("the error %v, want %s", err, want)
	case want == "error":
		return "no error"
	}
	outputs := strings.Split(want, "; ")
	if len(got) != len(outputs) {
		return fmt.Sprintf("%d outputs, want %d", len(got), len(outputs))
	}
	for i, w := range outputs {
		head, values := w, ""
		if j := strings.Index(w, ") "); j >= 0 {
			head, values = w[:j+1], w[j+2:]
		}
		x := got[i]
		dims := strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(x.Shape())), " ", ","), "[]")
		have := x.DType().String() + " (" + dims + ")"
		if have != head {
			return fmt.Sprintf("output %d is %s, want %s", i, have, head)
		}
		elements, err := elementTexts(x)
		if err != nil {
			return fmt.Sprintf("the error %v, want %s", err, want)
		}
		wants := strings.Fields(values)
		if len(wants) != len(elements) {
			return fmt.Sprintf("output %d has %d elements, want %d", i, len(elements), len(wants))
		}
		for k, e := range elements {
			if e != wants[k] && !(x.DType().IsInexact() && closeTexts(e, wants[k], tol*precision[x.DType()])) {
				return fmt.Sprintf("output %d, element %d is %s, want %s\n got %v\nwant %v", i, k, e, wants[k], elements, wants)
			}
		}
	}
	return ""
}

// callOutputs evaluates a Lua expression: the arrays among its results, those in tables too.
func callOutputs(s *State, code string) ([]*tensor.Array, error) {
	ctx := context.Background()
	values, err := s.Run(ctx, strings.NewReader("return "+code), "call")
	if err != nil {
		return nil, err
	}
	var out []*tensor.Array
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case *tensor.Array:
			out = append(out, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(toGoAll(s, values))
	return out, tensor.Eval(ctx, out...)
}

// elementTexts are x's elements, a complex one as two, in the form of the file.
func elementTexts(x *tensor.Array) ([]string, error) {
	d := x.DType()
	if d.IsFloat() {
		x = ops.AsType(x, tensor.Float64, wide(nil))
	}
	b, err := x.Bytes(context.Background())
	if err != nil {
		return nil, err
	}
	size := x.DType().Size()
	var out []string
	for ; len(b) > 0; b = b[size:] {
		var u uint64
		for i := range size {
			u |= uint64(b[i]) << (8 * i)
		}
		switch {
		case d.IsFloat():
			out = append(out, strconv.FormatFloat(math.Float64frombits(u), 'g', -1, 64))
		case d.IsComplex():
			for _, at := range []int{0, 4} {
				v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[at:])))
				out = append(out, strconv.FormatFloat(v, 'g', -1, 64))
			}
		case d.IsSigned():
			out = append(out, strconv.FormatInt(int64(u)<<(64-8*size)>>(64-8*size), 10))
		default:
			out = append(out, strconv.FormatUint(u, 10))
		}
	}
	return out, nil
}

// closeTexts compares floating-point numbers: relatively, and absolutely below 1.
func closeTexts(got, want string, tol float64) bool {
	g, err1 := strconv.ParseFloat(got, 64)
	w, err2 := strconv.ParseFloat(want, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	if math.IsNaN(g) || math.IsNaN(w) || math.IsInf(g, 0) || math.IsInf(w, 0) {
		return math.IsNaN(g) && math.IsNaN(w) || g == w
	}
	if tol == 0 { // the file has the shortest text of a float32, which differs from float64's
		return float32(g) == float32(w) && math.Signbit(g) == math.Signbit(w) && (g == 0) == (w == 0)
	}
	return math.Abs(g-w) <= tol*max(1, math.Abs(w))
}
