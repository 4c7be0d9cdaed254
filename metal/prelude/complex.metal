// Complex numbers: complex64_t and complex32_t, with MLX's order (by the real part, then the imaginary one).

#pragma clang fp contract(off)

template <typename T>
struct complex_t;

template <typename T>
static constexpr constant bool is_complex_v = false;
template <typename T>
static constexpr constant bool is_complex_v<complex_t<T>> = true;

#define PRELUDE_IF_ARITHMETIC(U) metal::enable_if_t<metal::is_arithmetic<U>::value, bool> = true

template <typename T>
struct complex_t {
  using value_type = T;

  T real;
  T imag;

  constexpr complex_t() : real(T(0)), imag(T(0)) {}
  constexpr complex_t(T re, T im) : real(re), imag(im) {}
  template <typename U, PRELUDE_IF_ARITHMETIC(U)>
  constexpr complex_t(U x) : real(static_cast<T>(x)), imag(T(0)) {}
  constexpr complex_t(vec<T, 2> v) : real(v.x), imag(v.y) {}

#define PRELUDE_CONVERT(S)                                                                \
  constexpr operator vec<T, 2>() const S { return vec<T, 2>(real, imag); }                \
  template <typename U, PRELUDE_IF_ARITHMETIC(U)>                                         \
  constexpr operator U() const S {                                                        \
    return static_cast<U>(real);                                                          \
  }
  PRELUDE_CONVERT(thread)
  PRELUDE_CONVERT(threadgroup)
  PRELUDE_CONVERT(device)
  PRELUDE_CONVERT(constant)
#undef PRELUDE_CONVERT
};

using complex32_t = complex_t<half>;
using complex64_t = complex_t<float>;

template <typename T>
constexpr complex_t<T> operator-(complex_t<T> x) {
  return complex_t<T>(-x.real, -x.imag);
}
template <typename T>
constexpr complex_t<T> operator+(complex_t<T> x) {
  return x;
}

template <typename T>
constexpr bool operator==(complex_t<T> a, complex_t<T> b) {
  return a.real == b.real && a.imag == b.imag;
}
template <typename T>
constexpr bool operator!=(complex_t<T> a, complex_t<T> b) {
  return a.real != b.real || a.imag != b.imag;
}
template <typename T>
constexpr bool operator>(complex_t<T> a, complex_t<T> b) {
  return a.real > b.real || (a.real == b.real && a.imag > b.imag);
}
template <typename T>
constexpr bool operator>=(complex_t<T> a, complex_t<T> b) {
  return a.real > b.real || (a.real == b.real && a.imag >= b.imag);
}
template <typename T>
constexpr bool operator<(complex_t<T> a, complex_t<T> b) {
  return a.real < b.real || (a.real == b.real && a.imag < b.imag);
}
template <typename T>
constexpr bool operator<=(complex_t<T> a, complex_t<T> b) {
  return a.real < b.real || (a.real == b.real && a.imag <= b.imag);
}

template <typename T>
constexpr complex_t<T> operator+(complex_t<T> a, complex_t<T> b) {
  return complex_t<T>(a.real + b.real, a.imag + b.imag);
}
template <typename T>
constexpr complex_t<T> operator-(complex_t<T> a, complex_t<T> b) {
  return complex_t<T>(a.real - b.real, a.imag - b.imag);
}
template <typename T>
constexpr complex_t<T> operator*(complex_t<T> a, complex_t<T> b) {
  return complex_t<T>(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real);
}

// Smith's division (Communications of the ACM 5, 1962): no square that overflows.
template <typename T>
constexpr complex_t<T> operator/(complex_t<T> a, complex_t<T> b) {
  const float ar = a.real, ai = a.imag, br = b.real, bi = b.imag;
  if ((br < 0.0f ? -br : br) >= (bi < 0.0f ? -bi : bi)) {
    const float ratio = bi / br;
    const float denom = br + bi * ratio;
    return complex_t<T>(T((ar + ai * ratio) / denom), T((ai - ar * ratio) / denom));
  }
  const float ratio = br / bi;
  const float denom = bi + br * ratio;
  return complex_t<T>(T((ar * ratio + ai) / denom), T((ai * ratio - ar) / denom));
}

// The remainder of each part, with the sign of b's, as MLX has it.
template <typename T>
constexpr complex_t<T> operator%(complex_t<T> a, complex_t<T> b) {
  T re = a.real - b.real * T(static_cast<int64_t>(a.real / b.real));
  T im = a.imag - b.imag * T(static_cast<int64_t>(a.imag / b.imag));
  if (re != T(0) && (re < T(0)) != (b.real < T(0))) {
    re = re + b.real;
  }
  if (im != T(0) && (im < T(0)) != (b.imag < T(0))) {
    im = im + b.imag;
  }
  return complex_t<T>(re, im);
}

// A real operand on either side.
#define PRELUDE_MIXED(OP, R)                                               \
  template <typename T, typename U, PRELUDE_IF_ARITHMETIC(U)>              \
  constexpr R operator OP(complex_t<T> a, U b) {                           \
    return a OP complex_t<T>(b);                                           \
  }                                                                        \
  template <typename T, typename U, PRELUDE_IF_ARITHMETIC(U)>              \
  constexpr R operator OP(U a, complex_t<T> b) {                           \
    return complex_t<T>(a) OP b;                                           \
  }
PRELUDE_MIXED(+, complex_t<T>)
PRELUDE_MIXED(-, complex_t<T>)
PRELUDE_MIXED(*, complex_t<T>)
PRELUDE_MIXED(/, complex_t<T>)
PRELUDE_MIXED(==, bool)
PRELUDE_MIXED(!=, bool)
PRELUDE_MIXED(<, bool)
PRELUDE_MIXED(<=, bool)
PRELUDE_MIXED(>, bool)
PRELUDE_MIXED(>=, bool)
#undef PRELUDE_MIXED

#define PRELUDE_ASSIGN(OP, S)                                                        \
  template <typename T>                                                              \
  constexpr S complex_t<T>& operator OP##=(S complex_t<T>& a, complex_t<T> b) {      \
    const complex_t<T> r = a OP b;                                                   \
    a.real = r.real;                                                                 \
    a.imag = r.imag;                                                                 \
    return a;                                                                        \
  }                                                                                  \
  template <typename T, typename U, PRELUDE_IF_ARITHMETIC(U)>                        \
  constexpr S complex_t<T>& operator OP##=(S complex_t<T>& a, U b) {                 \
    const complex_t<T> r = a OP complex_t<T>(b);                                     \
    a.real = r.real;                                                                 \
    a.imag = r.imag;                                                                 \
    return a;                                                                        \
  }
#define PRELUDE_ASSIGNS(OP) \
  PRELUDE_ASSIGN(OP, thread) PRELUDE_ASSIGN(OP, threadgroup) PRELUDE_ASSIGN(OP, device)
PRELUDE_ASSIGNS(+)
PRELUDE_ASSIGNS(-)
PRELUDE_ASSIGNS(*)
PRELUDE_ASSIGNS(/)
#undef PRELUDE_ASSIGNS
#undef PRELUDE_ASSIGN
#undef PRELUDE_IF_ARITHMETIC

template <typename T>
struct Limits<complex_t<T>> {
  static constexpr constant complex_t<T> max =
      complex_t<T>(metal::numeric_limits<T>::infinity(), metal::numeric_limits<T>::infinity());
  static constexpr constant complex_t<T> min =
      complex_t<T>(-metal::numeric_limits<T>::infinity(), -metal::numeric_limits<T>::infinity());
};

// cast_to<U>(x) is static_cast, but to bool by the bits: denormals are true also where arithmetic flushes them.
template <typename U, typename T>
inline U cast_to(T val) {
  return static_cast<U>(val);
}
template <>
inline bool cast_to<bool, float>(float val) {
  return (as_type<uint32_t>(val) & 0x7fffffffu) != 0u;
}
template <>
inline bool cast_to<bool, bfloat16_t>(bfloat16_t val) {
  return (as_type<uint16_t>(val) & 0x7fff) != 0;
}
template <>
inline bool cast_to<bool, complex64_t>(complex64_t val) {
  return cast_to<bool, float>(val.real) || cast_to<bool, float>(val.imag);
}
