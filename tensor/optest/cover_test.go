package optest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

func TestUncovered(t *testing.T) {
	names := []string{"a", "b", "c", "d", "mx.e", "mx.f", "d"}
	cover(Subject{Name: "a of some kind"})
	cover(Subject{Name: "some name", Ops: []string{"b"}})
	Call("mx.e")
	require.Equal(t, []string{"d", "mx.f"}, uncovered(names, map[string]string{"c": "its own test"}))
	cover(Subject{Name: "f"})
	require.Equal(t, []string{"d"}, uncovered(names, map[string]string{"c": "its own test"}))
}

func TestLayoutsKeepTheirElements(t *testing.T) {
	Open(t)
	s := tensor.Spec{Shape: tensor.Shape{2, 3, 4}, DType: tensor.Int32}
	v := make([]complex128, 24)
	for i := range v {
		v[i] = complex(float64(i), 0)
	}
	for _, l := range layouts {
		want := v
		if l.repeated {
			want = firstRows(s.Shape, v)
		}
		got := evaluate(t, []*tensor.Array{l.make(s, v)})[0]
		require.Equal(t, s.String(), got.spec.String(), l.name)
		require.Equal(t, want, got.values(), l.name)
	}
}

func TestEncodeDecode(t *testing.T) {
	v := []complex128{0, 1, 2.5, 100}
	for _, d := range tensor.DTypes() {
		want := Uniform(0, 8).values(0, 20, d)
		if d == tensor.Bool {
			continue
		}
		require.Equal(t, want, decode(d, encode(d, want)), "%v", d)
	}
	require.Equal(t, v, decode(tensor.Float64, encode(tensor.Float64, v)))
	require.Equal(t, []complex128{1, -2i}, decode(tensor.Complex64, encode(tensor.Complex64, []complex128{1, -2i})))
}
