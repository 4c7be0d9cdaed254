// Complex numbers and roots of unity.

#pragma clang fp contract(off)

struct Number {
    float re, im;
};

inline Number plus(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
inline Number minus(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
inline Number times(Number a, Number w) {
    return {metal::fma(a.re, w.re, -(a.im * w.im)), metal::fma(a.re, w.im, a.im * w.re)};
}
// a times -i.
inline Number turned(Number a) { return {a.im, -a.re}; }
// a + b * s
inline Number more(Number a, Number b, float s) { return {metal::fma(b.re, s, a.re), metal::fma(b.im, s, a.im)}; }

// The root exp(-2 pi i k / order), for k < order < 2^29: the angle is brought into an eighth of the circle by
// integers.
inline Number root(uint k, uint order) {
    uint eighth = 8 * k / order;
    uint rest = 8 * k - eighth * order;
    bool odd = (eighth & 1) != 0;
    float x = float(odd ? order - rest : rest) / (4 * float(order)); // in units of pi, at most 1/4
    float s = metal::sinpi(x);
    float c = metal::cospi(x);
    bool swapped = ((eighth + 1) & 2) != 0;
    float re = swapped ? s : c;
    float im = swapped ? c : s;
    re = eighth >= 2 && eighth < 6 ? -re : re;
    im = eighth < 4 ? -im : im;
    return {re, im};
}
