"""Golden data for Fourier transforms: python golden/fourier.py, in tensor/optest."""

from golden import ALL, In, call, write

TOL = [2e-6, 1e-5]
NORMS = ("backward", "ortho", "forward")


def fourier(name, *args, **kwargs):
    call("fft." + name, *args, tol=TOL, **kwargs)


for name in ("fft", "ifft", "rfft", "irfft"):
    fourier(name, In((3, 6)), dtypes=ALL)
    fourier(name, In((2, 5, 3)), 4, 1, "ortho")
    fourier(name, In((2, 5, 3)), n=7, axis=-2, norm="forward", dtypes=["float32", "complex64"])
    for norm in NORMS:
        fourier(name, In((2, 5), dtype="complex64"), norm=norm)
    for n in (1, 2, 8, 17, 37):
        fourier(name, In((1, 11), dtype="complex64"), n)
    fourier(name, In((0, 3)))
    fourier(name, In((2, 1)))
    for shape in ((), (3, 0)):
        fourier(name, In(shape))
    fourier(name, In((2, 3)), 0)
    fourier(name, In((2, 3)), -1)
    fourier(name, In((2, 3)), None, 2)
    fourier(name, In((2, 3)), norm="none")
for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    fourier(name, In((2, 4, 5)), dtypes=["float32", "complex64", "int32", "bool"])
    fourier(name, In((2, 3, 4)), (3, 5), (2, 0), "ortho", dtypes=["float32", "complex64"])
    fourier(name, In((3, 4)), s=[2, 5], axes=[0, 1])
    fourier(name, In((3, 4)), axes=[-1, 0], norm="forward")
    fourier(name, In((3, 4)), axes=[1])
    fourier(name, In((3, 4)), axes=[])
    fourier(name, In((3, 4)), [5])
    fourier(name, In((3, 4)), [2, 3])
    fourier(name, In((3, 4)), axes=[0, -2])
    fourier(name, In((3, 4)), axes=[0, 2])
    fourier(name, In((3, 4)), [0, 2], [0, 1])
    fourier(name, In(()))
    fourier(name, In((0, 4, 3)), None, [1, 2])
for n, d in ((1, 1.0), (4, 0.5), (5, 0.25), (8, -0.5), (9, 3.0), (0, 1.0), (-1, 1.0), (4, 0.0)):
    call("fft.fftfreq", n, d)
    call("fft.rfftfreq", n, d)
call("fft.fftfreq", 7)
call("fft.rfftfreq", 7)
for name in ("fft.fftshift", "fft.ifftshift"):
    call(name, In((3, 4)), dtypes=ALL)
    call(name, In(()))
    call(name, In((0,)))
    for axes in (0, -1, [1], [0, 1], [0, 0], [], 2, [-3]):
        call(name, In((3, 5)), axes)

x = In((2, 20))
fourier("stft", x, 8, dtypes=ALL)
fourier("stft", In((9,)))
fourier("stft", In((9,), dtype="complex64"), 6, 2)
for args in ((6, 2), (7, 3, 5), (8, 3, 6, In((5,))), (8, 3, None, In((8,), dtype="float16"), False)):
    fourier("stft", x, *args)
for mode in ("reflect", "constant", "edge", "symmetric", "wrap"):
    fourier("stft", In((7,)), 6, 2, None, None, True, mode)
    fourier("stft", In((2,)), 9, 3, pad_mode=mode)
for onesided in (True, False):
    fourier("stft", x, 5, 2, None, None, True, "reflect", "ortho", onesided, dtypes=["float32", "complex64"])
fourier("stft", x, n_fft=20, center=False)
fourier("stft", x, 8, norm="forward", win_length=0)
fourier("stft", In((0, 10)), 4)
for options in ({"n_fft": 0}, {"n_fft": 3}, {"hop_length": 0}, {"win_length": 9}, {"win_length": -1}, {"norm": "none"},
                {"window": In((9,))}, {"window": In((2, 4))}, {"n_fft": 21, "center": False}):
    fourier("stft", x, **{"n_fft": 8, **options})
fourier("stft", In(()), 4)
fourier("stft", In((2, 0)), 4)

SPECTRUM = In((2, 5, 6), dtype="complex64")
for args in ((), (8,), (9,), (7, 2), (8, 3, 6), (8, 2, None, In((5,), ("uniform", 1, 2))),
             (8, 2, 8, In((6,), ("uniform", 1, 2)), False), (8, 9), (6, 2)):
    fourier("istft", SPECTRUM, *args)
fourier("istft", SPECTRUM, 8, 3, None, None, True, "ortho", True, 12)
for length in (3, 30, 0):
    fourier("istft", SPECTRUM, 8, 3, length=length)
    fourier("istft", SPECTRUM, 8, 3, center=False, length=length)
for n in (None, 5, 4):
    fourier("istft", SPECTRUM, n, onesided=False, hop_length=2)
fourier("istft", In((5, 4)), 8, norm="forward", dtypes=["float32", "complex64", "int32"])
fourier("istft", In((0, 5, 3)), 8)
fourier("istft", In((5, 1)), 8)
for options in ({"n_fft": 0}, {"n_fft": 2}, {"hop_length": 0}, {"win_length": 9}, {"norm": "none"},
                {"window": In((9,))}, {"window": In((2, 4))}):
    fourier("istft", SPECTRUM, **{"n_fft": 8, **options})
for shape in ((5,), (5, 0), (1, 4)):
    fourier("istft", In(shape))
write("fourier")
