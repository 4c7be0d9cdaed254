"""Golden data for optest, from MLX on the CPU: python3 golden/ops.py, in tensor/optest.

A new op is a line in one of the tables: the name that optest.Op gives, a function, its inputs and dtypes.
"""

import mlx.core as mx

from formula import ALL, FLOATS, cases, mlx_dtype, write

U = ("uniform", -2, 2)
POS = ("uniform", 0.25, 4)
BIG = ("uniform", -6, 6)
D = ("distinct", 0, 0)
S = ("special", 0, 0)
HALFS = ["float16", "bfloat16", "float32"]

UNARY = {
    "negative": (mx.negative, U), "exp": (mx.exp, U), "log": (mx.log, POS), "sqrt": (mx.sqrt, POS), "sin": (mx.sin, BIG),
    "rsqrt": (mx.rsqrt, POS), "real": (mx.real, U), "imag": (mx.imag, U),
    "cos": (mx.cos, BIG), "tanh": (mx.tanh, U), "sigmoid": (mx.sigmoid, BIG), "abs": (mx.abs, U), "square": (mx.square, U),
    "sign": (mx.sign, U), "floor": (mx.floor, U), "logical_not": (mx.logical_not, U), "isnan": (mx.isnan, U),
    "expm1": (mx.expm1, U), "log1p": (mx.log1p, ("uniform", -0.5, 4)), "log2": (mx.log2, POS), "log10": (mx.log10, POS),
    "reciprocal": (mx.reciprocal, POS), "tan": (mx.tan, ("uniform", -1, 1)), "sinh": (mx.sinh, U), "cosh": (mx.cosh, U),
    "erf": (mx.erf, U), "erfinv": (mx.erfinv, ("uniform", -0.75, 0.75)), "ceil": (mx.ceil, U), "isfinite": (mx.isfinite, U),
    "isinf": (mx.isinf, U), "conjugate": (mx.conjugate, U), "stop_gradient": (mx.stop_gradient, U),
    "arcsin": (mx.arcsin, ("uniform", -0.75, 0.75)), "arccos": (mx.arccos, ("uniform", -0.75, 0.75)), "arctan": (mx.arctan, U),
    "arcsinh": (mx.arcsinh, U), "arccosh": (mx.arccosh, ("uniform", 1.25, 4)), "arctanh": (mx.arctanh, ("uniform", -0.75, 0.75)),
}
# MLX's functions of float64 that have float32's accuracy.
FLOAT32 = ("exp", "sigmoid", "sin", "cos", "erf", "erfinv", "tan", "sinh", "cosh", "expm1")
BINARY = {
    "add": (mx.add, U, U), "subtract": (mx.subtract, U, U), "multiply": (mx.multiply, U, U), "divide": (mx.divide, U, POS),
    "floor_divide": (mx.floor_divide, BIG, ("uniform", 1, 4)), "remainder": (mx.remainder, BIG, ("uniform", 1, 4)),
    "power": (mx.power, ("uniform", 0.5, 2), ("uniform", 0, 3)), "maximum": (mx.maximum, U, U), "minimum": (mx.minimum, U, U),
    "equal": (mx.equal, U, U), "not_equal": (mx.not_equal, U, U), "greater": (mx.greater, U, U),
    "greater_equal": (mx.greater_equal, U, U), "less": (mx.less, U, U), "less_equal": (mx.less_equal, U, U),
    "logical_and": (mx.logical_and, U, U), "logical_or": (mx.logical_or, U, U), "logaddexp": (mx.logaddexp, U, U),
    "arctan2": (mx.arctan2, U, POS),
}


def elementwise():
    out = {}
    for name, (f, g) in UNARY.items():
        # Some of MLX's functions of float64 have float32's accuracy: tensor/ops compares those with NumPy.
        dtypes = [d for d in ALL if d != "float64" or name not in FLOAT32]
        out[name] = cases(f, [[((2, 5), g)], [((), g)], [((0, 3), g)]], dtypes)
        if name not in ("sin", "cos"):
            out[name] += cases(f, [[((12,), S)]], HALFS)
    for name, (f, g, h) in BINARY.items():
        specs = [[((2, 5), g), ((2, 5), h)], [((3, 1), g), ((4,), h)], [((), g), ((), h)], [((0, 3), g), ((1,), h)]]
        # MLX divides complex numbers without rounding them to whole ones: mlxlua refuses them.
        refused = {"floor_divide": "complex64", "arctan2": "complex64", "logaddexp": "float64"}  # that of float64 is good to 8 digits only
        out[name] = cases(f, specs, [d for d in ALL if d != refused.get(name)])
    b = ((3, 4), ("ints", 0, 1), "bool")
    out["where"] = cases(mx.where, [[b, ((3, 4), U), ((4,), U)], [((3, 1), U), ((3, 1), U), ((), U)]], ALL)
    specs = [[((3, 4), D), ((4,), ("uniform", -1, 1)), ((), POS)], [((0, 3), U), ((1,), U), ((1, 1), U)]]
    out["clip"] = cases(mx.clip, specs, ALL) + cases(mx.clip, [[((12,), S), ((), U), ((12,), U)]], HALFS)
    out["clip low"] = cases(lambda x, low: mx.clip(x, low, None), [s[:2] for s in specs], ALL)
    out["clip high"] = cases(lambda x, high: mx.clip(x, None, high), [s[:2] for s in specs], ALL)
    close = [[((3, 4), D), ((4,), D)], [((5,), U), ((5,), U)], [((), U), ((2, 1), U)], [((0, 3), U), ((1,), U)]]
    for name, nan in (("isclose", False), ("isclose nan", True)):
        for op, f in ((name, mx.isclose), (name.replace("is", "all"), mx.allclose)):
            near = lambda a, b, f=f, nan=nan: f(a, b, rtol=0.5, atol=0.25, equal_nan=nan)  # noqa: E731
            out[op] = cases(near, close, ALL) + cases(near, [[((12,), S), ((12,), S)], [((12,), S), ((), U)]], FLOATS)
    for to in ALL:
        f = lambda x, to=to: x.astype(mlx_dtype(to))  # noqa: E731
        out["astype " + to] = cases(f, [[((3, 4), ("uniform", 0, 9))]], ALL)
    return out


def views():
    x = [((2, 3, 4), U)]
    few = ["float32", "uint8", "complex64", "float16", "int64", "bool"]
    return {
        "reshape": cases(lambda a: mx.reshape(a, (4, -1)), [x, [((4, 5), U)]], few),
        "flatten": cases(lambda a: mx.flatten(a, 1, 2), [x], few),
        "transpose": cases(lambda a: mx.transpose(a, (2, 0, 1)), [x], few),
        "transpose all": cases(lambda a: mx.transpose(a), [x, [((), U)], [((3,), U)], [((0, 2), U)]], few),
        "expand_dims": cases(lambda a: mx.expand_dims(a, (0, -1)), [x, [((), U)]], few),
        "squeeze": cases(lambda a: mx.squeeze(a, (0, 2)), [[((1, 3, 1), U)]], few),
        "moveaxis": cases(lambda a: mx.moveaxis(a, 0, -1), [x], few),
        "swapaxes": cases(lambda a: mx.swapaxes(a, 0, -1), [x], few),
        "broadcast_to": cases(lambda a: mx.broadcast_to(a, (2, 3, 4)), [[((3, 1), U)], [((), U)]], few),
        "slice": cases(lambda a: a[1:, ::-2], [[((3, 5), U)], [((1, 5), U)], [((3, 5, 2), U)]], few),
        "slice at": cases(lambda a: a[-1, ..., None], [[((3, 5), U)], [((3, 5, 2), U)]], few),
        "slice_update": cases(set_slice, [[((3, 5), U), ((2, 3), U)], [((3, 5), U), ((), U)]], few),
    }


def set_slice(a, u):
    b = mx.array(a)
    b[1:, ::2] = u
    return b


def reductions():
    out = {}
    shapes = [[((3, 4), D)], [((2, 3, 40), U)], [((1, 1), U)]]
    table = {
        "sum": mx.sum, "max": mx.max, "min": mx.min, "mean": mx.mean, "all": mx.all, "any": mx.any, "prod": mx.prod,
        "logsumexp": mx.logsumexp, "var": mx.var, "std": mx.std,
        "var less one": lambda a, **kw: mx.var(a, ddof=1, **kw), "std less one": lambda a, **kw: mx.std(a, ddof=1, **kw),
    }
    for name, f in table.items():
        specs = shapes if name != "prod" else [[((3, 4), U)], [((2, 5), U)]]
        # MLX's logsumexp of integers overflows in their own dtype, and that of float64 is good to 9 digits only.
        dtypes = HALFS if name == "logsumexp" else ALL
        out[name] = cases(lambda a, f=f: f(a), specs, dtypes)
        out[name + " last"] = cases(lambda a, f=f: f(a, axis=-1), specs, dtypes)
        out[name + " first, kept"] = cases(lambda a, f=f: f(a, axis=0, keepdims=True), specs, dtypes)
    for name in ("sum", "prod", "all", "any"):
        out[name] += cases(lambda a, f=table[name]: f(a), [[((0, 3), U)]], ALL)
        out[name] += cases(lambda a, f=table[name]: f(a), [[((), U)]], ["int32", *FLOATS])
        out[name + " first, kept"] += cases(lambda a, f=table[name]: f(a, axis=0, keepdims=True), [[((0, 3), U)]], ALL)
    for name, f in {"argmax": mx.argmax, "argmin": mx.argmin}.items():
        real = [d for d in ALL if d != "complex64"]
        out[name] = cases(lambda a, f=f: f(a), [[((3, 4), D)], [((2, 70), U)]], real)
        out[name + " last"] = cases(lambda a, f=f: f(a, axis=-1), [[((3, 4), D)], [((2, 70), U)]], real)
        out[name + " first, kept"] = cases(lambda a, f=f: f(a, axis=0, keepdims=True), [[((3, 4), D)]], real)
    for name in ("max", "min"):
        out[name + " last"] += cases(lambda a, f=table[name]: f(a, axis=-1), [[((12,), S)]], HALFS)
    out["softmax"] = cases(lambda a: mx.softmax(a, axis=-1), [[((3, 4), BIG)], [((2, 40), U)]], HALFS)
    out["softmax first"] = cases(lambda a: mx.softmax(a, axis=0), [[((3, 4), BIG)]], HALFS)
    return out


for file, table in {"elementwise": elementwise, "views": views, "reductions": reductions}.items():
    write(f"testdata/{file}.json", table(), "python3 golden/ops.py, in tensor/optest")
