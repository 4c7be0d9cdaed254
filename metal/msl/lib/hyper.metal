// Hyperbolic functions: by the exponential, sinh near 0 by a polynomial of gen/fit.py; the inverse ones by log1p.

#pragma clang fp contract(off)

namespace metal {

// With a / b = tanh(x / 2), a = x p(z) and b = q(z), z = x^2 (gen/fit.py, tanhhalf), tanh(x) = 2 a b / (a^2 + b^2):
// where it comes near 1 the errors of a and b hardly matter. Above 9.02 it is 1. Of all multiples of p and q those with
// p(0) = 0.906 lose least: for small x, p, q and b^2 are then in the upper parts of their binades, where a rounding is
// the smallest part of a number.
inline float tanh(float x) {
  const float d = select(x, 9.02f, x > 9.02f);
  const float c = select(d, -9.02f, d < -9.02f);
  const float z = c * c;
  const float a = c * fma(fma(0.000103583596f, z, 0.0269782748f), z, 0.906f);
  float b = 2.22989183e-06f;
  b = fma(b, z, 0.00218693959f);
  b = fma(b, z, 0.204956487f);
  b = fma(b, z, 1.812f);
  return (a + a) * b / fma(b, b, a * a);
}

inline float sinh(float x) {
  const float a = fabs(x);
  const float z = a * a;
  float p = 2.79155392e-06f;
  p = fma(p, z, 0.000198414185f);
  p = fma(p, z, 0.00833331607f);
  p = fma(p, z, 0.166666672f);
  const float near = fma(a * z, p, a);
  const float h = detail::exp_scaled(a, -1.0f);
  const float far = h - 0.25f / h;
  return copysign(select(far, near, a < 1.0f), x);
}

inline float cosh(float x) {
  const float a = fabs(x);
  const float h = detail::exp_scaled(a, -1.0f);
  return h + 0.25f / h;
}

// log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))), and log(2a) where a^2 might overflow.
inline float asinh(float x) {
  const float a = fabs(x);
  const bool huge = a > 0x1p60f;
  const float z = a * a;
  const float t = select(a + z / (1.0f + sqrt(z + 1.0f)), a, huge);
  return copysign(log1p(t) + select(0.0f, 0.693147182f, huge), x);
}

// log(x + sqrt(x^2 - 1)) = log1p(u + sqrt(u^2 + 2u)), u = x - 1.
inline float acosh(float x) {
  const bool huge = x > 0x1p60f;
  const float u = x - 1.0f;
  const float t = select(u + sqrt(fma(u, u, u + u)), x, huge);
  return select(log1p(t) + select(0.0f, 0.693147182f, huge), NAN, x < 1.0f);
}

// log((1 + a) / (1 - a)) / 2
inline float atanh(float x) {
  const float a = fabs(x);
  return copysign(0.5f * log1p((a + a) / (1.0f - a)), x);
}

}  // namespace metal
