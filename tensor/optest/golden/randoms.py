"""Golden data for random numbers: python golden/randoms.py, in tensor/optest. Bits are MLX's; what logarithms make of them is
close."""

import mlx.core as mx

from golden import ALL, FEW, Dtype, In, call, write

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

NOISE = [1e-5, 1e-5]
for name in ("gumbel", "laplace"):
    for d in [*FLOATS, "float64", "int32", "complex64"]:
        call("random." + name, [2, 3], Dtype(d), key=key, tol=NOISE)
    call("random." + name, key=key, tol=NOISE)
    call("random." + name, [0, 3], key=key)
for d in FLOATS:
    call("random.laplace", [7], Dtype(d), 3, 0.5, key=key, tol=NOISE)
    call("random.truncated_normal", -1, In((3,), ("uniform", 0, 2)), [2, 3], Dtype(d), key, tol=NOISE)
call("random.laplace", [7], loc=-1.5, key=key, tol=NOISE)
for d in ("float64", "int32", "complex64"):
    call("random.truncated_normal", -1, 1, [2], Dtype(d), key)
call("random.truncated_normal", In((3, 1)), In((2,), ("uniform", 0, 2)), key=key, tol=NOISE, dtypes=[*FLOATS, "int32"])
call("random.truncated_normal", 2.0, -2.0, [3], key=key)
call("random.truncated_normal", -0.5, 1.5, key=key, tol=NOISE)
call("random.truncated_normal", In((3, 1)), In((2,)), [2], key=key)
call("random.truncated_normal", In((3,)), In((2,)), key=key)

for n in (0, 1, 5, 40):
    call("random.permutation", n, key=key)
    call("random.permutation", In((n, 3)), key=key)
call("random.permutation", -1, key=key)
for axis in (0, 1, -1, 2, -3):
    call("random.permutation", In((3, 7), ("ints", 0, 20)), axis, key=key, dtypes=FEW if axis == -1 else ["int32"])
call("random.permutation", In(()), key=key)

REAL = [d for d in ALL if d != "complex64"]
for seed in SEEDS[:3]:
    for shape in ((4, 6), (1, 6), (6,)):
        key = In.of(mx.random.key(seed))
        call("random.categorical", In(shape), key=key, dtypes=REAL if seed == 0 else ["float32"])
        call("random.categorical", In(shape), -1, num_samples=9, key=key, dtypes=REAL if seed == 0 else ["float32"])
        call("random.categorical", In(shape), 0, num_samples=3, key=key)
        call("random.categorical", In(shape), -1, [2, shape[0]], key=key)
key = In.of(mx.random.key(8))
call("random.categorical", In((2, 3, 4)), 1, key=key)
call("random.categorical", In((2, 3, 4)), 1, [5, 2, 4], key=key)
call("random.categorical", In((2, 1, 4)), 0, [5, 3, 4], key=key)
call("random.categorical", In((1, 1, 5)), -1, [3, 2], key=key)
# No samples of several distributions, and samples of none, are empty here, as those of a single one are: MLX's argmax
# refuses them.
call("random.categorical", In((4,)), -1, num_samples=0, key=key)
for shape in ((5,), (2, 5)):
    call("random.categorical", In(shape, ("special", 0, 0)), num_samples=6, key=key)
inf = float("inf")
call("random.categorical", In((3,), data=[inf, 0, inf], dtype="float32"), num_samples=8, key=key)
call("random.categorical", In((3,), data=[-inf, -inf, -inf], dtype="float32"), num_samples=8, key=key)
call("random.categorical", In((3,), data=[-inf, 0, -inf], dtype="float32"), num_samples=8, key=key)
for shape in ((), (0,), (3, 0)):
    call("random.categorical", In(shape), key=key)
call("random.categorical", In((4,)), num_samples=-1, key=key)
call("random.categorical", In((4,)), shape=[2], num_samples=2, key=key)
call("random.categorical", In((4, 3)), 2, key=key)
call("random.categorical", In((4, 3)), -1, [3], key=key)
call("random.categorical", In((4, 3)), -1, [], key=key)

key = In.of(mx.random.key(9))
cov = In((2, 2), data=[[2, 0.5], [0.5, 1]], dtype="float32")
skew = In((3, 2, 2), data=[[[2, 0.5], [-0.5, 1]], [[1, 0], [0, 4]], [[1, 1], [1, 1]]], dtype="float32")
mean = In((2,), data=[1, -3], dtype="float32")
call("random.multivariate_normal", mean, cov, key=key, tol=NOISE)
call("random.multivariate_normal", mean, cov, [5], key=key, tol=NOISE)
call("random.multivariate_normal", mean, cov, [4, 1], Dtype("float32"), key, tol=NOISE)
call("random.multivariate_normal", In((3, 2)), skew, key=key, tol=NOISE, dtypes=FEW)
call("random.multivariate_normal", In((4, 1, 2)), skew, [3], key=key, tol=NOISE)
call("random.multivariate_normal", mean, In((2, 2), ("uniform", 0, 1), "int32"), key=key, tol=NOISE)
call("random.multivariate_normal", mean, cov, dtype=Dtype("float16"), key=key)
call("random.multivariate_normal", mean, cov, dtype=Dtype("float64"), key=key)
for s, t in (((3,), (2, 2)), ((2,), (2, 3)), ((), (2, 2)), ((2,), (2,)), ((3, 2), (4, 2, 2))):
    call("random.multivariate_normal", In(s), In(t), key=key)
call("random.multivariate_normal", In((3, 2)), cov, [4], key=key)
call("random.multivariate_normal", In((0,)), In((0, 0)), [2], key=key, values=False)
write("randoms")
