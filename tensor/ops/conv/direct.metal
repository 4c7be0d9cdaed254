// A convolution as its definition reads: a thread adds up the products of one element of y, in the order of order.go.

#pragma clang fp contract(off)

// A loop over taps along an axis, or over depth: at place o, turn t meets element (o * stride + t * dilation - low) /
// spacing of x.
struct Loop {
    long stride, dilation, spacing, low;
    long first, end; // that x has
    long x, w;       // strides
    uint turns, axis;
};

struct Sums {
    long x_group, w_group, y_group; // strides
    long w_channel, y_channel, w_start, y_start, y_axes[3];
    Loop loops[4];
    uint out[3], channels;          // channels: of a group
    uint parts, second, chunk0, chunk1;
    uint ndim;                      // of the outer dimensions
};

// Which element of x a turn meets: NONE between two elements, OUTSIDE a zero that x is padded with.
#define NONE -2
#define OUTSIDE -1
inline long meets(constant Loop& s, long at) {
    if (s.spacing != 1) {
        if (at % s.spacing != 0) {
            return NONE;
        }
        at = at / s.spacing;
    }
    return at < s.first || at >= s.end ? OUTSIDE : at;
}

// Begins turns of loop L from t to end, of which e is what they meet.
#define LOOP(L, t, e, from, to)                                     \
    for (uint t = from; t < to; t++) {                              \
        long e = meets(m.loops[L], start[L] + t * m.loops[L].dilation); \
        if (e == NONE) {                                            \
            continue;                                               \
        }

kernel void direct(const device T* x [[buffer(0)]],
                   const device T* w [[buffer(1)]],
                   device T* y [[buffer(2)]],
                   constant Sums& m [[buffer(3)]],
                   constant uint* shape [[buffer(4)]],
                   constant long* x_outer [[buffer(5)]],
                   constant long* w_outer [[buffer(6)]],
                   constant long* y_outer [[buffer(7)]],
                   uint3 p [[thread_position_in_grid]]) {
    uint group = p.x / m.channels, channel = p.x % m.channels, rest = p.y / m.out[2];
    uint at[4] = {rest / m.out[1], rest % m.out[1], p.y % m.out[2], 0};
    const device T* a = x + (offset_of(p.z, shape, x_outer, m.ndim) + group * m.x_group);
    const device T* b =
        w + (m.w_start + offset_of(p.z, shape, w_outer, m.ndim) + group * m.w_group + channel * m.w_channel);
    long start[4];
    for (uint i = 0; i < 4; i++) {
        start[i] = long(at[m.loops[i].axis]) * m.loops[i].stride - m.loops[i].low;
    }
    ACC total = ZERO;
    for (uint part = 0; part < m.parts; part++) {
        uint from0 = part / m.second * m.chunk0, from1 = part % m.second * m.chunk1;
        ACC sum = ZERO;
        LOOP(0, t0, e0, from0, min(from0 + m.chunk0, m.loops[0].turns))
        LOOP(1, t1, e1, from1, min(from1 + m.chunk1, m.loops[1].turns))
        LOOP(2, t2, e2, 0, m.loops[2].turns)
            long to = e0 * m.loops[0].x + e1 * m.loops[1].x + e2 * m.loops[2].x;
            long by = t0 * m.loops[0].w + t1 * m.loops[1].w + t2 * m.loops[2].w;
            bool has = e0 != OUTSIDE && e1 != OUTSIDE && e2 != OUTSIDE;
            LOOP(3, t3, e3, 0, m.loops[3].turns)
                ACC v = ZERO;
                if (has && e3 != OUTSIDE) {
                    v = ACC(a[to + e3 * m.loops[3].x]);
                }
                sum = FMA(v, ACC(b[by + t3 * m.loops[3].w]), sum);
            }
        }}}
        total = part == 0 ? sum : total + sum;
    }
    long to = m.y_start + offset_of(p.z, shape, y_outer, m.ndim) + group * m.y_group + channel * m.y_channel;
    y[to + at[0] * m.y_axes[0] + at[1] * m.y_axes[1] + at[2] * m.y_axes[2]] = T(total);
}
