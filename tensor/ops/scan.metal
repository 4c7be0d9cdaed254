// Cumulative sums, products, extrema and log-sum-exps. T is the element type, ACC the type to combine in, INIT what
// combines to nothing, COMBINE(a, b) the combination of an earlier a with a later b, UP(v, d) and LAST(v) the values of
// the lane d below and of lane 31. REVERSE scans from the end, EXCLUSIVE leaves out each element itself.

#pragma clang fp contract(off)

// What the lanes up to each combine to, in a tree.
inline ACC scan_lanes(ACC v, uint lane) {
    for (ushort d = 1; d < 32; d <<= 1) {
        ACC before = UP(v, d);
        ACC both = COMBINE(before, v);
        v = lane >= d ? both : v;
    }
    return v;
}

// A lane's result: carry is what comes before these lanes, v what scan_lanes returned.
inline ACC scan_result(ACC carry, ACC v, uint lane) {
#if EXCLUSIVE
    ACC before = UP(v, 1);
    ACC both = COMBINE(carry, before);
    return lane == 0 ? carry : both;
#else
    return COMBINE(carry, v);
#endif
}

// Rows of n elements, one SIMD-group each: the lanes combine 32 neighbours and carry on from the last 32. All lanes
// take part in whole rounds; only the last one may be short.
kernel void scan_rows(const device T* x [[buffer(0)]],
                      device T* out [[buffer(1)]],
                      constant uint& n [[buffer(2)]],
                      uint2 p [[thread_position_in_grid]]) {
    uint lane = p.x;
    const device T* from = x + ulong(p.y) * n;
    device T* to = out + ulong(p.y) * n;
    ACC carry = INIT;
    uint i = lane;
    for (uint left = n / 32; left > 0; --left) {
#if REVERSE
        uint at = n - 1 - i;
#else
        uint at = i;
#endif
        ACC v = scan_lanes(ACC(from[at]), lane);
        to[at] = T(scan_result(carry, v, lane));
        ACC all = LAST(v);
        carry = COMBINE(carry, all);
        i += 32;
    }
    if (n % 32 != 0) {
        bool inside = i < n;
#if REVERSE
        uint at = inside ? n - 1 - i : 0;
#else
        uint at = inside ? i : 0;
#endif
        ACC v = scan_lanes(inside ? ACC(from[at]) : INIT, lane);
        ACC result = scan_result(carry, v, lane);
        if (inside) {
            to[at] = T(result);
        }
    }
}

#if SHORT

// Rows of SHORT elements, one thread each: neighbouring threads read neighbouring rows.
kernel void scan_short(const device T* x [[buffer(0)]],
                       device T* out [[buffer(1)]],
                       uint row [[thread_position_in_grid]]) {
    const device T* from = x + row * SHORT;
    device T* to = out + row * SHORT;
    T v[SHORT];
    for (uint i = 0; i < SHORT; i++) {
        v[i] = from[i];
    }
    ACC acc = INIT;
    for (uint i = 0; i < SHORT; i++) {
#if REVERSE
        uint at = SHORT - 1 - i;
#else
        uint at = i;
#endif
        ACC both = COMBINE(acc, ACC(v[at]));
#if EXCLUSIVE
        v[at] = T(acc);
#else
        v[at] = T(both);
#endif
        acc = both;
    }
    for (uint i = 0; i < SHORT; i++) {
        to[i] = v[i];
    }
}

#endif

// Columns: scans of n elements that lie `inner` apart, one thread each, neighbours beside each other.
kernel void scan_columns(const device T* x [[buffer(0)]],
                         device T* out [[buffer(1)]],
                         constant uint& n [[buffer(2)]],
                         constant ulong& inner [[buffer(3)]],
                         uint2 p [[thread_position_in_grid]]) {
    ulong at = ulong(p.y) * n * inner + p.x;
#if REVERSE
    at += (n - 1) * inner;
#endif
    ACC acc = INIT;
    for (uint i = 0; i < n; i++) {
        ACC v = ACC(x[at]);
#if EXCLUSIVE
        out[at] = T(acc);
        acc = COMBINE(acc, v);
#else
        acc = COMBINE(acc, v);
        out[at] = T(acc);
#endif
#if REVERSE
        at -= inner;
#else
        at += inner;
#endif
    }
}

#if LINEAR

// y[i] = a[i] y[i - 1] + b[i], along scans of n elements that lie `inner` apart, one thread each.
kernel void scan_linear(const device T* a [[buffer(0)]],
                        const device T* b [[buffer(1)]],
                        device T* out [[buffer(2)]],
                        constant uint& n [[buffer(3)]],
                        constant ulong& inner [[buffer(4)]],
                        uint2 p [[thread_position_in_grid]]) {
    ulong at = ulong(p.y) * n * inner + p.x;
#if REVERSE
    at += (n - 1) * inner;
#endif
    ACC y = INIT;
    for (uint i = 0; i < n; i++) {
        y = ACC(a[at]) * y + ACC(b[at]);
        out[at] = T(y);
#if REVERSE
        at -= inner;
#else
        at += inner;
#endif
    }
}

#endif
