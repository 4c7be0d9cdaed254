// What stands around the stages of long transforms. KIND and INVERSE are those of the whole transform, as in
// transform.metal. A transform's numbers lie `apart` from each other; ROWS says that this is 1. Then x counts them,
// else transforms side by side, and y numbers; z counts the batch.

#pragma clang fp contract(off)

#if ROWS
#define NUMBER at.x
#define PLACE(t) (t)
#else
#define NUMBER at.y
#define PLACE(t) ((t) * m.apart + at.x)
#endif

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

struct Piece {
    uint apart;
    uint in_length;
    uint known;   // numbers of the input that count
    uint whole;   // length of the transform
    uint length;  // of what is between: whole, or more where it becomes a convolution
    uint chirped; // whether it does
    float scale;
    float inner;
};

// A table of roots: number i of `count` is of order `order`, to the power (i / run + 1) * (i % run).
kernel void powers(device float* out [[buffer(0)]],
                   constant uint* m [[buffer(1)]], // run, order, where in the table, the table's size
                   uint i [[thread_position_in_grid]]) {
    uint j = i / m[0];
    Number w = root((j + 1) * (i - j * m[0]), m[1]);
    out[m[2] + i] = w.re;
    out[m[3] + m[2] + i] = w.im;
}

// Number i is the root of order 2 n to the power i^2.
kernel void chirps(device float2* out [[buffer(0)]],
                   constant uint& n [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    Number w = root(uint(ulong(i) * ulong(i) % ulong(2 * n)), 2 * n);
    out[i] = float2(w.re, w.im);
}

// Number i is the root of order n to the power i.
kernel void circle(device float2* out [[buffer(0)]],
                   constant uint& n [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    Number w = root(i, n);
    out[i] = float2(w.re, w.im);
}

// The conjugates of n numbers before and, the other way round, after `length` others; in between 0.
kernel void wrap(const device float2* chirp [[buffer(0)]],
                 device float2* out [[buffer(1)]],
                 constant uint* m [[buffer(2)]], // n, length
                 uint i [[thread_position_in_grid]]) {
    uint k = min(i, m[1] - i);
    float2 v = k < m[0] ? chirp[k] : float2(0.0f);
    out[i] = float2(v.x, -v.y);
}

kernel void pack(const device IN* in [[buffer(0)]],
                 device float2* out [[buffer(1)]],
                 constant Piece& m [[buffer(2)]],
                 const device float2* chirp [[buffer(3)]],
                 uint3 at [[thread_position_in_grid]]) {
    const uint t = NUMBER;
    const device IN* x = in + ulong(at.z) * (m.in_length * m.apart);
    Number a = {0.0f, 0.0f};
#if KIND == 2
    bool mirrored = 2 * t > m.whole;
    uint from = mirrored ? m.whole - t : t;
    if (t < m.whole && from < m.known) {
        float2 v = x[PLACE(from)];
        bool single = from == 0 || 2 * from == m.whole;
        float weight = single ? 1.0f : m.inner;
        a = {weight * v.x, single ? 0.0f : weight * (mirrored ? -v.y : v.y)};
    }
#else
    if (t < m.whole && t < m.known) {
#if KIND == 1
        a.re = x[PLACE(t)];
#else
        float2 v = x[PLACE(t)];
        a = {v.x, v.y};
#endif
    }
#endif
#if INVERSE
    a = {a.im, a.re};
#endif
    if (m.chirped != 0 && t < m.whole) {
        float2 w = chirp[t];
        a = times(a, Number{w.x, w.y});
    }
    device float2* row = out + ulong(at.z) * (m.length * m.apart);
    row[PLACE(t)] = float2(a.re, a.im);
}

kernel void multiply(device float2* x [[buffer(0)]],
                     const device float2* by [[buffer(1)]],
                     constant Piece& m [[buffer(2)]],
                     const device float2* none [[buffer(3)]],
                     uint3 at [[thread_position_in_grid]]) {
    const uint t = NUMBER;
    device float2* row = x + ulong(at.z) * (m.length * m.apart);
    float2 v = row[PLACE(t)], w = by[t];
    Number a = times(Number{v.x, v.y}, Number{w.x, w.y});
    row[PLACE(t)] = float2(a.re, a.im);
}

kernel void unpack(const device float2* in [[buffer(0)]],
                   device RESULT* out [[buffer(1)]],
                   constant Piece& m [[buffer(2)]],
                   const device float2* chirp [[buffer(3)]],
                   uint3 at [[thread_position_in_grid]]) {
    const uint t = NUMBER;
    const device float2* row = in + ulong(at.z) * (m.length * m.apart);
    float2 v = row[PLACE(t)];
    Number a = {v.x, v.y};
    if (m.chirped != 0) {
        float2 w = chirp[t];
        a = times(a, Number{w.x, w.y});
    }
#if INVERSE
    a = {a.im, a.re};
#endif
#if KIND == 1
    uint kept = m.whole / 2 + 1;
    float weight = t == 0 || 2 * t == m.whole ? m.scale : m.scale * m.inner;
    device RESULT* to = out + ulong(at.z) * (kept * m.apart);
    to[PLACE(t)] = float2(weight * a.re, weight * a.im);
#else
    device RESULT* to = out + ulong(at.z) * (m.whole * m.apart);
#if KIND == 2
    to[PLACE(t)] = m.scale * a.re;
#else
    to[PLACE(t)] = float2(m.scale * a.re, m.scale * a.im);
#endif
#endif
}

#if KIND == 1
// Half a spectrum of real numbers of the transform of half as many complex ones, whose real parts are the even numbers
// and whose imaginary parts the odd ones. `length` is half the whole, circle the roots of the whole's order.
kernel void untangle(const device float2* in [[buffer(0)]],
                     device float2* out [[buffer(1)]],
                     constant Piece& m [[buffer(2)]],
                     const device float2* circle [[buffer(3)]],
                     uint3 at [[thread_position_in_grid]]) {
    const uint k = at.x;
    const device float2* row = in + ulong(at.z) * m.length;
    float2 v = row[k == m.length ? 0 : k], u = row[k == 0 ? 0 : m.length - k], w = circle[k];
    Number even = {0.5f * (v.x + u.x), 0.5f * (v.y - u.y)}, odd = {0.5f * (v.y + u.y), 0.5f * (u.x - v.x)};
    Number a = plus(even, times(odd, Number{w.x, w.y}));
    float weight = k == 0 || k == m.length ? m.scale : m.scale * m.inner;
#if INVERSE
    a.im = -a.im;
#endif
    out[ulong(at.z) * (m.length + 1) + k] = float2(weight * a.re, weight * a.im);
}
#endif
