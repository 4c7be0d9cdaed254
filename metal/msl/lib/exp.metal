// The exponential family. x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts (Cody and Waite, "Software Manual for
// the Elementary Functions", 1980); exp(x) = 2^n exp(r), exp(r) by a polynomial of gen/fit.py. Nothing branches.
//
// Adding 1.5 * 2^23 + b to a float rounds it to a whole number n and leaves n + b in the low bits, whose lowest nine,
// moved up by 23, are the exponent of 2^(n + b - 127). With b = 254 half of them and the other half are two factors of
// 2^n, so that results beyond the normal range round once. min() takes care of what is too large: the polynomial is
// above 1 there, and the product overflows.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// p * 2^n for whole n, correctly rounded where |n| is below twice the largest exponent.
inline float scale_by_power(float p, float n) {
  const int k = int(n);
  const int h = k >> 1;
  return p * as_type<float>((h + 127) << 23) * as_type<float>((k - h + 127) << 23);
}

// p * 2^(e - 254), e in the low bits.
inline float scale_by_bits(float p, int e) {
  const int h = e >> 1;
  return p * as_type<float>(h << 23) * as_type<float>((e - h) << 23);
}

// exp(x) * 2^k for small k.
inline float exp_scaled(float x, int k) {
  const float c = select(x, -104.0f, x < -104.0f);
  const float t = min(fma(c, 1.44269502f, 12583166.0f), 12583296.0f);
  const float n = t - 12583166.0f;
  const float r = fma(n, 1.90465421e-09f, fma(n, -0.693147182f, c));
  float p = 0.00139371783f;
  p = fma(p, r, 0.00836893823f);
  p = fma(p, r, 0.0416664407f);
  p = fma(p, r, 0.166665182f);
  p = fma(p, r, 0.5f);
  p = fma(p, r, 1.0f);
  p = fma(p, r, 1.0f);
  return scale_by_bits(p, as_type<int>(t) + k);
}

// exp(m r) - 1 for m = 1, -2 or any power of two, |m r| <= ln 2 / 2.
inline float expm1_part(float r, float m) {
  float p = 0.00139361469f * (m * m * m) * (m * m * m);
  p = fma(p, r, 0.0083663892f * (m * m * m) * (m * m));
  p = fma(p, r, 0.0416664518f * (m * m) * (m * m));
  p = fma(p, r, 0.16666545f * (m * m * m));
  p = fma(p, r, 0.5f * (m * m));
  p = fma(p, r, m);
  return r * p;
}

}  // namespace detail

inline float exp(float x) { return detail::exp_scaled(x, 0); }

inline float exp2(float x) {
  const float c = select(x, -151.0f, x < -151.0f);
  const float t = min(c + 12583166.0f, 12583294.0f);
  const float f = c - (t - 12583166.0f);
  float p = 0.000155054862f;
  p = fma(p, f, 0.00133912999f);
  p = fma(p, f, 0.00961789861f);
  p = fma(p, f, 0.0555035882f);
  p = fma(p, f, 0.240226522f);
  p = fma(p, f, 0.693147182f);
  return detail::scale_by_bits(fma(p, f, 1.0f), as_type<int>(t));
}

inline float exp10(float x) {
  const float c = select(x, -45.5f, x < -45.5f);
  const float t = min(fma(c, 3.32192802f, 12583166.0f), 12583294.0f);
  const float n = t - 12583166.0f;
  const float f = fma(n, 1.43209888e-08f, fma(n, -0.30103001f, c));
  float p = 0.208415464f;
  p = fma(p, f, 0.541837335f);
  p = fma(p, f, 1.17122519f);
  p = fma(p, f, 2.03465581f);
  p = fma(p, f, 2.65094924f);
  p = fma(p, f, 2.30258512f);
  return detail::scale_by_bits(fma(p, f, 1.0f), as_type<int>(t));
}

}  // namespace metal

// exp(x) - 1. 2^n (exp(r) - 1) + (2^n - 1), computed at half its size: 2^n need not be finite.
inline float expm1f(float x) {
  const float m = fma(x, 1.44269502f, 12583038.0f);
  const float n = m - 12583038.0f;
  const float r = fma(n, 1.90465421e-09f, fma(n, -0.693147182f, x));
  float q = 0.000199635644f;
  q = fma(q, r, 0.00139333354f);
  q = fma(q, r, 0.00833318662f);
  q = fma(q, r, 0.0416664816f);
  q = fma(q, r, 0.166666672f);
  q = fma(q, r, 0.5f);
  const float e = fma(r * r, q, r);
  const float t = as_type<float>(as_type<int>(m) << 23);
  const float h = fma(t, e, t - 0.5f);
  float y = select(h + h, e, n == 0.0f);
  y = select(y, INFINITY, x > 89.0f);
  y = select(y, -1.0f, x < -18.0f);
  return select(y, x, fabs(x) < 0x1p-26f);
}
