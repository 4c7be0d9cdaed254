// Double: only built-in kernels of float64 reach it. The method is that of log.metal.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// The parts of x above 0: returns f, sets e.
inline double log_split(double x, thread double& e) {
  const bool small = x < 0x1p-1022l;
  const long i = as_type<long>(select(x, x * 0x1p52l, small));
  const long k = (i - 0x3fe6a09e667f3bcdl) >> 52;
  e = double(k) - select(0.0l, 52.0l, small);
  return as_type<double>(i - (k << 52)) - 1.0l;
}

// The result where x is 0, below 0, infinite or NaN; else r.
inline double log_edges(double r, double x) {
  r = select(x, r, x < detail::infinity64());
  r = select(r, -detail::infinity64(), x == 0.0l);
  return select(r, detail::nan64(), x < 0.0l);
}

// log(1 + f) - f
inline double log_tail(double f) {
  const double s = f / (2.0l + f);
  const double z = s * s;
  double q = 0.14792100300838862l;
  q = fma(q, z, 0.15314461505391175l);
  q = fma(q, z, 0.18183546986717633l);
  q = fma(q, z, 0.22222198938420676l);
  q = fma(q, z, 0.28571428738415544l);
  q = fma(q, z, 0.3999999999943517l);
  q = fma(q, z, 0.6666666666666731l);
  // s (2 + z q) = f - h + s (h + z q) with h = f^2 / 2, since 2s = f - s f: the larger terms are exact.
  const double h = 0.5l * f * f;
  return s * fma(z, q, h) - h;
}

}  // namespace detail

inline double log(double x) {
  double e;
  const double f = detail::log_split(x, e);
  const double r = fma(e, 0.6931471805599453l, f + fma(e, 2.3190468138462996e-17l, detail::log_tail(f)));
  return detail::log_edges(r, x);
}

inline double log2(double x) {
  double e;
  const double f = detail::log_split(x, e);
  const double t = detail::log_tail(f);
  const double r = e + fma(f, 1.4426950408889634l, fma(f, 2.0355273740931033e-17l, t * 1.4426950408889634l));
  return detail::log_edges(r, x);
}

inline double log10(double x) {
  double e;
  const double f = detail::log_split(x, e);
  const double t = fma(detail::log_tail(f), 0.4342944819032518l, e * -2.8037281277851704e-18l);
  const double low = fma(f, 1.098319650216765e-17l, t);
  const double r = fma(e, 0.3010299956639812l, fma(f, 0.4342944819032518l, low));
  return detail::log_edges(r, x);
}

}  // namespace metal

// log(1 + x), with what the sum 1 + x loses added to f.
inline double log1p(double x) {
  const double u = 1.0l + x;
  const double v = u - 1.0l;
  const double lost = (1.0l - (u - v)) + (x - v);
  const long i = as_type<long>(u);
  const long k = (i - 0x3fe6a09e667f3bcdl) >> 52;
  const double down = as_type<double>((1023l - min(k, 1022l)) << 52);
  const double f = fma(lost, down, as_type<double>(i - (k << 52)) - 1.0l);
  const double e = double(k);
  const double r = fma(e, 0.6931471805599453l, f + fma(e, 2.3190468138462996e-17l, metal::detail::log_tail(f)));
  return select(metal::detail::log_edges(r, u), x, x == 0.0l);
}
