-- Each result is an array of its own, also where an operation has nothing to do: freeing the input leaves the output.
local function text(x) return show(x:tolist("string")) end

-- arguments that make functions give back what they were given, and others that they accept
local function candidates(x)
  return {
    {x}, {x, x.dtype}, {x, x.shape}, {x, x}, {x, 0}, {x, 0, 0}, {x, {}}, {x, {0, 1}}, {x, 1}, {x, -1, 1}, {{x}}, {{x}, 0},
    {x, {1, 1}}, {x, 0, 1}, {x, false, false}, {x, nil, nil, x.dtype}, {{x, x}}, {x, {{0, 0}, {0, 0}}}, {x, ":, :"},
    {x, 0, {2, 2}}, {x, {2, 2}, {2, 1}}, {x, x, x}, {x, x, x, 1, 0},
  }
end
local skip = {free = true, keep = true, scope = true, -- they give arguments, which are no results
  set_memory_limit = true, set_cache_limit = true, set_default_device = true, set_default_stream = true}

local calls, functions = 0, 0
local function arrays(v, out)
  if mx.type(v) == "array" then out[#out + 1] = v
  elseif type(v) == "table" then for _, e in pairs(v) do arrays(e, out) end end
  return out
end
local function try(name, f, dtype)
  for i = 1, #candidates(mx.array(0)) do
    local x = mx.array({{1, 0}, {0, 1}}):astype(dtype)
    mx.eval(x)
    local results = {pcall(f, unpack(candidates(x)[i], 1, 5))}
    if table.remove(results, 1) then
      local outs = arrays(results, {})
      local before = {}
      local ok = pcall(function() for k, y in ipairs(outs) do before[k] = text(y) end end)
      if ok and #outs > 0 then
        calls = calls + 1
        x:free()
        for k, y in ipairs(outs) do
          local ok, after = pcall(text, y)
          if not ok or after ~= before[k] then
            error(name .. ", arguments " .. i .. ", output " .. k .. ": " .. tostring(after))
          end
        end
        for k, y in ipairs(outs) do y:free() end
      end
    end
  end
  functions = functions + 1
end
for _, module in ipairs{mx, mx.fast, mx.linalg} do
  for name, f in pairs(module) do
    if type(f) == "function" and not skip[name] then
      for _, d in ipairs{mx.float32, mx.int32, mx.bool} do try(name, f, d) end
    end
  end
end
assert(functions >= 400 and calls >= 800, functions .. " functions, " .. calls .. " calls")

-- transforms of the identity
local function id(x) return x end
for name, f in pairs{compile = mx.compile(id), shapeless = mx.compile(id, {shapeless = true}), vmap = mx.vmap(id),
    checkpoint = mx.checkpoint(id), custom = mx.custom_function(id), vjp = function(x) return mx.vjp(id, {x}, {x})[1] end,
    jvp = function(x) local _, t = mx.jvp(id, {x}, {x}) return t[1] end,
    index = function(x) return x["..."] end, T = function(x) return x.T.T end,
    scope = function(x) local y = mx.scope(function() local y = x:astype(mx.float32) return x:reshape({2}) end) return y end} do
  local x = mx.array({1, 2})
  local y = f(x)
  x:free()
  same(y, {1, 2})
  fails("was freed", function() return x + 1 end)
  y:free()
  fails("was freed", function() return y + 1 end)
end
do -- what a scope made of an array from before goes with the scope
  local x = mx.arange(1024 * 1024)
  mx.eval(x)
  mx.scope(function() local y = x:astype(x.dtype) end)
  local before = mx.get_active_memory()
  x:free()
  assert(before - mx.get_active_memory() >= 4 * 1024 * 1024)
end
do -- either order, and large arrays, whose handles are watched
  for order = 1, 2 do
    local x = mx.array({{2}}) * mx.ones({1024, 1024})
    local y, z = x:astype(mx.float32), x:reshape({1024, 1024})
    if order == 1 then x:free() y:free() else y:free() x:free() end
    collectgarbage()
    assert(z:sum():item() == 2 * 1024 * 1024)
  end
end
