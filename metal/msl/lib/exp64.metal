// Double: only built-in kernels of float64 reach it. The method is that of exp.metal.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

inline double infinity64() { return as_type<double>(0x7ff0000000000000ul); }
inline double nan64() { return as_type<double>(0x7ff8000000000000ul); }

// exp(x) * 2^k as long as that is finite and x is not enormous.
inline double exp_scaled(double x, double k) {
  const double n = rint(x * 1.4426950408889634l);
  const double r = fma(n, -2.3190468138462996e-17l, fma(n, -0.6931471805599453l, x));
  double q = 2.511635541597703e-08l;
  q = fma(q, r, 2.7631011850926127e-07l);
  q = fma(q, r, 2.755722138517136e-06l);
  q = fma(q, r, 2.4801490762720276e-05l);
  q = fma(q, r, 0.00019841269911216963l);
  q = fma(q, r, 0.0013888888946139062l);
  q = fma(q, r, 0.008333333333310348l);
  q = fma(q, r, 0.0416666666665192l);
  q = fma(q, r, 0.16666666666666693l);
  q = fma(q, r, 0.5000000000000012l);
  return __metal_scale(fma(r * r, q, r) + 1.0l, n + k);
}

}  // namespace detail

inline double exp(double x) {
  double r = detail::exp_scaled(x, 0.0l);
  r = select(r, detail::infinity64(), x > 710.0l);
  return select(r, 0.0l, x < -746.0l);
}

inline double exp2(double x) {
  const double n = rint(x);
  const double f = x - n;
  double q = 2.550475323769793e-11l;
  q = fma(q, f, 4.4657643803876897e-10l);
  q = fma(q, f, 7.055071946318392e-09l);
  q = fma(q, f, 1.0177984199146212e-07l);
  q = fma(q, f, 1.321548629536783e-06l);
  q = fma(q, f, 1.5252734039991743e-05l);
  q = fma(q, f, 0.00015403530394072655l);
  q = fma(q, f, 0.0013333558146161654l);
  q = fma(q, f, 0.009618129107628043l);
  q = fma(q, f, 0.05550410866482294l);
  q = fma(q, f, 0.24022650695910072l);
  q = fma(q, f, 0.6931471805599453l);
  double r = __metal_scale(fma(f, q, 1.0l), n);
  r = select(r, detail::infinity64(), x >= 1024.0l);
  return select(r, 0.0l, x < -1076.0l);
}

inline double exp10(double x) {
  const double n = rint(x * 3.321928094887362l);
  const double f = fma(n, 2.8037281277851704e-18l, fma(n, -0.3010299956639812l, x));
  double q = 4.753078403745042e-05l;
  q = fma(q, f, 0.00024072057075820444l);
  q = fma(q, f, 0.0011544233363734622l);
  q = fma(q, f, 0.00501401494847665l);
  q = fma(q, f, 0.019597696589776895l);
  q = fma(q, f, 0.06808936275420446l);
  q = fma(q, f, 0.20699584867335857l);
  q = fma(q, f, 0.5393829292226477l);
  q = fma(q, f, 1.171255148912394l);
  q = fma(q, f, 2.034678592293341l);
  q = fma(q, f, 2.6509490552391988l);
  q = fma(q, f, 2.302585092994046l);
  double r = __metal_scale(fma(f, q, 1.0l), n);
  r = select(r, detail::infinity64(), x > 308.3l);
  return select(r, 0.0l, x < -324.0l);
}

}  // namespace metal

// exp(x) - 1. 2^n (exp(r) - 1) + (2^n - 1), computed at half its size: 2^n need not be finite.
inline double expm1f(double x) {
  const double n = rint(x * 1.4426950408889634l);
  const double r = fma(n, -2.3190468138462996e-17l, fma(n, -0.6931471805599453l, x));
  double q = 2.0922214299891958e-09l;
  q = fma(q, r, 2.5109124041085224e-08l);
  q = fma(q, r, 2.75572506473929e-07l);
  q = fma(q, r, 2.7557243925656114e-06l);
  q = fma(q, r, 2.480158735017244e-05l);
  q = fma(q, r, 0.00019841269886453932l);
  q = fma(q, r, 0.001388888888887304l);
  q = fma(q, r, 0.008333333333321473l);
  q = fma(q, r, 0.041666666666666685l);
  q = fma(q, r, 0.16666666666666677l);
  q = fma(q, r, 0.5l);
  const double e = fma(r * r, q, r);
  const double t = as_type<double>((long(n) + (1023l - 1)) << 52);
  const double h = fma(t, e, t - 0.5l);
  double y = select(h + h, e, n == 0.0l);
  y = select(y, detail::infinity64(), x > 710.0l);
  y = select(y, -1.0l, x < -38.0l);
  return select(y, x, fabs(x) < 0x1p-55l);
}
