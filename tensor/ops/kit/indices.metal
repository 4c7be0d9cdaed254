// An index into size things, counted from 0; a negative one counts from the end. One that is out of range is noted in
// bad, as its value (cut to 32 bits) plus 2^31, and counts as 0.

#pragma clang fp contract(off)

template <typename I>
long checked_index(I raw, long size, device atomic_uint* bad) {
    long i = long(raw);
    if (I(-1) > I(0) && ulong(raw) > 2147483647ul) {
        i = 2147483647L;
    }
    long shown = min(max(i, -2147483647L), 2147483647L);
    if (i < 0) {
        i += size;
    }
    if (i < 0 || i >= size) {
        atomic_fetch_max_explicit(bad, uint(shown + 2147483648L), memory_order_relaxed);
        i = 0;
    }
    return i;
}
