// Dot products of rows that lie along their elements, for GPUs (WIDE): lane l of a SIMD-group takes the pieces l, l +
// 32, ... of 16 bytes, EACH elements of type T, AHEAD of them at a time, and adds up in ACC in their order. Lengths and
// strides are multiples of EACH; WHOLE(stride) shows that to whoever prints a kernel.

#pragma clang fp contract(off)

#if WIDE
#define WHOLE(stride) ((stride) & ~long(EACH - 1))

// Adds count pieces of a lane's from an element on: the products of rows of x and of columns at w.
template <uint count>
void add_pieces(thread ACC (&sum)[ROWS][COLS], const device T* thread (&x)[ROWS], const device T* thread (&w)[COLS],
                ulong at) {
    T e[ROWS][count * EACH];
    T v[COLS][count * EACH];
    #pragma unroll
    for (uint c = 0; c < COLS; c++) {
        const device T* from = w[c] + at;
        #pragma unroll
        for (uint k = 0; k < count * EACH; k++) {
            v[c][k] = from[k / EACH * (32 * EACH) + k % EACH];
        }
    }
    #pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        const device T* from = x[r] + at;
        #pragma unroll
        for (uint k = 0; k < count * EACH; k++) {
            e[r][k] = from[k / EACH * (32 * EACH) + k % EACH];
        }
    }
    #pragma unroll
    for (uint k = 0; k < count * EACH; k++) {
        #pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            #pragma unroll
            for (uint c = 0; c < COLS; c++) {
                sum[r][c] = metal::fma(ACC(e[r][k]), ACC(v[c][k]), sum[r][c]);
            }
        }
    }
}

// Adds all of a lane's.
inline void add_dots(thread ACC (&sum)[ROWS][COLS], const device T* thread (&x)[ROWS],
                     const device T* thread (&w)[COLS], uint depth, uint lane) {
    uint i = lane;
    for (; i + 32 * (AHEAD - 1) < depth / EACH; i += 32 * AHEAD) {
        add_pieces<AHEAD>(sum, x, w, ulong(i) * EACH);
    }
    for (; i < depth / EACH; i += 32) {
        add_pieces<1>(sum, x, w, ulong(i) * EACH);
    }
}
#else
#define WHOLE(stride) (stride)
#endif
