// Normalisation of rows of n elements, one SIMD-group each, whose lanes touch neighbouring elements. T is the element
// type, ACC the type to compute in. Rows may be kept, by several SIMD-groups, of which one adds up: see kit/kept.metal.
// RMS divides by the root of the mean square, otherwise the mean is subtracted first
// and the divisor is the standard deviation. WEIGHT and BIAS say whether there are such. EACH is n / 32 where a row
// stays in registers, otherwise 0; the sums are the same.

#pragma clang fp contract(off)

// The chain that element e of a lane's is added to.
#define FOUR(e) ((e) < EACH / 4 * 4 ? (e) % 4 : 0)

#if KEPT
#define ELEMENT(i) kept[i]
[[max_total_threads_per_threadgroup(32 * SIMDS)]]
#else
#define ELEMENT(i) ACC(from[i])
#endif
kernel void norm_rows(const device T* x [[buffer(0)]],
                      device T* out [[buffer(1)]],
                      constant uint& n [[buffer(2)]],
                      constant ACC& eps [[buffer(3)]],
#if WEIGHT
                      const device T* weight [[buffer(4)]],
#endif
#if BIAS
                      const device T* bias [[buffer(4 + WEIGHT)]],
#endif
#if KEPT
                      uint2 group [[threadgroup_position_in_grid]],
                      uint simd [[simdgroup_index_in_threadgroup]],
#endif
                      uint2 p [[thread_position_in_grid]]) {
    uint lane = p.x;
#if KEPT
    threadgroup ACC kept[KEPT];
    threadgroup ACC shared[2];
    const uint row = group.y;
    const uint place = 32 * simd + lane;
#else
    const uint row = p.y;
#endif
    const device T* from = x + ulong(row) * n;
    device T* to = out + ulong(row) * n;
#if EACH
    // Rows of 32 * EACH elements stay in registers: each element is loaded once.
    ACC v[EACH];
    for (uint e = 0; e < EACH; e++) {
        v[e] = ACC(from[lane + 32 * e]);
    }
#if RMS
    ACC mean = 0;
#else
    ACC m[4] = {0, 0, 0, 0};
    for (uint e = 0; e < EACH; e++) {
        m[FOUR(e)] += v[e];
    }
    ACC mean = simd_sum((m[0] + m[1]) + (m[2] + m[3])) / ACC(32 * EACH);
#endif
    ACC s[4] = {0, 0, 0, 0};
    for (uint e = 0; e < EACH; e++) {
        v[e] = v[e] - mean;
        s[FOUR(e)] = metal::fma(v[e], v[e], s[FOUR(e)]);
    }
    ACC scale = 1 / metal::sqrt(simd_sum((s[0] + s[1]) + (s[2] + s[3])) / ACC(32 * EACH) + eps);
    for (uint e = 0; e < EACH; e++) {
        uint i = lane + 32 * e;
        ACC y = v[e] * scale;
#if WEIGHT
        y = y * ACC(weight[i]);
#endif
#if BIAS
        y = y + ACC(bias[i]);
#endif
        to[i] = T(y);
    }
#else
#if KEPT
    keep_row(kept, from, n, place);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd == 0) {
#endif
    uint whole = n - n % 128;
#if RMS
    ACC mean = 0;
#else
    ACC m0 = 0;
    ACC m1 = 0;
    ACC m2 = 0;
    ACC m3 = 0;
    uint at = lane;
#if KEPT
    for (; at + 384 < whole; at += 512) {
        ACC v[16];
        #pragma unroll
        for (uint k = 0; k < 16; k++) {
            v[k] = (kept + ulong(at))[32 * k];
        }
        #pragma unroll
        for (uint k = 0; k < 16; k += 4) {
            m0 += v[k];
            m1 += v[k + 1];
            m2 += v[k + 2];
            m3 += v[k + 3];
        }
    }
#endif
    for (uint i = at; i < whole; i += 128) {
        m0 += ELEMENT(i);
        m1 += ELEMENT(i + 32);
        m2 += ELEMENT(i + 64);
        m3 += ELEMENT(i + 96);
    }
    for (uint i = whole + lane; i < n; i += 32) {
        m0 += ELEMENT(i);
    }
    ACC mean = simd_sum((m0 + m1) + (m2 + m3)) / ACC(n);
#endif
    ACC s0 = 0;
    ACC s1 = 0;
    ACC s2 = 0;
    ACC s3 = 0;
    uint next = lane;
#if KEPT
    for (; next + 384 < whole; next += 512) {
        ACC v[16];
        #pragma unroll
        for (uint k = 0; k < 16; k++) {
            v[k] = (kept + ulong(next))[32 * k] - mean;
        }
        #pragma unroll
        for (uint k = 0; k < 16; k += 4) {
            s0 = metal::fma(v[k], v[k], s0);
            s1 = metal::fma(v[k + 1], v[k + 1], s1);
            s2 = metal::fma(v[k + 2], v[k + 2], s2);
            s3 = metal::fma(v[k + 3], v[k + 3], s3);
        }
    }
#endif
    for (uint i = next; i < whole; i += 128) {
        ACC v0 = ELEMENT(i) - mean;
        ACC v1 = ELEMENT(i + 32) - mean;
        ACC v2 = ELEMENT(i + 64) - mean;
        ACC v3 = ELEMENT(i + 96) - mean;
        s0 = metal::fma(v0, v0, s0);
        s1 = metal::fma(v1, v1, s1);
        s2 = metal::fma(v2, v2, s2);
        s3 = metal::fma(v3, v3, s3);
    }
    for (uint i = whole + lane; i < n; i += 32) {
        ACC v = ELEMENT(i) - mean;
        s0 = metal::fma(v, v, s0);
    }
    ACC scale = 1 / metal::sqrt(simd_sum((s0 + s1) + (s2 + s3)) / ACC(n) + eps);
#if KEPT
        shared[0] = mean;
        shared[1] = scale;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const ACC mean = shared[0];
    const ACC scale = shared[1];
    uint i = place;
    for (; i + 32 * SIMDS * (AHEAD - 1) < n; i += 32 * SIMDS * AHEAD) {
        ACC v[AHEAD];
        #pragma unroll
        for (uint k = 0; k < AHEAD; k++) {
            v[k] = ((kept + ulong(i))[32 * SIMDS * k] - mean) * scale;
        }
#if WEIGHT
        #pragma unroll
        for (uint k = 0; k < AHEAD; k++) {
            v[k] = v[k] * ACC((weight + ulong(i))[32 * SIMDS * k]);
        }
#endif
#if BIAS
        #pragma unroll
        for (uint k = 0; k < AHEAD; k++) {
            v[k] = v[k] + ACC((bias + ulong(i))[32 * SIMDS * k]);
        }
#endif
        #pragma unroll
        for (uint k = 0; k < AHEAD; k++) {
            (to + ulong(i))[32 * SIMDS * k] = T(v[k]);
        }
    }
    for (; i < n; i += 32 * SIMDS) {
#else
    for (uint i = lane; i < n; i += 32) {
#endif
        ACC v = (ELEMENT(i) - mean) * scale;
#if WEIGHT
        v = v * ACC(weight[i]);
#endif
#if BIAS
        v = v + ACC(bias[i]);
#endif
        to[i] = T(v);
    }
#endif
}
