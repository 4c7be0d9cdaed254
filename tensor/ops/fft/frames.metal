// Frames of `size` numbers that begin `hop` apart in a row of n, which MODE continues at both ends by size / 2
// numbers: 0 not at all, 1 by zeros, 2 by the number at the end, 3 and 4 by mirror images, without and with the
// number at the end. T is the element type.

#pragma clang fp contract(off)

struct Frames {
    uint size, hop, frames, n;
};

#if MODE == 0
#define AHEAD(m) 0
#else
#define AHEAD(m) int(m.size / 2)
#endif

// q modulo n, from 0 on.
inline int wrapped(int q, int n) {
    int r = q % n;
    return r < 0 ? r + n : r;
}

// Where number q of the row is, which may lie outside; -1 for none.
inline int place(int q, int n) {
#if MODE == 2
    return metal::clamp(q, 0, n - 1);
#elif MODE == 3
    if (n == 1) {
        return 0;
    }
    int r = wrapped(q, 2 * n - 2);
    return r < n ? r : 2 * n - 2 - r;
#elif MODE == 4
    int r = wrapped(q, 2 * n);
    return r < n ? r : 2 * n - 1 - r;
#else
    return q < 0 || q >= n ? -1 : q;
#endif
}

kernel void frames(const device T* x [[buffer(0)]],
                   device T* out [[buffer(1)]],
                   constant Frames& m [[buffer(2)]],
                   uint3 at [[thread_position_in_grid]]) {
    int from = place(int(at.y * m.hop + at.x) - AHEAD(m), int(m.n));
    T v = ZERO;
    if (from >= 0) {
        v = x[ulong(at.z) * m.n + uint(from)];
    }
    out[(ulong(at.z) * m.frames + at.y) * m.size + at.x] = v;
}

// The sum of what frames y have at place p of the row that they were cut from.
inline T sum_at(const device T* y, int p, constant Frames& m) {
    T sum = ZERO;
    if (p < 0) {
        return sum;
    }
    uint last = metal::min(uint(p) / m.hop, m.frames - 1);
    for (uint f = last + 1; f > 0; f--) {
        uint t = uint(p) - (f - 1) * m.hop;
        if (t >= m.size) {
            break;
        }
        sum = sum + y[ulong(f - 1) * m.size + t];
    }
    return sum;
}

kernel void overlap_add(const device T* frames [[buffer(0)]],
                        device T* out [[buffer(1)]],
                        constant Frames& m [[buffer(2)]],
                        uint2 at [[thread_position_in_grid]]) {
    const device T* y = frames + ulong(at.y) * m.frames * m.size;
    const int n = int(m.n), i = int(at.x), ahead = AHEAD(m);
    const int end = int((m.frames - 1) * m.hop + m.size);
    T sum = ZERO;
#if MODE < 2
    sum = sum_at(y, i + ahead, m);
#elif MODE == 2
    int first = i == 0 ? 0 : i + ahead;
    int last = i == n - 1 ? end - 1 : i + ahead;
    for (int p = first; p <= last; p++) {
        sum = sum + sum_at(y, p, m);
    }
#else
    const int period = MODE == 4 ? 2 * n : metal::max(2 * n - 2, 1);
    const int mirrored = MODE == 4 ? 2 * n - 1 - i : wrapped(-i, period);
    for (int p = wrapped(i + ahead, period); p < end; p += period) {
        sum = sum + sum_at(y, p, m);
    }
    if (mirrored != i) {
        for (int p = wrapped(mirrored + ahead, period); p < end; p += period) {
            sum = sum + sum_at(y, p, m);
        }
    }
#endif
    out[ulong(at.y) * m.n + at.x] = sum;
}
