// Stages of transforms of a tile, whose numbers lie in threadgroup memory: real parts first, imaginary ones ROOM apart.

#pragma clang fp contract(off)

#define ROOM 2048 // numbers of a tile
#define MOST_STAGES 12

// Stage of the transform of a tile: of radix many numbers, which lie `apart` from each other. Before it there are
// transforms of `count` numbers each.
struct Stage {
    uint radix, apart, count;
    uint roots; // where its roots of unity begin in the table
};

inline Number load(const threadgroup float* from, uint at) { return {from[at], from[ROOM + at]}; }
inline void store(threadgroup float* to, uint at, Number a) {
    to[at] = a.re;
    to[ROOM + at] = a.im;
}
inline Number root_at(const device float* roots, uint table, uint at) { return {roots[at], roots[table + at]}; }

inline void of2(thread Number& a, thread Number& b) {
    Number d = minus(a, b);
    a = plus(a, b);
    b = d;
}
inline void of4(thread Number& a, thread Number& b, thread Number& c, thread Number& d) {
    Number ac = plus(a, c), ca = minus(a, c), bd = plus(b, d), db = turned(minus(b, d));
    a = plus(ac, bd);
    b = plus(ca, db);
    c = minus(ac, bd);
    d = minus(ca, db);
}

// One transform of `radix` numbers: input j is at from[j * apart], and is multiplied by the root j - 1 (at roots[(j
// - 1) * count]) if ROOTS; result k goes to to[k * step].
#define INPUT(j) \
    Number x##j = load(from, j * apart); \
    if (ROOTS) { x##j = times(x##j, root_at(roots, table, (j - 1) * count)); }

#define ARGUMENTS const threadgroup float* from, uint apart, threadgroup float* to, uint step, \
    const device float* roots, uint table, uint count, const device float* circle

struct Radix2 {
    static constexpr uint radix = 2;
    template <bool ROOTS> static void run(ARGUMENTS) {
        Number x0 = load(from, 0);
        INPUT(1)
        store(to, 0, plus(x0, x1));
        store(to, step, minus(x0, x1));
    }
};

struct Radix3 {
    static constexpr uint radix = 3;
    template <bool ROOTS> static void run(ARGUMENTS) {
        Number x0 = load(from, 0);
        INPUT(1)
        INPUT(2)
        Number s = plus(x1, x2), d = turned(minus(x1, x2));
        Number c = more(x0, s, -0.5f);
        store(to, 0, plus(x0, s));
        store(to, step, more(c, d, 0.8660254037844386f));
        store(to, 2 * step, more(c, d, -0.8660254037844386f));
    }
};

struct Radix4 {
    static constexpr uint radix = 4;
    template <bool ROOTS> static void run(ARGUMENTS) {
        Number x0 = load(from, 0);
        INPUT(1)
        INPUT(2)
        INPUT(3)
        of4(x0, x1, x2, x3);
        store(to, 0, x0);
        store(to, step, x1);
        store(to, 2 * step, x2);
        store(to, 3 * step, x3);
    }
};

struct Radix5 {
    static constexpr uint radix = 5;
    template <bool ROOTS> static void run(ARGUMENTS) {
        Number x0 = load(from, 0);
        INPUT(1)
        INPUT(2)
        INPUT(3)
        INPUT(4)
        const float c1 = 0.30901699437494745f, c2 = -0.8090169943749475f;
        const float s1 = 0.9510565162951535f, s2 = 0.5877852522924731f;
        Number p = plus(x1, x4), q = plus(x2, x3);
        Number u = turned(minus(x1, x4)), v = turned(minus(x2, x3));
        Number a = more(more(x0, p, c1), q, c2), b = more(more(x0, p, c2), q, c1);
        Number c = {metal::fma(v.re, s2, u.re * s1), metal::fma(v.im, s2, u.im * s1)};
        Number d = {metal::fma(v.re, -s1, u.re * s2), metal::fma(v.im, -s1, u.im * s2)};
        store(to, 0, plus(x0, plus(p, q)));
        store(to, step, plus(a, c));
        store(to, 2 * step, plus(b, d));
        store(to, 3 * step, minus(b, d));
        store(to, 4 * step, minus(a, c));
    }
};

struct Radix8 {
    static constexpr uint radix = 8;
    template <bool ROOTS> static void run(ARGUMENTS) {
        Number x0 = load(from, 0);
        INPUT(1)
        INPUT(2)
        INPUT(3)
        INPUT(4)
        INPUT(5)
        INPUT(6)
        INPUT(7)
        of4(x0, x2, x4, x6);
        of4(x1, x3, x5, x7);
        const float h = 0.7071067811865476f;
        x3 = {h * (x3.re + x3.im), h * (x3.im - x3.re)};
        x5 = turned(x5);
        x7 = {h * (x7.im - x7.re), -h * (x7.re + x7.im)};
        of2(x0, x1);
        of2(x2, x3);
        of2(x4, x5);
        of2(x6, x7);
        store(to, 0, x0);
        store(to, step, x2);
        store(to, 2 * step, x4);
        store(to, 3 * step, x6);
        store(to, 4 * step, x1);
        store(to, 5 * step, x3);
        store(to, 6 * step, x5);
        store(to, 7 * step, x7);
    }
};

// Of an odd number of inputs, whose circle are the roots of that order: results k and R - k are the sum and the
// difference of what sums and differences of inputs j and R - j give.
template <uint R>
struct Odd {
    static constexpr uint radix = R;
    template <bool ROOTS> static void run(ARGUMENTS) {
        Number first = load(from, 0), all = first;
        Number s[R / 2];
        Number d[R / 2];
        for (uint j = 1; j <= R / 2; j++) {
            Number a = load(from, j * apart), b = load(from, (R - j) * apart);
            if (ROOTS) {
                a = times(a, root_at(roots, table, (j - 1) * count));
                b = times(b, root_at(roots, table, (R - j - 1) * count));
            }
            s[j - 1] = plus(a, b);
            d[j - 1] = turned(minus(a, b));
            all = plus(all, s[j - 1]);
        }
        store(to, 0, all);
        for (uint k = 1; k <= R / 2; k++) {
            Number a = first, b = {0.0f, 0.0f};
            for (uint j = 1; j <= R / 2; j++) {
                Number w = root_at(circle, table, j * k % R);
                a = more(a, s[j - 1], w.re);
                b = more(b, d[j - 1], -w.im);
            }
            store(to, k * step, plus(a, b));
            store(to, (R - k) * step, minus(a, b));
        }
    }
};

// All transforms of a stage. Results of those with the same j lie side by side.
template <typename R>
inline void stage(const threadgroup float* from, threadgroup float* to, constant Stage& m, uint step,
                  const device float* all, uint table, uint lane) {
    const device float* roots = all + m.roots;
    const uint apart = m.apart, count = m.count;
    const device float* circle = roots + (R::radix - 1) * count;
    if (count == 1) {
        for (uint q = lane; q < apart; q += 32) {
            R::template run<false>(from + q, apart, to + q, step, roots, table, count, circle);
        }
#if TILE == 1
    } else if (apart == 1) {
        for (uint p = lane; p < count; p += 32) {
            R::template run<true>(from + R::radix * p, 1, to + p, step, roots + p, table, count, circle);
        }
#endif
    } else if (apart >= 32) {
        for (uint p = 0; p < count; p++) {
            for (uint q = lane; q < apart; q += 32) {
                R::template run<true>(from + (p * R::radix * apart + q), apart, to + (p * apart + q), step, roots + p,
                                      table, count, circle);
            }
        }
    } else {
        uint p = lane / apart;
        uint q = lane - p * apart;
        const uint more_p = 32 / apart, more_q = 32 - more_p * apart;
        for (uint i = lane; i < step; i += 32) {
            R::template run<true>(from + (p * R::radix * apart + q), apart, to + i, step, roots + p, table, count,
                                  circle);
            q += more_q;
            p += more_p;
            bool over = q >= apart;
            q = over ? q - apart : q;
            p = over ? p + 1 : p;
        }
    }
}

// The same for an odd radix, whose code is long: there are two copies of it.
template <typename R>
inline void odd_stage(const threadgroup float* from, threadgroup float* to, constant Stage& m, uint step,
                      const device float* all, uint table, uint lane) {
    const uint apart = m.apart, count = m.count;
    const device float* roots = all + m.roots;
    const device float* circle = roots + (R::radix - 1) * count;
    if (count == 1) {
        for (uint q = lane; q < apart; q += 32) {
            R::template run<false>(from + q, apart, to + q, step, roots, table, count, circle);
        }
        return;
    }
    for (uint i = lane; i < step; i += 32) {
        uint p = i / apart;
        R::template run<true>(from + (p * (R::radix - 1) * apart + i), apart, to + i, step, roots + p, table, count,
                              circle);
    }
}
