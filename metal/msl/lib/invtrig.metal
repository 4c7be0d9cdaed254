// Inverse trigonometry: polynomials by gen/fit.py on [0, 1/2] (asin) and [0, 1] (atan), the rest by identities, with
// pi/2 and pi in two parts.

#pragma clang fp contract(off)

namespace metal {

inline float copysign(float x, float y) {
  return as_type<float>((as_type<uint>(x) & 0x7fffffffu) | (as_type<uint>(y) & 0x80000000u));
}

namespace detail {

// asin(t) for t from 0 to 1/2, or -1/2, given z = t^2.
inline float asin_part(float t, float z) {
  float p = 0.0414731167f;
  p = fma(p, z, 0.0246266276f);
  p = fma(p, z, 0.0453689024f);
  p = fma(p, z, 0.0749623626f);
  p = fma(p, z, 0.166667238f);
  return fma(t * z, p, t);
}

// atan(t) for t from 0 to 1.
inline float atan_part(float t) {
  const float z = t * t;
  float p = -0.00188075402f;
  p = fma(p, z, 0.0113111977f);
  p = fma(p, z, -0.0319313444f);
  p = fma(p, z, 0.0587312616f);
  p = fma(p, z, -0.0844986141f);
  p = fma(p, z, 0.109685794f);
  p = fma(p, z, -0.142674968f);
  p = fma(p, z, 0.199988693f);
  p = fma(p, z, -0.333333105f);
  return fma(t * z, p, t);
}

}  // namespace detail

inline float asin(float x) {
  const float a = fabs(x);
  const bool far = a > 0.5f;
  // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2))
  const float z = select(a * a, fma(a, -0.5f, 0.5f), far);
  const float p = detail::asin_part(select(a, sqrt(z), far), z);
  return copysign(select(p, 1.57079637f - (2.0f * p + 4.37113883e-08f), far), x);
}

inline float acos(float x) {
  const float a = fabs(x);
  const bool far = a > 0.5f;
  const float z = select(a * a, fma(a, -0.5f, 0.5f), far);
  const float p = detail::asin_part(select(x, sqrt(z), far), z);
  const float outer = select(2.0f * p, 3.14159274f - (2.0f * p + 8.74227766e-08f), x < 0.0f);
  return select(1.57079637f - (p + 4.37113883e-08f), outer, far);
}

inline float atan(float x) {
  const float a = fabs(x);
  const bool far = a > 1.0f;
  const float p = detail::atan_part(select(a, 1.0f / a, far));
  return copysign(select(p, 1.57079637f - (p + 4.37113883e-08f), far), x);
}

inline float atan2(float y, float x) {
  const float b = fabs(y), a = fabs(x);
  const bool steep = b > a;
  const float num = select(b, a, steep), den = select(a, b, steep);
  float t = num / den;
  t = select(t, 0.0f, den == 0.0f);
  t = select(t, 1.0f, num == INFINITY);
  float p = detail::atan_part(t);
  p = select(p, 1.57079637f - (p + 4.37113883e-08f), steep);
  p = select(p, 3.14159274f - (p + 8.74227766e-08f), as_type<int>(x) < 0);
  return copysign(select(p, x + y, isnan(x) || isnan(y)), y);
}

}  // namespace metal
