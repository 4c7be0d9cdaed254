// MLX's names for types, its macros, and small helpers. They have MLX's meaning; the text is ours.

#pragma clang fp contract(off)

typedef half float16_t;
typedef bfloat bfloat16_t;

#define MTL_CONST constant
#define MLX_MTL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")

// The width that MLX's own kernels work in.
static MTL_CONST constexpr int MAX_REDUCE_SPECIALIZED_DIMS = 4;
static MTL_CONST constexpr int REDUCE_N_READS = 4;
static MTL_CONST constexpr int REDUCE_N_WRITES = 4;
static MTL_CONST constexpr int SOFTMAX_N_READS = 4;
static MTL_CONST constexpr int RMS_N_READS = 4;
static MTL_CONST constexpr int RMS_LOOPED_LIMIT = 4096;

// instantiate_kernel("name", func, template arguments...) makes a kernel of a template.
#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;

// How many elements of U make 8 bytes.
template <typename U>
struct WorkPerThread {
  static_assert(sizeof(U) <= 8, "Type too large");
  static constexpr int constant n = 8 / sizeof(U);
};

template <bool condition, typename T, typename U>
struct ConditionalType {
  using type = U;
};
template <typename T, typename U>
struct ConditionalType<true, T, U> {
  using type = T;
};

// The identities of max and min, and the finite bounds.
template <typename U>
struct Limits {
  static constexpr constant U max = metal::numeric_limits<U>::max();
  static constexpr constant U min = metal::numeric_limits<U>::min();
  static constexpr constant U finite_max = metal::numeric_limits<U>::max();
  static constexpr constant U finite_min = metal::numeric_limits<U>::min();
};
template <>
struct Limits<bool> {
  static constexpr constant bool max = true;
  static constexpr constant bool min = false;
};
#define PRELUDE_LIMITS(T)                                                         \
  template <>                                                                     \
  struct Limits<T> {                                                              \
    static constexpr constant T max = metal::numeric_limits<T>::infinity();       \
    static constexpr constant T min = -metal::numeric_limits<T>::infinity();      \
    static constexpr constant T finite_max = metal::numeric_limits<T>::max();     \
    static constexpr constant T finite_min = -metal::numeric_limits<T>::max();    \
  };
PRELUDE_LIMITS(half)
PRELUDE_LIMITS(bfloat)
PRELUDE_LIMITS(float)
#undef PRELUDE_LIMITS

inline uint16_t bfloat16_to_uint16(const bfloat16_t x) { return as_type<uint16_t>(x); }
inline bfloat16_t uint16_to_bfloat16(const uint16_t x) { return as_type<bfloat16_t>(x); }

// N / M rounded up, for whole numbers above zero.
template <typename T, typename U>
inline T ceildiv(T N, U M) {
  return (N + M - 1) / M;
}

// sqrt(x*x + y*y) without overflow on the way; infinite if a side is, even when the other is NaN.
inline float hypot(float x, float y) {
  const float a = metal::fabs(x), b = metal::fabs(y);
  const bool swap = a < b;
  const float big = swap ? b : a, small = swap ? a : b;
  const float r = small / big;
  const float h = big * metal::sqrt(metal::fma(r, r, 1.0f));
  const bool infinite = a == INFINITY || b == INFINITY;
  return infinite ? INFINITY : (big == 0.0f ? a + b : h);
}

// a modulo b with the sign of b, as in Python; NaN for b = 0.
template <typename T>
inline T floor_mod(T a, T b) {
  const T r = metal::fmod(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
}

// a to the power of b, wrapping; 0 for negative b.
template <typename T>
inline T integer_power(T a, T b) {
  T r = b < T(0) ? T(0) : T(1);
  while (b > T(0)) {
    if ((b & T(1)) != T(0)) {
      r = T(r * a);
    }
    a = T(a * a);
    b = T(b >> 1);
  }
  return r;
}
