"""What MLX says of dtypes, and how it prints numbers with a precision: python testdata/dtypes.py, in luabind."""

import json
import pathlib

import mlx.core as mx

mx.set_default_device(mx.cpu)
DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()
CATEGORIES = "complexfloating floating inexact signedinteger unsignedinteger integer number generic".split()
KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]


def of(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


def bits(row):
    return "".join("1" if x else "0" for x in row)


both = DTYPES + CATEGORIES
answers = {
    "names": both,
    "kinds": KINDS,
    "issubdtype": [bits(mx.issubdtype(of(a), of(b)) for b in both) for a in both],
    "isdtype": [bits([*(mx.isdtype(of(a), k) for k in KINDS), *(mx.isdtype(of(a), of(b)) for b in DTYPES)]) for a in DTYPES],
    "can_cast": [bits(mx.can_cast(of(a), of(b)) for b in DTYPES) for a in DTYPES],
    "result_type": [[str(mx.result_type(of(a), of(b))).removeprefix("mlx.core.") for b in DTYPES] for a in DTYPES],
    "printed": {},
}
NUMBERS = [0.0, -0.0, 1.0, 1.123456789, -2.5, 0.125, 12345.678, 1e10, 1e-7, float("inf"), float("-inf"), float("nan")]
for precision in (-1, 0, 2, 9):
    mx.set_printoptions(precision=precision)
    answers["printed"][precision] = {
        d: [str(mx.array(v, dtype=mx.float64).astype(of(d))) for v in NUMBERS if d[0] != "i" or abs(v) < 1e9]
        for d in ("float16", "bfloat16", "float32", "float64", "complex64", "int32")
    } | {"complex": str(mx.array(complex(1.256, -2.5)))}
mx.set_printoptions()
with open(pathlib.Path(__file__).resolve().parent / "dtypes.json", "w") as f:
    json.dump({"header": f"MLX {mx.__version__}, CPU: python testdata/dtypes.py, in luabind", **answers}, f, indent=1)
    f.write("\n")
