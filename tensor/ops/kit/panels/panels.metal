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
                 uint2 t [[thread_position_in_threadgroup]]) {
    uint lane = t.x;
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
            for (uint k = lane; k < end; k += 32) {
                row[k] = ACC(line[k]);
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = t.y; k < end; k += 8) {
        for (uint c = 0; c < uint(PANEL); c += 32) {
            to[k * PANEL + c + lane] = part[(c + lane) * (SPAN + 1) + k];
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

struct Product {
    uint rows, cols, depth;
    uint a_panels, b_panels; // of a matrix
    uint first;              // b holds panels of one matrix, from this one on; else 0
    uint start;              // the first matrix of the result to make; b's are counted from there
    uint ndim;               // of the batch
};

#define COLS (PANEL / 32)
#define ROWS 8u

// A SIMD-group makes ROWS rows of a panel's columns, COLS columns a lane: what it loads of b is used ROWS times and
// what of a COLS times, and the elements of a are the same for all lanes.
kernel void product(const device ACC* a [[buffer(0)]],
                    const device ACC* b [[buffer(1)]],
                    device T* out [[buffer(2)]],
                    constant Product& m [[buffer(3)]],
                    constant uint* shape [[buffer(4)]],
                    constant long* a_batch [[buffer(5)]],
                    constant long* b_batch [[buffer(6)]],
#if PICK_A || PICK_B
                    const device uint* a_picks [[buffer(7)]],
                    const device uint* b_picks [[buffer(8)]],
#endif
                    uint3 p [[thread_position_in_grid]]) {
    uint matrix = p.z / m.b_panels + m.start;
    uint panel = p.z % m.b_panels; // that b has
    uint row = p.y * ROWS;
#if PICK_A
    ulong of_a = a_picks[matrix];
#else
    ulong of_a = ulong(offset_of(matrix, shape, a_batch, m.ndim));
#endif
#if PICK_B
    ulong of_b = b_picks[matrix];
#else
    ulong of_b = ulong(offset_of(p.z / m.b_panels, shape, b_batch, m.ndim));
#endif
    of_a = of_a * m.a_panels + row / PANEL;
    of_b = of_b * m.b_panels + panel;
    const device ACC* x = a + (of_a * m.depth * PANEL + row % PANEL);
    const device ACC* y = b + (of_b * m.depth * PANEL + p.x);
    ACC sum[ROWS][COLS];
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            sum[r][c] = ZERO;
        }
    }
    for (uint k = 0; k < m.depth; k++) {
        ACC v[COLS];
        for (uint c = 0; c < COLS; c++) {
            v[c] = y[32 * c];
        }
        for (uint r = 0; r < ROWS; r++) {
            ACC e = x[r];
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = FMA(e, v[c], sum[r][c]);
            }
        }
        x += PANEL;
        y += PANEL;
    }
    uint col = (m.first + panel) * PANEL + p.x;
    device T* to = out + ((ulong(matrix) * m.rows + row) * m.cols + col);
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            if (row + r < m.rows && col + 32 * c < m.cols) {
                to[32 * c] = T(sum[r][c]);
            }
        }
        to += m.cols;
    }
}
