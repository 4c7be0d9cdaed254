"""Golden data for random numbers, from MLX on the CPU: python random.py, in this folder. Data are hexadecimal bytes."""

import json

import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)
SEEDS = [0, 1, 42, 2**32 + 7, 2**64 - 1]
cases = []


def case(op, seed, shape, y, **more):
    raw = y.view(mx.uint16) if y.dtype == mx.bfloat16 else y
    dtype = str(y.dtype).removeprefix("mlx.core.").rstrip("_")
    cases.append({"op": op, "seed": str(seed), "shape": shape, "dtype": dtype, "data": np.array(raw).tobytes().hex(), **more})


for seed in SEEDS:
    key = mx.random.key(seed)
    case("key", seed, [2], key)
    case("split", seed, [3, 2], mx.random.split(key, 3))
    for num in (1, 2, 5, 8):
        case("bits", seed, [num, 2], mx.random.split(key, num), width=4)
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        for shape in ([], [3], [4, 5]):
            case("uniform", seed, shape, mx.random.uniform(shape=shape, dtype=dtype, key=key), low=0, high=1)
        case("uniform", seed, [9], mx.random.uniform(-3, 5, [9], dtype=dtype, key=key), low=-3, high=5)

    for low, high, dtype in ((-5, 7, mx.int32), (0, 200, mx.uint8), (0, 3_000_000_000, mx.int64), (5, 0, mx.int32)):
        case("randint", seed, [6], mx.random.randint(low, high, [6], dtype=dtype, key=key), low=low, high=high)
    for dtype in (mx.float32, mx.float16, mx.bfloat16, mx.complex64):
        case("normal", seed, [5], mx.random.normal([5], dtype, key=key), low=0, high=1)
        case("normal", seed, [5], mx.random.normal([5], dtype, -3, 5, key=key), low=-3, high=5)
    case("bernoulli", seed, [40], mx.random.bernoulli(0.3, [40], key=key), low=0.3)

with open("random.json", "w") as f:
    head = f'"header": "made by `python random.py` with MLX {mx.__version__}"'
    f.write("{" + head + ',\n"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
