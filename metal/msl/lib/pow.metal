// pow(x, y) = 2^(y log2 |x|), the logarithm in two parts with some 10 bits beyond the type's. log2(1 + f) is
// 2 atanh(s) / ln 2 for s = f / (2 + f) with its remainder; y log2 |x| is an exact product. Special cases are C's.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// |x|^y; a is |x|.
inline float pow_magnitude(float a, float y) {
  float e;
  const float f = log_split(a, e);
  const float d = f + 2.0f;
  const float d2 = f - (d - 2.0f);
  const float rd = 1.0f / d;
  const float s = f * rd;
  const float s2 = (fma(-s, d, f) - s * d2) * rd;
  const float z = s * s;
  float p = 0.336923897f;
  p = fma(p, z, 0.41190657f);
  p = fma(p, z, 0.577079058f);
  p = fma(p, z, 0.961796701f);
  // log2(1 + f) = h + l
  const float h0 = s * 2.88539004f;
  float l = fma(s, 2.88539004f, -h0) + fma(s, 3.85192607e-08f, s2 * 2.88539004f);
  l = fma(s * z, p, l);
  const float h = h0;
  const float sum = e + h;
  l += (e - sum) + h;
  float hi = sum + l;
  float lo = (sum - hi) + l;
  hi = select(hi, -INFINITY, a == 0.0f);
  hi = select(hi, INFINITY, a == INFINITY);
  const float w = y * hi;
  const float w2 = fma(y, hi, -w) + y * lo;
  const float n = rint(w);
  const float r = (w - n) + w2;
  float q = 0.000155054862f;
  q = fma(q, r, 0.00133912999f);
  q = fma(q, r, 0.00961789861f);
  q = fma(q, r, 0.0555035882f);
  q = fma(q, r, 0.240226522f);
  q = fma(q, r, 0.693147182f);
  float m = __metal_scale(fma(r, q, 1.0f), n);
  m = select(m, INFINITY, w > 130.0f);
  m = select(m, 0.0f, w < -152.0f);
  return select(m, 1.0f, a == 1.0f || y == 0.0f);
}

}  // namespace detail

inline float pow(float x, float y) {
  const float a = fabs(x);
  float m = detail::pow_magnitude(a, y);
  const float half_y = 0.5f * y;
  const bool whole = trunc(y) == y;
  const bool odd = whole && trunc(half_y) != half_y;
  const bool minus = as_type<int>(x) < 0;
  m = select(m, -m, minus && odd);
  m = select(m, NAN, x < 0.0f && !whole && a != INFINITY);
  m = select(m, x + y, isnan(x) || isnan(y));
  return select(m, 1.0f, x == 1.0f || y == 0.0f);
}

// pow for x of 0 and above; NaN below, and where IEEE 754's powr is: 0^0, inf^0, 1^inf.
inline float powr(float x, float y) {
  const float a = fabs(x);
  float m = detail::pow_magnitude(a, y);
  const float inf = INFINITY;
  const bool vague = (y == 0.0f && (a == 0.0f || a == inf)) || (x == 1.0f && fabs(y) == inf);
  m = select(m, NAN, x < 0.0f || vague);
  return select(m, x + y, isnan(x) || isnan(y));
}

}  // namespace metal
