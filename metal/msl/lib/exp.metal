// The exponential family. x = 2 n ln 2 + r with |r| <= ln 2, 2 ln 2 in two parts (Cody and Waite, "Software Manual for
// the Elementary Functions", 1980); exp(x) = 2^n 2^n exp(r), exp(r) by a polynomial of gen/fit.py. Nothing branches.
//
// Adding 1.5 * 2^23 + 127 to a float rounds it to a whole number n and leaves n + 127 in the low bits, which, moved up
// by 23, are 2^n. Twice that factor, so that results beyond the normal range round once: a polynomial of one degree
// more costs less than to halve an exponent. min() takes care of what is too large: the polynomial is above 1 there,
// and the product overflows.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// p * 2^n for whole n, correctly rounded where |n| is below twice the largest exponent.
inline float scale_by_power(float p, float n) {
  const int k = int(n);
  const int h = k >> 1;
  return p * as_type<float>((h + 127) << 23) * as_type<float>((k - h + 127) << 23);
}

// p * 2^(2n + k) for small k, n + 127 in the low bits of t.
inline float scale_twice(float p, float t, int k) {
  const int n = as_type<int>(t);
  return p * as_type<float>(n << 23) * as_type<float>((n + k) << 23);
}

// exp(x) * 2^k for small k.
inline float exp_scaled(float x, int k) {
  const float c = select(x, -104.0f, x < -104.0f);
  const float t = min(fma(c, 0.721347511f, 12583039.0f), 12583104.0f);
  const float n = t - 12583039.0f;
  const float r = fma(n, 3.80930865e-09f, fma(n, -1.38629436f, c));
  float p = 0.000196431487f;
  p = fma(p, r, 0.00141053111f);
  p = fma(p, r, 0.00833587255f);
  p = fma(p, r, 0.0416612029f);
  p = fma(p, r, 0.16666618f);
  p = fma(p, r, 0.500000358f);
  p = fma(p, r, 1.0f);
  p = fma(p, r, 1.0f);
  return scale_twice(p, t, k);
}

}  // namespace detail

inline float exp(float x) { return detail::exp_scaled(x, 0); }

inline float exp2(float x) {
  const float c = select(x, -151.0f, x < -151.0f);
  const float t = min(fma(c, 0.5f, 12583039.0f), 12583104.0f);
  const float f = fma(t - 12583039.0f, -2.0f, c);
  float p = 1.49000216e-05f;
  p = fma(p, f, 0.000156539987f);
  p = fma(p, f, 0.00133420422f);
  p = fma(p, f, 0.0096167149f);
  p = fma(p, f, 0.055503644f);
  p = fma(p, f, 0.240226731f);
  p = fma(p, f, 0.693147242f);
  return detail::scale_twice(fma(p, f, 1.0f), t, 0);
}

inline float exp10(float x) {
  const float c = select(x, -45.5f, x < -45.5f);
  const float t = min(fma(c, 1.66096401f, 12583039.0f), 12583104.0f);
  const float n = t - 12583039.0f;
  const float f = fma(n, 2.86419779e-08f, fma(n, -0.60206002f, c));
  float p = 0.0676199049f;
  p = fma(p, f, 0.210325673f);
  p = fma(p, f, 0.53952688f);
  p = fma(p, f, 1.17108762f);
  p = fma(p, f, 2.0346725f);
  p = fma(p, f, 2.65095139f);
  p = fma(p, f, 2.30258512f);
  return detail::scale_twice(fma(p, f, 1.0f), t, 0);
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
