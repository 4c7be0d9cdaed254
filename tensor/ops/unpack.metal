// Unpack lays a packed matrix (see quantize.metal) out in the panels of panels.metal: PANEL columns of the matrix to
// multiply with for each place along depth side by side, zero past the last column. A threadgroup makes GROUP places
// along depth of a panel. TRANSPOSED says that a row of the packed matrix is packed along depth, otherwise along the
// columns.

#pragma clang fp contract(off)

struct Unpack {
    uint depth, cols;
    uint groups; // of a row of the packed matrix
    uint first;  // panel
};

// The q that begin at a bit of a word.
inline uint bits_at(const device uint* from, uint bit) {
    uint shift = bit % 32;
    uint q = from[bit / 32] >> shift;
#if 32 % BITS != 0
    if (shift + BITS > 32) {
        q = q | (from[bit / 32 + 1] << (32 - shift));
    }
#endif
    return q;
}

kernel void unpack(const device uint* packed [[buffer(0)]],
                   const device T* scales [[buffer(1)]],
                   const device T* biases [[buffer(2)]],
                   device ACC* out [[buffer(3)]],
                   constant Unpack& m [[buffer(4)]],
                   uint3 p [[thread_position_in_grid]]) {
    uint col = (m.first + p.z) * PANEL + p.x;
    uint start = p.y * GROUP;
    uint end = min(m.depth - start, uint(GROUP));
    device ACC* to = out + ((ulong(p.z) * m.depth + start) * PANEL + p.x);
    uint from = min(col, m.cols - 1);
    ACC inside = ACC(col < m.cols ? 1 : 0);
#if TRANSPOSED
    ulong g = ulong(from) * m.groups + p.y;
    ACC scale = ACC(scales[g]) * inside;
    ACC bias = ACC(biases[g]) * inside;
    const device uint* words = packed + g * WORDS;
#if 32 % BITS == 0
    for (uint w = 0; w < WORDS; w++) {
        uint q = words[w];
        for (uint e = 0; e < 32 / BITS; e++) {
            to[e * PANEL] = scale * ACC((q >> (e * BITS)) & MASK) + bias;
        }
        to += 32 / BITS * PANEL;
    }
#else
    for (uint k = 0; k < end; k++) {
        to[k * PANEL] = scale * ACC(bits_at(words, k * BITS) & MASK) + bias;
    }
#endif
#else
    uint bit = from % GROUP * BITS;
    for (uint k = 0; k < end; k++) {
        ulong g = ulong(start + k) * m.groups + from / GROUP;
        ACC v = ACC(scales[g]) * ACC(bits_at(packed + g * WORDS, bit) & MASK) + ACC(biases[g]);
        to[k * PANEL] = v * inside;
    }
#endif
}
