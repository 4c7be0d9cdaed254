#!/usr/bin/env python3
"""Fits the polynomials of the math library and prints their coefficients, that of the lowest power first.

    python3 -m venv venv && venv/bin/pip install mpmath && venv/bin/python fit.py [name ...]

Each row of FITS is a target function on an interval and a weight w: the error that counts is w * (p - target),
relative to the function the polynomial serves. The fit is least squares on Chebyshev points, reweighted
(Lawson) until the error is level, which is near minimax. Coefficients are then rounded one by one, lowest
first, the others refitted each time.
"""
import struct
import sys

from mpmath import mp, mpf

mp.dps = 50
PI, E, LN2, LN10 = mp.pi, mp.e, mp.log(2), mp.log(10)


def ratio(f, at0):
    """f with its limit at 0, near which f would cancel."""
    return lambda x: at0 if abs(x) < mpf(10) ** -14 else f(x)


def odd_tail(f, c3):
    """(f(x) - x) / x^3 as a function of z = x^2, with its limit at 0."""
    return ratio(lambda z: (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(c3))


R = LN2 / 2 * mpf("1.0001")
Q = (PI / 4 * mpf("1.0001")) ** 2
LO, HI = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1
S = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)


def erfcx_log(x):
    return -mp.log(mp.erfc(x))


def erfinv_of_w(w):
    if w < mpf(10) ** -20:
        return mp.sqrt(PI) / 2
    y = mp.sqrt(1 - mp.exp(-w))
    lo, hi = mpf(0), mpf(8)
    c = (1 - y) if w < 1 else mp.exp(-w) / (1 + y)  # erfc of the answer
    x = mp.sqrt(w) * mpf("0.8") + mpf("0.05")
    for _ in range(60):
        g = mp.erfc(x) - c
        d = -2 / mp.sqrt(PI) * mp.exp(-x * x)
        n = x - g / d / (1 + x * g / d)
        if abs(n - x) < mpf(10) ** -40:
            break
        x = n
    return x / y


# name: (target, from, to, weight, degree for float, degree for double); degree 0: not needed.
FITS = {
    "exp": (ratio(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2), -R, R, lambda r: r * r, 0, 9),
    "expw": (ratio(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2), -R, R, lambda r: r * r * mp.exp(-r), 4, 0),
    "expm1": (ratio(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2), -R, R, lambda r: abs(r) + mpf("0.01"), 5, 10),
    "expm1s": (ratio(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2), -R, R, lambda r: abs(r) + mpf("0.01"), 4, 0),
    "exp2": (ratio(lambda r: mp.expm1(r * LN2) / r, LN2), -mpf("0.5001"), mpf("0.5001"),
        lambda r: abs(r) + mpf("0.01"), 0, 11),
    "exp2w": (ratio(lambda r: mp.expm1(r * LN2) / r, LN2), -mpf("0.5001"), mpf("0.5001"),
        lambda r: (abs(r) + mpf("0.01")) * mp.exp(-r * LN2), 5, 0),
    "exp10": (ratio(lambda r: mp.expm1(r * LN10) / r, LN10), -mpf("0.1506"), mpf("0.1506"),
        lambda r: abs(r) + mpf("0.01"), 0, 11),
    "exp10w": (ratio(lambda r: mp.expm1(r * LN10) / r, LN10), -mpf("0.1506"), mpf("0.1506"),
        lambda r: (abs(r) + mpf("0.01")) * mp.exp(-r * LN10), 5, 0),
    "log": (ratio(lambda f: (mp.log1p(f) - f) / f**2, -mpf(1) / 2), LO, HI, lambda f: abs(f) + mpf("0.01"), 7, 0),
    "log2": (ratio(lambda f: (mp.log1p(f) - f) / f**2 / LN2, -1 / LN2 / 2), LO, HI,
        lambda f: abs(f) + mpf("0.01"), 8, 0),
    "log10": (ratio(lambda f: (mp.log1p(f) - f) / f**2 / LN10, -1 / LN10 / 2), LO, HI,
        lambda f: abs(f) + mpf("0.01"), 8, 0),
    # log((1+s)/(1-s)) = 2s + s*z*p(z), z = s^2
    "logs": (ratio(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, mpf(2) / 3), 0, S * S,
        lambda z: z + mpf("1e-4"), 0, 6),
    # log2((1+s)/(1-s)) = 2s/ln2 + s*z*p(z); for double the z term apart
    "pow": (ratio(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z / LN2, mpf(2) / 3 / LN2), 0, S * S,
        lambda z: z + mpf("1e-4"), 3, 0),
    "pow5": (ratio(lambda z: ((2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z - mpf(2) / 3) / z / LN2,
        mpf(2) / 5 / LN2), 0, S * S, lambda z: z * z + mpf("1e-6"), 0, 7),
    "sin": (odd_tail(mp.sin, -mpf(1) / 6), 0, Q, lambda z: z + mpf("0.01"), 3, 6),
    "cos": (ratio(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mpf(1) / 24), 0, Q,
        lambda z: z * z + mpf("0.001"), 2, 5),
    "tan": (odd_tail(mp.tan, mpf(1) / 3), 0, Q, lambda z: z + mpf("0.01"), 6, 0),
    "sinpi": (ratio(lambda z: (mp.sin(PI * mp.sqrt(z)) / mp.sqrt(z) - PI) / z, -(PI**3) / 6), 0, mpf("0.0626"),
        lambda z: z + mpf("0.001"), 3, 6),
    "cospi": (ratio(lambda z: (mp.cos(PI * mp.sqrt(z)) - 1) / z, -(PI**2) / 2), 0, mpf("0.0626"), lambda z: z, 4, 7),
    "tanh": (odd_tail(mp.tanh, -mpf(1) / 3), 0, mpf("0.3026"), lambda z: z + mpf("0.01"), 0, 10),
    "sinh": (odd_tail(mp.sinh, mpf(1) / 6), 0, 1, lambda z: z + mpf("0.01"), 3, 7),
    "asin": (odd_tail(mp.asin, mpf(1) / 6), 0, mpf("0.25"), lambda z: z + mpf("0.01"), 4, 12),
    "atan": (odd_tail(mp.atan, -mpf(1) / 3), 0, 1, lambda z: z + mpf("0.01"), 8, 19),
    "erf": (ratio(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(PI) - 1), 0, mpf("0.86"),
        lambda z: 1, 0, 11),
    # -log(erfc(a)) / a; what counts is the error of erf(a)
    "erfg": (ratio(lambda a: erfcx_log(a) / a, 2 / mp.sqrt(PI)), mpf("1e-6"), 4,
        lambda a: a * mp.erfc(a) / mp.erf(a), 7, 0),
    "erfmid": (erfcx_log, mpf("0.92"), mpf("2.5"), lambda x: mp.erfc(x) / mp.erf(x), 0, 16),
    "erffar": (erfcx_log, mpf("2.5"), mpf("6.0"), lambda x: mp.erfc(x) + mpf("1e-7"), 0, 14),
    "erfinv": (erfinv_of_w, 0, mpf("6.125"), lambda x: 1, 9, 0),
    "erfinvtail": (erfinv_of_w, mpf("6.125"), mpf("17"), lambda x: 1, 8, 0),
    "erfinv1": (lambda u: erfinv_of_w(u + mpf("3.125")), -mpf("3.125"), mpf("3.125"), lambda x: 1, 0, 22),
    "erfinv2": (lambda u: erfinv_of_w((u + mpf("3.25")) ** 2), mpf("-0.75"), mpf("0.75"), lambda x: 1, 0, 18),
    "erfinv3": (lambda u: erfinv_of_w((u + 5) ** 2), mpf("-1"), mpf("1.25"), lambda x: 1, 0, 17),
}


def to_float(c):
    return mpf(struct.unpack("f", struct.pack("f", float(c)))[0])


def solve(xs, ys, ws, powers):
    """Weighted least squares for sum c_k x^k, k in powers."""
    n = len(powers)
    a, b = mp.matrix(n, n), mp.matrix(n, 1)
    rows = [[x**k for k in powers] for x in xs]
    for r, y, w in zip(rows, ys, ws):
        for i in range(n):
            wi = w * r[i]
            b[i] += wi * y
            for j in range(i, n):
                a[i, j] += wi * r[j]
    for i in range(n):
        for j in range(i):
            a[i, j] = a[j, i]
    return [c for c in mp.lu_solve(a, b)]


def fit(target, lo, hi, weight, degree, rnd):
    n = 4 * degree + 12
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(PI * (2 * i + 1) / (2 * n)) for i in range(n)]
    ys = [target(x) for x in xs]
    ws = [mpf(weight(x)) for x in xs]
    lawson = [mpf(1)] * n
    coef = []
    for _ in range(12):
        coef = solve(xs, ys, [l * w * w for l, w in zip(lawson, ws)], list(range(degree + 1)))
        errs = [abs(w * (mp.polyval(coef[::-1], x) - y)) for x, y, w in zip(xs, ys, ws)]
        top = max(errs)
        if top == 0:
            break
        lawson = [l * (e / top + mpf("1e-4")) for l, e in zip(lawson, errs)]
        total = max(lawson)
        lawson = [l / total for l in lawson]
    fixed = []
    while len(fixed) <= degree:
        k = len(fixed)
        rest = [y - mp.polyval(fixed[::-1], x) if fixed else y for x, y in zip(xs, ys)]
        c = solve(xs, rest, [l * w * w for l, w in zip(lawson, ws)], list(range(k, degree + 1)))
        fixed.append(rnd(c[0]))
    err = max(abs(w * (mp.polyval(fixed[::-1], x) - y)) for x, y, w in zip(xs, ys, ws))
    return fixed, err


def fit_tanhhalf(top=mpf("9.02"), n=150):
    """p and q of tanh(x/2) = x p(z) / q(z), z = x^2, p(0) = 0.906, q(0) = 1.812, of degrees 2 and 3. What counts is the
    error of tanh(x) made of it, which is that of the quotient by cosh(x). Each round is least squares of p - f q weighted
    by the q of the round before."""
    xs = [top * (1 - mp.cos(PI * (2 * i + 1) / (4 * n))) for i in range(n)]
    zs = [(x / top) ** 2 for x in xs]
    f = [2 * mp.tanh(x / 2) / x for x in xs]
    q, lawson, best = [1 + x * x / 8 for x in xs], [mpf(1)] * n, None
    for _ in range(40):
        a, b = mp.matrix(5, 5), mp.matrix(5, 1)
        for z, g, k, l, x in zip(zs, f, q, lawson, xs):
            w = 1 / (mp.cosh(x) * g * k)
            row = [w * z, w * z**2] + [-w * g * z**i for i in (1, 2, 3)]
            for i in range(5):
                b[i] += l * row[i] * w * (g - 1)
                for j in range(5):
                    a[i, j] += l * row[i] * row[j]
        c = mp.lu_solve(a, b)
        q = [1 + c[2] * z + c[3] * z**2 + c[4] * z**3 for z in zs]
        half = [x / 2 * (1 + c[0] * z + c[1] * z**2) / k for x, z, k in zip(xs, zs, q)]
        errs = [abs(2 * h / (1 + h * h) / mp.tanh(x) - 1) for h, x in zip(half, xs)]
        if best is None or max(errs) < best[0]:
            best = max(errs), [c[i] * s / top**p for i, s, p in zip(range(5), (1, 1, 2, 2, 2), (2, 4, 2, 4, 6))]
        lawson = [l * (e / max(errs) + mpf("1e-3")) for l, e in zip(lawson, errs)]
        lawson = [l / max(lawson) for l in lawson]
    err, coef = best[0], [to_float(0.906) * c for c in best[1]]
    print("tanhhalf float err 2^%.1f" % float(mp.log(err, 2)), "p: 0.906f", " ".join("%.9gf" % float(to_float(c))
        for c in coef[:2]), "q: 1.812f", " ".join("%.9gf" % float(to_float(c)) for c in coef[2:]), flush=True)


def main():
    if len(sys.argv) == 1 or "tanhhalf" in sys.argv[1:]:
        fit_tanhhalf()
    for name, (target, lo, hi, weight, df, dd) in FITS.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        for kind, degree, rnd in (("float", df, to_float), ("double", dd, lambda c: mpf(float(c)))):
            if degree == 0:
                continue
            coef, err = fit(target, lo, hi, weight, degree, rnd)
            text = [repr(float(c)) + "l" if kind == "double" else "%.9gf" % float(c) for c in coef]
            text = [t if "." in t or "e" in t else t.replace("f", ".0f") for t in text]
            print(name, kind, "err 2^%.1f" % float(mp.log(err, 2)), " ".join(text), flush=True)


main()
