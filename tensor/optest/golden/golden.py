"""What golden data are made of. A family's script calls functions of MLX's on arrays made by formulas, which gen.go shares,
and writes for each call the function's name, its arguments by name, and what MLX gave:

    call("softmax", In((3, 4)), axis=-1, dtypes=HALFS)
    write("reductions")

python golden/<family>.py, in tensor/optest, writes testdata/<family>.json. The tests of tensor/ops/rooms make each call
through the function's signature, by position and by name.
"""

import base64
import importlib.util
import json
import math
import pathlib

import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)
HERE = pathlib.Path(__file__).resolve().parent
names = importlib.util.spec_from_file_location("names", HERE / "../../ops/sig/testdata/names.py")
module = importlib.util.module_from_spec(names)
names.loader.exec_module(module)

SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 2.5, -2.5, 100.0, -100.0]
INTS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
ALL = ["bool"] + INTS + FLOATS + ["complex64"]
HALFS = ["float16", "bfloat16", "float32"]
FEW = ["float32", "float16", "bfloat16", "int32", "uint8", "bool", "complex64", "int64"]
M = 0xFFFFFFFF

# Generators of elements.
U = ("uniform", -2, 2)
POSITIVE = ("uniform", 0.25, 4)
WIDE = ("uniform", -6, 6)
DISTINCT = ("distinct", 0, 0)
SPECIAL = ("special", 0, 0)


def ints(lo, hi):
    return ("ints", lo, hi)


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


def dtype_name(y):
    return str(y.dtype).removeprefix("mlx.core.").rstrip("_")


def output(y):
    name = dtype_name(y)
    if name == "bfloat16":
        raw = np.array(y.view(mx.uint16))
    else:
        raw = np.array(y)
    data = base64.b64encode(np.ascontiguousarray(raw).tobytes()).decode()
    return f"{shape_text(y.shape)} {name} {data}"


class In:
    """An input: of a shape, with elements by a formula, or with those given. Without a dtype it takes that of the call."""

    def __init__(self, shape, gen=U, dtype=None, data=None):
        self.shape, self.gen, self.dtype = tuple(shape), gen, dtype
        self.data = None if data is None else mx.array(np.array(data).reshape(self.shape), dtype=mlx_dtype(dtype))

    @staticmethod
    def of(x):
        """The input that holds the elements of an array of MLX's."""
        one = In(x.shape, dtype=dtype_name(x))
        one.data = x
        return one

    def make(self, k, dtype):
        return array(k, self.shape, self.gen, self.dtype or dtype) if self.data is None else self.data

    def text(self, dtype):
        if self.data is not None:
            return output(self.data)
        return f"{shape_text(self.shape)} {self.dtype or dtype} {self.gen[0]} {self.gen[1]} {self.gen[2]}"


class Of:
    """A call as an argument of another one."""

    def __init__(self, name, *args, **kwargs):
        self.name, self.args, self.kwargs = name, args, kwargs


class Dtype:
    def __init__(self, name):
        self.name = name


def resolve(name):
    f = mx
    for part in name.split("."):
        f = getattr(f, part)
    return f


def parameters(name):
    """The names of a function's parameters, first way of calling it first."""
    text = next(text for _, text in module.signatures(resolve(name)))
    return [p.split("=")[0] for p in text.split(", ")]


class Evaluation:
    """The arguments of one call as MLX takes them, with the inputs of one dtype."""

    def __init__(self, ins, dtype):
        self.arrays = {id(x): x.make(k, dtype) for k, x in enumerate(ins)}

    def value(self, v):
        if isinstance(v, In):
            return self.arrays[id(v)]
        if isinstance(v, Of):
            return resolve(v.name)(*[self.value(a) for a in v.args], **{k: self.value(a) for k, a in v.kwargs.items()})
        if isinstance(v, Dtype):
            return mlx_dtype(v.name)
        return type(v)(self.value(x) for x in v) if isinstance(v, (list, tuple)) else v


def inputs(v, found):
    """The inputs within an argument, in the order they stand in."""
    if isinstance(v, In) and all(v is not x for x in found):
        found.append(v)
    for x in [*v.args, *v.kwargs.values()] if isinstance(v, Of) else v if isinstance(v, (list, tuple)) else []:
        inputs(x, found)
    return found


def recorded(v, ins):
    """An argument as JSON holds it."""
    if isinstance(v, In):
        return {"in": next(k for k, x in enumerate(ins) if x is v)}
    if isinstance(v, Of):
        return {"call": v.name, "args": arguments(v.name, v.args, v.kwargs, ins)}
    if isinstance(v, Dtype):
        return {"dtype": v.name}
    if isinstance(v, (list, tuple)):
        return [recorded(x, ins) for x in v]
    if isinstance(v, float) and not math.isfinite(v):
        return {"number": repr(v)}
    return v


def arguments(name, args, kwargs, ins, omit=()):
    """Pairs of a parameter's name and its argument."""
    pairs = []
    if args:
        known = parameters(name)
        for i, v in enumerate(args):
            if known[i].startswith("*"):
                pairs.append([known[i][1:], recorded(list(args[i:]), ins)])
                break
            pairs.append([known[i], recorded(v, ins)])
    return [p for p in pairs + [[k, recorded(v, ins)] for k, v in kwargs.items()] if p[0] not in omit]


# What one function refuses and another one computes: these are no verdicts of MLX's on the arguments.
UNDONE = ("implement", "nyi", "unable to infer primitive", "::eval_cpu] only supports", "::eval] currently only supports")
CALLS = {}  # by what is recorded of them but their cases


def call(name, *args, dtypes=("float32",), refusals=True, omit=(), via=None, truth=None, ulp=None, tol=None, values=True,
         **kwargs):
    """Records a call of a function, for each of dtypes: of the inputs that have none of their own.

    refusals: whether an error of MLX's is one here as well; otherwise such dtypes are left out.
    omit:     names of arguments that MLX demands, but that have a default here: they are not given.
    via:      makes the results in place of the function itself, of the same arguments.
    truth:    a function of NumPy's that the results are taken from, computed in double precision of the inputs.
    ulp:      how far a result may be from that, in units in the last place.
    values:   whether the results are computed: otherwise only their shapes and dtypes are recorded.
    tol:      how far a result may be from MLX's: relatively and absolutely, for float32, beyond a few roundings.
    """
    ins = []
    for v in [*args, *kwargs.values()]:
        inputs(v, ins)
    key = {"Fn": name, "Args": arguments(name, args, kwargs, ins, omit)}
    if ulp is not None:
        key["ULP"] = ulp
    if tol is not None:
        key["Tol"] = tol
    cases = CALLS.setdefault(json.dumps(key), [])
    for d in dtypes:
        if any(x.gen == SPECIAL and x.data is None and (x.dtype or d) not in [*FLOATS, "complex64"] for x in ins):
            continue
        case = {"In": [x.text(d) for x in ins]}
        e = Evaluation(ins, d)
        try:
            f = via or resolve(name)
            out = f(*[e.value(v) for v in args], **{k: e.value(v) for k, v in kwargs.items()})
            out = list(out) if isinstance(out, (list, tuple)) else [out]
            if values:
                mx.eval(out)
        except (ValueError, RuntimeError, TypeError, IndexError, OverflowError) as error:
            if not refusals or any(word in str(error).lower() for word in UNDONE):
                continue
            case["Refused"] = True
        else:
            if truth is not None:
                out = [rounded(truth(*[double(e.value(v)) for v in args]), out[0])]
            case["Out"] = [output(y) if values else f"{shape_text(y.shape)} {dtype_name(y)} ?" for y in out]
        if case not in cases:
            cases.append(case)


def double(x):
    """An array of MLX's as NumPy's in double precision."""
    if not isinstance(x, mx.array):
        return x
    return np.array(x).astype(np.complex128) if x.dtype == mx.complex64 else np.array(x.astype(mx.float64))


def rounded(y, like):
    """An array of NumPy's in the dtype of one of MLX's."""
    y = np.asarray(y)
    if like.dtype == mx.complex64:
        return mx.array(y.astype(np.complex64))
    return mx.array(y, dtype=mx.float64).astype(like.dtype)


def write(family):
    """Writes the calls that were recorded since the last file."""
    with open(HERE / f"../testdata/{family}.json", "w") as f:
        f.write(f'{{"Header": "MLX {mx.__version__}, CPU: python golden/{family}.py, in tensor/optest",\n"Calls": [\n')
        f.write(",\n".join(k[:-1] + ', "Cases": [\n' + ",\n".join(json.dumps(c) for c in cs) + "\n]}"
                           for k, cs in CALLS.items() if cs))
        f.write("\n]}\n")
    CALLS.clear()
