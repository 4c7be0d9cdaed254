// A convolution as its definition reads: a thread adds up the products of one element of y.

#pragma clang fp contract(off)

struct Step {
    long stride, dilation, spacing, low; // place o of y, tap t: (o * stride + t * dilation - low) / spacing
    long first, end;                     // that x has
    long x, w, y;                        // strides
    uint out, taps;
};

struct Sums {
    long x_group, w_group, y_group; // strides
    long w_channel, y_channel, x_depth, w_depth;
    long w_start, y_start;
    Step axes[3];
    uint channels, depth; // of a group
    uint ndim;            // of the outer dimensions
};

// Where tap t lies in x for place o of y: NONE between two elements, OUTSIDE if it meets a zero that x is padded with.
#define NONE -2
#define OUTSIDE -1
inline long place_of(constant Step& s, uint o, uint t) {
    long at = long(o) * s.stride + long(t) * s.dilation - s.low;
    if (s.spacing != 1) {
        if (at % s.spacing != 0) {
            return NONE;
        }
        at = at / s.spacing;
    }
    return at < s.first || at >= s.end ? OUTSIDE : at;
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
    uint group = p.x / m.channels;
    uint channel = p.x % m.channels;
    uint at2 = p.y % m.axes[2].out;
    uint rest = p.y / m.axes[2].out;
    uint at1 = rest % m.axes[1].out;
    uint at0 = rest / m.axes[1].out;
    const device T* from = x + (offset_of(p.z, shape, x_outer, m.ndim) + group * m.x_group);
    const device T* by =
        w + (m.w_start + offset_of(p.z, shape, w_outer, m.ndim) + group * m.w_group + channel * m.w_channel);
    ACC sum = ZERO;
    for (uint t0 = 0; t0 < m.axes[0].taps; t0++) {
        long x0 = place_of(m.axes[0], at0, t0);
        if (x0 == NONE) {
            continue;
        }
        for (uint t1 = 0; t1 < m.axes[1].taps; t1++) {
            long x1 = place_of(m.axes[1], at1, t1);
            if (x1 == NONE) {
                continue;
            }
            for (uint t2 = 0; t2 < m.axes[2].taps; t2++) {
                long x2 = place_of(m.axes[2], at2, t2);
                if (x2 == NONE) {
                    continue;
                }
                const device T* a = from + (x0 * m.axes[0].x + x1 * m.axes[1].x + x2 * m.axes[2].x);
                const device T* b = by + (t0 * m.axes[0].w + t1 * m.axes[1].w + t2 * m.axes[2].w);
                bool has = x0 != OUTSIDE && x1 != OUTSIDE && x2 != OUTSIDE;
                for (uint c = 0; c < m.depth; c++) {
                    ACC v = ZERO;
                    if (has) {
                        v = ACC(a[c * m.x_depth]);
                    }
                    sum = FMA(v, ACC(b[c * m.w_depth]), sum);
                }
            }
        }
    }
    long to = m.y_start + offset_of(p.z, shape, y_outer, m.ndim) + group * m.y_group + channel * m.y_channel;
    y[to + at0 * m.axes[0].y + at1 * m.axes[1].y + at2 * m.axes[2].y] = T(sum);
}
