#!/usr/bin/env python3
"""Writes testdata/math64.txt: values of the float64 functions by mpmath, in 60 digits.

    python3 -m venv venv && venv/bin/pip install mpmath
    venv/bin/python lib/gen/golden64.py 60 > testdata/math64.txt

A line is: expression, x, y (hexadecimal bits), the result's bits, and by how many units of its last place the true
value lies above it.
"""
import random
import struct
import sys

from mpmath import mp, mpf

mp.dps = 60
COUNT = int(sys.argv[1])
MAX = mpf(sys.float_info.max)


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def number(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def erfinv(x):
    # Halley's iteration on erfc: mpmath's own erfinv is not made for the last places before 1.
    if x == 0:
        return x
    s = mp.sign(x)
    a = abs(x)
    c = 1 - a
    y = mp.sqrt(-mp.log(c * (1 + a))) * mpf("0.85")
    for _ in range(80):
        g = mp.erfc(y) - c if a > mpf("0.5") else a - mp.erf(y)
        d = -2 / mp.sqrt(mp.pi) * mp.exp(-y * y)
        n = y - g / d / (1 + y * g / d)
        if abs(n - y) < mpf(10) ** -50 * abs(y):
            break
        y = n
    return s * y


ANY = [(-1e300, 1e300), (-1e-300, 1e-300)]
UNARY = {
    "exp(x)": (mp.exp, [(-745, 709), (-1, 1), (-1e-8, 1e-8)]),
    "exp2(x)": (lambda x: mpf(2) ** x, [(-1074, 1023), (-1, 1)]),
    "exp10(x)": (lambda x: mpf(10) ** x, [(-323, 308), (-1, 1)]),
    "expm1f(x)": (mp.expm1, [(-40, 709), (-1, 1), (-1e-8, 1e-8)]),
    "log(x)": (mp.log, [(0, 3), (0.99, 1.01), (0, 1e300), (0, 1e-310)]),
    "log2(x)": (lambda x: mp.log(x) / mp.log(2), [(0, 3), (0.99, 1.01), (0, 1e300)]),
    "log10(x)": (lambda x: mp.log(x) / mp.log(10), [(0, 3), (0.99, 1.01), (0, 1e300)]),
    "log1p(x)": (mp.log1p, [(-1, 3), (-1e-3, 1e-3), (0, 1e300)]),
    "sin(x)": (mp.sin, [(-10, 10), (0, 1e6), (0, 1e12), (0, 1e300)]),
    "cos(x)": (mp.cos, [(-10, 10), (0, 1e6), (0, 1e12), (0, 1e300)]),
    "tan(x)": (mp.tan, [(-10, 10), (0, 1e6), (0, 1e12), (0, 1e300)]),
    "sinpi(x)": (mp.sinpi, [(-2, 2), (0, 1e6)]),
    "cospi(x)": (mp.cospi, [(-2, 2), (0, 1e6)]),
    "tanpi(x)": (lambda x: mp.sinpi(x) / mp.cospi(x), [(-2, 2), (0, 1e6)]),
    "asin(x)": (mp.asin, [(-1, 1), (0.999, 1)]),
    "acos(x)": (mp.acos, [(-1, 1), (0.999, 1)]),
    "atan(x)": (mp.atan, [(-2, 2), (0, 100)]),
    "sinh(x)": (mp.sinh, [(-710, 710), (-2, 2)]),
    "cosh(x)": (mp.cosh, [(-710, 710), (-2, 2)]),
    "tanh(x)": (mp.tanh, [(-20, 20), (-1, 1)]),
    "asinh(x)": (mp.asinh, [(-10, 10), (-0.1, 0.1), (0, 1e300)]),
    "acosh(x)": (mp.acosh, [(1, 10), (1, 1.001), (1, 1e300)]),
    "atanh(x)": (mp.atanh, [(-1, 1), (-0.01, 0.01)]),
    "erf(x)": (mp.erf, [(-6, 6), (-1, 1), (-0.01, 0.01)]),
    "erfinv(x)": (erfinv, [(-1, 1), (0.99, 1)]),
    "rsqrt(x)": (lambda x: 1 / mp.sqrt(x), [(0, 2)]),
}


def draw(r, lo, hi):
    if hi > 1e100 or 0 < hi < 1e-100:  # by exponent
        top = mp.log(mpf(hi), 2)
        e = r.uniform(0, float(top)) if hi > 1e100 else r.uniform(-1073, float(top))
        return max(float(mpf(2) ** mpf(e)), lo)
    return r.uniform(lo, hi)


def emit(name, x, y, want):
    if mp.isnan(want) or abs(want) > MAX:
        return
    w = float(want)
    if w == 0 or abs(w) < sys.float_info.min:
        ulp = mpf(2) ** -1074
    else:
        ulp = mpf(2) ** (mp.frexp(mpf(w))[1] - 53)
    print("%s\t%016x\t%016x\t%016x\t%.4f" % (name, bits(x), bits(y), bits(w), float((want - mpf(w)) / ulp)))


def main():
    print("# venv/bin/python lib/gen/golden64.py %d > testdata/math64.txt" % COUNT)
    r = random.Random(7)
    for name, (f, ranges) in UNARY.items():
        for lo, hi in ranges:
            for _ in range(COUNT // len(ranges)):
                x = draw(r, lo, hi)
                if "sin(" in name or "cos(" in name or "tan(" in name:
                    mp.dps = 60 if abs(x) < 1e15 else 400
                emit(name, x, 0.0, f(mpf(x)))
                mp.dps = 60
        if name in ("sin(x)", "cos(x)", "tan(x)"):
            mp.dps = 400
            # Next to multiples of pi/2, where reduction cancels; last the double nearest to one of all.
            near = [float(mp.pi / 2 * r.randrange(1, 1 << k)) for k in range(1, 60, 2)]
            for x in near + [6381956970095103.0 * 2.0**797]:
                emit(name, x, 0.0, f(mpf(x)))
            mp.dps = 60
    for _ in range(COUNT):
        x = r.choice([2.0 ** r.uniform(-1000, 1000), r.uniform(0.5, 2), 1 + r.uniform(-1e-3, 1e-3)])
        y = float(mpf(r.uniform(-1070, 1020)) / (mp.log(mpf(x)) / mp.log(2)))
        emit("pow(x, y)", x, y, mpf(x) ** mpf(y))
        x, y = r.gauss(0, 1), r.gauss(0, 3)
        emit("atan2(x, y)", x, y, mp.atan2(mpf(x), mpf(y)))


main()
