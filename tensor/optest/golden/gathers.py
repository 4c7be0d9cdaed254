"""Golden data for gathers along axes: python golden/gathers.py, in tensor/optest. Indexing has its own: indexing.py."""

from golden import FEW, In, call, ints, write

x = In((3, 4, 5))
four = ints(-4, 3)
for i in (In((2, 3), four, "int32"), In((), four, "int64"), In((0,), four, "int32"), In((6,), ints(0, 3), "uint8")):
    call("take", x, i, axis=1, dtypes=FEW)
call("take", x, In((4,), ints(-60, 59), "int32"), dtypes=FEW)
call("take", x, 2, axis=1)
for i in (In((3, 2, 5), four, "int32"), In((1, 6, 1), ints(0, 3), "uint32")):
    call("take_along_axis", x, i, axis=1, dtypes=FEW)
call("take_along_axis", In((3, 4)), In((3, 2), four, "int32"))
call("take_along_axis", In((3, 4)), In((5,), ints(-12, 11), "int32"), axis=None)
y = In((4, 3))
for u in (In((1, 3)), In(())):
    call("put_along_axis", y, In((1, 3), four, "int32"), u, axis=0, dtypes=FEW)
call("put_along_axis", y, In((3,), data=[0, 7, -1], dtype="int32"), In((3,)))
call("take", x, In((2,), four, "int32"), axis=3)
call("take_along_axis", x, In((2,), four, "int32"), axis=1)
write("gathers")
