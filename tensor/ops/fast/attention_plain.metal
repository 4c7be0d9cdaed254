// Attention as its definition reads: softmax(scale * q k^T + mask) v with a running maximum, KEYS keys at a time. It
// is what every driver can run, and what the kernels for the host's processors are compared with. A SIMD-group makes a
// query and up to 32 * WIDTH columns of v. MANY names the order of sums of many queries: a score is added up in the
// order of depth and scaled then, the weights of keys 32 apart are a lane's, and those of KEYS keys have a sum of
// their own. Otherwise q is scaled first, and lane l adds up the places l, l + 32, ... along depth, before the lanes
// are added. T, ACC, MASK, ARRAY, M and SINKS are as in attention.metal.

#pragma clang fp contract(off)

struct Attention {
    long q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row;
    long m_batch, m_head, m_row, m_col, sink_batch;
    uint groups;           // heads of queries for a head of keys
    uint kv_heads, queries, keys, depth, width, chunks;
    ACC scale;
};

// Which lane has key i of 32, and which key lane l has.
#if MANY
#define OWNER(i) (i)
#define KEY(l) (l)
#else
#define OWNER(i) ((i) % 4 * 8 + (i) / 4)
#define KEY(l) (4 * ((l) % 8) + (l) / 8)
#endif

// A score after the mask.
#if MASK == 1
#define MASKED(s) (long(key) <= long(query) + long(m.keys) - long(m.queries) ? s : LOWEST)
#elif MASK == 2
#define MASKED(s) (mask[key * m.m_col] ? s : LOWEST)
#elif MASK == 3
#define MASKED(s) (s + ACC(mask[key * m.m_col]))
#else
#define MASKED(s) s
#endif

// The score of the lane's key of the 32 from block on.
inline ACC score_of(const device T* q, const device T* k, constant Attention& m, uint block, uint lane) {
    ACC score = ACC(0);
#if MANY
    const device T* key = k + min(block + lane, m.keys - 1) * m.k_row;
    for (uint d = 0; d < m.depth; d++) {
        score = metal::fma(ACC(q[d]), ACC(key[d]), score);
    }
    score = m.scale * score;
#else
    for (uint i = 0; i < min(m.keys - block, 32u); i++) {
        ACC sum = ACC(0);
        for (uint d = lane; d < m.depth; d += 32) {
            sum = metal::fma(m.scale * ACC(q[d]), ACC(k[(block + i) * m.k_row + d]), sum);
        }
        sum = simd_sum(sum);
        score = lane == OWNER(i) ? sum : score;
    }
#endif
    return score;
}

kernel void attention(const device T* q [[buffer(0)]],
                      const device T* k [[buffer(1)]],
                      const device T* v [[buffer(2)]],
                      device T* out [[buffer(3)]],
                      constant Attention& m [[buffer(4)]],
#if ARRAY
                      const device M* mask [[buffer(5)]],
#endif
#if SINKS
                      const device T* sinks [[buffer(5 + ARRAY)]],
#endif
                      uint3 p [[thread_position_in_grid]]) {
    uint lane = p.x, query = p.y, heads = m.groups * m.kv_heads, column = p.z % m.chunks * 32 * WIDTH + lane;
    uint head = p.z / m.chunks % heads, batch = p.z / m.chunks / heads;
    q += batch * m.q_batch + head * m.q_head + query * m.q_row;
    k += batch * m.k_batch + head / m.groups * m.k_head;
    v += batch * m.v_batch + head / m.groups * m.v_head + column;
#if ARRAY
    mask += batch * m.m_batch + head * m.m_head + query * m.m_row;
#endif
    ACC top = -INFINITY, total = ACC(0), sum[WIDTH];
#if SINKS
    top = ACC(sinks[batch * m.sink_batch + head]);
    total = ACC(MANY && lane != 0 ? 0 : 1);
#endif
    for (uint e = 0; e < WIDTH; e++) {
        sum[e] = ACC(0);
    }
    for (uint block = 0; block < m.keys; block += KEYS) {
        ACC weight[KEYS / 32], most = -INFINITY, all = ACC(0);
        for (uint c = 0; c < KEYS / 32; c++) {
            uint key = block + 32 * c + KEY(lane);
            ACC s = block + 32 * c < m.keys ? score_of(q, k, m, block + 32 * c, lane) : ACC(0);
            weight[c] = key < m.keys ? MASKED(s) : -INFINITY;
            most = metal::max(most, weight[c]);
        }
        ACC best = metal::max(top, simd_max(most)), base = best == -INFINITY ? ACC(0) : best;
        ACC keep = metal::exp(top - base);
        top = best;
        for (uint c = 0; c < KEYS / 32; c++) {
            weight[c] = metal::exp(weight[c] - base);
            all += weight[c];
        }
        total = metal::fma(total, keep, MANY ? all : simd_sum(all));
        for (uint e = 0; e < WIDTH; e++) {
            bool has = column + 32 * e < m.width;
            ACC add = MANY ? ACC(0) : sum[e] * keep;
            for (uint i = 0; i < min(m.keys - block, uint(KEYS)); i++) {
                ACC w = simd_broadcast(weight[i / 32], ushort(OWNER(i % 32)));
                add = metal::fma(w, has ? ACC(v[(block + i) * m.v_row + 32 * e]) : ACC(0), add);
            }
            sum[e] = MANY ? metal::fma(sum[e], keep, add) : add;
        }
    }
    total = MANY ? simd_sum(total) : total;
    for (uint e = 0; e < WIDTH; e++) {
        if (column + 32 * e < m.width) {
            out[((ulong(batch) * heads + head) * m.queries + query) * m.width + column + 32 * e] = T(sum[e] / total);
        }
    }
}
