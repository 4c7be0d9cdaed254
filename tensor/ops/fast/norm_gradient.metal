// Gradients of normalised rows (see norms.metal) of n elements. T is the element type, ACC the type to compute in. RMS
// divides by the root of the mean square, otherwise the mean is subtracted first and the divisor is the standard
// deviation. WEIGHT says that x has one, OF_WEIGHT and OF_BIAS whose gradients are wanted; OUT is the type of sums.
// EACH is as there.
//
// With y the normalised row, s what it was multiplied by and t the cotangent times the weight, the gradient of x is
// s * (t - y * mean(t * y) - mean(t)), without the last term if RMS (Ba, Kiros, Hinton, "Layer Normalization", 2016).

#pragma clang fp contract(off)

#define PARAMETERS (OF_WEIGHT + OF_BIAS)

// The chain that element e of a lane's is added to.
#define FOUR(e) ((e) < EACH / 4 * 4 ? (e) % 4 : 0)

#if WEIGHT
#define WEIGHED(i) (ACC(cot[i]) * ACC(weight[i]))
#else
#define WEIGHED(i) ACC(cot[i])
#endif

#define MOMENTS(e, at)                      \
    ACC v##e = ACC(from[at]) - mean;        \
    ACC t##e = WEIGHED(at);                 \
    a##e += t##e;                           \
    b##e = metal::fma(t##e, v##e, b##e);    \
    s##e = metal::fma(v##e, v##e, s##e);

// The gradient of x: a SIMD-group for each row, whose lanes touch neighbouring elements. For the gradients of weight
// and bias it leaves the row's mean and s.
kernel void norm_gradient_rows(const device T* x [[buffer(0)]],
                               const device T* cotangent [[buffer(1)]],
                               device T* out [[buffer(2)]],
                               constant uint& n [[buffer(3)]],
                               constant ACC& eps [[buffer(4)]],
#if WEIGHT
                               const device T* weight [[buffer(5)]],
#endif
#if OF_WEIGHT
                               device ACC* row [[buffer(5 + WEIGHT)]],
#endif
                               uint2 p [[thread_position_in_grid]]) {
    uint lane = p.x;
    const device T* from = x + ulong(p.y) * n;
    const device T* cot = cotangent + ulong(p.y) * n;
    device T* to = out + ulong(p.y) * n;
#if EACH
    // Rows of 32 * EACH elements stay in registers: each element is loaded once.
    ACC v[EACH];
    ACC t[EACH];
    ACC m[4] = {0, 0, 0, 0};
    for (uint e = 0; e < EACH; e++) {
        uint i = lane + 32 * e;
        v[e] = ACC(from[i]);
        t[e] = WEIGHED(i);
        m[FOUR(e)] += v[e];
    }
#if RMS
    ACC mean = 0;
#else
    ACC mean = simd_sum((m[0] + m[1]) + (m[2] + m[3])) / ACC(32 * EACH);
#endif
    ACC s[4] = {0, 0, 0, 0};
    ACC a[4] = {0, 0, 0, 0};
    ACC b[4] = {0, 0, 0, 0};
    for (uint e = 0; e < EACH; e++) {
        v[e] = v[e] - mean;
        s[FOUR(e)] = metal::fma(v[e], v[e], s[FOUR(e)]);
        a[FOUR(e)] += t[e];
        b[FOUR(e)] = metal::fma(t[e], v[e], b[FOUR(e)]);
    }
    ACC scale = 1 / metal::sqrt(simd_sum((s[0] + s[1]) + (s[2] + s[3])) / ACC(32 * EACH) + eps);
    ACC along = simd_sum((b[0] + b[1]) + (b[2] + b[3])) * scale / ACC(32 * EACH);
#if RMS
    ACC middle = 0;
#else
    ACC middle = simd_sum((a[0] + a[1]) + (a[2] + a[3])) / ACC(32 * EACH);
#endif
    for (uint e = 0; e < EACH; e++) {
        to[lane + 32 * e] = T(scale * ((t[e] - v[e] * scale * along) - middle));
    }
#else
    uint whole = n - n % 128;
#if RMS
    ACC mean = 0;
#else
    ACC m0 = 0;
    ACC m1 = 0;
    ACC m2 = 0;
    ACC m3 = 0;
    for (uint i = lane; i < whole; i += 128) {
        m0 += ACC(from[i]);
        m1 += ACC(from[i + 32]);
        m2 += ACC(from[i + 64]);
        m3 += ACC(from[i + 96]);
    }
    for (uint i = whole + lane; i < n; i += 32) {
        m0 += ACC(from[i]);
    }
    ACC mean = simd_sum((m0 + m1) + (m2 + m3)) / ACC(n);
#endif
    ACC s0 = 0;
    ACC s1 = 0;
    ACC s2 = 0;
    ACC s3 = 0;
    ACC a0 = 0;
    ACC a1 = 0;
    ACC a2 = 0;
    ACC a3 = 0;
    ACC b0 = 0;
    ACC b1 = 0;
    ACC b2 = 0;
    ACC b3 = 0;
    for (uint i = lane; i < whole; i += 128) {
        MOMENTS(0, i)
        MOMENTS(1, i + 32)
        MOMENTS(2, i + 64)
        MOMENTS(3, i + 96)
    }
    for (uint i = whole + lane; i < n; i += 32) {
        MOMENTS(0, i)
    }
    ACC scale = 1 / metal::sqrt(simd_sum((s0 + s1) + (s2 + s3)) / ACC(n) + eps);
    ACC along = simd_sum((b0 + b1) + (b2 + b3)) * scale / ACC(n);
#if RMS
    ACC middle = 0;
#else
    ACC middle = simd_sum((a0 + a1) + (a2 + a3)) / ACC(n);
#endif
    for (uint i = lane; i < n; i += 32) {
        ACC y = (ACC(from[i]) - mean) * scale;
        to[i] = T(scale * ((WEIGHED(i) - y * along) - middle));
    }
#endif
#if OF_WEIGHT
    if (lane == 0) {
        row[2 * ulong(p.y)] = mean;
        row[2 * ulong(p.y) + 1] = scale;
    }
#endif
}

#if OF_WEIGHT
#define ADD(e)                                                                                          \
    ACC c##e = ACC(cot[ulong(r + e) * n]);                                                              \
    w##e = metal::fma(c##e, (ACC(from[ulong(r + e) * n]) - of[2 * (r + e)]) * of[2 * (r + e) + 1], w##e); \
    b##e += c##e;
#else
#define ADD(e) b##e += ACC(cot[ulong(r + e) * n]);
#endif

#if PARAMETERS
// The gradients of weight and bias, of STRIP rows each: lanes are columns. sums is (PARAMETERS, strips, n).
kernel void norm_gradient_columns(const device T* cotangent [[buffer(0)]],
                                  device OUT* sums [[buffer(1)]],
                                  constant uint& n [[buffer(2)]],
                                  constant uint& rows [[buffer(3)]],
#if OF_WEIGHT
                                  const device T* x [[buffer(4)]],
                                  const device ACC* row [[buffer(5)]],
#endif
                                  uint2 p [[thread_position_in_grid]],
                                  uint2 grid [[threads_per_grid]]) {
    uint column = p.x;
    uint first = p.y * STRIP;
    uint count = min(rows - first, uint(STRIP));
    if (column >= n) {
        return;
    }
    const device T* cot = cotangent + (ulong(first) * n + column);
#if OF_WEIGHT
    const device T* from = x + (ulong(first) * n + column);
    const device ACC* of = row + 2 * ulong(first);
    ACC w0 = 0;
    ACC w1 = 0;
    ACC w2 = 0;
    ACC w3 = 0;
#endif
    ACC b0 = 0;
    ACC b1 = 0;
    ACC b2 = 0;
    ACC b3 = 0;
    uint r = 0;
    for (; r + 4 <= count; r += 4) {
        ADD(0)
        ADD(1)
        ADD(2)
        ADD(3)
    }
    for (; r < count; r++) {
        ADD(0)
    }
    ulong to = ulong(p.y) * n + column;
#if OF_WEIGHT
    sums[to] = OUT((w0 + w1) + (w2 + w3));
    to += ulong(grid.y) * n;
#endif
#if OF_BIAS
    sums[to] = OUT((b0 + b1) + (b2 + b3));
#endif
}

// Sums of STRIP strips each: parts is (PARAMETERS, strips, n), sums has fewer strips.
kernel void norm_gradient_strips(const device ACC* parts [[buffer(0)]],
                                 device OUT* sums [[buffer(1)]],
                                 constant uint& n [[buffer(2)]],
                                 constant uint& strips [[buffer(3)]],
                                 uint3 p [[thread_position_in_grid]],
                                 uint3 grid [[threads_per_grid]]) {
    uint column = p.x;
    uint first = p.y * STRIP;
    uint count = min(strips - first, uint(STRIP));
    if (column >= n) {
        return;
    }
    const device ACC* from = parts + ((ulong(p.z) * strips + first) * n + column);
    ACC s0 = 0;
    ACC s1 = 0;
    ACC s2 = 0;
    ACC s3 = 0;
    uint r = 0;
    for (; r + 4 <= count; r += 4) {
        s0 += from[ulong(r) * n];
        s1 += from[ulong(r + 1) * n];
        s2 += from[ulong(r + 2) * n];
        s3 += from[ulong(r + 3) * n];
    }
    for (; r < count; r++) {
        s0 += from[ulong(r) * n];
    }
    sums[(ulong(p.z) * grid.y + p.y) * n + column] = OUT((s0 + s1) + (s2 + s3));
}
#endif
