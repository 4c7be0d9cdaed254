// Products of matrices that are small enough to be read where they lie: packing them would take as long as multiplying.
// T is the element type, ACC the type to add up in, ZERO its zero, FMA(a, b, c) a * b + c in it. WHOLE: there are 32
// columns or more. TURN: neighbours in b are not neighbours along its columns, and depth is at most DEPTH. Products are
// added in the order of depth, as those of panels are.

#pragma clang fp contract(off)

struct Direct {
    long a_row, a_depth; // strides in elements
    long b_depth, b_col;
    uint rows, cols, depth;
    uint blocks;         // of 32 columns
    uint each;           // blocks of rows that a SIMD-group makes
    uint ndim;           // of the batch
};

#define SPAN 32u

// Lays ROWS rows out, SPAN places along depth of each; those past the end are not written.
template <bool whole>
void lay_out(threadgroup ACC* to, const device T* x, constant Direct& m, uint places, uint lane) {
    for (uint r = 0; r < ROWS; r++) {
        if (whole || lane < places) {
            to[r * SPAN + lane] = ACC(x[long(lane) * m.a_depth]);
        }
        x += m.a_row;
    }
}

#if TURN
typedef const threadgroup ACC* Columns;
#define B_STEP SPAN
#define GROUPS 1

// Lays 32 columns of b out, so that neighbours are neighbours along them; square is room for SPAN places of each. Zeros
// stand for what is past the end, which nobody uses.
inline void turn(threadgroup ACC* to, threadgroup ACC* square, const device T* y, constant Direct& m, uint lane) {
    for (uint c = m.cols; c < SPAN; c++) {
        square[c * (SPAN + 1) + lane] = ZERO;
    }
    for (uint start = 0; start < m.depth; start += SPAN) {
        uint places = min(m.depth - start, SPAN);
        const device T* from = y;
        for (uint c = 0; c < min(m.cols, SPAN); c++) {
            ACC v = ZERO;
            if (lane < places) {
                v = ACC(from[long(lane) * m.b_depth]);
            }
            square[c * (SPAN + 1) + lane] = v;
            from += m.b_col;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < places; k += 16) {
            for (uint u = 0; u < 16; u++) {
                to[(start + k + u) * SPAN + lane] = square[lane * (SPAN + 1) + k + u];
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        y += SPAN * m.b_depth;
    }
}
#else
typedef const device T* Columns;
#define B_STEP m.b_depth
#define GROUPS 8
#endif

// Adds the products of so many places along depth: e is theirs of a, row by row.
template <uint places>
void add_places(thread ACC (&sum)[ROWS], const threadgroup ACC* e, Columns y, constant Direct& m, uint lane) {
    for (uint u = 0; u < places; u++) {
#if WHOLE || TURN
        ACC v = ACC(y[lane]);
#else
        ACC v = ZERO;
        if (lane < m.cols) {
            v = ACC(y[lane]);
        }
#endif
        y += B_STEP;
        for (uint r = 0; r < ROWS; r++) {
            sum[r] = FMA(e[r * SPAN + u], v, sum[r]);
        }
    }
}

// A SIMD-group makes 32 columns, ROWS rows at a time. It lays SPAN places along depth of the rows out in threadgroup
// memory, whatever their strides are. The last rows and columns of a matrix may be some that are made twice, equally.
kernel void direct(const device T* a [[buffer(0)]],
                   const device T* b [[buffer(1)]],
                   device T* out [[buffer(2)]],
                   constant Direct& m [[buffer(3)]],
                   constant uint* shape [[buffer(4)]],
                   constant long* a_batch [[buffer(5)]],
                   constant long* b_batch [[buffer(6)]],
                   uint3 p [[thread_position_in_grid]],
                   uint share [[simdgroup_index_in_threadgroup]]) {
    threadgroup ACC part[GROUPS * ROWS * SPAN];
    threadgroup ACC* mine = part + share * (ROWS * SPAN);
    uint lane = p.x;
    uint matrix = p.z / m.blocks;
#if WHOLE
    uint col = min((p.z % m.blocks) * 32, m.cols - 32);
#else
    uint col = 0;
#endif
    const device T* all_x = a + offset_of(matrix, shape, a_batch, m.ndim);
    const device T* all_y = b + (offset_of(matrix, shape, b_batch, m.ndim) + long(col) * m.b_col);
    device T* all_out = out + (ulong(matrix) * m.rows * m.cols + col);
#if TURN
    threadgroup ACC turned[DEPTH * SPAN];
    threadgroup ACC square[SPAN * (SPAN + 1)];
    turn(turned, square, all_y, m, lane);
#endif
    for (uint i = 0; i < m.each; i++) {
        uint row = min((p.y * m.each + i) * ROWS, m.rows - ROWS);
        const device T* x = all_x + long(row) * m.a_row;
#if TURN
        Columns y = turned;
#else
        Columns y = all_y;
#endif
        ACC sum[ROWS];
        for (uint r = 0; r < ROWS; r++) {
            sum[r] = ZERO;
        }
        for (uint start = 0; start < m.depth; start += SPAN) {
            uint places = min(m.depth - start, SPAN);
            simdgroup_barrier(mem_flags::mem_threadgroup);
            if (places == SPAN) {
                lay_out<true>(mine, x, m, places, lane);
            } else {
                lay_out<false>(mine, x, m, places, lane);
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
            uint k = 0;
            for (; k + 4 <= places; k += 4) {
                add_places<4>(sum, mine + k, y, m, lane);
                y += 4 * B_STEP;
            }
            for (; k < places; k++) {
                add_places<1>(sum, mine + k, y, m, lane);
                y += B_STEP;
            }
            x += SPAN * m.a_depth;
        }
        device T* to = all_out + ulong(row) * m.cols;
        for (uint r = 0; r < ROWS; r++) {
#if WHOLE
            to[lane] = T(sum[r]);
#else
            if (lane < m.cols) {
                to[lane] = T(sum[r]);
            }
#endif
            to += m.cols;
        }
    }
}
