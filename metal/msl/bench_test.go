package msl_test

import (
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/metal/msl"
)

// benchText is a kernel of about 50 lines: a softmax over rows with threadgroup memory.
var benchText = `#include <metal_stdlib>
using namespace metal;
#line 1 "header"
inline float row_max(const device float *x, int n, uint lid, uint size) {
  float m = -INFINITY;
  for (int i = lid; i < n; i += size) {
    m = max(m, x[i]);
  }
  return simd_max(m);
}
template <typename T>
inline T scaled(T x, float s) { return T(float(x) * s); }
#line 1 "source"
[[kernel]] void softmax(const device float *x [[buffer(0)]], constant int *x_shape [[buffer(1)]],
                        device float *out [[buffer(2)]], uint3 tpos [[threadgroup_position_in_grid]],
                        uint3 lpos [[thread_position_in_threadgroup]], uint3 tsize [[threads_per_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]]) {
  const int n = x_shape[1];
  const uint row = tpos.x, lid = lpos.x;
  threadgroup float shared_max[32];
  threadgroup float shared_sum[32];
  const device float *in = x + row * n;
  device float *dst = out + row * n;
  float m = row_max(in, n, lid, tsize.x);
  if (lane == 0) {
    shared_max[group] = m;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint groups = (tsize.x + 31) / 32;
  m = simd_max(lane < groups ? shared_max[lane] : -INFINITY);
  float s = 0;
  for (int i = lid; i < n; i += tsize.x) {
    float e = exp(in[i] - m);
    dst[i] = e;
    s += e;
  }
  s = simd_sum(s);
  if (lane == 0) {
    shared_sum[group] = s;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  s = simd_sum(lane < groups ? shared_sum[lane] : 0.0f);
  const float inv = 1.0f / s;
  for (int i = lid; i < n; i += tsize.x) {
    dst[i] = scaled(dst[i], inv);
  }
}
`

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(strings.Count(benchText, "\n")))
	for b.Loop() {
		if _, err := msl.Compile(msl.Source{Name: "bench", Text: benchText}, msl.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
