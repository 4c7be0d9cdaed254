// Products of many matrices of a few elements: a lane makes a matrix. T is the element type, ACC the type to add up in,
// ZERO its zero, FMA(a, b, c) a * b + c in it. All sizes and strides (A_ROW, A_DEPTH, A_STEP from a matrix to the next,
// and those of b) are constants, so that what neighbouring lanes touch is loaded as rows and transposed. Products are
// added in the order of depth, as those of panels are.

#pragma clang fp contract(off)

#define SIZE (ROWS * COLS)
#define TURN (SIZE > 16)

kernel void tiny(const device T* a [[buffer(0)]],
                 const device T* b [[buffer(1)]],
                 device T* out [[buffer(2)]],
                 constant uint& count [[buffer(3)]],
                 uint3 at [[threadgroup_position_in_grid]],
                 uint lane [[thread_index_in_simdgroup]]) {
#if TURN
    threadgroup ACC part[SIZE * 33];
#endif
    uint group = at.y;
    const device T* x = a + ulong(group) * (32 * A_STEP);
    const device T* y = b + ulong(group) * (32 * B_STEP);
    device T* to = out + ulong(group) * (32 * SIZE);
    if (group * 32 + lane < count) {
        ACC v[DEPTH][COLS];
        for (uint k = 0; k < DEPTH; k++) {
            for (uint c = 0; c < COLS; c++) {
                v[k][c] = ACC(y[lane * B_STEP + k * B_DEPTH + c * B_COL]);
            }
        }
        for (uint r = 0; r < ROWS; r++) {
            ACC e[DEPTH];
            for (uint k = 0; k < DEPTH; k++) {
                e[k] = ACC(x[lane * A_STEP + r * A_ROW + k * A_DEPTH]);
            }
            for (uint c = 0; c < COLS; c++) {
                ACC sum = ZERO;
                for (uint k = 0; k < DEPTH; k++) {
                    sum = FMA(e[k], v[k][c], sum);
                }
#if TURN
                part[(r * COLS + c) * 33 + lane] = sum;
#else
                to[lane * SIZE + r * COLS + c] = T(sum);
#endif
            }
        }
    }
#if TURN
    simdgroup_barrier(mem_flags::mem_threadgroup);
    uint last = min(count - group * 32, 32u);
    for (uint m = 0; m < last; m += 16) {
        for (uint j = 0; j < SIZE; j += 32) {
            ACC v[16];
            for (uint i = 0; i < 16; i++) {
                v[i] = part[(j + lane) * 33 + m + i];
            }
            for (uint i = 0; i < 16; i++) {
                if (m + i < last) {
                    to[(m + i) * SIZE + j + lane] = T(v[i]);
                }
            }
        }
    }
#endif
}
