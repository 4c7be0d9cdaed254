// Affine quantisation: a group of GROUP neighbours in a row shares a scale and a bias, an element is scale * q +
// bias where q has BITS bits. The q of a group are packed one after the other, lowest bits first, into WORDS words
// of 32 bits; where BITS does not divide 32 some reach into the next word. T is the type of elements, scales and
// biases, ACC the one to compute in.

#pragma clang fp contract(off)

kernel void quantize(const device T* w [[buffer(0)]],
                     device uint* packed [[buffer(1)]],
                     device T* scales [[buffer(2)]],
                     device T* biases [[buffer(3)]],
                     uint g [[thread_position_in_grid]]) {
    const device T* x = w + ulong(g) * GROUP;
    ACC low = ACC(x[0]);
    ACC high = low;
    for (int i = 1; i < GROUP; i++) {
        ACC v = ACC(x[i]);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    ACC least = ACC(1e-7f);
    ACC scale = (high - low) / ACC(MASK);
    scale = scale > least ? scale : least;
#if BITS == 1
    ACC bias = low; // of two values both ends of the range are represented exactly
#else
    // The end of the range that is further from 0 is represented exactly, and so is 0.
    bool negative = metal::abs(low) > metal::abs(high);
    ACC edge = negative ? low : high;
    scale = negative ? scale : -scale;
    ACC steps = metal::rint(edge / scale);
    bool zero = steps == ACC(0);
    scale = zero ? scale : edge / steps;
    ACC bias = zero ? ACC(0) : edge;
#endif
    scales[g] = T(scale);
    biases[g] = T(bias);
    device uint* to = packed + ulong(g) * WORDS;
    ulong pending = 0;
    int have = 0;
    int word = 0;
    for (int i = 0; i < GROUP; i++) {
        ACC q = metal::rint((ACC(x[i]) - bias) / scale);
        q = q > ACC(0) ? q : ACC(0);
        q = q < ACC(MASK) ? q : ACC(MASK);
        pending = pending | (ulong(uint(q)) << have);
        have += BITS;
        if (have >= 32) {
            to[word] = uint(pending);
            word++;
            pending = pending >> 32;
            have -= 32;
        }
    }
}

// OUT is the type of the result.
kernel void dequantize(const device uint* packed [[buffer(0)]],
                       const device T* scales [[buffer(1)]],
                       const device T* biases [[buffer(2)]],
                       device OUT* out [[buffer(3)]],
                       uint2 p [[thread_position_in_grid]]) {
    uint g = p.y;
    uint bit = p.x * BITS;
    const device uint* from = packed + (ulong(g) * WORDS + bit / 32);
    uint shift = bit % 32;
    uint q = from[0] >> shift;
#if 32 % BITS != 0
    if (shift + BITS > 32) {
        q = q | (from[1] << (32 - shift));
    }
#endif
    out[ulong(g) * GROUP + p.x] = OUT(ACC(scales[g]) * ACC(q & MASK) + ACC(biases[g]));
}
