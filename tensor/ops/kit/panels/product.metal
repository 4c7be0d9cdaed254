// Multiplies panels, as pack or pack_pairs laid them out. PAIRS: of pairs of bfloat16.

#pragma clang fp contract(off)

struct Product {
    uint rows, cols, depth;
    uint a_panels, b_panels; // of a matrix
    uint first;              // b holds panels of one matrix, from this one on; else 0
    uint start;              // the first matrix of the result to make; b's are counted from there
    uint tiles;              // of ROWS rows that a SIMD-group makes, at most MOST_TILES
    uint block;              // places, or words, along depth that all tiles go through before the next ones
    uint ndim;               // of the batch
};

#define COLS (PANEL / 32)
#define MOST_TILES (PANEL / ROWS)

struct Multiply {
    static ACC add(ACC a, ACC b, ACC sum) { return FMA(a, b, sum); }
};
#if PAIRS
struct MultiplyPairs {
    static float add(float a, float b, float sum) { return __metal_pair_dot(a, b, sum); }
};
struct MultiplyUpper {
    static float add(float a, float b, float sum) { return metal::fma(upper(a), upper(b), sum); }
};
struct MultiplyHalves {
    static float add(float a, float b, float sum) {
        return metal::fma(lower(a), lower(b), MultiplyUpper::add(a, b, sum));
    }
};
#endif

// Adds the products of so many places, or words, of ROWS rows at x and COLS columns at y. What it reads of each lies at
// constant distances, so that one check is enough.
template <typename By, uint places>
void add_places(thread ACC (&sum)[ROWS][COLS], const device ACC* x, const device ACC* y) {
    for (uint u = 0; u < places; u++) {
        ACC v[COLS];
        for (uint c = 0; c < COLS; c++) {
            v[c] = y[u * PANEL + 32 * c];
        }
        for (uint r = 0; r < ROWS; r++) {
            ACC e = x[u * PANEL + r];
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = By::add(e, v[c], sum[r][c]);
            }
        }
    }
}

#define PLACES 4u

// Adds the products of n places.
template <typename By>
void add_products(thread ACC (&sum)[ROWS][COLS], const device ACC* x, const device ACC* y, uint n) {
    uint k = 0;
    for (; k + PLACES <= n; k += PLACES) {
        add_places<By, PLACES>(sum, x, y);
        x += PLACES * PANEL;
        y += PLACES * PANEL;
    }
    for (; k < n; k++) {
        add_places<By, 1>(sum, x, y);
        x += PANEL;
        y += PANEL;
    }
}

// A SIMD-group makes some tiles, one below the other, of ROWS rows of a panel's columns, COLS columns a lane: what it
// loads of b is used ROWS times and what of a COLS times, and the elements of a are the same for all lanes.
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
    uint row = p.y * m.tiles * ROWS;
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
#if PAIRS
    const device ACC* x = a + of_a * words_of(m.depth);
    const device ACC* y = b + of_b * words_of(m.depth);
    uint exact = exact_pairs(x, y, m.depth);
    x += row % PANEL;
    y += p.x;
#else
    const device ACC* x = a + (of_a * m.depth * PANEL + row % PANEL);
    const device ACC* y = b + (of_b * m.depth * PANEL + p.x);
#endif
    ACC all[MOST_TILES * ROWS * COLS];
    for (uint i = 0; i < m.tiles * (ROWS * COLS); i++) {
        all[i] = ZERO;
    }
#if PAIRS
    uint words = (m.depth + 1) / 2;
    uint whole = max(m.depth / 2, exact); // a zero that is added would make +0 of a sum of -0
#else
    uint words = m.depth;
#endif
    for (uint k = 0; k < words; k += m.block) {
        uint end = min(k + m.block, words);
        const device ACC* left = x;
        for (uint t = 0; t < m.tiles; t++) {
            thread ACC* tile = all + t * (ROWS * COLS);
            ACC sum[ROWS][COLS];
            for (uint r = 0; r < ROWS; r++) {
                for (uint c = 0; c < COLS; c++) {
                    sum[r][c] = tile[r * COLS + c];
                }
            }
#if PAIRS
            uint pairs = clamp(exact, k, end) - k;
            uint both = clamp(whole, k, end) - k;
            add_products<MultiplyPairs>(sum, left, y, pairs);
            add_products<MultiplyHalves>(sum, left + pairs * PANEL, y + pairs * PANEL, both - pairs);
            add_products<MultiplyUpper>(sum, left + both * PANEL, y + both * PANEL, end - k - both);
#else
            add_products<Multiply>(sum, left, y, end - k);
#endif
            for (uint r = 0; r < ROWS; r++) {
                for (uint c = 0; c < COLS; c++) {
                    tile[r * COLS + c] = sum[r][c];
                }
            }
            left += ROWS;
        }
        x += m.block * PANEL;
        y += m.block * PANEL;
    }
    uint col = (m.first + panel) * PANEL + p.x;
    device T* to = out + ((ulong(matrix) * m.rows + row) * m.cols + col);
    for (uint r = 0; r < m.tiles * ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            if (row + r < m.rows && col + 32 * c < m.cols) {
                to[32 * c] = T(all[r * COLS + c]);
            }
        }
        to += m.cols;
    }
}
