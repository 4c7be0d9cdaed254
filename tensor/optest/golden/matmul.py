"""Golden data for products: python golden/matmul.py, in tensor/optest."""

from golden import ALL, HALFS, In, call, write

for s, t in (((3, 5), (5, 4)), ((5,), (5, 4)), ((3, 5), (5,)), ((7,), (7,)), ((2, 1, 3, 5), (4, 5, 2)), ((6, 33), (33, 70)),
             ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((5,), (2, 5, 3)), ((1, 9), (9, 300))):
    call("matmul", In(s), In(t), dtypes=[*HALFS, "float64", "complex64"], tol=[1e-5, 4e-5])
for s, t in (((3, 4), (5, 2)), ((3,), (5, 2)), ((2, 2, 3), (3, 3, 2)), ((), (3,))):
    call("matmul", In(s), In(t))
call("matmul", In((2, 2)), In((2, 2)), dtypes=[d for d in ALL if d in ("int32", "bool", "uint8")])
write("matmul")
