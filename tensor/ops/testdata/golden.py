"""Golden data for tensor/ops: dtype and shape rules and refusals from MLX (specs.json), values from MLX and, for
functions that are rounded, from NumPy in double precision (values.json), and programs of views from NumPy (views.json).

    python golden.py        with mlx and numpy installed, in this folder
"""

import json
import math
import sys

sys.path.pop(0)  # this folder: NumPy would take its random.py for Python's

import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)
DTYPES = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64").split()
HEADER = "made by `python golden.py` with MLX " + mx.__version__ + " and NumPy " + np.__version__
nan, inf = float("nan"), float("inf")


def dtype(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


def name(d):
    return str(d).removeprefix("mlx.core.").removesuffix("_")


UNARY = ("negative abs sign square floor conjugate isnan isinf logical_not real imag exp log sqrt rsqrt sin "
         "cos tanh sigmoid expm1 log1p log2 log10 reciprocal tan sinh cosh erf erfinv ceil isfinite "
         "arcsin arccos arctan arcsinh arccosh arctanh").split()
BINARY = ("add subtract multiply divide floor_divide remainder power equal not_equal greater greater_equal less "
          "less_equal maximum minimum logical_and logical_or logaddexp arctan2").split()
REDUCTIONS = "sum prod mean var std max min all any logsumexp softmax".split()
KEEPS = "sum prod mean var std max min all any logsumexp argmax argmin".split()


def specs():
    cases = []

    def case(op, ins, args, f):
        arrays = [mx.zeros(s, dtype(d)) for d, s in ins]
        try:
            y = f(*arrays)
            out = [name(y.dtype), list(y.shape)]
        except Exception:  # noqa: BLE001  MLX's errors have several types
            out = None
        cases.append({"op": op, "in": ins, "args": args, "out": out})

    for op in UNARY:
        for d in DTYPES:
            case(op, [[d, [2, 1]]], {}, getattr(mx, op))
    for op in BINARY:
        if op in ("floor_divide",):  # MLX divides complex numbers without rounding: mlxlua refuses them
            pairs = [(a, b) for a in DTYPES for b in DTYPES if "complex64" not in (a, b)]
        else:
            pairs = [(a, b) for a in DTYPES for b in DTYPES]
        if op not in ("add", "divide"):  # promotion is one table: the others show that they use it
            pairs = [(a, b) for a, b in pairs if a == b or b in ("float16", "complex64")]
        for a, b in pairs:
            case(op, [[a, [2, 1]], [b, [3]]], {}, getattr(mx, op))
        for s, t in (([2], [3]), ([], [2, 0]), ([0], [1]), ([2, 0], [2, 1]), ([4, 1, 3], [5, 1]), ([2, 3], [2])):
            case(op, [["float32", s], ["float32", t]], {}, getattr(mx, op))
    for c in DTYPES:
        case("where", [[c, [2, 1]], ["int8", [3]], ["float16", [1, 1, 1]]], {}, mx.where)
    for d in DTYPES:
        case("where", [["bool", [2]], [d, [1]], ["uint32", []]], {}, mx.where)
    case("where", [["bool", [2]], ["int8", [3]], ["int8", [1]]], {}, mx.where)

    for op in REDUCTIONS + ["argmax", "argmin"]:
        f = getattr(mx, op)
        for d in DTYPES:
            case(op, [[d, [2, 3]]], {"axes": [-1]}, lambda x: f(x, axis=-1))
        axes = [None, [0], [1], [-1], [-2], [2], [-3]]
        if not op.startswith("arg"):
            axes += [[], [0, 1], [1, 0], [0, -1], [0, 0], [0, -2]]
        for s in ([2, 3], [0, 3], [3, 0], [], [1, 1], [4]):
            for a in axes:
                if op == "logsumexp" and 0 in s:  # MLX refuses empty arrays even where the result is empty
                    continue
                if op.startswith("arg") and 0 in s:
                    continue
                if op == "softmax" and 0 in s and a in ([2], [-3], [0, 0], [0, -2]):  # MLX does not look at the axes
                    continue
                for keep in (False, True) if op in KEEPS else (False,):
                    if op.startswith("arg") and s == [] and keep:  # MLX looks for an axis to keep
                        continue
                    kw = {"keepdims": keep} if op in KEEPS else {}
                    ax = a[0] if op.startswith("arg") and a else a
                    case(op, [["float32", s]], {"axes": a, "keep": keep}, lambda x: f(x, axis=ax, **kw))
    for op in ("argmax", "argmin", "logsumexp"):
        case(op, [["float32", [0]]], {"axes": None, "keep": False}, getattr(mx, op))

    for s in ([2, 3, 4], [], [1, 1], [0, 3]):
        for to in ([-1], [4, -1], [24], [5, 5], [5, -1], [], [1], [1, 1, 1], [-1, -1], [-2, 12], [0, -1], [-1, 3],
                   [3, 0], [2, 1, 12], [6, 4]):
            case("reshape", [["int8", s]], {"shape": to}, lambda x: mx.reshape(x, to))
        for start, end in ((0, -1), (1, -1), (0, 1), (2, 1), (-2, -1), (5, -1), (0, 9), (1, 1), (-9, 1)):
            case("flatten", [["int8", s]], {"start": start, "end": end}, lambda x: mx.flatten(x, start, end))
        for to in ([2, 2, 3, 4], [3, 4], [2, 3, 5], [1], [5, 1, 1], [0], [2, 3, 4], [1, 3, 4], [-1, 3], [2, 0, 3]):
            case("broadcast_to", [["int8", s]], {"shape": to}, lambda x: mx.broadcast_to(x, to))
    for s in ([2, 3, 4], [1, 2, 1], [], [5]):
        for axes in (None, [1, 0, 2], [1, 0], [1, 1, 0], [0, 1, 3], [-1, 0, 1], [2, 1, 0], [], [0]):
            case("transpose", [["int8", s]], {"axes": axes}, lambda x: mx.transpose(x, axes))
        for axes in ([0], [-1], [0, 1], [0, -1], [0, 0], [4], [3], [-5, -1], [3, -1], []):
            case("expand_dims", [["int8", s]], {"axes": axes}, lambda x: mx.expand_dims(x, axes))
        for axes in (None, [0], [-1], [0, 2], [0, 0], [5], [], [2, 0]):
            case("squeeze", [["int8", s]], {"axes": axes}, lambda x: mx.squeeze(x, axes))
        for a, b in ((0, 1), (0, -1), (0, 3), (-4, 0), (2, 0), (1, 1)):
            case("swapaxes", [["int8", s]], {"start": a, "end": b}, lambda x: mx.swapaxes(x, a, b))
            case("moveaxis", [["int8", s]], {"start": a, "end": b}, lambda x: mx.moveaxis(x, a, b))
    for start, stop, step in ((0, 5, 1), (0, 1, 0.3), (5, 0, -2), (0.5, 3, 1), (5, 1, 1), (1, 5, 0), (0, inf, 1),
                              (nan, 1, 1), (0, 3e9, 1), (0, 3e9, 1e9), (0, 1, 1e-20), (-3, 3, 0.1)):
        case("arange", [], {"numbers": [repr(float(v)) for v in (start, stop, step)]},
             lambda: mx.arange(float(start), float(stop), float(step)))
    # What a number becomes beside an array.
    for d in DTYPES:
        for v in (1.0, 1.5, 0.0, -1.0, 300.0, 1e6, -200.0):
            py = int(v) if v == int(v) else v
            if d == "uint64" and v < 0:  # MLX wraps around here, and only here
                continue
            case("add_number", [[d, [2]]], {"numbers": [repr(v)]}, lambda x: x + py)
    return cases


# Values. Everything is text: floats as repr, complex numbers as "re im", so that -0, NaN and 64-bit integers survive.


def text(v):
    if isinstance(v, complex):
        return repr(v.real) + " " + repr(v.imag)
    return str(int(v)) if isinstance(v, (bool, int)) else repr(v)


def texts(a):
    return [text(v) for v in a.reshape(-1).tolist()]


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
    return mx.array(np.array(v, np.float32)).astype(dtype(d))


def double(a):
    """An array of MLX's as NumPy's in double precision."""
    if a.dtype == mx.complex64:
        return np.array(a).astype(np.complex128)
    return np.array(a.astype(mx.float64))


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


def rsqrt(x):
    return 1 / np.sqrt(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


EXACT = "negative abs sign square floor conjugate isnan isinf logical_not real imag ceil isfinite".split()
ROUNDED = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": rsqrt, "sin": np.sin, "cos": np.cos,
           "tanh": np.tanh, "sigmoid": sigmoid, "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2,
           "log10": np.log10, "reciprocal": np.reciprocal, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
           "erf": np.vectorize(math.erf), "erfinv": erfinv, 
           "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "arcsinh": np.arcsinh,
           "arccosh": np.arccosh, "arctanh": np.arctanh}
REAL_ONLY = "sigmoid expm1 erf erfinv ceil floor".split()  # they refuse complex numbers


def values():
    cases = []

    def case(op, d, ins, out_dtype, out, ulp, **more):
        cases.append({"op": op, "dtype": d, "in": [texts(x) for x in ins], "out_dtype": out_dtype, "out": out,
                      "ulp": ulp, **more})

    np.seterr(all="ignore")
    for d in DTYPES:
        x = points(d)
        for op in EXACT:
            if (op, d) == ("negative", "bool") or d == "complex64" and op in REAL_ONLY:
                continue
            if d == "complex64" and op in ("abs", "sign"):
                z = double(x)
                y = np.abs(z) if op == "abs" else np.where(z == 0, 0, z / np.where(z == 0, 1, np.abs(z)))
                case(op, d, [x], "float32" if op == "abs" else d, texts(y), 4)
                continue
            if op == "square" and d in ("float16", "bfloat16", "float32"):
                y = double(x)
                y = mx.array(y * y, dtype=mx.float64).astype(dtype(d))
                case(op, d, [x], d, texts(y), 0)
                continue
            y = getattr(mx, op)(x)
            case(op, d, [x], name(y.dtype), texts(y), 0)
        for op, f in ROUNDED.items():
            if d == "complex64" and op in REAL_ONLY:
                continue
            z = x
            if d == "complex64" and op in ("log", "rsqrt", "log2", "log10", "reciprocal"):
                z = x[1:]
            if d == "complex64" and op == "log1p":
                z = x[3:]
            if op in ("sin", "cos", "tan") and d != "complex64" and d[0] not in "bui":
                z = x[np.flatnonzero(~(np.abs(double(x)) > 1e19)).tolist()]
            if op == "sigmoid":  # from here on 1/(1+exp(-x)) overflows to 0, in MLX too
                z = z[np.flatnonzero(~(double(z) < -88.5)).tolist()]
            out = getattr(mx, op)(z).dtype
            y = f(double(z if out == mx.float64 or out == mx.complex64 else z.astype(out)))
            if out == mx.float64 or out == mx.complex64:
                case(op, d, [z], name(out), texts(y), 4)
            else:
                case(op, d, [z], name(out), texts(mx.array(y, dtype=mx.float64).astype(out)),
                     4 if out == mx.float32 and op != "sqrt" else 1 if op != "sqrt" else 0)
        # Each point beside some others, as two long operands.
        n = x.size
        i = np.arange(5 * n)
        a, b = x[mx.array(i % n)], x[mx.array((i + (i // n) ** 2) % n)]
        for op in BINARY:
            binary(case, op, d, a, b)
        for to in DTYPES:
            z = convertible(x, d, to)
            y = z.astype(dtype(to))
            case("astype", d, [z], to, texts(y), 0)
    reductions(case)
    aranges(case)
    return cases


def convertible(x, d, to):
    """Points that dtype to can hold: what others become is not defined."""
    if d in ("bool",) or to == "bool" or to[0] not in "ui":
        return x
    if d[0] in "ui":
        return x
    v = double(x).real
    i = np.iinfo(to)
    ok = (v > max(float(i.min) - 1, -9e18)) & (v < min(float(i.max), 9e18)) & ~np.isnan(v)
    return x[np.flatnonzero(ok).tolist()]


def binary(case, op, d, a, b):
    if op in ("floor_divide", "remainder") and d == "complex64":
        return
    if op in ("floor_divide", "remainder", "power") and d != "bool" and d[0] in "ui":
        ok = np.array(b) != 0
        if d[0] == "i":
            ok &= ~((np.array(a) == np.iinfo(d).min) & (np.array(b) == -1))
        if op == "power":
            ok = np.array(b) >= 0
        k = np.flatnonzero(ok).tolist()
        a, b = a[k], b[k]
    inexact = d in ("float16", "bfloat16", "float32", "float64")
    if op == "power" and d == "complex64":
        k = np.flatnonzero((np.array(a) != 0) & (np.abs(np.array(b)) < 3)).tolist()
        a, b = a[k], b[k]
        case(op, d, [a, b], d, texts(double(a) ** double(b)), 64)
        return
    if op == "power" and inexact:
        y = double(a) ** double(b)
        y = texts(y) if d == "float64" else texts(mx.array(y, dtype=mx.float64).astype(dtype(d)))
        case(op, d, [a, b], d, y, 16 if d in ("float32", "float64") else 1)
        return
    if op == "divide" and d == "complex64":
        k = np.flatnonzero(np.array(b) != 0).tolist()
        a, b = a[k], b[k]
        case(op, d, [a, b], d, texts(double(a) / double(b)), 8)
        return
    if op in ("add", "subtract", "multiply", "divide") and inexact and d != "float64":
        f = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}[op]
        y = mx.array(f(double(a), double(b)), dtype=mx.float64).astype(mx.float32).astype(dtype(d))
        case(op, d, [a, b], d, texts(y), 0)
        return
    if op in ("floor_divide", "remainder") and inexact:
        # floor(a / b) in the arithmetic of float32; fmod is exact.
        p, q = double(a), double(b)
        if op == "remainder":
            r = np.fmod(p, q)
            y = np.where((r != 0) & ((r < 0) != (q < 0)), r + q, r)
        else:
            if d != "float64":
                p, q = p.astype(np.float32), q.astype(np.float32)
            y = np.floor(p / q).astype(np.float64)
        y = texts(y) if d == "float64" else texts(mx.array(y, dtype=mx.float64).astype(mx.float32).astype(dtype(d)))
        case(op, d, [a, b], d, y, 1)
        return
    if op == "logaddexp":
        if d == "complex64":
            k = np.flatnonzero(np.abs(double(a) - double(b)) > 0.1).tolist()  # away from log(0)
            a, b = a[k], b[k]
            p, q = double(a), double(b)
            p, q = np.where(p.real > q.real, p, q), np.where(p.real > q.real, q, p)
            case(op, d, [a, b], d, texts(p + np.log1p(np.exp(q - p))), 32)
            return
        out = mx.logaddexp(a, b).dtype
        y = np.logaddexp(double(a if inexact else a.astype(out)), double(b if inexact else b.astype(out)))
        y = texts(y if out == mx.float64 else mx.array(y, dtype=mx.float64).astype(out))
        case(op, d, [a, b], name(out), y, 4 if out in (mx.float32, mx.float64) else 1)
        return
    if op == "arctan2":
        if d == "complex64":
            return
        out = mx.arctan2(a, b).dtype
        y = np.arctan2(double(a if inexact else a.astype(out)), double(b if inexact else b.astype(out)))
        y = texts(y if out == mx.float64 else mx.array(y, dtype=mx.float64).astype(out))
        case(op, d, [a, b], name(out), y, 4 if out in (mx.float32, mx.float64) else 1)
        return
    if op in ("maximum", "minimum") and d != "bool":
        y = getattr(mx, op)(a, b)
        case(op, d, [a, b], d, texts(y), 0)
        return
    y = getattr(mx, op)(a, b)
    case(op, d, [a, b], name(y.dtype), texts(y), 2 if d == "complex64" else 0)


def reductions(case):
    for d in DTYPES:
        x = points(d)
        n = 6
        i = [k % x.size for k in (1, 2, 4, 5, 3, 9)]  # ordinary numbers
        x = mx.take(x, mx.array(i)).reshape(2, 3)
        if d in ("uint64", "int64"):
            x = mx.array([[1, 2, 3], [4, 5, 6]]).astype(dtype(d))
        for op in REDUCTIONS + ["argmax", "argmin"]:
            for axes in ([0], [1], None):
                f = getattr(mx, op)
                y = f(x, axis=axes[0] if axes else None)
                if op == "softmax" and name(y.dtype) == d and d[0] in "bui" and d != "bfloat16":
                    continue  # MLX rounds it to integers along axes but the last
                exact = op in ("max", "min", "all", "any", "argmax", "argmin") or name(y.dtype)[0] in "ui"
                z = y
                if d != "complex64" and op in ("logsumexp", "softmax", "mean", "var", "std", "sum", "prod") and not exact:
                    v = double(x)
                    ax = tuple(axes) if axes else None
                    e = np.exp(v - v.max(axis=ax, keepdims=True))
                    z = {"logsumexp": lambda: np.log(np.sum(np.exp(v), axis=ax)),
                         "softmax": lambda: e / e.sum(axis=ax, keepdims=True),
                         "mean": lambda: v.mean(axis=ax), "var": lambda: v.var(axis=ax),
                         "std": lambda: v.std(axis=ax), "sum": lambda: v.sum(axis=ax),
                         "prod": lambda: v.prod(axis=ax)}[op]()
                    if y.dtype != mx.float64:
                        z = mx.array(z, dtype=mx.float64).astype(y.dtype)
                ulp = 0 if exact else 64 if d == "complex64" else 1 if y.dtype in (mx.float16, mx.bfloat16) else 8
                case(op, d, [x], name(y.dtype), texts(z), ulp, shape=[2, 3], axes=axes)
        assert n == x.size
    for d in ("float16", "bfloat16", "float32", "float64"):
        for row in ([1.0, nan, 3.0], [nan, nan, 1.0], [inf, 1.0, -inf], [-inf, -inf, -inf], [3.0, 3.0, 1.0]):
            x = mx.array(np.array(row)).astype(dtype(d))
            for op in ("sum", "max", "min", "argmax", "argmin", "logsumexp", "softmax", "mean", "var", "std", "any", "all"):
                y = getattr(mx, op)(x)
                v = double(x)
                e = np.exp(v - v.max())
                if op in ("logsumexp", "softmax"):  # MLX's are less accurate than float64
                    y = np.log(np.sum(np.exp(v))) if op == "logsumexp" else e / e.sum()
                    y = mx.array(y, dtype=mx.float64).astype(dtype(d))
                case(op, d, [x], name(y.dtype), texts(y), 8 if d in ("float32", "float64") else 2, shape=[3], axes=None)


def aranges(case):
    for d in DTYPES[1:]:
        for start, stop, step in ((0, 5, 1), (5, 0, -2), (2, 20, 3), (0, 5, 0.5), (1.9, 5.9, 1), (0.5, 3.5, 1)):
            if d[0] == "u" and step < 0:
                continue
            if d[0] not in "ui" and start != int(start):
                continue
            y = mx.arange(start, stop, step, dtype=dtype(d))
            case("arange", d, [], d, texts(y), 0, numbers=[repr(float(v)) for v in (start, stop, step)])


def index(parts):
    """Parts are ["at", i], ["span", start, stop, step], ["new"] or ["dots"]."""
    one = {"at": lambda p: p[1], "span": lambda p: slice(*p[1:]), "new": lambda p: None, "dots": lambda p: Ellipsis}
    return tuple(one[p[0]](p) for p in parts)


def random_parts(rng, shape):
    parts = []
    for n in shape[:rng.integers(0, len(shape) + 1)]:
        if rng.random() < 0.1:
            parts.append(["new"])
        if n and rng.random() < 0.25:
            parts.append(["at", int(rng.integers(-n, n))])
            continue
        end = lambda: None if rng.random() < 0.4 else int(rng.integers(-n - 2, n + 3))  # noqa: E731
        parts.append(["span", end(), end(), int(rng.choice([-3, -2, -1, -1, 1, 1, 2, 5]))])
    if len(parts) < len(shape) and rng.random() < 0.3:
        parts.insert(0, ["dots"])
    return parts


def views():
    """Random programs of views of 0, 1, 2, ... and what NumPy makes of them; some end in an assignment."""
    rng = np.random.default_rng(7)
    cases = []
    for k in range(150):
        shape = [int(n) for n in rng.choice([1, 2, 3, 4, 5], size=rng.integers(1, 4))]
        x = np.arange(np.prod(shape)).reshape(shape)
        steps = []
        for _ in range(rng.integers(1, 6)):
            op = str(rng.choice(["transpose", "slice", "reshape", "expand_dims", "broadcast_to", "flatten", "squeeze"]))
            if op == "transpose":
                arg = [int(i) for i in rng.permutation(x.ndim)]
                x = x.transpose(arg)
            elif op == "slice":
                arg = random_parts(rng, x.shape)
                x = x[index(arg)]
            elif op == "reshape":
                divisors = [d for d in range(1, x.size + 1) if x.size % d == 0]
                arg = [int(rng.choice(divisors)), -1] if divisors else [0, 3]
                x = x.reshape(arg)
            elif op == "expand_dims":
                arg = [int(rng.integers(-x.ndim - 1, x.ndim + 1))]
                x = np.expand_dims(x, tuple(arg))
            elif op == "broadcast_to":
                if x.size > 100:
                    continue
                arg = [2] + [3 if n == 1 else n for n in x.shape]
                x = np.broadcast_to(x, arg)
            elif op == "flatten":
                arg = [0, -1]
                x = x.reshape(-1)
            else:
                arg = [i for i, n in enumerate(x.shape) if n == 1]
                x = np.squeeze(x, tuple(arg))
            steps.append([op, arg])
        if k % 3 == 0:
            arg = random_parts(rng, x.shape)
            part = x[index(arg)]
            if rng.random() < 0.5 and part.ndim:
                part = part[:1]
            update = -1 - np.arange(part.size).reshape(part.shape)
            x = x.copy()
            try:
                x[index(arg)] = update
                steps.append(["slice_update", arg, list(update.shape)])
            except ValueError:  # an update of one row does not broadcast to none
                pass
        cases.append({"shape": shape, "steps": steps, "out_shape": list(x.shape), "out": x.reshape(-1).tolist()})
    return cases


def write(file, cases):
    with open(file, "w") as f:
        f.write('{"header": ' + json.dumps(HEADER) + ',\n"cases": [\n')
        f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases))
        f.write("\n]}\n")


write("specs.json", specs())
write("values.json", values())
write("views.json", views())
