// The place of each value in the sorted row of n keys that it belongs to, of which there is one for each `each` values:
// how many keys come before the value, or, if `right`, do not come after it. K and ordered(x) are those of sorts.

#pragma clang fp contract(off)

struct Search {
    uint n, each, right;
};

kernel void search(const device K* keys [[buffer(0)]],
                   const device K* values [[buffer(1)]],
                   device uint* out [[buffer(2)]],
                   constant Search& m [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
    const device K* row = keys + ulong(i / m.each) * m.n;
    K value = ordered(values[i]);
    uint low = 0;
    uint high = m.n;
    while (low < high) {
        uint middle = low + (high - low) / 2;
        K key = ordered(row[middle]);
        bool before = m.right != 0 ? key <= value : key < value;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    out[i] = low;
}
