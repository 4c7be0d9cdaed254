"""Golden data for random numbers: python golden/randoms.py, in tensor/optest. Bits are MLX's; what logarithms make of them is
close."""

import mlx.core as mx

from golden import Dtype, In, call, write

SEEDS = [0, 1, 42, 2**32 + 7, 2**64 - 1]
FLOATS = ["float32", "float16", "bfloat16"]


def bits(shape, width, key):
    """MLX's bits: split gives those of a shape (n, 2)."""
    return mx.random.split(key, shape[0])


for seed in SEEDS:
    key = In.of(mx.random.key(seed))
    if seed < 2**53:
        call("random.key", seed)
    call("random.split", key, 3)
    for num in (1, 2, 5, 8):
        call("random.bits", shape=[num, 2], width=4, key=key, via=bits)
    for d in FLOATS:
        for shape in ([], [3], [4, 5]):
            call("random.uniform", shape=shape, dtype=Dtype(d), key=key, ulp=0)
        call("random.uniform", -3, 5, [9], Dtype(d), key=key, ulp=0)
        call("random.normal", [5], Dtype(d), key=key, tol=[1e-5, 1e-5])
        call("random.normal", [5], Dtype(d), -3, 5, key=key, tol=[1e-5, 1e-5])
    call("random.normal", [5], Dtype("complex64"), key=key, tol=[1e-5, 1e-5])
    call("random.normal", [5], Dtype("complex64"), -3, 5, key=key, tol=[1e-5, 1e-5])
    for low, high, d in ((-5, 7, "int32"), (0, 200, "uint8"), (0, 3_000_000_000, "int64"), (5, 0, "int32")):
        call("random.randint", low, high, [6], Dtype(d), key=key)
    call("random.bernoulli", 0.3, [40], key=key)
key = In.of(mx.random.key(7))
call("random.split", key)
call("random.bits", shape=[4, 2], key=key, via=lambda shape, key: bits(shape, 4, key))
call("random.bits", key=key, via=lambda key: mx.zeros([], mx.uint32), values=False)
call("random.uniform", key=key, ulp=0)
call("random.uniform", In((3,)), In((2, 1), ("uniform", 3, 5)), [2, 3], key=key, ulp=0)
call("random.normal", key=key, tol=[1e-5, 1e-5])
call("random.normal", [2, 3], loc=In((3,)), scale=In((2, 1)), key=key, tol=[1e-5, 1e-5])
call("random.randint", In((3,), ("ints", -9, 0), "int32"), In((2, 1), ("ints", 3, 9), "int32"), [2, 3], key=key)
call("random.randint", 0, 9, key=key)
call("random.bernoulli", key=key)
call("random.bernoulli", In((2, 3), ("uniform", 0, 1)), key=key)
call("random.bernoulli", In((3,), ("uniform", 0, 1)), [2, 3], key)
call("random.uniform", 0, 1, [3], Dtype("int32"), key=key)
call("random.uniform", In((4,)), 1, [3], key=key)
write("randoms")
