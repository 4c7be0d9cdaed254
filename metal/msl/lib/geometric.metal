// Geometric functions of vectors. Sums and roots are computed in float for the half types and rounded once.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// The type in which sums are made.
template <typename T>
struct sum_of {
  using type = T;
};
template <>
struct sum_of<half> {
  using type = float;
};
template <>
struct sum_of<bfloat> {
  using type = float;
};

template <typename T, int N>
inline typename sum_of<T>::type dot_wide(vec<T, N> a, vec<T, N> b) {
  using W = typename sum_of<T>::type;
  W s = W(a[0]) * W(b[0]);
  for (int i = 1; i < N; ++i) {
    s = fma(W(a[i]), W(b[i]), s);
  }
  return s;
}

}  // namespace detail

template <typename T, int N>
inline T dot(vec<T, N> a, vec<T, N> b) {
  return T(detail::dot_wide(a, b));
}
template <typename T, int N>
inline T length_squared(vec<T, N> a) {
  return T(detail::dot_wide(a, a));
}
template <typename T, int N>
inline T length(vec<T, N> a) {
  return T(sqrt(detail::dot_wide(a, a)));
}
template <typename T, int N>
inline T distance_squared(vec<T, N> a, vec<T, N> b) {
  return length_squared(a - b);
}
template <typename T, int N>
inline T distance(vec<T, N> a, vec<T, N> b) {
  return length(a - b);
}
template <typename T, int N>
inline vec<T, N> normalize(vec<T, N> a) {
  const auto r = 1.0f / sqrt(detail::dot_wide(a, a));
  for (int i = 0; i < N; ++i) {
    a[i] = T(a[i] * r);
  }
  return a;
}
template <typename T>
inline vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return a.yzx * b.zxy - a.zxy * b.yzx;
}
template <typename T, int N>
inline vec<T, N> faceforward(vec<T, N> n, vec<T, N> i, vec<T, N> nref) {
  return dot(nref, i) < T(0) ? n : -n;
}
template <typename T, int N>
inline vec<T, N> reflect(vec<T, N> i, vec<T, N> n) {
  return i - n * T(T(2) * dot(n, i));
}
template <typename T, int N>
inline vec<T, N> refract(vec<T, N> i, vec<T, N> n, T eta) {
  const T d = dot(n, i);
  const T k = T(1) - eta * eta * (T(1) - d * d);
  return k < T(0) ? vec<T, N>(T(0)) : i * eta - n * T(eta * d + sqrt(k));
}

}  // namespace metal
