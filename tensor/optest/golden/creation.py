"""Golden data for constants and ranges: python golden/creation.py, in tensor/optest."""

import math

from golden import ALL, INTS, Dtype, In, call, write

for start, stop, step in ((0, 5, 1), (0, 1, 0.3), (5, 0, -2), (0.5, 3, 1), (5, 1, 1), (1, 5, 0), (0, math.inf, 1),
                          (math.nan, 1, 1), (0, 3e9, 1), (0, 3e9, 1e9), (0, 1, 1e-20), (-3, 3, 0.1)):
    call("arange", float(start), float(stop), float(step), dtype=Dtype("float32"), tol=[0, 1e-5])  # MLX adds up
for d in ALL[1:]:
    for start, stop, step in ((0, 5, 1), (5, 0, -2), (2, 20, 3), (0, 5, 0.5), (1.9, 5.9, 1), (0.5, 3.5, 1)):
        if not (d[0] == "u" and step < 0) and (d in INTS or start == int(start)):
            call("arange", start, stop, step, dtype=Dtype(d), ulp=0)
call("arange", 5)  # from 0
call("arange", 0, 5, 2, omit=["start"])
call("arange", 2, 7, 1, omit=["step"])
call("arange", 2.5, 7, 1, omit=["step"])
for d in ALL:
    call("zeros", [2, 3], Dtype(d))
    call("ones", [2, 3], Dtype(d))
    call("zeros_like", In((2, 3)), dtypes=[d])
    call("ones_like", In((2, 3)), dtypes=[d])
    call("zeros_like", In((2, 3)), Dtype(d))
    call("ones_like", In((2, 3)), Dtype(d))
    if d != "bool":  # that is int32 in MLX: see tensor/ops/WHY.md
        call("full", [2, 2], 2, Dtype(d))
    call("full", [2, 2], True, Dtype(d))
    call("full", [2, 3], In((3,)), dtypes=[d])
    call("full_like", In((2, 2)), 3, Dtype(d))
    call("eye", 3, 2, 1, Dtype(d))
for shape in ([], [0, 2], [4], [-1], [2, -2]):
    call("zeros", shape)
    call("ones", shape)
    call("full", shape, In(()))
call("zeros", 3)
call("full", [2, 3], In((2,)))
call("full", [2, 3], In((1, 2, 3)))
call("full", [2], 0.5)
call("full", [2], False)
call("full_like", In((2, 3)), In((3,)))
call("full_like", In((2, 3), dtype="int32"), 3)
call("full_like", In((2, 3), dtype="float16"), True)
for n, m, k in ((3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 2, 5), (0, 2, 0), (2, 3, -3)):
    call("eye", n, m, k)
call("eye", 3)
call("eye", 2, k=1)
for d in ALL:
    call("empty", [0, 3], Dtype(d))
    call("empty", [3, 0])
    call("empty_like", In((0, 2)), dtypes=[d])
    call("empty_like", In((3, 0)), Dtype(d))
    call("identity", 2, Dtype(d))
    call("tri", 2, 3, 1, Dtype(d))
    call("linspace", -1, 3.5, 4, True, Dtype(d), tol=[0, 1e-5]) if d[0] != "u" else None
    call("linspace", 1, 100, 7, False, Dtype(d))
call("identity", 3)
for n, m, k in ((3, 3, 0), (2, 4, -1), (4, 2, 9), (3, 2, -5), (0, 2, 0), (2, 0, 0), (-1, 3, 0), (2, -1, 0),
                (-2, -3, 1)):
    call("tri", n, m, k)
call("tri", 3)
call("tri", 2, k=1)
for num in (0, 1, 2, 5, -1):
    call("linspace", 2, 5, num)
    call("linspace", 2.5, -5, num, endpoint=False)
    call("linspace", 0, 1, num=num, dtype=Dtype("int32"))
call("linspace", 0, 1)
call("linspace", 0, 1, endpoint=False)
for window in ("bartlett", "blackman", "hamming", "hanning"):
    for m in (-3, 0, 1, 2, 7, 20):
        call(window, m, tol=[0, 1e-6])
write("creation")
