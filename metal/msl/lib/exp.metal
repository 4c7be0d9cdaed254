// The exponential family. x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts (Cody and Waite, "Software Manual for
// the Elementary Functions", 1980); exp(x) = 2^n exp(r), exp(r) by a polynomial of gen/fit.py (expw). Nothing branches.
//
// Adding 1.5 * 2^23 to a float rounds it to a whole number; 127 more leaves it in the low bits as the exponent of 2^n,
// which saves executors a step. min() takes care of what is too large: the polynomial is above 1 there, and the result
// overflows.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// exp(x) * 2^k for small k.
inline float exp_scaled(float x, float k) {
  const float c = select(x, -104.0f, x < -104.0f);
  const float t = min(fma(c, 1.44269502f, 12583039.0f), 12583168.0f);
  const float n = t - 12583039.0f;
  const float r = fma(n, 1.90465421e-09f, fma(n, -0.693147182f, c));
  float p = 0.00138240983f;
  p = fma(p, r, 0.00836865697f);
  p = fma(p, r, 0.0416682251f);
  p = fma(p, r, 0.166665211f);
  p = fma(p, r, 0.49999994f);
  p = fma(p, r, 1.0f);
  p = fma(p, r, 1.0f);
  return __metal_scale(p, t - (12583039.0f - k));
}

}  // namespace detail

inline float exp(float x) { return detail::exp_scaled(x, 0.0f); }

inline float exp2(float x) {
  const float c = select(x, -151.0f, x < -151.0f);
  const float n = min(c + 12583039.0f, 12583168.0f) - 12583039.0f;
  const float f = c - n;
  float p = 0.000151952219f;
  p = fma(p, f, 0.00133912999f);
  p = fma(p, f, 0.00961900596f);
  p = fma(p, f, 0.0555035882f);
  p = fma(p, f, 0.240226433f);
  p = fma(p, f, 0.693147182f);
  return __metal_scale(fma(p, f, 1.0f), n);
}

inline float exp10(float x) {
  const float c = select(x, -45.5f, x < -45.5f);
  const float n = min(fma(c, 3.32192802f, 12583039.0f), 12583168.0f) - 12583039.0f;
  const float f = fma(n, 1.43209888e-08f, fma(n, -0.30103001f, c));
  float p = 0.205301106f;
  p = fma(p, f, 0.541825533f);
  p = fma(p, f, 1.17132485f);
  p = fma(p, f, 2.03465605f);
  p = fma(p, f, 2.65094852f);
  p = fma(p, f, 2.30258512f);
  return __metal_scale(fma(p, f, 1.0f), n);
}

}  // namespace metal
