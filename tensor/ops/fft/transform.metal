// Discrete Fourier transforms: transforms of LENGTH-many elements that lie anywhere, TILE of them side by side in
// threadgroup memory. A SIMD-group copies a tile in, transforms it there stage by stage, and copies it out. Longer
// transforms, and transforms along dimensions whose elements lie far apart, are several launches, each of which is a
// stage of radix m.length of the same algorithm (Stockham's, "High-speed convolution and correlation", 1966: no
// elements change places at the end).
//
// TILE is 1 or 32. IN_ROWS says that a transform's numbers lie side by side in the input, otherwise those of
// neighbouring transforms do; OUT is 0 for this in the output, 1 for neighbouring transforms, 2 where nothing is
// known. KIND says what comes in and goes out: 0 complex and complex, 1 real and the first half of the spectrum, 2
// that half and real. INVERSE says that angles grow: the inverse transform is the forward one of numbers whose
// parts have changed places.

#pragma clang fp contract(off)

#define ROOM 2048 // numbers of a tile
#define MOST_STAGES 12

// Stage of the transform of a tile: of radix many numbers, which lie `apart` from each other. Before it there are
// transforms of `count` numbers each.
struct Stage {
    uint radix, apart, count;
    uint roots; // where its roots of unity begin in the table
};

struct Transform {
    ulong in_outer, out_outer;      // strides of the batch
    uint in_index, in_element;      // strides of transforms of a tile, of a transform's elements
    uint out_low, out_high, out_element;
    uint low;                       // index = low * high + low, with these strides
    uint transforms;                // in an element of the batch
    uint length;
    uint known;                     // elements that the input has: those after it are 0
    uint whole;                     // of KIND 1 and 2: the length of the real side; out of KIND 1 has half of it
    uint order;                     // of the roots that the results are multiplied by; 0: none
    uint table;                     // how many roots it has
    uint stages;
    float scale;
    float inner;                    // KIND 1 and 2: weight of frequencies that stand for two
    Stage stage[MOST_STAGES];
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
    const device float* roots, uint table, uint count

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

// All transforms of a stage. Results of those with the same j lie side by side.
template <typename R>
inline void stage(const threadgroup float* from, threadgroup float* to, constant Stage& m, uint step,
                  const device float* all, uint table, uint lane) {
    const device float* roots = all + m.roots;
    const uint apart = m.apart, count = m.count;
    if (count == 1) {
        for (uint q = lane; q < apart; q += 32) {
            R::template run<false>(from + q, apart, to + q, step, roots, table, count);
        }
#if TILE == 1
    } else if (apart == 1) {
        for (uint p = lane; p < count; p += 32) {
            R::template run<true>(from + R::radix * p, 1, to + p, step, roots + p, table, count);
        }
#endif
    } else if (apart >= 32) {
        for (uint p = 0; p < count; p++) {
            for (uint q = lane; q < apart; q += 32) {
                R::template run<true>(from + (p * R::radix * apart + q), apart, to + (p * apart + q), step, roots + p,
                                      table, count);
            }
        }
    } else {
        uint p = lane / apart;
        uint q = lane - p * apart;
        const uint more_p = 32 / apart, more_q = 32 - more_p * apart;
        for (uint i = lane; i < step; i += 32) {
            R::template run<true>(from + (p * R::radix * apart + q), apart, to + i, step, roots + p, table, count);
            q += more_q;
            p += more_p;
            bool over = q >= apart;
            q = over ? q - apart : q;
            p = over ? p + 1 : p;
        }
    }
}

// A stage of any radix, a sum for each result: the roots of order radix stand after those of the stage.
inline void any_stage(const threadgroup float* from, threadgroup float* to, constant Stage& m, uint step,
                      const device float* all, uint table, uint lane) {
    const uint radix = m.radix, apart = m.apart, count = m.count;
    const device float* circle = all + (m.roots + (radix - 1) * count);
    for (uint i = lane; i < step; i += 32) {
        uint p = i / apart;
        const threadgroup float* x = from + (p * radix * apart + (i - p * apart));
        const device float* roots = all + (m.roots + p);
        Number first = load(x, 0);
        for (uint k = 0; k < radix; k++) {
            Number sum = first;
            uint turn = 0;
            for (uint j = 1; j < radix; j++) {
                turn += k;
                turn = turn >= radix ? turn - radix : turn;
                Number a = times(load(x, j * apart), root_at(roots, table, (j - 1) * count));
                Number w = root_at(circle, table, turn);
                sum.re = metal::fma(a.re, w.re, metal::fma(-a.im, w.im, sum.re));
                sum.im = metal::fma(a.re, w.im, metal::fma(a.im, w.re, sum.im));
            }
            store(to, k * step + i, sum);
        }
    }
}

#if KIND == 1
typedef float IN;
#else
typedef float2 IN;
#endif
#if KIND == 2
typedef float RESULT;
#else
typedef float2 RESULT;
#endif

// Number t of a transform, which lies at in[at].
inline Number taken(const device IN* in, uint t, uint at, constant Transform& m) {
    Number a = {0.0f, 0.0f};
#if KIND == 1
    if (t < m.known) {
        a.re = in[at];
    }
#elif KIND == 2
    // What the half does not have is the conjugate of what it has.
    bool mirrored = 2 * t > m.whole;
    uint from = mirrored ? m.whole - t : t;
    if (from < m.known) {
        float2 v = in[at + (from - t) * m.in_element];
        bool single = from == 0 || 2 * from == m.whole; // the frequency of a real number
        float weight = single ? 1.0f : m.inner;
        a = {weight * v.x, single ? 0.0f : weight * (mirrored ? -v.y : v.y)};
    }
#else
    if (t < m.known) {
        float2 v = in[at];
        a = {v.x, v.y};
    }
#endif
#if INVERSE
    a = {a.im, a.re};
#endif
    return a;
}

// Writes result t of a transform to out[at], multiplied by a root if there is an order.
inline void give(device RESULT* out, Number a, uint t, uint at, uint power, constant Transform& m) {
    if (m.order != 0) {
        a = times(a, root(power, m.order));
    }
#if INVERSE
    a = {a.im, a.re};
#endif
#if KIND == 1
    float weight = t == 0 || 2 * t == m.whole ? m.scale : m.scale * m.inner;
    out[at] = float2(weight * a.re, weight * a.im);
#elif KIND == 2
    out[at] = m.scale * a.re;
#else
    out[at] = float2(m.scale * a.re, m.scale * a.im);
#endif
}

kernel void transform(const device IN* all_in [[buffer(0)]],
                      device RESULT* all_out [[buffer(1)]],
                      constant Transform& m [[buffer(2)]],
                      const device float* roots [[buffer(3)]],
                      uint2 group [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float room[4 * ROOM];
    const uint first = group.x * TILE;
    const uint column = lane % TILE; // of the tile
    const uint size = m.length * TILE;

#if IN_ROWS
    for (uint b = 0; b < TILE; b++) {
        const uint row = min(first + b, m.transforms - 1);
        const device IN* in = all_in + (ulong(group.y) * m.in_outer + row * m.in_index);
        for (uint t = lane; t < m.length; t += 32) {
            Number a = taken(in, t, t, m);
            store(room, t * TILE + b, a);
        }
    }
#else
    const device IN* in = all_in + (ulong(group.y) * m.in_outer + first);
    for (uint e = lane; e < size; e += 32) {
        Number a = {0.0f, 0.0f};
        if (first + column < m.transforms) {
            a = taken(in, e / TILE, e / TILE * m.in_element + column, m);
        }
        store(room, e, a);
    }
#endif

    uint from = 0;
    for (uint k = 0; k < m.stages; k++) {
        simdgroup_barrier(mem_flags::mem_threadgroup);
        const threadgroup float* x = room + from;
        from = 2 * ROOM - from;
        threadgroup float* y = room + from;
        constant Stage& s = m.stage[k];
        uint step = size / s.radix;
        switch (s.radix) {
        case 8: stage<Radix8>(x, y, s, step, roots, m.table, lane); break;
        case 4: stage<Radix4>(x, y, s, step, roots, m.table, lane); break;
        case 2: stage<Radix2>(x, y, s, step, roots, m.table, lane); break;
        case 3: stage<Radix3>(x, y, s, step, roots, m.table, lane); break;
        case 5: stage<Radix5>(x, y, s, step, roots, m.table, lane); break;
        default: any_stage(x, y, s, step, roots, m.table, lane);
        }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);

    const threadgroup float* y = room + from;
#if KIND == 1
    const uint given = m.whole / 2 + 1;
#else
    const uint given = m.length;
#endif
#if OUT == 0
    for (uint b = 0; b < TILE && first + b < m.transforms; b++) {
        uint high = (first + b) / m.low;
        uint low = first + b - high * m.low;
        device RESULT* out = all_out + (ulong(group.y) * m.out_outer + low * m.out_low + high * m.out_high);
        for (uint t = lane; t < given; t += 32) {
            give(out, load(y, t * TILE + b), t, t, high * t, m);
        }
    }
#else
#if OUT == 1
    uint high = first / m.low;
    uint start = first - high * m.low + high * m.out_high;
#else
    uint index = first + column;
    uint high = index / m.low;
    uint start = index - high * m.low + high * m.out_high - column;
#endif
    device RESULT* out = all_out + ulong(group.y) * m.out_outer;
    for (uint e = lane; e < given * TILE; e += 32) {
        if (first + column < m.transforms) {
            uint t = e / TILE;
            give(out, load(y, e), t, start + t * m.out_element + column, high * t, m);
        }
    }
#endif
}
