// Functions of complex64_t, for the built-in ops; principal branches as in C99's Annex G where it gives a number.

#pragma clang fp contract(off)

inline float complex_abs(complex64_t z) { return hypot(z.real, z.imag); }

// z/|z|, and 0 for 0.
inline complex64_t complex_sign(complex64_t z) {
  if (z.real == 0.0f && z.imag == 0.0f) {
    return z;
  }
  const float r = complex_abs(z);
  return complex64_t(z.real / r, z.imag / r);
}

inline complex64_t complex_exp(complex64_t z) {
  // exp(x + iy) = exp(x) cos y + i exp(x) sin y. In two factors, lest exp(x) overflows before a small cosine meets it;
  // a real number stays real, and exp(-inf) is 0 for every y.
  const float half_exp = metal::exp(0.5f * z.real);
  const bool gone = z.real == -INFINITY;
  const float c = gone ? 1.0f : metal::cos(z.imag);
  const float s = z.imag == 0.0f ? z.imag : (gone ? 1.0f : metal::sin(z.imag));
  const float im = z.imag == 0.0f ? z.imag : (s * half_exp) * half_exp;
  const float whole = metal::exp(z.real);
  const bool plain = whole < INFINITY && whole > FLT_MIN;
  return complex64_t(plain ? whole * c : (c * half_exp) * half_exp, plain ? whole * s : im);
}

inline complex64_t complex_log(complex64_t z) {
  // Near |z| = 1 the logarithm of the modulus cancels: log|z| = log1p((|z|^2 - 1) / 2), the larger part factored out.
  const float a = metal::fabs(z.real), b = metal::fabs(z.imag);
  const float big = metal::max(a, b), small = metal::min(a, b);
  const bool near = big > 0.5f && big < 1.5f;
  const float d = metal::fma(big - 1.0f, big + 1.0f, small * small);
  const float re = near ? 0.5f * log1p(d) : metal::log(complex_abs(z));
  return complex64_t(re, metal::atan2(z.imag, z.real));
}

// z times a real number: an infinite part leaves the other one what it is.
inline complex64_t complex_scale(complex64_t z, float by) { return complex64_t(z.real * by, z.imag * by); }

inline complex64_t complex_sqrt(complex64_t z) {
  if (z.real == 0.0f && z.imag == 0.0f) {
    return complex64_t(0.0f, z.imag);
  }
  if (metal::fabs(z.imag) == INFINITY) {
    return complex64_t(INFINITY, z.imag);
  }
  // The part that adds magnitudes loses nothing; the other follows from re * im = z.imag / 2. A quarter keeps the sum
  // in range.
  const float a = metal::fabs(z.real);
  if (a == INFINITY) {
    const float zero = z.imag == z.imag ? 0.0f : z.imag;
    return z.real > 0.0f ? complex64_t(INFINITY, metal::copysign(zero, z.imag))
                         : complex64_t(zero, metal::copysign(INFINITY, z.imag));
  }
  const bool tiny = a < 0x1p-100f && metal::fabs(z.imag) < 0x1p-100f;
  const float scale = tiny ? 0x1p100f : 0.25f, back = tiny ? 0x1p-50f : 2.0f;
  const float re = a * scale, im = z.imag * scale;
  const float t = metal::sqrt(0.5f * (re + hypot(re, im)));
  const float other = (im / t) * 0.5f;
  return z.real >= 0.0f ? complex64_t(t * back, other * back)
                        : complex64_t(metal::fabs(other) * back, metal::copysign(t * back, z.imag));
}

// A product whose zero factor wins over infinity: the imaginary part of a function of a real number.
inline float complex_part(float zero, float other) { return zero == 0.0f ? zero : zero * other; }

inline complex64_t complex_sin(complex64_t z) {
  const float s = metal::sin(z.real), c = metal::cos(z.real);
  return complex64_t(complex_part(s, metal::cosh(z.imag)), complex_part(metal::sinh(z.imag), c));
}

inline complex64_t complex_cos(complex64_t z) {
  const float s = metal::sin(z.real), c = metal::cos(z.real);
  return complex64_t(c * metal::cosh(z.imag), -complex_part(s, metal::sinh(z.imag)));
}

inline complex64_t complex_sinh(complex64_t z) {
  const float s = metal::sin(z.imag), c = metal::cos(z.imag);
  return complex64_t(complex_part(metal::sinh(z.real), c), complex_part(s, metal::cosh(z.real)));
}

inline complex64_t complex_cosh(complex64_t z) {
  const float s = metal::sin(z.imag), c = metal::cos(z.imag);
  return complex64_t(metal::cosh(z.real) * c, complex_part(s, metal::sinh(z.real)));
}

inline complex64_t complex_tanh(complex64_t z) {
  // (tanh x + i tan y) / (1 + i tanh x tan y), with 1 - tanh^2 as 1/cosh^2 for the imaginary part, which would cancel.
  const float h = metal::tanh(z.real), t = metal::tan(z.imag);
  const float sech = 1.0f / metal::cosh(z.real);
  const float ht = h * t;
  const float d = metal::fma(ht, ht, 1.0f);
  return complex64_t(h * metal::fma(t, t, 1.0f) / d, complex_part(t, sech * sech) / d);
}

inline complex64_t complex_tan(complex64_t z) {
  const complex64_t w = complex_tanh(complex64_t(-z.imag, z.real));
  return complex64_t(w.imag, -w.real);
}

inline complex64_t complex_rsqrt(complex64_t z) { return complex64_t(1.0f, 0.0f) / complex_sqrt(z); }

// exp(b log a); 0 to a power is 0, and 1 for power 0.
inline complex64_t complex_pow(complex64_t a, complex64_t b) {
  if (b.real == 0.0f && b.imag == 0.0f) {
    return complex64_t(1.0f, 0.0f);
  }
  if (a.real == 0.0f && a.imag == 0.0f && b.real > 0.0f) {
    return complex64_t(0.0f, 0.0f);
  }
  return complex_exp(b * complex_log(a));
}

inline complex64_t log1p(complex64_t z) {
  const float theta = metal::atan2(z.imag, z.real + 1.0f);
  if (complex_abs(z) < 0.5f) {
    // |1 + z|^2 - 1
    const float r = metal::fma(z.real, 2.0f + z.real, z.imag * z.imag);
    return complex64_t(r == 0.0f ? z.real : 0.5f * log1p(r), theta);
  }
  return complex64_t(metal::log(hypot(z.real + 1.0f, z.imag)), theta);
}

inline complex64_t complex_atanh(complex64_t z) {
  const complex64_t a = log1p(z), b = log1p(-z);
  return complex64_t(0.5f * (a.real - b.real), 0.5f * (a.imag - b.imag));
}

inline complex64_t complex_atan(complex64_t z) {
  const complex64_t w = complex_atanh(complex64_t(-z.imag, z.real));
  return complex64_t(w.imag, -w.real);
}

// The square roots of 1 - z and 1 + z, or of z - 1 and z + 1, tell the inverse sines and cosines apart without a
// difference of nearly equal numbers.
inline complex64_t complex_asin(complex64_t z) {
  const complex64_t a = complex_sqrt(complex64_t(1.0f - z.real, -z.imag));
  const complex64_t b = complex_sqrt(complex64_t(1.0f + z.real, z.imag));
  return complex64_t(metal::atan2(z.real, a.real * b.real - a.imag * b.imag),
                     metal::asinh(a.real * b.imag - a.imag * b.real));
}

inline complex64_t complex_acos(complex64_t z) {
  const complex64_t a = complex_sqrt(complex64_t(1.0f - z.real, -z.imag));
  const complex64_t b = complex_sqrt(complex64_t(1.0f + z.real, z.imag));
  return complex64_t(2.0f * metal::atan2(a.real, b.real), metal::asinh(b.real * a.imag - b.imag * a.real));
}

inline complex64_t complex_asinh(complex64_t z) {
  const complex64_t w = complex_asin(complex64_t(-z.imag, z.real));
  return complex64_t(w.imag, -w.real);
}

inline complex64_t complex_acosh(complex64_t z) {
  const complex64_t a = complex_sqrt(complex64_t(z.real - 1.0f, z.imag));
  const complex64_t b = complex_sqrt(complex64_t(z.real + 1.0f, z.imag));
  return complex64_t(metal::asinh(a.real * b.real + a.imag * b.imag), 2.0f * metal::atan2(a.imag, b.real));
}
