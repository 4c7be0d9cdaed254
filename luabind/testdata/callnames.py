"""The calls of the functions that callspecs.py does not name: read from MLX's own list, tensor/ops/sig/mlx.txt, and drawn
by the names of their parameters; functions of several arrays say how the shapes go together.
"""

import math
import pathlib
import re

import mlx.core as mx
import numpy as np

from calltext import ALL, INTS, Arr, Dtype, Raw

FLOATS = ["float16", "bfloat16", "float32", "float32"]
MLX = pathlib.Path(__file__).resolve().parent / "../../tensor/ops/sig/mlx.txt"

# Names that no call is drawn of, and why.
LEFT = {
    "it runs functions": "checkpoint compile custom_function grad jvp value_and_grad vjp vmap depends",
    "it is about devices, memory, streams, files or printing": "async_eval clear_cache clear_streams default_device default_stream "
    "device_count device_info disable_compile enable_compile eval export_function export_to_dot exporter get_active_memory "
    "get_array_buffer_size get_cache_memory get_memory_limit get_peak_memory get_printoptions import_function is_available load new_stream "
    "new_thread_local_stream new_thread_unsafe_stream printoptions reset_peak_memory save save_gguf save_safetensors savez "
    "savez_compressed set_cache_limit set_default_device set_default_stream set_memory_limit set_printoptions set_wired_limit stream "
    "synchronize random.seed",
    "it gives no array": "can_cast isdtype issubdtype result_type broadcast_shapes einsum_path array_equal",
    "its elements are open": "empty empty_like",
    "its order or signs are open; golden data compare what they make": "argpartition partition linalg.eig linalg.eigh linalg.eigvals",
    "Python's": "asarray from_dlpack",
    "a script's kernels": "fast.metal_kernel fast.cuda_kernel fast.precompiled_cuda_kernel cuda.is_available",
    "MLX rounds ties otherwise": "qqmm gather_qqmm",
    "MLX's CPU reads other memory for a wrong shape": "block_masked_mm fast.gated_delta_update",
}
WHY_LEFT = {name: why for why, names in LEFT.items() for name in names.split()}


def parameters():
    """The functions of mlx.txt with their parameters: (name, has a default)."""
    out = {}
    for line in MLX.read_text().splitlines():
        m = re.match(r"([\w.]+)\((.*)\)$", line)
        if not m or m[1].startswith(("array.", "metal.", "distributed.")):
            continue
        params = [p.strip() for p in re.split(r",(?![^\[]*\])", m[2]) if p.strip()]
        out.setdefault(m[1], [(p.split("=")[0], "=" in p) for p in params])
    return out


def rank(x):
    return x.mx.ndim


def some(g, shape=None, dtypes=None, wild=False):
    return g.array(shape, g.dtype(dtypes), wild)


def given(g, shape, dtype, make):
    """An array of such values, in their order."""
    return g.array(shape, dtype, False, values=make, layout="")


def matrix(g, kind="any", n=None):
    """A batch of square matrices whose decompositions are well conditioned."""
    n = g.int(1, 4) if n is None else n
    batch = g.pick([[], [], [2], [2, 1], [0]])
    m = np.array([[[g.int(-3, 3) / 4 for _ in range(n)] for _ in range(n)] for _ in range(math.prod(batch))])
    m = m.reshape(*batch, n, n)
    if kind == "symmetric":
        m = m + np.swapaxes(m, -1, -2)
    m = m + np.diag([5.0 + i for i in range(n)])
    values = iter(m.reshape(-1).tolist())
    return given(g, [*batch, n, n], "float32", values.__next__)


def indices(g, n, shape=None):
    """Indices that are not negative: MLX takes those for large ones."""
    d = g.pick(["int32", "uint32", "int64"])
    return given(g, g.shape(0, 2, 0) if shape is None else shape, d, lambda: g.int(0, n - 1))


def norm(g):
    return g.pick(["backward", "forward", "ortho"] + (["none"] if g.chance(0.02) else []))


def conv(n, transposed=False):
    def make(g):
        groups = g.pick([1, 1, 1, 2])
        d = g.dtype(["float32"] * 4 + ["float16", "bfloat16"])
        c, o = g.int(1, 2) * groups, g.int(1, 2) * groups
        if g.chance(0.04):
            c += 1
        # MLX reads other memory where a kernel is larger than its input.
        spatial, kernel = [g.int(5, 7) for _ in range(n)], [g.int(1, 3) for _ in range(n)]
        each = lambda lo, hi: g.int(lo, hi) if n == 1 or g.chance(0.5) else [g.int(lo, hi) for _ in range(n)]  # noqa: E731
        # MLX counts a transposed convolution's kernels like a plain one's.
        return {"input": some(g, [g.int(1, 2)] + spatial + [c], [d]), "weight": some(g, [o] + kernel + [c // groups], [d]),
                "stride": each(1, 2), "padding": each(0, 2), "dilation": each(1, 2), "groups": groups,
                "output_padding": each(0, 1), "kernel_dilation": each(1, 2), "input_dilation": each(1, 2), "flip": g.chance(0.5)}
    return make


def einsum(g):
    sizes = {c: g.int(1, 3) for c in "ijkl"}
    ins = ["".join(g.r.sample("ijkl", g.int(1, 3))) for _ in range(g.int(1, 3))]
    used = sorted(set("".join(ins)))
    out = "".join(g.r.sample(used, g.int(0, len(used))))
    text = ",".join(ins) + ("->" + out if g.chance(0.8) else "")
    return {"subscripts": text, "operands": [some(g, [sizes[c] for c in s], ["float32"] * 6 + ["float16", "complex64"]) for s in ins]}


def quantized(g):
    """The modes of floats; callspecs.py has the affine one."""
    mode = g.pick(["mxfp4", "mxfp8", "nvfp4"])
    group = 16 if mode == "nvfp4" else 32
    rows, cols, d, seed = g.int(1, 3), 32 * g.int(1, 3), g.pick(FLOATS), g.int(0, 99)
    w = mx.random.uniform(-1, 1, (rows, cols), key=mx.random.key(seed)).astype(getattr(mx, d))
    wt = f"mx.random.uniform(-1, 1, {{{rows}, {cols}}}, {{key = mx.random.key({seed})}}):astype(mx.{d})"
    bits = 8 if mode == "mxfp8" else 4
    kw, opt = {"group_size": group, "bits": bits, "mode": mode}, f'{{group_size = {group}, bits = {bits}, mode = "{mode}"}}'
    kind = g.pick(["quantize", "dequantize", "quantized_matmul", "gather_qmm"])
    head = f"(function() local q, s = mx.quantize({wt}, {opt}) return "
    if kind == "quantize":
        return (lambda: mx.quantize(w, **kw)), f"{{mx.quantize({wt}, {opt})}}", None, 0
    if kind == "dequantize":
        return (lambda: mx.dequantize(*mx.quantize(w, **kw), **kw)), head + f"mx.dequantize(q, s, {opt}) end)()", None, 0
    t = g.chance(0.5)
    if kind == "quantized_matmul":
        x = g.array([g.int(1, 3), cols if t else rows], d, False)
        opt = opt[:-1] + f", transpose = {'true' if t else 'false'}}}"
        return (lambda: mx.quantized_matmul(x.mx, *mx.quantize(w, **kw), transpose=t, **kw),
                head + f"mx.quantized_matmul({x.text}, q, s, {opt}) end)()", None, 1024)
    x = g.array([2, 1, cols], d, False)
    i = indices(g, 2, [3])
    run = lambda: mx.gather_qmm(x.mx, *[p[None] for p in mx.quantize(w, **kw)], lhs_indices=i.mx, rhs_indices=mx.zeros(3, mx.uint32), **kw)  # noqa: E731
    opt = opt[:-1] + f", lhs_indices = {i.text}, rhs_indices = mx.zeros({{3}}, mx.uint32)}}"
    return run, head + f"mx.gather_qmm({x.text}, mx.expand_dims(q, 0), mx.expand_dims(s, 0), {opt}) end)()", None, 1024


def two(g, batch=True):
    """The shapes of a product's operands."""
    m, k, n = g.int(1, 5), g.int(1, 5), g.int(1, 5)
    b = g.shape(0, 1, 0) if batch else []
    return b + [m, k], g.like(b) + [k + g.chance(0.03), n]


def product(g):
    a, b = two(g)
    d = g.pick(FLOATS)
    return {"a": some(g, a, [d]), "b": some(g, b, [d]), "c": some(g, g.like([a[-2], b[-1]]), [d])}


def gathered(g):
    a, b = g.int(1, 3), g.int(1, 3)
    m, k, n = g.int(1, 5), g.int(1, 5), g.int(1, 5)
    s = g.shape(0, 2, 0)
    return {"a": some(g, [a, m, k], ["float32"]), "b": some(g, [b, k, n], ["float32"]), "lhs_indices": indices(g, a, s),
            "rhs_indices": indices(g, b, s), "sorted_indices": False}


def segmented(g):
    m, k, n = g.int(1, 5), g.int(1, 9), g.int(1, 5)
    return {"a": some(g, [m, k], ["float32"]), "b": some(g, [k, n], ["float32"]),
            "segments": given(g, g.shape(0, 2, 0) + [2], "uint32", lambda: g.int(0, k))}


def quotient(g):
    """The operands of divmod: what the quotient of bools by zero is, C++ leaves open."""
    return same(g, ["float32", "float32", "float16", "int32", "uint8"])


def same(g, dtypes=None, least=0):
    s, d = g.shape(least), g.dtype(dtypes)
    return {"a": some(g, s, [d]), "b": some(g, s if g.chance(0.6) else g.like(s), [d])}


def strided(g):
    x = g.array(g.shape(1, 3, 0), wild=False, layout="")  # MLX refuses arrays that are not contiguous
    n = x.mx.size
    s = [g.int(1, 3) for _ in range(g.int(0, 3))]
    strides = [g.int(0, 3) for _ in s]
    reach = sum((a - 1) * b for a, b in zip(s, strides))
    if reach >= n:
        s, strides, reach = [n], [1], n - 1
    return {"a": x, "shape": s, "strides": strides, "offset": g.int(0, n - 1 - reach)}


def sliced(g):
    x = g.array(g.shape(1, 3, 0), wild=False)
    axes = g.r.sample(range(rank(x)), g.int(1, rank(x)))
    size = [g.int(1, n) if i in axes else n for i, n in enumerate(x.mx.shape)]
    starts = [g.int(0, x.mx.shape[a] - size[a]) for a in axes]
    start = given(g, [len(axes)], "int32", iter(starts).__next__)
    u = g.array(size, str(x.mx.dtype).removeprefix("mlx.core.").rstrip("_"), False)
    return {"a": x, "start_indices": start, "axes": axes, "slice_size": size, "update": u}


def pads(g):
    x = g.array(wild=False)
    p = lambda: g.int(0, 2)  # noqa: E731
    width = g.pick([p(), [p(), p()], [[p(), p()] for _ in range(rank(x))]])
    return {"a": x, "pad_width": width, "mode": g.pick(["constant", "edge"]) if x.mx.size else "constant",
            "constant_values": g.pick([0, 2] if "u" in x.dtype() or x.dtype() == "bool" else [0, 2, -1.5])}


def spectrum(n):
    """fft's axes: n of them, or any."""
    def make(g):
        x = some(g, g.shape(max(n, 1), 3), ["float32"] * 3 + ["complex64", "int32", "float16"])
        axes = g.r.sample(range(-rank(x), 0), n or g.int(1, rank(x)))
        if len({a % rank(x) for a in axes}) < len(axes):
            axes = axes[:1]
        return {"a": x, "axes": axes, "s": [g.int(1, 9) for _ in axes], "n": g.int(1, 11), "axis": g.axis(rank(x)), "norm": norm(g)}
    return make


def cross(g):
    n = g.pick([2, 3, 3])
    s = g.shape(0, 2) + [n]
    return {"a": some(g, s), "b": some(g, s[:-1] + [g.pick([n, n, 3])]), "axis": -1}


def solve(g):
    a = matrix(g)
    n, batch = a.mx.shape[-1], list(a.mx.shape[:-2])
    return {"a": a, "b": some(g, batch + [n, g.int(1, 3)], ["float32"]), "upper": g.chance(0.5)}


def sorted_sequence(g):
    n = g.int(0, 6)
    d = g.pick(["float32", "int32"])
    values = sorted(g.int(-9, 9) for _ in range(n))
    return {"sorted_sequence": given(g, [n], d, iter(values).__next__), "values": some(g, None, [d]), "side": g.pick(["left", "right"])}


def unflatten(g):
    x = g.array(g.shape(1, 3), wild=False)
    axis = g.axis(rank(x))
    n = x.mx.shape[axis] if -rank(x) <= axis < rank(x) else 4
    k = g.pick([d for d in range(1, n + 1) if n % d == 0] or [1])
    return {"a": x, "axis": axis, "shape": g.pick([[k, n // k], [k, -1], [-1, k], [n], [k, k + 1]])}


def covariance(g):
    n = g.int(1, 3)
    return {"mean": some(g, [n], ["float32"]), "cov": matrix(g, "symmetric", n), "dtype": Dtype("float32")}


def waves(g):
    d = g.pick(["float32", "float16"])
    x = g.array(g.shape(0, 1, 0) + [g.int(8, 20)], d, False, layout="")  # as it does here
    return {"x": x, "n_fft": 8, "hop_length": g.pick([2, 4]), "win_length": 8, "center": g.chance(0.5),
            "pad_mode": g.pick(["reflect", "constant"]), "norm": norm(g), "onesided": None, "window": some(g, [8], [d])}


def spectra(g):
    frames = g.int(1, 4)
    one = g.chance(0.7)
    return {"stft_matrix": some(g, g.shape(0, 1, 0) + [5 if one else 8, frames], ["complex64"]), "n_fft": 8, "hop_length": g.pick([2, 4]),
            "win_length": 8, "window": Arr(mx.hanning(8) + 1, "mx.hanning(8) + 1"), "center": g.chance(0.5), "norm": norm(g), "onesided": one,
            "length": g.int(1, 12)}


def tensordot(g):
    n = g.int(0, 2)
    common = [g.int(1, 3) for _ in range(n)]
    d = g.pick(["float32", "float16", "int32"])
    return {"a": some(g, g.shape(0, 2, 0) + common, [d]), "b": some(g, common + g.shape(0, 2, 0), [d]), "axes": n}


def lines(g):
    n = g.int(1, 5)
    s = g.shape(0, 2, 0)
    return {"a": some(g, s + [n], FLOATS), "b": some(g, s + [n], FLOATS), "axis": -1}


SHAPES = {
    "conv1d": conv(1), "conv2d": conv(2), "conv3d": conv(3), "conv_transpose1d": conv(1), "conv_transpose2d": conv(2),
    "conv_transpose3d": conv(3), "conv_general": lambda g: conv(g.int(1, 3))(g), "einsum": einsum, "addmm": product, "gather_mm": gathered,
    "segmented_mm": segmented, "as_strided": strided, "slice": sliced, "slice_update": sliced, "pad": pads, "linalg.cross": cross,
    "linalg.solve": solve, "linalg.solve_triangular": solve, "searchsorted": sorted_sequence, "unflatten": unflatten,
    "random.multivariate_normal": covariance, "fft.stft": waves, "fft.istft": spectra, "tensordot": tensordot, "vecdot": lines,
    "inner": lambda g: {"a": (x := lines(g))["a"], "b": some(g, [3] * g.int(0, 1) + [x["a"].mx.shape[-1]], FLOATS)},
    "kron": lambda g: {"a": some(g, g.shape(0, 2)), "b": some(g, g.shape(0, 2))},
    "outer": lambda g: {"a": some(g, g.shape(0, 2)), "b": some(g, g.shape(0, 2))},
    "convolve": lambda g: {"a": some(g, [g.int(1, 9)], FLOATS[2:]), "v": some(g, [g.int(1, 9)], FLOATS[2:]), "mode": g.pick(["full", "valid", "same"])},
    "hadamard_transform": lambda g: {"a": some(g, g.shape(0, 1) + [g.pick([1, 2, 4, 8, 12, 20, 28])], FLOATS[2:])},
    "fast.cross_entropy": lambda g: {"logits": (x := some(g, g.shape(0, 1, 0) + [g.int(1, 9)], FLOATS[2:])),
                                     "targets": given(g, list(x.mx.shape[:-1]), "int32", lambda: g.int(0, x.mx.shape[-1] - 1))},
    "fft.fft": spectrum(1), "fft.ifft": spectrum(1), "fft.rfft": spectrum(1), "fft.irfft": spectrum(1), "fft.fft2": spectrum(2),
    "fft.ifft2": spectrum(2), "fft.rfft2": spectrum(2), "fft.irfft2": spectrum(2), "fft.fftn": spectrum(0), "fft.ifftn": spectrum(0),
    "fft.rfftn": spectrum(0), "fft.irfftn": spectrum(0), "fft.fftshift": spectrum(0), "fft.ifftshift": spectrum(0),
    "linalg.cholesky": lambda g: {"a": matrix(g, "symmetric"), "upper": g.chance(0.5)},
    "linalg.cholesky_inv": lambda g: {"a": matrix(g, "symmetric"), "upper": g.chance(0.5)},
    "linalg.det": lambda g: {"a": matrix(g)}, "linalg.slogdet": lambda g: {"a": matrix(g)}, "linalg.inv": lambda g: {"a": matrix(g)},
    "linalg.lu": lambda g: {"a": matrix(g)}, "linalg.lu_factor": lambda g: {"a": matrix(g)}, "linalg.qr": lambda g: {"a": matrix(g)},
    "linalg.pinv": lambda g: {"a": matrix(g)}, "linalg.eigvalsh": lambda g: {"a": matrix(g, "symmetric"), "UPLO": g.pick(["L", "U"])},
    "matrix_norm": lambda g: SHAPES["linalg.norm"](g), "linalg.svd": lambda g: {"a": matrix(g), "compute_uv": False},
    "linalg.norm": lambda g: {"a": (x := some(g, g.shape(1, 3, 0), FLOATS)), "ord": g.pick([1, 2, -1, math.inf, -math.inf, 0, 3.5, "fro"]) if rank(x) < 3 else 2,
                              "axis": g.axis(rank(x)), "keepdims": g.chance(0.5)},
    "unique": lambda g: {"a": some(g, g.shape(0, 2)), "size": g.int(1, 6), "return_index": g.chance(0.5), "return_inverse": g.chance(0.5),
                         "return_counts": g.chance(0.5), "fill_value": g.pick([0, 3])},
    "divmod": quotient, "to_fp8": lambda g: {"x": some(g, None, FLOATS[1:])}, "from_fp8": lambda g: {"x": some(g, None, ["uint8"]), "dtype": Dtype(g.pick(FLOATS))},
    "view": lambda g: {"a": some(g, g.shape(1) , None), "dtype": Dtype(g.pick(ALL[1:]))},
    "random.categorical": lambda g: {"logits": (x := some(g, g.shape(1, 2, 0), ["float32"])), "axis": g.axis(rank(x)), "num_samples": g.int(1, 3)},
    "random.permutation": lambda g: {"x": (x := some(g, g.shape(1, 2, 0))), "axis": g.int(-rank(x), rank(x) - 1)} if g.chance(0.7) else {"x": g.int(1, 9), "axis": 0},
    "random.truncated_normal": lambda g: {"lower": -1.5, "upper": g.pick([0.5, 2.0]), "shape": g.shape(0, 2), "dtype": Dtype("float32")},
    "linspace": lambda g: {"start": g.int(-4, 4), "stop": g.pick([5, 7.5, -3]), "num": g.int(0, 7), "endpoint": g.chance(0.5), "dtype": Dtype(g.pick(FLOATS))},
    "median": lambda g: {"a": (x := some(g, g.shape(1, 4, 0), None)), "axis": g.axes(rank(x)) or None, "keepdims": g.chance(0.5)},
    "minmax": lambda g: {"a": (x := some(g, g.shape(1, 4, 0), None)), "axis": g.axes(rank(x)) or None, "keepdims": g.chance(0.5)},
}


def count(g):
    return g.int(1, 3)


# What a parameter of that name may be, after the first array x.
PARAMS = {
    "axis": lambda g, x: g.axis(rank(x)), "axis1": lambda g, x: g.axis(rank(x)), "axis2": lambda g, x: g.axis(rank(x)),
    "axes": lambda g, x: g.r.sample(range(rank(x)), rank(x)), "keepdims": lambda g, x: g.chance(0.5), "k": lambda g, x: g.int(-2, 2),
    "offset": lambda g, x: g.int(-2, 2), "n": lambda g, x: g.int(0, 5), "m": lambda g, x: g.int(0, 5), "M": lambda g, x: g.int(0, 9),
    "d": lambda g, x: g.pick([0.5, 2.0]), "decimals": lambda g, x: g.int(-1, 2), "dtype": lambda g, x: Dtype(g.pick(ALL)),
    "shape": lambda g, x: g.shape(0, 2), "repeats": lambda g, x: count(g), "reps": lambda g, x: g.pick([2, [1, 2], [2], [2, 1, 2]]),
    "shift": lambda g, x: g.int(-4, 4), "scale": lambda g, x: g.pick([0.5, 2.0]), "loc": lambda g, x: g.pick([0.5, -1.0]),
    "key": lambda g, x: Arr(mx.random.key(s := g.int(0, 99)), f"mx.random.key({s})"), "reverse": lambda g, x: g.chance(0.5),
    "inclusive": lambda g, x: g.chance(0.5), "allow_col_major": lambda g, x: False, "nan": lambda g, x: 1.5, "posinf": lambda g, x: 7.0,
    "neginf": lambda g, x: -7.0, "sparse": lambda g, x: g.chance(0.5), "indexing": lambda g, x: g.pick(["xy", "ij"]),
    "mode": lambda g, x: "full", "alpha": lambda g, x: 0.5, "beta": lambda g, x: 2.0, "a": lambda g, x: g.array(dtype=None),
    "b": lambda g, x: g.array(g.like(x.mx.shape), wild=False), "x": lambda g, x: g.array(wild=False), "array": lambda g, x: g.array(wild=False),
    "ddof": lambda g, x: g.int(0, 1), "correction": lambda g, x: 1,
}
# Functions that get all their arguments, and those whose results in any dtype C++ leaves open.
WHOLE = set("as_strided linalg.svd fft.stft fft.istft".split())
NO_DTYPE = set("cumulative_sum cumulative_prod trace".split())
LISTS = {"arys": 2, "arrays": 2}
# Functions whose first argument is a list or any number of arrays, which are no methods.
LISTED = "atleast_1d atleast_2d atleast_3d broadcast_arrays meshgrid einsum".split()
LUA = {"repeat": 'mx["repeat"]'}


def derived(name, params):
    dtypes = INTS if "shift" in name else INTS + ["bool"] if name.startswith("bitwise") else None

    def spec(g):
        values = SHAPES[name](g) if name in SHAPES else {}
        if not values and [p for p, _ in params[:2]] == ["a", "b"]:
            values = same(g, dtypes)
            if "shift" in name:
                values["b"] = given(g, values["b"].mx.shape, values["b"].dtype(), lambda: g.int(0, 7))
        elif not values and dtypes:
            values = {"a": some(g, None, dtypes)}
        args, kw, x = [], {}, next((v for v in values.values() if isinstance(v, Arr)), None)
        for p, optional in params:
            many = p.startswith("*")
            p = p.lstrip("*")
            if optional and p != "key" and name not in WHOLE and g.chance(0.4) or p == "dtype" and name in NO_DTYPE:
                continue
            if p in values:
                v = values[p]
            elif many or p in LISTS:
                v = [g.array(g.shape(0, 1) if name == "meshgrid" else None, wild=False) for _ in range(g.int(1, 3))]
                if name == "broadcast_arrays":
                    v = [v[0]] + [g.array(g.like(v[0].mx.shape), wild=False) for _ in v[1:]]
            else:
                v = PARAMS[p](g, x)
            if x is None and isinstance(v, Arr):
                x = v
            if optional:
                kw[p] = v
            else:
                args += v if many else [v]
        exact = name in MOVERS
        return name, args, kw, 0 if exact else 256
    return spec


MOVERS = set("atleast_1d atleast_2d atleast_3d broadcast_arrays contiguous diag diagonal flip repeat tile roll pad unstack unflatten view "
             "as_strided slice slice_update meshgrid permute_dims matrix_transpose bitwise_and bitwise_or bitwise_xor bitwise_invert left_shift "
             "right_shift bitwise_left_shift bitwise_right_shift logical_xor isneginf isposinf identity tri unique searchsorted to_fp8 from_fp8 "
             "count_nonzero positive trunc random.permutation random.categorical".split())


def specs(named):
    """Specs of all functions of MLX's list that are neither among those names nor left out."""
    out = [quantized] * 2
    for name, params in parameters().items():
        if name in named or name in WHY_LEFT:
            continue
        out.append(derived(name, params))
    return out
