"""Golden data for packed matrices: python golden/quantized.py, in tensor/optest."""

import mlx.core as mx

from golden import ALL, DISTINCT, FLOATS, HALFS, WIDE, Dtype, In, call, ints, write


# What MLX's CPU refuses to compute or computes for one row only, by the definition: of what unpacking gives.
def values(x, mode, factor):
    return mx.dequantize(*mx.quantize(x, mode=mode, global_scale=factor), mode=mode, global_scale=factor, dtype=mx.float32)


def unpacked(w, scales, mode, factor):
    if scales is None:
        return values(w, mode, factor)
    return mx.dequantize(w, scales, mode=mode, global_scale=factor, dtype=mx.float32)


def qqmm(x, w, scales=None, group_size=None, bits=None, mode="nvfp4", global_scale_x=None, global_scale_w=None):
    return values(x, mode, global_scale_x) @ unpacked(w, scales, mode, global_scale_w).T


def gather_qqmm(x, w, scales=None, lhs=None, rhs=None, group_size=None, bits=None, mode="nvfp4", global_scale_x=None,
                global_scale_w=None):
    w = unpacked(w, scales, mode, global_scale_w)
    return mx.gather_mm(values(x, mode, global_scale_x), w.swapaxes(-1, -2), lhs, rhs)


def gather_qmm(x, w, scales, rhs_indices, mode, global_scale):
    y = mx.gather_qmm(x, w, scales, rhs_indices=rhs_indices, mode=mode)
    return y * global_scale[rhs_indices][..., None, None] / 2688


# Of half types MLX's CPU adds products up in these, and it has none of float64. Here they are added up in float32, or
# in float64, and the sum is rounded.
def wide(x, dtype):
    return x.astype(dtype) if x is not None and mx.issubdtype(x.dtype, mx.floating) else x


def product(x, w, scales, biases=None, mode="affine", rhs_indices=None, **sizes):
    multiply = mx.quantized_matmul if rhs_indices is None else mx.gather_qmm
    which = {} if rhs_indices is None else {"rhs_indices": rhs_indices}
    like = multiply(x, w, scales, biases, mode=mode, **which, **sizes)
    if like.dtype == mx.float64:
        scales, biases = wide(scales, mx.float64), wide(biases, mx.float64)
        w = mx.dequantize(w, scales, biases, mode=mode, dtype=mx.float64, **sizes)
        return x.astype(mx.float64) @ (w if rhs_indices is None else w[rhs_indices]).swapaxes(-1, -2)
    mx.eval(like)
    scales, biases = wide(scales, mx.float32), wide(biases, mx.float32)
    return multiply(wide(x, mx.float32), w, scales, biases, mode=mode, **which, **sizes).astype(like.dtype)


BITS = ints(0, 1 << 31)
for bits in (1, 2, 3, 4, 5, 6, 8):
    for group in (32, 64, 128):
        few = HALFS if bits == 4 else ["float32", "bfloat16"]
        q = {"group_size": group, "bits": bits}
        ws = [In((3, 128))]
        if (bits, group) == (4, 64):
            ws += [In((2, 1, 64), DISTINCT), In((0, 64)), In((2, 64), ints(0, 0)), In((2, 64), ints(5, 5))]
        for w in ws:
            call("quantize", w, dtypes=few, **q)
        words = 128 * bits // 32
        packed = [In((3, words), BITS, "uint32"), In((3, 128 // group)), In((3, 128 // group))]
        call("dequantize", *packed, dtypes=few, **q)
        if group == 64:
            call("quantized_matmul", In((2, 2, 128)), *packed, tol=[1e-5, 4e-5], **q)
            call("quantized_matmul", In((5, 3)), *packed, transpose=False, tol=[1e-5, 4e-5], **q)
call("quantize", In((2, 64)))
call("quantize", In((2, 64)), mode="affine")
call("quantize", In((2, 64)), mode="none")
call("quantize", In((2, 64)), group_size=48)
call("quantize", In((2, 64)), bits=9)
four = [In((3, 16), BITS, "uint32"), In((3, 2)), In((3, 2))]
call("dequantize", *four)
call("dequantize", *four, dtype=Dtype("float16"))
call("dequantize", *four[:2])
call("quantized_matmul", In((5, 128)), *four, tol=[1e-5, 4e-5])

packed = [In((5, 32, 8), BITS, "uint32"), In((5, 32, 1)), In((5, 32, 1))]
lhs, rhs = In((3, 1), ints(0, 1), "int32"), In((4,), ints(0, 4), "uint32")
for x in (In((2, 3, 64)), In((2, 1, 64))):  # MLX adds up in half types
    call("gather_qmm", x, *packed, lhs_indices=lhs, rhs_indices=rhs, tol=[1e-5, 4e-5])
call("gather_qmm", In((2, 3, 32)), *packed, lhs_indices=lhs, rhs_indices=rhs, transpose=False, tol=[1e-5, 4e-5])
call("gather_qmm", In((5, 1, 64)), *packed, rhs_indices=In((5,), data=[0, 1, 1, 3, 4], dtype="uint32"), sorted_indices=True,
     group_size=64, bits=4, mode="affine", tol=[1e-5, 4e-5])
call("gather_qmm", In((2, 3, 64)), *packed, lhs_indices=In((5,), ints(0, 1), "int32"), tol=[1e-5, 4e-5])

# Modes of floats. MLX's CPU has them in all dtypes but float64, and products of half types are added up in these.
indices = In((4, 1), ints(0, 2), "uint32")
MODES = {"mxfp4": (32, 4, ints(120, 128)), "mxfp8": (32, 8, ints(115, 122)), "nvfp4": (16, 4, ints(40, 63))}
NO_NAN = ints(0, 0x3f000000)
for mode, (group, bits, scale) in MODES.items():
    for w in (In((3, 64)), In((2, 1, 64), WIDE), In((2, 64), ints(0, 0)), In((2, 64), ints(-450, 450))):
        call("quantize", w, dtypes=HALFS, mode=mode)
    packed = [In((3, 64 * bits // 32), NO_NAN, "uint32"), In((3, 64 // group), scale, "uint8")]
    for dtype in FLOATS if mode == "mxfp4" else HALFS:  # MLX unpacks others as if float64 were float32
        call("dequantize", *packed, mode=mode, dtype=Dtype(dtype))
    call("dequantize", *packed, mode=mode)
    call("dequantize", *packed, mode=mode, group_size=64)
    call("dequantize", *packed, In((3, 64 // group)), mode=mode)
    call("quantize", In((2, 64)), mode=mode, group_size=group, bits=bits)
    call("quantize", In((2, 64)), mode=mode, bits=3)
    call("quantize", In((2, 64)), mode=mode, dtypes=["int32", "complex64"])
    call("quantized_matmul", In((2, 2, 64)), *packed, mode=mode, tol=[1e-5, 4e-5])
    call("quantized_matmul", In((5, 3)), *packed, transpose=False, mode=mode, tol=[1e-5, 4e-5])
    call("quantized_matmul", In((2, 64)), *packed, mode=mode, dtypes=["int32", "complex64"])
    experts = [In((3, 2, 64 * bits // 32), NO_NAN, "uint32"), In((3, 2, 64 // group), scale, "uint8")]
    call("gather_qmm", In((2, 3, 64)), *experts, rhs_indices=indices, mode=mode, tol=[1e-5, 4e-5])
    call("qqmm", In((1, 64), WIDE), *packed, mode=mode, via=qqmm, tol=[1e-5, 4e-5])
    call("qqmm", In((2, 3, 64)), *packed, None, None, mode, via=qqmm, tol=[1e-5, 4e-5])
    call("qqmm", In((4, 64)), In((3, 64), WIDE), mode=mode, via=qqmm, tol=[1e-5, 4e-5])
    call("qqmm", In((4, 64)), *packed, group, bits, mode, via=qqmm, tol=[1e-5, 4e-5])
    call("gather_qqmm", In((2, 1, 64)), *experts, None, indices, group, bits, mode, via=gather_qqmm, tol=[1e-5, 4e-5])
    call("gather_qqmm", In((2, 3, 64)), *experts, In((2,), ints(0, 1), "uint32"), indices, mode=mode, via=gather_qqmm, tol=[1e-5, 4e-5])
call("qqmm", In((4, 64)), In((3, 64)), via=qqmm, tol=[1e-5, 4e-5])
call("gather_qqmm", In((2, 3, 64)), *experts, None, indices, via=gather_qqmm, tol=[1e-5, 4e-5])
factor = In((), data=5.5, dtype="float32")
packed = [In((3, 8), NO_NAN, "uint32"), In((3, 4), ints(40, 63), "uint8")]
for w in (In((3, 64)), In((2, 64), WIDE)):
    call("quantize", w, dtypes=HALFS, mode="nvfp4", global_scale=factor)
call("quantize", In((2, 64)), mode="nvfp4", global_scale=In((1, 1), data=300.0, dtype="float32"))
call("quantize", In((2, 64)), mode="nvfp4", global_scale=In((2,), data=[3.0, 4.0], dtype="float32"))
call("quantize", In((2, 64)), mode="nvfp4", global_scale=In((), data=3, dtype="float16"))
call("quantize", In((2, 64)), mode="mxfp4", global_scale=factor)
# Without a dtype MLX's CPU gives float32 for bfloat16: its GPUs do not.
call("dequantize", *packed, mode="nvfp4", global_scale=factor, dtype=Dtype("float32"))
call("gather_qmm", In((2, 3, 64)), *experts, rhs_indices=indices, mode="nvfp4", via=gather_qmm, tol=[1e-5, 4e-5],
     global_scale=In((3,), data=[100.0, 2000.0, 500.0], dtype="float32"))
call("gather_qmm", In((2, 3, 64)), *experts, rhs_indices=indices, mode="nvfp4",
     global_scale=In((2,), data=[100.0, 2000.0], dtype="float32"))
call("qqmm", In((4, 64)), *packed, mode="nvfp4", global_scale_x=factor, global_scale_w=In((), data=2000.0, dtype="float32"),
     via=qqmm, tol=[1e-5, 4e-5])
call("gather_qqmm", In((2, 3, 64)), *experts, None, indices, mode="nvfp4", global_scale_x=factor,
     global_scale_w=In((), data=2000.0, dtype="float32"), via=gather_qqmm, tol=[1e-5, 4e-5])
# All dtypes, of the numbers multiplied and of the scales, of the packed numbers, and of the indices.
four = {"group_size": 32, "bits": 4}
words, scale, code = In((2, 3, 8), BITS, "uint32"), In((2, 3, 2), dtype="float32"), In((2, 3, 2), ints(120, 128), "uint8")
x = In((2, 2, 64))
own = In((2, 3, 2))
for name in ("quantized_matmul", "gather_qmm"):
    which = {"rhs_indices": In((2,), data=[1, 0], dtype="uint32")} if name == "gather_qmm" else {}
    call(name, x, words, own, own, dtypes=ALL, via=product, **four, **which)
    call(name, x, words, scale, scale, dtypes=ALL, via=product, **four, **which)
    call(name, x, words, code, dtypes=ALL, via=product, mode="mxfp4", **which)
    call(name, In((2, 2, 64), dtype="float32"), In((2, 3, 8), ints(0, 100)), scale, scale, dtypes=ALL, via=product, **four,
         **which)
for name in ("lhs_indices", "rhs_indices"):
    call("gather_qmm", In((2, 2, 64), dtype="float32"), words, scale, scale, **{name: In((3,), ints(0, 1))}, dtypes=ALL,
         **four, tol=[1e-5, 4e-5])


def typed(name, compute):
    """Of what MLX's function gives without computing it, the dtype and the refusals."""
    return lambda *args, **named: compute(*args, **named).astype(getattr(mx, name)(*args, **named).dtype)


few, codes = In((2, 32)), In((2, 2), ints(40, 63), "uint8")
packed = In((2, 4), NO_NAN, "uint32")
for name, via in (("qqmm", typed("qqmm", qqmm)), ("gather_qqmm", typed("gather_qqmm", gather_qqmm))):
    close = {"via": via, "tol": [1e-5, 4e-5]}
    call(name, few, packed, codes, dtypes=[d for d in ALL if d != "float64"], **close)  # which mlxlua takes too
    call(name, In((2, 32), dtype="float32"), In((2, 4), ints(0, 63)), codes, dtypes=[d for d in ALL if d != "uint32"], **close)
    call(name, In((2, 32), dtype="float32"), packed, In((2, 2), ints(40, 63)), dtypes=ALL, **close)
    for factor in ("global_scale_x", "global_scale_w"):
        other = "global_scale_w" if factor == "global_scale_x" else "global_scale_x"
        call(name, In((2, 32), dtype="float32"), packed, codes, dtypes=ALL, **close,
             **{factor: In((), ints(7, 7)), other: In((), data=9.0, dtype="float32")})
call("gather_qmm", In((2, 3, 64), dtype="float32"), *experts, rhs_indices=indices, mode="nvfp4",
     global_scale=In((3,), ints(7, 9)), dtypes=[d for d in ALL if d != "float32"])
for name in ("lhs", "rhs"):
    call("gather_qqmm", In((2, 1, 32), dtype="float32"), In((2, 2, 4), NO_NAN, "uint32"), In((2, 2, 2), ints(40, 63), "uint8"),
         *([None] if name == "rhs" else []), In((2,), ints(0, 1)), dtypes=ALL, via=typed("gather_qqmm", gather_qqmm),
         tol=[1e-5, 4e-5])
write("quantized")
