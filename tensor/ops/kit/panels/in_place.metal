// Products of matrices of which at least one is read where it lies, the other perhaps from panels (see panels.metal).
// ACC is the type of the elements and of the sums, ZERO its zero, FMA(a, b, c) a * b + c in it. Products are added in
// the order of depth, as those of panels are.

#pragma clang fp contract(off)

struct InPlace {
    long a_step;  // elements from a row to the next; ALONG_ROWS: from a place along depth to the next
    long a_panel; // elements from PANEL rows to the next ones
    long b_step;  // elements from a place along depth to the next
    long b_panel; // elements from PANEL columns to the next ones
    uint rows, cols, depth;
    uint blocks;  // of WIDTH columns
    uint first;   // column of the result that is b's first one
    uint ndim;    // of the batch
};

#define WIDTH 32u
#define ROWS 8u

// Adds the products of so many places along depth: of ROWS rows at x and a column of a lane at y.
template <uint places>
void add_places(thread ACC (&sum)[ROWS], const device ACC* x, const device ACC* y, constant InPlace& m) {
    ACC v[places];
    for (uint u = 0; u < places; u++) {
        v[u] = y[long(u) * m.b_step];
    }
    for (uint r = 0; r < ROWS; r++) {
        for (uint u = 0; u < places; u++) {
#if ALONG_ROWS
            sum[r] = FMA(x[r], v[u], sum[r]);
#else
            sum[r] = FMA(x[long(r) * m.a_step + u], v[u], sum[r]);
#endif
        }
    }
}

// What is checked at once are neighbours: rows, or places along depth.
#if ALONG_ROWS
#define PLACES 1u
#define A_PLACE m.a_step
#else
#define PLACES 4u
#define A_PLACE 1
#endif

// A SIMD-group makes ROWS rows of WIDTH columns. The last rows and columns of what lies in its place may be some that
// are made twice, equally; panels are filled with zeros.
kernel void in_place(const device ACC* a [[buffer(0)]],
                     const device ACC* b [[buffer(1)]],
                     device ACC* out [[buffer(2)]],
                     constant InPlace& m [[buffer(3)]],
                     constant uint* shape [[buffer(4)]],
                     constant long* a_batch [[buffer(5)]],
                     constant long* b_batch [[buffer(6)]],
#if WHOLE
                     uint lane [[thread_index_in_simdgroup]],
#endif
                     uint3 p [[thread_position_in_grid]]) {
#if !WHOLE
    uint lane = p.x;
#endif
    uint matrix = p.z / m.blocks;
    uint block = p.z % m.blocks;
    const device ACC* x = a + offset_of(matrix, shape, a_batch, m.ndim);
    const device ACC* y = b + offset_of(matrix, shape, b_batch, m.ndim);
#if A_PACKED
    uint row = p.y * ROWS;
    x += long(row / PANEL) * m.a_panel + row % PANEL;
#else
    uint row = min(p.y * ROWS, m.rows - ROWS);
#if ALONG_ROWS
    x += row;
#else
    x += long(row) * m.a_step;
#endif
#endif
#if B_PACKED
    uint col = block * WIDTH;
    y += long(col / PANEL) * m.b_panel + col % PANEL;
#else
    uint col = min(block * WIDTH, m.cols - WIDTH);
    y += col;
#endif
    y += lane;
    ACC sum[ROWS];
    for (uint r = 0; r < ROWS; r++) {
        sum[r] = ZERO;
    }
    uint k = 0;
    for (; k + PLACES <= m.depth; k += PLACES) {
        add_places<PLACES>(sum, x, y, m);
        x += PLACES * A_PLACE;
        y += PLACES * m.b_step;
    }
#if !ALONG_ROWS
    for (; k < m.depth; k++) {
        add_places<1>(sum, x, y, m);
        x += A_PLACE;
        y += m.b_step;
    }
#endif
    col += m.first + lane;
    device ACC* to = out + ((ulong(matrix) * m.rows + row) * m.cols + col);
    for (uint r = 0; r < ROWS; r++) {
#if A_PACKED || B_PACKED
        if (row + r < m.rows && col < m.cols)
#endif
            *to = sum[r];
        to += m.cols;
    }
}
