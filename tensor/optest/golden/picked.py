"""Golden data for gather_mm, block_masked_mm and segmented_mm: python golden/picked.py, in tensor/optest."""

import mlx.core as mx
import numpy as np

from golden import FLOATS, HALFS, In, call, ints, write

TOL = [1e-5, 4e-5]


def index(*values, shape=None, dtype="uint32"):
    return In(shape or (len(values),), data=list(values), dtype=dtype)


# MLX's CPU computes no half types here.
PLAIN = ["float32"]
for a, b, lhs, rhs in (((2, 3, 5), (4, 5, 6), index(1, 0, 1), index(3, 3, 0)), ((3, 5), (4, 5, 6), None, index(2)),
                       ((4, 1, 7), (3, 7, 35), None, index(2, 0, 2, 1)), ((2, 2, 9, 33), (5, 33, 3), index(3, 0), None),
                       ((5,), (4, 5, 6), index(0, 0), index(1, 2)), ((2, 3, 5), (5,), index(1), index(0)),
                       ((2, 3, 5), (4, 5, 6), index(1, 0, shape=(2, 1)), index(3, 2, 0, dtype="int32")),
                       ((2, 20, 40), (3, 40, 70), index(0, 1), index(2, 1)), ((2, 3, 0), (2, 0, 4), index(0), index(1))):
    if lhs is not None and rhs is None and a == (2, 2, 9, 33):
        lhs = index(3, 0, 1, 1, 2)
    call("gather_mm", In(a), In(b), lhs, rhs, dtypes=PLAIN, tol=TOL)
call("gather_mm", In((3, 5)), In((5, 4)), dtypes=[*FLOATS, "int32"], tol=TOL)


# Of other dtypes, what MLX computes of float32, rounded.
def in_floats(f):
    def rounded(a, *rest, **named):
        more = [x.astype(mx.float32) if isinstance(x, mx.array) and x.dtype == a.dtype else x for x in rest]
        return f(a.astype(mx.float32), *more, **named).astype(a.dtype)
    return rounded


call("gather_mm", In((2, 3, 5)), In((4, 5, 6)), index(1, 0, 1), index(3, 3, 0), dtypes=HALFS, via=in_floats(mx.gather_mm), tol=TOL)
call("gather_mm", In((4, 2, 5)), In((3, 5, 6)), rhs_indices=index(0, 1, 1, 2), sorted_indices=True, tol=TOL)
for a, b in (((2, 3, 5), (4, 6, 5)), ((), (4, 5, 6))):
    call("gather_mm", In(a), In(b), index(0), index(1))
call("gather_mm", In((2, 3, 5)), In((2, 5, 4)), index(0), index(1), dtypes=["int32", "complex64", "bool"])
call("gather_mm", In((2, 3, 5)), In((2, 5, 4)), index(0, 1), index(0, 1, 1))

a, b = In((70, 40)), In((40, 66))
out, left, right = (In(s, ints(0, 1), "bool") for s in ((2, 2), (2, 1), (1, 2)))
call("block_masked_mm", a, b, 64, out, left, right, tol=TOL)
call("block_masked_mm", a, b, mask_lhs=left, tol=TOL)
call("block_masked_mm", In((3, 40)), In((40, 5)), 32, In((1, 1)), In((1, 2)), In((2, 1)), dtypes=HALFS,
     via=in_floats(mx.block_masked_mm), tol=TOL)
call("block_masked_mm", In((3, 40)), In((40, 5)), 32, In((1, 1), dtype="bool"), In((1, 2), dtype="bool"),
     In((2, 1), dtype="bool"), dtypes=HALFS, via=in_floats(mx.block_masked_mm), tol=TOL)
call("block_masked_mm", a, b, 32, In((3, 3)), In((3, 2)), In((2, 3)), tol=TOL)
call("block_masked_mm", In((2, 3, 40)), In((40, 5)), 32, None, None, In((2, 2, 1)), tol=TOL)
call("block_masked_mm", In((3, 5)), In((5, 4)), dtypes=FLOATS, tol=TOL)  # with masks MLX has float32 only
call("block_masked_mm", In((40,)), In((40, 50)), 32, In((2,)), tol=TOL)
call("block_masked_mm", a, b, 16, out)
call("block_masked_mm", a, b, 64, In((3, 2)))
call("block_masked_mm", a, In((41, 66)), 64, out)
call("block_masked_mm", In((3, 5)), In((5, 4)), 64, In((1, 1)), dtypes=["int32", "complex64"])

segments = In((2, 3, 2), data=[0, 5, 5, 9, 3, 3, 4, 2, 1, 8, 9, 9], dtype="int32")
a, b = In((3, 9)), In((9, 4))
call("segmented_mm", a, b, segments, dtypes=["float32", "float64"], tol=TOL)


def each_segment(a, b, segments):
    ends = segments.reshape(-1, 2).astype(int)
    return np.stack([a[:, i:j] @ b[i:j] for i, j in ends]).reshape(*segments.shape[:-1], a.shape[0], b.shape[1])


# MLX's CPU steps from row to row by the segment's length where it computes half types.
call("segmented_mm", a, b, segments, dtypes=["float16", "bfloat16"], truth=each_segment, ulp=1, tol=TOL)
call("segmented_mm", In((9, 40)), In((40, 70)), index(3, 33), tol=TOL)
for shapes in (((0, 9), (9, 4)), ((3, 0), (0, 4))):
    call("segmented_mm", *[In(s) for s in shapes], index(0, 0, shape=(1, 2), dtype="uint8"), tol=TOL)
call("segmented_mm", In((3, 9)), In((9, 4)), In((0, 2), ints(0, 1), "uint32"), tol=TOL)
call("segmented_mm", In((3, 9)), In((9, 4)), In((3,), ints(0, 1), "uint32"))
call("segmented_mm", In((2, 3, 3)), In((2, 3, 3)), index(0, 3))
call("segmented_mm", In((3, 9)), In((9, 4)), index(0, 5), dtypes=["int32", "complex64", "bool"])
write("picked")
