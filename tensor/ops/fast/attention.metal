// Attention in one kernel: softmax(scale * q k^T + mask) v with a running maximum. A SIMD-group makes a tile of ROWS
// rows of queries that share their keys and values: the rows of the heads of one group, head by head. It takes 32 keys
// at a time. Lanes touch neighbouring elements: of q and k (DEPTH elements, lane by lane) for the scores, of v (a chunk
// of 32 * WIDTH columns) for the sums; in between each lane has one key's score.
//
// T is the element type, ACC the type to compute in. The text before this one defines EACH_ROW(F), which is F(0) F(1)
// ... for the rows, EACH_DEPTH(F) and EACH_WIDTH(F) for a lane's elements, and EACH_ROW_DEPTH(F), EACH_ROW_WIDTH(F) for
// both: F(row, element). WIDE says that q and k have too many elements for that: they are read in a loop. MASK is 0 for
// none, 1 for causal, 2 for bool, 3 for one that is added; ARRAY says that it is an array, of type M. SINKS says
// whether there are such.

#pragma clang fp contract(off)

struct Attention {
    long q_batch, q_head, q_row;
    long k_batch, k_head, k_row;
    long v_batch, v_head, v_row;
    long m_batch, m_head, m_row, m_col;
    long sink_batch;
    uint groups;           // heads of queries for a head of keys
    uint kv_heads;
    uint queries, keys;
    uint depth, width;     // elements of a row of k and of v
    uint chunks;           // of v's columns
    ACC scale;
};

// What a row needs: its place among queries, and its sums.
#define DECLARE_ROW(r)                                                              \
    uint row##r = min(first + r, rows - 1);                                         \
    uint head##r = kv_head * m.groups + row##r / m.queries;                         \
    uint query##r = row##r % m.queries;                                             \
    const device T* q##r = q + (long(batch) * m.q_batch + long(head##r) * m.q_head + long(query##r) * m.q_row); \
    int limit##r = int(query##r) + int(m.keys) - int(m.queries);                    \
    ACC top##r = START_TOP(r);                                                      \
    ACC total##r = START_TOTAL;
#if SINKS
#define START_TOP(r) ACC(sinks[long(batch) * m.sink_batch + long(head##r)])
#define START_TOTAL ACC(1)
#else
#define START_TOP(r) (-INFINITY)
#define START_TOTAL ACC(0)
#endif

#if WIDE
#define DECLARE_QUERY(r, e)
#else
#define DECLARE_QUERY(r, e)                                                         \
    ACC q##r##_##e = lane + 32 * e < m.depth ? m.scale * ACC(q##r[lane + 32 * e]) : ACC(0);
#endif
#define DECLARE_SUM(r, e) ACC sum##r##_##e = 0;

// The products of the tile's rows with the four keys of a step: ROWS times four sums over lanes, folded together so
// that the eight lanes of an octet have the sum of key (octet).
#define DECLARE_DOTS(r) ACC a##r = 0; ACC b##r = 0; ACC c##r = 0; ACC d##r = 0;
#define LOAD_KEYS(e)                                                                \
    ACC ka##e = INSIDE(e) ? ACC(k0[lane + 32 * e]) : ACC(0);                        \
    ACC kb##e = INSIDE(e) ? ACC(k1[lane + 32 * e]) : ACC(0);                        \
    ACC kc##e = INSIDE(e) ? ACC(k2[lane + 32 * e]) : ACC(0);                        \
    ACC kd##e = INSIDE(e) ? ACC(k3[lane + 32 * e]) : ACC(0);
#if WHOLE_DEPTH
#define INSIDE(e) true
#else
#define INSIDE(e) (lane + 32 * e < m.depth)
#endif
#define DOT(r, e)                                                                   \
    a##r = metal::fma(q##r##_##e, ka##e, a##r);                                     \
    b##r = metal::fma(q##r##_##e, kb##e, b##r);                                     \
    c##r = metal::fma(q##r##_##e, kc##e, c##r);                                     \
    d##r = metal::fma(q##r##_##e, kd##e, d##r);
#define DOT_WIDE(r)                                                                 \
    {                                                                               \
        ACC e = m.scale * ACC(q##r[i]);                                             \
        a##r = metal::fma(e, ka, a##r);                                             \
        b##r = metal::fma(e, kb, b##r);                                             \
        c##r = metal::fma(e, kc, c##r);                                             \
        d##r = metal::fma(e, kd, d##r);                                             \
    }
#define FOLD(r)                                                                     \
    {                                                                               \
        ACC ac = high ? c##r : a##r;                                                \
        ACC ca = high ? a##r : c##r;                                                \
        ac += simd_shuffle_xor(ca, ushort(16));                                     \
        ACC bd = high ? d##r : b##r;                                                \
        ACC db = high ? b##r : d##r;                                                \
        bd += simd_shuffle_xor(db, ushort(16));                                     \
        ACC all = odd ? bd : ac;                                                    \
        ACC other = odd ? ac : bd;                                                  \
        all += simd_shuffle_xor(other, ushort(8));                                  \
        all += simd_shuffle_xor(all, ushort(4));                                    \
        all += simd_shuffle_xor(all, ushort(2));                                    \
        all += simd_shuffle_xor(all, ushort(1));                                    \
        score##r = step == mine ? all : score##r;                                   \
    }

#define DECLARE_SCORE(r) ACC score##r = 0;

// A lane's score after the mask; a key past the end weighs nothing.
#if MASK == 1
#define MASKED(r) (int(key) <= limit##r ? score##r : LOWEST)
#elif MASK == 2
#define MASKED(r) (mask[MASK_AT(r)] ? score##r : LOWEST)
#elif MASK == 3
#define MASKED(r) (score##r + ACC(mask[MASK_AT(r)]))
#else
#define MASKED(r) score##r
#endif
#define MASK_AT(r)                                                                  \
    (long(batch) * m.m_batch + long(head##r) * m.m_head + long(query##r) * m.m_row +  \
        long(min(key, m.keys - 1)) * m.m_col)
#define WEIGH(r)                                                                    \
    score##r = key < m.keys ? MASKED(r) : -INFINITY;                                \
    ACC best##r = metal::max(top##r, simd_max(score##r));                           \
    ACC base##r = best##r == -INFINITY ? ACC(0) : best##r;                          \
    ACC keep##r = metal::exp(top##r - base##r);                                     \
    ACC weight##r = metal::exp(score##r - base##r);                                 \
    top##r = best##r;                                                               \
    total##r = metal::fma(total##r, keep##r, simd_sum(weight##r));
#define SCALE_SUM(r, e) sum##r##_##e *= keep##r;
#define SHARE(r) ACC w##r = simd_broadcast(weight##r, ushort(owner));
#define LOAD_VALUE(e) ACC v##e = COLUMN(e) ? ACC(value[lane + 32 * e]) : ACC(0);
#if WHOLE_WIDTH
#define COLUMN(e) true
#else
#define COLUMN(e) (lane + 32 * e < columns)
#endif
#define ADD_VALUE(r, e) sum##r##_##e = metal::fma(w##r, v##e, sum##r##_##e);
#define STORE(r, e)                                                                 \
    if (first + r < rows && COLUMN(e)) {                                            \
        out[((ulong(batch) * heads + head##r) * m.queries + query##r) * m.width + column + lane + 32 * e] = \
            T(sum##r##_##e / total##r);                                             \
    }

#define LAST_KEY(r)                                                                 \
    end = limit##r < 0 ? m.keys : max(end, uint(limit##r) + 1);

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
                      uint3 p [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]],
                      uint simd [[simdgroup_index_in_threadgroup]],
                      uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    uint chunk = p.z % m.chunks;
    uint kv_head = (p.z / m.chunks) % m.kv_heads;
    uint batch = p.z / m.chunks / m.kv_heads;
    uint rows = m.groups * m.queries;
    uint heads = m.groups * m.kv_heads;
    uint first = (p.y * simds + simd) * ROWS;
    uint column = chunk * 32 * WIDTH;
#if !WHOLE_WIDTH
    uint columns = m.width - column;
#endif
    bool high = lane >= 16;
    bool odd = (lane & 8) != 0;
    uint mine = lane & 7;
    EACH_ROW(DECLARE_ROW)
    EACH_ROW_DEPTH(DECLARE_QUERY)
    EACH_ROW_WIDTH(DECLARE_SUM)
    const device T* keys = k + (long(batch) * m.k_batch + long(kv_head) * m.k_head);
    const device T* values = v + (long(batch) * m.v_batch + long(kv_head) * m.v_head + column);
#if MASK == 1
    // Keys after the last query's weigh nothing; a row that may see none sees all alike.
    uint end = 0;
    EACH_ROW(LAST_KEY)
    end = min(end, m.keys);
#else
    uint end = m.keys;
#endif
    for (uint block = 0; block < end; block += 32) {
        uint count = min(end - block, 32u);
        EACH_ROW(DECLARE_SCORE)
        for (uint step = 0; 4 * step < count; step++) {
            uint at = block + 4 * step;
            uint last = m.keys - 1;
            const device T* k0 = keys + long(at) * m.k_row;
            const device T* k1 = keys + long(min(at + 1, last)) * m.k_row;
            const device T* k2 = keys + long(min(at + 2, last)) * m.k_row;
            const device T* k3 = keys + long(min(at + 3, last)) * m.k_row;
            EACH_ROW(DECLARE_DOTS)
#if WIDE
            for (uint i = lane; i < m.depth; i += 32) {
                ACC ka = ACC(k0[i]);
                ACC kb = ACC(k1[i]);
                ACC kc = ACC(k2[i]);
                ACC kd = ACC(k3[i]);
                EACH_ROW(DOT_WIDE)
            }
#else
            EACH_DEPTH(LOAD_KEYS)
            EACH_ROW_DEPTH(DOT)
#endif
            EACH_ROW(FOLD)
        }
        uint key = block + 4 * mine + lane / 8; // whose score this lane has
        EACH_ROW(WEIGH)
        EACH_ROW_WIDTH(SCALE_SUM)
        for (uint i = 0; i < count; i++) {
            uint owner = (i % 4) * 8 + i / 4;
            const device T* value = values + long(block + i) * m.v_row;
            EACH_ROW(SHARE)
            EACH_WIDTH(LOAD_VALUE)
            EACH_ROW_WIDTH(ADD_VALUE)
        }
    }
    EACH_ROW_WIDTH(STORE)
}
