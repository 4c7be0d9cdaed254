"""The calls that calls.py makes at random: each entry of SPECS gives a name, arguments, keywords and a tolerance."""

import mlx.core as mx

from calltext import ALL, Arr, Dtype, Raw, lua, python

FLOATS = ["float16", "bfloat16", "float32", "float32"]
INDEX = ["int32", "int32", "uint32", "int64", "uint8", "int8"]
EXACT = "negative square floor ceil logical_not isnan isinf isfinite conjugate real imag stop_gradient zeros_like ones_like"
CLOSE = "abs sign sqrt rsqrt exp log sin cos tanh sigmoid expm1 log1p log2 log10 reciprocal tan sinh cosh erf erfinv"
CLOSE += " arcsin arccos arctan arcsinh arccosh arctanh"
BINARY = "add subtract multiply maximum minimum equal not_equal greater greater_equal less less_equal logical_and logical_or"
BINARY_CLOSE = "divide floor_divide remainder power logaddexp arctan2"
REDUCE = "sum prod mean max min argmax argmin all any logsumexp"
SCANS = "cumsum cumprod cummax cummin logcumsumexp"
NN = "gelu gelu_approx leaky_relu log_softmax relu sigmoid silu softmax softplus tanh"


def unary(name, tol):
    def spec(g):
        x = g.array()
        if "softmax" in name and not x.mx.size:
            x = g.array([2, 3])
        if "nn." in name and not x.mx.dtype == mx.float16:
            x = g.array(g.shape(1, empty=0), g.pick(FLOATS), False)  # MLX computes these of integers in integers
        number = "nn." not in name and "_" not in name and g.chance(0.07)
        return name, [g.operand() if number else x], {}, tol
    return spec


def binary(name, tol):
    def spec(g):
        d = g.dtype()
        if name in BINARY_CLOSE.split() and d == "complex64":
            d = "float32"
        shape = g.shape()
        other = g.like(shape)
        last = d if g.chance(0.6) or name in BINARY_CLOSE.split() else None
        a, b = g.operand(shape, d), g.array(other, last) if "logical" in name else g.operand(other, last)
        return name, [a, b] if g.chance(0.5) else [b, a], {}, tol
    return spec


def mixed(g, args, names, start):
    """Arguments from start on by position or by name."""
    n = g.int(start, len(args))
    return args[:n], {k: v for k, v in zip(names[n:], args[n:]) if v is not None}


def reduce(name):
    def spec(g):
        # MLX has no result for all, argmax and logsumexp of nothing, or a wrong one.
        least = 0 if name in ("max",) else 1  # without axes it does not change small integers' dtype
        s = g.shape(least, empty=0.06 if name in ("sum", "prod", "max") else 0)
        d = g.pick(FLOATS) if name == "logsumexp" else g.dtype()
        x = g.array(s, d, g.chance(0.15) and name != "prod" and (d in FLOATS or name in ("max", "min", "sum")))
        axis = g.axes(x.mx.ndim)
        axis = None if axis == [] else axis
        if name.startswith("arg") and isinstance(axis, list):
            axis = g.axis(x.mx.ndim)
        args, kw = mixed(g, [x, axis, g.chance(0.5)], ["a", "axis", "keepdims"], 1)
        return name, args, kw, 64
    return spec


def scan(name):
    def spec(g):
        d = g.dtype()  # an imaginary part of logcumsumexp may differ by 2 pi
        x = g.array(dtype="float32" if "log" in name and d == "complex64" else d, wild=False)
        axis = None if g.chance(0.2) else g.axis(x.mx.ndim)
        args, kw = mixed(g, [x, axis], ["a", "axis"], 1)
        for k in ("reverse", "inclusive"):
            if g.chance(0.4):
                kw[k] = g.chance(0.5)
        return name, args, kw, 128
    return spec


def shape_of(g, x):
    """A shape for reshape: right, with -1, or wrong."""
    n = x.mx.size
    if n == 0:
        return g.pick([[0], [2, 0], [-1], [0, -1], [3, 0, 1], [-1, 0]])
    out, left = [], n
    for _ in range(g.int(0, 3)):
        d = g.pick([d for d in range(1, left + 1) if left % d == 0])
        out.append(d)
        left //= d
    out.append(left)
    if n == 1 and g.chance(0.3):
        out = []
    if out and g.chance(0.4):
        out[g.int(0, len(out) - 1)] = -1
    if g.chance(0.06):
        out = out + [g.pick([-1, 2, -2])]
    return out


def with_array(name, make, dtypes=None):
    """An op of one array whose further arguments make gives."""
    def spec(g):
        x = g.array(dtype=dtypes and g.pick(dtypes))
        args, kw = make(g, x)
        return name, [x] + args, kw, 16
    return spec


def permutation(g, n):
    p = list(range(n))
    g.r.shuffle(p)
    if p and g.chance(0.06):
        p[0] = g.int(-n - 1, n)
    return [a - n if g.chance(0.2) and 0 <= a < n else a for a in p]


def where(g):
    s, d = g.shape(), g.dtype()
    c = g.array(g.like(s), "bool" if g.chance(0.8) else g.dtype(), False)
    return "where", [c, g.operand(s, d), g.operand(g.like(s), d if g.chance(0.7) else None)], {}, 0


def clip(g):
    s, d = g.shape(), g.dtype()
    make = g.array if d.startswith("u") else g.operand
    lo, hi = make(g.like(s), d, False), make(g.like(s), d, False)
    if g.chance(0.3):
        lo, hi = g.pick([(lo, None), (None, hi)])
    return "clip", [g.array(s, d), lo, hi], {}, 0


def close(name):
    def spec(g):
        s, d = g.shape(), g.dtype()
        args = [g.array(s, d), g.array(g.like(s), d), g.pick([0.25, 0.5]), 0.125]
        args, kw = mixed(g, args, ["a", "b", "rtol", "atol"], 2)
        return name, args, kw | {"equal_nan": g.chance(0.5)}, 0
    return spec


def join(name):
    def spec(g):
        s, d = g.shape(1), g.dtype()
        axis = None if g.chance(0.1) and name != "stack" else g.axis(len(s))
        xs = []
        valid = axis is None or -len(s) <= axis < len(s)
        for _ in range(g.int(1 if valid else 2, 3)):  # MLX does not look at the axis of a single array
            t = list(s)
            if name != "stack" and axis is not None and -len(s) <= axis < len(s) and s:
                t[axis] = g.int(0, 3)
            if t and g.chance(0.03):
                t[0] += 1
            xs.append(g.array(t, d if g.chance(0.7) else None))
        a = Raw(axis, "false") if axis is None else axis
        return name, [xs] + ([a] if g.chance(0.7) else []), {}, 0
    return spec


def split(g, x):
    axis = g.axis(x.mx.ndim)
    n = x.mx.shape[axis] if x.mx.ndim and -x.mx.ndim <= axis < x.mx.ndim else 3
    if g.chance(0.5):
        return [g.pick([d for d in range(1, n + 1) if n % d == 0] or [1]) if g.chance(0.85) else g.int(-1, 7), axis], {}
    return [sorted(g.int(0, n) for _ in range(g.int(1, 3))) if g.chance(0.85) else [g.int(-3, 7), g.int(-3, 7)]], {"axis": axis}


def none_axis(g, n, p=0.2):
    return Raw(None, "false") if g.chance(p) else g.axis(n)


def sort(name):
    def spec(g):
        x = g.array()
        return name, [x] + ([none_axis(g, x.mx.ndim)] if g.chance(0.7) else []), {}, 0
    return spec


def kth(name):
    """topk, sorted: its order is open."""
    def spec(g):
        x = g.array(g.shape(1, 3), wild=False)
        axis = g.axis(x.mx.ndim)
        n = x.mx.shape[axis] if -x.mx.ndim <= axis < x.mx.ndim else 1
        k = g.int(1, max(n, 1)) if g.chance(0.9) else g.pick([0, n + 1, -1])
        return (lambda: mx.sort(mx.topk(x.mx, k, axis), axis)), f"mx.sort(mx.topk({x.text}, {k}, {axis}), {axis})", None, 0
    return spec


def indices(g, shape, n, wrong=True):
    d = g.pick(INDEX)
    lo = 0 if d.startswith("u") else -n
    return g.array(shape, d, False, values=lambda: g.int(lo, n - 1))


def take(g):
    x = g.array(g.shape(1, 3, 0))
    axis = None if g.chance(0.2) else g.int(-x.mx.ndim, x.mx.ndim - 1)
    n = x.mx.size if axis is None else x.mx.shape[axis]
    i = g.int(0, n - 1) if g.chance(0.1) else indices(g, g.shape(0, 2), n)
    if axis is not None and g.chance(0.05):
        axis = g.axis(x.mx.ndim)
    return "take", [x, i] + ([axis] if axis is not None else []), {}, 0


def along(name):
    def spec(g):
        x = g.array(g.shape(1, 3, 0))
        axis = None if g.chance(0.15) else g.int(-x.mx.ndim, x.mx.ndim - 1)
        n = x.mx.size if axis is None else x.mx.shape[axis]
        s = [n] if axis is None else list(x.mx.shape)
        k = g.int(0, 4) if name == "take_along_axis" else g.int(0, n)
        s[0 if axis is None else axis] = k
        if name == "take_along_axis" and len(s) > 1 and g.chance(0.2):
            other = [a for a in range(len(s)) if a != axis % len(s)]
            s[g.pick(other)] = 1
        i = indices(g, s, n)
        if name == "put_along_axis":
            if axis is None:
                i = g.array([k], "int32", False, values=iter(g.r.sample(range(n), k)).__next__)
            else:  # distinct indices: which of equal ones wins is open
                start, step = g.int(0, n - 1), 1
                one = mx.remainder(mx.arange(k) * step + start, n).reshape([k] + [1] * (len(s) - 1 - axis % len(s)))
                text = f"mx.broadcast_to(mx.reshape(mx.remainder(mx.arange({k}) + {start}, {n}), {{{', '.join(str(v) for v in one.shape)}}}), {{{', '.join(map(str, s))}}})"
                i = Arr(mx.broadcast_to(one, s), text)
            return name, [x, i, g.array(s, x_dtype(x) if x_dtype(x).startswith("u") or g.chance(0.5) else None, False)] + ([axis] if axis is not None else []), {}, 0
        return name, [x, i] + ([axis] if axis is not None else []), {}, 0
    return spec


def slice_part(g, n):
    kind = g.pick(["int", "slice", "slice", "none", "all"])
    if kind == "int" and n > 0:
        v = g.int(-n, n - 1)
        return str(v), v
    if kind == "none":
        return "None", None
    if kind == "all":
        return ":", slice(None)
    a, b = [g.int(-n - 1, n + 1) if g.chance(0.7) else None for _ in range(2)]
    c = g.pick([1, 2, 3, -1, -2]) if g.chance(0.5) else None
    text = ("" if a is None else str(a)) + ":" + ("" if b is None else str(b)) + ("" if c is None else ":" + str(c))
    return text, slice(a, b, c)


def parts(g, shape):
    texts, values, used = [], [], 0
    dots = g.chance(0.15)
    for n in shape[g.int(0, len(shape)) :] if dots else shape:
        if not dots and g.chance(0.2):
            break
        t, v = slice_part(g, n)
        texts.append(t)
        values.append(v)
    if dots and texts:
        texts.insert(0, "...")
        values.insert(0, ...)
    if not texts:
        texts, values = [":"], [slice(None)]
    return texts, tuple(values)


def index(g):
    """x[...] by slice text, or by slices and arrays."""
    x = g.array(g.shape(1, 3))
    texts, values = parts(g, x.mx.shape)
    if g.chance(0.5):
        return (lambda: x.mx[values if len(values) > 1 else values[0]]), f'{x.text}["{", ".join(texts)}"]', None, 0
    texts = [f'"{t}"' if ":" in t or t in ("...", "None") else t for t in texts]
    values = list(values)
    s = g.shape(0, 2, 0)
    axis = 0
    for k, v in enumerate(values):
        if v is ...:
            axis = len(x.mx.shape) - sum(1 for w in values[k + 1:] if w is not None)
        elif v is not None:
            if isinstance(v, slice) and v == slice(None) and x.mx.shape[axis] and g.chance(0.8):
                i = indices(g, [1 if g.chance(0.2) else n for n in s], x.mx.shape[axis])
                texts[k], values[k] = i.text, i.mx
            axis += 1
    values = tuple(values)
    return (lambda: x.mx[values if len(values) > 1 else values[0]]), f'{x.text}:index({", ".join(texts)})', None, 0


def update(g):
    """x:at(...):op(value)."""
    x = g.array(g.shape(1, 3, 0), wild=False)
    texts, values = parts(g, x.mx.shape)
    while None in values or ... in values:  # MLX has no updates of new axes
        texts, values = parts(g, x.mx.shape)
    key = values if len(values) > 1 else values[0]
    op = "set" if x_dtype(x) == "bool" else g.pick("add subtract multiply divide maximum minimum set".split())
    try:
        s = x.mx[key].shape
    except ValueError:
        s = []
    d = x_dtype(x)
    if op == "divide" and d not in FLOATS:
        op = "add"
    s = g.like(s)[-len(s):] if s else s
    v = g.operand(s, d if g.chance(0.7) else None, False)
    if d.startswith("u") or op in ("subtract", "divide"):  # MLX negates or inverts first, and what becomes of negative numbers is open
        v = g.array(s, d, False)
    raw = v.mx if hasattr(v, "mx") else v

    def run():
        if op == "set":
            y = mx.array(x.mx)
            y[key] = raw
            return y
        return getattr(x.mx.at[key], op)(raw)

    return run, f'{x.text}:at("{", ".join(texts)}"):{op}({lua(v)})', None, 4


def x_dtype(x):
    return str(x.mx.dtype).removeprefix("mlx.core.").rstrip("_")


def operator(g):
    s, d = g.shape(), g.dtype()
    a, b = g.array(s, d), g.operand(g.like(s), d if g.chance(0.6) else None)
    if g.chance(0.4):
        a, b = b, a
    if not hasattr(a, "mx") and not hasattr(b, "mx"):
        a = g.array(s, d)
    # C++ has other complex quotients by 0 and of infinities than a GPU.
    op = g.pick(["+", "-", "*"] + ([] if d == "complex64" else ["/", "%", "^"]))
    pa, pb = python(a), python(b)
    f = {"+": lambda: pa + pb, "-": lambda: pa - pb, "*": lambda: pa * pb, "/": lambda: pa / pb, "%": lambda: pa % pb,
         "^": lambda: pa**pb}[op]
    ta, tb = lua(a), lua(b)
    return f, f"({ta}) {op} ({tb})", None, 16


def matmul(g):
    d = g.dtype(FLOATS + ["float64", "complex64"])
    m, k, n = [0 if g.chance(0.04) else g.int(1, 6) for _ in range(3)]
    batch = g.shape(0, 2)
    batch = batch if len(batch) < 2 or batch[0] * batch[1] < 7 else batch[:1]
    a, b = [m, k], [k + g.chance(0.04), n]
    a, b = (a[1:] if g.chance(0.15) else batch + a), (b[:1] if g.chance(0.15) else g.like(batch) + b)
    b = b if g.chance(0.95) else []
    return "matmul", [g.array(a, d, False), g.array(b, d if g.chance(0.8) else None, False)], {}, 64


def norm(name):
    def spec(g):
        x = g.array(g.shape(1, 3), g.dtype(FLOATS + ["int32"] if g.chance(0.1) else FLOATS), False)
        n = x.mx.shape[-1] + (g.chance(0.05))
        like = lambda: x_dtype(x) if g.chance(0.7) else g.dtype(FLOATS + ["int32"] if g.chance(0.1) else FLOATS)
        w = None if g.chance(0.3) else g.array([n], like(), False)
        args = [x, w]
        if name == "fast.layer_norm":
            args.append(None if g.chance(0.4) else g.array([n], like(), False))
        return name, args + [g.pick([1e-5, 0.1])], {}, 64
    return spec


def rope(g):
    b, t = g.int(1, 2), g.int(1, 3)
    heads = [g.int(1, 2)] if g.chance(0.7) else []
    d = g.pick([4, 6, 8])
    x = g.array([b] + heads + [t, d], g.dtype(FLOATS), False)
    dims = d if g.chance(0.7) else g.pick([2, 4, 10, 3, 0])
    kw = {"traditional": g.chance(0.5), "base": 10000.0, "scale": g.pick([1.0, 0.5]), "offset": g.int(0, 20)}
    if g.chance(0.2) and dims == d:
        kw["base"] = Raw(None, "nil")
        kw["freqs"] = g.array([d // 2], "float32", False, values=lambda: g.int(1, 30) / 4)
    if g.chance(0.2):
        kw["offset"] = g.array([b] if g.chance(0.5) else [], "int32", False, values=lambda: g.int(0, 9))
    return "fast.rope", [x, dims], kw, 256


def attention(g):
    b, kv, rep, t, s, d = g.int(1, 2), g.int(1, 2), g.int(1, 2), g.int(1, 3), g.int(1, 4), g.pick([2, 4])
    dt = g.dtype(FLOATS)
    q = g.array([b, kv * rep, t, d], dt, False)
    k, v = g.array([b, kv, s, d], dt, False), g.array([b, kv, s, d], dt, False)
    kw = {"scale": g.pick([0.5, 1.0])}
    m = g.pick(["no", "no", "causal", "bool", "add"])
    if m == "causal":
        kw["mask"] = "causal"
    elif m == "bool":
        kw["mask"] = g.array([t, s], "bool", False, values=lambda: True)
    elif m == "add":
        kw["mask"] = g.array(g.pick([[t, s], [b, 1, t, s], [s], [t + 1, s]]), dt, False)
    return "fast.scaled_dot_product_attention", [q, k, v], kw, 64


def randoms(g):
    seed, s, d = g.int(0, 99), g.shape(0, 3), g.dtype(FLOATS)
    key = Arr(mx.random.key(seed), f"mx.random.key({seed})")
    kind = g.pick(["uniform", "normal", "randint", "bernoulli", "split"])
    if kind == "split":
        return "random.split", [key] + ([g.int(1, 4)] if g.chance(0.6) else []), {}, 0
    kw = {"shape": s, "key": key}
    if kind == "uniform":
        return "random.uniform", [-1.5, g.pick([2, g.array([], "float32", False)])], kw | {"dtype": Dtype(d)}, 4
    if kind == "normal":
        kw |= {"dtype": Dtype(d)} | ({"loc": g.pick([2.5, g.array([], d, False)]), "scale": 0.5} if g.chance(0.5) else {})
        return "random.normal", [], kw, 64
    if kind == "randint":
        return "random.randint", [g.int(-9, 0), g.int(1, 50)], kw | {"dtype": Dtype(g.pick(["int32", "uint8", "int64"]))}, 0
    p = g.pick([0.5, 0.25, g.array(s, "float32", False, values=lambda: g.int(0, 4) / 4)])
    return "random.bernoulli", [p], kw, 0


def creation(g):
    kind = g.pick(["zeros", "ones", "full", "full_like", "eye", "arange", "arange"])
    d = Dtype(g.dtype())
    s = g.shape() if g.chance(0.9) else g.pick([[-1], [2, -3]])
    if kind in ("zeros", "ones"):
        return kind, [s if g.chance(0.8) else g.int(0, 4)] + ([d] if g.chance(0.6) else []), {}, 0
    if kind == "full":
        if g.chance(0.5):  # with an array MLX ignores the dtype, and with bool a number's
            return kind, [s, g.array(g.like(s))], {}, 0
        d = Dtype("int16") if d.name == "bool" else d
        return kind, [s, g.pick([2, -1, 300, 0.5 if d.name in FLOATS else 7]), d], {}, 0
    if kind == "full_like":
        return kind, [g.array(), g.pick([2, -1, 0.5, 300])] + ([d] if g.chance(0.4) else []), {}, 0
    if kind == "eye":
        return kind, [g.int(0, 5)], {k: v for k, v in {"m": g.int(0, 5), "k": g.int(-6, 6), "dtype": d}.items() if g.chance(0.6)}, 0
    half = g.chance(0.3)
    v = [(g.int(-20, 20) * 2 + 1) / 4 if half else g.int(-9, 9) for _ in range(2)]
    step = g.pick([0.25, -0.5, 0.75]) if half else g.pick([1, 2, 3, -1, -2])
    args = [v[:1], v, v + [step]][g.int(0, 2)]
    return kind, args, {"dtype": d} if g.chance(0.4) and d.name != "bool" else {}, 4


def quantized(g):
    """quantize, and what reads its results."""
    bits, group = g.pick([2, 3, 4, 5, 6, 8]), g.pick([32, 64, 128])
    bits = bits if g.chance(0.96) else 7
    rows, cols = g.int(1, 3), group * g.int(1, 2)
    d = g.dtype(FLOATS)
    seed = g.int(0, 99)
    w = mx.random.uniform(-1, 1, (rows, cols), key=mx.random.key(seed)).astype(getattr(mx, d))
    wt = f"mx.random.uniform(-1, 1, {{{rows}, {cols}}}, {{key = mx.random.key({seed})}}):astype(mx.{d})"
    kind = g.pick(["quantize", "dequantize", "matmul"])
    kw, opt = {"group_size": group, "bits": bits}, f"{{group_size = {group}, bits = {bits}}}"
    if kind == "quantize":
        return (lambda: mx.quantize(w, **kw)), f"{{mx.quantize({wt}, {opt})}}", None, 4
    if kind == "dequantize":
        text = f"(function() local q, s, b = mx.quantize({wt}, {opt}) return mx.dequantize(q, s, b, {opt}) end)()"
        return (lambda: mx.dequantize(*mx.quantize(w, **kw), **kw)), text, None, 4
    t = g.chance(0.5)
    n = cols if t else rows
    x = g.array([g.int(1, 3), n + g.chance(0.04)], d, False)
    opt = f"{{transpose = {'true' if t else 'false'}, group_size = {group}, bits = {bits}}}"
    text = f"(function() local q, s, b = mx.quantize({wt}, {opt.replace('transpose = true, ', '').replace('transpose = false, ', '')}) return mx.quantized_matmul({x.text}, q, s, b, {opt}) end)()"
    return (lambda: mx.quantized_matmul(x.mx, *mx.quantize(w, **kw), transpose=t, **kw)), text, None, 1024


def dtype_arg(g):
    to = g.pick(ALL)
    # What becomes of negative numbers in unsigned types is open in C++, which MLX is written in.
    x = g.array(wild=False, values=(lambda: g.int(0, 1)) if to.startswith("u") else None)
    return "astype", [x, Dtype(to)], {}, 0


def triangle(name):
    return with_array(name, lambda g, x: ([g.int(-3, 3)] if g.chance(0.7) else [], {}))


def tri_inv(g):
    n = g.int(1, 4)
    up = g.chance(0.5)
    batch = g.shape(0, 1, 0)[:1]
    x = g.array(batch + [n, n], "float32", False, values=lambda: g.int(1, 8) / 4)
    return "linalg.tri_inv", [x], {"upper": up, "stream": Raw(mx.cpu, "nil")}, 1024


def named(prefix, names, make, *args):
    return [make(prefix + n, *args) for n in names.split()]


TWO = lambda g, x: ([g.axis(x.mx.ndim), g.axis(x.mx.ndim)], {})  # noqa: E731
SPECS = (
    named("", EXACT, unary, 0) + named("", CLOSE, unary, 16) + named("nn.", NN, unary, 64)
    + named("", BINARY, binary, 0) + named("", BINARY_CLOSE, binary, 32) + named("", REDUCE, reduce) * 2
    + named("", SCANS, scan) + named("", "concatenate concat stack", join) + named("", "sort argsort", sort)
    + named("", "take_along_axis put_along_axis", along) + named("", "tril triu", triangle)
    + named("fast.", "rms_norm layer_norm", norm) + [where] * 2 + [clip] * 2 + named("", "isclose allclose", close) + [take] * 2 + [index] * 5 + [update] * 5
    + [operator] * 6 + [matmul] * 4 + [rope] * 2 + [attention] * 2 + [randoms] * 3 + [creation] * 5 + [quantized] * 3
    + [dtype_arg] * 3 + [tri_inv, kth("topk")]
    + [
        with_array("softmax", lambda g, x: ([], {"axis": g.axes(x.mx.ndim)} if g.chance(0.7) else {}), dtypes=FLOATS),
        with_array("reshape", lambda g, x: ([shape_of(g, x)], {})), with_array("squeeze", lambda g, x: ([g.axes(x.mx.ndim)], {})),
        with_array("reshape", lambda g, x: ([shape_of(g, x)], {})),
        with_array("flatten", lambda g, x: ([g.axis(x.mx.ndim) for _ in range(g.int(0, 2))], {})),
        with_array("transpose", lambda g, x: ([permutation(g, x.mx.ndim)] if g.chance(0.7) else [], {})),
        with_array("swapaxes", TWO), with_array("moveaxis", TWO), with_array("split", split), with_array("split", split),
        with_array("expand_dims", lambda g, x: ([g.axis(x.mx.ndim + 1) if g.chance(0.6) else [0, g.int(-2, 2)]], {})),
        with_array("broadcast_to", lambda g, x: ([[g.int(0, 3)] * g.int(0, 1) + [g.int(2, 3) if n == 1 and g.chance(0.5) else n for n in x.mx.shape]], {})),
    ]
)
# The functions that they call; callnames.py has the others.
NAMES = set(" ".join([EXACT, CLOSE, BINARY, BINARY_CLOSE, REDUCE, SCANS]).split()) | set(
    "concatenate concat stack sort argsort take_along_axis put_along_axis tril triu fast.rms_norm fast.layer_norm where clip isclose allclose "
    "take matmul fast.rope fast.scaled_dot_product_attention random.uniform random.normal random.randint random.bernoulli random.split "
    "random.key zeros ones full full_like eye arange quantize dequantize quantized_matmul gather_qmm astype linalg.tri_inv topk softmax reshape "
    "squeeze flatten transpose swapaxes moveaxis split expand_dims broadcast_to std var".split())
