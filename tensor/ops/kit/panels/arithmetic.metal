// The arithmetic of products: T is the element type, ACC the type to add up in, ZERO its zero, FMA(a, b, c) a * b + c
// in it, SIMD_SUM(x) the sum of the lanes' x. COMPLEX says that they are complex.

#pragma clang fp contract(off)

#if COMPLEX
#define ZERO complex64_t(0.0f, 0.0f)
#define FMA(a, b, c) ((a) * (b) + (c))
#define SIMD_SUM(x) complex64_t(simd_sum((x).real), simd_sum((x).imag))
#else
#define ZERO ACC(0)
#define FMA(a, b, c) metal::fma(a, b, c)
#define SIMD_SUM(x) simd_sum(x)
#endif
