// Convolutions of many groups, whose elements are neighbours in x: lanes are groups, and a SIMD-group makes one channel
// of 32 of them at ROWS places at a time. So nothing of x is packed. It loads
// the elements that those places need for TAPS taps, STRIDE and DILATION of which places and taps are apart, and
// multiplies each by all taps that meet it. T is the element type, ACC the type to add up in, W the type
// of what holds the weights. Products are added in the order that order.go says: DEPTH_LAST says that the loop over
// depth is the innermost one, else it is the outermost one; INSIDE that sums have parts.

#pragma clang fp contract(off)

#define ELEMENTS ((ROWS - 1) * STRIDE + (TAPS - 1) * DILATION + 1)
#define SPAN 64u // places along rows, for which a SIMD-group stays

struct Step {
    long stride, dilation, low; // place o of y, tap t: o * stride + t * dilation - low
    long first, end;            // that x has
    long x, w, y;               // strides
    long out;
};

struct Loop {
    uint turns;          // of taps along an axis, or along depth
    uint size, div, mod; // part p has those from p / div % mod * size on
};

struct Groups {
    Step axes[3]; // rows are places of the last one, of which each tap stands for TAPS
    long element, x_element, w_tap; // what elements that are loaded together are apart; strides of x and w
    long x_depth, w_start, w_block, w_channel, w_depth, y_start, y_group, y_channel; // strides
    Loop loops[4];                                                                  // over the axes, and over depth
    uint channels, groups, blocks;                                                  // channels: of a group
    uint parts;                                                                     // of a sum
    uint ndim;                                                                      // of the outer dimensions
};

// Adds the products of TAPS taps at places e of x, to which has says whether there are any, to the sums of ROWS places.
inline void add_taps(thread ACC (&sum)[ROWS], const device T* a, const device W* b, long e, bool has,
                     constant Groups& m) {
    ACC v[ELEMENTS];
    if (has && e >= m.axes[2].first && e + long(ELEMENTS - 1) * m.element < m.axes[2].end) {
        for (uint i = 0; i < ELEMENTS; i++) {
            v[i] = ACC(a[i * m.x_element]);
        }
    } else {
        for (uint i = 0; i < ELEMENTS; i++) {
            long at = e + i * m.element;
            v[i] = ZERO;
            if (has && at >= m.axes[2].first && at < m.axes[2].end) {
                v[i] = ACC(a[i * m.x_element]);
            }
        }
    }
    for (uint t = 0; t < TAPS; t++) {
        ACC f = ACC(b[t * m.w_tap]);
        for (uint r = 0; r < ROWS; r++) {
            sum[r] = FMA(v[r * STRIDE + t * DILATION], f, sum[r]);
        }
    }
}

#if INSIDE
#define FROM(l) (part / m.loops[l].div % m.loops[l].mod * m.loops[l].size)
#define LOOP(l, t) for (uint t = FROM(l), end##l = min(t + m.loops[l].size, m.loops[l].turns); t < end##l; t++)
#else
#define LOOP(l, t) for (uint t = 0; t < m.loops[l].turns; t++)
#endif

kernel void across_groups(const device T* x [[buffer(0)]],
                          const device W* w [[buffer(1)]],
                          device T* y [[buffer(2)]],
                          constant Groups& m [[buffer(3)]],
                          constant uint* shape [[buffer(4)]],
                          constant long* x_outer [[buffer(5)]],
                          constant long* w_outer [[buffer(6)]],
                          constant long* y_outer [[buffer(7)]],
                          uint3 p [[thread_position_in_grid]]) {
    uint block = p.z % m.blocks;
    uint rest = p.z / m.blocks;
    uint channel = rest % m.channels;
    uint outer = rest / m.channels;
    uint places = m.axes[2].out, second = m.axes[1].out;
    uint spans = (places + SPAN - 1) / SPAN;
    uint start = p.y % spans * SPAN;
    uint end = min(places, start + SPAN);
    uint at1 = p.y / spans % second;
    uint at0 = p.y / spans / second;
    if (block * 32 + p.x >= m.groups) {
        return;
    }
    long x0 = long(at0) * m.axes[0].stride - m.axes[0].low;
    long x1 = long(at1) * m.axes[1].stride - m.axes[1].low;
    long x2 = long(start) * m.axes[2].stride - m.axes[2].low;
    const device T* from = x + (offset_of(outer, shape, x_outer, m.ndim) + block * 32 + p.x);
    const device W* by =
        w + (m.w_start + offset_of(outer, shape, w_outer, m.ndim) + block * m.w_block + channel * m.w_channel + p.x);
    device T* to = y + (m.y_start + offset_of(outer, shape, y_outer, m.ndim) + channel * m.y_channel +
                        at0 * m.axes[0].y + at1 * m.axes[1].y + start * m.axes[2].y + block * 32 * m.y_group);
    for (uint row = start; row < end; row += ROWS) {
        ACC sum[ROWS];
#if INSIDE
        ACC total[ROWS];
        for (uint part = 0; part < m.parts; part++) {
#endif
        for (uint r = 0; r < ROWS; r++) {
            sum[r] = ZERO;
        }
#if !DEPTH_LAST
        LOOP(3, c)
#endif
        LOOP(0, t0) {
            long e0 = x0 + t0 * m.axes[0].dilation;
            bool has0 = e0 >= m.axes[0].first && e0 < m.axes[0].end;
            LOOP(1, t1) {
                long e1 = x1 + t1 * m.axes[1].dilation;
                bool has = has0 && e1 >= m.axes[1].first && e1 < m.axes[1].end;
                const device T* a = from + (e0 * m.axes[0].x + e1 * m.axes[1].x);
                const device W* b = by + (t0 * m.axes[0].w + t1 * m.axes[1].w);
                LOOP(2, t2) {
                    long e2 = x2 + t2 * m.axes[2].dilation;
#if DEPTH_LAST
                    LOOP(3, c)
#endif
                    add_taps(sum, a + (e2 * m.axes[2].x + c * m.x_depth), b + (t2 * m.axes[2].w + c * m.w_depth), e2,
                             has, m);
                }
            }
        }
#if INSIDE
        for (uint r = 0; r < ROWS; r++) {
            total[r] = part == 0 ? sum[r] : total[r] + sum[r];
        }
        }
        for (uint r = 0; r < ROWS; r++) {
            sum[r] = total[r];
        }
#endif
        for (uint r = 0; r < ROWS; r++) {
            if (row + r < end) {
#if UNIT
                to[p.x] = T(sum[r]);
#else
                to[p.x * m.y_group] = T(sum[r]);
#endif
            }
            to += m.axes[2].y;
        }
        x2 += ROWS * m.axes[2].stride;
    }
}
