// Where element i of a shape lies, in elements, for an array that steps through the shape's ndim dimensions by strides.

#pragma clang fp contract(off)

inline long offset_of(uint i, constant uint* shape, constant long* strides, int ndim) {
    long at = 0;
    for (int d = ndim - 1; d > 0; d--) {
        uint n = shape[d];
        at += long(i % n) * strides[d];
        i = i / n;
    }
    return at + long(i) * strides[0];
}
