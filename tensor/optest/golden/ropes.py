"""Golden data for rotary encodings: python golden/ropes.py, in tensor/optest."""

import mlx.core as mx
import numpy as np

from golden import HALFS, In, call, ints, write


# MLX computes float64 in float32.
def turned(x, dims, traditional, base, scale, offset, freqs):
    x, half = np.array(x), dims // 2
    steps = base ** -(np.arange(half) / half) if freqs is None else 1 / np.array(freqs)
    angles = np.outer((np.arange(x.shape[-2]) + np.array(offset)) * scale, steps)
    first, second = x[..., :half], x[..., half:dims]
    turned = first * np.cos(angles) - second * np.sin(angles), first * np.sin(angles) + second * np.cos(angles)
    return mx.array(np.concatenate([*turned, x[..., dims:]], -1), dtype=mx.float64)


def rope(x, dims=8, traditional=False, base=100.0, scale=1.0, offset=0, freqs=None, dtypes=HALFS, omit=()):
    call("fast.rope", x, dims, traditional=traditional, base=base, scale=scale, offset=offset, freqs=freqs, dtypes=dtypes, omit=omit)


for s in ((2, 3, 5, 8), (3, 2, 8), (1, 1, 1, 9), (0, 3, 2, 8), (2, 2, 3, 2, 8), (2, 5, 3, 8)):
    rope(In(s))
    rope(In(s), traditional=True, offset=7)
    rope(In(s), dims=6, scale=0.5, offset=2)
    rope(In(s), dims=2, traditional=True)
x = In((2, 3, 5, 8))
one, each = In((), ints(3, 3), "int32"), In((2,), ints(0, 5), "int32")
freqs = In((4,), ("uniform", 1, 4))
for at in (one, each):
    rope(x, offset=at)
    rope(x, offset=at, base=None, freqs=freqs)
for offset, base, freqs64 in ((2, 100.0, None), (one, None, freqs)):
    call("fast.rope", x, 6 if freqs64 is None else 8, traditional=False, base=base, scale=0.5, offset=offset, freqs=freqs64,
         dtypes=["float64"], via=turned)
rope(x, omit=["traditional", "scale", "offset", "freqs"], dtypes=["float32"])  # which MLX demands, but for freqs
rope(x, dims=7, dtypes=["float32"])
rope(x, base=None, dtypes=["float32"])
rope(x, freqs=freqs, dtypes=["float32"])
write("ropes")
