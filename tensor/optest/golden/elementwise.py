"""Golden data for element-wise functions: python golden/elementwise.py, in tensor/optest.

A function's line in UNARY or BINARY says where it is tried at random. Its values at the points of each dtype that are worth
trying are MLX's if it is in EXACT, or NumPy's in double precision, rounded once, if it is in ROUNDED.
"""

import math

import mlx.core as mx
import numpy as np

from golden import (ALL, DISTINCT, FLOATS, HALFS, In, POSITIVE, SPECIAL, U, WIDE, Dtype, array, call, double, dtype_name, ints,
                    mlx_dtype, resolve, write)

np.seterr(all="ignore")
nan, inf = math.nan, math.inf
HALF = ("uniform", -0.75, 0.75)
UNARY = {
    "negative": U, "abs": U, "sign": U, "square": U, "floor": U, "ceil": U, "conjugate": U, "real": U, "imag": U,
    "isnan": U, "isinf": U, "isfinite": U, "logical_not": U, "stop_gradient": U,
    "exp": U, "expm1": U, "log": POSITIVE, "log1p": ("uniform", -0.5, 4), "log2": POSITIVE, "log10": POSITIVE,
    "sqrt": POSITIVE, "rsqrt": POSITIVE, "reciprocal": POSITIVE, "sigmoid": WIDE, "erf": U, "erfinv": HALF,
    "sin": WIDE, "cos": WIDE, "tan": ("uniform", -1, 1), "sinh": U, "cosh": U, "tanh": U,
    "arcsin": HALF, "arccos": HALF, "arctan": U, "arcsinh": U, "arccosh": ("uniform", 1.25, 4), "arctanh": HALF,
}
BINARY = {
    "add": (U, U), "subtract": (U, U), "multiply": (U, U), "divide": (U, POSITIVE),
    "floor_divide": (WIDE, ("uniform", 1, 4)), "remainder": (WIDE, ("uniform", 1, 4)),
    "power": (("uniform", 0.5, 2), ("uniform", 0, 3)), "maximum": (U, U), "minimum": (U, U), "equal": (U, U),
    "not_equal": (U, U), "greater": (U, U), "greater_equal": (U, U), "less": (U, U), "less_equal": (U, U),
    "logical_and": (U, U), "logical_or": (U, U), "logaddexp": (U, U), "arctan2": (U, POSITIVE),
}
# MLX's functions of float64 that have float32's accuracy, or less than float64's.
COARSE = "exp sigmoid sin cos erf erfinv tan sinh cosh expm1 logaddexp".split()
EXACT = "negative abs sign square floor conjugate isnan isinf logical_not real imag ceil isfinite stop_gradient".split()


def rsqrt(x):
    return 1 / np.sqrt(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erfinv(x):
    """By Newton's method on erfc, which keeps its places near 1."""
    def one(v):
        if not abs(v) < 1:
            return math.copysign(inf, v) if abs(v) == 1 else nan
        if v == 0:
            return v
        a, y = abs(v), 0.0
        w = -math.log1p(-a * a) / 2
        y = math.sqrt(max(w, 0.0)) if a > 0.5 else a * math.sqrt(math.pi) / 2
        for _ in range(60):
            e = (1 - a) - math.erfc(y) if a > 0.5 else math.erf(y) - a
            y -= e * math.sqrt(math.pi) / 2 * math.exp(y * y)
        return math.copysign(y, v)

    return np.array([one(v) for v in np.ravel(x)])


ROUNDED = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": rsqrt, "sin": np.sin, "cos": np.cos,
           "tanh": np.tanh, "sigmoid": sigmoid, "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2,
           "log10": np.log10, "reciprocal": np.reciprocal, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
           "erf": np.vectorize(math.erf), "erfinv": erfinv, "arcsin": np.arcsin, "arccos": np.arccos,
           "arctan": np.arctan, "arcsinh": np.arcsinh, "arccosh": np.arccosh, "arctanh": np.arctanh}
REAL_ONLY = "sigmoid expm1 erf erfinv ceil floor".split()  # they refuse complex numbers


def points(d):
    """Values of dtype d worth trying."""
    if d == "bool":
        return mx.array([True, False])
    if d == "complex64":
        return mx.array(np.array([0, 1, -1, 1j, -1j, 1 + 2j, -0.5 + 0.25j, 3 - 4j, 2.5 + 1j, -2 - 3j], np.complex64))
    if d[0] in "ui":
        i = np.iinfo(d)
        v = [0, 1, 2, 3, 7, 100, i.max, i.max - 1] + ([-1, -2, -7, -100, i.min, i.min + 1] if i.min else [])
        return mx.array(np.array(v, d))
    v = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -100.0, 1e-3, 88.0, -88.0, 300.0, 6e4, inf, -inf, nan, 0.1, -0.7,
         2.0, 1e-7, 3.140625, 11.0, -11.5]
    if d in ("bfloat16", "float32"):
        v += [1e-38, -1e-38, 1e-40, 3.3e38, 1e20]
    if d == "float64":
        v += [1e-308, 5e-324, 1.7e308, 1e200, 709.0]
        return mx.array(np.array(v, np.float64), dtype=mx.float64)
    return mx.array(np.array(v, np.float32)).astype(mlx_dtype(d))


def keep(x, where):
    return x[mx.array(np.flatnonzero(where))] if not np.all(where) else x


def truth(op, f, ulp, *ins):
    """A call whose results are f's of the inputs converted to the output's dtype, in double precision."""
    out = resolve(op)(*ins).dtype
    inexact = ins[0].dtype in (mx.float16, mx.bfloat16, mx.float32, mx.float64, mx.complex64)
    seen = [double(x if inexact else x.astype(out)) for x in ins]
    call(op, *[In.of(x) for x in ins], dtypes=[dtype_name(ins[0])], ulp=ulp, truth=lambda *_: f(*seen))


def unary():
    for op, gen in UNARY.items():
        for shape in ((2, 5), (), (0, 3)):
            call(op, In(shape, gen), dtypes=[d for d in ALL if d != "float64" or op not in COARSE])
        if op not in ("sin", "cos"):
            call(op, In((12,), SPECIAL), dtypes=HALFS)
        for d in ALL:
            x = points(d)
            if (op, d) == ("negative", "bool") or d == "complex64" and op in REAL_ONLY:
                continue
            if op in EXACT:
                exact(op, d, x)
            else:
                close(op, d, x)


    infinite = mx.array([0, complex(-math.inf, 0), complex(0, math.inf), complex(math.inf, 1)], mx.complex64)
    for op in ("log", "log2", "log10"):
        call(op, In.of(infinite), ulp=2)


def exact(op, d, x):
    if d == "complex64" and op in ("abs", "sign"):
        truth(op, np.abs if op == "abs" else lambda z: np.where(z == 0, 0, z / np.where(z == 0, 1, np.abs(z))), 4, x)
    elif op == "square" and d in HALFS:
        truth(op, lambda v: v * v, 0, x)
    else:
        call(op, In.of(x), dtypes=[d], ulp=0)


def close(op, d, x):
    if d == "complex64" and op in ("log", "rsqrt", "log2", "log10", "reciprocal"):
        x = x[1:]
    if d == "complex64" and op == "log1p":
        x = x[3:]
    if op in ("sin", "cos", "tan") and d != "complex64" and d[0] not in "bui" or op in ("sin", "cos", "tan") and d == "bfloat16":
        x = keep(x, ~(np.abs(double(x)) > 1e19))
    if op == "sigmoid":  # from there on 1/(1+exp(-x)) overflows to 0, in MLX too
        x = keep(x, ~(double(x) < -88.5))
    out = resolve(op)(x).dtype
    wide = out in (mx.float64, mx.complex64)
    truth(op, ROUNDED[op], 4 if wide or out == mx.float32 and op != "sqrt" else 1 if op != "sqrt" else 0, x)


def binary():
    for op, (g, h) in BINARY.items():
        # MLX divides complex numbers without rounding them to whole ones: mlxlua refuses them.
        left_out = {"floor_divide": "complex64"}.get(op)
        for s, t in (((2, 5), (2, 5)), ((3, 1), (4,)), ((), ()), ((0, 3), (1,))):
            call(op, In(s, g), In(t, h), dtypes=[d for d in ALL if d != left_out and (d != "float64" or op not in COARSE)])
        for a in ALL:
            for b in ALL:  # promotion is one table: add and divide try it, the others show that they use it
                if op in ("add", "divide") or a == b or b in ("float16", "complex64"):
                    if left_out not in (a, b):
                        call(op, In((2, 1), data=[1, 1], dtype=a), In((3,), data=[1, 1, 1], dtype=b))
        for s, t in (((2,), (3,)), ((), (2, 0)), ((0,), (1,)), ((2, 0), (2, 1)), ((4, 1, 3), (5, 1)), ((2, 3), (2,))):
            call(op, In(s, POSITIVE), In(t, POSITIVE))
        for d in ALL:
            x = points(d)
            n = x.size  # each point beside some others, as two long operands
            i = np.arange(5 * n)
            pair(op, d, x[mx.array(i % n)], x[mx.array((i + (i // n) ** 2) % n)])


def pair(op, d, a, b):
    p, q = double(a), double(b)
    real = d in FLOATS
    if d == "complex64" and op in ("floor_divide", "remainder", "arctan2"):
        return
    if d == "complex64" and op in ("power", "divide", "logaddexp"):
        ok = {"power": (p != 0) & (np.abs(q) < 3), "divide": q != 0, "logaddexp": np.abs(p - q) > 0.1}[op]
        f = {"power": np.power, "divide": np.divide, "logaddexp": log_add}[op]
        truth(op, f, {"power": 64, "divide": 8, "logaddexp": 32}[op], keep(a, ok), keep(b, ok))
        return
    if op in ("floor_divide", "remainder", "power") and d != "bool" and not real and d != "complex64":
        ok = np.array(b) != 0 if op != "power" else np.array(b) >= 0
        if d[0] == "i" and op != "power":
            ok &= ~((np.array(a) == np.iinfo(d).min) & (np.array(b) == -1))
        a, b = keep(a, ok), keep(b, ok)
    if op == "power" and real:
        truth(op, np.power, 16 if d in ("float32", "float64") else 1, a, b)
    elif op in ("add", "subtract", "multiply", "divide") and real and d != "float64":
        f = getattr(np, op)
        truth(op, lambda v, w: np.asarray(mx.array(f(v, w), dtype=mx.float64).astype(mx.float32)), 0, a, b)
    elif op in ("floor_divide", "remainder") and real:
        truth(op, floored(op, d), 1, a, b)
    elif op in ("logaddexp", "arctan2"):
        out = resolve(op)(a, b).dtype
        truth(op, getattr(np, op), 4 if out in (mx.float32, mx.float64) else 1, a, b)
    else:
        call(op, In.of(a), In.of(b), dtypes=[d], ulp=2 if d == "complex64" else 0)


def log_add(p, q):
    p, q = np.where(p.real > q.real, p, q), np.where(p.real > q.real, q, p)
    return p + np.log1p(np.exp(q - p))


def floored(op, d):
    """floor(a / b) in the arithmetic of float32; fmod is exact."""
    def f(p, q):
        if op == "remainder":
            r = np.fmod(p, q)
            return np.where((r != 0) & ((r < 0) != (q < 0)), r + q, r)
        if d != "float64":
            p, q = p.astype(np.float32), q.astype(np.float32)
        return np.floor(p / q).astype(np.float64)

    return f


def convertible(x, d, to):
    """Points that dtype to can hold: what others become is not defined."""
    if d == "bool" or to == "bool" or to[0] not in "ui" or d[0] in "ui":
        return x
    v = double(x).real
    i = np.iinfo(to)
    return keep(x, (v > max(float(i.min) - 1, -9e18)) & (v < min(float(i.max), 9e18)) & ~np.isnan(v))


def others():
    b = In((3, 4), ints(0, 1), "bool")
    call("where", b, In((3, 4)), In((4,)), dtypes=ALL)
    call("where", In((3, 1)), In((3, 1)), In(()), dtypes=ALL)
    for c in ALL:
        call("where", In((2, 1), ints(0, 1), c), In((3,), ints(1, 2), "int8"), In((1, 1, 1), ints(1, 2), "float16"))
        call("where", In((2,), ints(0, 1), "bool"), In((1,), ints(1, 1), c), In((), ints(2, 2), "uint32"))
    call("where", In((2,), ints(0, 1), "bool"), In((3,), U, "int8"), In((1,), U, "int8"))

    for x, low, high in ((In((3, 4), DISTINCT), In((4,), ("uniform", -1, 1)), In((), POSITIVE)), (In((0, 3)), In((1,)), In((1, 1)))):
        call("clip", x, low, high, dtypes=ALL)
        call("clip", x, low, None, dtypes=ALL)
        call("clip", x, None, high, dtypes=ALL)
    call("clip", In((12,), SPECIAL), In(()), In((12,)), dtypes=HALFS)
    call("clip", In((3, 4), DISTINCT), -0.5, 1, dtypes=FLOATS)

    for x in (In((24,), SPECIAL), In((3, 4)), In(()), In((0, 3))):
        call("nan_to_num", x, dtypes=ALL)
        call("nan_to_num", x, 5, dtypes=ALL)
        call("nan_to_num", x, nan=5, posinf=-6.5, dtypes=ALL)
        call("nan_to_num", x, nan=5, neginf=7, dtypes=ALL)
        call("nan_to_num", x, 5, -6.5, 7, dtypes=ALL)
        call("nan_to_num", x, math.inf, math.nan, -math.inf, dtypes=ALL)
    call("nan_to_num", In((24,), SPECIAL), 1e5, 1e5, -1e39, dtypes=HALFS)
    for number in (3, 2.5, math.nan, -math.inf):
        call("nan_to_num", number)

    for name in ("isclose", "allclose"):
        for equal_nan in (False, True):
            more = {"rtol": 0.5, "atol": 0.25, "equal_nan": equal_nan}
            for x, y in ((In((3, 4), DISTINCT), In((4,), DISTINCT)), (In((5,)), In((5,))), (In(()), In((2, 1))), (In((0, 3)), In((1,)))):
                call(name, x, y, dtypes=ALL, **more)
            for shape in ((12,), ()):
                call(name, In((12,), SPECIAL), In(shape, SPECIAL if shape else U), dtypes=FLOATS, **more)
        for x, y, more in ((1, 1 + 5e-6, {}), (1, 1 + 2e-5, {}), (1e-9, 9e-9, {}), (1e-9, 2e-8, {}), (1, 1.3, {}), (0, 0.4, {}),
                           (nan, nan, {}), (10, 15, {"rtol": 0.4, "atol": 0}), (10, 15, {"rtol": 0.5, "atol": 0.25})):
            call(name, In((1,), data=[x], dtype="float32"), In((1,), data=[y], dtype="float32"), **more)

    for to in ALL:
        call("astype", In((3, 4), ("uniform", 0, 9)), Dtype(to), dtypes=ALL)
        for d in ALL:
            call("astype", In.of(convertible(points(d), d, to)), Dtype(to), dtypes=[d], ulp=0)

    # What a number becomes beside an array.
    for d in ALL:
        for v in (1.0, 1.5, 0.0, -1.0, 300.0, 1e6, -200.0):
            if not (d == "uint64" and v < 0):  # MLX wraps around there, and only there
                call("add", In((2,), ints(0, 0)), int(v) if v == int(v) else v, dtypes=[d])
                call("maximum", int(v) if v == int(v) else v, In((2,), ints(0, 0)), dtypes=[d])


unary()
binary()
others()
write("elementwise")
