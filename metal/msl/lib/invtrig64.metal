// Double: only built-in kernels of float64 reach it. The method is that of invtrig.metal.

#pragma clang fp contract(off)

namespace metal {

inline double copysign(double x, double y) {
  return as_type<double>((as_type<ulong>(x) & 0x7ffffffffffffffful) | (as_type<ulong>(y) & 0x8000000000000000ul));
}

namespace detail {

// asin(t) for t from 0 to 1/2, or -1/2, given z = t^2.
inline double asin_part(double t, double z) {
  double p = 0.03155149008263382l;
  p = fma(p, z, -0.019213255698268324l);
  p = fma(p, z, 0.020395516413915158l);
  p = fma(p, z, 0.004268707770238135l);
  p = fma(p, z, 0.01062446857174562l);
  p = fma(p, z, 0.01142811412929748l);
  p = fma(p, z, 0.01397705358985506l);
  p = fma(p, z, 0.017351945431049086l);
  p = fma(p, z, 0.022372195169324274l);
  p = fma(p, z, 0.030381943464531328l);
  p = fma(p, z, 0.044642857157482285l);
  p = fma(p, z, 0.07499999999990536l);
  p = fma(p, z, 0.1666666666666668l);
  return fma(t * z, p, t);
}

// atan(t) for t from 0 to 1.
inline double atan_part(double t) {
  const double z = t * t;
  double p = 1.429014735159293e-05l;
  p = fma(p, z, -0.00016291033164468927l);
  p = fma(p, z, 0.0008815351286533619l);
  p = fma(p, z, -0.0030289559037097436l);
  p = fma(p, z, 0.007480365473562074l);
  p = fma(p, z, -0.014307965239268803l);
  p = fma(p, z, 0.02242526965623851l);
  p = fma(p, z, -0.030269700340389873l);
  p = fma(p, z, 0.03687803576113478l);
  p = fma(p, z, -0.042310750272357346l);
  p = fma(p, z, 0.04726996535016157l);
  p = fma(p, z, -0.05254942541684383l);
  p = fma(p, z, 0.05880860351057351l);
  p = fma(p, z, -0.06666462538628025l);
  p = fma(p, z, 0.07692287385543613l);
  p = fma(p, z, -0.09090907690939709l);
  p = fma(p, z, 0.11111111048907121l);
  p = fma(p, z, -0.1428571428413268l);
  p = fma(p, z, 0.19999999999981682l);
  p = fma(p, z, -0.3333333333333328l);
  return fma(t * z, p, t);
}

}  // namespace detail

inline double asin(double x) {
  const double a = fabs(x);
  const bool far = a > 0.5l;
  // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2))
  const double z = select(a * a, fma(a, -0.5l, 0.5l), far);
  const double p = detail::asin_part(select(a, sqrt(z), far), z);
  return copysign(select(p, 1.5707963267948966l - (2.0l * p + -6.123233995736766e-17l), far), x);
}

inline double acos(double x) {
  const double a = fabs(x);
  const bool far = a > 0.5l;
  const double z = select(a * a, fma(a, -0.5l, 0.5l), far);
  const double p = detail::asin_part(select(x, sqrt(z), far), z);
  const double outer = select(2.0l * p, 3.141592653589793l - (2.0l * p + -1.2246467991473532e-16l), x < 0.0l);
  return select(1.5707963267948966l - (p + -6.123233995736766e-17l), outer, far);
}

inline double atan(double x) {
  const double a = fabs(x);
  const bool far = a > 1.0l;
  const double p = detail::atan_part(select(a, 1.0l / a, far));
  return copysign(select(p, 1.5707963267948966l - (p + -6.123233995736766e-17l), far), x);
}

inline double atan2(double y, double x) {
  const double b = fabs(y), a = fabs(x);
  const bool steep = b > a;
  const double num = select(b, a, steep), den = select(a, b, steep);
  double t = num / den;
  t = select(t, 0.0l, den == 0.0l);
  t = select(t, 1.0l, num == detail::infinity64());
  double p = detail::atan_part(t);
  p = select(p, 1.5707963267948966l - (p + -6.123233995736766e-17l), steep);
  p = select(p, 3.141592653589793l - (p + -1.2246467991473532e-16l), as_type<long>(x) < 0);
  return copysign(select(p, x + y, isnan(x) || isnan(y)), y);
}

}  // namespace metal
