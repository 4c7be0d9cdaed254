// Panels of bfloat16 for devices that multiply pairs of them in one instruction. A word holds two places along depth,
// the even one in the upper half, which is added first; an odd depth ends with a zero. Behind the words of a panel
// stands a number for each PAIR_SPAN places along depth. Where those of two panels add up to PAIRS_EXACT, no product of
// theirs and no sum of such products is denormal. Then __metal_pair_dot equals two fma, to the byte.

#pragma clang fp contract(off)

#if PAIRS

#define PAIR_SPAN 128u
#define WORDS (PAIR_SPAN / 2)

// A bfloat16 with the biased exponent e is a multiple of 2^(e-134), so a product is one of 2^(e+e'-268). All floats
// that are multiples of 2^-126 are zero or normal.
#define PAIRS_EXACT 142
#define NOTHING 255
#define DENORMAL -512

// How many words a panel takes, with the numbers behind them.
inline ulong words_of(uint depth) {
    uint spans = (depth + PAIR_SPAN - 1) / PAIR_SPAN;
    return ulong((depth + 1) / 2) * PANEL + (spans + 15) / 16 * 16;
}

// The smaller of least and the magnitudes in a word, less one: zeros count as the largest.
inline uint least_of(uint least, uint word) {
    return min(least, min((word & 0x7fff) - 1, (word >> 16 & 0x7fff) - 1));
}

// As pack, whose threadgroups pack SPAN places; here they are PAIR_SPAN. TURN: neighbours along depth are words.
kernel void pack_pairs(const device ushort* x [[buffer(0)]],
                       device uint* out [[buffer(1)]],
                       constant Pack& m [[buffer(2)]],
                       constant uint* shape [[buffer(3)]],
                       constant long* strides [[buffer(4)]],
#if PICK_A
                       const device uint* picks [[buffer(5)]],
#endif
                       uint3 group [[threadgroup_position_in_grid]],
                       uint2 t [[thread_position_in_threadgroup]]) {
    uint lane = t.x;
    uint matrix = group.z / m.panels;
#if PICK_A
    matrix = picks[matrix];
#endif
    uint first = (group.z % m.panels) * PANEL;
    uint count = min(m.size - first, uint(PANEL));
    uint start = group.y * PAIR_SPAN;
    uint end = min(m.length - start, PAIR_SPAN);
    uint pairs = (end + 1) / 2;
    long place = offset_of(matrix, shape, strides, m.ndim);
    const device ushort* from = x + (place + long(first) * m.outer + long(start) * m.depth);
    device uint* panel = out + group.z * words_of(m.length);
    device uint* to = panel + start / 2 * PANEL;
    uint least = 0xffffffff;
    threadgroup uint leasts[8];
#if TURN
    threadgroup uint part[PANEL * (WORDS + 1)];
    for (uint r = t.y; r < uint(PANEL); r += 8) {
        const device ushort* line = from + long(r) * m.outer;
        threadgroup uint* row = part + r * (WORDS + 1);
        if (r >= count) {
            row[lane] = 0;
            row[lane + 32] = 0;
        } else if (end == PAIR_SPAN) {
            row[lane] = ((const device uint*)line)[lane];
            row[lane + 32] = ((const device uint*)line)[lane + 32];
        } else {
            for (uint k = lane; k < WORDS; k += 32) {
                uint even = 2 * k < end ? line[2 * k] : 0;
                uint odd = 2 * k + 1 < end ? line[2 * k + 1] : 0;
                row[k] = odd << 16 | even;
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint c = 0; c < uint(PANEL); c += 32) {
        const threadgroup uint* row = part + ((c + lane) * (WORDS + 1) + 8 * t.y);
        uint word[8];
        for (uint u = 0; u < 8; u++) {
            word[u] = row[u];
        }
        for (uint u = 0; u < 8; u++) {
            least = least_of(least, word[u]);
            if (8 * t.y + u < pairs) {
                to[(8 * t.y + u) * PANEL + c + lane] = word[u] << 16 | word[u] >> 16;
            }
        }
    }
#else
    for (uint k = t.y; k < pairs; k += 8) {
        const device ushort* line = from + long(2 * k) * m.depth;
        for (uint c = 0; c < uint(PANEL); c += 32) {
            uint word = 0;
            if (c + lane < count) {
#if UNIT
                uint at = c + lane;
#else
                long at = long(c + lane) * m.outer;
#endif
                word = uint(line[at]) << 16;
                if (2 * k + 1 < end) {
                    word |= uint((line + m.depth)[at]);
                }
            }
            least = least_of(least, word);
            to[k * PANEL + c + lane] = word;
        }
    }
#endif
    least = simd_min(least);
    if (lane == 0) {
        leasts[t.y] = least;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t.y == 0 && lane == 0) {
        for (uint i = 1; i < 8; i++) {
            least = min(least, leasts[i]);
        }
        least = least + 1;
        int e = least == 0 ? NOTHING : least < 0x80 ? DENORMAL : int(least >> 7);
        ((device int*)panel)[(m.length + 1) / 2 * PANEL + group.y] = e;
    }
}

// How many words of depth are multiplied as pairs: those before the first span of which products may be denormal.
inline uint exact_pairs(const device ACC* a, const device ACC* b, uint depth) {
    uint pairs = (depth + 1) / 2;
    const device int* least_a = (const device int*)(a + pairs * PANEL);
    const device int* least_b = (const device int*)(b + pairs * PANEL);
    uint exact = 0;
    for (; exact < pairs; exact += WORDS) {
        if (least_a[exact / WORDS] + least_b[exact / WORDS] < PAIRS_EXACT) {
            return exact;
        }
    }
    return pairs;
}

inline float upper(float pair) { return as_type<float>(as_type<uint>(pair) & 0xffff0000); }
inline float lower(float pair) { return as_type<float>(as_type<uint>(pair) << 16); }

#endif
