// Consecutive numbers: out[i] = start + i * step. T is the element type, COUNTER the type to count in.

#pragma clang fp contract(off)


kernel void arange(device T* out [[buffer(0)]],
                   constant COUNTER& start [[buffer(1)]],
                   constant COUNTER& step [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
    out[i] = T(start + COUNTER(i) * step);
}
