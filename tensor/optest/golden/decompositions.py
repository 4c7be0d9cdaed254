"""Golden data for linear algebra, on the processor: python golden/decompositions.py, in tensor/optest. Results that are
unique are MLX's; of factors whose signs or order are open MLX tells the shapes and dtypes, and the tests of linalg check
what they multiply to."""

import numpy as np

from golden import ALL, FEW, SPECIAL, In, call, ints, write

NEAR = [1e-5, 1e-5]
rng = np.random.default_rng(3)


def regular(shape, dtype="float32"):
    """Matrices that are far from singular."""
    a = rng.integers(-4, 5, shape) / 4
    return In(shape, data=a + 3 * np.eye(shape[-1]), dtype=dtype)


def definite(shape, dtype="float32"):
    a = rng.integers(-4, 5, shape) / 4
    return In(shape, data=a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1]), dtype=dtype)


def empty(name, shapes, *args, **kwargs):
    """Matrices without elements, which MLX's functions do not all survive."""
    for shape in shapes:
        call(name, In(shape), *args, values=False, **kwargs)


SQUARE = ((1, 1), (3, 3), (5, 5), (2, 3, 3))
NONE = ((0, 0), (2, 0, 0), (0, 2, 2))
for d in ("float32", "float64"):
    for shape in SQUARE if d == "float32" else SQUARE[1:2]:
        spd, triangle, a = definite(shape, d), regular(shape, d), regular(shape, d)
        for upper in (False, True):
            call("linalg.cholesky", spd, upper=upper, tol=NEAR)
            call("linalg.tri_inv", triangle, upper=upper, tol=NEAR)
            call("linalg.cholesky_inv", triangle, upper=upper, tol=NEAR)
        call("linalg.cholesky", spd, tol=NEAR)
        call("linalg.tri_inv", triangle, tol=NEAR)
        call("linalg.cholesky_inv", triangle, tol=NEAR)
        call("linalg.inv", a, tol=NEAR)
        call("linalg.pinv", a, tol=NEAR)
        call("linalg.lu_factor", a, tol=NEAR)
        call("linalg.lu", a, tol=NEAR)
        for rest in ((2,), ()):
            batch = shape[:-2] if rest else ()
            if len(shape) == 2 or rest:
                b = In((*batch, shape[-1], *rest), dtype=d)
                call("linalg.solve", a, b, tol=NEAR)
                call("linalg.solve_triangular", a, b, tol=NEAR)
                call("linalg.solve_triangular", a, b, upper=True, tol=NEAR)
    for shape in ((2, 3), (3, 2), (2, 4, 2)):
        a = In(shape, dtype=d)
        call("linalg.lu_factor", a, tol=NEAR)
        call("linalg.lu", a, tol=NEAR)
        call("linalg.pinv", a, tol=NEAR)
call("linalg.inv", regular((3, 3)), dtypes=["float32"], tol=NEAR)
for name in ("linalg.solve", "linalg.solve_triangular"):  # of a float64 b MLX factors a in float32 all the same
    call(name, regular((3, 3)), In((3, 2)), dtypes=[d for d in ALL if d != "float64"], tol=NEAR)
    call(name, regular((3, 3)), In((3, 2), dtype="float64"), values=False)
call("linalg.solve_triangular", regular((2, 1, 3, 3)), In((4, 3, 2)), tol=NEAR)
call("linalg.solve_triangular", regular((2, 3, 3)), In((3,)), tol=NEAR)
for name in ("linalg.solve", "linalg.solve_triangular"):
    call(name, In((2, 2)), In((2, 1)), dtypes=[d for d in ALL if d != "float32" and d != "float64"])
    for s, t in (((2, 3), (2,)), ((2,), (2,)), ((2, 2), (3,)), ((2, 2), ()), ((3, 2, 2), (3, 2)), ((3, 2, 2), (2, 2, 1))):
        call(name, In(s), In(t))
    for s, t in (((0, 0), (0,)), ((0, 0), (0, 3)), ((2, 2), (2, 0)), ((0, 2, 2), (0, 2, 1))):
        call(name, In(s), In(t), values=False)
singular = In((2, 2), data=[[1, 2], [2, 4]], dtype="float32")
call("linalg.inv", singular)
call("linalg.tri_inv", In((2, 2), data=[[0, 2], [2, 4]], dtype="float32"))
call("linalg.solve", singular, In((2, 2)))
call("linalg.pinv", singular, tol=NEAR)
call("linalg.pinv", In((3, 4), data=np.outer([1, 2, 3], [1, -1, 2, 0.5]), dtype="float32"), tol=NEAR)
call("linalg.pinv", In((2, 2), data=np.zeros((2, 2)), dtype="float32"))
call("linalg.lu", In((4, 4), data=[[1, 2, 3, 4], [2, 4, 6, 8], [0, 1, 1, 0], [1, 0, 0, 1]], dtype="float32"), tol=NEAR)
for name in ("cholesky", "tri_inv", "cholesky_inv", "inv", "pinv", "lu", "lu_factor", "qr", "svd", "eig", "eigvals", "eigh",
             "eigvalsh", "det", "slogdet"):
    name = "linalg." + name
    call(name, In((3,)))
    call(name, In(()))
    if name not in ("linalg.pinv", "linalg.lu", "linalg.lu_factor", "linalg.qr", "linalg.svd"):
        call(name, In((2, 3)))
    if name not in ("linalg.det", "linalg.slogdet", "linalg.svd", "linalg.eigh", "linalg.eigvalsh", "linalg.eig",
                    "linalg.eigvals"):
        call(name, In((2, 2)), dtypes=[d for d in ALL if d not in ("float32", "float64")])
    empty(name, NONE)
for name in ("linalg.pinv", "linalg.lu", "linalg.lu_factor", "linalg.qr", "linalg.svd"):
    empty(name, ((0, 3), (3, 0), (2, 0, 3)))

# Factors: shapes and dtypes.
for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1)):
    call("linalg.qr", In(shape), dtypes=ALL, values=False)
    call("linalg.svd", In(shape), dtypes=ALL, values=False)
    call("linalg.svd", In(shape), compute_uv=False, dtypes=["float32", "float64", "complex64"], tol=[1e-5, 2e-5])
    call("linalg.svd", In(shape), True, values=False)
empty("linalg.svd", ((0, 3), (2, 0, 0)), False)
for shape in ((3, 3), (1, 1), (2, 3, 3)):
    for name in ("eig", "eigh", "eigvals"):
        call("linalg." + name, In(shape), dtypes=ALL, values=False)
    for uplo in ((), ("L",), ("U",)):
        call("linalg.eigvalsh", In(shape), *uplo, dtypes=["float32", *ALL], tol=[1e-5, 1e-5])
        call("linalg.eigh", In(shape), *uplo, values=False)
# Of this one the lower triangle is diagonal, and the upper one is not.
call("linalg.eigh", In((2, 2), data=[[1, 7], [0, 3]], dtype="float32"), tol=NEAR)
call("linalg.eigh", In((2, 2), data=[[1, 0], [7, 3]], dtype="float32"), "U", tol=NEAR)
call("linalg.eigvals", In((2, 2), data=[[0, 1], [-1, 0]], dtype="float32"), tol=NEAR)

# Determinants. MLX does not take halves from four rows on.
for n in (1, 2, 3):
    for name in ("linalg.det", "linalg.slogdet"):
        call(name, In((2, n, n)), dtypes=[*ALL[:9], "float32", "float64", "complex64"], tol=[1e-5, 1e-5])
        call(name, In((n, n), ints(-3, 4)), dtypes=["float16", "bfloat16"])
for n in (4, 5):
    for name in ("linalg.det", "linalg.slogdet"):
        call(name, regular((2, n, n)), tol=NEAR)
        call(name, In((n, n)), dtypes=["int32", "uint8", "float64"], tol=[1e-5, 1e-4])
for name in ("linalg.det", "linalg.slogdet"):
    call(name, singular)
    call(name, In((5, 5), data=np.ones((5, 5)), dtype="float32"))
    call(name, In((4, 4), data=[[1, 2, 3, 4], [2, 4, 6, 8], [0, 1, 1, 0], [1, 0, 0, 1]], dtype="float32"))
    call(name, In((0, 0)))
    call(name, In((3, 0, 0)))

# Norms.
INF = float("inf")
for shape in ((3,), (2, 3)):
    for ord in ([], [None], [1], [-1], [2], [INF], [-INF]):
        call("linalg.norm", In(shape), *ord, dtypes=["float32", "float64"] if shape == (2, 3) and ord == [2] else
             ["float32", "complex64"] if ord == [2] else FEW, tol=NEAR)
    for ord in (0, 3, 0.5, -2, "fro", "nuc"):
        call("linalg.norm", In(shape), ord, tol=NEAR, dtypes=["float32", "complex64"])
for keepdims in (False, True):
    for ord in (None, 1, 2, -2, INF, 0, 3.5):
        for axis in (0, [1], -1):
            call("linalg.norm", In((2, 3, 4)), ord, axis, keepdims, tol=NEAR)
    for ord in (None, "fro", "f", "nuc", 1, -1, 2, -2, INF, -INF):
        for axis in ([0, 1], [2, 0], [-1, 1]):
            call("linalg.norm", In((2, 3, 4)), ord, axis, keepdims, tol=NEAR)
    call("linalg.norm", In((2, 3, 4)), keepdims=keepdims, tol=NEAR)
    call("linalg.norm", In(()), keepdims=keepdims)
for name in ("matrix_norm", "linalg.norm"):
    for args in ((), (2,), ("nuc",), (1, 0), (None, [1]), (1, [1, 0], True)):
        call(name, In((2, 3)), *args, tol=NEAR)
call("linalg.norm", In((2, 3)), axis=[])
call("linalg.norm", In((2, 3, 4)), axis=[0, 2], tol=NEAR)
call("linalg.norm", In((12,), SPECIAL))
for ord, axis in ((2, None), (None, [0, 1, 2]), (1, []), ("fro", 0), (3, [0, 1]), (0, [0, 1]), (2, 5), ("f", [1])):
    call("linalg.norm", In((2, 3, 4)), ord, axis)
call("linalg.norm", In(()), 2)
for ord, axis in ((None, None), (2, 0), (INF, 0), (1, None), (2, None), (0, 0)):
    call("linalg.norm", In((0, 3)), ord, axis)

# Cross products.
for s, t in (((3,), (3,)), ((2,), (3,)), ((3,), (2,)), ((2,), (2,)), ((4, 3), (3,)), ((5, 1, 3), (4, 2))):
    call("linalg.cross", In(s), In(t), dtypes=ALL if s == t == (3,) else FEW if s == t else ["float32"])
call("linalg.cross", In((3,), dtype="int32"), In((3,)))
for axis in (0, -2):
    for s, t in (((3, 4), (3, 4)), ((3, 4), (2, 4)), ((3, 4), (2, 1))):
        call("linalg.cross", In(s), In(t), axis)
call("linalg.cross", In((3, 4)), In((5, 3, 4)), -2)
call("linalg.cross", In((0, 3)), In((3,)))
for s, t, axis in (((4,), (4,), -1), ((), (), -1), ((3,), (3,), 1), ((3, 4), (4, 4), 0), ((3, 4), (3, 5), 0), ((3,), (1,), -1)):
    call("linalg.cross", In(s), In(t), axis)
write("decompositions")
