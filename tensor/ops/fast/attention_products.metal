// The weights of attention whose scores a library has made: a row of scores, times scale, after the mask, becomes
// exp(score - top) / total. A threadgroup makes a row. T, ACC, M, MASK, ARRAY, SINKS and LOWEST are as in
// attention.metal.

#pragma clang fp contract(off)

#define SIMDS 4

struct Attention {
    long q_batch, q_head, q_row;
    long k_batch, k_head, k_row;
    long v_batch, v_head, v_row;
    long m_batch, m_head, m_row, m_col;
    long sink_batch;
    uint groups, kv_heads;
    uint queries, keys;
    uint depth, width;
    uint chunks;
    ACC scale;
};

// Where rows of scores come from: each queries of them from a head.
struct Rows {
    uint batch, head, query, queries;
};

#if MASK == 1
#define MASKED(s) (int(key) <= int(query) + int(m.keys) - int(m.queries) ? s : LOWEST)
#elif MASK == 2
#define MASKED(s) (mask[long(key) * m.m_col] ? s : LOWEST)
#elif MASK == 3
#define MASKED(s) (s + ACC(mask[long(key) * m.m_col]))
#else
#define MASKED(s) s
#endif
#define SCORE(i) MASKED((m.scale * from[i]))

[[max_total_threads_per_threadgroup(32 * SIMDS)]]
kernel void weigh(const device ACC* scores [[buffer(0)]],
                  device T* weights [[buffer(1)]],
                  constant Attention& m [[buffer(2)]],
                  constant Rows& rows [[buffer(3)]],
#if ARRAY
                  const device M* mask [[buffer(4)]],
#endif
#if SINKS
                  const device T* sinks [[buffer(4 + ARRAY)]],
#endif
                  uint2 group [[threadgroup_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]],
                  uint simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup ACC shared[2 * SIMDS];
    uint head = rows.head + group.y / rows.queries;
    uint query = rows.query + group.y % rows.queries;
    const device ACC* from = scores + ulong(group.y) * m.keys;
    device T* to = weights + ulong(group.y) * m.keys;
#if ARRAY
    mask += long(rows.batch) * m.m_batch + long(head) * m.m_head + long(query) * m.m_row;
#endif
    uint place = 32 * simd + lane;
    ACC top = -INFINITY;
    for (uint key = place; key < m.keys; key += 32 * SIMDS) {
        top = metal::max(SCORE(key), top);
    }
    top = simd_max(top);
    if (lane == 0) {
        shared[simd] = top;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint s = 0; s < SIMDS; s++) {
        top = metal::max(shared[s], top);
    }
#if SINKS
    ACC sink = ACC(sinks[long(rows.batch) * m.sink_batch + long(head)]);
    top = metal::max(top, sink);
#endif
    top = top == -INFINITY ? ACC(0) : top;
    ACC total = ACC(0);
    for (uint key = place; key < m.keys; key += 32 * SIMDS) {
        total += metal::exp(SCORE(key) - top);
    }
    total = simd_sum(total);
    if (lane == 0) {
        shared[SIMDS + simd] = total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#if SINKS
    total = metal::exp(sink - top);
#else
    total = ACC(0);
#endif
    for (uint s = 0; s < SIMDS; s++) {
        total += shared[SIMDS + s];
    }
    ACC share = 1 / total;
    for (uint key = place; key < m.keys; key += 32 * SIMDS) {
        to[key] = T(metal::exp(SCORE(key) - top) * share);
    }
}
