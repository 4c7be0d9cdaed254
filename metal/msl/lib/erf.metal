// The error function and its inverse, with the names that MLX gives them. erf(a) = -(exp(-g(a)) - 1) with
// g = -log(erfc),
// which is a times a polynomial. erfinv(x) is x times a function of w = -log(1 - x^2) (Giles, "Approximating the
// erfinv function", 2010). All polynomials by gen/fit.py.

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
  return metal::detail::flip_sign(y, as_type<uint>(x) & 0x80000000u);
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
