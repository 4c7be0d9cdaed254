// The functions of Metal's library for bfloat, which Metal 3.1 has for half and float only, and MLX adds in front of
// kernels: computed in float32, rounded once. For Apple's compiler; metal/msl/lib has them.

#define PRELUDE_1(f) \
  inline bfloat f(bfloat x) { return bfloat(metal::f(float(x))); }
#define PRELUDE_2(f) \
  inline bfloat f(bfloat x, bfloat y) { return bfloat(metal::f(float(x), float(y))); }
#define PRELUDE_3(f) \
  inline bfloat f(bfloat x, bfloat y, bfloat z) { return bfloat(metal::f(float(x), float(y), float(z))); }
// Those of MLX, and no others: of the rest float's serve, whose results are float.
#define PRELUDE_MATH                                                                                         \
  PRELUDE_1(abs) PRELUDE_1(acos) PRELUDE_1(acosh) PRELUDE_1(asin) PRELUDE_1(asinh) PRELUDE_1(atan)           \
  PRELUDE_1(atanh) PRELUDE_1(ceil) PRELUDE_1(cos) PRELUDE_1(cosh) PRELUDE_1(cospi) PRELUDE_1(exp)            \
  PRELUDE_1(exp10) PRELUDE_1(exp2) PRELUDE_1(fabs) PRELUDE_1(floor) PRELUDE_1(fract) PRELUDE_1(log)          \
  PRELUDE_1(log10) PRELUDE_1(log2) PRELUDE_1(rint) PRELUDE_1(round) PRELUDE_1(rsqrt) PRELUDE_1(sin)          \
  PRELUDE_1(sinh) PRELUDE_1(sinpi) PRELUDE_1(sqrt) PRELUDE_1(tan) PRELUDE_1(tanh) PRELUDE_1(tanpi)           \
  PRELUDE_1(trunc)                                                                                           \
  PRELUDE_2(atan2) PRELUDE_2(divide) PRELUDE_2(fdim) PRELUDE_2(fmax) PRELUDE_2(fmin) PRELUDE_2(fmod)         \
  PRELUDE_2(max) PRELUDE_2(min) PRELUDE_2(pow) PRELUDE_2(powr)                                               \
  PRELUDE_3(fma) PRELUDE_3(fmax3) PRELUDE_3(fmin3) PRELUDE_3(fmedian3) PRELUDE_3(max3) PRELUDE_3(median3)    \
  PRELUDE_3(min3)                                                                                            \
  inline bfloat frexp(bfloat x, thread int& e) { return bfloat(metal::frexp(float(x), e)); }                 \
  inline bfloat ldexp(bfloat x, int e) { return bfloat(metal::ldexp(float(x), e)); }

// A SIMD-group's lanes exchange the bits, and reduce in float32.
#define PRELUDE_MOVE(f)                                                                           \
  inline bfloat f(bfloat x, ushort n) { return as_type<bfloat>(metal::f(as_type<ushort>(x), n)); }
#define PRELUDE_FILL(f)                                                                           \
  inline bfloat f(bfloat x, bfloat y, ushort n) {                                                 \
    return as_type<bfloat>(metal::f(as_type<ushort>(x), as_type<ushort>(y), n));                         \
  }

namespace metal {
PRELUDE_MATH
namespace fast {
PRELUDE_MATH
}
namespace precise {
PRELUDE_MATH
}
PRELUDE_MOVE(simd_broadcast)
PRELUDE_MOVE(simd_shuffle)
PRELUDE_MOVE(simd_shuffle_down)
PRELUDE_MOVE(simd_shuffle_up)
PRELUDE_MOVE(simd_shuffle_xor)
PRELUDE_MOVE(simd_shuffle_rotate_down)
PRELUDE_MOVE(simd_shuffle_rotate_up)
PRELUDE_FILL(simd_shuffle_and_fill_down)
PRELUDE_FILL(simd_shuffle_and_fill_up)
PRELUDE_1(simd_max)
PRELUDE_1(simd_min)
PRELUDE_1(simd_sum)
PRELUDE_1(simd_product)
PRELUDE_1(simd_prefix_exclusive_sum)
PRELUDE_1(simd_prefix_exclusive_product)
PRELUDE_1(simd_prefix_inclusive_sum)
PRELUDE_1(simd_prefix_inclusive_product)
}  // namespace metal

#undef PRELUDE_1
#undef PRELUDE_2
#undef PRELUDE_3
#undef PRELUDE_MATH
#undef PRELUDE_MOVE
#undef PRELUDE_FILL
