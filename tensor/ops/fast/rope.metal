// Rotary positional encoding: in each row of D elements at position t, pairs of the first 2 * half_dims elements are
// turned by the angle scale * (t + offset) * frequency; the others are copied. One thread per pair (or other element)
// and position turns it in up to HEADS heads, which share the angle. T is the element type, ACC the type to compute in.
// TRADITIONAL pairs neighbours, otherwise element i goes with element i + half_dims. FREQS says that reciprocal
// frequencies are given. INVERSE turns back.

#pragma clang fp contract(off)

struct Rope {
    long batch, head, step, element; // strides of x in elements
    ulong positions, size;           // of the output: T and D
    uint heads, half_dims, offset;   // offset: stride between the offsets of examples, 0 or 1
    ACC scale, exponent;             // frequency i is 2^(exponent * i)
};

kernel void rope(const device T* x [[buffer(0)]],
                 const device int* offsets [[buffer(1)]],
#if FREQS
                 const device ACC* freqs [[buffer(2)]],
#endif
                 device T* out [[buffer(2 + FREQS)]],
                 constant Rope& m [[buffer(3 + FREQS)]],
                 constant uint& blocks [[buffer(4 + FREQS)]], // of HEADS heads in an example
                 uint3 p [[thread_position_in_grid]]) {
    uint pair = p.x;
    uint example = p.z / blocks;
    uint head = (p.z % blocks) * HEADS;
    uint end = min(head + HEADS, m.heads);
    const device T* from = x + (long(example) * m.batch + long(head) * m.head + long(p.y) * m.step);
    device T* to = out + ((ulong(example) * m.heads + head) * m.positions + p.y) * m.size;
    ulong plane = m.positions * m.size;
    if (pair >= m.half_dims) { // an element past the pairs
        uint i = pair + m.half_dims;
        for (; head < end; head++) {
            to[i] = from[long(i) * m.element];
            from += m.head;
            to += plane;
        }
        return;
    }
#if FREQS
    ACC frequency = 1 / freqs[pair];
#else
    ACC frequency = metal::exp2(m.exponent * ACC(pair));
#endif
    ACC angle = m.scale * ACC(int(p.y) + offsets[example * m.offset]) * frequency;
    ACC c = metal::cos(angle);
    ACC s = metal::sin(angle);
#if INVERSE
    s = -s;
#endif
#if TRADITIONAL
    uint i = 2 * pair;
    uint k = i + 1;
#else
    uint i = pair;
    uint k = pair + m.half_dims;
#endif
    for (; head < end; head++) {
        ACC a = ACC(from[long(i) * m.element]);
        ACC b = ACC(from[long(k) * m.element]);
        to[i] = T(a * c - b * s);
        to[k] = T(a * s + b * c);
        from += m.head;
        to += plane;
    }
}
