// Integer functions, on scalars and vectors. Integers wrap where Metal says nothing else.

namespace metal {
namespace detail {

// The scalar type of a vector, the unsigned type of the same shape.
template <typename T>
struct shape_of {
  using scalar = T;
  using bits = make_unsigned_t<T>;
};
template <typename T, int N>
struct shape_of<vec<T, N>> {
  using scalar = T;
  using bits = vec<make_unsigned_t<T>, N>;
};
template <typename T>
using scalar_of = typename shape_of<T>::scalar;
template <typename T>
using bits_of = typename shape_of<T>::bits;

template <typename T>
inline T least() {
  return T(numeric_limits<scalar_of<T>>::min());
}
template <typename T>
inline T most() {
  return T(numeric_limits<scalar_of<T>>::max());
}

}  // namespace detail

// |a - b|, which always fits the unsigned type.
template <typename T>
inline detail::bits_of<T> absdiff(T a, T b) {
  using U = detail::bits_of<T>;
  return select(U(U(a) - U(b)), U(U(b) - U(a)), a < b);
}

// a + b and a - b, held at the type's bounds.
template <typename T>
inline T addsat(T a, T b) {
  const T r = T(a + b);
  if constexpr (is_signed<detail::scalar_of<T>>::value) {
    const T bound = select(detail::most<T>(), detail::least<T>(), a < T(0));
    return select(r, bound, T((a ^ r) & (b ^ r)) < T(0));
  } else {
    return select(r, detail::most<T>(), r < a);
  }
}
template <typename T>
inline T subsat(T a, T b) {
  const T r = T(a - b);
  if constexpr (is_signed<detail::scalar_of<T>>::value) {
    const T bound = select(detail::most<T>(), detail::least<T>(), a < T(0));
    return select(r, bound, T((a ^ b) & (a ^ r)) < T(0));
  } else {
    return select(r, T(0), a < b);
  }
}

// (a + b) / 2 and (a + b + 1) / 2 rounded down, without overflow.
template <typename T>
inline T hadd(T a, T b) {
  return T((a & b) + ((a ^ b) >> T(1)));
}
template <typename T>
inline T rhadd(T a, T b) {
  return T((a | b) - ((a ^ b) >> T(1)));
}

template <typename T>
inline T madhi(T a, T b, T c) {
  return T(mulhi(a, b) + c);
}

// a * b + c held at the type's bounds: the sum is made in both halves of the product, and fits where the high half is
// an extension of the low one.
template <typename T>
inline T madsat(T a, T b, T c) {
  using U = detail::bits_of<T>;
  const U low = U(U(a) * U(b));
  const U sum = U(low + U(c));
  T high = mulhi(a, b);
  high = T(high + select(T(0), T(1), sum < low));
  if constexpr (is_signed<detail::scalar_of<T>>::value) {
    high = T(high + select(T(0), T(-1), c < T(0)));
    const T fits = select(T(0), T(-1), T(sum) < T(0));
    const T bound = select(detail::most<T>(), detail::least<T>(), high < T(0));
    return select(bound, T(sum), high == fits);
  } else {
    return select(detail::most<T>(), T(sum), high == T(0));
  }
}

// Products of 24-bit integers; of larger ones Metal leaves the result open: here their low 24 bits count.
inline int mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
inline uint mul24(uint a, uint b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int mad24(int a, int b, int c) { return mul24(a, b) + c; }
inline uint mad24(uint a, uint b, uint c) { return mul24(a, b) + c; }
#define LIB_24(T, N)                                                                     \
  inline vec<T, N> mul24(vec<T, N> a, vec<T, N> b) {                                     \
    for (int i = 0; i < N; ++i) {                                                        \
      a[i] = mul24(a[i], b[i]);                                                          \
    }                                                                                    \
    return a;                                                                            \
  }                                                                                      \
  inline vec<T, N> mad24(vec<T, N> a, vec<T, N> b, vec<T, N> c) { return mul24(a, b) + c; }
LIB_24(int, 2)
LIB_24(int, 3)
LIB_24(int, 4)
LIB_24(uint, 2)
LIB_24(uint, 3)
LIB_24(uint, 4)
#undef LIB_24

// The bits of v turned left by i, modulo the width.
template <typename T>
inline T rotate(T v, T i) {
  using U = detail::bits_of<T>;
  const U width = U(sizeof(detail::scalar_of<T>) * 8);
  const U n = U(U(i) & U(width - U(1)));
  const U back = U(U(width - n) & U(width - U(1)));
  return T(U(U(v) << n) | U(U(v) >> back));
}

// `bits` bits of v from `offset` on, sign-extended for signed types; 0 for no bits.
template <typename T>
inline T extract_bits(T v, uint offset, uint bits) {
  using S = detail::scalar_of<T>;
  const uint width = uint(sizeof(S) * 8);
  const uint up = width - min(offset + bits, width);
  const uint down = width - min(bits, width);
  const T high = T(v << T(S(up & (width - 1u))));
  return select(T(high >> T(S(down & (width - 1u)))), T(0), bits == 0u);
}

// base with `bits` bits from `offset` on taken from `insert`.
template <typename T>
inline T insert_bits(T base, T insert, uint offset, uint bits) {
  using S = detail::scalar_of<T>;
  using U = detail::bits_of<T>;
  const uint width = uint(sizeof(S) * 8);
  const U ones = select(U((U(1) << U(bits & (width - 1u))) - U(1)), U(detail::most<U>()), bits >= width);
  const U mask = U(ones << U(offset & (width - 1u)));
  const U put = U(U(insert) << U(offset & (width - 1u)));
  return T((U(base) & U(~mask)) | (put & mask));
}

}  // namespace metal
