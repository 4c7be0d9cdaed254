"""Golden data for what scripts write in brackets, by the names of tests in tensor/ops: python golden/indexing.py, in
tensor/optest."""

import json

import mlx.core as mx

from golden import FEW, HERE, U, array, ints, output, shape_text


def cases(fn, specs, dtypes):
    """The cases of fn: specs are lists of (shape, generator[, dtype]); dtypes that MLX refuses are left out."""
    out = []
    for spec in specs:
        for d in dtypes:
            ins = [(s[0], s[1], s[2] if len(s) > 2 else d) for s in spec]
            try:
                y = fn(*[array(k, *x) for k, x in enumerate(ins)])
                mx.eval(y)
            except (ValueError, RuntimeError, TypeError):
                continue
            out.append({"In": [f"{shape_text(s)} {t} {g[0]} {g[1]} {g[2]}" for s, g, t in ins], "Out": [output(y)]})
    return out


def set_slice(a, u):
    b = mx.array(a)
    b[1:, ::2] = u
    return b


def slices():
    few = ["float32", "uint8", "complex64", "float16", "int64", "bool"]
    return {
        "slice": cases(lambda a: a[1:, ::-2], [[((3, 5), U)], [((1, 5), U)], [((3, 5, 2), U)]], few),
        "slice at": cases(lambda a: a[-1, ..., None], [[((3, 5), U)], [((3, 5, 2), U)]], few),
        "slice_update": cases(set_slice, [[((3, 5), U), ((2, 3), U)], [((3, 5), U), ((), U)]], few),
    }


def indices():
    x = ((3, 4, 5), U)
    three, four, five = ints(-3, 2), ints(-4, 3), ints(-5, 4)
    return {
        "index": cases(lambda a, i, j: a[i, 1:, j], [[x, ((2, 1), three, "int32"), ((4,), five, "int32")]], FEW),
        "index beside": cases(lambda a, i: a[:, i, 0], [[x, ((2, 2), four, "int32")]], FEW),
        "index apart": cases(lambda a, i: a[0, :, i], [[x, ((2,), five, "int32")]], FEW),
        "index new": cases(lambda a, i: a[None, ..., i, None], [[x, ((2,), five, "int32")]], FEW),
    }


def updates():
    four, out = ints(-4, 3), {}
    specs = [[((4, 3), U), ((5,), four, "int32"), ((5, 3), U)], [((4, 3), U), ((2, 2), four, "int32"), ((3,), U)]]
    for name in ("add", "multiply", "maximum", "minimum", "subtract"):
        # MLX turns subtraction into the addition of a negative: not for unsigned and bool.
        few = ["float32", "float64", "int32", "float16", "bfloat16"] if name == "subtract" else [*FEW, "float64"]
        if name in ("maximum", "minimum"):
            few = [d for d in few if d != "complex64"]
        else:  # in half types MLX rounds after every update, mlxlua once
            few = [d for d in few if d not in ("float16", "bfloat16")]
        out["index_" + name] = cases(lambda a, i, u, name=name: getattr(a.at[i], name)(u), specs, few)
    return out


with open(HERE / "../testdata/indexing.json", "w") as f:
    f.write(f'{{"Header": "MLX {mx.__version__}, CPU: python golden/indexing.py, in tensor/optest",\n"Ops": {{\n')
    f.write(",\n".join(f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(c) for c in cs) + "\n]"
                       for name, cs in {**slices(), **indices(), **updates()}.items()))
    f.write("\n}}\n")
