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
