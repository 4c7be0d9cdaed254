"""Makes the .gguf files of the tests with the gguf package, what they stand for, and ../gguf_grids.bin.

    pip install numpy==2.4.6 gguf==0.19.0 mlx==0.32.4 && python make_gguf.py

blocks.gguf has a tensor of two rows of each quantised type, named after it, of random bytes but for the scales, and
blocks.npz what the gguf package makes of them. plain.gguf has the other types and all kinds of metadata. triples.npz is
what MLX makes of triples.gguf.
"""
import os

import gguf
import mlx.core as mx
import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants

rng = np.random.default_rng(7)
# Where a block's scales lie: float16 numbers, or e.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0],
    "IQ3_S": [0], "IQ1_S": [0], "IQ1_M": [], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [],
    "NVFP4": [],
}


def blocks_of(name, n):
    elements, size = gguf.GGML_QUANT_SIZES[T[name]]
    b = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for at in SCALES[name]:
        b[:, at : at + 2] = rng.normal(0, 0.05, n).astype(np.float16).view(np.uint8).reshape(n, 2)
    if name == "MXFP4":
        b[:, 0] = rng.integers(118, 130, n)
    if name == "NVFP4":
        b[:, :4] &= 0x7F
    if name == "IQ1_M":  # its float16 scale lies in the high halves of four bytes: 0x2xxx is 0.008 to 0.03
        b[:, 55] = (b[:, 55] & 0x0F) | 0x20
    return b, elements


def write(path, tensors, metadata=None):
    w = gguf.GGUFWriter(path, "test")
    for name, data, kind in tensors:
        w.add_tensor(name, data, raw_dtype=kind)
    if metadata:
        metadata(w)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


tensors, want = [], {}
for name in SCALES:
    n = 2 if gguf.GGML_QUANT_SIZES[T[name]][0] > 32 else 4
    b, elements = blocks_of(name, n)
    b = b.reshape(2, -1)
    tensors.append((name + ".weight", b, T[name]))
    want[name] = quants.dequantize(b, T[name]).astype(np.float32)
write("blocks.gguf", tensors)
np.savez_compressed("blocks.npz", **want)

triples = []
for name in ["Q4_0", "Q4_1", "Q8_0"]:
    b, _ = blocks_of(name, 12)
    triples.append(("layer." + name + ".weight", b.reshape(3, -1), T[name]))
write("triples.gguf", triples)
np.savez_compressed("triples.npz", **{k: np.array(v) for k, v in mx.load("triples.gguf").items()})


def metadata(w):
    for kind in ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]:
        getattr(w, "add_" + kind)("a." + kind, 7 if kind[0] == "u" else -7)
    w.add_bool("a.bool", True)
    w.add_string("a.string", "Grüße")
    w.add_array("a.ints", [1, 2, -3])
    w.add_array("a.floats", [1.5, -2.5])
    w.add_array("a.bools", [True, False])
    w.add_array("a.strings", ["x", "", "Grüße"])


plain = []
for k, (kind, dtype) in enumerate([("F32", np.float32), ("F16", np.float16), ("I8", np.int8), ("I16", np.int16),
                                   ("I32", np.int32), ("I64", np.int64), ("F64", np.float64)]):
    plain.append((kind, (np.arange(6) + k).astype(dtype).reshape(2, 3), T[kind]))
plain.append(("BF16", np.array([[0x3F80, 0xC0A0]], dtype=np.uint16).view(np.uint8), T.BF16))
write("plain.gguf", plain, metadata)

# A code of these types is an index into a grid of points; the points are part of the format. Here each coordinate is an
# index into the type's few values, two bits for three values, four for eight, low bits first.
grids = b""
for name in ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]:
    q = getattr(quants, name)
    q.init_grid()
    values = np.array(q.grid_map, dtype=np.float32)
    codes = np.argmin(np.abs(q.grid.reshape(-1, 1) - values), axis=1).astype(np.uint8)
    assert np.array_equal(values[codes], q.grid.reshape(-1))
    bits = 2 if len(values) == 3 else 4
    codes = codes.reshape(-1, 8 // bits)
    grids += sum(codes[:, i].astype(np.uint8) << (bits * i) for i in range(8 // bits)).astype(np.uint8).tobytes()
with open(os.path.join("..", "gguf_grids.bin"), "wb") as f:
    f.write(grids)
