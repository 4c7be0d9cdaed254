"""Makes blocks.bin with the gguf package, whose values are llama.cpp's.

    pip install numpy==2.4.6 gguf==0.19.0 && python make_blocks.py

For each type, in the order of SCALES, there are six blocks of random bytes and then their elements, as float32 with all
NaNs alike. The float16 factors, at the places that SCALES names, are an ordinary number, the least one, the largest
below the normal ones, the largest number, inf with -0, and NaN.
"""
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
HALVES = [[0x2A66, 0xB155], [0x0001, 0x8001], [0x83FF, 0x03FF], [0x7BFF, 0xFBFF], [0xFC00, 0x8000], [0x3C00, 0x7E00]]

rng = np.random.default_rng(23)
with open("blocks.bin", "wb") as f:
    for name, places in SCALES.items():
        kind = GGMLQuantizationType[name]
        b = rng.integers(0, 256, (len(HALVES), GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
        for i, halves in enumerate(HALVES):
            for at, half in zip(places, halves):
                b[i, at : at + 2] = [half & 255, half >> 8]
        with np.errstate(all="ignore"):
            v = quants.dequantize(b, kind).astype("<f4")
        v[np.isnan(v)] = np.nan
        f.write(b.tobytes() + v.tobytes())
