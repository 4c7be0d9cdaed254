// A pass of a merge sort of rows of n keys: runs of `width` that are sorted become runs of twice the length. The
// thread of a key finds its place by counting, by bisection, the keys of the neighbouring run that come before it.
// Equal keys keep their order: of two runs the left one's come first. T is the key type, BEFORE(a, b) a strict
// order of keys. With INDEX the pass moves the keys' places in their rows and looks the keys up; without it moves
// the keys.

#pragma clang fp contract(off)

#if INDEX
typedef uint MOVED;
#define KEY(m) keys[m]
#else
typedef T MOVED;
#define KEY(m) (m)
#endif

kernel void merge_pass(const device MOVED* from [[buffer(0)]],
                       device MOVED* to [[buffer(1)]],
                       constant uint* sizes [[buffer(2)]], // n, width, whether this is the first pass
#if INDEX
                       const device T* all_keys [[buffer(3)]],
#endif
                       uint2 p [[thread_position_in_grid]]) {
    uint n = sizes[0];
    uint width = sizes[1];
    uint i = p.x;
    ulong row = ulong(p.y) * n;
#if INDEX
    const device T* keys = all_keys + row;
    bool first = sizes[2] != 0;
    uint me = first ? i : from[row + i];
#else
    T me = from[row + i];
#endif
    T key = KEY(me);
    uint run = i / width;
    bool left = run % 2 == 0;
    uint start = left ? (run + 1) * width : (run - 1) * width; // of the neighbouring run
    start = min(start, n);
    uint low = start;
    uint high = min(start + width, n);
    while (low < high) {
        uint middle = low + (high - low) / 2;
#if INDEX
        T other = KEY(first ? middle : from[row + middle]);
#else
        T other = KEY(from[row + middle]);
#endif
        bool before = left ? BEFORE(other, key) : !(BEFORE(key, other));
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    uint pair = left ? run * width : (run - 1) * width;
    to[row + pair + (i - run * width) + (low - start)] = me;
}

// Short rows: the thread of a key counts the keys that come before it, and those that are equal and stand before it.
kernel void count_ranks(const device T* all_keys [[buffer(0)]],
                        device MOVED* to [[buffer(1)]],
                        constant uint& n [[buffer(2)]],
                        uint2 p [[thread_position_in_grid]]) {
    uint i = p.x;
    ulong row = ulong(p.y) * n;
    const device T* keys = all_keys + row;
    T key = keys[i];
    uint rank = 0;
    for (uint k = 0; k < n; k++) {
        T other = keys[k];
        bool before = k < i ? !(BEFORE(key, other)) : BEFORE(other, key);
        rank += before ? 1u : 0u;
    }
#if INDEX
    to[row + rank] = i;
#else
    to[row + rank] = key;
#endif
}
