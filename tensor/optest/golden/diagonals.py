"""Golden data for diagonals: python golden/diagonals.py, in tensor/optest."""

from golden import ALL, POSITIVE, Dtype, In, call, write

for shape in ((3, 4), (4, 2, 3), (3,), (0,), (), (0, 3), (2, 3, 2, 2)):
    x = In(shape)
    call("diagonal", x, dtypes=ALL)
    call("diag", x, dtypes=ALL)
    call("trace", x, dtypes=ALL)
    for k in (1, -1, -2, 7, -9):
        call("diagonal", x, k)
        call("diag", x, k)
        call("trace", x, k)
for axis1, axis2 in ((0, 2), (2, 0), (-1, 0), (1, -3), (1, 1), (0, -3), (3, 0), (0, -4), (-1, -2)):
    for offset in (0, 1, -2):
        call("diagonal", In((2, 3, 4)), offset, axis1, axis2)
        call("trace", In((2, 3, 4)), offset, axis1, axis2)
for d in ALL:
    call("trace", In((3, 3), POSITIVE), 0, 0, 1, Dtype(d), dtypes=["int16", "float16", "bool"])
call("trace", In((3, 3)), dtype=Dtype("float64"))
write("diagonals")
