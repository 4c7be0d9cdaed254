// The names by which <simd/simd.h>, a header that programs share with their kernels, calls Metal's vectors and
// matrices.
#pragma clang fp contract(off)

#define PRELUDE_VECTOR(type, n) \
  typedef metal::vec<type, n> simd_##type##n; \
  typedef metal::vec<type, n> vector_##type##n;
#define PRELUDE_VECTORS(type) PRELUDE_VECTOR(type, 2) PRELUDE_VECTOR(type, 3) PRELUDE_VECTOR(type, 4)
PRELUDE_VECTORS(char)
PRELUDE_VECTORS(uchar)
PRELUDE_VECTORS(short)
PRELUDE_VECTORS(ushort)
PRELUDE_VECTORS(int)
PRELUDE_VECTORS(uint)
PRELUDE_VECTORS(long)
PRELUDE_VECTORS(ulong)
PRELUDE_VECTORS(half)
PRELUDE_VECTORS(float)
#undef PRELUDE_VECTORS
#undef PRELUDE_VECTOR

#define PRELUDE_MATRICES(type, n) \
  typedef metal::matrix<type, n, 2> simd_##type##n##x2; \
  typedef metal::matrix<type, n, 3> simd_##type##n##x3; \
  typedef metal::matrix<type, n, 4> simd_##type##n##x4; \
  typedef metal::matrix<type, n, 2> matrix_##type##n##x2; \
  typedef metal::matrix<type, n, 3> matrix_##type##n##x3; \
  typedef metal::matrix<type, n, 4> matrix_##type##n##x4;
PRELUDE_MATRICES(half, 2)
PRELUDE_MATRICES(half, 3)
PRELUDE_MATRICES(half, 4)
PRELUDE_MATRICES(float, 2)
PRELUDE_MATRICES(float, 3)
PRELUDE_MATRICES(float, 4)
#undef PRELUDE_MATRICES

namespace simd = metal;
