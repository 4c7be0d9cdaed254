"""Golden data for pads: python golden/pads.py, in tensor/optest."""

from golden import ALL, FEW, In, call, write

for shape in ((2, 3), (4,), (1, 2), (), (3, 2, 2)):
    x = In(shape)
    call("pad", x, 1, dtypes=ALL)
    call("pad", x, (2, 1), dtypes=FEW)
    call("pad", x, [[1, 2]], "constant", 3.0)
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
        call("pad", x, (3, 5), mode, dtypes=["float32", "uint8", "complex64"])
        call("pad", x, [[0, 2], [1, 0]], mode)
        call("pad", x, 0, mode)
        call("pad", x, [[9, 0], [0, 11]], mode=mode)
for mode in ("edge", "reflect", "symmetric"):
    call("pad", In((2, 3)), [[1, 2], [2, 1]], mode, dtypes=ALL)
    call("pad", In((5,)), (7, 13), mode)
    call("pad", In((1, 1)), 3, mode)
    call("pad", In((0, 2)), [[0, 0], [1, 1]], mode)
x = In((2, 2))
call("pad", In((0, 2)), 1)
call("pad", x, 1, constant_values=-2, dtypes=["float32", "int8", "float16", "complex64"])
call("pad", x, 1, constant_values=2.5, dtypes=["float32", "int8"])
call("pad", x, 1, constant_values=In((), dtype="float32"), dtypes=["float32", "int8"])
call("pad", x, [[1, -1], [0, 0]])
call("pad", x, -1)
call("pad", x, [])
call("pad", x, [1, 2, 3])
call("pad", In(()), [])
call("pad", In(()), [], "edge")
call("pad", In(()), 1)
call("pad", x, [[1, 1], [1, 1], [1, 1]])
write("pads")
