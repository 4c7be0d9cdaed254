-- mx.load. The files are NumPy's (tensor/format/testdata/make.py).
local mx = require("mx")
local dir = "../tensor/format/testdata/"

local x = mx.load(dir .. "int16.npy")
dtype(x, tostring(mx.int16))
same(x, { { 0, 1, 2 }, { 3, 4, -5 } })
same(mx.load(dir .. "int16_fortran.npy"), { { 0, 1, 2 }, { 3, 4, -5 } })
same(mx.load(dir .. "float64_big.npy", "npy"), { { 0, 1, 2 }, { 3, 4, -5 } })
same(mx.load(dir .. "float32.npy", { format = "npy", stream = mx.cpu }), { { 0, 1, 2 }, { 3, 4, -5 } })
same(mx.load(dir .. "bfloat16.npy"), { 1, -5 })
same(mx.load(dir .. "scalar.npy") * 2, 14)
assert(#mx.load(dir .. "empty.npy").shape == 2)

local file = os.tmpname()
mx.save(file, mx.arange(6):reshape({2, 3}).T)
same(mx.load(file .. ".npy"), {{0, 3}, {1, 4}, {2, 5}})
os.remove(file)
os.remove(file .. ".npy")
fails("[save] cannot create absent/a.npy: no such file", mx.save, "absent/a.npy", x)

fails("[load] cannot open absent.npy: no such file", mx.load, "absent.npy")
fails("[load] " .. dir .. "make.py: not a .npy file", mx.load, dir .. "make.py", "npy")
fails('format of "weights.bin" is "bin", want "npy"', mx.load, "weights.bin")
fails('format of "weights" is "", want "npy"', mx.load, "weights")
fails('dtype "<c16" has no counterpart here', mx.load, dir .. "double_complex.npy")
fails("load", mx.load)
-- what would pass the memory limit is refused before it is read
local limit = mx.set_memory_limit(8)
local ok, message = pcall(mx.load, dir .. "int16.npy")
mx.set_memory_limit(limit)
assert(not ok and tostring(message):find("int16.npy: int16 (2, 3) takes 12 bytes, more than the memory limit of 8", 1, true))
