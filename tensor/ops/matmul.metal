// Products of matrices: out = a b for a batch of (rows, depth) times (depth, cols), each with any strides. T is the
// element type, ACC the type to add up in, ZERO its zero, FMA(a, b, c) a * b + c in it. A thread makes one column
// of a tile of ROWS (1 or 4) rows, so that an element of b that it loads is used ROWS times; the elements of a are
// the same for its neighbours. Products are added in the order of depth, for every element alike.

#pragma clang fp contract(off)

struct Matmul {
    long a_row, a_depth;   // strides in elements
    long b_depth, b_col;
    uint rows, depth, cols;
    uint batch_ndim;
};

kernel void matmul(const device T* a [[buffer(0)]],
                   const device T* b [[buffer(1)]],
                   device T* out [[buffer(2)]],
                   constant Matmul& m [[buffer(3)]],
                   constant uint* batch_shape [[buffer(4)]],
                   constant long* a_batch [[buffer(5)]],
                   constant long* b_batch [[buffer(6)]],
                   uint3 p [[thread_position_in_grid]]) {
    uint rest = p.z;
    long at_a = 0;
    long at_b = long(p.x) * m.b_col;
    for (int d = int(m.batch_ndim) - 1; d >= 0; d--) {
        uint n = batch_shape[d];
        long i = long(rest % n);
        rest = rest / n;
        at_a += i * a_batch[d];
        at_b += i * b_batch[d];
    }
    uint row = p.y * uint(ROWS);
    const device T* a0 = a + (at_a + long(row) * m.a_row);
    ACC s0 = ZERO;
#if ROWS == 4
    uint last = m.rows - 1;
    const device T* a1 = a + (at_a + long(min(row + 1, last)) * m.a_row);
    const device T* a2 = a + (at_a + long(min(row + 2, last)) * m.a_row);
    const device T* a3 = a + (at_a + long(min(row + 3, last)) * m.a_row);
    ACC s1 = ZERO;
    ACC s2 = ZERO;
    ACC s3 = ZERO;
#endif
    const device T* column = b + at_b;
    long ka = 0;
    long kb = 0;
    for (uint k = 0; k < m.depth; k++) {
        ACC v = ACC(column[kb]);
        s0 = FMA(ACC(a0[ka]), v, s0);
#if ROWS == 4
        s1 = FMA(ACC(a1[ka]), v, s1);
        s2 = FMA(ACC(a2[ka]), v, s2);
        s3 = FMA(ACC(a3[ka]), v, s3);
#endif
        ka += m.a_depth;
        kb += m.b_depth;
    }
    device T* to = out + (ulong(p.z) * m.rows + row) * m.cols + p.x;
    to[0] = T(s0);
#if ROWS == 4
    if (row + 1 < m.rows) {
        to[m.cols] = T(s1);
    }
    if (row + 2 < m.rows) {
        to[2 * ulong(m.cols)] = T(s2);
    }
    if (row + 3 < m.rows) {
        to[3 * ulong(m.cols)] = T(s3);
    }
#endif
}
