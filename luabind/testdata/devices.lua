-- Streams, devices, memory, evaluation, random numbers with keys.
local d = mx.default_device()
assert(tostring(d) == "Device(cpu, 0)" and d == mx.cpu and mx.type(d) == "device")
local s = mx.new_stream(mx.cpu)
assert(mx.type(s) == "stream" and s.device == mx.cpu)
same(mx.add(mx.ones({2}), 1, {stream = s}), {2, 2})
same(mx.zeros({2}, {stream = mx.cpu}), {0, 0})
fails("want a stream or a device", mx.add, 1, 2, {stream = 3})
local before = mx.default_stream(mx.cpu)
local a, b = mx.stream(s, function() return mx.default_stream(mx.cpu), mx.ones({1}) end)
assert(a == s)
same(b, {1})
assert(mx.default_stream(mx.cpu) == before)
fails("inside", mx.stream, s, function() error("inside") end)
assert(mx.default_stream(mx.cpu) == before, "the stream is put back after an error")
fails("want a stream or a device", mx.stream, 1, print)
fails("want a function", mx.stream, s, 1)
mx.set_default_stream(s)
assert(mx.default_stream(mx.cpu) == s)
mx.set_default_device(mx.cpu)
assert(mx.default_stream(mx.cpu) == before)
fails("gpu|no device", mx.set_default_device, mx.gpu)
fails("gpu|no device", mx.default_stream, mx.gpu)
mx.synchronize()
mx.synchronize(s)
-- any number of trees
mx.eval()
local many = {}
for i = 1, 20 do many[i] = mx.full({4}, i) + 1 end
mx.eval(unpack(many))
mx.eval(many, {a = {b = many[1]}}, many[2], nil, 3)
mx.eval(many[1], {w = many[2]}) -- trees, not keywords
mx.async_eval(unpack(many))
mx.async_eval(many[1], {w = many[2], stream = many[3]})
same(many[20], {21, 21, 21, 21})
mx.eval((function() local t = {}; t[1] = t; return t end)()) -- each table is visited once
-- memory
local x = mx.zeros({256, 1024}) + 1
mx.eval(x)
assert(mx.get_active_memory() >= 1024 * 1024 and mx.get_peak_memory() >= mx.get_active_memory())
mx.reset_peak_memory()
assert(mx.get_peak_memory() >= 1024 * 1024)
local old = mx.set_memory_limit(1e15)
assert(mx.get_memory_limit() == 1e15 and mx.set_memory_limit(old) == 1e15)
-- The threads of the processor are a setting: no result depends on it.
if mx.metal.device_info().architecture == "cpu" then
  local most = mx.metal.device_info().threads
  local key, text = mx.random.key(3), {}
  for i, threads in ipairs({1, most, 1}) do
    mx.set_threads(threads)
    assert(mx.metal.device_info().threads == threads)
    local a = mx.random.normal({300, 257}, {key = key})
    text[i] = mx.view(mx.concatenate({mx.flatten(mx.matmul(a, mx.transpose(a))), mx.cumsum(mx.flatten(a))}), mx.uint32)
  end
  assert(mx.array_equal(text[1], text[2]):item() and mx.array_equal(text[1], text[3]):item())
  assert(mx.set_threads(most) == 1 and mx.set_threads(most) == most)
  for _, bad in ipairs({0, -1, most + 1}) do
    local ok, message = pcall(mx.set_threads, bad)
    assert(not ok and message:find("[set_threads] " .. bad .. " threads: it is between 1 and the " .. most, 1, true), message)
  end
  assert(not pcall(mx.set_threads, 1.5) and mx.metal.device_info().threads == most)
end
local cache = mx.set_cache_limit(0)
mx.set_cache_limit(cache)
mx.synchronize()
local cached = mx.get_cache_memory()
mx.clear_cache()
assert(mx.get_cache_memory() <= cached, tostring(mx.get_cache_memory()))
fails("limit is", mx.set_memory_limit, -1)
assert(mx.metal.is_available() == true)
local info = mx.metal.device_info()
assert(info.memory_size > 0 and #info.device_name > 0 and info.max_threads_per_threadgroup == 1024)
local libraries = mx.metal.library_cache()
assert(libraries.size > 0 and libraries.hits + libraries.misses > 0)
local validated = mx.metal.validate(true)
same(mx.exp(mx.zeros({3})) + 1, {2, 2, 2})
assert(mx.metal.validate(validated) == true)
-- random numbers: the same bits as MLX's for a key
local key = mx.random.key(0)
assert(tostring(key.dtype) == "uint32" and key.size == 2)
same(key, {0, 0})
local k = mx.random.split(key)
assert(tostring(k.shape) == "(2, 2)")
same(mx.random.uniform({shape = {3}, key = key}), {0.9653214812278748, 0.3146817088127136, 0.6330299973487854})
same(mx.random.split(key), {{4146024105, 967050713}, {2718843009, 1272950319}})
mx.random.seed(7)
local first = mx.random.uniform({shape = {4}}):tolist()
local second = mx.random.uniform({shape = {4}}):tolist()
mx.random.seed(7)
same(mx.random.uniform({shape = {4}}), first)
same(mx.random.uniform({shape = {4}}), second)
same(mx.array(first), {0.07774583250284195, 0.3301701545715332, 0.8326463103294373, 0.32164129614830017})
mx.random.seed("18446744073709551615")
fails("seed", mx.random.seed, 1.5)
fails("seed", mx.random.seed, {})
fails("unknown keyword", mx.random.uniform, {sape = {1}})
fails("negative", mx.random.uniform, {shape = {-1}})
-- what makes no graph takes no stream
for _, f in ipairs({mx.grad, mx.vmap, mx.compile}) do
  fails("unknown keyword \"stream\"", f, function(a) return a end, {stream = mx.cpu})
end
fails("unknown keyword \"stream\"", mx.fast.metal_kernel, {name = "k", input_names = {}, output_names = {"o"},
  source = "", stream = mx.cpu})
fails("unknown keyword \"stream\"; it takes no arguments", mx.get_active_memory, {stream = mx.cpu})
fails("unknown keyword \"stream\"", mx.random.seed, 1, {stream = mx.cpu})
