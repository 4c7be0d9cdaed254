"""Writes table.csv with Python's csv module, and what Python reads of it to table.json: python make_csv.py

Also MNIST-like IDX files by the format's description: digits.idx and digits.idx.gz.
"""
import csv
import gzip
import json
import struct

import numpy as np

rows = [
    ["name", "size, in m", "count", "big", "ok", "note", "ratio"],
    ["Ä \"quoted\"", 1.5, 3, 2**40, True, "two\nlines", "0.1"],
    ["plain", -2.25e-3, -7, -1, False, "", "NA"],
    ["a,b", 1e300, 0, 5, True, "x;y", "inf"],
    [" spaces ", 3, 2147483647, 0, False, "''", ""],
]
with open("table.csv", "w", newline="", encoding="utf-8-sig") as f:
    csv.writer(f).writerows(rows)

with open("table.csv", newline="", encoding="utf-8-sig") as f:
    read = list(csv.reader(f))
names, columns = read[0], list(zip(*read[1:]))
numbers = {
    "size, in m": np.array([float(v) for v in columns[1]]).astype(np.float32),
    "count": np.array([int(v) for v in columns[2]], np.int32),
    "big": np.array([int(v) for v in columns[3]], np.int64),
    "ok": np.array([v == "True" for v in columns[4]]),
    "ratio": np.array([float(v) if v not in ("", "NA") else np.nan for v in columns[6]]).astype(np.float32),
}
json.dump({
    "names": names,
    "texts": {"name": columns[0], "note": columns[5]},
    "numbers": {k: [str(v.dtype), v.tobytes().hex()] for k, v in numbers.items()},
}, open("table.json", "w"), indent=1)

digits = np.random.default_rng(0).integers(-3000, 3000, (2, 3, 4)).astype(">i2")
data = bytes([0, 0, 0x0B, 3]) + struct.pack(">3I", *digits.shape) + digits.tobytes()
open("digits.idx", "wb").write(data)
open("digits.idx.gz", "wb").write(gzip.compress(data, mtime=0))
np.save("digits.npy", digits.astype("<i2"))
