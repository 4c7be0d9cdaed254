"""Golden data for reductions: python golden/reductions.py, in tensor/optest."""

import math

import mlx.core as mx
import numpy as np

from golden import ALL, DISTINCT, FLOATS, HALFS, INTS, SPECIAL, U, WIDE, In, call, double, mlx_dtype, resolve, write

np.seterr(all="ignore")
nan, inf = math.nan, math.inf
KEEP = "sum prod mean var std max min all any logsumexp argmax argmin".split()
POSITIONS = ["argmax", "argmin"]
# MLX's logsumexp of integers overflows in their own dtype, and that of float64 is good to 9 digits only.
COARSE = {"logsumexp": HALFS, "argmax": [d for d in ALL if d != "complex64"], "argmin": [d for d in ALL if d != "complex64"]}


def forms():
    for op in KEEP:
        dtypes = COARSE.get(op, ALL)
        shapes = (((3, 4), DISTINCT), ((2, 70), U)) if op in POSITIONS else (((3, 4), U), ((2, 5), U)) if op == "prod" else (
            ((3, 4), DISTINCT), ((2, 3, 40), U), ((1, 1), U))
        for shape, gen in shapes:
            for axes in ({}, {"axis": -1}, {"axis": 0, "keepdims": True}):
                call(op, In(shape, gen), dtypes=dtypes, **axes)
                if op in ("var", "std"):
                    call(op, In(shape, gen), dtypes=dtypes, ddof=1, **axes)
    for op in ("sum", "prod", "all", "any"):
        call(op, In((0, 3)), dtypes=ALL)
        call(op, In(()), dtypes=["int32", *FLOATS])
        call(op, In((0, 3)), axis=0, keepdims=True, dtypes=ALL)
    for op in ("max", "min"):
        call(op, In((12,), SPECIAL), axis=-1, dtypes=HALFS)
    for shape, gen, axis in (((3, 4), WIDE, -1), ((2, 40), U, -1), ((3, 4), WIDE, 0)):
        call("softmax", In(shape, gen), axis=axis, dtypes=HALFS)
    call("softmax", In((3, 4), WIDE), axis=-1, precise=True, dtypes=HALFS)
    call("softmax", In((3, 4), WIDE), dtypes=["float32"])


def axes():
    """Which axes there are, and what the result's shape is."""
    for op in KEEP + ["softmax"]:
        if op in COARSE:
            call(op, In((2, 3)), axis=-1, dtypes=[d for d in ALL if d not in COARSE[op]], via=shape_only(op))
        ways = [None, [0], [1], [-1], [-2], [2], [-3]]
        if op not in POSITIONS:
            ways += [[], [0, 1], [1, 0], [0, -1], [0, 0], [0, -2]]
        for s in ([2, 3], [0, 3], [3, 0], [], [1, 1], [4]):
            for a in ways:
                if op in ("logsumexp", *POSITIONS) and 0 in s:  # MLX refuses empty arrays even where the result is empty
                    continue
                if op == "softmax" and 0 in s and a in ([2], [-3], [0, 0], [0, -2]):  # MLX does not look at the axes
                    continue
                for keep in (False, True) if op in KEEP else (None,):
                    if op in POSITIONS and s == [] and keep:  # MLX looks for an axis to keep
                        continue
                    kw = {} if keep is None else {"keepdims": keep}
                    call(op, In(s), axis=a[0] if op in POSITIONS and a else a, values=False, **kw)
    for op in (*POSITIONS, "logsumexp"):
        call(op, In((0,)))


def shape_only(op):
    """MLX's dtype and shape with values that it does not get right: those of NumPy."""
    def f(a, axis):
        y = resolve(op)(a, axis=axis)
        v = double(a)
        if op == "logsumexp":
            z = np.log(np.sum(np.exp(v), axis=axis))
        else:
            z = getattr(np, op)(v, axis=axis)
        return mx.array(np.asarray(z), dtype=mx.float64).astype(y.dtype) if y.dtype != mx.complex64 else y

    return f


def points():
    """Reductions of ordinary numbers of each dtype, by NumPy in double precision."""
    for d in ALL:
        if d == "bool":
            v = [False, True, False, True, True, True]
        elif d == "complex64":
            v = [1, -1, -1j, 1 + 2j, 1j, -2 - 3j]
        elif d[0] in "ui":
            v = [1, 2, 7, 100, 3, 1] if d not in ("uint64", "int64") else [1, 2, 3, 4, 5, 6]
        else:
            v = [-0.0, 1.0, 0.5, -2.5, -1.0, 1e-3]
        x = In.of(mx.array(np.array(v, np.float32 if d == "bfloat16" else d).reshape(2, 3), dtype=mlx_dtype(d)))
        for op in "sum prod mean var std max min all any logsumexp softmax argmax argmin".split():
            for axis in (0, 1, None):
                one(op, d, x, axis)
    for d in FLOATS:
        for row in ([1.0, nan, 3.0], [nan, nan, 1.0], [inf, 1.0, -inf], [-inf, -inf, -inf], [3.0, 3.0, 1.0]):
            x = In.of(mx.array(np.array(row)).astype(mlx_dtype(d)))
            for op in "sum max min argmax argmin logsumexp softmax mean var std any all".split():
                one(op, d, x, None, 8 if d in ("float32", "float64") else 2)


def one(op, d, x, axis, ulp=None):
    y = resolve(op)(x.data, axis=axis)
    out = str(y.dtype).removeprefix("mlx.core.")
    if op == "softmax" and (d in INTS or d == "bool") and out != "float32":
        return  # MLX rounds it to integers along axes but the last
    exact = op in ("max", "min", "all", "any", *POSITIONS) or out in INTS or out == "bool_"
    truth = None
    if d != "complex64" and not exact:
        def truth(v):
            e = np.exp(v - v.max(axis=axis, keepdims=True))
            return {"logsumexp": lambda: np.log(np.sum(np.exp(v), axis=axis)),
                    "softmax": lambda: e / e.sum(axis=axis, keepdims=True), "mean": lambda: v.mean(axis=axis),
                    "var": lambda: v.var(axis=axis), "std": lambda: v.std(axis=axis), "sum": lambda: v.sum(axis=axis),
                    "prod": lambda: v.prod(axis=axis)}[op]()
    if ulp is None or exact:
        ulp = 0 if exact else 64 if d == "complex64" else 1 if out in ("float16", "bfloat16") else 8
    kw = {} if axis is None else {"axis": axis}
    if truth is None:
        call(op, x, dtypes=[d], ulp=ulp, **kw)
    else:
        call(op, x, dtypes=[d], ulp=ulp, via=lambda a, **kw: rounded_like(truth(double(a)), y), **kw)


def rounded_like(z, y):
    return mx.array(np.asarray(z), dtype=mx.float64).astype(y.dtype)


forms()
axes()
points()
write("reductions")
