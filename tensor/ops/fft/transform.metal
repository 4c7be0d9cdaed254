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
// parts have changed places. ODD_STAGES are the cases of the other radices that the length has.
//
// KIND 3 and 4 begin the inverse transform of half a spectrum, as half as many complex numbers, whose real parts are
// the even numbers and whose imaginary parts the odd ones (Press and others, "Numerical Recipes", section 12.3): of 4
// the half is conjugated. CONVOLVE makes a transform of `whole` numbers as a convolution of m.length ones with filter.

#pragma clang fp contract(off)

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

// Runs all stages on the numbers at room + from; the result is where that says.
inline uint all_stages(threadgroup float* room, uint from, constant Transform& m, const device float* roots,
                       uint lane) {
    const uint size = m.length * TILE;
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
        ODD_STAGES
        }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    return from;
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

#if KIND >= 3
// Number k of half a spectrum at in.
inline Number of_half(const device float2* in, uint k, constant Transform& m) {
    if (k >= m.known) {
        return {0.0f, 0.0f};
    }
    float2 v = in[k];
    bool single = k == 0 || 2 * k == m.whole; // the frequency of a real number
    float im = KIND == 3 ? v.y : -v.y;
    return {single ? v.x : m.inner * v.x, single ? 0.0f : m.inner * im};
}

// Number k of the complex ones whose transform is that of the half at in, its parts exchanged.
inline Number taken_half(const device float2* in, uint k, constant Transform& m, const device float2* circle) {
    Number a = of_half(in, k, m), b = of_half(in, m.whole / 2 - k, m);
    float2 w = circle[k];
    Number even = {a.re + b.re, a.im - b.im};
    Number odd = times(Number{a.re - b.re, a.im + b.im}, Number{w.x, -w.y});
    return {even.im + odd.re, even.re - odd.im};
}
#define TAKEN(t, row, at) taken_half(in + (row), at, m, chirp)
#elif CONVOLVE
#define TAKEN(t, row, at) chirped(in, t, m, chirp)
#else
#define TAKEN(t, row, at) taken(in, t, (row) + (at), m)
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

#if CONVOLVE
// Number t of what becomes a convolution.
inline Number chirped(const device IN* in, uint t, constant Transform& m, const device float2* chirp) {
    if (t >= m.whole) {
        return {0.0f, 0.0f};
    }
    float2 w = chirp[t];
    return times(taken(in, t, t, m), Number{w.x, w.y});
}
#endif

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
#if CONVOLVE || KIND >= 3
                      const device float2* chirp [[buffer(4)]], // or the roots of order `whole`
#endif
#if CONVOLVE
                      const device float2* filter [[buffer(5)]],
#endif
                      uint2 group [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float room[4 * ROOM];
    const uint first = group.x * TILE;
    const uint column = lane % TILE; // of the tile
    const uint size = m.length * TILE;

#if IN_ROWS && TILE == 1
    const device IN* in = all_in + (ulong(group.y) * m.in_outer + first * m.in_index);
    for (uint t = lane; t < m.length; t += 32) {
        Number a = TAKEN(t, 0, t);
        store(room, t, a);
    }
#elif IN_ROWS
    const device IN* in = all_in + (ulong(group.y) * m.in_outer + first * m.in_index);
    const uint row = min(column, m.transforms - 1 - first) * m.in_index;
    for (uint t = 0; t < m.length; t++) {
        Number a = TAKEN(t, row, t);
        store(room, t * TILE + column, a);
    }
#else
#if KIND >= 3
    const device IN* in = all_in + ulong(group.y) * m.in_outer;
    const uint place = first + column;
#else
    const device IN* in = all_in + (ulong(group.y) * m.in_outer + first);
    const uint place = column;
#endif
    for (uint e = lane; e < size; e += 32) {
        Number a = {0.0f, 0.0f};
        if (first + column < m.transforms) {
            a = TAKEN(e / TILE, 0, e / TILE * m.in_element + place);
        }
        store(room, e, a);
    }
#endif

    uint from = all_stages(room, 0, m, roots, lane);
#if CONVOLVE
    for (uint t = lane; t < m.length; t += 32) { // parts change places for the transform back
        Number a = load(room + from, t);
        float2 w = filter[t];
        a = times(a, Number{w.x, w.y});
        store(room + from, t, Number{a.im, a.re});
    }
    from = all_stages(room, from, m, roots, lane);
    for (uint t = lane; t < m.whole; t += 32) {
        Number a = load(room + from, t);
        float2 w = chirp[t];
        store(room + from, t, times(Number{a.im, a.re}, Number{w.x, w.y}));
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
#endif

    const threadgroup float* y = room + from;
#if KIND == 1
    const uint given = m.whole / 2 + 1;
#elif CONVOLVE
    const uint given = m.whole;
#else
    const uint given = m.length;
#endif
#if OUT == 0
#if TILE > 1
    if (m.low >= m.transforms && m.out_low == given) { // one row after the other
        device RESULT* out = all_out + (ulong(group.y) * m.out_outer + first * given);
        const uint end = min(m.transforms - first, uint(TILE)) * given;
        const uint more_b = 32 / given, more_t = 32 - more_b * given;
        uint b = lane / given, t = lane - b * given;
        for (uint e = lane; e < end; e += 32) {
            give(out, load(y, t * TILE + b), t, e, 0, m);
            t += more_t;
            b += more_b;
            bool over = t >= given;
            t = over ? t - given : t;
            b = over ? b + 1 : b;
        }
        return;
    }
#endif
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
