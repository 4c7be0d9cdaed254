// Logarithms. x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); log x = e log 2 + f + f^2 q(f), q by gen/fit.py.
// Nothing branches.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// The parts of x above 0: returns f, sets e. Denormals are made normal, and 23 taken off the exponent.
inline float log_split(float x, thread float& e) {
  const bool small = x < 0x1p-126f;
  const int i = as_type<int>(select(x, x * 0x1p23f, small)) - select(0x3f3504f3, 0x3f3504f3 + (23 << 23), small);
  e = float(i >> 23);
  return as_type<float>((i & 0x7fffff) + 0x3f3504f3) - 1.0f;
}

// The result where x is 0, below 0, infinite or NaN; else r.
inline float log_edges(float r, float x) {
  r = select(x, r, x < INFINITY);
  return select(r, select(-INFINITY, NAN, x < 0.0f), x <= 0.0f);
}

// log(1 + f) - f
inline float log_tail(float f) {
  float q = -0.0785158873f;
  q = fma(q, f, 0.129953489f);
  q = fma(q, f, -0.131915167f);
  q = fma(q, f, 0.141642839f);
  q = fma(q, f, -0.166136131f);
  q = fma(q, f, 0.200030208f);
  q = fma(q, f, -0.250013977f);
  q = fma(q, f, 0.333333075f);
  q = fma(q, f, -0.499999911f);
  return f * f * q;
}

}  // namespace detail

inline float log(float x) {
  float e;
  const float f = detail::log_split(x, e);
  float q = 0.0900128484f;
  q = fma(q, f, -0.144306019f);
  q = fma(q, f, 0.148770496f);
  q = fma(q, f, -0.165508315f);
  q = fma(q, f, 0.1996409f);
  q = fma(q, f, -0.250026464f);
  q = fma(q, f, 0.333339155f);
  q = fma(q, f, -0.499999821f);
  return detail::log_edges(fma(e, 0.693147182f, fma(f * f, q, f)), x);
}

inline float log2(float x) {
  float e;
  const float f = detail::log_split(x, e);
  float q = -0.113348261f;
  q = fma(q, f, 0.187532231f);
  q = fma(q, f, -0.190304995f);
  q = fma(q, f, 0.204338148f);
  q = fma(q, f, -0.239683852f);
  q = fma(q, f, 0.288583159f);
  q = fma(q, f, -0.360693932f);
  q = fma(q, f, 0.480897963f);
  q = fma(q, f, -0.721347392f);
  q = fma(q, f, 1.44269502f);
  return detail::log_edges(fma(q, f, e), x);
}

inline float log10(float x) {
  float e;
  const float f = detail::log_split(x, e);
  float q = -0.0340387151f;
  q = fma(q, f, 0.0564148687f);
  q = fma(q, f, -0.0573046207f);
  q = fma(q, f, 0.0615195371f);
  q = fma(q, f, -0.0721506476f);
  q = fma(q, f, 0.0868716985f);
  q = fma(q, f, -0.108579747f);
  q = fma(q, f, 0.144764721f);
  q = fma(q, f, -0.217147201f);
  const float low = fma(f, fma(f, q, -1.010305e-08f), e * -1.43209888e-08f);
  const float r = fma(e, 0.30103001f, fma(f, 0.434294492f, low));
  return detail::log_edges(r, x);
}

}  // namespace metal
