// Unpack lays a packed matrix (see quantize.metal) out in the panels of panels.metal: PANEL columns of the matrix to
// multiply with for each place along depth side by side, zero past the last column. TRANSPOSE says that a row of the
// packed matrix is packed along depth, otherwise along the columns. PICK: panels of several matrices that are picked
// are unpacked.

#pragma clang fp contract(off)

struct Unpack {
    uint depth, cols;
    uint groups; // of a row of the packed matrix
    uint first;  // panel
    uint panels; // of a matrix, of which picks are picked from start on
    uint start;
    long matrix; // groups of a packed matrix
};

#if !BLOCKS
#if TRANSPOSE
#define SPACE threadgroup
#else
#define SPACE const device
#endif

// The q that begin at a bit of a word.
inline uint bits_at(SPACE uint* from, uint bit) {
    uint shift = bit % 32;
    uint q = from[bit / 32] >> shift;
#if 32 % BITS != 0
    if (shift + BITS > 32) {
        q = q | (from[bit / 32 + 1] << (32 - shift));
    }
#endif
    return q;
}
#endif

kernel void unpack(const device PACKED_T* packed [[buffer(0)]],
                   const device SCALE_T* scales [[buffer(1)]],
                   const device SCALE_T* biases [[buffer(2)]],
                   device ACC* out [[buffer(3)]],
                   constant Unpack& m [[buffer(4)]],
#if PICK
                   const device uint* picks [[buffer(5)]],
#endif
                   uint3 group [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]],
                   uint simd [[simdgroup_index_in_threadgroup]]) {
#if PICK
    uint first = group.z % m.panels * PANEL;
    long from_group = long(picks[m.start + group.z / m.panels]) * m.matrix;
    packed += from_group * WORDS;
    scales += from_group;
    biases += from_group;
#else
    uint first = (m.first + group.z) * PANEL;
#endif
#if BLOCKS && TRANSPOSE
    // A threadgroup of 8 SIMD-groups unpacks GROUPS blocks of each column. Lanes unpack neighbours of a column.
    uint start = group.y * GROUPS;
    uint count = min(m.groups - start, uint(GROUPS));
    for (uint c = simd; c < uint(PANEL); c += 8) {
        const device uchar* from = packed + (ulong(min(first + c, m.cols - 1)) * m.groups + start) * BYTES;
        ACC inside = ACC(first + c < m.cols ? 1 : 0);
        device ACC* to = out + ((ulong(group.z) * m.depth + start * GROUP) * PANEL + c);
        for (uint g = 0; g < count; g++) {
            for (uint n = 0; n < GROUP / 32; n++) {
                to[(n * 32 + lane) * PANEL] = block_element(from, n * 32, lane) * inside;
            }
            from += BYTES;
            to += GROUP * PANEL;
        }
    }
#elif BLOCKS
    // A threadgroup of 8 SIMD-groups unpacks 64 places along depth.
    uint end = min(m.depth, (group.y + 1) * 64);
    for (uint c = lane; c < uint(PANEL); c += 32) {
        uint col = min(first + c, m.cols - 1);
        ACC inside = ACC(first + c < m.cols ? 1 : 0);
        for (uint k = group.y * 64 + simd; k < end; k += 8) {
            ACC v = block_element(packed + (ulong(k) * m.groups + col / GROUP) * BYTES, col % GROUP & ~31u, col & 31);
            out[(ulong(group.z) * m.depth + k) * PANEL + c] = v * inside;
        }
    }
#elif TRANSPOSE
    // A threadgroup of 8 SIMD-groups unpacks GROUPS groups of each column. Lanes load neighbours of a row of packed
    // words, which lie along depth, and unpack those of neighbouring columns.
    threadgroup uint part[PANEL * (GROUPS * WORDS + 1)];
    uint start = group.y * GROUPS;
    uint count = min(m.groups - start, uint(GROUPS));
    for (uint c = simd; c < uint(PANEL); c += 8) {
        const device uint* from = packed + (ulong(min(first + c, m.cols - 1)) * m.groups + start) * WORDS;
        for (uint w = lane; w < count * WORDS; w += 32) {
            part[c * (GROUPS * WORDS + 1) + w] = from[w];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint task = simd; task < count * (PANEL / 32); task += 8) {
        uint g = task / (PANEL / 32);
        uint c = task % (PANEL / 32) * 32 + lane;
        ulong at = ulong(min(first + c, m.cols - 1)) * m.groups + start + g;
        ACC inside = ACC(first + c < m.cols ? 1 : 0);
        ACC scale = scale_of(scales[at]) * inside;
#if AFFINE
        ACC bias = ACC(biases[at]) * inside;
#endif
        threadgroup uint* words = part + c * (GROUPS * WORDS + 1) + g * WORDS;
        device ACC* to = out + ((ulong(group.z) * m.depth + (start + g) * GROUP) * PANEL + c);
#if 32 % BITS == 0
        for (uint w = 0; w < WORDS; w++) {
            uint q = words[w];
            for (uint e = 0; e < 32 / BITS; e++) {
                to[e * PANEL] = ELEMENT(scale, bias, (q >> (e * BITS)) & MASK);
            }
            to += 32 / BITS * PANEL;
        }
#else
        for (uint k = 0; k < GROUP; k++) {
            to[k * PANEL] = ELEMENT(scale, bias, bits_at(words, k * BITS) & MASK);
        }
#endif
    }
#else
    // A threadgroup of 8 SIMD-groups unpacks 64 places along depth.
    uint end = min(m.depth, (group.y + 1) * 64);
    for (uint c = lane; c < uint(PANEL); c += 32) {
        uint col = min(first + c, m.cols - 1);
        ACC inside = ACC(first + c < m.cols ? 1 : 0);
        uint bit = col % GROUP * BITS;
        for (uint k = group.y * 64 + simd; k < end; k += 8) {
            ulong g = ulong(k) * m.groups + col / GROUP;
            ACC v = ELEMENT(scale_of(scales[g]), ACC(biases[g]), bits_at(packed + g * WORDS, bit) & MASK);
            out[(ulong(group.z) * m.depth + k) * PANEL + c] = v * inside;
        }
    }
#endif
}
