// Passes of a Hadamard transform of rows of contiguous numbers of type T.

#pragma clang fp contract(off)

// RADIX numbers that lie step apart, of a power of 2, take log2(RADIX) passes of sums and differences at once. Each
// thread reads and writes numbers of its own: x may be out.
kernel void butterflies(device const T* x [[buffer(0)]],
                        device T* out [[buffer(1)]],
                        constant uint& step [[buffer(2)]],
                        constant T& scale [[buffer(3)]],
                        uint i [[thread_position_in_grid]]) {
    ulong first = ulong(i / step) * step * RADIX + i % step;
    T v[RADIX];
    for (uint j = 0; j < RADIX; j++) {
        v[j] = x[first + ulong(j) * step];
    }
    for (uint length = 1; length < RADIX; length *= 2) {
        for (uint j = 0; j < RADIX; j += 2 * length) {
            for (uint k = j; k < j + length; k++) {
                T sum = v[k] + v[k + length];
                v[k + length] = v[k] - v[k + length];
                v[k] = sum;
            }
        }
    }
    for (uint j = 0; j < RADIX; j++) {
        out[first + ulong(j) * step] = v[j] * scale;
    }
}

// RADIX numbers that lie step apart are multiplied by a matrix of +1 and -1: bit k of row j is set for +1 in column k.
kernel void mix(device T* x [[buffer(0)]],
                constant uint& step [[buffer(1)]],
                constant T& scale [[buffer(2)]],
                constant uint* rows [[buffer(3)]],
                uint i [[thread_position_in_grid]]) {
    ulong first = ulong(i / step) * step * RADIX + i % step;
    T v[RADIX];
    for (uint j = 0; j < RADIX; j++) {
        v[j] = x[first + ulong(j) * step];
    }
    for (uint j = 0; j < RADIX; j++) {
        uint signs = rows[j];
        T sum = 0;
        for (uint k = 0; k < RADIX; k++) {
            sum += (signs >> k & 1) != 0 ? v[k] : -v[k];
        }
        x[first + ulong(j) * step] = sum * scale;
    }
}
