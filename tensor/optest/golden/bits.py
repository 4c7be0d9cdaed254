"""Golden data for rounding, bits, and functions that say of numbers what they are: python golden/bits.py, in tensor/optest."""

import math

import mlx.core as mx
import numpy as np

from golden import (ALL, DISTINCT, FLOATS, HALFS, INTS, In, SPECIAL, U, WIDE, Dtype, Of, call, double, dtype_name, ints, mlx_dtype,
                    write)

np.seterr(all="ignore")
SHAPES = ((2, 5), (), (0, 3))


def element_wise():
    for shape in SHAPES:
        for op in "trunc isposinf isneginf degrees radians positive round bitwise_invert".split():
            call(op, In(shape, WIDE), dtypes=ALL)
        for op in "logical_xor divmod bitwise_and bitwise_or bitwise_xor".split():
            # False as a divisor ends MLX's process.
            call(op, In(shape, WIDE), In(shape[-1:], ("uniform", 1, 4)), dtypes=ALL[1:] if op == "divmod" else ALL)
    for op in "trunc isposinf isneginf degrees radians round".split():
        call(op, In((12,), SPECIAL), dtypes=FLOATS + (["complex64"] if op.startswith("is") else []))
    infinite = np.array([complex(a, b) for a in (math.inf, -math.inf, 1) for b in (0.0, -0.0, 1, math.inf, math.nan)], np.complex64)
    for op in ("isposinf", "isneginf"):
        call(op, In.of(mx.array(infinite)))
    for op in "bitwise_and bitwise_or bitwise_xor left_shift right_shift logical_xor divmod".split():
        for a, b in (("int8", "uint8"), ("bool", "int32"), ("uint64", "int8"), ("uint16", "float32"), ("bool", "bool")):
            call(op, In((2, 1), ints(1, 5), a), In((3,), data=[1, 1, 1], dtype=b))
        call(op, In((2,), ints(1, 5)), In((3,), ints(1, 5)), dtypes=["int32"])
        call(op, In((3,), ints(1, 100)), 3, dtypes=["int32", "uint8", "int64", "float32", "bool"])
        call(op, 3, In((3,), ints(1, 2)), dtypes=["int32", "uint8"])
        call(op, 6, 1)
    call("bitwise_invert", 5)
    for d in INTS:
        i = np.iinfo(d)
        x = np.array([0, 1, 3, 77, i.max, i.min], d)
        n = 8 * x.dtype.itemsize
        call("bitwise_invert", In.of(mx.array(x)))
        # By the number of bits or more MLX shifts as the processor does: mlxlua shifts all of them out.
        for op in ("left_shift", "right_shift"):
            call(op, In.of(mx.array(x)), In.of(mx.array(np.array([[0], [1], [3], [n - 1]], d))))


def rounding():
    for d in ALL:
        if d[0] in "ui":
            i = np.iinfo(d)
            x = np.array([0, 1, 5, 15, 25, 45, 55, 100, 149] + ([-5, -15, -25, -45, -55, -100] if i.min else [200]), np.int64)
            x = mx.array(x[(x <= i.max) & (x >= i.min)]).astype(mlx_dtype(d))
            call("round", In.of(x), 2, ulp=0)
            call("round", In.of(x), -1, ulp=0)
        elif d == "complex64":
            z = mx.array(np.array([1.234 + 2.567j, 0.5 - 1.5j, -2.5 + 0.25j], np.complex64))
            call("round", In.of(z))
            call("round", In.of(z), 1, ulp=2)
        elif d != "bool":
            # MLX multiplies float64 by a float32, and overflows where the power of ten is beyond the dtype.
            v = [0.5, 1.5, 2.5, -0.5, -2.5, 1.26, -7.3, 12.345, 155, 26, 0, 3.99, 31, 0.015, math.inf, -math.inf, math.nan]
            x = mx.array(v, dtype=mx.float64).astype(mlx_dtype(d))
            call("round", In.of(x), ulp=0)
            for decimals in (1, 2, -1):
                if d == "float64":
                    truth = [np.round(a, decimals) for a in v]
                    call("round", In.of(x), decimals, ulp=2, truth=lambda *_: np.array(truth))
                else:
                    call("round", In.of(x), decimals, ulp=2)


def equal():
    for shape in SHAPES:
        x = In(shape, ints(0, 1))
        call("array_equal", x, x, dtypes=ALL)
        call("array_equal", x, In(shape, ints(0, 1)), dtypes=ALL)
    for a, b in (((2, 3), (3,)), ((2,), (1,)), ((0,), (0,)), ((2, 0), (0, 2)), ((), (1,))):
        call("array_equal", In(a, ints(1, 1)), In(b, ints(1, 1)))
    for a in ALL:
        call("array_equal", In((2,), data=[1, 1], dtype=a), In((2,), data=[1, 1], dtype="float16"))
    for more in ({}, {"equal_nan": True}):
        for d in FLOATS + ["complex64"]:
            x = In((12,), SPECIAL)
            call("array_equal", x, x, dtypes=[d], **more)
        call("array_equal", In((2,), data=[1, 2], dtype="int32"), In((2,), data=[1, math.nan], dtype="float32"), **more)
        call("array_equal", In((1,), data=[complex(1, math.nan)], dtype="complex64"),
             In((1,), data=[complex(math.nan, 2)], dtype="complex64"), **more)
    call("array_equal", In((2,), data=[1, 1], dtype="int32"), 1)
    call("array_equal", 1, 1.5)


def views():
    for to in ALL:
        if to == "bool":  # whose bytes may be neither 0 nor 1: TestViewAsBool
            continue
        for d in ALL:
            call("view", In((2, 8), WIDE), Dtype(to), dtypes=[d])
            call("view", Of("transpose", In((8, 3), WIDE)), Dtype(to), dtypes=[d])
            call("view", In((), WIDE), Dtype(to), dtypes=[d])
    for shape in ((0, 3), (3, 0), (2, 3), (0, 4)):
        call("view", In(shape), Dtype("int64"), dtypes=["float32", "uint8", "float64"])
    call("view", In((4,), data=[0, 1, 1, 0], dtype="uint8"), Dtype("bool"))
    call("view", In((2, 2), data=[[0, 1], [1, 0]], dtype="bool"), Dtype("uint16"))


def e4m3(v):
    """The nearest number of the format, of two equally near ones the even one."""
    a = np.abs(v)
    code = np.arange(0x7F)
    table = np.where(code < 8, code * 2.0 ** -9, (1 + (code & 7) / 8) * 2.0 ** ((code >> 3) - 7.0))
    out = np.zeros(a.shape, np.uint8)
    for i, x in np.ndenumerate(a):
        if math.isnan(x):
            out[i] = 0x7F
            continue
        near = np.abs(table - min(x, 448.0))
        best = np.flatnonzero(near == near.min())
        out[i] = next((b for b in best if b % 2 == 0), best[0])
    return out | np.where(np.signbit(v), 0x80, 0).astype(np.uint8)


def eight_bits():
    # MLX reads float16 and float64 as if they were float32, makes 448 of NaN, and writes rubbish as float64.
    v = [0, -0.0, 0.001, 2.0 ** -10, 1.5 * 2 ** -9, 2.5 * 2 ** -9, 0.0156, 0.0151, 0.5, 1, 1.06, 1.0625, 1.07, 1.1875, 17, 19, 447,
         448, 449, 464, 480, 1e9, math.inf, -math.inf, -1, -500, math.nan, 3.3, -0.3]
    for d in FLOATS:
        x = mx.array(v, dtype=mx.float64).astype(mlx_dtype(d))
        x = x[mx.array([i for i in range(len(v)) if d == "float64" or not (d == "float16" and v[i] == 1e9)])]
        call("to_fp8", In.of(x), truth=lambda *_: e4m3(double(x)))
    call("to_fp8", In((2, 3)), dtypes=[d for d in ALL if d not in FLOATS] + ["float32"])
    call("to_fp8", In((0, 3)))
    call("to_fp8", In(()))
    codes = mx.arange(256).astype(mx.uint8)
    exact = double(mx.from_fp8(codes, mx.float32))
    for d in FLOATS:
        call("from_fp8", In.of(codes), Dtype(d), truth=lambda *_: exact, ulp=0)
    call("from_fp8", In.of(codes))
    call("from_fp8", In((2, 3), ints(0, 127)), dtypes=ALL)
    for d in ("int32", "bool", "complex64"):
        call("from_fp8", In((2,), ints(0, 255), "uint8"), Dtype(d))


def hadamard():
    # MLX refuses float64, drops imaginary parts, and keeps the dtype of rows of one number.
    real = [d for d in ALL if d not in ("float64", "complex64")]
    for n in (2, 8, 32, 12, 24, 20, 28, 56):
        for d in real if n in (8, 12) else HALFS if n == 24 else ["float32"]:
            call("hadamard_transform", In((3, n)), dtypes=[d], tol=(2e-6, 1e-6))
            call("hadamard_transform", In((3, n)), 0.5, dtypes=[d], tol=(2e-6, 1e-6))
    call("hadamard_transform", In((2, 1)), dtypes=HALFS)
    call("hadamard_transform", In((2, 1)), 3.0, dtypes=HALFS)
    call("hadamard_transform", In(()), 3.0)
    call("hadamard_transform", In(()))
    for n in (3, 6, 7):  # of 36 or 144 MLX computes nonsense
        call("hadamard_transform", In((2, n)))


element_wise()
rounding()
equal()
views()
eight_bits()
hadamard()
call("depends", [In((2, 3)), In((2,), U, "int8")], [In((3,))], dtypes=ALL)
write("bits")
