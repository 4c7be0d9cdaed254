"""Golden data for sorts and partitions: python golden/sorts.py, in tensor/optest."""

from golden import ALL, DISTINCT, FLOATS, SPECIAL, U, In, Of, call, ints, write

NUMBERS = [d for d in ALL if d != "bool"]
for shape, gen in (((3, 7), U), ((2, 40), ints(0, 9)), ((1,), U), ((4, 1), U), ((0, 3), U), ((300,), U)):
    call("sort", In(shape, gen), axis=-1, dtypes=ALL)
for shape, gen in (((3, 7), DISTINCT), ((4, 1), U)):
    call("argsort", In(shape, gen), axis=-1, dtypes=NUMBERS)
for n in (12, 24):
    call("sort", In((n,), SPECIAL), dtypes=[*FLOATS, "complex64"])
    call("argsort", In((n,), SPECIAL), dtypes=[*FLOATS, "complex64"])
for shape in ((3, 7), (1, 4), (3, 0)):
    call("sort", In(shape), axis=0, dtypes=ALL)
call("argsort", In((3, 7), DISTINCT), axis=0, dtypes=NUMBERS)
call("argsort", In((3, 7), DISTINCT), axis=None)
for shape in ((3, 7), ()):
    call("sort", In(shape), axis=None, dtypes=ALL)
call("sort", In((3, 7)))
call("argsort", In((3, 7), DISTINCT))
for name in ("sort", "argsort"):
    call(name, In(()), axis=-1)
    call(name, In((2,)), axis=1)

# A partition is determined in part: the element at kth, and what stands before and after it, sorted.
ORDERED = [d for d in ALL if d not in ("bool", "complex64")]  # the order of equal complex numbers and of NaN is sort's
WIDE = ["float32", "int32", "float64", "int64", "bfloat16", "uint16"]


def partition(name, x, kth, dtypes, **axis):
    n = x.shape[axis.get("axis", -1) if axis.get("axis", -1) is not None else 0]
    y = Of(name, x, kth, **axis)
    if name == "argpartition":
        y = Of("take_along_axis", x, Of("stop_gradient", y), **(axis or {"axis": -1}))
    at = axis.get("axis", -1)
    part = lambda lo, hi: Of("take", y, In((hi - lo,), data=list(range(lo, hi)), dtype="int32"), axis=at)  # noqa: E731
    kth %= n
    call("take", y, In((), data=kth, dtype="int32"), axis=at, dtypes=dtypes)
    call("sort", part(0, kth), axis=at, dtypes=dtypes)
    call("sort", part(kth + 1, n), axis=at, dtypes=dtypes)


for shape, gen in (((3, 7), DISTINCT), ((300,), DISTINCT), ((2, 40), ints(0, 9))):
    partition("partition", In(shape, gen), 2, ORDERED, axis=-1)
for shape in ((3, 7), (300,)):
    partition("argpartition", In(shape, DISTINCT), 2, WIDE, axis=-1)
for name in ("partition", "argpartition"):
    partition(name, In((7, 3), DISTINCT), 4, ["float32"], axis=0)
    partition(name, In((3, 7), DISTINCT), -3, ["float32"])
    call(name, In((3, 1)), 0, dtypes=ALL)  # one order only
    call(name, In((3, 4)), 4)
    call(name, In((3, 4)), 0, axis=5)
for shape, gen in (((3, 7), DISTINCT), ((300,), DISTINCT), ((2, 40), ints(0, 9))):
    call("sort", Of("topk", In(shape, gen), 3), axis=-1, dtypes=ORDERED)
for shape in ((7, 3), (3, 2)):
    call("sort", Of("topk", In(shape, DISTINCT), 3, axis=0), axis=0, dtypes=WIDE)
call("sort", Of("topk", In((3, 7), DISTINCT), 4, axis=None), dtypes=WIDE)
call("topk", In((3, 7), DISTINCT), 0, dtypes=WIDE)
call("topk", In((3, 4)), -1)
call("topk", In((3, 4)), 5)
write("sorts")
