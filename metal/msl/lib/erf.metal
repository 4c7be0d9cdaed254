// The error function and its inverse, with the names that MLX gives them. erf(x) is x + x p(x^2) near 0 and
// 1 - exp(-q(|x|)) elsewhere, q fitted to -log(erfc). erfinv(x) is x times a function of w = -log(1 - x^2) (Giles,
// "Approximating the erfinv function", 2010). All polynomials by gen/fit.py.

#pragma clang fp contract(off)

inline float erf(float x) {
  const float a = fabs(x);
  const float z = x * x;
  float p = -0.000599200721f;
  p = fma(p, z, 0.00499402219f);
  p = fma(p, z, -0.0267677139f);
  p = fma(p, z, 0.112818651f);
  p = fma(p, z, -0.376125008f);
  p = fma(p, z, 0.128379151f);
  const float near = fma(x, p, x);
  const float t = select(a, 4.0f, a > 4.0f);
  float q = 1.93440264e-05f;
  q = fma(q, t, -0.000412816036f);
  q = fma(q, t, 0.00406049378f);
  q = fma(q, t, -0.0248161312f);
  q = fma(q, t, 0.10779646f);
  q = fma(q, t, 0.633796155f);
  q = fma(q, t, 1.12928939f);
  q = fma(q, t, -0.000127386462f);
  const float far = metal::copysign(1.0f - metal::detail::exp_normal(-q), x);
  return select(far, near, a < 0.925f);
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
