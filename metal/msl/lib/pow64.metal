// Double: only built-in kernels of float64 reach it. The method is that of pow.metal.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// |x|^y; a is |x|.
inline double pow_magnitude(double a, double y) {
  double e;
  const double f = log_split(a, e);
  const double d = f + 2.0l;
  const double d2 = f - (d - 2.0l);
  const double rd = 1.0l / d;
  const double s = f * rd;
  const double s2 = (fma(-s, d, f) - s * d2) * rd;
  const double z = s * s;
  // log2(1 + f) = h + l
  const double h0 = s * 2.8853900817779268l;
  double l = fma(s, 2.8853900817779268l, -h0) + fma(s, 4.0710547481862066e-17l, s2 * 2.8853900817779268l);
  double p = 0.1728051324892459l;
  p = fma(p, z, 0.16845299224423074l);
  p = fma(p, z, 0.19240124937710631l);
  p = fma(p, z, 0.22195227222200004l);
  p = fma(p, z, 0.2623081986318847l);
  p = fma(p, z, 0.3205988979129727l);
  p = fma(p, z, 0.41219858311134516l);
  p = fma(p, z, 0.5770780163555851l);
  const double z2 = fma(s, s, -z) + 2.0l * s * s2;
  const double c = s * z;
  const double c2 = fma(s, z, -c) + fma(s, z2, s2 * z);
  const double t = c * 0.9617966939259756l;
  const double t2 = fma(c, 0.9617966939259756l, -t) + fma(c2, 0.9617966939259756l, c * 5.0577616648125907e-17l);
  const double h = h0 + t;
  l += ((h0 - h) + t) + fma(c * z, p, t2);
  const double sum = e + h;
  l += (e - sum) + h;
  double hi = sum + l;
  double lo = (sum - hi) + l;
  hi = select(hi, -detail::infinity64(), a == 0.0l);
  hi = select(hi, detail::infinity64(), a == detail::infinity64());
  const double w = y * hi;
  const double w2 = fma(y, hi, -w) + y * lo;
  const double n = rint(w);
  const double r = (w - n) + w2;
  double q = 2.550475323769793e-11l;
  q = fma(q, r, 4.4657643803876897e-10l);
  q = fma(q, r, 7.055071946318392e-09l);
  q = fma(q, r, 1.0177984199146212e-07l);
  q = fma(q, r, 1.321548629536783e-06l);
  q = fma(q, r, 1.5252734039991743e-05l);
  q = fma(q, r, 0.00015403530394072655l);
  q = fma(q, r, 0.0013333558146161654l);
  q = fma(q, r, 0.009618129107628043l);
  q = fma(q, r, 0.05550410866482294l);
  q = fma(q, r, 0.24022650695910072l);
  q = fma(q, r, 0.6931471805599453l);
  double m = __metal_scale(fma(r, q, 1.0l), n);
  m = select(m, detail::infinity64(), w > 1026.0l);
  m = select(m, 0.0l, w < -1078.0l);
  return select(m, 1.0l, a == 1.0l || y == 0.0l);
}

}  // namespace detail

inline double pow(double x, double y) {
  const double a = fabs(x);
  double m = detail::pow_magnitude(a, y);
  const double half_y = 0.5l * y;
  const bool whole = trunc(y) == y;
  const bool odd = whole && trunc(half_y) != half_y;
  const bool minus = as_type<long>(x) < 0;
  m = select(m, -m, minus && odd);
  m = select(m, detail::nan64(), x < 0.0l && !whole && a != detail::infinity64());
  m = select(m, x + y, isnan(x) || isnan(y));
  return select(m, 1.0l, x == 1.0l || y == 0.0l);
}

// pow for x of 0 and above; NaN below, and where IEEE 754's powr is: 0^0, inf^0, 1^inf.
inline double powr(double x, double y) {
  const double a = fabs(x);
  double m = detail::pow_magnitude(a, y);
  const double inf = detail::infinity64();
  const bool vague = (y == 0.0l && (a == 0.0l || a == inf)) || (x == 1.0l && fabs(y) == inf);
  m = select(m, detail::nan64(), x < 0.0l || vague);
  return select(m, x + y, isnan(x) || isnan(y));
}

}  // namespace metal
