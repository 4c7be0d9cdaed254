// Scatters into slices of out: order sorts the indices by the slice that they name, and keeps the order of equal
// ones. The thread of the first of equal indices applies all their updates, one after the other: no two threads
// write one element, and the result does not depend on who runs first. T is the element type, ACC the type to
// compute in, COMBINE(a, b) what becomes of an element a with an update b.

#pragma clang fp contract(off)

kernel void scatter(device T* out [[buffer(0)]],
                    const device T* updates [[buffer(1)]],
                    const device long* offsets [[buffer(2)]],
                    const device uint* order [[buffer(3)]],
                    constant uint* shape [[buffer(4)]],
                    constant long* strides [[buffer(5)]],
                    constant int& ndim [[buffer(6)]],
                    constant uint& count [[buffer(7)]],
                    constant uint& inner [[buffer(8)]],
                    uint2 p [[thread_position_in_grid]]) {
    uint k = p.y;
    uint t = order[k];
    long start = offsets[t];
    if (k > 0 && offsets[order[k - 1]] == start) {
        return;
    }
    long at = start + offset_of(p.x, shape, strides, ndim);
    ulong before = p.x / inner;
    ulong after = p.x % inner;
    ACC a = ACC(out[at]);
    bool more = true;
    while (more) {
        ACC b = ACC(updates[(before * count + t) * inner + after]);
        a = COMBINE(a, b);
        k++;
        more = false;
        if (k < count) {
            t = order[k];
            more = offsets[t] == start;
        }
    }
    out[at] = T(a);
}
