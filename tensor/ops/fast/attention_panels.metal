// Attention of many queries: softmax(scale * q k^T + mask) v with a running maximum. q and k lie in panels (see
// panels.metal). A SIMD-group makes ROWS queries of a head and takes a panel of keys at a time: for the scores, lanes
// are keys and the elements of q are the same for all; the weights go through threadgroup memory, because for the sums
// lanes are columns of v (a chunk of 32 * WIDTH of them) and the weights the same for all.
//
// T is the element type, ACC the type to compute in. MASK is 0 for none, 1 for causal, 2 for bool, 3 for one that is
// added; ARRAY says that it is an array, of type M. SINKS says whether there are such.

#pragma clang fp contract(off)

struct Attention {
    long q_batch, q_head, k_batch, k_head; // in matrices
    long v_batch, v_head, v_row;           // in elements, as the following
    long m_batch, m_head, m_row, m_col;
    long sink_batch;
    uint heads, groups;                    // of queries, and those of them for a head of keys
    uint queries, keys;
    uint depth, width;                     // elements of a row of k and of v
    uint chunks;                           // of v's columns
    ACC scale;
};

#define ROWS 8u
#define COLS (PANEL / 32)

// A score after the mask; a key past the end weighs nothing.
#if MASK == 1
#define MASKED (int(key) <= int(query) + int(m.keys) - int(m.queries) ? s : LOWEST)
#elif MASK == 2
#define MASKED (mask_row[long(min(key, m.keys - 1)) * m.m_col] ? s : LOWEST)
#elif MASK == 3
#define MASKED (s + ACC(mask_row[long(min(key, m.keys - 1)) * m.m_col]))
#else
#define MASKED s
#endif

#if WHOLE_WIDTH
#define COLUMN(e) true
#else
#define COLUMN(e) (column + lane + 32 * (e) < m.width)
#endif

kernel void attention(const device ACC* q [[buffer(0)]],
                      const device ACC* k [[buffer(1)]],
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
    threadgroup ACC shared[SIMDS * ROWS * PANEL];
    uint column = (p.z % m.chunks) * (32 * WIDTH);
    uint head = (p.z / m.chunks) % m.heads;
    uint batch = p.z / m.chunks / m.heads;
    uint first = (p.y * simds + simd) * ROWS;
    uint of_keys = head / m.groups;
    ulong panels = (m.queries + PANEL - 1) / PANEL;
    ulong panel = (ulong(batch) * ulong(m.q_batch) + ulong(head) * ulong(m.q_head)) * panels + first / PANEL;
    const device ACC* x = q + (panel * m.depth * PANEL + first % PANEL);
    panels = (m.keys + PANEL - 1) / PANEL;
    panel = (ulong(batch) * ulong(m.k_batch) + ulong(of_keys) * ulong(m.k_head)) * panels;
    const device ACC* y = k + (panel * m.depth * PANEL + lane);
    const device T* value = v + (long(batch) * m.v_batch + long(of_keys) * m.v_head + long(column + lane));
    threadgroup ACC* weights = shared + simd * (ROWS * PANEL);
    ACC top[ROWS];
    ACC total[ROWS];
    ACC sum[WIDTH][ROWS];
    for (uint r = 0; r < ROWS; r++) {
#if SINKS
        top[r] = ACC(sinks[long(batch) * m.sink_batch + long(head)]);
        total[r] = ACC(lane == 0 ? 1 : 0);
#else
        top[r] = -INFINITY;
        total[r] = ACC(0);
#endif
        for (uint e = 0; e < WIDTH; e++) {
            sum[e][r] = ACC(0);
        }
    }
    uint end = m.keys;
#if MASK == 1
    // Keys after the last query's weigh nothing; a query that may see none sees all alike.
    if (first + m.keys >= m.queries) {
        end = min(m.keys, first + ROWS + m.keys - m.queries);
    }
#endif
    for (uint block = 0; block < end; block += PANEL) {
        ACC score[ROWS][COLS];
        for (uint c = 0; c < COLS; c++) {
            ACC dot[ROWS];
            for (uint r = 0; r < ROWS; r++) {
                dot[r] = ACC(0);
            }
            const device ACC* from = x;
            const device ACC* of = y + 32 * c;
            for (uint d = 0; d < m.depth; d++) {
                ACC element = of[0];
                for (uint r = 0; r < ROWS; r++) {
                    dot[r] = metal::fma(from[r], element, dot[r]);
                }
                from += PANEL;
                of += PANEL;
            }
            for (uint r = 0; r < ROWS; r++) {
                score[r][c] = dot[r];
            }
        }
        y += m.depth * PANEL;
        ACC keep[ROWS];
        for (uint r = 0; r < ROWS; r++) {
#if MASK
            uint query = min(first + r, m.queries - 1);
#endif
#if ARRAY
            const device M* mask_row =
                mask + (long(batch) * m.m_batch + long(head) * m.m_head + long(query) * m.m_row);
#endif
            ACC most = -INFINITY;
            for (uint c = 0; c < COLS; c++) {
                uint key = block + 32 * c + lane;
                ACC s = m.scale * score[r][c];
                score[r][c] = key < m.keys ? MASKED : -INFINITY;
                most = metal::max(most, score[r][c]);
            }
            ACC best = metal::max(top[r], simd_max(most));
            ACC base = best == -INFINITY ? ACC(0) : best;
            keep[r] = metal::exp(top[r] - base);
            top[r] = best;
            ACC all = ACC(0);
            for (uint c = 0; c < COLS; c++) {
                ACC weight = metal::exp(score[r][c] - base);
                weights[r * PANEL + 32 * c + lane] = weight;
                all += weight;
            }
            total[r] = metal::fma(total[r], keep[r], all);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        uint count = min(m.keys - block, uint(PANEL));
        for (uint e = 0; e < WIDTH; e++) {
            const device T* line = value + 32 * e;
            threadgroup ACC* weight = weights;
            ACC add[ROWS];
            for (uint r = 0; r < ROWS; r++) {
                add[r] = ACC(0);
            }
            for (uint i = 0; i < count; i++) {
                ACC element = COLUMN(e) ? ACC(line[0]) : ACC(0);
                for (uint r = 0; r < ROWS; r++) {
                    add[r] = metal::fma(weight[r * PANEL], element, add[r]);
                }
                line += m.v_row;
                weight++;
            }
            for (uint r = 0; r < ROWS; r++) {
                sum[e][r] = metal::fma(sum[e][r], keep[r], add[r]);
            }
        }
        value += long(count) * m.v_row;
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    device T* to = out + (((ulong(batch) * m.heads + head) * m.queries + first) * m.width + column + lane);
    for (uint r = 0; r < ROWS; r++) {
        ACC all = simd_sum(total[r]);
        for (uint e = 0; e < WIDTH; e++) {
            if (first + r < m.queries && COLUMN(e)) {
                to[r * m.width + 32 * e] = T(sum[e][r] / all);
            }
        }
    }
}
