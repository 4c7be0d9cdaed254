// Products with packed matrices (see quantize.metal) as their definition reads: out = x W^T, where a row of W is
// packed along depth (TRANSPOSE), or x W, where it is packed along the columns. It is what every driver can run, and
// what the kernels for the host's processors are compared with. With PICK place z of the batch multiplies the matrices
// that stand there. A thread makes an element in the order of depth. With LANES a SIMD-group does, whose lane l takes
// the units l, l + 32, ... along depth, and of blocks every 32nd element; then the lanes are added.

#pragma clang fp contract(off)

struct Product {
    uint rows, depth, cols;
    uint groups;                // of a row of W
    ulong matrix_of_x, matrix;  // elements of a matrix of x, groups of a packed one
};

// Element e of a row of W whose first group is g.
#if BLOCKS
#define AT(g, e) block_element(packed + (g + (e) / GROUP) * BYTES, (e) % GROUP & ~31u, (e) & 31)
#else
#define AT(g, e) \
    ELEMENT(scale_of(scales[g + (e) / GROUP]), ACC(biases[g + (e) / GROUP]), code_at(packed + g * WORDS, e))

inline uint code_at(const device uint* row, uint e) {
    ulong bit = ulong(e) * BITS;
    uint shift = uint(bit % 32), q = row[bit / 32] >> shift;
    return (shift + BITS > 32 ? q | (row[bit / 32 + 1] << (32 - shift)) : q) & MASK;
}
#endif

// A unit is as many words as begin and end with an element. What its scale and bias are multiplied by is added up
// first.
#define PER (32 % BITS == 0 ? 32 / BITS : BITS == 6 ? 16 : 32)
#if !AFFINE && BITS == 8
#define BARE_VALUE(q) VALUE(q)
#define WHOLE(dot) (dot * UNIT)
#else
#define BARE_VALUE(q) (VALUE(q) * UNIT)
#define WHOLE(dot) dot
#endif

kernel void product(const device T* x [[buffer(0)]],
                    const device PACKED_T* packed [[buffer(1)]],
                    const device SCALE_T* scales [[buffer(2)]],
                    const device SCALE_T* biases [[buffer(3)]],
                    device T* out [[buffer(4)]],
                    constant Product& m [[buffer(5)]],
#if PICK
                    const device uint* of_x [[buffer(6)]],
                    const device uint* of_w [[buffer(7)]],
#endif
                    uint3 p [[thread_position_in_grid]]) {
#if LANES
    uint col = p.y, row = p.z % m.rows, place = p.z / m.rows;
#else
    uint col = p.x, row = p.y, place = p.z;
#endif
    ulong g = 0;
#if PICK
    x += of_x[place] * m.matrix_of_x;
    g = of_w[place] * m.matrix;
#endif
    x += ulong(row) * m.depth;
    ACC sum = ACC(0);
#if !LANES
    for (uint k = 0; k < m.depth; k++) {
#if TRANSPOSE
        ACC v = AT((g + ulong(col) * m.groups), k);
#else
        ACC v = AT((g + ulong(k) * m.groups), col);
#endif
        sum = metal::fma(ACC(x[k]), v, sum);
    }
#else
    g += ulong(col) * m.groups;
#if BLOCKS
    ACC odd = ACC(0); // blocks of 256 have every other 32 elements in a sum of their own
    for (uint k = p.x; k < m.depth; k += 32) {
        ACC v = AT(g, k), e = ACC(x[k]);
        if (GROUP == 256 && k / 32 % 2 == 1) {
            odd = metal::fma(e, v, odd);
        } else {
            sum = metal::fma(e, v, sum);
        }
    }
    sum += odd;
#else
    for (uint unit = p.x; unit < m.depth / PER; unit += 32) {
        ACC bare = ACC(0), dot = ACC(0);
        for (uint k = unit * PER; k < unit * PER + PER; k++) {
            bare += ACC(x[k]);
            dot = metal::fma(ACC(x[k]), BARE_VALUE(code_at(packed + g * WORDS, k)), dot);
        }
        ulong group = g + unit * PER / GROUP;
#if AFFINE
        sum = metal::fma(ACC(biases[group]), bare, sum);
#endif
        sum = metal::fma(scale_of(scales[group]), WHOLE(dot), sum);
    }
#endif
    sum = simd_sum(sum);
#endif
    if (!LANES || p.x == 0) {
        out[(ulong(place) * m.rows + row) * m.cols + col] = T(sum);
    }
}
