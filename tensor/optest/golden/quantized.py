"""Golden data for packed matrices: python golden/quantized.py, in tensor/optest."""

from golden import DISTINCT, HALFS, Dtype, In, call, ints, write

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
write("quantized")
