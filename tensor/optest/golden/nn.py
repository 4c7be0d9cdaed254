"""Golden data for joins, scans, partitions and the fast ops, from MLX on the CPU: python3 golden/nn.py."""

import mlx.core as mx

from formula import ALL, FLOATS, cases, write

U = ("uniform", -2, 2)
D = ("distinct", 0, 0)
S = ("special", 0, 0)
HALFS = ["float16", "bfloat16", "float32"]
REAL = [*HALFS, "float64"]
FEW = ["float32", "float16", "bfloat16", "int32", "uint8", "bool", "complex64", "int64"]


def ints(lo, hi):
    return ("ints", lo, hi)


def joins():
    x, y, z = ((2, 3), U), ((2, 1), U), ((2, 0), U)
    return {
        "concatenate": cases(lambda *a: mx.concatenate(a, axis=1), [[x, y, z], [z, x], [x]], FEW)
        + cases(lambda *a: mx.concatenate(a, axis=1), [[((2, 3), U, "float16"), ((2, 2), ints(0, 9), "int32")]],
                ["float16"]),
        "concatenate first": cases(lambda *a: mx.concatenate(a), [[((2, 3), U), ((1, 3), U), ((2, 3), U)]], ALL),
        "concatenate flat": cases(lambda *a: mx.concatenate(a, axis=None), [[x, y]], FEW),
        "stack": cases(lambda *a: mx.stack(a, axis=-1), [[x, x], [((), U), ((), U)], [z, z, z], [x]], FEW),
        "stack first": cases(lambda *a: mx.stack(a), [[x, x]], FEW),
        "split": cases(lambda a: mx.split(a, 2, axis=1), [[((3, 4), U)], [((2, 0), U)], [((1, 6, 2), U)]], FEW),
        "split at": cases(lambda a: mx.split(a, [2, 1, -1, 9], axis=-1),
                          [[((3, 4), U)], [((5,), U)], [((2, 0), U)]], FEW),
    }


def scans():
    out = {}
    table = {"cumsum": mx.cumsum, "cumprod": mx.cumprod, "cummax": mx.cummax, "cummin": mx.cummin,
             "logcumsumexp": mx.logcumsumexp}
    for name, f in table.items():
        # In half types MLX rounds after every step, mlxlua once.
        real = ["float32", "float64"] if name in ("cumsum", "cumprod", "logcumsumexp") else REAL
        dtypes = [d for d in ALL if d not in FLOATS] + real
        if name == "logcumsumexp":
            dtypes = ["int32", "uint8", "bool", "float32"]  # MLX's float64 is good to 9 digits only
        x = [[((3, 5), U)], [((1, 70), ints(-1, 1))], [((1,), U)], [((0, 3), U)], [((2, 3, 4), D)]]
        if name == "cumprod":
            x = [[((3, 5), U)], [((1, 40), ints(1, 1))], [((1,), U)], [((0, 3), U)], [((2, 3, 4), ("uniform", 0.5, 2))]]
        if name != "logcumsumexp":
            dtypes.append("complex64")
        for text, kw in (("", {}), (" reverse", {"reverse": True}), (" exclusive", {"inclusive": False}),
                         (" reverse exclusive", {"reverse": True, "inclusive": False})):
            out[name + text] = cases(lambda a, f=f, kw=kw: f(a, axis=-1, **kw), x, dtypes)
            out[name + text] += cases(lambda a, f=f, kw=kw: f(a, axis=-1, **kw), [[((12,), S)], [((24,), S)]],
                                      ["float32"])  # MLX's bfloat16 loses NaN
            out[name + " first" + text] = cases(lambda a, f=f, kw=kw: f(a, axis=0, **kw), x[:1] + x[3:], dtypes)
        out[name + " flat"] = cases(lambda a, f=f: f(a), [[((3, 5), U)], [((), U)]], dtypes)
    return out


def kth(f, sort):
    """A partition as far as it is determined: the element at kth, and what stands before and after it, sorted."""

    def call(a):
        y = f(a)
        return [y[..., 2], mx.sort(y[..., :2], axis=-1), mx.sort(y[..., 3:], axis=-1)]

    return call


def partitions():
    shapes = [[((3, 7), D)], [((300,), D)], [((2, 40), ints(0, 9))]]
    # The order of equal complex numbers and of NaN is sort's: see there.
    real = [d for d in ALL if d not in ("bool", "complex64")]
    few = [[((3, 7), D)], [((300,), D)]]
    wide = ["float32", "int32", "float64", "int64", "bfloat16", "uint16"]

    def indices(a):
        y = mx.argpartition(a, 2, axis=-1)
        y = mx.take_along_axis(a, y, axis=-1)
        return [y[..., 2], mx.sort(y[..., :2], axis=-1), mx.sort(y[..., 3:], axis=-1)]

    return {
        "partition": cases(kth(lambda a: mx.partition(a, 2, axis=-1), mx.sort), shapes, real),
        "argpartition": cases(indices, few, wide),
        "topk": cases(lambda a: mx.sort(mx.topk(a, 3), axis=-1), shapes, real),
        "topk first": cases(lambda a: mx.sort(mx.topk(a, 3, axis=0), axis=0), [[((7, 3), D)], [((3, 2), D)]], wide),
        "topk flat": cases(lambda a: mx.sort(mx.topk(a, 4, axis=None)), [[((3, 7), D)]], wide),
        "topk none": cases(lambda a: mx.topk(a, 0), [[((3, 7), D)]], wide),
    }


def norms():
    out = {}
    x = [((3, 8), U), ((2, 3, 70), U), ((5, 1), U), ((0, 4), U), ((300,), U)]
    for s, g in x:
        w = ((s[-1],), U)
        for name, f, specs in (
            ("rms_norm", lambda x, w: mx.fast.rms_norm(x, w, 1e-3), [(s, g), w]),
            ("rms_norm plain", lambda x: mx.fast.rms_norm(x, None, 1e-3), [(s, g)]),
            ("layer_norm", lambda x, w, b: mx.fast.layer_norm(x, w, b, 1e-3), [(s, g), w, w]),
            ("layer_norm weight", lambda x, w: mx.fast.layer_norm(x, w, None, 1e-3), [(s, g), w]),
            ("layer_norm bias", lambda x, b: mx.fast.layer_norm(x, None, b, 1e-3), [(s, g), w]),
            ("layer_norm plain", lambda x: mx.fast.layer_norm(x, None, None, 1e-3), [(s, g)]),
        ):
            out.setdefault(name, []).extend(cases(f, [specs], HALFS))  # MLX computes float64 in float32
    mixed = [[((2, 8), ints(0, 9), "int32"), ((8,), U)]]
    out["rms_norm"] += cases(lambda x, w: mx.fast.rms_norm(x, w, 1e-3), mixed, HALFS)
    return out


def ropes():
    x = [((2, 3, 5, 8), U)]
    all_x = [x, [((3, 2, 8), U)], [((1, 1, 1, 9), U)], [((0, 3, 2, 8), U)], [((2, 2, 3, 2, 8), U)], [((2, 5, 3, 8), U)]]

    def rope(traditional=False, dims=8, base=100.0, scale=1.0, offset=0):
        def call(a, *more):
            at, freqs = offset, None
            b = base
            if more:
                at = more[0]
            if len(more) > 1:
                freqs, b = more[1], None
            return mx.fast.rope(a, dims, traditional=traditional, base=b, scale=scale, offset=at, freqs=freqs)

        return call

    one, each = ((), ints(3, 3), "int32"), ((2,), ints(0, 5), "int32")
    freqs = ((4,), ("uniform", 1, 4))
    return {
        "rope": cases(rope(), all_x, HALFS),
        "rope traditional": cases(rope(traditional=True, offset=7), all_x, HALFS),
        "rope part": cases(rope(dims=6, scale=0.5, offset=2), all_x, HALFS),
        "rope traditional part": cases(rope(dims=2, traditional=True), all_x, HALFS),
        "rope offset": cases(rope(), [[*x, one], [*x, each]], HALFS),
        "rope freqs": cases(rope(), [[*x, one, freqs], [*x, each, freqs]], HALFS),
    }


def attentions():
    out = {}
    f = mx.fast.scaled_dot_product_attention
    qkv = [
        [((2, 4, 3, 8), U), ((2, 2, 5, 8), U), ((2, 2, 5, 6), U)],
        [((1, 2, 1, 64), U), ((1, 1, 40, 64), U), ((1, 1, 40, 64), U)],
        [((1, 3, 7, 33), U), ((1, 3, 3, 33), U), ((1, 3, 3, 70), U)],
        [((1, 8, 2, 128), U), ((1, 1, 70, 128), U), ((1, 1, 70, 128), U)],
        [((1, 1, 2, 300), U), ((1, 1, 35, 300), U), ((1, 1, 35, 300), U)],
        [((0, 2, 3, 4), U), ((0, 2, 5, 4), U), ((0, 2, 5, 4), U)],
        [((1, 2, 3, 4), U), ((1, 2, 0, 4), U), ((1, 2, 0, 5), U)],
    ]
    few = ["float32"]  # MLX multiplies in half types: those are compared for one shape
    add = lambda name, call, more, dtypes=few, which=qkv: out.setdefault(name, []).extend(  # noqa: E731
        c for s in which for c in cases(call, [s + more(s)], dtypes))
    add("sdpa", lambda q, k, v: f(q, k, v, scale=0.25), lambda s: [])
    add("sdpa", lambda q, k, v: f(q, k, v, scale=0.25), lambda s: [], HALFS, qkv[:1])
    add("sdpa causal", lambda q, k, v: f(q, k, v, scale=0.25, mask="causal"), lambda s: [], few, qkv[:6])
    scores = lambda s: (s[0][0][0], s[0][0][1], s[0][0][2], s[1][0][2])  # noqa: E731
    mask = lambda q, k, v, m: f(q, k, v, scale=0.25, mask=m)  # noqa: E731
    add("sdpa mask", mask, lambda s: [(scores(s), ints(0, 1), "bool")])
    add("sdpa mask", mask, lambda s: [(scores(s)[2:], ints(0, 1), "bool")])
    add("sdpa mask", mask, lambda s: [((scores(s)[1], 1, 1), ints(0, 1), "bool")])
    add("sdpa added", mask, lambda s: [(scores(s), U)])
    add("sdpa added", mask, lambda s: [((scores(s)[3],), U)])
    sinks = lambda q, k, v, s: f(q, k, v, scale=0.25, sinks=s)  # noqa: E731
    add("sdpa sinks", sinks, lambda s: [((scores(s)[1],), U)], few, qkv[:6])
    return out


for file, table in {"joins": joins, "scans": scans, "partitions": partitions, "norms": norms, "ropes": ropes,
                    "attention": attentions}.items():
    write(f"testdata/{file}.json", table(), "python3 golden/nn.py, in tensor/optest")
