// Batches of products: gather_mm of matrices of a and b that indices pick, segmented_mm of columns of a with rows of b
// from a start to an end. T is the element type, ACC the type to add up in. A SIMD-group makes ROWS rows of some
// columns: with DOTS of COLS columns, where lane l adds up the places l, l + 32, ... along depth in their order and
// then the lanes are added (or the pieces of kit/pieces.metal); else of 32 * COLS columns, in the order of depth.

#pragma clang fp contract(off)

struct Picked {
    long a_row, a_depth, a_matrix; // strides in elements
    long b_depth, b_col, b_matrix;
    long of_a, of_b;               // matrices
    uint rows, depth, cols, blocks;
    uint ndim;                     // of the batch
};

#if !DOTS
#if UNIT
#define B_AT(c) (c)
#else
#define B_AT(c) (long(c) * m.b_col)
#endif

// Adds up all products of the rows at line; columns are in range, all of them or those that are checked.
template <bool whole>
void add_all(thread ACC (&sum)[ROWS][COLS], const device T* thread (&line)[ROWS], const device T* w,
             constant Picked& m, uint depth, uint col) {
    const device T* from = w + B_AT(col);
    for (uint k = 0; k < depth; k++) {
        ACC v[COLS];
        for (uint c = 0; c < COLS; c++) {
            v[c] = ACC(0);
            if (whole || col + 32 * c < m.cols) {
                v[c] = ACC(from[B_AT(32 * c)]);
            }
        }
        for (uint r = 0; r < ROWS; r++) {
            ACC e = ACC(line[r][long(k) * m.a_depth]);
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = metal::fma(e, v[c], sum[r][c]);
            }
        }
        from += m.b_depth;
    }
}
#endif

// Makes rows from row on, and the columns of a part of them, of the product at out: along depth of the matrices at a
// and b.
void multiply_rows(const device T* a, const device T* b, device T* out, constant Picked& m, uint depth, uint row,
                   uint part, uint lane) {
    const device T* line[ROWS];
    ACC sum[ROWS][COLS];
    device T* to = out + ulong(row) * m.cols;
    for (uint r = 0; r < ROWS; r++) {
        line[r] = a + long(min(row + r, m.rows - 1)) * WHOLE(m.a_row);
        for (uint c = 0; c < COLS; c++) {
            sum[r][c] = ACC(0);
        }
    }
#if DOTS
    uint col = part * COLS;
    const device T* from[COLS];
    for (uint c = 0; c < COLS; c++) {
        from[c] = b + long(min(col + c, m.cols - 1)) * WHOLE(m.b_col);
    }
#if WIDE
    add_dots(sum, line, from, depth, lane);
#else
    for (uint k = lane; k < depth; k += 32) {
        ACC v[COLS];
        for (uint c = 0; c < COLS; c++) {
            v[c] = ACC(from[c][long(k) * m.b_depth]);
        }
        for (uint r = 0; r < ROWS; r++) {
            ACC e = ACC(line[r][long(k) * m.a_depth]);
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = metal::fma(e, v[c], sum[r][c]);
            }
        }
    }
#endif
    for (uint r = 0; r < ROWS; r++) {
        ACC all = ACC(0);
        for (uint c = 0; c < COLS; c++) {
            ACC s = simd_sum(sum[r][c]);
            all = lane == c ? s : all;
        }
        if (lane < uint(COLS) && col + lane < m.cols && row + r < m.rows) {
            to[r * m.cols + col + lane] = T(all);
        }
    }
#else
    uint first = part * (32 * COLS);
    uint col = first + lane;
    if (first + 32 * COLS <= m.cols) {
        add_all<true>(sum, line, b, m, depth, col);
    } else {
        add_all<false>(sum, line, b, m, depth, col);
    }
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            if (row + r < m.rows && col + 32 * c < m.cols) {
                to[r * m.cols + col + 32 * c] = T(sum[r][c]);
            }
        }
    }
#endif
}

#if WIDE
[[max_total_threads_per_threadgroup(256)]]
#endif
kernel void gather_mm(const device T* a [[buffer(0)]],
                      const device T* b [[buffer(1)]],
                      device T* out [[buffer(2)]],
                      const device LHS* lhs [[buffer(3)]],
                      const device RHS* rhs [[buffer(4)]],
                      constant Picked& m [[buffer(5)]],
                      constant uint* shape [[buffer(6)]],
                      constant long* lhs_strides [[buffer(7)]],
                      constant long* rhs_strides [[buffer(8)]],
                      device atomic_uint* bad [[buffer(9)]],
                      uint3 p [[thread_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    uint place = p.z / m.blocks;
    uint row = (p.z % m.blocks) * ROWS;
    uint rest = place;
    long left = 0;
    long right = 0;
    for (int d = int(m.ndim) - 1; d >= 0; d--) {
        uint n = shape[d];
        long i = long(rest % n);
        rest = rest / n;
        left += i * lhs_strides[d];
        right += i * rhs_strides[d];
    }
    const device T* x = a + checked_index(lhs[left], m.of_a, bad) * WHOLE(m.a_matrix);
    const device T* w = b + checked_index(rhs[right], m.of_b, bad + 1) * WHOLE(m.b_matrix);
    multiply_rows(x, w, out + ulong(place) * m.rows * m.cols, m, m.depth, row, p.y, lane);
}

// A segment is a start and an end that are between elements apart. Its place in the batch gives its matrices too.
kernel void segmented_mm(const device T* a [[buffer(0)]],
                         const device T* b [[buffer(1)]],
                         device T* out [[buffer(2)]],
                         const device LHS* segments [[buffer(3)]],
                         constant long& between [[buffer(4)]],
                         constant Picked& m [[buffer(5)]],
                         constant uint* shape [[buffer(6)]],
                         constant long* a_strides [[buffer(7)]],
                         constant long* b_strides [[buffer(8)]],
                         constant long* segment_strides [[buffer(9)]],
                         device atomic_uint* bad [[buffer(10)]],
                         uint3 p [[thread_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]]) {
    uint place = p.z / m.blocks;
    uint row = (p.z % m.blocks) * ROWS;
    uint rest = place;
    const device T* x = a;
    const device T* w = b;
    const device LHS* segment = segments;
    for (int d = int(m.ndim) - 1; d >= 0; d--) {
        uint n = shape[d];
        long i = long(rest % n);
        rest = rest / n;
        x += i * a_strides[d];
        w += i * b_strides[d];
        segment += i * segment_strides[d];
    }
    uint start = checked_end(segment[0], m.depth, bad);
    uint end = checked_end(segment[between], m.depth, bad + 1);
    uint depth = end > start ? end - start : 0;
    x += start * m.a_depth;
    w += start * m.b_depth;
    multiply_rows(x, w, out + ulong(place) * m.rows * m.cols, m, depth, row, p.y, lane);
}
