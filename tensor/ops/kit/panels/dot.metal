// The sum of depth products of elements at a and b, steps apart, as plain kernels make it, in the order that LANES and
// RUNS name (see Order): with LANES all lanes of a SIMD-group call it for one sum.

#pragma clang fp contract(off)

#if LANES
inline ACC dot(const device T* a, long a_step, const device T* b, long b_step, uint depth, uint lane) {
    ACC sum = ZERO;
    for (uint k = lane; k < depth; k += 32) {
        sum = FMA(ACC(a[k * a_step]), ACC(b[k * b_step]), sum);
    }
    return SIMD_SUM(sum);
}
#else
#if RUNS
#define PARTS RUNS
#else
#define PARTS 1
#endif
inline ACC dot(const device T* a, long a_step, const device T* b, long b_step, uint depth, uint lane) {
    ACC sum[PARTS];
    uint run = (depth + PARTS - 1) / PARTS;
    for (uint i = 0; i < PARTS; i++) {
        sum[i] = ZERO;
        for (uint k = i * run; k < min(i * run + run, depth); k++) {
            sum[i] = FMA(ACC(a[k * a_step]), ACC(b[k * b_step]), sum[i]);
        }
    }
    for (uint part = PARTS / 2; part > 0; part /= 2) {
        for (uint i = 0; i < part; i++) {
            sum[i] = sum[i] + sum[i + part];
        }
    }
    return sum[0];
}
#endif
