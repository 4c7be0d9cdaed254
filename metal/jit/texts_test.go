//go:build amd64 || arm64

package jit

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/native"
)

// floatBytes returns n floats between -1 and 1, in memory of their own.
func floatBytes(tb testing.TB, n int) []byte {
	b, err := native.Map(4 * n)
	require.NoError(tb, err)
	tb.Cleanup(func() { native.Unmap(b) })
	seed := uint32(1)
	for i := range n {
		seed = seed*1664525 + 1013904223
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(int32(seed))/(1<<31)))
	}
	return b[:4*n]
}

func words(v ...uint32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

const geluText = `
kernel void gelu(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]],
                 const device float* c [[buffer(2)]], device float* out [[buffer(3)]],
                 uint i [[thread_position_in_grid]]) {
    float x = a[i] * b[i] + c[i];
    out[i] = 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}`

const qmvText = `
kernel void qmv(const device uint* w [[buffer(0)]], const device float* scales [[buffer(1)]],
                const device float* biases [[buffer(2)]], const device float* x [[buffer(3)]],
                device float* out [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
                uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
    constexpr uint K = 4096;
    uint row = group * 8 + sg;
    float acc = 0;
    for (uint k = lane; k < K / 8; k += 32) {
        uint packed = w[row * (K / 8) + k];
        float dot = 0, sum = 0;
        for (uint j = 0; j < 8; j++) {
            float v = x[8 * k + j];
            dot += v * float((packed >> (4 * j)) & 15);
            sum += v;
        }
        acc += scales[row * (K / 64) + k / 8] * dot + biases[row * (K / 64) + k / 8] * sum;
    }
    acc = simd_sum(acc);
    if (lane == 0) out[row] = acc;
}`

// gatedDeltaText is one step after another of a gated delta rule: a head's state is 128 rows of 128 keys; a SIMD-group
// holds a row, four neighbouring keys a lane.
const gatedDeltaText = `
constant constexpr int HEADS = 32, KEYS = 128, ROWS = 128, PER = KEYS / 32;
kernel void gated_delta(const device float* q [[buffer(0)]], const device float* k [[buffer(1)]],
                        const device float* v [[buffer(2)]], const device float* decay [[buffer(3)]],
                        const device float* beta [[buffer(4)]], const device float* from [[buffer(5)]],
                        constant int& steps [[buffer(6)]], device float* y [[buffer(7)]],
                        device float* to [[buffer(8)]], uint3 at [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    uint head = at.z, row = at.y;
    const device float* start = from + (head * ROWS + row) * KEYS;
    float s[PER];
    for (int i = 0; i < PER; i++) s[i] = start[PER * lane + i];
    for (int t = 0; t < steps; t++) {
        const device float* keys = k + (t * HEADS + head) * KEYS;
        const device float* queries = q + (t * HEADS + head) * KEYS;
        float seen = 0;
        for (int i = 0; i < PER; i++) {
            s[i] = s[i] * decay[t * HEADS + head];
            seen += s[i] * keys[PER * lane + i];
        }
        seen = simd_sum(seen);
        float delta = (v[(t * HEADS + head) * ROWS + row] - seen) * beta[t * HEADS + head];
        float out = 0;
        for (int i = 0; i < PER; i++) {
            s[i] += keys[PER * lane + i] * delta;
            out += s[i] * queries[PER * lane + i];
        }
        out = simd_sum(out);
        if (lane == 0) y[(t * HEADS + head) * ROWS + row] = out;
    }
    device float* end = to + (head * ROWS + row) * KEYS;
    for (int i = 0; i < PER; i++) end[PER * lane + i] = s[i];
}`
