"""Golden data for einsum and its relatives: python golden/contractions.py, in tensor/optest."""

import mlx.core as mx
import numpy as np
from golden import ALL, FEW, FLOATS, HALFS, In, call, ints, write

INEXACT = [*HALFS, "float64", "complex64"]
TOL = [1e-5, 4e-5]
SIZES = dict(zip("abcdefgh", [2, 3, 4, 5, 2, 3, 1, 0]))


def einsum(text, *shapes, **options):
    if not shapes:
        shapes = [tuple(SIZES[c.lower()] for c in s) for s in text.replace(" ", "").split("->")[0].split(",")]
    call("einsum", text, *[In(s) for s in shapes], tol=TOL, **options)


for text in ("ab,bc", "abc,cbd->da", "aab,ccb->ac", "ab,cb,fb->caf"):
    einsum(text, dtypes=INEXACT)
for text in ("aa", "ab->ba", "abc->b", "a,b", "bca,bca->ab", "ab,d->bad", "aba->a"):
    einsum(text, dtypes=ALL)
for text in ("a,ab,abc->abc", "ab,ab,c->", "ab,cd,ef->acdf", "ab,bcd,cd->abd", "bca,cdb,dbf,afc->", "dcc,fce,ea,dbf->ab",
             "fff,fae,bef,def->abd", "abcd,ea,fb,ac,bd->ef", "ag,gb->ab", "ah,hb->ab", "bh->b", " a b , b c -> c a ", "ba,bc",
             "abcd,dcfa->bf", "aae,eea->ea", "ab,ab->", "g,g->", "Ab,bA->A"):
    einsum(text)
for text, *shapes in (("...c->...", (2, 3, 4)), ("...ij,...jk->...ik", (1, 3, 4), (2, 4, 5)), ("...i,...i->...", (5, 4), (1, 4)),
                      ("a...d->...", (2, 3, 4)), ("...hh->...h", (2, 3, 3)), ("...c,cd", (2, 3), (3, 4)),
                      ("ab,b...->a...", (2, 3), (3, 4, 2)), ("...ij->i", (2, 3, 4)), ("ab...,...b->ab...", (2, 3), (3,)),
                      ("...,...", (3, 1), (2, 1, 4)), ("...c,dc->d...", (2, 3), (4, 3)), (",", (), ()), (",ab", (), (2, 3)),
                      ("ij,jk->ik", (3, 1), (4, 5)), ("i,ij->ij", (1,), (3, 4)), ("ab,bc->c", (5, 1), (4, 2)), ("->", ())):
    einsum(text, *shapes)
for text, *shapes in (("ab,bc", (2, 3), (4, 5)), ("ab", (2,)), ("a...b...", (2, 3)), ("ab,bc", (2, 3)), ("a1", (2, 2)),
                      ("aa", (2, 3)), ("ab->aa", (2, 3)), ("ab->abc", (2, 3)), ("a..b", (2, 3)), ("ab->a->b", (2, 3)),
                      ("ab...", (2,)), ("a,,b", (2,), (3,)), ("a b.c", (2, 3))):
    einsum(text, *shapes)
    if shapes != [(2, 3)] or "->" not in text:
        call("einsum_path", text, *[In(s) for s in shapes])


def path(text, *operands):
    steps, told = mx.einsum_path(text, *operands)
    return [*[mx.array(np.array(s, np.int64)) for s in steps], mx.array(np.frombuffer(told.encode(), np.uint8))]


for text in ("aa", "ab,bc", "ab,bc,cd", "cd,bc,ab->da", "dcc,fce,ea,dbf->ab", "bca,cdb,dbf,afc->", "ab,cd,ef->abcdef",
             "ab,ab,c->c", "acdf,fbfe,geeb,efac,gfac,gefabc,efac", "a,b,ab->ab", "ab,ab,cd,cd->"):
    call("einsum_path", text, *[In([SIZES[c] for c in s]) for s in text.split("->")[0].split(",")], via=path)
call("einsum_path", "...a,ab,bc->...c", In((4, 5, 2)), In((2, 3)), In((3, 7)), via=path)

for s, t, axes in (((2, 3, 4), (3, 4, 5), 2), ((2, 3), (3, 2), 1), ((2,), (3,), 0), ((2, 3, 4), (5, 4, 3), [[1, 2], [2, 1]]),
                   ((2, 3), (2, 3), [[0, -1], [0, 1]]), ((3, 0), (0, 2), 1)):
    call("tensordot", In(s), In(t), axes, dtypes=INEXACT, tol=TOL)
call("tensordot", In((2, 3, 4)), In((3, 4, 5)), tol=TOL)
call("tensordot", In((2, 3)), In((3, 2)), 1, dtypes=["int32", "bool"])
for s, t, axes in (((2, 3), (2, 3), 1), ((2,), (2,), 2), ((2, 3), (2, 3), -1), ((2, 3), (2, 3), [[0], [0, 1]]),
                   ((2, 3), (2, 3), [[0], [0], [0]]), ((2, 3), (3, 2), [[0], [0]])):
    call("tensordot", In(s), In(t), axes)
for s, t in (((4,), (4,)), ((2, 3), (4, 3)), ((2, 1, 3), (3,)), ((), (2, 3)), ((2, 3), ()), ((2, 0), (3, 0))):
    call("inner", In(s), In(t), dtypes=INEXACT, tol=TOL)
call("inner", In((3,)), In((3,)), dtypes=["int32", "bool"])
call("inner", In(()), In((3,)), dtypes=["int32", "bool"])
call("inner", In((3,)), In((4,)))
call("inner", In((3, 2)), In((3, 4)))
for s, t in (((3,), (2,)), ((2, 2), (3,)), ((), (2,)), ((0,), (2,))):
    call("outer", In(s), In(t), dtypes=ALL)
    if (0,) not in (s, t):
        call("kron", In(s), In(t), dtypes=ALL)
for s, t in (((2, 2), (2, 3)), ((2, 1, 3), (2, 2)), ((3,), (2, 1, 2)), ((), ())):
    call("kron", In(s), In(t), dtypes=FEW)
call("kron", In((0, 2)), In((2, 2)))
call("kron", In((2, 2)), In((0,)))
for s, t, axis in (((2, 3), (2, 3), -1), ((2, 3), (2, 3), 0), ((4, 1, 3), (1, 2, 3), 2), ((3,), (3,), -1), ((2, 0), (2, 0), 1)):
    call("vecdot", In(s), In(t), axis=axis, dtypes=ALL, tol=TOL)
call("vecdot", In((2, 3)), In((2, 3)))
call("vecdot", In((3, 2)), In((3, 2)), dtypes=["complex64"])
for s, t, axis in (((2, 3), (2, 4), -1), ((2, 3), (3,), -1), ((2, 3), (2, 3), 2), ((), (3,), -1), ((2, 3), (2, 3), -3)):
    call("vecdot", In(s), In(t), axis=axis)

for r, s, t in (((3, 4), (3, 5), (5, 4)), ((4,), (3, 5), (5, 4)), ((), (5,), (5, 4)), ((2, 1, 4), (2, 3, 5), (5, 4)),
                ((3,), (3, 5), (5,)), ((3, 1), (4, 3, 5), (4, 5, 2)), ((4,), (3, 0), (0, 4))):
    call("addmm", In(r), In(s), In(t), dtypes=FLOATS, tol=TOL)
    call("addmm", In(r), In(s), In(t), 0.5, -2, dtypes=INEXACT, tol=TOL)
call("addmm", In((3, 4)), In((3, 5)), In((5, 4)), alpha=0.1, dtypes=[*HALFS, "complex64"], tol=TOL)  # MLX rounds it
call("addmm", In((3, 4)), In((3, 5)), In((5, 4)), beta=0, dtypes=["float32"], tol=TOL)
call("addmm", In((3, 4)), In((3, 5), dtype="int32", gen=ints(0, 3)), In((5, 4)), dtypes=["float32", "int32"], tol=TOL)
call("addmm", In((2, 4)), In((3, 5)), In((5, 4)))
call("addmm", In((3, 4)), In((3, 5)), In((4, 4)))
call("addmm", In((3, 4)), In(()), In((4, 4)))
write("contractions")
