"""Golden data for packed matrices: python golden/quantized.py, in tensor/optest."""

import mlx.core as mx

from golden import DISTINCT, FLOATS, HALFS, WIDE, Dtype, In, call, ints, write


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
write("quantized")
