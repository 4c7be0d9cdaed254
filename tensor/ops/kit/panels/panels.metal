// Products of matrices of many rows and columns, in two steps. Pack lays an operand out in panels: PANEL rows of a, or
// columns of b, for each place along depth side by side, in the type to add up in, and zero past the last one. So
// product reads both operands one after the other whatever their layouts and types were. T is the element type, ACC the
// type to add up in, ZERO its zero, FMA(a, b, c) a * b + c in it. Products are added in the order of depth, for every
// element alike. PICK_A and PICK_B: a matrix of the result takes the matrix of a, of b, that stands in picks.

#pragma clang fp contract(off)

struct Pack {
    long outer, depth; // strides in elements
    uint size, length; // rows (or columns), and places along depth
    uint panels;       // of a matrix
    uint ndim;         // of the batch
};

// A threadgroup of 8 SIMD-groups packs SPAN places along depth of a panel. TURN: neighbours in memory are neighbours
// along depth; they go through threadgroup memory.
#define SPAN 64u
kernel void pack(const device T* x [[buffer(0)]],
                 device ACC* out [[buffer(1)]],
                 constant Pack& m [[buffer(2)]],
                 constant uint* shape [[buffer(3)]],
                 constant long* strides [[buffer(4)]],
#if PICK_A
                 const device uint* picks [[buffer(5)]],
#endif
                 uint3 group [[threadgroup_position_in_grid]],
#if WHOLE
                 uint lane [[thread_index_in_simdgroup]],
#endif
                 uint2 t [[thread_position_in_threadgroup]]) {
#if !WHOLE
    uint lane = t.x;
#endif
    uint matrix = group.z / m.panels;
#if PICK_A
    matrix = picks[matrix];
#endif
    uint first = (group.z % m.panels) * PANEL;
    uint count = min(m.size - first, uint(PANEL));
    uint start = group.y * SPAN;
    uint end = min(m.length - start, SPAN);
    long place = offset_of(matrix, shape, strides, m.ndim);
    const device T* from = x + (place + long(first) * m.outer + long(start) * m.depth);
    device ACC* to = out + (ulong(group.z) * m.length + start) * PANEL;
#if TURN
    threadgroup ACC part[PANEL * (SPAN + 1)];
    for (uint r = t.y; r < uint(PANEL); r += 8) {
        const device T* line = from + long(r) * m.outer;
        threadgroup ACC* row = part + r * (SPAN + 1);
        if (r >= count) {
            row[lane] = ZERO;
            row[lane + 32] = ZERO;
        } else if (end == SPAN) {
            row[lane] = ACC(line[lane]);
            row[lane + 32] = ACC(line[lane + 32]);
        } else {
            if (lane < end) {
                row[lane] = ACC(line[lane]);
            }
            if (lane + 32 < end) {
                row[lane + 32] = ACC(line[lane + 32]);
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (8 * t.y >= end) {
        return;
    }
    for (uint c = 0; c < uint(PANEL); c += 32) { // eight neighbours of each row at once: they are turned in registers
        const threadgroup ACC* row = part + ((c + lane) * (SPAN + 1) + 8 * t.y);
        ACC v[8];
        for (uint u = 0; u < 8; u++) {
            v[u] = row[u];
        }
        for (uint u = 0; u < 8; u++) {
            if (8 * t.y + u < end) {
                to[(8 * t.y + u) * PANEL + c + lane] = v[u];
            }
        }
    }
#else
    for (uint k = t.y; k < end; k += 8) {
        const device T* line = from + long(k) * m.depth;
        for (uint c = 0; c < uint(PANEL); c += 32) {
            ACC v = ZERO;
            if (c + lane < count) {
#if UNIT
                v = ACC(line[c + lane]);
#else
                v = ACC(line[long(c + lane) * m.outer]);
#endif
            }
            to[k * PANEL + c + lane] = v;
        }
    }
#endif
}
