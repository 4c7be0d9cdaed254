// Batches of products as their definitions read: gather_mm of matrices of a and b that indices pick, segmented_mm of
// columns of a with rows of b from a start to an end. They are what every driver can run, and what the kernels for the
// host's processors are compared with. A thread makes an element, with LANES a SIMD-group.

#pragma clang fp contract(off)

struct Gathered {
    long a_row, a_depth, a_matrix, b_depth, b_col, b_matrix; // strides in elements
    long of_a, of_b;                                         // matrices
    uint rows, depth, cols;
    uint ndim;                                               // of the batch
};

#if LANES
#define COL p.y
#define ROW (p.z % m.rows)
#define PLACE (p.z / m.rows)
#else
#define COL p.x
#define ROW p.y
#define PLACE p.z
#endif

// Makes an element of the product of matrices at x and y.
inline void make(const device T* x, const device T* y, device T* out, constant Gathered& m, uint depth, uint3 p) {
    ACC sum = dot(x + ROW * m.a_row, m.a_depth, y + COL * m.b_col, m.b_depth, depth, p.x);
    if (!LANES || p.x == 0) {
        out[(ulong(PLACE) * m.rows + ROW) * m.cols + COL] = T(sum);
    }
}

kernel void gather_mm(const device T* a [[buffer(0)]],
                      const device T* b [[buffer(1)]],
                      device T* out [[buffer(2)]],
                      const device LHS* lhs [[buffer(3)]],
                      const device RHS* rhs [[buffer(4)]],
                      constant Gathered& m [[buffer(5)]],
                      constant uint* shape [[buffer(6)]],
                      constant long* lhs_strides [[buffer(7)]],
                      constant long* rhs_strides [[buffer(8)]],
                      device atomic_uint* bad [[buffer(9)]],
                      uint3 p [[thread_position_in_grid]]) {
    long left = checked_index(lhs[offset_of(PLACE, shape, lhs_strides, m.ndim)], m.of_a, bad);
    long right = checked_index(rhs[offset_of(PLACE, shape, rhs_strides, m.ndim)], m.of_b, bad + 1);
    make(a + left * m.a_matrix, b + right * m.b_matrix, out, m, m.depth, p);
}

// A segment is a start and an end that are between elements apart, which are checked for themselves.
kernel void segmented_mm(const device T* a [[buffer(0)]],
                         const device T* b [[buffer(1)]],
                         device T* out [[buffer(2)]],
                         const device LHS* segments [[buffer(3)]],
                         constant long& between [[buffer(4)]],
                         constant Gathered& m [[buffer(5)]],
                         constant uint* shape [[buffer(6)]],
                         constant long* a_strides [[buffer(7)]],
                         constant long* b_strides [[buffer(8)]],
                         constant long* segment_strides [[buffer(9)]],
                         device atomic_uint* bad [[buffer(10)]],
                         uint3 p [[thread_position_in_grid]]) {
    const device LHS* segment = segments + offset_of(PLACE, shape, segment_strides, m.ndim);
    uint start = checked_end(segment[0], m.depth, bad), end = checked_end(segment[between], m.depth, bad + 1);
    const device T* x = a + (offset_of(PLACE, shape, a_strides, m.ndim) + start * m.a_depth);
    const device T* y = b + (offset_of(PLACE, shape, b_strides, m.ndim) + start * m.b_depth);
    make(x, y, out, m, end > start ? end - start : 0, p);
}
