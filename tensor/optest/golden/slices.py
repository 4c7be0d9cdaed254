"""Golden data for slices at places that arrays hold, and for strides: python golden/slices.py, in tensor/optest."""

from golden import ALL, FEW, In, call, write


def at(*v, dtype="int32"):
    return In((len(v),), dtype=dtype, data=v)


x = In((4, 5))
call("slice", x, at(1, 2), [0, 1], [2, 3], dtypes=ALL)
call("slice", x, at(2, 1), [1, 0], [2, 3], dtypes=FEW)
for start, axes, size in ((at(1), [1], [4, 2]), (at(2), [-1], [1, 3]), (at(3), [0], [1, 5]), (at(), [], [2, 2]),
                          (In((), dtype="int64", data=1), [0], [3, 5]), (at(1, 1, dtype="uint8"), [0, 1], [0, 2])):
    call("slice", x, start, axes, size)
call("slice", In((3,)), at(1), [0], [2])
call("slice", In((0, 2)), at(0), [1], [0, 1])
for start, axes, size in ((at(1, 2), [0], [1, 1]), (at(1), [0, 1], [1, 1]), (at(1), [2], [1, 1]), (at(0), [0], [5, 1]),
                          (at(0), [0], [1]), (at(0, 0), [0, 0], [1, 1]), (at(0, 0), [0, -2], [1, 1]),
                          (at(0.0, dtype="float32"), [0], [1, 1]),
                          (In((1, 1), dtype="int32", data=[[0]]), [0], [1, 1]), (at(0, 0, 0), [0, 1, 2], [1, 1])):
    call("slice", x, start, axes, size)
    call("slice_update", x, In((1, 1)), start, axes)
for shape in ((2, 3), (1, 3), (3,), (), (2, 1), (1, 1)):
    call("slice_update", x, In(shape), at(1, 2), [0, 1], dtypes=ALL)
for shape, start, axes in (((5,), at(3), [0]), ((2, 2), at(2), [1]), ((4, 1), at(-1 + 3), [-1]), ((), at(2), [0]),
                           ((3,), at(2), [1]), ((), at(), []), ((2, 2), at(2, 3), [0, 1]), ((0, 2), at(1), [0])):
    call("slice_update", x, In(shape), start, axes)
call("slice_update", In((2, 2, 3)), In((2,)), at(1), [2])
call("slice_update", In((2, 2, 3)), In((2, 2)), at(1), [0])
call("slice_update", In((4,), dtype="int8"), In((2,), dtype="float32"), at(1), [0])
call("slice_update", x, In((6, 1)), at(0), [0])

y = In((3, 4))
call("as_strided", y, [2, 3], [1, 4], 1, dtypes=ALL)
call("as_strided", y, [2, 2, 2], [1, 0, 3])
call("as_strided", y, [3], [-2], 11)
call("as_strided", y, [2, 5])
call("as_strided", y, strides=[1, 3])
call("as_strided", y, [2], [3], offset=4)
call("as_strided", y)
call("as_strided", y, [], [], 7)
call("as_strided", In((2, 0)), [0, 3])
call("as_strided", y, [0, 4], [9, 9])
call("as_strided", y, [-1], [1])
for shape in ((3, 4), (), (0, 2)):
    call("contiguous", In(shape), dtypes=ALL)
    call("contiguous", In(shape), True)
    call("contiguous", In(shape), allow_col_major=False)
write("slices")
