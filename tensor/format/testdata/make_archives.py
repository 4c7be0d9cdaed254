"""Makes the .npz and .safetensors files of the tests with NumPy, safetensors and MLX, the writers to be compatible with.

    pip install numpy==2.4.6 safetensors==0.8.0 mlx==0.32.4 && python make_archives.py

Element i of tensor number k of a file is i + k.
"""
import struct

import mlx.core as mx
import numpy as np
from safetensors import TensorSpec, serialize
from safetensors.numpy import save_file

arrays = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3) + 1),
    "big": (np.arange(6) + 2).astype(">i4"),
    "scalar": np.array(3, dtype=np.uint8),
    "empty": np.zeros((0, 3), dtype=np.float64),
}
np.savez("stored.npz", *[arrays["matrix"]], **arrays)
np.savez_compressed("compressed.npz", **arrays)
mx.savez("mlx.npz", a=mx.arange(4), b=mx.ones((2, 2), mx.bfloat16))

# Every dtype of the safetensors package, in the order of the format: large elements first.
raw = [
    ("float64", np.float64, 8), ("int64", np.int64, 8), ("uint64", np.uint64, 8), ("complex64", np.complex64, 8),
    ("float32", np.float32, 4), ("int32", np.int32, 4), ("uint32", np.uint32, 4),
    ("float16", np.float16, 2), ("int16", np.int16, 2), ("uint16", np.uint16, 2),
    ("int8", np.int8, 1), ("uint8", np.uint8, 1), ("bool", np.bool_, 1),
]
tensors, kept = {}, []


def add(name, shape, data):
    kept.append(np.frombuffer(data, np.uint8))
    tensors[name] = TensorSpec(dtype=name, shape=shape, data_ptr=kept[-1].ctypes.data, data_len=len(data))


for k, (name, dtype, _) in enumerate(raw):
    add(name, [2, 3], (np.arange(6) + k).astype(dtype).tobytes())
add("bfloat16", [2], struct.pack("<HH", 0x3F80, 0xC0A0))
for name in ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn_x2"]:
    add(name, [4], bytes([0, 0x7E, 0xFE, 0xB6]))
with open("every.safetensors", "wb") as f:
    f.write(serialize(tensors, {"format": "np", "who": "Grüße"}))
save_file({"a": np.arange(3, dtype=np.int32), "zero": np.zeros((0, 2), np.float32), "scalar": np.array(2.5)}, "shapes.safetensors")
# MLX does not align what it writes: b begins at an odd place of the file.
mx.save_safetensors("mlx.safetensors", {"b": mx.arange(40, dtype=mx.float32), "a": mx.array([7], mx.uint8)})
