package optest

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

//go:embed testdata/*.json
var goldenFS embed.FS

// goldenCase is a call and what MLX gave for it. Inputs are formulas: the file holds outputs only.
type goldenCase struct {
	In []struct {
		Shape []int
		Gen   Gen
		DType string
	}
	Out []struct {
		Shape []int
		DType string
		Data  string // base64 of the elements, row-major, little-endian
	}
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
func checkGolden(t *testing.T, op Op) {
	cases := goldenFile(t, op.Golden)[op.Name]
	require.NotEmpty(t, cases, "%s has no golden data for %s", op.Golden, op.Name)
	var all []*tensor.Array
	counts := make([]int, len(cases))
	for i, c := range cases {
		in := make([]*tensor.Array, len(c.In))
		for k, x := range c.In {
			s := tensor.Spec{Shape: x.Shape, DType: dtype(t, x.DType)}
			in[k] = array(s, x.Gen.values(k, s.Shape.Size(), s.DType))
		}
		out := op.Fn(in)
		for _, y := range out {
			require.NoError(t, y.Err(), "case %d: %v", i, c.In)
		}
		require.Len(t, out, len(c.Out), "case %d", i)
		counts[i] = len(out)
		all = append(all, out...)
	}
	got := evaluate(t, all)
	for i, c := range cases {
		for k, want := range c.Out {
			b, err := base64.StdEncoding.DecodeString(want.Data)
			require.NoError(t, err)
			d := dtype(t, want.DType)
			w := result{tensor.Spec{Shape: want.Shape, DType: d}, b}
			same(t, w, got[k], op.tol(d), "case %d, output %d of %s", i, k, describe(c))
		}
		got = got[counts[i]:]
	}
}

func describe(c goldenCase) string {
	s := ""
	for _, x := range c.In {
		s += fmt.Sprintf("%s %v %v; ", x.DType, tensor.Shape(x.Shape), x.Gen)
	}
	return s
}

func dtype(t *testing.T, name string) tensor.DType {
	t.Helper()
	d, err := tensor.ParseDType(name)
	require.NoError(t, err)
	return d
}
