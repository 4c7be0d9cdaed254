// Slices whose place is known when it runs: count of them, each of an example of a batch. IDX is the starts' type, T an
// unsigned type of the elements' size.

#pragma clang fp contract(off)

struct Starts {
    long batch;   // the stride from one example to the next, in elements
    uint axes;    // how many starts a slice has
};

// A start along a dimension of n elements of a slice of size of them; a negative one counts from the end. One from
// which the slice would leave the array is noted in bad, as checked_index does it, and counts as 0.
template <typename I>
long checked_start(I raw, long n, long size, device atomic_uint* bad) {
    long i = long(raw);
    if (I(-1) > I(0) && ulong(raw) > 2147483647ul) {
        i = 2147483647L;
    }
    long shown = min(max(i, -2147483647L), 2147483647L);
    if (i < 0) {
        i += n;
    }
    if (i < 0 || i > n - size) {
        atomic_fetch_max_explicit(bad, uint(shown + 2147483648L), memory_order_relaxed);
        i = 0;
    }
    return i;
}

// Where each slice begins, in elements. numbers are three for each axis: its size, the slice's, and its stride.
kernel void slice_offsets(const device IDX* start [[buffer(0)]],
                          device long* offsets [[buffer(1)]],
                          device atomic_uint* bad [[buffer(2)]],
                          constant long* numbers [[buffer(3)]],
                          constant Starts& s [[buffer(4)]],
                          uint b [[thread_position_in_grid]]) {
    long at = long(b) * s.batch;
    for (uint i = 0; i < s.axes; i++) {
        constant long* n = numbers + 3 * i;
        at += checked_start(start[b * s.axes + i], n[0], n[1], bad + i) * n[2];
    }
    offsets[b] = at;
}

// Copies updates to their slices of out.
kernel void place(device T* out [[buffer(0)]],
                  const device long* offsets [[buffer(1)]],
                  const device T* update [[buffer(2)]],
                  constant uint* shape [[buffer(3)]],
                  constant long* strides [[buffer(4)]],
                  constant int& ndim [[buffer(5)]],
                  constant uint& n [[buffer(6)]],
                  uint2 p [[thread_position_in_grid]]) {
    out[offsets[p.y] + offset_of(p.x, shape, strides, ndim)] = update[ulong(p.y) * n + p.x];
}
