package optest

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

//go:embed testdata/*.json
var goldenFS embed.FS

// goldenCase is a call and what MLX gave for it. Inputs are formulas: the file holds outputs only.
type goldenCase struct {
	In  []string // "(2,5) float32 uniform -2 2": shape, dtype, generator
	Out []string // "(2,5) float32 " and the elements in base64, row-major, little-endian
}

// input builds input k.
func (c goldenCase) input(t *testing.T, k int) *tensor.Array {
	t.Helper()
	var shape, name string
	var g Gen
	_, err := fmt.Sscan(c.In[k], &shape, &name, &g.Kind, &g.Lo, &g.Hi)
	require.NoError(t, err, c.In[k])
	s := spec(t, shape, name)
	return array(s, g.values(k, s.Shape.Size(), s.DType))
}

// output is output k as MLX gave it.
func (c goldenCase) output(t *testing.T, k int) result {
	t.Helper()
	parts := strings.Split(c.Out[k], " ")
	require.Len(t, parts, 3)
	b, err := base64.StdEncoding.DecodeString(parts[2])
	require.NoError(t, err)
	return result{spec(t, parts[0], parts[1]), b}
}

func spec(t *testing.T, shape, name string) tensor.Spec {
	t.Helper()
	d, err := tensor.ParseDType(name)
	require.NoError(t, err)
	return tensor.Spec{Shape: Input{dims: strings.Trim(shape, "()")}.shape(nil), DType: d}
}

var goldenFiles = struct {
	sync.Mutex
	m map[string]map[string][]goldenCase
}{m: map[string]map[string][]goldenCase{}}

func goldenFile(t *testing.T, name string) map[string][]goldenCase {
	t.Helper()
	goldenFiles.Lock()
	defer goldenFiles.Unlock()
	if f := goldenFiles.m[name]; f != nil {
		return f
	}
	b, err := goldenFS.ReadFile("testdata/" + name)
	require.NoError(t, err)
	var f struct{ Ops map[string][]goldenCase }
	require.NoError(t, json.Unmarshal(b, &f))
	goldenFiles.m[name] = f.Ops
	return f.Ops
}

// checkGolden compares with MLX, over dtypes, values and shapes, empty and scalar ones included.
func checkGolden(t *testing.T, op Subject) {
	cases := goldenFile(t, op.Golden)[op.Name]
	require.NotEmpty(t, cases, "%s has no golden data for %s", op.Golden, op.Name)
	if !Computes(t, tensor.Float64) {
		cases = slices.DeleteFunc(slices.Clone(cases), goldenCase.isFloat64)
	}
	var all []*tensor.Array
	for i, c := range cases {
		in := make([]*tensor.Array, len(c.In))
		for k := range in {
			in[k] = c.input(t, k)
		}
		out := op.Fn(in)
		require.Len(t, out, len(c.Out), "case %d", i)
		for _, y := range out {
			require.NoError(t, y.Err(), "case %d: %v", i, c.In)
		}
		all = append(all, out...)
	}
	got := evaluate(t, all)
	for i, c := range cases {
		for k := range c.Out {
			want := c.output(t, k)
			same(t, want, got[k], op.tol(want.spec.DType), "case %d, output %d of %q", i, k, c.In)
		}
		got = got[len(c.Out):]
	}
}
