// Turns indices of type IDX into offsets of slices of x, in elements: the first step of gathers and scatters. One run
// serves one indexed axis; the runs for further axes (first is 0) add to the offsets.

#pragma clang fp contract(off)

kernel void index_offsets(const device IDX* index [[buffer(0)]],
                          device long* offsets [[buffer(1)]],
                          device atomic_uint* bad [[buffer(2)]],
                          constant uint* shape [[buffer(3)]],
                          constant long* strides [[buffer(4)]],
                          constant int& ndim [[buffer(5)]],
                          constant long& size [[buffer(6)]],
                          constant long& stride [[buffer(7)]],
                          constant int& first [[buffer(8)]],
                          uint t [[thread_position_in_grid]]) {
    long i = checked_index(index[offset_of(t, shape, strides, ndim)], size, bad);
    long before = first != 0 ? 0L : offsets[t];
    offsets[t] = before + i * stride;
}
