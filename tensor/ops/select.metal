// Finds the key at place kth of a row's order and keeps a window of places around it, without sorting: histograms of
// one digit (digits.metal) of the keys whose higher digits are known, the highest first, until the key at kth is known
// or the only one left. Then the keys before it, those equal to it and those after it go to their places, each kind in
// the row's order. With INDEX the places in the row are kept instead of keys. A row is cut into chunks of `length`
// keys, each the work of one SIMD-group.

#pragma clang fp contract(off)

struct Select {
    uint n, length, chunks; // of a row
    uint kth;
    uint from, count; // the window
    uint shift;       // of the pass' bits
};

// Where a row's search stands: `count` keys have the digits known so far, which are those above `shift` bits, and the
// one looked for is at place `left` among them.
struct Search {
    K digits;
    uint shift, left, count;
};

// Counts the digits of those of up to 32 keys from i on, before end, whose digits above are known to be those of the
// key looked for.
template <bool whole>
void count_some(threadgroup uint* table, const device K* keys, uint i, uint end, Search s, uint lane) {
    bool mine = whole || i + lane < end;
    K key = ordered(keys[mine ? i + lane : i]);
    mine = mine && K((key >> (s.shift - 8)) >> 8) == s.digits;
    uint valid = uint(ulong(simd_ballot(mine)));
    if (valid == 0) {
        return;
    }
    uint d = uint(key >> (s.shift - 8)) & 255u;
    uint peers = peers_of(d, valid);
    if (mine && (peers >> lane) == 1) { // the last one of them
        table[d] += popcount(peers);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

inline void count_all(threadgroup uint* table, const device K* keys, uint start, uint end, Search s, uint lane) {
    clear(table, lane);
    uint i = start;
    for (; i + 32 <= end; i += 32) {
        count_some<true>(table, keys, i, end, s, lane);
    }
    if (i < end) {
        count_some<false>(table, keys, i, end, s, lane);
    }
}

// The search after the digit whose histogram the table is.
inline Search next(const threadgroup uint* table, Search s, uint lane) {
    uint before = 0, digit = 0, passed = 0, count = 0;
    for (uint d = 0; d < 256; d += 32) {
        uint n = table[d + lane];
        uint first = before + simd_prefix_exclusive_sum(n);
        if (first <= s.left && s.left - first < n) {
            digit = d + lane;
            passed = first;
            count = n;
        }
        before += simd_sum(n);
    }
    s.digits = K(K(s.digits << 8) | K(simd_sum(digit)));
    s.shift -= 8;
    s.left -= simd_sum(passed);
    s.count = simd_sum(count);
    return s;
}

inline bool found(Search s) { return s.shift == 0 || s.count == 1; }

// How many of 32 keys, and which lanes', come before the one looked for and are equal to it.
struct Kinds {
    uint less, equal;
};

inline Kinds kinds_of(K x, bool mine, Search s) {
    K digits = K(ordered(x) >> s.shift);
    Kinds k;
    k.less = uint(ulong(simd_ballot(mine && digits < s.digits)));
    k.equal = uint(ulong(simd_ballot(mine && digits == s.digits)));
    return k;
}

// Keeps what lies in the window of the keys from start to end; less and equal of these kinds stand before start.
inline void keep(const device K* keys, device RESULT* to, uint start, uint end, uint less, uint equal, Search s,
                 constant Select& m, uint lane) {
    uint first_equal = m.kth - s.left;
    uint first_greater = first_equal + s.count;
    bool keeps_less = m.from < first_equal, keeps_greater = m.from + m.count > first_greater;
    uint below = (1u << lane) - 1u;
    for (uint i = start; i < end; i += 32) {
        bool mine = i + lane < end;
        K x = keys[mine ? i + lane : i];
        Kinds k = kinds_of(x, mine, s);
        uint all = end - i >= 32 ? 0xFFFFFFFFu : (1u << (end - i)) - 1u;
        uint greater = all & ~(k.less | k.equal);
        uint wanted = k.equal | (keeps_less ? k.less : 0u) | (keeps_greater ? greater : 0u);
        if (wanted != 0) {
            bool is_less = ((k.less >> lane) & 1u) != 0, is_equal = ((k.equal >> lane) & 1u) != 0;
            uint before = is_less ? less : is_equal ? first_equal + equal : first_greater + (i - less - equal);
            uint place = before + popcount((is_less ? k.less : is_equal ? k.equal : greater) & below);
            if (mine && place - m.from < m.count) {
#if INDEX
                to[place - m.from] = i + lane;
#else
                to[place - m.from] = x;
#endif
            }
        }
        less += popcount(k.less);
        equal += popcount(k.equal);
    }
}

// All steps, for rows that are one chunk.
kernel void select_rows(const device K* keys [[buffer(0)]],
                        device RESULT* to [[buffer(1)]],
                        constant Select& m [[buffer(2)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint table[256];
    const device K* row = keys + ulong(group.y) * m.n;
    Search s;
    s.digits = 0;
    s.shift = 8 * sizeof(K);
    s.left = m.kth;
    s.count = m.n;
    while (!found(s)) {
        count_all(table, row, 0, m.n, s, lane);
        s = next(table, s, lane);
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    keep(row, to + ulong(group.y) * m.count, 0, m.n, 0, 0, s, m, lane);
}

// Where the search in a row stands before the pass of m.shift.
inline Search load(const device K* digits, const device uint* state, uint row, constant Select& m) {
    Search s;
    if (m.shift + 8 == 8 * sizeof(K)) {
        s.digits = 0;
        s.shift = 8 * sizeof(K);
        s.left = m.kth;
        s.count = m.n;
    } else {
        s.digits = digits[row];
        s.shift = state[3 * row];
        s.left = state[3 * row + 1];
        s.count = state[3 * row + 2];
    }
    return s;
}

// The first step of a pass over rows of several chunks: a chunk's histogram.
kernel void count_chunk(const device K* keys [[buffer(0)]],
                        const device K* digits [[buffer(1)]],
                        const device uint* state [[buffer(2)]],
                        device uint* counts [[buffer(3)]],
                        constant Select& m [[buffer(4)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint table[256];
    Search s = load(digits, state, group.z, m);
    if (found(s)) {
        return;
    }
    uint start = group.y * m.length;
    count_all(table, keys + ulong(group.z) * m.n, start, min(start + m.length, m.n), s, lane);
    device uint* to = counts + (ulong(group.z) * m.chunks + group.y) * 256;
    for (uint d = lane; d < 256; d += 32) {
        to[d] = table[d];
    }
}

// The second step: the digit of the key looked for.
kernel void next_digit(const device uint* counts [[buffer(0)]],
                       device K* digits [[buffer(1)]],
                       device uint* state [[buffer(2)]],
                       constant Select& m [[buffer(3)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint table[256];
    uint row = group.y;
    Search s = load(digits, state, row, m);
    if (found(s)) {
        return;
    }
    const device uint* from = counts + ulong(row) * m.chunks * 256;
    for (uint d = lane; d < 256; d += 32) {
        uint n = 0;
        for (uint c = 0; c < m.chunks; c++) {
            n += from[ulong(c) * 256 + d];
        }
        table[d] = n;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    s = next(table, s, lane);
    if (lane == 0) {
        digits[row] = s.digits;
        state[3 * row] = s.shift;
        state[3 * row + 1] = s.left;
        state[3 * row + 2] = s.count;
    }
}

// Then: how many keys of a chunk come before the one looked for, and are equal to it.
kernel void count_kinds(const device K* keys [[buffer(0)]],
                        const device K* digits [[buffer(1)]],
                        const device uint* state [[buffer(2)]],
                        device uint* kinds [[buffer(3)]],
                        constant Select& m [[buffer(4)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    Search s;
    s.digits = digits[group.z];
    s.shift = state[3 * group.z];
    uint start = group.y * m.length, end = min(start + m.length, m.n);
    const device K* row = keys + ulong(group.z) * m.n;
    uint less = 0, equal = 0;
    for (uint i = start; i < end; i += 32) {
        bool mine = i + lane < end;
        Kinds k = kinds_of(row[mine ? i + lane : i], mine, s);
        less += popcount(k.less);
        equal += popcount(k.equal);
    }
    if (lane == 0) {
        device uint* to = kinds + ulong(group.z) * 2 * m.chunks + group.y;
        to[0] = less;
        to[m.chunks] = equal;
    }
}

// The sums of both over the chunks before each.
kernel void add_kinds(device uint* kinds [[buffer(0)]],
                      constant Select& m [[buffer(1)]],
                      uint3 group [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
    device uint* row = kinds + ulong(group.y) * m.chunks; // of one kind
    uint before = 0;
    for (uint c = 0; c < m.chunks; c += 32) {
        bool mine = c + lane < m.chunks;
        uint n = mine ? row[c + lane] : 0;
        uint first = before + simd_prefix_exclusive_sum(n);
        if (mine) {
            row[c + lane] = first;
        }
        before += simd_sum(n);
    }
}

// Last, what lies in the window goes to its place.
kernel void keep_chunk(const device K* keys [[buffer(0)]],
                       const device K* digits [[buffer(1)]],
                       const device uint* state [[buffer(2)]],
                       const device uint* kinds [[buffer(3)]],
                       device RESULT* to [[buffer(4)]],
                       constant Select& m [[buffer(5)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    Search s;
    s.digits = digits[group.z];
    s.shift = state[3 * group.z];
    s.left = state[3 * group.z + 1];
    s.count = state[3 * group.z + 2];
    const device uint* before = kinds + ulong(group.z) * 2 * m.chunks + group.y;
    uint start = group.y * m.length;
    keep(keys + ulong(group.z) * m.n, to + ulong(group.z) * m.count, start, min(start + m.length, m.n), before[0],
         before[m.chunks], s, m, lane);
}

// The places that row-wise orders of selected keys stand for.
kernel void compose(const device uint* places [[buffer(0)]],
                    const device uint* order [[buffer(1)]],
                    device uint* to [[buffer(2)]],
                    constant uint& k [[buffer(3)]],
                    uint2 p [[thread_position_in_grid]]) {
    ulong row = ulong(p.y) * k;
    to[row + p.x] = places[row + order[row + p.x]];
}

// The keys at places.
kernel void keys_at(const device K* keys [[buffer(0)]],
                    const device uint* places [[buffer(1)]],
                    device K* to [[buffer(2)]],
                    constant uint& n [[buffer(3)]],
                    constant uint& k [[buffer(4)]],
                    uint2 p [[thread_position_in_grid]]) {
    ulong at = ulong(p.y) * k + p.x;
    to[at] = keys[ulong(p.y) * n + places[at]];
}
