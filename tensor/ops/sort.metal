// A stable radix sort of rows of n keys, a digit (digits.metal) in a pass, the lowest first. With INDEX the keys'
// places in their rows are sorted: they move along with the keys. A row is cut into chunks of `length` keys, each the
// work of one SIMD-group.

#pragma clang fp contract(off)

struct Sort {
    uint n, length, chunks; // of a row
    uint shift;             // of the pass' bits
};

// Counts the digits of up to 32 keys from i on, those before end.
template <bool whole>
void count_some(threadgroup uint* table, const device K* keys, uint i, uint end, uint shift, uint lane) {
    bool mine = whole || i + lane < end;
    K x = keys[mine ? i + lane : i];
    uint d = digit_of(x, shift);
    uint peers = peers_of(d, whole ? 0xFFFFFFFFu : uint(ulong(simd_ballot(mine))));
    if (mine && (peers >> lane) == 1) { // the last one of them
        table[d] += popcount(peers);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

inline void count_all(threadgroup uint* table, const device K* keys, uint start, uint end, uint shift, uint lane) {
    clear(table, lane);
    uint i = start;
    for (; i + 32 <= end; i += 32) {
        count_some<true>(table, keys, i, end, shift, lane);
    }
    if (i < end) {
        count_some<false>(table, keys, i, end, shift, lane);
    }
}

// Moves up to 32 keys from i on, those before end, to where their digit's next places are, which the table says.
template <bool whole>
void move_some(threadgroup uint* table, const device K* keys, const device uint* places, device K* to_keys,
               device RESULT* to, uint i, uint end, uint shift, uint lane) {
    bool mine = whole || i + lane < end;
    K x = keys[mine ? i + lane : i];
    uint d = digit_of(x, shift);
    uint peers = peers_of(d, whole ? 0xFFFFFFFFu : uint(ulong(simd_ballot(mine))));
    uint at = table[d] + popcount(peers & ((1u << lane) - 1u));
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (mine) {
        if ((peers >> lane) == 1) {
            table[d] = at + 1;
        }
#if INDEX
#if FIRST
        to[at] = i + lane;
#else
        to[at] = places[i + lane];
#endif
#if !LAST
        to_keys[at] = x;
#endif
#else
        to[at] = x;
#endif
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

inline void move_all(threadgroup uint* table, const device K* keys, const device uint* places, device K* to_keys,
                     device RESULT* to, uint start, uint end, uint shift, uint lane) {
    uint i = start;
    for (; i + 32 <= end; i += 32) {
        move_some<true>(table, keys, places, to_keys, to, i, end, shift, lane);
    }
    if (i < end) {
        move_some<false>(table, keys, places, to_keys, to, i, end, shift, lane);
    }
}

// The first step of a pass: how many keys of each digit a chunk has, with the chunks of a digit side by side.
kernel void count_digits(const device K* keys [[buffer(0)]],
                         device uint* counts [[buffer(1)]],
                         constant Sort& m [[buffer(2)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint table[256];
    uint start = group.y * m.length;
    count_all(table, keys + ulong(group.z) * m.n, start, min(start + m.length, m.n), m.shift, lane);
    device uint* to = counts + (ulong(group.z) * 256 * m.chunks + group.y);
    for (uint d = lane; d < 256; d += 32) {
        to[d * m.chunks] = table[d];
    }
}

// The second step: the places in a row at which each chunk's keys of each digit begin.
kernel void add_counts(device uint* counts [[buffer(0)]],
                       constant Sort& m [[buffer(1)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    device uint* row = counts + ulong(group.y) * 256 * m.chunks;
    uint before = 0;
    for (uint i = 0; i < 256 * m.chunks; i += 32) {
        uint n = row[i + lane];
        row[i + lane] = before + simd_prefix_exclusive_sum(n);
        before += simd_sum(n);
    }
}

// The third step: every key goes to its place.
kernel void move_keys(const device K* keys [[buffer(0)]],
                      const device uint* places [[buffer(1)]],
                      const device uint* counts [[buffer(2)]],
                      device K* to_keys [[buffer(3)]],
                      device RESULT* to [[buffer(4)]],
                      constant Sort& m [[buffer(5)]],
                      uint3 group [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint table[256];
    const device uint* from = counts + (ulong(group.z) * 256 * m.chunks + group.y);
    for (uint d = lane; d < 256; d += 32) {
        table[d] = from[d * m.chunks];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    ulong row = ulong(group.z) * m.n;
    uint start = group.y * m.length;
    move_all(table, keys + row, places + row, to_keys + row, to + row, start, min(start + m.length, m.n), m.shift,
             lane);
}

// All steps of a pass, for rows that are one chunk.
kernel void sort_rows(const device K* keys [[buffer(0)]],
                      const device uint* places [[buffer(1)]],
                      device K* to_keys [[buffer(2)]],
                      device RESULT* to [[buffer(3)]],
                      constant Sort& m [[buffer(4)]],
                      uint3 group [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint table[256];
    ulong row = ulong(group.y) * m.n;
    count_all(table, keys + row, 0, m.n, m.shift, lane);
    uint before = 0;
    for (uint d = 0; d < 256; d += 32) {
        uint n = table[d + lane];
        table[d + lane] = before + simd_prefix_exclusive_sum(n);
        before += simd_sum(n);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    move_all(table, keys + row, places + row, to_keys + row, to + row, 0, m.n, m.shift, lane);
}

// What a row keeps of its keys in order: `count` of them, from place `from` on.
struct Window {
    uint n, from, count;
};

// Rows of up to 16 keys: the thread of a key counts the keys that come before it, and those that are equal and stand
// before it.
kernel void rank_keys(const device K* all_keys [[buffer(0)]],
                      device RESULT* to [[buffer(1)]],
                      constant Window& w [[buffer(2)]],
                      uint2 p [[thread_position_in_grid]]) {
    uint i = p.x;
    uint n = w.n;
    ulong row = ulong(p.y) * n;
    const device K* keys = all_keys + row;
    K me = keys[i];
    K key = ordered(me);
    uint rank = 0;
    for (uint k = 0; k < n; k++) {
        K other = ordered(keys[k]);
        bool before = k < i ? other <= key : other < key;
        rank += before ? 1u : 0u;
    }
    if (rank - w.from < w.count) {
        device RESULT* at = to + ulong(p.y) * w.count + (rank - w.from);
#if INDEX
        *at = i;
#else
        *at = me;
#endif
    }
}

// Rows of up to MOST_RANKED keys: a SIMD-group counts likewise for a row, 32 keys at a time.
kernel void rank_rows(const device K* all_keys [[buffer(0)]],
                      device RESULT* to [[buffer(1)]],
                      constant Window& w [[buffer(2)]],
                      uint2 p [[thread_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]],
                      uint group [[simdgroup_index_in_threadgroup]]) {
    threadgroup K table[4 * MOST_RANKED];
    threadgroup K* order = table + group * MOST_RANKED;
    uint n = w.n;
    ulong row = ulong(p.y) * n;
    const device K* keys = all_keys + row;
    for (uint i = lane; i < n; i += 32) {
        order[i] = ordered(keys[i]);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint first = 0; first < n; first += 32) {
        uint i = first + lane;
        K key = order[min(i, n - 1)];
        uint rank = 0;
        for (uint k = 0; k < first; k++) {
            rank += order[k] <= key ? 1u : 0u;
        }
        uint end = min(first + 32, n);
        for (uint k = first; k < end; k++) {
            K other = order[k];
            rank += (k < i ? other <= key : other < key) ? 1u : 0u;
        }
        for (uint k = end; k < n; k++) {
            rank += order[k] < key ? 1u : 0u;
        }
        if (i < n && rank - w.from < w.count) {
            device RESULT* at = to + ulong(p.y) * w.count + (rank - w.from);
#if INDEX
            *at = i;
#else
            *at = keys[i];
#endif
        }
    }
}
