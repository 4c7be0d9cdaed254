// What kernels of MLX call and Metal has not: the error function and its inverse, exp(x) - 1, log(1 + x). Every driver
// needs them. erf(a) = -(exp(-g(a)) - 1) with g = -log(erfc), which is a times a polynomial. erfinv(x) is x times a
// function of w = -log(1 - x^2) (Giles, "Approximating the erfinv function", 2010). All polynomials by gen/fit.py of
// metal/msl/lib.

#pragma clang fp contract(off)

inline float erf(float x) {
  const float a = fabs(x);
  const float c = select(a, 4.0f, a > 4.0f);
  float g = 4.02859114e-05f;
  g = fma(g, c, -0.000377951306f);
  g = fma(g, c, 0.00124325417f);
  g = fma(g, c, 0.000217352295f);
  g = fma(g, c, -0.0193299949f);
  g = fma(g, c, 0.102817349f);
  g = fma(g, c, 0.636616051f);
  g = fma(g, c, 1.12837923f);
  g *= c;
  // exp(-g) = 2^n exp(-r); e is 1 - exp(-r).
  const float t = fma(g, -1.44269502f, 12583039.0f);
  const float r = fma(t - 12583039.0f, 0.693147182f, g);
  const float s = as_type<float>(as_type<int>(t) << 23);
  float e = -0.00139361469f;
  e = fma(e, r, 0.0083663892f);
  e = fma(e, r, -0.0416664518f);
  e = fma(e, r, 0.16666545f);
  e = fma(e, r, -0.5f);
  e = fma(e, r, 1.0f);
  const float y = fma(s, r * e, 1.0f - s);
  return as_type<float>(as_type<uint>(y) ^ (as_type<uint>(x) & 0x80000000u));
}

inline float erfinv(float x) {
  const float w = -metal::log(fma(x, -x, 1.0f));
  float p = -4.9865041e-09f;
  p = fma(p, w, 1.30830387e-07f);
  p = fma(p, w, -1.08504787e-06f);
  p = fma(p, w, -7.67937934e-07f);
  p = fma(p, w, 5.93214827e-05f);
  p = fma(p, w, -0.000154391033f);
  p = fma(p, w, -0.00230674981f);
  p = fma(p, w, 0.0115345428f);
  p = fma(p, w, 0.232016593f);
  p = fma(p, w, 0.886226833f);
  float q = 2.21907409e-10f;
  q = fma(q, w, -2.20799734e-08f);
  q = fma(q, w, 9.44925773e-07f);
  q = fma(q, w, -2.24693049e-05f);
  q = fma(q, w, 0.000315036217f);
  q = fma(q, w, -0.00237367721f);
  q = fma(q, w, 0.00149032206f);
  q = fma(q, w, 0.27425006f);
  q = fma(q, w, 0.82814163f);
  const float y = x * select(p, q, w > 6.125f);
  return select(y, metal::copysign(INFINITY, x), fabs(x) == 1.0f);
}

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

// log(1 + x), with what the sum 1 + x loses added to f.
inline float log1p(float x) {
  const float u = 1.0f + x;
  const float v = u - 1.0f;
  const float lost = (1.0f - (u - v)) + (x - v);
  const int i = as_type<int>(u);
  const int k = (i - 0x3f3504f3) >> 23;
  const float down = as_type<float>((127 - min(k, 126)) << 23);
  const float f = fma(lost, down, as_type<float>(i - (k << 23)) - 1.0f);
  const float e = float(k);
  float q = -0.0785158873f; // log(1 + f) - f is f^2 q
  q = fma(q, f, 0.129953489f);
  q = fma(q, f, -0.131915167f);
  q = fma(q, f, 0.141642839f);
  q = fma(q, f, -0.166136131f);
  q = fma(q, f, 0.200030208f);
  q = fma(q, f, -0.250013977f);
  q = fma(q, f, 0.333333075f);
  q = fma(q, f, -0.499999911f);
  float r = fma(e, 0.693147182f, f + fma(e, -1.90465421e-09f, f * f * q));
  r = select(u, r, u < INFINITY);
  r = select(r, select(-INFINITY, NAN, u < 0.0f), u <= 0.0f);
  return select(r, x, x == 0.0f);
}
