// Products of a few rows with a matrix w: out = x w for a batch of (rows, depth) times (depth, cols), each with any
// strides. T is the element type, ACC the type to add up in, ZERO its zero, FMA(a, b, c) a * b + c in it. ROWS is rows
// rounded up to a power of two; what is past the last row or column is computed for the last one again and dropped.
// WIDE says that lanes take pieces (see kit/pieces.metal).

#pragma clang fp contract(off)

// The place of element k of a row of x: its elements are neighbours, or not.
#if UNIT
#define X_AT(k) (k)
#else
#define X_AT(k) (long(k) * m.x_depth)
#endif

struct FewRows {
    long x_row, x_depth; // strides in elements; that of w along its other dimension is 1
    long w_step;
    long out_row, out_col;
    uint rows, depth, cols;
    uint blocks;         // of ROWS rows
    uint ndim;           // of the batch
};

// What a threadgroup multiplies: count rows at x with the matrix at w, for those at out.
struct Work {
    const device T* x;
    const device T* w;
    device T* out;
    uint count;
};

inline Work work_of(const device T* x, const device T* w, device T* out, constant FewRows& m, constant uint* shape,
                    constant long* x_batch, constant long* w_batch, uint z) {
    uint row = (z % m.blocks) * ROWS;
    z = z / m.blocks;
    long at_x = long(row) * WHOLE(m.x_row);
    long at_w = 0;
    ulong at_out = ulong(z) * m.rows * m.cols + ulong(row) * ulong(m.out_row);
    for (int d = int(m.ndim) - 1; d >= 0; d--) {
        uint n = shape[d];
        long i = long(z % n);
        z = z / n;
        at_x += i * WHOLE(x_batch[d]);
        at_w += i * WHOLE(w_batch[d]);
    }
    return {x + at_x, w + at_w, out + at_out, min(m.rows - row, uint(ROWS))};
}

#if DOTS
// Neighbours in w are neighbours along depth: lane l of a SIMD-group adds up the places, or pieces, l, l + 32, ... of
// COLS columns in their order, then the lanes are added.
#if WIDE
[[max_total_threads_per_threadgroup(256)]]
#endif
kernel void few_rows(const device T* x [[buffer(0)]],
                     const device T* w [[buffer(1)]],
                     device T* out [[buffer(2)]],
                     constant FewRows& m [[buffer(3)]],
                     constant uint* shape [[buffer(4)]],
                     constant long* x_batch [[buffer(5)]],
                     constant long* w_batch [[buffer(6)]],
                     uint3 p [[thread_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]]) {
    Work at = work_of(x, w, out, m, shape, x_batch, w_batch, p.z);
    uint col = p.y * COLS;
    const device T* line[COLS];
    const device T* row[ROWS];
    ACC sum[ROWS][COLS];
    for (uint c = 0; c < COLS; c++) {
        line[c] = at.w + long(min(col + c, m.cols - 1)) * WHOLE(m.w_step);
    }
    for (uint r = 0; r < ROWS; r++) {
        row[r] = at.x + long(min(r, at.count - 1)) * WHOLE(m.x_row);
        for (uint c = 0; c < COLS; c++) {
            sum[r][c] = ZERO;
        }
    }
#if WIDE
    add_dots(sum, row, line, m.depth, lane);
#else
    uint whole = m.depth / 32 * 32;
    for (uint k = 0; k < whole; k += 32) {
        ACC v[COLS];
        for (uint c = 0; c < COLS; c++) {
            v[c] = ACC(line[c][k + lane]);
        }
        for (uint r = 0; r < ROWS; r++) {
            ACC e = ACC(row[r][X_AT(k + lane)]);
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = FMA(e, v[c], sum[r][c]);
            }
        }
    }
    uint last = whole + lane;
    if (last < m.depth) {
        for (uint r = 0; r < ROWS; r++) {
            ACC e = ACC(row[r][X_AT(last)]);
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = FMA(e, ACC(line[c][last]), sum[r][c]);
            }
        }
    }
#endif
    device T* to = at.out + ulong(col + lane) * ulong(m.out_col);
    bool mine = lane < uint(COLS) && col + lane < m.cols;
    for (uint r = 0; r < ROWS; r++) {
        ACC all = ZERO;
        for (uint c = 0; c < COLS; c++) {
            ACC s = SIMD_SUM(sum[r][c]);
            all = lane == c ? s : all;
        }
        if (mine && r < at.count) {
            to[r * m.out_row] = T(all);
        }
    }
}
#else
// Neighbours in w are neighbours along the columns, of which a lane makes COLS. The threadgroup's SIMD-groups, SPLIT of
// them, share depth: each adds up a run of it in order, and the sums of two halves of them are added again and again.

template <bool whole>
void add_run(thread ACC (&sum)[ROWS][COLS], Work at, constant FewRows& m, uint from, uint to, uint col) {
    const device T* w = at.w + (long(from) * m.w_step + col);
    for (uint k = from; k < to; k++) {
        ACC v[COLS];
        for (uint c = 0; c < COLS; c++) {
            v[c] = ZERO;
            if (whole || col + 32 * c < m.cols) {
                v[c] = ACC(w[32 * c]);
            }
        }
        for (uint r = 0; r < ROWS; r++) {
            ACC e = ACC(at.x[long(min(r, at.count - 1)) * m.x_row + X_AT(k)]);
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = FMA(e, v[c], sum[r][c]);
            }
        }
        w += m.w_step;
    }
}

kernel void few_rows(const device T* x [[buffer(0)]],
                     const device T* w [[buffer(1)]],
                     device T* out [[buffer(2)]],
                     constant FewRows& m [[buffer(3)]],
                     constant uint* shape [[buffer(4)]],
                     constant long* x_batch [[buffer(5)]],
                     constant long* w_batch [[buffer(6)]],
                     uint3 group [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint share [[simdgroup_index_in_threadgroup]]) {
    Work at = work_of(x, w, out, m, shape, x_batch, w_batch, group.z);
    ACC sum[ROWS][COLS];
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            sum[r][c] = ZERO;
        }
    }
    uint first = group.x * (32 * COLS);
    uint col = first + lane;
    uint run = (m.depth + SPLIT - 1) / SPLIT;
    uint from = min(share * run, m.depth);
    uint to = min(from + run, m.depth);
    if (first + 32 * COLS <= m.cols) {
        add_run<true>(sum, at, m, from, to, col);
    } else {
        add_run<false>(sum, at, m, from, to, col);
    }
#if SPLIT > 1
    threadgroup ACC part[SPLIT / 2 * ROWS * COLS * 32];
    for (uint upper = SPLIT / 2; upper > 0; upper /= 2) {
        threadgroup ACC* mine = part + (share % upper) * (ROWS * COLS * 32) + lane;
        if (share >= upper && share < 2 * upper) {
            for (uint r = 0; r < ROWS; r++) {
                for (uint c = 0; c < COLS; c++) {
                    mine[(r * COLS + c) * 32] = sum[r][c];
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (share < upper) {
            for (uint r = 0; r < ROWS; r++) {
                for (uint c = 0; c < COLS; c++) {
                    sum[r][c] = sum[r][c] + mine[(r * COLS + c) * 32];
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (share > 0) {
        return;
    }
#endif
    device T* to_out = at.out + ulong(col) * ulong(m.out_col);
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            if (r < at.count && col + 32 * c < m.cols) {
                to_out[r * m.out_row + 32 * c * m.out_col] = T(sum[r][c]);
            }
        }
    }
}
#endif
