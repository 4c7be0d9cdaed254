// exp(x) / sum(exp(x)) for rows of n elements, one SIMD-group each, whose lanes touch neighbouring elements; several
// where rows are kept (see kit/kept.metal), of which one adds up. T is the element type, ACC the type to compute in;
// SAME says that they are one. The largest element is subtracted first.
// All lanes take part in whole rounds; only the last one may be short. Sums are chains of eight in four accumulators
// a lane, then a chain of blocks that carries what rounding lost (Neumaier, "Rundungsfehleranalyse einiger Verfahren
// zur Summation endlicher Summen", 1974), so that the error does not grow with the row.

#pragma clang fp contract(off)

// A sum of blocks and what rounding took from it.
struct Total {
    ACC sum;
    ACC lost;
};

inline void add(thread Total& t, ACC v) {
    const ACC next = t.sum + v;
    const ACC back = next - t.sum;
    t.lost += (t.sum - (next - back)) + (v - back);
    t.sum = next;
}

#if KEPT
#define EXP(i) kept[i]
#define STORES 0
[[max_total_threads_per_threadgroup(32 * SIMDS)]]
#else
#define EXP(i) metal::exp(ACC(from[i]) - top)
#define STORES SAME
#endif
kernel void softmax_rows(const device T* x [[buffer(0)]],
                         device T* out [[buffer(1)]],
                         constant uint& n [[buffer(2)]],
#if KEPT
                         uint2 group [[threadgroup_position_in_grid]],
                         uint simd [[simdgroup_index_in_threadgroup]],
#endif
                         uint2 p [[thread_position_in_grid]]) {
    const uint lane = p.x;
#if KEPT
    threadgroup ACC kept[KEPT];
    threadgroup ACC shared[SIMDS];
    const uint row = group.y;
    const uint place = 32 * simd + lane;
#else
    const uint row = p.y;
#endif
    const device T* from = x + ulong(row) * n;
    device T* to = out + ulong(row) * n;
    const uint blocks = n / 128;
    const uint rounds = n % 128 / 32;
    const bool more = lane < n % 32;

#if KEPT
    keep_row(kept, from, n, place);
    ACC top = -INFINITY;
    for (uint i = place; i < n; i += 32 * SIMDS) {
        top = metal::max(kept[i], top);
    }
    top = simd_max(top);
    if (lane == 0) {
        shared[simd] = top;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint s = 0; s < SIMDS; s++) {
        top = metal::max(shared[s], top);
    }
    for (uint i = place; i < n; i += 32 * SIMDS) {
        kept[i] = metal::exp(kept[i] - top);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd == 0) {
#else
    ACC m0 = -INFINITY;
    ACC m1 = -INFINITY;
    ACC m2 = -INFINITY;
    ACC m3 = -INFINITY;
    uint i = lane;
    for (uint left = blocks; left > 0; --left) {
        m0 = metal::max(ACC(from[i]), m0);
        m1 = metal::max(ACC(from[i + 32]), m1);
        m2 = metal::max(ACC(from[i + 64]), m2);
        m3 = metal::max(ACC(from[i + 96]), m3);
        i += 128;
    }
    for (uint left = rounds; left > 0; --left) {
        m0 = metal::max(ACC(from[i]), m0);
        i += 32;
    }
    if (more) {
        m1 = metal::max(ACC(from[i]), m1);
    }
    const ACC top = simd_max(metal::max(metal::max(m0, m1), metal::max(m2, m3)));

#endif
    Total total = {0, 0};
    uint at = lane;
    for (uint left = blocks; left > 0;) {
        const uint block = metal::min(left, 8u);
        left -= block;
        ACC s0 = 0;
        ACC s1 = 0;
        ACC s2 = 0;
        ACC s3 = 0;
        uint k = block;
#if KEPT
        if (block == 8) { // at once, in the same order
            ACC e[32];
            #pragma unroll
            for (uint j = 0; j < 32; j++) {
                e[j] = (kept + ulong(at))[32 * j];
            }
            #pragma unroll
            for (uint j = 0; j < 32; j += 4) {
                s0 += e[j];
                s1 += e[j + 1];
                s2 += e[j + 2];
                s3 += e[j + 3];
            }
            at += 1024;
            k = 0;
        }
#endif
        for (; k > 0; --k) {
            const ACC e0 = EXP(at);
            const ACC e1 = EXP(at + 32);
            const ACC e2 = EXP(at + 64);
            const ACC e3 = EXP(at + 96);
            s0 += e0;
            s1 += e1;
            s2 += e2;
            s3 += e3;
#if STORES
            to[at] = e0;
            to[at + 32] = e1;
            to[at + 64] = e2;
            to[at + 96] = e3;
#endif
            at += 128;
        }
        add(total, (s0 + s1) + (s2 + s3));
    }
    ACC rest = 0;
    for (uint left = rounds; left > 0; --left) {
        const ACC e = EXP(at);
        rest += e;
#if STORES
        to[at] = e;
#endif
        at += 32;
    }
    if (more) {
        const ACC e = EXP(at);
        rest += e;
#if STORES
        to[at] = e;
#endif
    }
    add(total, rest);
    const ACC scale = 1 / simd_sum(total.sum + total.lost);
#if KEPT
        shared[0] = scale;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const ACC factor = shared[0];
    for (uint i = place; i < n; i += 32 * SIMDS) {
        to[i] = T(kept[i] * factor);
    }
#else
    i = lane;
    for (uint left = n / 32; left > 0; --left) {
#if SAME
        to[i] = to[i] * scale;
#else
        to[i] = T(metal::exp(ACC(from[i]) - top) * scale);
#endif
        i += 32;
    }
    if (more) {
#if SAME
        to[i] = to[i] * scale;
#else
        to[i] = T(metal::exp(ACC(from[i]) - top) * scale);
#endif
    }
#endif
}
