// Rows that stay in threadgroup memory, for GPUs: KEPT elements of type ACC, or 0 where they do not. SIMDS SIMD-groups
// load a row together; whatever is added up one of them adds up, in the order in which one would without the others.

#pragma clang fp contract(off)

#if KEPT
#define AHEAD 8

// Loads a row of n elements of type T: place is the thread's in the threadgroup.
inline void keep_row(threadgroup ACC* kept, const device T* from, uint n, uint place) {
    uint i = place;
    for (; i + 32 * SIMDS * (AHEAD - 1) < n; i += 32 * SIMDS * AHEAD) {
        T x[AHEAD];
        #pragma unroll
        for (uint k = 0; k < AHEAD; k++) {
            x[k] = (from + ulong(i))[32 * SIMDS * k];
        }
        #pragma unroll
        for (uint k = 0; k < AHEAD; k++) {
            (kept + ulong(i))[32 * SIMDS * k] = ACC(x[k]);
        }
    }
    for (; i < n; i += 32 * SIMDS) {
        kept[i] = ACC(from[i]);
    }
}
#endif
