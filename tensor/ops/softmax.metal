// exp(x) / sum(exp(x)) for rows of n elements, one SIMD-group each, whose lanes touch neighbouring elements. T is the
// element type, ACC the type to compute in; SAME says that they are one. The largest element is subtracted first.
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

kernel void softmax_rows(const device T* x [[buffer(0)]],
                         device T* out [[buffer(1)]],
                         constant uint& n [[buffer(2)]],
                         uint2 p [[thread_position_in_grid]]) {
    const uint lane = p.x;
    const device T* from = x + ulong(p.y) * n;
    device T* to = out + ulong(p.y) * n;
    const uint blocks = n / 128;
    const uint rounds = n % 128 / 32;
    const bool more = lane < n % 32;

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

    Total total = {0, 0};
    i = lane;
    for (uint left = blocks; left > 0;) {
        const uint block = metal::min(left, 8u);
        left -= block;
        ACC s0 = 0;
        ACC s1 = 0;
        ACC s2 = 0;
        ACC s3 = 0;
        for (uint k = block; k > 0; --k) {
            const ACC e0 = metal::exp(ACC(from[i]) - top);
            const ACC e1 = metal::exp(ACC(from[i + 32]) - top);
            const ACC e2 = metal::exp(ACC(from[i + 64]) - top);
            const ACC e3 = metal::exp(ACC(from[i + 96]) - top);
            s0 += e0;
            s1 += e1;
            s2 += e2;
            s3 += e3;
#if SAME
            to[i] = e0;
            to[i + 32] = e1;
            to[i + 64] = e2;
            to[i + 96] = e3;
#endif
            i += 128;
        }
        add(total, (s0 + s1) + (s2 + s3));
    }
    ACC rest = 0;
    for (uint left = rounds; left > 0; --left) {
        const ACC e = metal::exp(ACC(from[i]) - top);
        rest += e;
#if SAME
        to[i] = e;
#endif
        i += 32;
    }
    if (more) {
        const ACC e = metal::exp(ACC(from[i]) - top);
        rest += e;
#if SAME
        to[i] = e;
#endif
    }
    add(total, rest);
    const ACC scale = 1 / simd_sum(total.sum + total.lost);

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
}
