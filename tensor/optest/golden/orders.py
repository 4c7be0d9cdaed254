"""Golden data for median, searchsorted, unique and differences: python golden/orders.py, in tensor/optest."""

import math

from golden import ALL, DISTINCT, FEW, FLOATS, SPECIAL, In, call, ints, write

NUMBERS = [d for d in ALL if d != "bool"]
for shape, axis in (((3, 5), -1), ((4, 3), 0), ((2, 3, 4), [0, 2]), ((2, 3), [-1, 0]), ((5,), None), ((), None)):
    call("median", In(shape), axis=axis, dtypes=ALL)
for axis in (1, None, [0]):
    call("median", In((2, 4)), axis=axis, keepdims=True)
call("median", In((3, 4), SPECIAL), axis=1, dtypes=FLOATS)
call("median", In((3, 4)))
for shape, axis in (((0, 3), 0), ((2, 3), 2), ((2, 3), [0, 0])):
    call("median", In(shape), axis=axis)
for shape, n, axis in (((2, 5), 1, -1), ((4, 2), 2, 0), ((3,), 3, 0), ((2, 0), 1, 1), ((2, 3), 0, 1)):
    call("diff", In(shape), n, axis, dtypes=ALL)
call("diff", In((3, 4)))
for shape, n, axis in (((), 1, -1), ((2, 3), -1, 0), ((2, 3), 1, 2)):
    call("diff", In(shape), n, axis)
for shape, axis in (((3, 4), None), ((3, 4), 1), ((2, 3, 2), [0, -1]), ((), None), ((0, 2), 0)):
    call("count_nonzero", In(shape, ints(-1, 1)), axis=axis, dtypes=ALL)
call("count_nonzero", In((3, 4), SPECIAL), axis=1, keepdims=True, dtypes=[*FLOATS, "complex64"])
call("count_nonzero", In((3, 4)))
call("count_nonzero", In((3, 4)), axis=2)
for shape, axis in (((3, 4), None), ((3, 4), 1), ((2, 3, 2), [0, -1])):
    call("minmax", In(shape), axis=axis, dtypes=NUMBERS)
call("minmax", In((3, 4), SPECIAL), axis=1, keepdims=True, dtypes=FLOATS)
call("minmax", In((2, 3)))
call("minmax", In((0, 3)), axis=0)
call("minmax", In((3, 4)), axis=2)

for side in ("left", "right"):
    for d in ALL:
        n = [0, 1] if d == "bool" else [1, 3, 3, 4, 90]
        call("searchsorted", In((len(n),), data=n, dtype=d), In((3, 4), ints(0, 5)), side, dtypes=[d])
    for d in ("float32", "float64"):
        call("searchsorted", In((6,), data=[-math.inf, -1, -0.0, 2.5, math.nan, math.nan], dtype=d), In((12,), SPECIAL), side=side,
             dtypes=[d])
sequence = In((3,), data=[1, 2, 3], dtype="int32")
call("searchsorted", sequence, In((2, 3)), dtypes=FEW)
call("searchsorted", sequence, In(()))
call("searchsorted", sequence, In((0, 2)))
call("searchsorted", In((0,)), In((2,)))
call("searchsorted", In((2, 2)), In((2,)))
call("searchsorted", sequence, In((2,)), side="middle")

for shape, size, *flags in (((3, 4), 5, True, True, True), ((7,), 3, True, True, True), ((), 2, True, True, True),
                            ((2, 3), 0, True, True, True), ((40,), 20, False, True, True)):
    call("unique", In(shape, ints(-3, 3)), size, *flags, dtypes=ALL)
call("unique", In((12,), SPECIAL), 14, True, True, True, fill_value=1, dtypes=FLOATS)
call("unique", In((2, 3), ints(0, 2)), 6, return_counts=True, fill_value=7, dtypes=ALL)
call("unique", In((5,), DISTINCT), 4)
call("unique", In((5,), DISTINCT), 4, True)
call("unique", In((0,)), 3, True, True, True, fill_value=2)
call("unique", In((0,)), 3)
call("unique", In((3,)), -1)
write("orders")
