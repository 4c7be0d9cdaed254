"""Values of calls.py with the Lua text that makes them."""

import math

import mlx.core as mx
import numpy as np

INTS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
ALL = ["bool"] + INTS + FLOATS + ["complex64"]
LIMITS = {"bool": (0, 1)} | {d: (int(np.iinfo(d).min), int(np.iinfo(d).max)) for d in INTS}


class Arr:
    """An array of MLX and the Lua text that makes it."""

    def __init__(self, value, text):
        self.mx, self.text = value, text

    def dtype(self):
        return str(self.mx.dtype).removeprefix("mlx.core.").rstrip("_")

    def only(self, dtype):
        """The array in that dtype."""
        return Arr(self.mx.astype(getattr(mx, dtype)), f"{self.text}:astype(mx.{dtype})")


class Raw:
    """A Python value with a Lua text of its own."""

    def __init__(self, value, text):
        self.mx, self.text = value, text


class Dtype(Raw):
    def __init__(self, name):
        super().__init__(mx.bool_ if name == "bool" else getattr(mx, name), "mx." + name)
        self.name = name


def number(v):
    if isinstance(v, complex):
        return f"mx.complex({number(v.real)}, {number(v.imag)})"
    if isinstance(v, int):
        return str(v) if abs(v) < 1 << 53 else f'"{v}"'
    if math.isnan(v):
        return "mx.nan"
    if math.isinf(v):
        return "mx.inf" if v > 0 else "-mx.inf"
    if v == 0 and math.copysign(1, v) < 0:
        return "nz"
    return str(int(v)) if v == int(v) and abs(v) < 1e15 else repr(v)


def lua(v):
    if isinstance(v, (Arr, Raw)):
        return v.text
    if v is None:
        return "nil"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (int, float, complex)):
        return number(v)
    if isinstance(v, str):
        return '"' + v + '"'
    return "{" + ", ".join(lua(x) for x in v) + "}"


def python(v):
    if isinstance(v, (Arr, Raw)):
        return v.mx
    return type(v)(python(x) for x in v) if isinstance(v, (list, tuple)) else v
