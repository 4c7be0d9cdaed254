// metal::numeric_limits of <metal_limits>.

namespace metal {

template <typename T>
struct _numeric_limits_impl {
  static constexpr constant bool is_specialized = false;
};
template <typename T>
struct numeric_limits : _numeric_limits_impl<remove_cv_t<T>> {};

// T: the type; MIN, MAX: its bounds; DIGITS: bits without the sign; TEN: decimal digits.
#define PRELUDE_INT_LIMITS(T, MIN, MAX, DIGITS, TEN, SIGNED)     \
  template <>                                                    \
  struct _numeric_limits_impl<T> {                               \
    static constexpr constant bool is_specialized = true;        \
    static constexpr constant bool is_signed = SIGNED;           \
    static constexpr constant bool is_integer = true;            \
    static constexpr constant bool is_exact = true;              \
    static constexpr constant bool has_infinity = false;         \
    static constexpr constant bool has_quiet_NaN = false;        \
    static constexpr constant bool has_signaling_NaN = false;    \
    static constexpr constant bool is_iec559 = false;            \
    static constexpr constant int digits = DIGITS;               \
    static constexpr constant int digits10 = TEN;                \
    static constexpr constant int max_digits10 = 0;              \
    static constexpr constant int radix = 2;                     \
    static constexpr T min() { return MIN; }                     \
    static constexpr T max() { return MAX; }                     \
    static constexpr T lowest() { return MIN; }                  \
    static constexpr T epsilon() { return T(0); }                \
    static constexpr T round_error() { return T(0); }            \
    static constexpr T infinity() { return T(0); }               \
    static constexpr T quiet_NaN() { return T(0); }              \
    static constexpr T signaling_NaN() { return T(0); }          \
    static constexpr T denorm_min() { return T(0); }             \
  };

PRELUDE_INT_LIMITS(bool, false, true, 1, 0, false)
PRELUDE_INT_LIMITS(char, char(-128), char(127), 7, 2, true)
PRELUDE_INT_LIMITS(uchar, uchar(0), uchar(255), 8, 2, false)
PRELUDE_INT_LIMITS(short, short(-32768), short(32767), 15, 4, true)
PRELUDE_INT_LIMITS(ushort, ushort(0), ushort(65535), 16, 4, false)
PRELUDE_INT_LIMITS(int, -2147483647 - 1, 2147483647, 31, 9, true)
PRELUDE_INT_LIMITS(uint, 0u, 4294967295u, 32, 9, false)
PRELUDE_INT_LIMITS(long, -9223372036854775807l - 1, 9223372036854775807l, 63, 18, true)
PRELUDE_INT_LIMITS(ulong, 0ul, 18446744073709551615ul, 64, 19, false)
#undef PRELUDE_INT_LIMITS

// B: the unsigned type of the same size, in which the special values are written as bits. DIGITS: bits of the
// significand; EMIN, EMAX: C's exponents.
#define PRELUDE_FLOAT_LIMITS(T, B, MIN, MAX, EPS, TINY, INF, QNAN, SNAN, DIGITS, TEN, TENMAX, EMIN, EMAX, TMIN, TMAX) \
  template <>                                                          \
  struct _numeric_limits_impl<T> {                                     \
    static constexpr constant bool is_specialized = true;              \
    static constexpr constant bool is_signed = true;                   \
    static constexpr constant bool is_integer = false;                 \
    static constexpr constant bool is_exact = false;                   \
    static constexpr constant bool has_infinity = true;                \
    static constexpr constant bool has_quiet_NaN = true;               \
    static constexpr constant bool has_signaling_NaN = true;           \
    static constexpr constant bool is_iec559 = true;                   \
    static constexpr constant int digits = DIGITS;                     \
    static constexpr constant int digits10 = TEN;                      \
    static constexpr constant int max_digits10 = TENMAX;               \
    static constexpr constant int radix = 2;                           \
    static constexpr constant int min_exponent = EMIN;                 \
    static constexpr constant int max_exponent = EMAX;                 \
    static constexpr constant int min_exponent10 = TMIN;               \
    static constexpr constant int max_exponent10 = TMAX;               \
    static constexpr T min() { return as_type<T>(B(MIN)); }            \
    static constexpr T max() { return as_type<T>(B(MAX)); }            \
    static constexpr T lowest() { return -as_type<T>(B(MAX)); }        \
    static constexpr T epsilon() { return as_type<T>(B(EPS)); }        \
    static constexpr T round_error() { return T(0.5f); }               \
    static constexpr T infinity() { return as_type<T>(B(INF)); }       \
    static constexpr T quiet_NaN() { return as_type<T>(B(QNAN)); }     \
    static constexpr T signaling_NaN() { return as_type<T>(B(SNAN)); } \
    static constexpr T denorm_min() { return as_type<T>(B(TINY)); }    \
  };

PRELUDE_FLOAT_LIMITS(
    half, ushort, 0x0400, 0x7bff, 0x1400, 0x0001, 0x7c00, 0x7e00, 0x7d00, 11, 3, 5, -13, 16, -4, 4)
PRELUDE_FLOAT_LIMITS(
    bfloat, ushort, 0x0080, 0x7f7f, 0x3c00, 0x0001, 0x7f80, 0x7fc0, 0x7fa0, 8, 2, 4, -125, 128, -37, 38)
PRELUDE_FLOAT_LIMITS(
    float, uint, 0x00800000u, 0x7f7fffffu, 0x34000000u, 1u, 0x7f800000u, 0x7fc00000u, 0x7fa00000u, 24, 6, 9, -125, 128,
    -37, 38)
PRELUDE_FLOAT_LIMITS(
    double, ulong, 0x0010000000000000ul, 0x7feffffffffffffful, 0x3cb0000000000000ul, 1ul, 0x7ff0000000000000ul,
    0x7ff8000000000000ul, 0x7ff4000000000000ul, 53, 15, 17, -1021, 1024, -307, 308)
#undef PRELUDE_FLOAT_LIMITS

// The bits of floats.
template <typename T>
struct _fp_encoding_traits {};
#define PRELUDE_ENCODING(T, B, SIGN, EXPONENT, MANTISSA)     \
  template <>                                                \
  struct _fp_encoding_traits<T> {                            \
    using encoding_type = B;                                 \
    static constexpr constant B sign_mask = SIGN;            \
    static constexpr constant B exponent_mask = EXPONENT;    \
    static constexpr constant B mantissa_mask = MANTISSA;    \
    static constexpr constant B inf_mask = EXPONENT;         \
  };
PRELUDE_ENCODING(half, ushort, 0x8000, 0x7c00, 0x03ff)
PRELUDE_ENCODING(bfloat, ushort, 0x8000, 0x7f80, 0x007f)
PRELUDE_ENCODING(float, uint, 0x80000000u, 0x7f800000u, 0x007fffffu)
#undef PRELUDE_ENCODING

}  // namespace metal
