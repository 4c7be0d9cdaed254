package fft_test

import (
	"context"
	"testing"
	"time"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fft"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// BenchmarkFFT measures transforms of many lengths: the best of the calls, since others use the machine too.
func BenchmarkFFT(b *testing.B) {
	rows := func(x *array) *array { return fft.FFT(x, nil, -1, fft.Backward) }
	for _, r := range []struct {
		name  string
		shape []int
		f     func(x *array) *array
	}{
		{"fft 1024x1024", []int{1024, 1024}, rows},
		{"rfft 1024x1024", []int{1024, 1024}, func(x *array) *array {
			return fft.RFFT(ops.Real(x), nil, -1, fft.Backward)
		}},
		{"fft2 1024x1024", []int{1024, 1024}, func(x *array) *array {
			return fft.FFT2(x, nil, []int{0, 1}, fft.Backward)
		}},
		{"fft 16384x64", []int{16384, 64}, rows},
		{"fft 64x16384", []int{64, 16384}, rows},
		{"fft 1x1048576", []int{1, 1 << 20}, rows},
		{"fft 1024x1009", []int{1024, 1009}, rows},
		{"fft 64x10007", []int{64, 10007}, rows},
	} {
		b.Run(r.name, func(b *testing.B) {
			optest.Open(b)
			x := ops.FromSlice(numbers(tensor.Shape(r.shape).Size(), 4), r.shape)
			best := time.Hour
			for range b.N {
				start := time.Now()
				if err := tensor.Eval(context.Background(), r.f(x)); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
			}
			b.ReportMetric(best.Seconds()*1e3, "best-ms")
		})
	}
}
