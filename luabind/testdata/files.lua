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

-- Several arrays in a file. The files are those of make_archives.py.
for _, name in ipairs({ "stored.npz", "compressed.npz" }) do
  local t = mx.load(dir .. name)
  same(t.matrix, { { 0, 1, 2 }, { 3, 4, 5 } })
  same(t.fortran.T, { { 1, 4 }, { 2, 5 }, { 3, 6 } })
  dtype(t.big, tostring(mx.int32))
end
local t, about = mx.load(dir .. "every.safetensors", { return_metadata = true })
assert(about.who == "Grüße" and about.format == "np")
same(t.int64 + t.uint8:astype(mx.int64), { { 12, 14, 16 }, { 18, 20, 22 } })
dtype(t.float8_e4m3fn, tostring(mx.uint8))
-- the elements of b begin at an odd byte of the file
same(mx.sum(mx.load(dir .. "mlx.safetensors").b * 2), 1560)
local f = mx.compile(function(x) return mx.sum(x * t.float32) end)
same(f(mx.array(2)), 78)

mx.savez(file, x, t.int8.T, { w = t.bool, v = 2 })
local z = mx.load(file .. ".npz")
same(z.arr_0, x:tolist())
same(z.arr_1, t.int8.T:tolist())
same(z.w, t.bool:tolist())
same(z.v, 2)
os.remove(file .. ".npz")
mx.savez_compressed(file .. ".npz", { a = mx.zeros({ 100, 100 }) })
assert(#io.open(file .. ".npz", "rb"):read("*a") < 1000)
same(mx.load(file .. ".npz").a, mx.zeros({ 100, 100 }):tolist())
os.remove(file .. ".npz")
mx.save_safetensors(file, { a = x.T, b = mx.zeros({ 0, 2 }) }, { format = "mlx" })
z, about = mx.load(file .. ".safetensors", { return_metadata = true })
assert(about.format == "mlx")
same(z.a, x.T:tolist())
assert(z.b.shape == mx.zeros({ 0, 2 }).shape)
-- a file may be replaced by arrays that lie in it
mx.save_safetensors(file, { a = z.a + 1 })
same(z.a, x.T:tolist())
same(mx.load(file .. ".safetensors").a, (x.T + 1):tolist())
os.remove(file .. ".safetensors")
-- .gguf, with the files of make_gguf.py
t, about = mx.load(dir .. "plain.gguf", { return_metadata = true })
same(t.I64, { { 5, 6, 7 }, { 8, 9, 10 } })
assert(about["a.string"] == "Grüße" and #about["a.strings"] == 3 and about["a.strings"][1] == "x")
same(about["a.ints"], { 1, 2, -3 })
dtype(about["a.int8"], tostring(mx.int8))
t = mx.load(dir .. "triples.gguf")
for _, name in ipairs({ "Q4_0", "Q4_1", "Q8_0" }) do
  local at = "layer." .. name
  local w = mx.dequantize(t[at .. ".weight"], t[at .. ".scales"], t[at .. ".biases"], 32, name == "Q8_0" and 8 or 4)
  assert(w.shape == mx.zeros({ 3, 128 }).shape)
end
local blocks, modes = mx.load(dir .. "blocks.gguf", { blocks = true })
local found, want = 0, mx.load(dir .. "blocks.npz")
for name, mode in pairs(modes) do
  found = found + 1
  local elements, size, bits = mx.block_size(mode)
  local v = want[name:gsub("%.weight$", "")]
  assert(blocks[name].dtype == mx.uint8 and blocks[name]:dim(1) / size * elements == v:dim(1) and bits <= 8)
  assert(mx.array_equal(mx.dequantize(blocks[name], { mode = mode }), v):item(), mode)
end
assert(found == 10 and mx.block_size("affine") == nil and blocks["MXFP4.scales"])
do
  local some = { x = blocks["Q4_K.weight"], y = blocks["Q5_0.weight"] }
  mx.save_gguf(file, some, nil, { x = "q4_k", y = "q5_0" })
  local again, about, of = mx.load(file .. ".gguf", { blocks = true, return_metadata = true })
  assert(next(about) == nil and of.x == "q4_k" and of.y == "q5_0")
  for k, v in pairs(some) do assert(mx.array_equal(again[k], v):item()) end
  assert(mx.array_equal(mx.load(file .. ".gguf").x, mx.load(dir .. "blocks.gguf")["Q4_K.weight"]):item())
  for text, how in pairs({ ['tensor "x": it is uint8 (2, 144), want uint8 with a last dimension of whole blocks of 210'] =
    { x = "q6_k" }, ['tensor "x": "mxfp4" is no mode of blocks'] = { x = "mxfp4" },
    ['there is no tensor "z", which is to be blocks of mode "q4_k"'] = { z = "q4_k" },
    ['blocks["x"] is the number 4, want a string'] = { x = 4 } }) do
    fails(text, mx.save_gguf, file, { x = some.x }, nil, how)
  end
  os.remove(file .. ".gguf")
end
fails('files of format "npy" have no blocks', mx.load, dir .. "int16.npy", { blocks = true })
mx.save_gguf(file, { a = x.T:astype(mx.float16) }, { n = mx.array(2, mx.uint32), s = "text", l = { "a", "b" } })
z, about = mx.load(file .. ".gguf", { return_metadata = true })
same(z.a, x.T:tolist())
same(about.n, 2)
assert(about.s == "text" and table.concat(about.l) == "ab")
mx.save_gguf(file .. ".gguf", { a = x }, {})
same(mx.load(file .. ".gguf").a, x:tolist())
os.remove(file .. ".gguf")
fails('[save_gguf] metadata["n"] is the number 1, want an array, a string or a table of strings', mx.save_gguf, file,
  { a = x }, { n = 1 })
fails('[save_gguf] ' .. file .. '.gguf: tensor "a": the format has no type for bool', mx.save_gguf, file, { a = mx.array(true) })
fails("[savez] args[2] is to be named arr_1, and so is another array", mx.savez, file, x, x, { arr_1 = x })
fails('[save_safetensors] metadata["testing"] is the number 0, want a string', mx.save_safetensors, file, { a = x }, { testing = 0 })
fails('[save_safetensors] arrays["a"] is a table, want an array: mx.utils.tree_flatten', mx.save_safetensors, file, { a = { x } })
fails("[save_safetensors] arrays has the key the number 1, want strings", mx.save_safetensors, file, { x })
fails('[load] files of format "npz" have no metadata', mx.load, dir .. "stored.npz", { return_metadata = true })
fails("no .npz file", mx.load, dir .. "int16.npy", "npz")
fails("no .safetensors file", mx.load, dir .. "int16.npy", "safetensors")

fails("[load] cannot open absent.npy: no such file", mx.load, "absent.npy")
fails("[load] " .. dir .. "make.py: not a .npy file", mx.load, dir .. "make.py", "npy")
fails('format of "weights.bin" is "bin", want "npy", "npz", "safetensors" or "gguf"', mx.load, "weights.bin")
fails('format of "weights" is "", want "npy", "npz", "safetensors" or "gguf"', mx.load, "weights")
fails('dtype "<c16" has no counterpart here', mx.load, dir .. "double_complex.npy")
fails("load", mx.load)
-- what would pass the memory limit is refused before it is read
local limit = mx.set_memory_limit(8)
local ok, message = pcall(mx.load, dir .. "int16.npy")
mx.set_memory_limit(limit)
assert(not ok and tostring(message):find("int16.npy: int16 (2, 3) takes 12 bytes, more than the memory limit of 8", 1, true))
