package luabind

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
)

// BenchmarkTrain gives the lower quartile and the least time of a training step, forward, backward and Adam, in
// milliseconds, and the most memory that arrays held meanwhile: of a perceptron and of a small transformer, as they are
// and compiled. BenchmarkTrainEngine is that on a device that runs nothing: it leaves building, planning, recording and
// settling.
//
//	go test ./luabind -run '^$' -bench Train -benchtime 60x
func BenchmarkTrain(b *testing.B) { benchTrain(b) }

func BenchmarkTrainEngine(b *testing.B) {
	onIdleDevice(b, metal.DeviceOptions{})
	benchTrain(b)
}

func benchTrain(b *testing.B) {
	for _, model := range []string{"mlp", "gpt"} {
		for _, mode := range []string{"eager", "compiled"} {
			b.Run(model+"/"+mode, func(b *testing.B) {
				s := New(Options{Libraries: true})
				defer s.Close()
				out, err := s.RunFile(context.Background(), "testdata/bench/train.lua", lua.LString(model), lua.LString(mode))
				require.NoError(b, err)
				step := func() {
					_, err := s.Call(context.Background(), out[0])
					require.NoError(b, err)
				}
				for range 3 {
					step()
				}
				defaultDevice().ResetPeak()
				b.ReportAllocs()
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					step()
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(took[len(took)/4].Seconds()*1e3, "ms/step")
				b.ReportMetric(took[0].Seconds()*1e3, "ms/least")
				b.ReportMetric(float64(defaultDevice().Memory().Peak)/(1<<20), "peakMiB")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
