// Double: only built-in kernels of float64 reach it. The method is that of hyper.metal.

#pragma clang fp contract(off)

namespace metal {

inline double tanh(double x) {
  const double a = fabs(x);
  const double z = a * a;
  double p = -1.9811817168338968e-05l;
  p = fma(p, z, 8.385394685874885e-05l);
  p = fma(p, z, -0.00023377572610693015l);
  p = fma(p, z, 0.0005886081947875578l);
  p = fma(p, z, -0.0014555851723102014l);
  p = fma(p, z, 0.0035920990798004376l);
  p = fma(p, z, -0.008863233357523927l);
  p = fma(p, z, 0.0218694884365135l);
  p = fma(p, z, -0.05396825396573801l);
  p = fma(p, z, 0.13333333333330522l);
  p = fma(p, z, -0.33333333333333326l);
  const double near = fma(a * z, p, a);
  const double e = detail::exp_scaled(2.0l * select(a, 20.0l, a > 20.0l), 0.0l);
  const double far = 1.0l - 2.0l / (e + 1.0l);
  return copysign(select(far, near, a < 0.55l), x);
}

inline double sinh(double x) {
  const double a = fabs(x);
  const double z = a * a;
  double p = 4.523556961824912e-15l;
  p = fma(p, z, 7.577138491117973e-13l);
  p = fma(p, z, 1.6060223529107348e-10l);
  p = fma(p, z, 2.505209793968487e-08l);
  p = fma(p, z, 2.7557319275732368e-06l);
  p = fma(p, z, 0.00019841269841129158l);
  p = fma(p, z, 0.008333333333333522l);
  p = fma(p, z, 0.16666666666666666l);
  const double near = fma(a * z, p, a);
  const double h = detail::exp_scaled(a, -1.0l);
  double far = h - 0.25l / h;
  far = select(far, detail::infinity64(), a > 711.0l);
  return copysign(select(far, near, a < 1.0l), x);
}

inline double cosh(double x) {
  const double a = fabs(x);
  const double h = detail::exp_scaled(a, -1.0l);
  return select(h + 0.25l / h, detail::infinity64(), a > 711.0l);
}

// log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))), and log(2a) where a^2 might overflow.
inline double asinh(double x) {
  const double a = fabs(x);
  const bool huge = a > 0x1p500l;
  const double z = a * a;
  const double t = select(a + z / (1.0l + sqrt(z + 1.0l)), a, huge);
  return copysign(log1p(t) + select(0.0l, 0.6931471805599453l, huge), x);
}

// log(x + sqrt(x^2 - 1)) = log1p(u + sqrt(u^2 + 2u)), u = x - 1.
inline double acosh(double x) {
  const bool huge = x > 0x1p500l;
  const double u = x - 1.0l;
  const double t = select(u + sqrt(fma(u, u, u + u)), x, huge);
  return select(log1p(t) + select(0.0l, 0.6931471805599453l, huge), detail::nan64(), x < 1.0l);
}

// log((1 + a) / (1 - a)) / 2
inline double atanh(double x) {
  const double a = fabs(x);
  return copysign(0.5l * log1p((a + a) / (1.0l - a)), x);
}

}  // namespace metal
