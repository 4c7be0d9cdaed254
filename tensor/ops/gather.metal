// Copies slices of x to the places of their indices, which index_offsets made offsets of: count of them, whose last
// dimensions have inner elements. T is an unsigned type of the elements' size.

#pragma clang fp contract(off)

kernel void gather(const device T* x [[buffer(0)]],
                   const device long* offsets [[buffer(1)]],
                   device T* out [[buffer(2)]],
                   constant uint* shape [[buffer(3)]],
                   constant long* strides [[buffer(4)]],
                   constant int& ndim [[buffer(5)]],
                   constant uint& count [[buffer(6)]],
                   constant uint& inner [[buffer(7)]],
                   uint2 p [[thread_position_in_grid]]) {
    long at = offsets[p.y] + offset_of(p.x, shape, strides, ndim);
    ulong before = p.x / inner;
    ulong after = p.x % inner;
    out[(before * count + p.y) * inner + after] = x[at];
}

// The same where a slice is n neighbours in x and in out: a SIMD-group copies each. An element of T is RATIO of those
// that the offsets count.
kernel void gather_rows(const device T* x [[buffer(0)]],
                        const device long* offsets [[buffer(1)]],
                        device T* out [[buffer(2)]],
                        constant uint& n [[buffer(3)]],
                        uint2 p [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    const device T* from = x + offsets[p.y] / RATIO;
    device T* to = out + ulong(p.y) * n;
    uint whole = n / 128 * 128;
    for (uint i = lane; i < whole; i += 128) {
        T a = from[i];
        T b = from[i + 32];
        T c = from[i + 64];
        T d = from[i + 96];
        to[i] = a;
        to[i + 32] = b;
        to[i + 64] = c;
        to[i + 96] = d;
    }
    for (uint i = whole + lane; i < n; i += 32) {
        to[i] = from[i];
    }
}

// The same where fewer elements of a slice lie side by side than there are lanes: neighbouring threads take the
// elements of neighbouring slices that stand in one place before the indices' dimensions.
kernel void gather_across(const device T* x [[buffer(0)]],
                          const device long* offsets [[buffer(1)]],
                          device T* out [[buffer(2)]],
                          constant uint* before [[buffer(3)]],
                          constant long* before_strides [[buffer(4)]],
                          constant int& before_ndim [[buffer(5)]],
                          constant uint* after [[buffer(6)]],
                          constant long* after_strides [[buffer(7)]],
                          constant int& after_ndim [[buffer(8)]],
                          constant uint& count [[buffer(9)]],
                          constant uint& inner [[buffer(10)]],
                          uint2 p [[thread_position_in_grid]]) {
    const device T* from = x + offset_of(p.y, before, before_strides, before_ndim);
    ulong to = ulong(p.y) * count * inner + p.x;
    if (inner == 1) {
        out[to] = from[offsets[p.x]];
        return;
    }
    uint slice = p.x / inner;
    out[to] = from[offsets[slice] + offset_of(p.x - slice * inner, after, after_strides, after_ndim)];
}
