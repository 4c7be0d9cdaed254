"""Golden data for triangles of matrices: python golden/triangles.py, in tensor/optest."""

from golden import ALL, In, call, write

for name in ("tril", "triu"):
    for k in (0, 1, -1, 5, -7):
        for shape in ((3, 4), (2, 4, 2), (3, 0)):
            call(name, In(shape), k)
    call(name, In((3, 3)), dtypes=ALL)
    call(name, In((3,)))
write("triangles")
