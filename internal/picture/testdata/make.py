"""Writes small pictures with Pillow, and what Pillow reads of them: python make.py

Each line of want.txt is a file, the channels asked for, height, width, and the samples in hexadecimal digits. Each line
of resized.txt is the same of the file's picture resized to that height and width, bilinear.
"""
import numpy as np
from PIL import Image

rng = np.random.default_rng(0)
h, w = 5, 7
noise = lambda *shape: rng.integers(0, 256, shape, dtype=np.uint8)
y, x = np.mgrid[0:16, 0:24]
smooth = np.stack([8 * x, 12 * y, 255 - 6 * x], -1).astype(np.uint8)

Image.fromarray(noise(h, w)).save("grey.png")
Image.fromarray(noise(h, w, 3)).save("rgb.png")
Image.fromarray(noise(h, w, 4)).save("rgba.png")
Image.fromarray(noise(h, w, 2), "LA").save("grey_alpha.png")
Image.fromarray(noise(h, w) > 127).save("bits.png")
Image.fromarray(rng.integers(0, 65536, (h, w)).astype(np.uint16)).save("grey16.png")
p = Image.fromarray(noise(h, w) % 16, "P")
p.putpalette(noise(48).tobytes())
p.save("palette.png")
p.save("transparent.png", transparency=3)
Image.fromarray(smooth).save("rgb.jpg", quality=95, subsampling=0)
Image.fromarray(smooth[..., 0]).save("grey.jpg", quality=95)
Image.fromarray(smooth).save("progressive.jpg", quality=95, subsampling=2, progressive=True)

with open("want.txt", "w") as out:
    for name, own in [("grey.png", 1), ("rgb.png", 3), ("rgba.png", 4), ("grey_alpha.png", 4), ("bits.png", 1),
                      ("grey16.png", 1), ("palette.png", 3), ("transparent.png", 4), ("rgb.jpg", 3), ("grey.jpg", 1),
                      ("progressive.jpg", 3)]:
        m = Image.open(name)
        if name == "grey16.png":
            m = Image.fromarray((np.asarray(m) >> 8).astype(np.uint8))
        for channels in (0, 1, 3, 4):
            c = channels or own
            rgba = m.convert("RGBA")
            a = np.asarray(rgba)[..., :c]
            if c == 1:
                a = np.asarray(Image.fromarray(np.asarray(rgba)[..., :3]).convert("L"))
            out.write(f"{name} {channels} {m.height} {m.width} {np.ascontiguousarray(a).tobytes().hex()}\n")

with open("resized.txt", "w") as out:
    for name, own in [("grey.png", 1), ("rgb.png", 3), ("rgba.png", 4), ("rgb.jpg", 3)]:
        for height, width in [(5, 7), (3, 3), (11, 4), (2, 20), (1, 1)]:
            m = Image.open(name).resize((width, height), Image.Resampling.BILINEAR)
            out.write(f"{name} {own} {height} {width} {np.asarray(m).tobytes().hex()}\n")
