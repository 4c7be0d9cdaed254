"""Golden data for views: python golden/views.py, in tensor/optest."""

from golden import ALL, In, call, write

FEW = ["float32", "uint8", "complex64", "float16", "int64", "bool"]
x = In((2, 3, 4))

call("reshape", x, [4, -1], dtypes=FEW)
call("reshape", In((4, 5)), [4, -1], dtypes=FEW)
call("flatten", x, 1, 2, dtypes=FEW)
call("flatten", x)
call("transpose", x, [2, 0, 1], dtypes=FEW)
for shape in ((2, 3, 4), (), (3,), (0, 2)):
    call("transpose", In(shape), dtypes=FEW)
call("expand_dims", x, [0, -1], dtypes=FEW)
call("expand_dims", In(()), [0, -1], dtypes=FEW)
call("squeeze", In((1, 3, 1)), [0, 2], dtypes=FEW)
call("squeeze", In((1, 3, 1)))
call("moveaxis", x, 0, -1, dtypes=FEW)
call("swapaxes", x, 0, -1, dtypes=FEW)
call("broadcast_to", In((3, 1)), [2, 3, 4], dtypes=FEW)
call("broadcast_to", In(()), [2, 3, 4], dtypes=FEW)

# Shapes and refusals.
for s in ([2, 3, 4], [], [1, 1], [0, 3]):
    y = In(s, dtype="int8")
    for to in ([-1], [4, -1], [24], [5, 5], [5, -1], [], [1], [1, 1, 1], [-1, -1], [-2, 12], [0, -1], [-1, 3], [3, 0],
               [2, 1, 12], [6, 4]):
        call("reshape", y, to)
    for start, end in ((0, -1), (1, -1), (0, 1), (2, 1), (-2, -1), (5, -1), (0, 9), (1, 1), (-9, 1)):
        call("flatten", y, start, end)
    for to in ([2, 2, 3, 4], [3, 4], [2, 3, 5], [1], [5, 1, 1], [0], [2, 3, 4], [1, 3, 4], [-1, 3], [2, 0, 3]):
        call("broadcast_to", y, to)
for s in ([2, 3, 4], [1, 2, 1], [], [5]):
    y = In(s, dtype="int8")
    for axes in (None, [1, 0, 2], [1, 0], [1, 1, 0], [0, 1, 3], [-1, 0, 1], [2, 1, 0], [], [0]):
        call("transpose", y, axes)
    for axes in ([0], [-1], [0, 1], [0, -1], [0, 0], [4], [3], [-5, -1], [3, -1], []):
        call("expand_dims", y, axes)
    for axes in (None, [0], [-1], [0, 2], [0, 0], [5], [], [2, 0]):
        call("squeeze", y, axes)
    for a, b in ((0, 1), (0, -1), (0, 3), (-4, 0), (2, 0), (1, 1)):
        call("swapaxes", y, a, b)
        call("moveaxis", y, a, b)
for shape in ((2, 3, 4), (5,), (), (0, 3)):
    y = In(shape)
    call("roll", y, 2, dtypes=ALL)
    call("roll", y, -7, -1, dtypes=ALL)
    for axes in (None, 0, 1, -1, 3, -4, [], [1], [0, -1], [1, 1], [0, 3]):
        for shift in (1, -3, 100, [], [1], [2, 5], [1, 2, 3]):
            call("roll", y, shift, axes)
for shape in ((2, 3, 4), (), (3,), (0, 2)):
    y = In(shape)
    call("flip", y, dtypes=ALL)
    for axis in (0, -1, 1, [], [0, 1], [-1, 0], 3, [0, 4]):
        call("flip", y, axis, dtypes=["float32", "uint8"])
    call("matrix_transpose", y, dtypes=ALL)
    call("permute_dims", y, dtypes=FEW)
    for axis, to in ((0, [1, -1]), (-1, [2, 2]), (1, [3]), (0, [2, 1]), (0, []), (0, [-1, -1]), (1, [2, -1]), (2, [-1, 4]),
                     (3, [1, 1]), (-1, [1, 2, 2]), (0, [1, 0])):  # of (0, [0, -1]) MLX dies
        call("unflatten", y, axis, to)
call("permute_dims", x, [2, 0, 1], dtypes=ALL)
call("permute_dims", x, [0, 1])
call("unflatten", In((2, 6)), 1, [3, -1], dtypes=ALL)
write("views")
