// Products of a few rows with one packed matrix, added up as products.metal does with DOTS: a SIMD-group makes a column
// of ROWS rows, and unpacks each unit once for all of them. turn lays x out for that: 32 units of a row are PLANES runs
// of 32 numbers, one of a lane: element 0 of each unit, element 1, ... and at last the sum of a unit's elements
// (AFFINE).

#pragma clang fp contract(off)

struct Rows {
    uint rows, depth, cols;
    uint groups; // of a row of W
};

#define PLANES (PER + AFFINE)

kernel void turn(const device T* x [[buffer(0)]],
                 device ACC* out [[buffer(1)]],
                 constant Rows& m [[buffer(2)]],
                 uint lane [[thread_index_in_simdgroup]],
                 uint3 p [[thread_position_in_grid]]) {
    uint units = m.groups * (GROUP / PER);
    uint u = min(p.y * 32 + lane, units - 1); // what lanes without a unit make is not used
    const device T* from = x + ulong(p.z) * m.depth + u * PER;
    device ACC* to = out + (ulong(p.z) * ((units + 31) / 32) + p.y) * (PLANES * 32) + lane;
    ACC v[PER];
    ACC bare = ACC(0);
    for (uint e = 0; e < PER; e++) {
        v[e] = ACC(from[e]);
        BARE(e)
    }
    for (uint e = 0; e < PER; e++) {
        to[e * 32] = v[e];
    }
#if AFFINE
    to[PER * 32] = bare;
#endif
}

// Unit i of the column, times those of the rows; the rows' begins at u for all lanes.
#define ADD_UNIT(i, inside)                                      \
    uint q[UNIT_WORDS + 1];                                      \
    for (uint k = 0; k < UNIT_WORDS; k++) {                      \
        q[k] = line[(i) * UNIT_WORDS + k];                       \
    }                                                            \
    ACC w[PER];                                                  \
    for (uint e = 0; e < PER; e++) {                             \
        w[e] = DOT_VALUE(Q(e));                                  \
    }                                                            \
    ACC factor = scale_of(scale[(i) * PER / GROUP]);             \
    for (uint r = 0; r < ROWS; r++) {                            \
        const device ACC* v = turned[r] + u * PLANES;            \
        ACC dot = ACC(0);                                        \
        for (uint e = 0; e < PER; e++) {                         \
            dot = metal::fma(v[e * 32], w[e], dot);              \
        }                                                        \
        ACC total = sum[r];                                      \
        TOTAL_BARE                                               \
        ADD_BARE((i) * PER / GROUP)                              \
        total = metal::fma(factor, dot, total);                  \
        sum[r] = inside ? total : sum[r];                        \
    }
#if AFFINE
#define TOTAL_BARE ACC bare = v[PER * 32];
#else
#define TOTAL_BARE
#endif

kernel void product(const device ACC* x [[buffer(0)]],
                    const device uint* packed [[buffer(1)]],
                    const device SCALE_T* scales [[buffer(2)]],
                    const device SCALE_T* biases [[buffer(3)]],
                    device T* out [[buffer(4)]],
                    constant Rows& m [[buffer(5)]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint3 p [[thread_position_in_grid]]) {
    uint units = m.groups * (GROUP / PER);
    uint col = p.y;
    uint row = p.z * ROWS;
    ulong first = ulong(col) * m.groups;
    const device uint* line = packed + first * WORDS;
    const device SCALE_T* scale = scales + first;
#if AFFINE
    const device T* bias[1] = {biases + first};
#endif
    const device ACC* turned[ROWS];
    ACC sum[ROWS];
    for (uint r = 0; r < ROWS; r++) {
        turned[r] = x + ulong(min(row + r, m.rows - 1)) * ((units + 31) / 32 * (PLANES * 32)) + lane;
        sum[r] = ACC(0);
    }
#if !AFFINE && BITS == 4
    ACC table = VALUE(lane & 15) * UNIT;
#endif
    uint c = 0;
    uint whole = units / 32 * 32;
    for (uint u = 0; u < whole; u += 32) {
        ADD_UNIT(u + lane, true)
    }
    if (whole < units) { // all lanes run: a shuffle reads those that have no unit left, too
        uint u = whole;
        bool inside = u + lane < units;
        uint i = inside ? u + lane : u;
        ADD_UNIT(i, inside)
    }
    ACC all = ACC(0);
    for (uint r = 0; r < ROWS; r++) {
        ACC total = simd_sum(sum[r]);
        all = lane == r ? total : all;
    }
    if (lane < ROWS && row + lane < m.rows) {
        out[ulong(row + lane) * m.cols + col] = T(all);
    }
}
