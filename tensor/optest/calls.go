package optest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// GoldenCall is a call of a function of mx, and what MLX gave for it on several inputs: golden/golden.py writes it.
type GoldenCall struct {
	Family string
	Fn     string
	Args   []GoldenArg // in the order in which MLX was given them
	Cases  []GoldenCase
	ULP    *float64    // how far elements may be off, in units of the last place; nil: Tol decides
	Tol    *[2]float64 // relatively and absolutely, for float32, where a few roundings are not enough
}

// GoldenArg is an argument: a parameter's name, and a value of JSON, where {"in": 0} is an input, {"call": ...} another
// call, {"dtype": ...} a dtype, and {"number": ...} a number that JSON has not.
type GoldenArg struct {
	Name  string
	Value any
}

// UnmarshalJSON reads ["axis", -1].
func (a *GoldenArg) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&a.Name, &a.Value})
}

// GoldenCase is inputs, and outputs or a refusal.
type GoldenCase struct {
	In      []string // see goldenCase; or "(2) float32 " and the elements in base64
	Out     []string
	Refused bool
}

var goldenCalls = sync.OnceValues(func() ([]*GoldenCall, error) {
	files, err := goldenFS.ReadDir("testdata")
	if err != nil {
		return nil, err
	}
	var all []*GoldenCall
	for _, file := range files {
		b, err := goldenFS.ReadFile("testdata/" + file.Name())
		if err != nil {
			return nil, err
		}
		var f struct{ Calls []*GoldenCall }
		if err := json.Unmarshal(b, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		for _, c := range f.Calls {
			c.Family = strings.TrimSuffix(file.Name(), ".json")
		}
		all = append(all, f.Calls...)
	}
	return all, nil
})

// GoldenCalls are the calls of all families. Nobody may change them.
func GoldenCalls(t *testing.T) []*GoldenCall {
	t.Helper()
	calls, err := goldenCalls()
	require.NoError(t, err)
	require.NotEmpty(t, calls)
	return calls
}

// String is the call as a script would write it.
func (c *GoldenCall) String() string {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		b, _ := json.Marshal(a.Value) // it came from JSON
		args[i] = a.Name + "=" + string(b)
	}
	return c.Fn + "(" + strings.Join(args, ", ") + ")"
}

// Functions are the names of the function and of those whose calls are arguments.
func (c *GoldenCall) Functions() []string {
	names := []string{c.Fn}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if name, ok := v["call"].(string); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
			walk(v["args"])
		}
	}
	for _, a := range c.Args {
		walk(a.Value)
	}
	return names
}

// Specs are the inputs' shapes and dtypes in a case.
func (c *GoldenCall) Specs(t *testing.T, i int) []tensor.Spec {
	t.Helper()
	out := make([]tensor.Spec, len(c.Cases[i].In))
	for k, text := range c.Cases[i].In {
		part := strings.Fields(text)
		out[k] = spec(t, part[0], part[1])
	}
	return out
}

// Inputs are the inputs of a case.
func (c *GoldenCall) Inputs(t *testing.T, i int) []*tensor.Array {
	t.Helper()
	out := make([]*tensor.Array, len(c.Cases[i].In))
	for k, s := range c.Specs(t, i) {
		text := c.Cases[i].In[k]
		if part := strings.Fields(text); len(part) == 5 {
			lo, err := strconv.ParseFloat(part[3], 64)
			require.NoError(t, err)
			hi, err := strconv.ParseFloat(part[4], 64)
			require.NoError(t, err)
			out[k] = array(s, Gen{part[2], lo, hi}.values(k, s.Shape.Size(), s.DType))
			continue
		}
		out[k] = tensor.FromBytes(&tensor.Ctx{}, s, decodeOutput(t, text).bytes)
	}
	return out
}

// decodeOutput reads "(2,5) float32 " and the elements in base64.
func decodeOutput(t *testing.T, text string) result {
	t.Helper()
	parts := strings.Split(text, " ")
	require.Len(t, parts, 3)
	b, err := base64.StdEncoding.DecodeString(parts[2])
	require.NoError(t, err)
	return result{spec(t, parts[0], parts[1]), b}
}

// Signatures finds a function by its name.
type Signatures func(name string) *sig.Func

// Make makes the call on inputs, by position or with every argument by its name.
func (c *GoldenCall) Make(find Signatures, in []*tensor.Array, named bool) ([]*tensor.Array, error) {
	return makeCall(find, c.Fn, c.Args, in, named)
}

func makeCall(find Signatures, name string, args []GoldenArg, in []*tensor.Array, named bool) ([]*tensor.Array, error) {
	f := find(name)
	if f == nil {
		return nil, fmt.Errorf("there is no function %s", name)
	}
	var pos []any
	byName := map[string]any{}
	many := slices.IndexFunc(f.Params, func(p sig.Param) bool { return p.Many })
	second := func(a GoldenArg) bool { return a.Name == f.Params[1].Name }
	if f.Overloaded && !slices.ContainsFunc(args, second) { // the first argument has no name
		named = false
	}
	for _, a := range args {
		v, err := argument(find, a.Value, in, named)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(f.Params, func(p sig.Param) bool { return p.Name == a.Name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%s has no parameter %s", name, a.Name)
		case f.Params[i].Many:
			pos = append(pos, v.([]any)...)
		case i == len(pos) && (i < many || many < 0 && !named): // those between that are left out make the rest named
			pos = append(pos, v)
		default:
			byName[a.Name] = v
		}
	}
	return Invoke(f, pos, byName)
}

// argument turns a value of JSON into one that Invoke takes.
func argument(find Signatures, v any, in []*tensor.Array, named bool) (any, error) {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = argument(find, e, in, named); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		switch {
		case v["in"] != nil:
			return in[int(v["in"].(float64))], nil
		case v["dtype"] != nil:
			return tensor.ParseDType(v["dtype"].(string))
		case v["number"] != nil:
			return strconv.ParseFloat(v["number"].(string), 64)
		}
		var args []GoldenArg
		for _, a := range v["args"].([]any) {
			pair := a.([]any)
			args = append(args, GoldenArg{pair[0].(string), pair[1]})
		}
		outs, err := makeCall(find, v["call"].(string), args, in, named)
		if err != nil || len(outs) != 1 {
			return nil, errors.Join(err, fmt.Errorf("%v gives %d results", v["call"], len(outs)))
		}
		return outs[0], nil
	}
	return v, nil
}

// Compare says how the results of the call for case i differ from MLX's, nil if they do not.
func (c *GoldenCall) Compare(t *testing.T, i int, outs []*tensor.Array, err error) error {
	t.Helper()
	golden := c.Cases[i]
	if golden.Refused {
		return c.refusal(outs, err)
	}
	if lacks(t, err) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(outs) != len(golden.Out) {
		return fmt.Errorf("%d outputs, want %d", len(outs), len(golden.Out))
	}
	for _, y := range outs {
		if lacks(t, y.Err()) {
			return nil
		}
		if y.Err() != nil {
			return y.Err()
		}
	}
	for k, y := range outs {
		if text, ok := strings.CutSuffix(golden.Out[k], " ?"); ok { // its elements were not computed
			part := strings.Fields(text)
			if want := spec(t, part[0], part[1]); want.String() != y.Spec().String() {
				return fmt.Errorf("output %d is %v, want %v", k, y.Spec(), want)
			}
			continue
		}
		want := decodeOutput(t, golden.Out[k])
		b, err := y.Bytes(context.Background())
		if lacks(t, err) {
			return nil
		}
		if err != nil {
			return err
		}
		if diff := c.differ(want, result{y.Spec(), b}); diff != nil {
			return fmt.Errorf("output %d: %w", k, diff)
		}
	}
	return nil
}

// refusal says that a call which MLX refuses went well here, or that its error names no function.
func (c *GoldenCall) refusal(outs []*tensor.Array, err error) error {
	for _, y := range outs {
		err = errors.Join(err, y.Err())
	}
	if err == nil {
		err = tensor.Eval(context.Background(), outs...)
	}
	if err == nil {
		return errors.New("no error, MLX refuses it")
	}
	if strings.Contains(err.Error(), "BUG") {
		return err
	}
	return nil
}

func (c *GoldenCall) differ(want, got result) error {
	if want.spec.String() != got.spec.String() {
		return fmt.Errorf("is %v, want %v", got.spec, want.spec)
	}
	d := want.spec.DType
	if !d.IsInexact() || len(want.bytes) == 0 {
		if string(want.bytes) != string(got.bytes) {
			return fmt.Errorf("is %v, want %v", got.values(), want.values())
		}
		return nil
	}
	op := Subject{}
	if c.Tol != nil {
		op.Tol = Tol{c.Tol[0], c.Tol[1]}
	}
	tol := op.tol(d)
	w, g := want.values(), got.values()
	for i := range w {
		close := near(real(w[i]), real(g[i]), tol) && near(imag(w[i]), imag(g[i]), tol)
		if c.ULP != nil { // complex numbers are measured as a whole
			units := *c.ULP * ULP(max(finite(real(w[i])), finite(imag(w[i]))), d)
			close = within(real(w[i]), real(g[i]), units) && within(imag(w[i]), imag(g[i]), units)
		}
		if !close {
			return fmt.Errorf("element %d is %v, want %v\n got %v\nwant %v", i, g[i], w[i], g, w)
		}
	}
	return nil
}

// finite is v's distance from 0, 0 for NaN and infinities.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Abs(v)
}

func within(want, got, distance float64) bool {
	return got == want || math.Abs(got-want) <= distance || math.IsNaN(want) && math.IsNaN(got)
}

// Layouts are the names of the layouts that Laid knows: none of them is row-major order.
func Layouts() []string {
	names := make([]string, len(layouts))
	for i, l := range layouts {
		names[i] = l.name
	}
	return names
}

// Laid are the inputs of a case in a layout. If it repeats the first row of an input for all, plain are arrays of the
// same elements in row-major order; otherwise it is nil, and the elements are those of the case. Laid gives nothing for
// integers that float64 does not hold, nor for NaNs of several kinds.
func (c *GoldenCall) Laid(t *testing.T, i int, name string) (laid, plain []*tensor.Array) {
	t.Helper()
	l := layouts[slices.Index(Layouts(), name)]
	for _, x := range c.Inputs(t, i) {
		b, err := x.Bytes(t.Context())
		require.NoError(t, err)
		s := x.Spec()
		v := decode(s.DType, b)
		if !bytes.Equal(encode(s.DType, v), b) {
			return nil, nil
		}
		if l.repeated {
			v = firstRows(s.Shape, v)
			plain = append(plain, array(s, v))
		}
		laid = append(laid, l.make(s, v))
	}
	return laid, plain
}

// Alike compares results of the call with results that are right, such as those of other layouts: nil if neither has
// errors that the other has not, and the elements are as close as Compare wants them.
func (c *GoldenCall) Alike(t *testing.T, want, got []*tensor.Array) error {
	t.Helper()
	if len(want) != len(got) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for k := range want {
		w, wantErr := want[k].Bytes(t.Context())
		g, err := got[k].Bytes(t.Context())
		if (wantErr == nil) != (err == nil) {
			return fmt.Errorf("output %d: %w, want %w", k, err, wantErr)
		}
		if err != nil {
			continue
		}
		if diff := c.differ(result{want[k].Spec(), w}, result{got[k].Spec(), g}); diff != nil {
			return fmt.Errorf("output %d: %w", k, diff)
		}
	}
	return nil
}
