"""Golden data for rotary encodings: python golden/ropes.py, in tensor/optest."""

from golden import HALFS, In, call, ints, write


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
rope(x, omit=["traditional", "scale", "offset", "freqs"], dtypes=["float32"])  # which MLX demands, but for freqs
rope(x, dims=7, dtypes=["float32"])
rope(x, base=None, dtypes=["float32"])
rope(x, freqs=freqs, dtypes=["float32"])
write("ropes")
