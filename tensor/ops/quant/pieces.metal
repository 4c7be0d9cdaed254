// Products of rows with columns that are packed along depth, for GPUs (WIDE): lanes take pieces of 16 bytes, PER codes.

#pragma clang fp contract(off)

#if WIDE
#define PER (128 / BITS)
// A code's bits, moved to where the mantissa of a power of two has its ones: that power plus the code.
#if BITS == 4
#define BASE 128.0f
#define FIRST 16
#else
#define BASE 256.0f
#define FIRST 15
#endif
#define MOVED(q, by) ((by) < 0 ? (q) << -(by) : (q) >> (by))
#define ABOVE_BASE(q, e) as_type<float>((MOVED(q, int(e) * BITS - FIRST) & (uint(MASK) << FIRST)) | base)

// EXACT takes the power away from each code; else from the sum of a piece, which halves, rounded, do not notice.
#if EXACT
#define CODE(q, e) (ABOVE_BASE(q, e) - BASE)
#define SURPLUS(bare) ACC(0)
#else
#define CODE(q, e) ABOVE_BASE(q, e)
#define SURPLUS(bare) (BASE * bare)
#endif

// Adds piece i of each column, times those of x. What a column's scale and bias are multiplied by is added up first.
// Base is the bits of BASE.
inline void add_piece(thread ACC (&sum)[COLS], const device T* x, const device uint* thread (&line)[COLS],
                      const device T* thread (&scale)[COLS], const device T* thread (&bias)[COLS], uint i,
                      uint base) {
    T v[PER];
    uint q[COLS][4];
    T s[COLS];
    T b[COLS];
    #pragma unroll
    for (uint c = 0; c < COLS; c++) {
        #pragma unroll
        for (uint k = 0; k < 4; k++) {
            q[c][k] = (line[c] + ulong(i) * 4)[k];
        }
        s[c] = scale[c][i / (GROUP / PER)];
        b[c] = bias[c][i / (GROUP / PER)];
    }
    #pragma unroll
    for (uint e = 0; e < PER; e++) {
        v[e] = (x + ulong(i) * PER)[e];
    }
    ACC bare = ACC(0);
    #pragma unroll
    for (uint e = 0; e < PER; e++) {
        bare += ACC(v[e]);
    }
    #pragma unroll
    for (uint c = 0; c < COLS; c++) {
        ACC dot = -SURPLUS(bare);
        #pragma unroll
        for (uint e = 0; e < PER; e++) {
            dot = metal::fma(ACC(v[e]), CODE(q[c][e / (PER / 4)], e % (PER / 4)), dot);
        }
        sum[c] = metal::fma(ACC(s[c]), dot, metal::fma(ACC(b[c]), bare, sum[c]));
    }
}
#endif
