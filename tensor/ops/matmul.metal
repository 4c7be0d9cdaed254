// Products of matrices: out = a b for a batch of (rows, depth) times (depth, cols), each with any strides. T is the
// element type, ACC the type to add up in, ZERO its zero, FMA(a, b, c) a * b + c in it. A thread makes a tile of ROWS
// (1 or 4) rows and COLS (1 or 4) columns, so that an element of b that it loads is used ROWS times and one of a COLS
// times; the elements of a are the same for its neighbours. Its columns are as far apart as there are threads in a row,
// and neighbours have neighbouring columns; UNIT says that they lie side by side in b. Products are added in the order
// of depth, for every element alike.

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
    long at_b = 0;
    for (int d = int(m.batch_ndim) - 1; d >= 0; d--) {
        uint n = batch_shape[d];
        long i = long(rest % n);
        rest = rest / n;
        at_a += i * a_batch[d];
        at_b += i * b_batch[d];
    }
    uint row = p.y * uint(ROWS);
    uint apart = m.cols / uint(COLS);
    uint last = m.rows - 1;
    const device T* from[ROWS];
    ACC sum[ROWS][COLS];
    for (uint r = 0; r < ROWS; r++) {
        from[r] = a + (at_a + long(min(row + r, last)) * m.a_row);
        for (uint c = 0; c < COLS; c++) {
            sum[r][c] = ZERO;
        }
    }
    const device T* line = b + at_b;
    long ka = 0;
    for (uint k = 0; k < m.depth; k++) {
        ACC v[COLS];
        for (uint c = 0; c < COLS; c++) {
#if UNIT
            v[c] = ACC(line[c * apart + p.x]);
#else
            v[c] = ACC(line[long(c * apart + p.x) * m.b_col]);
#endif
        }
        for (uint r = 0; r < ROWS; r++) {
            ACC x = ACC(from[r][ka]);
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = FMA(x, v[c], sum[r][c]);
            }
        }
        ka += m.a_depth;
        line += m.b_depth;
    }
    for (uint r = 0; r < ROWS; r++) {
        if (row + r < m.rows) {
            device T* to = out + (ulong(p.z) * m.rows + row + r) * m.cols;
            for (uint c = 0; c < COLS; c++) {
                to[c * apart + p.x] = T(sum[r][c]);
            }
        }
    }
}
