// Attention of few queries over many keys, for GPUs: softmax(scale * q k^T + mask) v, in parts of PART keys. A
// threadgroup makes a part for ROWS rows of queries that share their keys (see attention.metal), a SIMD-group 32 keys
// of it; what SIMD-groups have, and then parts, is joined as sums under a common maximum. DEPTH lanes take the row of a
// key in pieces of 16 bytes, EACH elements, and WIDTH lanes that of a value: a SIMD-group reads several at once.
// T, ACC, M, MASK, ARRAY, SINKS and LOWEST are as in attention.metal. ALONE says that there is one part.

#pragma clang fp contract(off)

#define SIMDS 8
#define PART (32 * SIMDS)
#define COLUMNS (WIDTH * EACH)
#define PIECE(stride) ((stride) & ~long(EACH - 1))

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
    uint parts;
    ACC scale;
};

// A score after the mask.
#if MASK == 1
#define MASKED(s) (int(key) <= int(query) + int(m.keys) - int(m.queries) ? s : LOWEST)
#elif MASK == 2
#define MASKED(s) (mask[MASK_AT] ? s : LOWEST)
#elif MASK == 3
#define MASKED(s) (s + ACC(mask[MASK_AT]))
#else
#define MASKED(s) s
#endif
#define MASK_AT \
    (long(batch) * m.m_batch + long(head) * m.m_head + long(query) * m.m_row + long(min(key, m.keys - 1)) * m.m_col)

// A maximum that may be subtracted.
inline ACC finite(ACC top) {
    return top == -INFINITY ? ACC(0) : top;
}

[[max_total_threads_per_threadgroup(PART)]]
kernel void attend(const device T* q [[buffer(0)]],
                   const device T* k [[buffer(1)]],
                   const device T* v [[buffer(2)]],
                   device T* out [[buffer(3)]],
                   device ACC* sums [[buffer(4)]],
                   constant Attention& m [[buffer(5)]],
#if ARRAY
                   const device M* mask [[buffer(6)]],
#endif
#if SINKS
                   const device T* sinks [[buffer(6 + ARRAY)]],
#endif
                   uint3 p [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]],
                   uint simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup ACC tops[ROWS][SIMDS];
    threadgroup ACC totals[ROWS][SIMDS];
    threadgroup ACC shared[SIMDS][ROWS][COLUMNS];
    uint rows = m.groups * m.queries;
    uint tiles = (rows + ROWS - 1) / ROWS;
    uint tile = p.z % tiles;
    uint kv_head = p.z / tiles % m.kv_heads;
    uint batch = p.z / tiles / m.kv_heads;
    const device T* keys = k + (long(batch) * PIECE(m.k_batch) + long(kv_head) * PIECE(m.k_head));
    const device T* values = v + (long(batch) * PIECE(m.v_batch) + long(kv_head) * PIECE(m.v_head));
    uint first = p.y * PART + 32 * simd; // key
    ACC queries[ROWS][EACH];
    ACC score[ROWS];
    #pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        uint row = min(tile * ROWS + r, rows - 1);
        const device T* from = q + (long(batch) * PIECE(m.q_batch) +
            long(kv_head * m.groups + row / m.queries) * PIECE(m.q_head) + long(row % m.queries) * PIECE(m.q_row));
        #pragma unroll
        for (uint e = 0; e < EACH; e++) {
            queries[r][e] = m.scale * ACC((from + ulong(lane % DEPTH) * EACH)[e]);
        }
        score[r] = ACC(0);
    }
    // The scores: lane l gets that of key first + l.
    for (uint begin = 0; begin < DEPTH; begin += AHEAD) {
        T piece[AHEAD][EACH];
        #pragma unroll
        for (uint s = 0; s < AHEAD; s++) {
            uint key = min(first + (begin + s) * (32 / DEPTH) + lane / DEPTH, m.keys - 1);
            const device T* from = keys + (long(key) * PIECE(m.k_row) + long(lane % DEPTH) * EACH);
            #pragma unroll
            for (uint e = 0; e < EACH; e++) {
                piece[s][e] = from[e];
            }
        }
        #pragma unroll
        for (uint s = 0; s < AHEAD; s++) {
            #pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                ACC dot = ACC(0);
                #pragma unroll
                for (uint e = 0; e < EACH; e++) {
                    dot = metal::fma(queries[r][e], ACC(piece[s][e]), dot);
                }
                #pragma unroll
                for (ushort d = DEPTH / 2; d > 0; d /= 2) {
                    dot += simd_shuffle_xor(dot, d);
                }
                dot = simd_shuffle(dot, ushort(lane % (32 / DEPTH) * DEPTH));
                score[r] = lane / (32 / DEPTH) == begin + s ? dot : score[r];
            }
        }
    }
    #pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        uint row = min(tile * ROWS + r, rows - 1);
        uint head = kv_head * m.groups + row / m.queries;
        uint query = row % m.queries;
        uint key = first + lane;
        ACC s = key < m.keys ? MASKED(score[r]) : -INFINITY;
        ACC top = simd_max(s);
        score[r] = metal::exp(s - finite(top));
        ACC total = simd_sum(score[r]);
        if (lane == 0) {
            tops[r][simd] = top;
            totals[r][simd] = total;
        }
    }
    // The values, each key's times its weight.
    ACC sum[ROWS][EACH];
    #pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        #pragma unroll
        for (uint e = 0; e < EACH; e++) {
            sum[r][e] = ACC(0);
        }
    }
    for (uint begin = 0; begin < WIDTH; begin += AHEAD) {
        T piece[AHEAD][EACH];
        #pragma unroll
        for (uint s = 0; s < AHEAD; s++) {
            uint key = min(first + (begin + s) * (32 / WIDTH) + lane / WIDTH, m.keys - 1);
            const device T* from = values + (long(key) * PIECE(m.v_row) + long(lane % WIDTH) * EACH);
            #pragma unroll
            for (uint e = 0; e < EACH; e++) {
                piece[s][e] = from[e];
            }
        }
        #pragma unroll
        for (uint s = 0; s < AHEAD; s++) {
            #pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                ACC w = simd_shuffle(score[r], ushort((begin + s) * (32 / WIDTH) + lane / WIDTH));
                #pragma unroll
                for (uint e = 0; e < EACH; e++) {
                    sum[r][e] = metal::fma(w, ACC(piece[s][e]), sum[r][e]);
                }
            }
        }
    }
    #pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        #pragma unroll
        for (uint e = 0; e < EACH; e++) {
            ACC all = sum[r][e];
            #pragma unroll
            for (ushort d = 16; d >= WIDTH; d /= 2) {
                all += simd_shuffle_xor(all, d);
            }
            if (lane < WIDTH) {
                shared[simd][r][lane * EACH + e] = all;
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint at = 32 * simd + lane; at < ROWS * COLUMNS; at += PART) {
        uint r = at / COLUMNS;
        uint column = at % COLUMNS;
        uint row = tile * ROWS + r;
        if (row < rows) {
            uint head = kv_head * m.groups + row / m.queries;
            ACC top = -INFINITY;
            for (uint s = 0; s < SIMDS; s++) {
                top = metal::max(top, tops[r][s]);
            }
#if ALONE && SINKS
            ACC sink = ACC(sinks[long(batch) * m.sink_batch + long(head)]);
            top = metal::max(top, sink);
            ACC total = metal::exp(sink - finite(top));
#else
            ACC total = ACC(0);
#endif
            ACC all = ACC(0);
            for (uint s = 0; s < SIMDS; s++) {
                ACC keep = metal::exp(tops[r][s] - finite(top));
                total = metal::fma(totals[r][s], keep, total);
                all = metal::fma(shared[s][r][column], keep, all);
            }
            ulong place = (ulong(batch) * m.groups * m.kv_heads + head) * m.queries + row % m.queries;
#if ALONE
            out[place * COLUMNS + column] = T(all / total);
#else
            device ACC* to = sums + (place * m.parts + p.y) * (COLUMNS + 2);
            to[column] = all;
            if (column == 0) {
                to[COLUMNS] = top;
                to[COLUMNS + 1] = total;
            }
#endif
        }
    }
}

// Joins the parts of a row: a thread makes a column.
kernel void join(const device ACC* sums [[buffer(0)]],
                 device T* out [[buffer(1)]],
                 constant Attention& m [[buffer(2)]],
#if SINKS
                 const device T* sinks [[buffer(3)]],
#endif
                 uint2 p [[thread_position_in_grid]]) {
    const device ACC* from = sums + ulong(p.y) * m.parts * (COLUMNS + 2);
    ACC top = -INFINITY;
    uint first = 0;
    for (; first + 8 <= m.parts; first += 8) { // loads that do not wait for each other
        ACC tops[8];
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            tops[i] = (from + ulong(first) * (COLUMNS + 2))[i * (COLUMNS + 2) + COLUMNS];
        }
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            top = metal::max(top, tops[i]);
        }
    }
    for (uint i = first; i < m.parts; i++) {
        top = metal::max(top, from[ulong(i) * (COLUMNS + 2) + COLUMNS]);
    }
#if SINKS
    uint heads = m.groups * m.kv_heads;
    uint head = p.y / m.queries;
    ACC sink = ACC(sinks[long(head / heads) * m.sink_batch + long(head % heads)]);
    top = metal::max(top, sink);
    ACC total = metal::exp(sink - finite(top));
#else
    ACC total = ACC(0);
#endif
    ACC all = ACC(0);
    first = 0;
    for (; first + 8 <= m.parts; first += 8) {
        const device ACC* part = from + ulong(first) * (COLUMNS + 2);
        ACC tops[8];
        ACC totals[8];
        ACC sum[8];
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            tops[i] = part[i * (COLUMNS + 2) + COLUMNS];
            totals[i] = part[i * (COLUMNS + 2) + COLUMNS + 1];
            sum[i] = (part + ulong(p.x))[i * (COLUMNS + 2)];
        }
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            ACC keep = metal::exp(tops[i] - finite(top));
            total = metal::fma(totals[i], keep, total);
            all = metal::fma(sum[i], keep, all);
        }
    }
    for (uint i = first; i < m.parts; i++) {
        const device ACC* part = from + ulong(i) * (COLUMNS + 2);
        ACC keep = metal::exp(part[COLUMNS] - finite(top));
        total = metal::fma(part[COLUMNS + 1], keep, total);
        all = metal::fma(part[p.x], keep, all);
    }
    out[ulong(p.y) * COLUMNS + p.x] = T(all / total);
}
