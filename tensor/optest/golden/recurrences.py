"""Golden data for losses and recurrences of mx.fast: python golden/recurrences.py, in tensor/optest."""

from golden import ALL, FLOATS, HALFS, INTS, In, call, ints, write

LOSS, RULE = "fast.cross_entropy", "fast.gated_delta_update"
# MLX computes half types as such: those are compared with their own float32 results. It takes nothing of no rows.
for d in FLOATS:
    exact = [2e-2, 2e-2] if d in ("float16", "bfloat16") else [2e-6, 2e-6]
    for target in INTS:
        call(LOSS, In((3, 5)), In((3,), ints(0, 4), target), dtypes=[d], tol=exact)
call(LOSS, In((2, 3, 70)), In((2, 3), ints(-70, 69), "int32"), tol=[2e-6, 2e-6])
call(LOSS, In((4,)), In((), ints(0, 3), "int32"), tol=[2e-6, 2e-6])
call(LOSS, In((12, 2), ("special", 0, 0)), In((12,), ints(0, 1), "int32"), tol=[2e-6, 2e-6])
for d in ("bool", "int32", "complex64"):
    call(LOSS, In((3, 5)), In((3,), ints(0, 4), "int32"), dtypes=[d])
for shape, target in (((3, 5), (1,)), ((3, 5), ()), ((3, 5), (3, 1)), ((), ()), ((2, 0), (2,))):
    call(LOSS, In(shape), In(target, ints(0, 0), "int32"))
for d in ("float32", "bool"):
    call(LOSS, In((3, 5)), In((3,), ints(0, 1), d))

TOL = [2e-5, 2e-5]
UNIT = ("uniform", 0, 1)


def rule(batch, steps, key_heads, heads, depth, width, *more, vector=False, dtypes=("float32",), **options):
    q, k = In((batch, steps, key_heads, depth), ("uniform", -1, 1)), In((batch, steps, key_heads, depth), ("uniform", -1, 1))
    gamma = In((batch, steps, heads, depth) if vector else (batch, steps, heads), UNIT)
    call(RULE, q, k, In((batch, steps, heads, width)), gamma, In((batch, steps, heads), UNIT), *more, dtypes=dtypes,
         tol=TOL, **options)


rule(2, 3, 2, 4, 5, 3, dtypes=["float32", "float64", "int32", "bool"])
rule(1, 4, 1, 1, 70, 2)
rule(1, 1, 1, 3, 32, 33)
rule(2, 3, 2, 4, 5, 3, vector=True)
rule(2, 3, 1, 2, 5, 3, In((2, 2, 3, 5)))
rule(2, 3, 1, 2, 5, 3, In((2, 2, 3, 5)), In((2, 3), ints(0, 1), "bool"))
rule(2, 3, 1, 2, 5, 3, initial_state=In((2, 2, 3, 5), dtype="float16"), mask=In((2, 3), ints(0, 2), "int32"))
rule(2, 3, 1, 2, 5, 3, mask=In((2, 3), ints(0, 1), "float32"))
for shape in ((1, 2, 3, 5), (2, 3, 5), (2, 1, 3, 1), (3, 2, 3, 5)):
    rule(2, 3, 1, 2, 5, 3, In(shape))
call(RULE, In((1, 2, 1, 4)), In((1, 2, 1, 4)), In((1, 2, 3, 2)), In((1, 2, 3, 1), UNIT), In((1, 2, 3), UNIT), tol=TOL)
rule(0, 3, 1, 1, 4, 5)
rule(1, 3, 1, 1, 4, 0)
rule(1, 3, 1, 1, 0, 4)
rule(2, 0, 1, 1, 4, 4)
rule(1, 3, 2, 3, 4, 5)
rule(1, 3, 1, 1, 4, 5, In((1, 1, 4, 5)))
rule(1, 3, 1, 1, 4, 5, mask=In((3,), ints(0, 1), "bool"))
rule(1, 3, 1, 1, 4, 5, mask=In((1, 2), ints(0, 1), "bool"))
short = In((2, 3, 1, 4)), In((2, 3, 1, 4)), In((2, 3, 1, 2))
for q, k in (("float16", "float32"), ("float32", "float16"), ("float16", "float16"), ("bfloat16", "bfloat16")):
    call(RULE, In((1, 1, 1, 3), dtype=q), In((1, 1, 1, 3), dtype=k), In((1, 1, 1, 2)), In((1, 1, 1), UNIT),
         In((1, 1, 1), UNIT), tol=[2e-2, 2e-2])
call(RULE, short[0], In((2, 3, 1, 5)), short[2], In((2, 3, 1)), In((2, 3, 1)))
call(RULE, *short, In((2, 3)), In((2, 3, 1)))
call(RULE, *short, In((2, 3, 1)), In((2, 2, 1)))
call(RULE, In((3, 1, 4)), *short[1:], In((2, 3, 1)), In((2, 3, 1)))
write("recurrences")
