// Products with packed matrices (see quantize.metal): out = x W^T, where a row of W is packed along depth
// (TRANSPOSE), or x W, where it is packed along the columns. With DOTS a SIMD-group makes COLS columns of a row: lane
// l takes the units l, l + 32, ... along depth in their order, then the lanes are added. Otherwise a thread makes one
// column of a tile of ROWS (1 or 4) rows: it unpacks each element of W once, as scale * q + bias, and adds up in the
// order of depth. With WIDE (see pieces.metal) a threadgroup makes COLS columns: lane l of SIMD-group s of SPLIT
// takes the pieces 32 * s + l, 32 * (SPLIT + s) + l, ..., then lanes and SIMD-groups are added; it makes 4 / SPLIT
// such. With GATHERED, place z of the batch multiplies matrix lhs of x by packed matrix rhs: indices of types LHS
// and RHS, in arrays that the batch steps through with strides. IN_ORDER: the place in x's batch is the index.
// Several rows that are multiplied by one matrix share what is unpacked: see rows.metal.

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

#if DOTS && !BLOCKS && !WIDE
// The elements of unit i (see units.metal) of each column, times those of x.
#define ADD_UNIT(i, inside)                                                         \
    ACC v[PER];                                                                     \
    ACC bare = ACC(0);                                                              \
    for (uint e = 0; e < PER; e++) {                                                \
        v[e] = ACC(x0[(i) * PER + e]);                                              \
        BARE(e)                                                                     \
    }                                                                               \
    for (uint c = 0; c < uint(COLS); c++) {                                         \
        uint q[UNIT_WORDS + 1];                                                     \
        for (uint k = 0; k < UNIT_WORDS; k++) {                                     \
            q[k] = line[c][(i) * UNIT_WORDS + k];                                   \
        }                                                                           \
        ACC dot = ACC(0);                                                           \
        for (uint e = 0; e < PER; e++) {                                            \
            dot = metal::fma(v[e], DOT_VALUE(Q(e)), dot);                           \
        }                                                                           \
        ACC total = sum[c];                                                         \
        ADD_BARE((i) * PER / GROUP)                                                 \
        total = metal::fma(scale_of(scale[c][(i) * PER / GROUP]), dot, total);      \
        sum[c] = inside ? total : sum[c];                                           \
    }
#endif

#if WIDE
[[max_total_threads_per_threadgroup(128)]]
#endif
kernel void product(const device T* x [[buffer(0)]],
                    const device PACKED_T* packed [[buffer(1)]],
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
                    uint simd [[simdgroup_index_in_threadgroup]],
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
#if WIDE
    const device T* x_matrix = x + ulong(left) * (places.matrix_of_x / PER * PER);
#else
    const device T* x_matrix = x + ulong(left) * places.matrix_of_x;
#endif
#else
    ulong g = 0;
    const device T* x_matrix = x;
#endif
#if WIDE
    const device T* x0 = x_matrix + ulong(row) * (m.depth / PER * PER);
    uint col = p.y / SPLIT * uint(COLS);
    const device uint* line[COLS];
    const device T* scale[COLS];
    const device T* bias[COLS];
    ACC sum[COLS];
    for (uint c = 0; c < uint(COLS); c++) {
        ulong first = g + ulong(min(col + c, m.cols - 1)) * m.groups;
        line[c] = packed + first * WORDS;
        scale[c] = scales + first;
        bias[c] = biases + first;
        sum[c] = ACC(0);
    }
    // A card's compiler moves a constant anew for each use; there are never so many groups.
    uint base = as_type<uint>(BASE) | m.groups >> 31;
    for (uint i = 32 * (simd % SPLIT) + lane; i < m.depth / PER; i += 32 * SPLIT) {
        add_piece(sum, x0, line, scale, bias, i, base);
    }
    ACC all = ACC(0);
    for (uint c = 0; c < uint(COLS); c++) {
        ACC total = simd_sum(sum[c]);
        all = lane == c ? total : all;
    }
#if SPLIT > 1
    threadgroup ACC parts[4 * COLS];
    if (lane < uint(COLS)) {
        parts[simd * uint(COLS) + lane] = all;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd % SPLIT > 0) {
        return;
    }
    for (uint s = 1; s < SPLIT; s++) {
        all += lane < uint(COLS) ? parts[(simd + s) * uint(COLS) + lane] : ACC(0);
    }
#endif
    if (lane < uint(COLS) && col + lane < m.cols) {
        out[(ulong(place) * m.rows + row) * m.cols + col + lane] = T(all);
    }
#else
    const device T* x0 = x_matrix + ulong(row) * m.depth;
#if DOTS
    const device PACKED_T* line[COLS];
    const device SCALE_T* scale[COLS];
#if AFFINE
    const device T* bias[COLS];
#endif
    ACC sum[COLS];
    uint col = p.y * uint(COLS);
    for (uint c = 0; c < uint(COLS); c++) {
        ulong first = g + ulong(min(col + c, m.cols - 1)) * m.groups;
        line[c] = packed + first * WORDS;
        scale[c] = scales + first;
#if AFFINE
        bias[c] = biases + first;
#endif
        sum[c] = ACC(0);
    }
#if BLOCKS
    // Lane l takes the elements l, l + 32, ... of each block.
    ACC odd = ACC(0); // every other 32 have a sum of their own: one does not wait for the other
#define CHUNK(n, total, factor, least)                                  \
    total = metal::fma(ACC(x0[k * GROUP + n * 32 + lane]),              \
        block_value(factor, code_of(line[0] + k * BYTES, n * 32, lane), least), total);
#if GROUP == 256
#define CHUNKS(V)                                                       \
    V(0, sum[0]) V(1, odd) V(2, sum[0]) V(3, odd)                       \
    V(4, sum[0]) V(5, odd) V(6, sum[0]) V(7, odd)
#else
#define CHUNKS(V) V(0, sum[0])
#endif
    uint run = RUN < 32 ? lane / RUN : 0;
    uint k = 0;
#if RUN < 32
    // Factors that differ within 32 elements are unpacked at once for AHEAD blocks, one by each lane.
    threadgroup ACC factors[8 * 32];
    threadgroup ACC leasts[8 * 32];
    while (k + AHEAD <= m.groups) {
        const device uchar* b = line[0] + (k + lane / RUNS) * BYTES;
        factors[simd * 32 + lane] = factor_of(b, lane % RUNS, 0);
        leasts[simd * 32 + lane] = least_of(b, lane % RUNS, 0);
        simdgroup_barrier(mem_flags::mem_threadgroup);
#define UNPACKED(n, total) CHUNK(n, total, factors[at + n * 32 / RUN + run], leasts[at + n * 32 / RUN + run])
        for (uint at = simd * 32; at < simd * 32 + 32; at += RUNS) {
            CHUNKS(UNPACKED)
            k++;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
#endif
    for (; k < m.groups; k++) {
        const device uchar* b = line[0] + k * BYTES;
#define PACKED(n, total) CHUNK(n, total, factor_of(b, n * 32 / RUN, run), least_of(b, n * 32 / RUN, run))
        CHUNKS(PACKED)
    }
    sum[0] += odd;
#else
#if !AFFINE && BITS == 4
    ACC table = VALUE(lane & 15) * UNIT;
#endif
    uint units = m.groups * (GROUP / PER);
    uint whole = units / 32 * 32;
    for (uint u = 0; u < whole; u += 32) {
        ADD_UNIT(u + lane, true)
    }
    if (whole < units) { // all lanes run: a shuffle reads those that have no unit left, too
        bool inside = whole + lane < units;
        uint u = inside ? whole + lane : whole;
        ADD_UNIT(u, inside)
    }
#endif
    ACC all = ACC(0);
    for (uint c = 0; c < uint(COLS); c++) {
        ACC total = simd_sum(sum[c]);
        all = lane == c ? total : all;
    }
    if (lane < uint(COLS) && col + lane < m.cols) {
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
    const device PACKED_T* from = packed + g * WORDS;
    uint k = 0;
    for (uint group = 0; group < m.groups; group++) {
#if BLOCKS
        for (uint i = 0; i < GROUP; i++) {
            ACC v = block_element(from, i & ~31u, i & 31);
            ADD(v)
            k++;
        }
        from += BYTES;
#else
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
#endif
    }
#elif BLOCKS
    g += p.x / GROUP;
    for (uint k = 0; k < m.depth; k++) {
        ACC v = block_element(packed + g * BYTES, p.x % GROUP & ~31u, p.x & 31);
        ADD(v)
        g += m.groups;
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
#endif
}
