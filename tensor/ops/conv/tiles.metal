// Convolutions of many products, in two steps. Pack lays x out so that its elements for neighbouring rows of y are
// neighbours, with zeros around them; pack_weights lays w out in the order in which tiles need it. Then a SIMD-group
// makes a tile of y: ROWS of one dimension by 32 * COLS of the other one. WIDE: lanes are places of y and ROWS its
// channels, otherwise lanes are channels. T is the element type, ACC the type to add up in. Products are added in the
// order that order.go says.

#pragma clang fp contract(off)

#define UNROLL 2u
#if WIDE
#define PLACES (32 * COLS)
#define CHANNELS ROWS
#else
#define PLACES ROWS
#define CHANNELS (32 * COLS)
#endif

struct Pack {
    long group, depth, row, axes[3]; // strides of x
    long low[3], first[3], end[3];   // element e of an axis is x's e - low, if that is from first to end - 1
    long row_low, row_first, row_end;
    uint size[3], row_size;          // of what is packed
    uint stride;                     // of rows: element e is packed as number e / stride of part e % stride
    uint groups, length;             // length: along depth
    uint ndim;                       // of the outer dimensions
};

// A SIMD-group packs all rows of one place along the axes and of up to SPAN places along depth.
#define SPAN 32u
kernel void pack(const device T* x [[buffer(0)]],
                 device ACC* out [[buffer(1)]],
                 constant Pack& m [[buffer(2)]],
                 constant uint* shape [[buffer(3)]],
                 constant long* outer [[buffer(4)]],
                 uint3 p [[thread_position_in_grid]]) {
    uint spans = (m.length + SPAN - 1) / SPAN;
    uint start = p.y % spans * SPAN;
    uint count = min(m.length - start, SPAN);
    uint place = p.y / spans;
    long e2 = long(place % m.size[2]) - m.low[2];
    long e1 = long(place / m.size[2] % m.size[1]) - m.low[1];
    long e0 = long(place / m.size[2] / m.size[1]) - m.low[0];
    bool inside = e0 >= m.first[0] && e0 < m.end[0] && e1 >= m.first[1] && e1 < m.end[1] && e2 >= m.first[2] &&
                  e2 < m.end[2];
    const device T* from =
        x + (offset_of(p.z / m.groups, shape, outer, m.ndim) + p.z % m.groups * m.group + e0 * m.axes[0] +
             e1 * m.axes[1] + e2 * m.axes[2] + start * m.depth);
    ulong places = ulong(m.size[0]) * m.size[1] * m.size[2];
    ulong line = ulong(m.stride) * m.row_size;
    device ACC* to = out + ((p.z * places + place) * m.length + start) * line;
    for (uint part = 0; part < m.stride; part++) {
        for (uint q = p.x; q < m.row_size; q += 32) {
            long e = long(q) * m.stride + part - m.row_low;
            bool has = inside && e >= m.row_first && e < m.row_end;
            for (uint c = 0; c < count; c++) {
                ACC v = ZERO;
                if (has) {
                    v = ACC(from[e * m.row + c * m.depth]);
                }
                to[c * line + part * m.row_size + q] = v;
            }
        }
    }
}

struct PackWeights {
    long start, group, channel, levels[4]; // strides of w
    uint length[4];                        // of the levels, the innermost last
    uint channels, groups, blocks;         // of a group; blocks of CHANNELS
    uint ndim;
};

// A SIMD-group packs 32 channels, or as many as a block has, at up to SPAN places along the innermost level. UNIT:
// neighbours in w are neighbouring channels.
kernel void pack_weights(const device T* w [[buffer(0)]],
                         device ACC* out [[buffer(1)]],
                         constant PackWeights& m [[buffer(2)]],
                         constant uint* shape [[buffer(3)]],
                         constant long* outer [[buffer(4)]],
                         uint3 p [[thread_position_in_grid]]) {
    uint spans = (m.length[3] + SPAN - 1) / SPAN;
    uint start = p.y % spans * SPAN;
    uint count = min(m.length[3] - start, SPAN);
    uint k = p.y / spans;
    uint k2 = k % m.length[2];
    uint k1 = k / m.length[2] % m.length[1];
    uint k0 = k / m.length[2] / m.length[1];
    ulong depth = ulong(m.length[0]) * m.length[1] * m.length[2] * m.length[3];
    const device T* from =
        w + (m.start + k0 * m.levels[0] + k1 * m.levels[1] + k2 * m.levels[2] + start * m.levels[3]);
    device ACC* to = out + (ulong(k) * m.length[3] + start) * CHANNELS;
#if UNIT
    uint runs = (m.blocks * CHANNELS + 31) / 32;
    uint rest = p.z / runs;
    uint channel = p.z % runs * 32 + p.x;
    from += offset_of(rest / m.groups, shape, outer, m.ndim) + rest % m.groups * m.group + p.z % runs * 32;
    to += (ulong(rest) * m.blocks + channel / CHANNELS) * depth * CHANNELS + channel % CHANNELS;
    if (channel < m.blocks * CHANNELS) {
        bool has = channel < m.channels;
        for (uint q = 0; q < count; q++) {
            ACC v = ZERO;
            if (has) {
                v = ACC(from[p.x]);
            }
            to[0] = v;
            from += m.levels[3];
            to += CHANNELS;
        }
    }
#else
    uint block = p.z % m.blocks;
    uint rest = p.z / m.blocks;
    uint has = min(m.channels - block * CHANNELS, uint(CHANNELS));
    from += offset_of(rest / m.groups, shape, outer, m.ndim) + rest % m.groups * m.group +
            ulong(block) * CHANNELS * m.channel;
    to += p.z * depth * CHANNELS;
    for (uint e = p.x; e < count * CHANNELS; e += 32) {
        uint c = e % CHANNELS;
        ACC v = ZERO;
        if (c < has) {
            v = ACC(from[e / CHANNELS * m.levels[3] + c * m.channel]);
        }
        to[e] = v;
    }
#endif
}

struct Tiles {
    long x_group, x_axes[3];         // strides of packed x: of a step of y
    long step[4], part;              // of packed x along the levels, and from one part of its rows to the next one
    long y_start, y_group, y_row, y_channel, y_axes[3], y_part;
    uint length[4];                  // of the levels
    uint dilation[3], stride;        // of rows: a level may be their taps
    uint axes[3], rows, tiles;       // of y
    uint channels, groups, blocks;   // of a group
    uint parts1, chunk0, chunk1;     // how levels 0 and 1 are cut into parts
    uint parts;
    uint ndim;
};

kernel void tile(const device ACC* x [[buffer(0)]],
                 const device ACC* w [[buffer(1)]],
                 device Y* y [[buffer(2)]],
                 constant Tiles& m [[buffer(3)]],
                 constant uint* shape [[buffer(4)]],
                 constant long* x_outer [[buffer(5)]],
                 constant long* w_outer [[buffer(6)]],
                 constant long* y_outer [[buffer(7)]],
#if INSIDE
                 uint simd [[simdgroup_index_in_threadgroup]],
#endif
                 uint3 p [[thread_position_in_grid]]) {
    uint row = p.y % m.tiles * PLACES;
    uint place = p.y / m.tiles;
    uint a2 = place % m.axes[2];
    place = place / m.axes[2];
    uint a1 = place % m.axes[1];
    place = place / m.axes[1];
    uint a0 = place % m.axes[0];
    uint part = place / m.axes[0];
    uint block = p.z % m.blocks;
    uint rest = p.z / m.blocks;
    uint group = rest % m.groups;
    uint outer = rest / m.groups;
    uint inner = m.length[2] * m.length[3];
    ulong depth = ulong(m.length[0]) * m.length[1] * inner;
    const device ACC* from = x + (offset_of(outer, shape, x_outer, m.ndim) + group * m.x_group + a0 * m.x_axes[0] +
                                  a1 * m.x_axes[1] + a2 * m.x_axes[2] + row);
    ulong weights = ulong(offset_of(outer, shape, w_outer, m.ndim)) * m.groups + group;
    const device ACC* by = w + (weights * m.blocks + block) * depth * CHANNELS;
    ACC sum[ROWS][COLS];
#if INSIDE
    threadgroup ACC totals[8 * ROWS * COLS * 32];
    threadgroup ACC* total = totals + (simd * (ROWS * COLS * 32) + p.x);
    for (part = 0; part < m.parts; part++) {
#endif
    uint first0 = part / m.parts1 * m.chunk0;
    uint end0 = min(first0 + m.chunk0, m.length[0]);
    uint first1 = part % m.parts1 * m.chunk1;
    uint end1 = min(first1 + m.chunk1, m.length[1]);
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            sum[r][c] = ZERO;
        }
    }
    for (uint k0 = first0; k0 < end0; k0++) {
        for (uint k1 = first1; k1 < end1; k1++) {
            const device ACC* line = from + (k0 * m.step[0] + k1 * m.step[1]);
            const device ACC* b = by + (ulong(k0) * m.length[1] + k1) * inner * CHANNELS;
            for (uint k2 = 0; k2 < m.length[2]; k2++) {
                uint e = k0 * m.dilation[0] + k1 * m.dilation[1] + k2 * m.dilation[2];
                const device ACC* a = line + (k2 * m.step[2] + e % m.stride * m.part + e / m.stride);
#if WIDE
                a += p.x;
                for (uint k3 = 0; k3 < m.length[3]; k3++) {
                    ACC v[COLS];
                    for (uint c = 0; c < COLS; c++) {
                        v[c] = a[32 * c];
                    }
                    for (uint r = 0; r < ROWS; r++) {
                        ACC f = b[r];
                        for (uint c = 0; c < COLS; c++) {
                            sum[r][c] = FMA(f, v[c], sum[r][c]);
                        }
                    }
                    a += m.step[3];
                    b += CHANNELS;
                }
#else
                const device ACC* lanes = b + p.x;
                uint k3 = 0;
                for (; k3 + UNROLL <= m.length[3]; k3 += UNROLL) {
                    for (uint u = 0; u < UNROLL; u++) {
                        ACC v[COLS];
                        for (uint c = 0; c < COLS; c++) {
                            v[c] = lanes[u * CHANNELS + 32 * c];
                        }
                        for (uint r = 0; r < ROWS; r++) {
                            ACC f = a[u * m.step[3] + r];
                            for (uint c = 0; c < COLS; c++) {
                                sum[r][c] = FMA(f, v[c], sum[r][c]);
                            }
                        }
                    }
                    a += UNROLL * m.step[3];
                    lanes += UNROLL * CHANNELS;
                }
                for (; k3 < m.length[3]; k3++) {
                    ACC v[COLS];
                    for (uint c = 0; c < COLS; c++) {
                        v[c] = lanes[32 * c];
                    }
                    for (uint r = 0; r < ROWS; r++) {
                        ACC f = a[r];
                        for (uint c = 0; c < COLS; c++) {
                            sum[r][c] = FMA(f, v[c], sum[r][c]);
                        }
                    }
                    a += m.step[3];
                    lanes += CHANNELS;
                }
                b += ulong(m.length[3]) * CHANNELS;
#endif
            }
        }
    }
#if INSIDE
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            sum[r][c] = part == 0 ? sum[r][c] : total[32 * (r * COLS + c)] + sum[r][c];
            total[32 * (r * COLS + c)] = sum[r][c];
        }
    }
    }
    part = 0;
#endif
    device Y* to = y + (m.y_start + offset_of(outer, shape, y_outer, m.ndim) + part * m.y_part + group * m.y_group +
                        a0 * m.y_axes[0] + a1 * m.y_axes[1] + a2 * m.y_axes[2]);
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
#if WIDE
            uint place = row + 32 * c + p.x, channel = block * CHANNELS + r;
#else
            uint place = row + r, channel = block * CHANNELS + 32 * c + p.x;
#endif
            if (place < m.rows && channel < m.channels) {
#if UNIT && WIDE
                to[place + channel * m.y_channel] = Y(sum[r][c]);
#elif UNIT
                to[place * m.y_row + channel] = Y(sum[r][c]);
#else
                to[place * m.y_row + channel * m.y_channel] = Y(sum[r][c]);
#endif
            }
        }
    }
}

struct Total {
    long y_start, y_group, y_row, y_channel, y_axes[3];
    uint axes[3], rows, channels, groups, parts;
    uint ndim;
};

// The sum of the parts of an element: they lie in the order (parts, outer, groups, axes, rows, channels).
kernel void total(const device ACC* parts [[buffer(0)]],
                  device T* y [[buffer(1)]],
                  constant Total& m [[buffer(2)]],
                  constant uint* shape [[buffer(3)]],
                  constant long* y_outer [[buffer(4)]],
                  uint3 p [[thread_position_in_grid]],
                  uint3 grid [[threads_per_grid]]) {
    ulong size = ulong(grid.x) * grid.y * grid.z;
    const device ACC* from = parts + (ulong(p.z) * grid.y + p.y) * grid.x + p.x;
    ACC sum = from[0];
    for (uint i = 1; i < m.parts; i++) {
        sum = sum + from[i * size];
    }
    uint row = p.y % m.rows;
    uint place = p.y / m.rows;
    uint a2 = place % m.axes[2];
    place = place / m.axes[2];
    long to = m.y_start + offset_of(p.z / m.groups, shape, y_outer, m.ndim) + p.z % m.groups * m.y_group +
              row * m.y_row + p.x * m.y_channel + place / m.axes[1] * m.y_axes[0] + place % m.axes[1] * m.y_axes[1] +
              a2 * m.y_axes[2];
    y[to] = T(sum);
}
