// The indices of a batch, which are checked, as numbers of matrices; IN_ORDER: their places, which count from 0.

#pragma clang fp contract(off)

kernel void numbers(device uint* out [[buffer(0)]],
                    constant long& size [[buffer(1)]],
                    constant int& ndim [[buffer(2)]],
                    constant uint* shape [[buffer(3)]],
                    constant long* strides [[buffer(4)]],
                    device atomic_uint* bad [[buffer(5)]],
#if !IN_ORDER
                    const device INDEX* index [[buffer(6)]],
#endif
                    uint i [[thread_position_in_grid]]) {
    long at = offset_of(i, shape, strides, ndim);
#if IN_ORDER
    out[i] = uint(checked_index(at, size, bad));
#else
    out[i] = uint(checked_index(index[at], size, bad));
#endif
}
