// The exponential family. x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts (Cody and Waite, "Software Manual for
// the Elementary Functions", 1980); exp(x) = 2^n exp(r), exp(r) by a polynomial of gen/fit.py. 2^n is applied in two
// factors, so that results beyond the normal range round once. Nothing branches.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// p * 2^n for whole n, correctly rounded where |n| is below twice the largest exponent.
inline float scale_by_power(float p, float n) {
  const int k = int(n);
  const int h = k >> 1;
  return p * as_type<float>((h + 127) << 23) * as_type<float>((k - h + 127) << 23);
}

// exp(x) * 2^k as long as that is finite and x is not enormous.
inline float exp_scaled(float x, float k) {
  const float n = rint(x * 1.44269502f);
  const float r = fma(n, 1.90465421e-09f, fma(n, -0.693147182f, x));
  float q = 0.00139371783f;
  q = fma(q, r, 0.00836893823f);
  q = fma(q, r, 0.0416664407f);
  q = fma(q, r, 0.166665182f);
  q = fma(q, r, 0.5f);
  return scale_by_power(fma(r * r, q, r) + 1.0f, n + k);
}

// exp(x) for x whose result is a normal number; NaN for NaN.
inline float exp_normal(float x) {
  const float n = rint(x * 1.44269502f);
  const float r = fma(n, 1.90465421e-09f, fma(n, -0.693147182f, x));
  float q = 0.00139371783f;
  q = fma(q, r, 0.00836893823f);
  q = fma(q, r, 0.0416664407f);
  q = fma(q, r, 0.166665182f);
  q = fma(q, r, 0.5f);
  return (fma(r * r, q, r) + 1.0f) * as_type<float>((int(n) + 127) << 23);
}

}  // namespace detail

inline float exp(float x) {
  float r = detail::exp_scaled(x, 0.0f);
  r = select(r, INFINITY, x > 89.0f);
  return select(r, 0.0f, x < -104.0f);
}

inline float exp2(float x) {
  const float n = rint(x);
  const float f = x - n;
  float q = 0.000155054862f;
  q = fma(q, f, 0.00133912999f);
  q = fma(q, f, 0.00961789861f);
  q = fma(q, f, 0.0555035882f);
  q = fma(q, f, 0.240226522f);
  q = fma(q, f, 0.693147182f);
  float r = detail::scale_by_power(fma(f, q, 1.0f), n);
  r = select(r, INFINITY, x >= 128.0f);
  return select(r, 0.0f, x < -151.0f);
}

inline float exp10(float x) {
  const float n = rint(x * 3.32192802f);
  const float f = fma(n, 1.43209888e-08f, fma(n, -0.30103001f, x));
  float q = 0.208415464f;
  q = fma(q, f, 0.541837335f);
  q = fma(q, f, 1.17122519f);
  q = fma(q, f, 2.03465581f);
  q = fma(q, f, 2.65094924f);
  q = fma(q, f, 2.30258512f);
  float r = detail::scale_by_power(fma(f, q, 1.0f), n);
  r = select(r, INFINITY, x > 38.6f);
  return select(r, 0.0f, x < -45.5f);
}

}  // namespace metal

// exp(x) - 1. 2^n (exp(r) - 1) + (2^n - 1), computed at half its size: 2^n need not be finite.
inline float expm1f(float x) {
  const float n = rint(x * 1.44269502f);
  const float r = fma(n, 1.90465421e-09f, fma(n, -0.693147182f, x));
  float q = 0.000199635644f;
  q = fma(q, r, 0.00139333354f);
  q = fma(q, r, 0.00833318662f);
  q = fma(q, r, 0.0416664816f);
  q = fma(q, r, 0.166666672f);
  q = fma(q, r, 0.5f);
  const float e = fma(r * r, q, r);
  const float t = as_type<float>((int(n) + (127 - 1)) << 23);
  const float h = fma(t, e, t - 0.5f);
  float y = select(h + h, e, n == 0.0f);
  y = select(y, INFINITY, x > 89.0f);
  y = select(y, -1.0f, x < -18.0f);
  return select(y, x, fabs(x) < 0x1p-26f);
}
