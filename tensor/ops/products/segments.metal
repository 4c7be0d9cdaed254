// A place between the first and the last of depth, both included, for kernels of segments; others are noted in bad.

#pragma clang fp contract(off)

template <typename I>
uint checked_end(I raw, uint depth, device atomic_uint* bad) {
    if (raw < I(0) || ulong(raw) > ulong(depth)) {
        return uint(checked_index(raw, 0, bad));
    }
    return uint(raw);
}
