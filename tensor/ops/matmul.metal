// out = a b as its definition reads, for a batch of matrices with any strides: what every driver can run, and what the
// kernels for the host's processors are compared with. A thread makes an element, with LANES a SIMD-group.

#pragma clang fp contract(off)

struct Matmul {
    long a_row, a_depth, b_depth, b_col; // strides in elements
    uint rows, depth, cols;
    uint ndim;                           // of the batch
};

kernel void matmul(const device T* a [[buffer(0)]],
                   const device T* b [[buffer(1)]],
                   device T* out [[buffer(2)]],
                   constant Matmul& m [[buffer(3)]],
                   constant uint* shape [[buffer(4)]],
                   constant long* a_batch [[buffer(5)]],
                   constant long* b_batch [[buffer(6)]],
                   uint3 p [[thread_position_in_grid]]) {
#if LANES
    uint col = p.y, row = p.z % m.rows, matrix = p.z / m.rows;
#else
    uint col = p.x, row = p.y, matrix = p.z;
#endif
    const device T* x = a + (offset_of(matrix, shape, a_batch, m.ndim) + row * m.a_row);
    const device T* y = b + (offset_of(matrix, shape, b_batch, m.ndim) + col * m.b_col);
    ACC sum = dot(x, m.a_depth, y, m.b_depth, m.depth, p.x);
    if (!LANES || p.x == 0) {
        out[(ulong(matrix) * m.rows + row) * m.cols + col] = T(sum);
    }
}
