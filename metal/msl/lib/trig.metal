// Trigonometry. a = n pi/2 + r, |r| <= pi/4: with pi/2 in three parts (Cody and Waite; with fma exact enough up to the
// bound below), and for larger arguments with the digits of 2/pi that their exponent asks for (Payne and Hanek, "Radian
// reduction for trigonometric functions", 1983). Only that last case branches. Polynomials by gen/fit.py.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// 2/pi in binary, after 32 zeros that stand before its point.
constant uint two_over_pi[7] = {
    0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
};

// The 32 bits of 2/pi from bit j of word i on.
inline ulong two_over_pi_bits(uint i, uint j) {
  return ((ulong(two_over_pi[i]) << 32 | ulong(two_over_pi[i + 1])) << j) >> 32;
}

// Payne and Hanek's reduction of a finite a above 2^16: a = (q + f) pi/2, all arithmetic modulo 4 quadrants, in
// units of 2^-62 quadrants.
inline float reduce_large(float a, thread int& q) {
  const uint bits = as_type<uint>(a);
  const uint at = (bits >> 23) - 128;
  const ulong m = ulong((bits & 0x7fffffu) << 8 | 0x80000000u);
  const uint i = at >> 5, j = at & 31;
  ulong p = (m * two_over_pi_bits(i, j)) << 32;
  p += m * two_over_pi_bits(i + 1, j);
  p += (m * two_over_pi_bits(i + 2, j)) >> 32;
  const long f = long(p << 2);
  q = int((p + 0x2000000000000000ul) >> 62);
  const float high = float(f);
  const float low = float(f - long(high));
  return fma(high, 8.51530419e-20f, fma(high, -2.36959911e-27f, low * 8.51530419e-20f));
}

// a >= 0: returns r, sets q to n modulo 4 (other bits are of no meaning). NaN for infinity and NaN.
inline float trig_reduce(float a, thread int& q) {
  const float t = fma(a, 0.636619747f, 12582912.0f); // rounds, and leaves the whole number in the low bits
  const float n = t - 12582912.0f;
  float r = fma(n, 1.71512451e-15f, fma(n, 4.37113883e-08f, fma(n, -1.57079637f, a)));
  q = as_type<int>(t);
  if (a > 65536.0f) {
    r = reduce_large(a, q);
    r = select(r, NAN, a == INFINITY);
  }
  return r;
}

inline float sin_part(float r, float z) {
  float p = 2.80830864e-06f;
  p = fma(p, z, -0.000198506852f);
  p = fma(p, z, 0.00833337381f);
  p = fma(p, z, -0.166666672f);
  return fma(r * z, p, r);
}

inline float cos_part(float z) {
  float p = 2.44329785e-05f;
  p = fma(p, z, -0.0013887313f);
  p = fma(p, z, 0.0416666456f);
  p = fma(p, z, -0.5f);
  return fma(p, z, 1.0f);
}

inline float flip_sign(float x, uint sign) { return as_type<float>(as_type<uint>(x) ^ sign); }

// The sign bit of quadrants 2 and 3.
inline uint quadrant_sign(int q) { return uint(q & 2) << 30; }

}  // namespace detail

inline float sin(float x) {
  int q;
  const float r = detail::trig_reduce(fabs(x), q);
  const float z = r * r;
  const float y = select(detail::sin_part(r, z), detail::cos_part(z), (q & 1) != 0);
  return detail::flip_sign(y, detail::quadrant_sign(q) ^ (as_type<uint>(x) & 0x80000000u));
}

inline float cos(float x) {
  int q;
  const float r = detail::trig_reduce(fabs(x), q);
  const float z = r * r;
  const float y = select(detail::cos_part(z), detail::sin_part(r, z), (q & 1) != 0);
  return detail::flip_sign(y, detail::quadrant_sign(q + 1));
}

inline float sincos(float x, thread float& cosine) {
  int q;
  const float r = detail::trig_reduce(fabs(x), q);
  const float z = r * r;
  const float s = detail::sin_part(r, z), c = detail::cos_part(z);
  const bool odd = (q & 1) != 0;
  cosine = detail::flip_sign(select(c, s, odd), detail::quadrant_sign(q + 1));
  return detail::flip_sign(select(s, c, odd), detail::quadrant_sign(q) ^ (as_type<uint>(x) & 0x80000000u));
}

inline float tan(float x) {
  int q;
  const float r = detail::trig_reduce(fabs(x), q);
  const float z = r * r;
  float p = 0.00435375702f;
  p = fma(p, z, 0.000144612422f);
  p = fma(p, z, 0.0107823219f);
  p = fma(p, z, 0.0213082768f);
  p = fma(p, z, 0.0540532954f);
  p = fma(p, z, 0.133327439f);
  p = fma(p, z, 0.333333462f);
  const float t = fma(r * z, p, r);
  const float y = select(t, -1.0f / t, (q & 1) != 0);
  return detail::flip_sign(y, as_type<uint>(x) & 0x80000000u);
}

namespace detail {

// x >= 0: half turns, x = n/2 + r with n modulo 4 in q, exactly. NaN for infinity.
inline float halfturn_reduce(float a, thread int& q) {
  const float b = fma(rint(0.5f * a), -2.0f, a);
  const float n = rint(b + b);
  q = int(n);
  return fma(n, -0.5f, b);
}

inline float sinpi_part(float r, float z) {
  float p = 0.0796789825f;
  p = fma(p, z, -0.599032283f);
  p = fma(p, z, 2.55015588f);
  p = fma(p, z, -5.16771269f);
  return fma(r, 3.14159274f, r * fma(z, p, -8.74227766e-08f));
}

inline float cospi_part(float z) {
  float p = 0.0614154674f;
  p = fma(p, z, 0.221237093f);
  p = fma(p, z, -1.33445942f);
  p = fma(p, z, 4.05869341f);
  p = fma(p, z, -4.93480206f);
  return fma(z, p, 1.0f);
}

}  // namespace detail

inline float sinpi(float x) {
  int q;
  const float r = detail::halfturn_reduce(fabs(x), q);
  const float z = r * r;
  float y = select(detail::sinpi_part(r, z), detail::cospi_part(z), (q & 1) != 0);
  // Adding zero makes -0 +0: at whole numbers the result has the sign of x alone.
  y = detail::flip_sign(y, detail::quadrant_sign(q)) + 0.0f;
  return detail::flip_sign(y, as_type<uint>(x) & 0x80000000u);
}

inline float cospi(float x) {
  int q;
  const float r = detail::halfturn_reduce(fabs(x), q);
  const float z = r * r;
  const float y = select(detail::cospi_part(z), detail::sinpi_part(r, z), (q & 1) != 0);
  return detail::flip_sign(y, detail::quadrant_sign(q + 1)) + 0.0f;
}

inline float tanpi(float x) {
  int q;
  const float r = detail::halfturn_reduce(fabs(x), q);
  const float z = r * r;
  const float s = detail::sinpi_part(r, z), c = detail::cospi_part(z);
  const bool odd = (q & 1) != 0;
  float y = select(s, -c, odd) / select(c, s, odd);
  // IEEE 754: the poles at 1/2, 5/2, ... are +inf, those between are -inf.
  y = select(y, select(INFINITY, -INFINITY, (q & 2) != 0), odd && r == 0.0f);
  return detail::flip_sign(y, as_type<uint>(x) & 0x80000000u);
}

}  // namespace metal
