// Gathers by arrays of indices. A gather has two steps: index_offsets turns the indices into offsets of slices of x, in
// elements, and checks them; gather copies the slices. Scatters share the first step.
//
// index_offsets: IDX is the type of the indices, SIGNED says whether it has a sign. One run serves one indexed
// axis; the runs for further axes (first is 0) add to the offsets. An index that is out of range is noted in bad,
// as its value (cut to 32 bits) plus 2^31, and counts as 0. gather: T is an unsigned type of the elements' size.

#pragma clang fp contract(off)

#ifdef IDX

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
    uint rest = t;
    long at = 0;
    for (int d = ndim - 1; d > 0; d--) {
        uint n = shape[d];
        at += long(rest % n) * strides[d];
        rest = rest / n;
    }
    IDX raw = index[at + long(rest) * strides[0]];
#if SIGNED
    long i = long(raw);
    long shown = i < -2147483647L ? -2147483647L : i;
    if (i < 0) {
        i += size;
    }
#else
    long i = ulong(raw) > 2147483647ul ? 2147483647L : long(raw);
    long shown = i;
#endif
    if (i < 0 || i >= size) {
        shown = shown > 2147483647L ? 2147483647L : shown;
        atomic_fetch_max_explicit(bad, uint(shown + 2147483648L), memory_order_relaxed);
        i = 0;
    }
    long before = first != 0 ? 0L : offsets[t];
    offsets[t] = before + i * stride;
}

#else

kernel void gather(const device T* x [[buffer(0)]],
                   const device long* offsets [[buffer(1)]],
                   device T* out [[buffer(2)]],
                   constant uint* shape [[buffer(3)]],
                   constant long* strides [[buffer(4)]],
                   constant int& ndim [[buffer(5)]],
                   constant uint& count [[buffer(6)]],
                   constant uint& inner [[buffer(7)]],
                   uint2 p [[thread_position_in_grid]]) {
    uint rest = p.x;
    long at = offsets[p.y];
    for (int d = ndim - 1; d > 0; d--) {
        uint n = shape[d];
        at += long(rest % n) * strides[d];
        rest = rest / n;
    }
    at += long(rest) * strides[0];
    ulong before = p.x / inner;
    ulong after = p.x % inner;
    out[(before * count + p.y) * inner + after] = x[at];
}

#endif
