// Double: only built-in kernels of float64 reach it. The method is that of trig.metal.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// 2/pi in binary, after 64 zeros that stand before its point.
constant ulong two_over_pi64[20] = {
    0x0ul, 0xa2f9836e4e441529ul, 0xfc2757d1f534ddc0ul, 0xdb6295993c439041ul,
    0xfe5163abdebbc561ul, 0xb7246e3a424dd2e0ul, 0x06492eea09d1921cul, 0xfe1deb1cb129a73eul,
    0xe88235f52ebb4484ul, 0xe99c7026b45f7e41ul, 0x3991d639835339f4ul, 0x9c845f8bbdf9283bul,
    0x1ff897ffde05980ful, 0xef2f118b5a0a6d1ful, 0x6d367ecf27cb09b7ul, 0x4f463f669e5fea2dul,
    0x7527bac7ebe5f17bul, 0x3d0739f78a5292eaul, 0x6bfb5fb11f8d5d08ul, 0x56033046fc7b6babul,
};

// The 64 bits of 2/pi from bit j of word i on.
inline ulong two_over_pi64_bits(ulong i, ulong j) {
  const ulong next = select(two_over_pi64[i + 1] >> (64ul - j), 0ul, j == 0ul);
  return two_over_pi64[i] << j | next;
}

// Payne and Hanek's reduction of a finite a above 2^30: a = (q + f) pi/2, all modulo 4 quadrants, f in 128 bits.
inline double reduce_large(double a, thread int& q) {
  const ulong bits = as_type<ulong>(a);
  const ulong at = (bits >> 52) - 1024ul;
  const ulong m = (bits & 0xffffffffffffful) << 11 | 0x8000000000000000ul;
  const ulong i = at >> 6, j = at & 63ul;
  const ulong w0 = two_over_pi64_bits(i, j), w1 = two_over_pi64_bits(i + 1ul, j), w2 = two_over_pi64_bits(i + 2ul, j);
  const ulong low = m * w1 + mulhi(m, w2);
  const ulong carry = select(0ul, 1ul, low < m * w1);
  const ulong p = m * w0 + mulhi(m, w1) + carry;
  const long f = long(p << 2 | low >> 62);
  q = int((p + 0x2000000000000000ul) >> 62);
  const double high = double(f);
  const double rest = double(f - long(high)) + double(low << 2) * 0x1p-64l;
  return fma(high, 8.515303950216386e-20l, fma(high, 3.319411800407449e-36l, rest * 8.515303950216386e-20l));
}

// a >= 0: returns r, sets q to n modulo 4 (other bits are of no meaning). NaN for infinity and NaN.
inline double trig_reduce(double a, thread int& q) {
  const double n = rint(a * 0.6366197723675814l);
  double r = fma(n, 1.4973849048591698e-33l, fma(n, -6.123233995736766e-17l, fma(n, -1.5707963267948966l, a)));
  q = int(n);
  if (a > 1073741824.0l) {
    r = reduce_large(a, q);
    r = select(r, detail::nan64(), a == detail::infinity64());
  }
  return r;
}

inline double sin_part(double r, double z) {
  double p = -7.472725775455351e-13l;
  p = fma(p, z, 1.6055998510653155e-10l);
  p = fma(p, z, -2.5052083988890126e-08l);
  p = fma(p, z, 2.7557319121808503e-06l);
  p = fma(p, z, -0.00019841269841043883l);
  p = fma(p, z, 0.008333333333333092l);
  p = fma(p, z, -0.16666666666666666l);
  return fma(r * z, p, r);
}

inline double cos_part(double z) {
  double p = -1.1360802524192296e-11l;
  p = fma(p, z, 2.0875747408747485e-09l);
  p = fma(p, z, -2.755731454696767e-07l);
  p = fma(p, z, 2.480158729023345e-05l);
  p = fma(p, z, -0.0013888888888875497l);
  p = fma(p, z, 0.04166666666666661l);
  return fma(z * z, p, fma(z, -0.5l, 1.0l));
}

inline double flip_sign(double x, ulong sign) { return as_type<double>(as_type<ulong>(x) ^ sign); }

// The sign bit of quadrants 2 and 3.
inline ulong quadrant_sign64(int q) { return ulong(q & 2) << 62; }

}  // namespace detail

inline double sin(double x) {
  int q;
  const double r = detail::trig_reduce(fabs(x), q);
  const double z = r * r;
  const double y = select(detail::sin_part(r, z), detail::cos_part(z), (q & 1) != 0);
  return detail::flip_sign(y, detail::quadrant_sign64(q) ^ (as_type<ulong>(x) & 0x8000000000000000ul));
}

inline double cos(double x) {
  int q;
  const double r = detail::trig_reduce(fabs(x), q);
  const double z = r * r;
  const double y = select(detail::cos_part(z), detail::sin_part(r, z), (q & 1) != 0);
  return detail::flip_sign(y, detail::quadrant_sign64(q + 1));
}

inline double sincos(double x, thread double& cosine) {
  int q;
  const double r = detail::trig_reduce(fabs(x), q);
  const double z = r * r;
  const double s = detail::sin_part(r, z), c = detail::cos_part(z);
  const bool odd = (q & 1) != 0;
  cosine = detail::flip_sign(select(c, s, odd), detail::quadrant_sign64(q + 1));
  return detail::flip_sign(select(s, c, odd), detail::quadrant_sign64(q) ^ (as_type<ulong>(x) & 0x8000000000000000ul));
}

inline double tan(double x) {
  int q;
  const double r = detail::trig_reduce(fabs(x), q);
  const double z = r * r;
  const double s = detail::sin_part(r, z), c = detail::cos_part(z);
  const bool odd = (q & 1) != 0;
  const double y = select(s, -c, odd) / select(c, s, odd);
  return detail::flip_sign(y, as_type<ulong>(x) & 0x8000000000000000ul);
}

namespace detail {

// x >= 0: half turns, x = n/2 + r with n modulo 4 in q, exactly. NaN for infinity.
inline double halfturn_reduce(double a, thread int& q) {
  const double b = fma(rint(0.5l * a), -2.0l, a);
  const double n = rint(b + b);
  q = int(n);
  return fma(n, -0.5l, b);
}

inline double sinpi_part(double r, double z) {
  double p = -2.1972121349040732e-05l;
  p = fma(p, z, 0.00046634050710916595l);
  p = fma(p, z, -0.007370435066845028l);
  p = fma(p, z, 0.08214588681238011l);
  p = fma(p, z, -0.5992645293256922l);
  p = fma(p, z, 2.5501640398774015l);
  p = fma(p, z, -5.16771278004997l);
  return fma(r, 3.141592653589793l, r * fma(z, p, 1.2246467991473532e-16l));
}

inline double cospi_part(double z) {
  double p = -1.007223287822758e-05l;
  p = fma(p, z, -0.00010090605575695094l);
  p = fma(p, z, 0.0019291776879958753l);
  p = fma(p, z, -0.02580686925258601l);
  p = fma(p, z, 0.23533062966718923l);
  p = fma(p, z, -1.335262768842711l);
  p = fma(p, z, 4.058712126416667l);
  p = fma(p, z, -4.934802200544679l);
  return fma(z, p, 1.0l);
}

}  // namespace detail

inline double sinpi(double x) {
  int q;
  const double r = detail::halfturn_reduce(fabs(x), q);
  const double z = r * r;
  double y = select(detail::sinpi_part(r, z), detail::cospi_part(z), (q & 1) != 0);
  // Adding zero makes -0 +0: at whole numbers the result has the sign of x alone.
  y = detail::flip_sign(y, detail::quadrant_sign64(q)) + 0.0l;
  return detail::flip_sign(y, as_type<ulong>(x) & 0x8000000000000000ul);
}

inline double cospi(double x) {
  int q;
  const double r = detail::halfturn_reduce(fabs(x), q);
  const double z = r * r;
  const double y = select(detail::cospi_part(z), detail::sinpi_part(r, z), (q & 1) != 0);
  return detail::flip_sign(y, detail::quadrant_sign64(q + 1)) + 0.0l;
}

inline double tanpi(double x) {
  int q;
  const double r = detail::halfturn_reduce(fabs(x), q);
  const double z = r * r;
  const double s = detail::sinpi_part(r, z), c = detail::cospi_part(z);
  const bool odd = (q & 1) != 0;
  double y = select(s, -c, odd) / select(c, s, odd);
  // IEEE 754: the poles at 1/2, 5/2, ... are +inf, those between are -inf.
  y = select(y, select(detail::infinity64(), -detail::infinity64(), (q & 2) != 0), odd && r == 0.0l);
  return detail::flip_sign(y, as_type<ulong>(x) & 0x8000000000000000ul);
}

}  // namespace metal
