"""The inputs of golden data: the same formulas as gen.go's, so that the files hold outputs only."""

import base64
import json
import math

import mlx.core as mx
import numpy as np

SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 2.5, -2.5, 100.0, -100.0]
INTS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
ALL = ["bool"] + INTS + FLOATS + ["complex64"]
M = 0xFFFFFFFF


def element(gen, k, i, n):
    kind, lo, hi = gen
    h = ((i + 1) * 2654435761 + (k + 1) * 0x9E3779B1) & M
    h ^= h >> 15
    h = h * 0x2C1B3C6D & M
    h ^= h >> 12
    h = h * 0x297A2D39 & M
    h ^= h >> 15
    if kind == "uniform":
        return lo + (h % int((hi - lo) * 16 + 1)) / 16
    if kind == "ints":
        return lo + float(h % int(hi - lo + 1))
    if kind == "distinct":
        for p in (7, 11, 13, 17, 19):
            if n % p:
                return lo + ((i * p + k) % n - n // 2) / 4
        return lo + (i - n // 2) / 4
    if kind == "special":
        return SPECIALS[(i + i // len(SPECIALS) * k) % len(SPECIALS)]
    raise ValueError(kind)


def value(gen, k, i, n, dtype):
    v = element(gen, k, i, n)
    if dtype == "bool":
        return math.fmod(abs(math.floor(v * 4)), 2) != 0
    if dtype.startswith("uint"):
        return abs(math.floor(v))
    if dtype.startswith("int"):
        return math.floor(v)
    if dtype == "complex64":
        return complex(v, element(gen, k + 100, i, n))
    return v


def mlx_dtype(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


def array(k, shape, gen, dtype):
    n = math.prod(shape)
    v = [value(gen, k, i, n, dtype) for i in range(n)]
    if dtype == "bfloat16":
        return mx.array(np.array(v, np.float32).reshape(shape)).astype(mx.bfloat16)
    return mx.array(np.array(v, dtype).reshape(shape), dtype=mlx_dtype(dtype))


def shape_text(shape):
    return "(" + ",".join(str(n) for n in shape) + ")"


def output(y):
    name = str(y.dtype).removeprefix("mlx.core.").rstrip("_")
    if name == "bfloat16":
        raw = np.array(y.view(mx.uint16))
    else:
        raw = np.array(y)
    data = base64.b64encode(np.ascontiguousarray(raw).tobytes()).decode()
    return f"{shape_text(y.shape)} {name} {data}"


def cases(fn, specs, dtypes):
    """The golden cases of fn: specs are lists of (shape, generator[, dtype]); dtypes that MLX refuses are left out."""
    out = []
    for spec in specs:
        for d in dtypes:
            ins = [(s[0], s[1], s[2] if len(s) > 2 else d) for s in spec]
            if any(g[0] == "special" and not (t in FLOATS or t == "complex64") for _, g, t in ins):
                continue
            try:
                ys = fn(*[array(k, *x) for k, x in enumerate(ins)])
                ys = list(ys) if isinstance(ys, (list, tuple)) else [ys]
                mx.eval(ys)
            except (ValueError, RuntimeError, TypeError):
                continue
            out.append(
                {
                    "In": [f"{shape_text(s)} {t} {g[0]} {g[1]} {g[2]}" for s, g, t in ins],
                    "Out": [output(y) for y in ys],
                }
            )
    return out


def write(file, ops, command):
    with open(file, "w") as f:
        head = f'"Header": "MLX {mx.__version__}, CPU: {command}"'
        body = ",\n".join(
            f'{json.dumps(name)}: [\n' + ",\n".join(json.dumps(c) for c in cs) + "\n]" for name, cs in ops.items()
        )
        f.write("{" + head + ',\n"Ops": {\n' + body + "\n}}\n")
