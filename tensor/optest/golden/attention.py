"""Golden data for attention: python golden/attention.py, in tensor/optest."""

import mlx.core as mx
import numpy as np

from golden import HALFS, In, call, ints, write

NAME = "fast.scaled_dot_product_attention"
SHAPES = [
    ((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)), ((1, 2, 1, 64), (1, 1, 40, 64), (1, 1, 40, 64)),
    ((1, 3, 7, 33), (1, 3, 3, 33), (1, 3, 3, 70)), ((1, 8, 2, 128), (1, 1, 70, 128), (1, 1, 70, 128)),
    ((1, 1, 2, 300), (1, 1, 35, 300), (1, 1, 35, 300)), ((0, 2, 3, 4), (0, 2, 5, 4), (0, 2, 5, 4)),
    ((1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 5)),
]
TOL = [2e-5, 2e-5]


# MLX computes float64 in float32.
def attention(q, k, v, scale, mask):
    q, k, v = (np.array(x) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    e = np.exp(scale * q @ k.swapaxes(-1, -2) + np.array(mask))
    return mx.array(e / e.sum(-1, keepdims=True) @ v, dtype=mx.float64)


for n, (q, k, v) in enumerate(SHAPES):
    qkv = In(q), In(k), In(v)
    scores = (*q[:3], k[2])
    call(NAME, *qkv, scale=0.25, tol=TOL)
    if n == 0:  # MLX multiplies in half types: those are compared for one shape
        call(NAME, *qkv, scale=0.25, dtypes=HALFS, tol=TOL)
        call(NAME, *qkv, scale=0.5, force_fused=False, tol=TOL)
    if n < 6:
        call(NAME, *qkv, scale=0.25, mask="causal", tol=TOL)
        call(NAME, *qkv, scale=0.25, sinks=In((q[1],)), tol=TOL)
    for shape in (scores, scores[2:], (q[1], 1, 1)):
        call(NAME, *qkv, scale=0.25, mask=In(shape, ints(0, 1), "bool"), tol=TOL)
    for shape in (scores, (k[2],)):
        call(NAME, *qkv, scale=0.25, mask=In(shape), tol=TOL)
qkv = [In(s) for s in SHAPES[0]]
call(NAME, *qkv, scale=0.25, mask=In((2, 4, 3, 5)), dtypes=["float64"], via=attention)
q, k, v = In((2, 4, 3, 4)), In((2, 2, 5, 4)), In((2, 2, 5, 2))
for sinks in (None, In((4,))):
    for mask in (None, "causal", *(In(m, ints(0, 1), "bool") for m in ((2, 1, 1, 5), (2, 4, 3, 1), (1, 1, 3, 5), ())),
                 *(In(m) for m in ((2, 1, 3, 5), (4, 1, 5), (3, 1), (1,)))):
        call(NAME, q, k, v, scale=0.5, mask=mask, sinks=sinks, tol=TOL)
for d in ("float16", "bfloat16", "float64", "int32", "uint8", "complex64"):  # what promotes to float32, and what does not
    call(NAME, q, k, v, scale=0.5, mask=In((3, 5), dtype=d), tol=TOL)
    call(NAME, q, k, v, scale=0.5, sinks=In((4,), dtype=d), tol=TOL)
call(NAME, In((1, 1, 3, 4)), In((1, 1, 2, 4)), In((1, 1, 2, 4)), scale=1.0, mask="causal", tol=TOL)  # more queries than keys
for shape in ((2, 3, 3, 5), (2, 2, 3, 5), (3, 4, 3, 5), (1, 2, 4, 3, 5), (4,)):
    call(NAME, q, k, v, scale=0.5, mask=In(shape))
for shape in ((3,), (1, 4), ()):
    call(NAME, q, k, v, scale=0.5, sinks=In(shape))
for d in ("int32", "bool", "complex64"):
    call(NAME, In((1, 1, 2, 4)), In((1, 1, 3, 4)), In((1, 1, 3, 4)), scale=1.0, dtypes=[d])
call(NAME, In((1, 3, 2, 4)), In((1, 2, 3, 4)), In((1, 2, 3, 4)), scale=1.0)
call(NAME, In((1, 2, 4)), In((1, 2, 4)), In((1, 2, 4)), scale=1.0)
call(NAME, In((1, 1, 2, 4)), In((1, 1, 3, 4)), In((1, 1, 3, 4)), scale=1.0, mask="full")
call(NAME, In((1, 1, 2, 4)), In((1, 1, 3, 5)), In((1, 1, 3, 4)), scale=1.0)
write("attention")
