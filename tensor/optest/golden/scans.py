"""Golden data for scans: python golden/scans.py, in tensor/optest."""

import numpy as np

from golden import ALL, DISTINCT, FLOATS, SPECIAL, U, Dtype, In, call, ints, write

for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
    # In half types MLX rounds after every step, mlxlua once.
    real = ["float32", "float64"] if name in ("cumsum", "cumprod", "logcumsumexp") else FLOATS
    dtypes = [d for d in ALL if d not in FLOATS] + real
    tol = None
    if name == "logcumsumexp":
        dtypes = ["int32", "uint8", "bool", "float32"]  # MLX's float64 is good to 9 digits only
        tol = [1e-5, 0]
    xs = [In((3, 5)), In((1, 70), ints(-1, 1)), In((1,)), In((0, 3)), In((2, 3, 4), DISTINCT)]
    if name == "cumprod":
        xs = [In((3, 5)), In((1, 40), ints(1, 1)), In((1,)), In((0, 3)), In((2, 3, 4), ("uniform", 0.5, 2))]
    for way in ({}, {"reverse": True}, {"inclusive": False}, {"reverse": True, "inclusive": False}):
        for x in xs:
            call(name, x, axis=-1, dtypes=dtypes, tol=tol, **way)
        for n in (12, 24):
            call(name, In((n,), SPECIAL), axis=-1, tol=tol, **way)  # MLX's bfloat16 loses NaN
        for x in (xs[0], *xs[3:]):
            call(name, x, axis=0, dtypes=dtypes, tol=tol, **way)
    for x in (In((3, 5)), In(())):
        call(name, x, dtypes=dtypes, tol=tol)
    call(name, In((2, 3)), axis=2)
call("logcumsumexp", In((3, 5)), -1, dtypes=["float64"], truth=lambda x, _: np.log(np.cumsum(np.exp(x), -1)))
for name in ("cumsum", "cumprod"):
    call(name, In((3, 5)), axis=1, dtype=Dtype("float32"), dtypes=["int8", "int32", "float32"])
    call(name, In((3, 5)), dtype=Dtype("int32"), dtypes=["float32", "uint8"])
write("scans")
