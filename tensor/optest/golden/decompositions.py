"""Golden data for decompositions, on the processor: python golden/decompositions.py, in tensor/optest."""

import numpy as np

from golden import In, call, write

rng = np.random.default_rng(3)
for shape in ((1, 1), (3, 3), (5, 5), (2, 3, 3)):
    a = rng.integers(-4, 5, shape) / 4
    n = shape[-1]
    spd = In(shape, data=(a @ np.swapaxes(a, -1, -2) + n * np.eye(n)), dtype="float32")
    triangle = In(shape, data=a + 3 * np.eye(n), dtype="float32")
    for upper in (False, True):
        call("linalg.cholesky", spd, upper=upper, tol=[1e-5, 1e-5])
        call("linalg.tri_inv", triangle, upper=upper, tol=[1e-5, 1e-5])
    call("linalg.cholesky", spd, tol=[1e-5, 1e-5])
    call("linalg.tri_inv", triangle, tol=[1e-5, 1e-5])
for name in ("linalg.cholesky", "linalg.tri_inv"):
    call(name, In((2, 3)))
    call(name, In((3,)))
write("decompositions")
