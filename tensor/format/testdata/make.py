"""Writes the .npy files of npy_test.go: python3 make.py (NumPy 1.20 or newer), in this folder."""
import numpy as np

VALUES = [0, 1, 2, 3, 4, 5]
TYPES = {"bool": "?", "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8", "int8": "i1", "int16": "i2",
         "int32": "i4", "int64": "i8", "float16": "f2", "float32": "f4", "float64": "f8", "complex64": "c8"}
for name, t in TYPES.items():
    a = np.array(VALUES).reshape(2, 3).astype("<" + t)
    if t[0] in "if":
        a[1, 2] = -5
    if t[0] == "c":
        a[1, 2] = 5 - 0.5j
    np.save(name + ".npy", a)
    if t not in ("?", "u1", "i1"):
        np.save(name + "_big.npy", a.astype(">" + t))
    if name in ("int16", "complex64"):
        np.save(name + "_fortran.npy", np.asfortranarray(a))
np.save("fortran3d.npy", np.asfortranarray(np.arange(24, dtype=np.int32).reshape(2, 3, 4)))
np.save("scalar.npy", np.array(7, dtype=np.int32))
np.save("empty.npy", np.zeros((0, 3), dtype=np.float32))
np.save("double_complex.npy", np.zeros(1, dtype=np.complex128))
np.save("record.npy", np.zeros(1, dtype=[("a", "<f4"), ("b", "<i4")]))
for version in [(2, 0), (3, 0)]:
    with open("version%d.npy" % version[0], "wb") as f:
        np.lib.format.write_array(f, np.arange(3, dtype=np.int32), version=version)
np.save("bfloat16.npy", np.array([0x3F80, 0xC0A0], dtype="<u2").view("V2"))
