package ops_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// goldenValue is a case of testdata/values.json: operands and result as text, and how far a float may be from it.
type goldenValue struct {
	Op       string
	DType    string
	In       [][]string
	OutDType string `json:"out_dtype"`
	Out      []string
	ULP      float64
	Shape    []int
	Axes     []int
	Numbers  []string
}

// parseArray makes an array of numbers written as text.
func parseArray(t *testing.T, text []string, d tensor.DType, shape []int) *array {
	b := []byte{}
	for _, s := range text {
		b = append(b, parseElement(t, s, d)...)
	}
	if shape == nil {
		shape = []int{len(text)}
	}
	return tensor.FromBytes(&ctx{}, tensor.Spec{Shape: shape, DType: d}, b)
}

func parseElement(t *testing.T, s string, d tensor.DType) []byte {
	le := binary.LittleEndian
	full := make([]byte, 8)
	switch {
	case d == tensor.Bool || d.IsInteger():
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			u, err := strconv.ParseUint(s, 10, 64)
			require.NoError(t, err)
			v = int64(u)
		}
		le.PutUint64(full, uint64(v))
	case d == tensor.Complex64:
		re, im, _ := strings.Cut(s, " ")
		n := numbers(t, []string{re, im})
		le.PutUint32(full, math.Float32bits(float32(n[0])))
		le.PutUint32(full[4:], math.Float32bits(float32(n[1])))
	default:
		v := numbers(t, []string{s})[0]
		switch d {
		case tensor.Float16:
			le.PutUint16(full, tensor.Float16Bits(float32(v)))
		case tensor.BFloat16:
			le.PutUint16(full, tensor.BFloat16Bits(float32(v)))
		case tensor.Float32:
			le.PutUint32(full, math.Float32bits(float32(v)))
		case tensor.Float64:
			le.PutUint64(full, math.Float64bits(v))
		}
	}
	return full[:d.Size()]
}

// compare gives the first element of got that is further from want than units in the last place allow. NaN is NaN,
// and zeros are equal whatever their signs.
func compare(got, want []byte, d tensor.DType, units float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d bytes, want %d", len(got), len(want))
	}
	for i := 0; i < len(got); i += d.Size() {
		g, w := got[i:i+d.Size()], want[i:i+d.Size()]
		if !d.IsInexact() {
			if string(g) != string(w) {
				return fmt.Errorf("element %d is %v, want %v", i/d.Size(), g, w)
			}
			continue
		}
		gf, wf := optest.Floats(g, d), optest.Floats(w, d)
		largest := 0.0 // complex numbers are measured as a whole
		for _, v := range wf {
			largest = max(largest, math.Abs(v))
		}
		for k, v := range wf {
			close := gf[k] == v || math.Abs(gf[k]-v) <= units*optest.ULP(largest, d)
			if math.IsNaN(v) {
				close = math.IsNaN(gf[k])
			}
			if !close {
				return fmt.Errorf("element %d is %v, want %v within %v units", i/d.Size(), gf, wf, units)
			}
		}
	}
	return nil
}

func (g goldenValue) call(t *testing.T, in []*array, out tensor.DType) *array {
	switch g.Op {
	case "astype":
		return ops.AsType(in[0], out)
	case "arange":
		n := numbers(t, g.Numbers)
		return ops.Arange(n[0], n[1], n[2], out)
	}
	s := goldenSpec{Op: g.Op}
	s.Args.Axes = g.Axes
	return s.call(t, in)
}

// TestValues compares values with MLX's and NumPy's, of all dtypes and with all special numbers.
func TestValues(t *testing.T) {
	optest.OnlyValues(t)
	optest.Open(t)
	for i, g := range readGolden[goldenValue](t, "values.json") {
		d, err := tensor.ParseDType(g.DType)
		require.NoError(t, err)
		out, err := tensor.ParseDType(g.OutDType)
		require.NoError(t, err)
		in := make([]*array, len(g.In))
		for k, text := range g.In {
			in[k] = parseArray(t, text, d, g.Shape)
		}
		y := g.call(t, in, out)
		what := fmt.Sprintf("case %d: %s of %s", i, g.Op, g.DType)
		if !holds(t, y, out, g, what) {
			for k := range g.In {
				t.Logf("operand %d: %v", k, g.In[k])
			}
		}
	}
}

// holds evaluates y and compares it; it goes on after a difference, so that one run shows them all.
func holds(t *testing.T, y *array, out tensor.DType, g goldenValue, what string) bool {
	b, err := y.Bytes(context.Background())
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return false
	}
	if y.DType() != out {
		t.Errorf("%s: dtype %v, want %v", what, y.DType(), out)
		return false
	}
	want := []byte{}
	for _, s := range g.Out {
		want = append(want, parseElement(t, s, out)...)
	}
	if err := compare(b, want, out, g.ULP); err != nil {
		t.Errorf("%s: %v", what, err)
		return false
	}
	return true
}
