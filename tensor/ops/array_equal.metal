// Compares elements of type T. With NAN_EQUAL two elements that are NaN are equal: a complex number is NaN if a part
// is.

#pragma clang fp contract(off)

#if IS_COMPLEX
#define IS_NAN(z) (metal::isnan(z.real) || metal::isnan(z.imag))
#define EQUAL(x, y) (x.real == y.real && x.imag == y.imag)
#else
#define IS_NAN(z) metal::isnan(z)
#define EQUAL(x, y) (x == y)
#endif

kernel void match(device const T* a [[buffer(0)]],
                  device const T* b [[buffer(1)]],
                  device bool* out [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
    T x = a[i];
    T y = b[i];
#if NAN_EQUAL
    out[i] = EQUAL(x, y) || (IS_NAN(x) && IS_NAN(y));
#else
    out[i] = EQUAL(x, y);
#endif
}
