package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkLook is a look at a state with its library alone, and with the 1,730 arrays of a model of 48 layers.
func BenchmarkLook(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"library", ""},
		{"model", `
layers = {}
for i = 1, 48 do
  local layer = {}
  for j = 1, 9 do
    layer["block" .. j] = {weight = mx.zeros({1}), scales = mx.zeros({1}), biases = mx.zeros({1}), bits = 4}
  end
  for j = 1, 9 do layer[j] = mx.zeros({1}) end
  layers[i] = layer
end`},
		{"numbers", `t = {} for i = 1, 100000 do t[i] = i end`},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := New(Options{Libraries: true})
			defer s.Close()
			_, err := s.Run(context.Background(), strings.NewReader(c.text), "bench.lua")
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				s.looks.now()
			}
			b.ReportMetric(float64(s.looks.walker.Visits()), "visits")
		})
	}
}
