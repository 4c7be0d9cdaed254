// Products with packed matrices (see quantize.metal): out = x W^T, where a row of W is packed along depth
// (TRANSPOSE), or x W, where it is packed along the columns. With DOTS a SIMD-group makes COLS columns of a row: lane
// l takes the words l, l + 32, ... along depth in their order, then the lanes are added. Otherwise a thread makes one
// column of a tile of ROWS (1 or 4) rows: it unpacks each element of W once, as scale * q + bias, and adds up in the
// order of depth. With GATHERED, place z of the batch multiplies matrix lhs of x by packed matrix rhs: indices of types
// LHS and RHS, in arrays that the batch steps through with strides. IN_ORDER: the place in x's batch is the index.

#pragma clang fp contract(off)

struct Product {
    uint rows, depth, cols;
    uint groups; // of a row of W
    ulong matrix; // groups of one packed matrix
};

#if GATHERED
struct Places {
    long matrices_of_x, matrices;
    ulong matrix_of_x; // elements of a matrix of x
    int ndim;          // of the batch
};
#endif

#if ROWS == 4
#define ADD(v)                                   \
    s0 = metal::fma(ACC(x0[k]), v, s0);          \
    s1 = metal::fma(ACC(x1[k]), v, s1);          \
    s2 = metal::fma(ACC(x2[k]), v, s2);          \
    s3 = metal::fma(ACC(x3[k]), v, s3);
#else
#define ADD(v) s0 = metal::fma(ACC(x0[k]), v, s0);
#endif

#if DOTS
// The elements of word i of each column, times those of x: what a column's scale and bias are multiplied by is added up
// for the word first.
#define COLS 4u
#define PER (32 / BITS)
#if AFFINE
#define BARE(e) bare += v[e];
#define ADD_BARE(i) sum[c] = metal::fma(ACC(bias[c][(i) / WORDS]), bare, sum[c]);
#else
#define BARE(e)
#define ADD_BARE(i) dot = dot * UNIT;
#endif
#define ADD_WORDS(i)                                                                \
    ACC v[PER];                                                                     \
    ACC bare = ACC(0);                                                              \
    for (uint e = 0; e < PER; e++) {                                                \
        v[e] = ACC(x0[(i) * PER + e]);                                              \
        BARE(e)                                                                     \
    }                                                                               \
    for (uint c = 0; c < COLS; c++) {                                               \
        uint q = line[c][i];                                                        \
        ACC dot = ACC(0);                                                           \
        for (uint e = 0; e < PER; e++) {                                            \
            dot = metal::fma(v[e], VALUE((q >> (e * BITS)) & MASK), dot);           \
        }                                                                           \
        ADD_BARE(i)                                                                 \
        sum[c] = metal::fma(scale_of(scale[c][(i) / WORDS]), dot, sum[c]);          \
    }
#endif

kernel void product(const device T* x [[buffer(0)]],
                    const device uint* packed [[buffer(1)]],
                    const device SCALE_T* scales [[buffer(2)]],
                    const device SCALE_T* biases [[buffer(3)]],
                    device T* out [[buffer(4)]],
                    constant Product& m [[buffer(5)]],
#if GATHERED
                    constant Places& places [[buffer(6)]],
                    constant uint* shape [[buffer(7)]],
                    constant long* lhs_strides [[buffer(8)]],
                    constant long* rhs_strides [[buffer(9)]],
                    device atomic_uint* bad [[buffer(10)]],
                    const device RHS* rhs [[buffer(11)]],
#if !IN_ORDER
                    const device LHS* lhs [[buffer(12)]],
#endif
#endif
#if DOTS
                    uint lane [[thread_index_in_simdgroup]],
#endif
                    uint3 p [[thread_position_in_grid]]) {
#if DOTS
    uint place = p.z / m.rows;
    uint row = p.z % m.rows;
#else
    uint place = p.z;
    uint row = p.y * ROWS;
#endif
#if GATHERED
    int ndim = places.ndim;
    uint rest = place;
    long left = 0;
    long right = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        uint n = shape[d];
        long i = long(rest % n);
        rest = rest / n;
        left += i * lhs_strides[d];
        right += i * rhs_strides[d];
    }
#if !IN_ORDER
    left = checked_index(lhs[left], places.matrices_of_x, bad);
#endif
    ulong g = ulong(checked_index(rhs[right], places.matrices, bad + 1)) * m.matrix;
    const device T* x_matrix = x + ulong(left) * places.matrix_of_x;
#else
    ulong g = 0;
    const device T* x_matrix = x;
#endif
    const device T* x0 = x_matrix + ulong(row) * m.depth;
#if DOTS
    const device uint* line[COLS];
    const device SCALE_T* scale[COLS];
#if AFFINE
    const device T* bias[COLS];
#endif
    ACC sum[COLS];
    uint col = p.y * COLS;
    for (uint c = 0; c < COLS; c++) {
        ulong first = g + ulong(min(col + c, m.cols - 1)) * m.groups;
        line[c] = packed + first * WORDS;
        scale[c] = scales + first;
#if AFFINE
        bias[c] = biases + first;
#endif
        sum[c] = ACC(0);
    }
    uint words = m.groups * WORDS;
    uint whole = words / 32 * 32;
    for (uint w = 0; w < whole; w += 32) {
        ADD_WORDS(w + lane)
    }
    uint rest_of_row = whole + lane;
    if (rest_of_row < words) {
        ADD_WORDS(rest_of_row)
    }
    ACC all = ACC(0);
    for (uint c = 0; c < COLS; c++) {
        ACC total = simd_sum(sum[c]);
        all = lane == c ? total : all;
    }
    if (lane < COLS && col + lane < m.cols) {
        out[(ulong(place) * m.rows + row) * m.cols + col + lane] = T(all);
    }
#else
    ACC s0 = ACC(0);
#if ROWS == 4
    uint last = m.rows - 1;
    const device T* x1 = x_matrix + ulong(min(row + 1, last)) * m.depth;
    const device T* x2 = x_matrix + ulong(min(row + 2, last)) * m.depth;
    const device T* x3 = x_matrix + ulong(min(row + 3, last)) * m.depth;
    ACC s1 = ACC(0);
    ACC s2 = ACC(0);
    ACC s3 = ACC(0);
#endif
#if TRANSPOSE
    g += ulong(p.x) * m.groups;
    const device uint* from = packed + g * WORDS;
    uint k = 0;
    for (uint group = 0; group < m.groups; group++) {
        ACC scale = scale_of(scales[g + group]);
#if AFFINE
        ACC bias = ACC(biases[g + group]);
#endif
#if 32 % BITS == 0
        for (int word = 0; word < WORDS; word++) {
            uint q = from[0];
            from++;
            for (int i = 0; i < 32 / BITS; i++) {
                ACC v = ELEMENT(scale, bias, q & MASK);
                q = q >> BITS;
                ADD(v)
                k++;
            }
        }
#else
        ulong pending = 0;
        int have = 0;
        for (int i = 0; i < GROUP; i++) {
            if (have < BITS) {
                pending = pending | (ulong(from[0]) << have);
                from++;
                have += 32;
            }
            ACC v = ELEMENT(scale, bias, uint(pending) & MASK);
            pending = pending >> BITS;
            have -= BITS;
            ADD(v)
            k++;
        }
#endif
    }
#else
    uint within = p.x % GROUP;
    uint bit = within * BITS;
    uint shift = bit % 32;
    g += p.x / GROUP;
    for (uint k = 0; k < m.depth; k++) {
        const device uint* from = packed + (g * WORDS + bit / 32);
        uint q = from[0] >> shift;
#if 32 % BITS != 0
        if (shift + BITS > 32) {
            q = q | (from[1] << (32 - shift));
        }
#endif
        ACC v = ELEMENT(scale_of(scales[g]), ACC(biases[g]), q & MASK);
        ADD(v)
        g += m.groups;
    }
#endif
    device T* to = out + (ulong(place) * m.rows + row) * m.cols + p.x;
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
#endif
}
