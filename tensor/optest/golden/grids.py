"""Golden data for broadcasts of several arrays and what repeats elements: python golden/grids.py, in tensor/optest."""

from golden import ALL, FEW, In, call, mx, write

x, y, z = In((3,)), In((2, 1)), In(())
call("broadcast_arrays", x, y, z, dtypes=ALL)
call("broadcast_arrays", In((4, 1, 3)), x, dtypes=FEW)
call("broadcast_arrays", In((0,)), In((2, 1)), dtypes=FEW)
call("broadcast_arrays", x)
call("broadcast_arrays", In((2,), dtype="int8"), In((2, 2), dtype="float16"))
call("broadcast_arrays", In((2,)), x)


def shapes(*s):
    return mx.array(mx.broadcast_shapes(*s), mx.int64)


for s in ([[1], [3, 1]], [[6, 7], [5, 6, 1], [7]], [[5, 1, 4], [1, 3, 1]], [[2]], [[], [2, 3]], [[0], [1]], [[], []],
          [[2], [3]], [[0], [2]], []):
    call("broadcast_shapes", *s, via=shapes)

for arrays in ([x, In((4,))], [x, In((2,)), In((4,))], [x], [In((2, 2)), z], [In((0,)), x], [z, z]):
    call("meshgrid", *arrays, dtypes=FEW)
    call("meshgrid", *arrays, sparse=True)
    call("meshgrid", *arrays, indexing="ij")
    call("meshgrid", *arrays, sparse=True, indexing="ij")
call("meshgrid", x, In((4,)), indexing="other")
call("meshgrid", In((2,), dtype="int8"), In((3,), dtype="complex64"))

for n in ("1d", "2d", "3d"):
    for shape in ((), (3,), (2, 3), (2, 2, 2), (1, 2, 1, 2), (0,)):
        call("atleast_" + n, In(shape), dtypes=ALL)
    call("atleast_" + n, z, x, In((2, 3)), In((2, 2, 2)))

for shape in ((2, 3), (), (0, 2), (4,)):
    a = In(shape)
    call("repeat", a, 2, dtypes=ALL)
    call("repeat", a, 3, -1, dtypes=FEW)
    for repeats in (0, 1, 3, -1):
        call("repeat", a, repeats)
        for axis in (0, 1, -2, 2):
            call("repeat", a, repeats, axis)
    call("tile", a, 2, dtypes=ALL)
    for reps in ([2, 2], [3], [1, 2, 3], [2, 1, 1, 2], [], [0], [1, 1], [0, 2], [2, 0, 2]):
        call("tile", a, reps)
    call("tile", a, [2, 1, 3], dtypes=FEW)
write("grids")
