"""Golden data for norms: python golden/norms.py, in tensor/optest."""

import numpy as np

from golden import HALFS, In, call, ints, write


# MLX computes float64 in float32.
def rms_norm(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer_norm(x, w, b, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w + b


for s in ((3, 8), (2, 3, 70), (5, 1), (0, 4), (300,)):
    x, w, b = In(s), In((s[-1],)), In((s[-1],))
    call("fast.rms_norm", x, w, 1e-3, dtypes=HALFS)
    call("fast.rms_norm", x, None, 1e-3, dtypes=HALFS)
    call("fast.layer_norm", x, w, b, 1e-3, dtypes=HALFS)
    call("fast.layer_norm", x, w, None, 1e-3, dtypes=HALFS)
    call("fast.layer_norm", x, None, b, 1e-3, dtypes=HALFS)
    call("fast.layer_norm", x, None, None, 1e-3, dtypes=HALFS)
    if s == (3, 8):
        call("fast.rms_norm", x, w, 1e-3, dtypes=["float64"], truth=rms_norm)
        call("fast.layer_norm", x, w, b, 1e-3, dtypes=["float64"], truth=layer_norm)
call("fast.rms_norm", In((2, 8), ints(0, 9), "int32"), In((8,)), 1e-3, dtypes=HALFS)
call("fast.rms_norm", In((2, 8)), In((7,)), 1e-3)
call("fast.layer_norm", In((2, 8)), In((8,)), In((2,)), 1e-3)
write("norms")
