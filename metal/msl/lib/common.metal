// Rounding, parts of numbers and Metal's common functions. Where a half type's result is not the rounded float's, there
// is an overload of its own.

#pragma clang fp contract(off)

namespace metal {

#define LIB_EACH_FLOAT(M)            \
  M(half, ushort, short, 10, 0x7c00) \
  M(bfloat, ushort, short, 7, 0x7f80) \
  M(float, uint, int, 23, 0x7f800000u) \
  M(double, ulong, long, 52, 0x7ff0000000000000ul)

// T: the type; U, I: integers of its size; M: bits of the mantissa; INF: the bits of infinity.
#define LIB_BITS(T, U, I, M, INF)                                                                       \
  inline bool isnormal(T x) {                                                                           \
    const U a = U(as_type<U>(x) & U(~(U(1) << (sizeof(U) * 8 - 1))));                                   \
    return a >= (U(1) << M) && a < U(INF);                                                              \
  }                                                                                                     \
  /* The number next to x in the direction of y. */                                                     \
  inline T nextafter(T x, T y) {                                                                        \
    const U bits = as_type<U>(x);                                                                       \
    const U sign = U(U(1) << (sizeof(U) * 8 - 1));                                                      \
    const bool outwards = (x < y) == (I(bits) >= 0);                                                    \
    const U near = U(bits + select(U(-1), U(1), outwards));                                             \
    const U tiny = U(select(sign, U(0), y > x) | U(1));                                                 \
    const T r = as_type<T>(select(near, tiny, x == T(0)));                                              \
    return select(select(r, y, x == y), T(x + y), x != x || y != y);                                    \
  }                                                                                                     \
  inline T copysign_bits(T x, T y) {                                                                    \
    const U sign = U(U(1) << (sizeof(U) * 8 - 1));                                                      \
    return as_type<T>(U((as_type<U>(x) & U(~sign)) | (as_type<U>(y) & sign)));                          \
  }                                                                                                     \
  /* x - floor(x), below 1 even where that rounds up to 1. */                                           \
  inline T fract(T x) {                                                                                 \
    const T r = T(x - floor(x));                                                                        \
    const T below = as_type<T>(U(as_type<U>(T(1.0f)) - U(1)));                                          \
    return select(r, select(min(r, below), T(0), x - x != T(0) && x == x), x == x);                     \
  }                                                                                                     \
  /* To the nearest whole number, halves away from zero. */                                             \
  inline T round(T x) {                                                                                 \
    const T t = trunc(x);                                                                               \
    const T up = T(t + copysign_bits(T(1.0f), x));                                                      \
    return select(t, up, fabs(T(x - t)) >= T(0.5f));                                                    \
  }                                                                                                     \
  /* 1, 0, -0 or -1; 0 for NaN. */                                                                      \
  inline T sign(T x) {                                                                                  \
    return select(select(x, copysign_bits(T(1.0f), x), x != T(0)), T(0), x != x);                       \
  }                                                                                                     \
  inline T modf(T x, thread T& whole) {                                                                 \
    whole = trunc(x);                                                                                   \
    const T part = select(T(x - whole), T(0), fabs(x) == as_type<T>(U(INF)));                           \
    return copysign_bits(part, x);                                                                      \
  }
LIB_EACH_FLOAT(LIB_BITS)
#undef LIB_BITS
#undef LIB_EACH_FLOAT

// x = m 2^e with m from 1/2 to 1; zero, infinities and NaN are their own m, with e 0.
inline float frexp(float x, thread int& e) {
  const bool small = fabs(x) < 0x1p-126f;
  const uint bits = as_type<uint>(select(x, x * 0x1p23f, small));
  const bool plain = x != 0.0f && fabs(x) < INFINITY;
  e = select(0, int((bits >> 23) & 0xffu) - select(126, 149, small), plain);
  return select(x, as_type<float>((bits & 0x807fffffu) | 0x3f000000u), plain);
}
inline double frexp(double x, thread int& e) {
  const bool small = fabs(x) < 0x1p-1022l;
  const ulong bits = as_type<ulong>(select(x, x * 0x1p52l, small));
  const bool plain = x != 0.0l && fabs(x) < detail::infinity64();
  e = select(0, int((bits >> 52) & 0x7fful) - select(1022, 1074, small), plain);
  return select(x, as_type<double>((bits & 0x800ffffffffffffful) | 0x3fe0000000000000ul), plain);
}

inline int ilogb(float x) {
  int e;
  frexp(x, e);
  return select(select(e - 1, 2147483647, isinf(x)), -2147483647 - 1, x == 0.0f || x != x);
}
inline int ilogb(double x) {
  int e;
  frexp(x, e);
  return select(select(e - 1, 2147483647, isinf(x)), -2147483647 - 1, x == 0.0l || x != x);
}

// x 2^k, rounded once.
inline float ldexp(float x, int k) { return __metal_scale(x, float(k)); }
inline double ldexp(double x, int k) { return __metal_scale(x, double(k)); }

// Two roundings; infinite at 0.
inline float rsqrt(float x) { return 1.0f / sqrt(x); }
inline double rsqrt(double x) { return 1.0l / sqrt(x); }

inline float divide(float x, float y) { return x / y; }
inline float fdim(float x, float y) { return select(select(0.0f, x - y, x > y), x + y, x != x || y != y); }
inline double fdim(double x, double y) { return select(select(0.0l, x - y, x > y), x + y, x != x || y != y); }

template <typename T>
inline T max3(T a, T b, T c) {
  return max(max(a, b), c);
}
template <typename T>
inline T min3(T a, T b, T c) {
  return min(min(a, b), c);
}
template <typename T>
inline T median3(T a, T b, T c) {
  return max(min(a, b), min(max(a, b), c));
}
template <typename T>
inline T fmax3(T a, T b, T c) {
  return fmax(fmax(a, b), c);
}
template <typename T>
inline T fmin3(T a, T b, T c) {
  return fmin(fmin(a, b), c);
}
template <typename T>
inline T fmedian3(T a, T b, T c) {
  return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

inline float mix(float x, float y, float a) { return fma(y - x, a, x); }
inline double mix(double x, double y, double a) { return fma(y - x, a, x); }
inline float step(float edge, float x) { return select(1.0f, 0.0f, x < edge); }
inline double step(double edge, double x) { return select(1.0l, 0.0l, x < edge); }
inline float smoothstep(float edge0, float edge1, float x) {
  const float t = clamp((x - edge0) / (edge1 - edge0), 0.0f, 1.0f);
  return t * t * (3.0f - 2.0f * t);
}
inline double smoothstep(double edge0, double edge1, double x) {
  const double t = clamp((x - edge0) / (edge1 - edge0), 0.0l, 1.0l);
  return t * t * (3.0l - 2.0l * t);
}

inline bool isordered(float x, float y) { return x == x && y == y; }
inline bool isunordered(float x, float y) { return x != x || y != y; }

}  // namespace metal
