"""Golden data for the gathers, products, sorts and quantized ops, from MLX on the CPU: python3 golden/heavy.py, in tensor/optest."""

import mlx.core as mx

from formula import ALL, FLOATS, cases, write

U = ("uniform", -2, 2)
D = ("distinct", 0, 0)
S = ("special", 0, 0)
HALFS = ["float16", "bfloat16", "float32"]
FEW = ["float32", "float16", "bfloat16", "int32", "uint8", "bool", "complex64", "int64"]
BITS = ("ints", 0, 1 << 31)


def ints(lo, hi):
    return ("ints", lo, hi)


def index(shape, lo, hi, dtype="int32"):
    return (shape, ints(lo, hi), dtype)


def update(how, f):
    def call(a, i, u):
        return f(a.at[i], u)

    return call


def gathers():
    x = ((3, 4, 5), U)
    three, four, five = ints(-3, 2), ints(-4, 3), ints(-5, 4)
    out = {
        "take": cases(lambda a, i: mx.take(a, i, axis=1), [[x, ((2, 3), four, "int32")], [x, ((), four, "int64")],
                      [x, ((0,), four, "int32")], [x, ((6,), ints(0, 3), "uint8")]], FEW),
        "take flat": cases(lambda a, i: mx.take(a, i), [[x, ((4,), ints(-60, 59), "int32")]], FEW),
        "take_along_axis": cases(lambda a, i: mx.take_along_axis(a, i, axis=1),
                                 [[x, ((3, 2, 5), four, "int32")], [x, ((1, 6, 1), ints(0, 3), "uint32")]], FEW),
        "index": cases(lambda a, i, j: a[i, 1:, j], [[x, ((2, 1), three, "int32"), ((4,), five, "int32")]], FEW),
        "index beside": cases(lambda a, i: a[:, i, 0], [[x, ((2, 2), four, "int32")]], FEW),
        "index apart": cases(lambda a, i: a[0, :, i], [[x, ((2,), five, "int32")]], FEW),
        "index new": cases(lambda a, i: a[None, ..., i, None], [[x, ((2,), five, "int32")]], FEW),
        "put_along_axis": cases(lambda a, i, u: mx.put_along_axis(a, i, u, axis=0),
                                [[((4, 3), U), ((1, 3), ints(-4, 3), "int32"), ((1, 3), U)],
                                 [((4, 3), U), ((1, 3), ints(-4, 3), "int32"), ((), U)]], FEW),
    }
    updates = {
        "add": lambda a, u: a.add(u), "multiply": lambda a, u: a.multiply(u), "maximum": lambda a, u: a.maximum(u),
        "minimum": lambda a, u: a.minimum(u), "subtract": lambda a, u: a.subtract(u),
    }
    specs = [[((4, 3), U), ((5,), four, "int32"), ((5, 3), U)], [((4, 3), U), ((2, 2), four, "int32"), ((3,), U)]]
    for name, f in updates.items():
        # MLX turns subtraction into the addition of a negative: not for unsigned and bool.
        few = ["float32", "float64", "int32", "float16", "bfloat16"] if name == "subtract" else [*FEW, "float64"]
        if name in ("maximum", "minimum"):
            few = [d for d in few if d != "complex64"]
        # In half types MLX rounds after every update, mlxlua once.
        few = [d for d in few if name in ("maximum", "minimum") or d not in ("float16", "bfloat16")]
        out["index_" + name] = cases(update(name, f), specs, few)
    return out


def matmuls():
    few = [*HALFS, "float64", "complex64"]
    specs = [
        [((3, 5), U), ((5, 4), U)], [((5,), U), ((5, 4), U)], [((3, 5), U), ((5,), U)], [((7,), U), ((7,), U)],
        [((2, 1, 3, 5), U), ((4, 5, 2), U)], [((6, 33), U), ((33, 70), U)], [((2, 0), U), ((0, 3), U)],
        [((0, 3), U), ((3, 2), U)], [((5,), U), ((2, 5, 3), U)], [((1, 9), U), ((9, 300), U)],
    ]
    return {"matmul": cases(mx.matmul, specs, few)}


def sorts():
    shapes = [[((3, 7), U)], [((2, 40), ints(0, 9))], [((1,), U)], [((4, 1), U)], [((0, 3), U)], [((300,), U)]]
    special = [[((12,), S)], [((24,), S)]]
    out = {
        "sort": cases(lambda a: mx.sort(a, axis=-1), shapes, ALL) + cases(mx.sort, special, [*FLOATS, "complex64"]),
        "sort first": cases(lambda a: mx.sort(a, axis=0), [[((3, 7), U)], [((1, 4), U)], [((3, 0), U)]], ALL),
        "sort flat": cases(lambda a: mx.sort(a, axis=None), [[((3, 7), U)], [((), U)]], ALL),
        "argsort": cases(lambda a: mx.argsort(a, axis=-1), [[((3, 7), D)], [((4, 1), U)]], [d for d in ALL if d != "bool"])
        + cases(mx.argsort, special, [*FLOATS, "complex64"]),
        "argsort first": cases(lambda a: mx.argsort(a, axis=0), [[((3, 7), D)]], [d for d in ALL if d != "bool"]),
    }
    return out


def quantized():
    out = {}
    for bits in (1, 2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            few = HALFS if bits == 4 else ["float32", "bfloat16"]
            q = {"group_size": group, "bits": bits}
            name = f" {bits} bits by {group}"
            w = [[((3, 128), U)]] if (bits, group) != (4, 64) else [[((3, 128), U)], [((2, 1, 64), D)], [((0, 64), U)],
                                                                    [((2, 64), ints(0, 0))], [((2, 64), ints(5, 5))]]
            words = 128 * bits // 32
            packed = [((3, words), BITS, "uint32"), ((3, 128 // group), U), ((3, 128 // group), U)]
            out["quantize" + name] = cases(lambda x, q=q: mx.quantize(x, **q), w, few)
            out["dequantize" + name] = cases(lambda w, s, b, q=q: mx.dequantize(w, s, b, **q), [packed], few)
            if group == 64:
                out["quantized_matmul" + name] = cases(
                    lambda x, w, s, b, q=q: mx.quantized_matmul(x, w, s, b, **q), [[((2, 2, 128), U), *packed]], ["float32"])
                out["quantized_matmul plain" + name] = cases(
                    lambda x, w, s, b, q=q: mx.quantized_matmul(x, w, s, b, transpose=False, **q), [[((5, 3), U), *packed]],
                    ["float32"])
    packed = [((5, 32, 8), BITS, "uint32"), ((5, 32, 1), U), ((5, 32, 1), U)]
    lhs, rhs = ((3, 1), ints(0, 1), "int32"), ((4,), ints(0, 4), "uint32")
    out["gather_qmm"] = cases(lambda x, w, s, b, i, j: mx.gather_qmm(x, w, s, b, i, j),
                              [[((2, 3, 64), U), *packed, lhs, rhs], [((2, 1, 64), U), *packed, lhs, rhs]], ["float32"])  # MLX adds up in half types
    out["gather_qmm plain"] = cases(lambda x, w, s, b, i, j: mx.gather_qmm(x, w, s, b, i, j, transpose=False),
                                    [[((2, 3, 32), U), *packed, lhs, rhs]], ["float32"])
    return out


for file, table in {"gathers": gathers, "matmul": matmuls, "sorts": sorts, "quantized": quantized}.items():
    write(f"testdata/{file}.json", table(), "python3 golden/heavy.py, in tensor/optest")
