-- MLX's test_tree.py.
local t = {}

-- alike wants two trees of numbers, strings and arrays to be one.
local function alike(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    if mx.type(a) == "array" then return equal(a, b) end
    assert(a == b, tostring(a) .. " is not " .. tostring(b))
    return
  end
  for k, v in pairs(a) do alike(v, b[k]) end
  for k in pairs(b) do assert(a[k] ~= nil, tostring(k)) end
end

function t.test_tree_map()
  alike(utils.tree_map(function(x) return x + 1 end, {a = 0, b = 1, c = 2}), {a = 1, b = 2, c = 3})
end

function t.test_tree_flatten()
  local tree = {{a = 1, b = 2}, "c"}
  local flat = utils.tree_flatten(tree)
  alike({flat[1][2], flat[2][2], flat[3][2]}, {1, 2, "c"})
  alike(utils.tree_unflatten(flat), tree)
end

function t.test_merge()
  local both = utils.tree_merge({a = 0}, {b = 1})
  alike(both, {a = 0, b = 1})
  fails("both trees have something at a", utils.tree_merge, {a = 0}, {a = 0})
  fails("both trees have something at a", utils.tree_merge, both, {a = 0})

  local one, two = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
  local merged = utils.tree_merge({layers = {one:parameters()}}, {layers = {{}, two:parameters()}}) -- {}: Python's None
  alike(merged, nn.Sequential(one, two):parameters())
end

function t.test_empty_subtree_merge()
  assert(#utils.tree_flatten({a = {}}) == 0)
  alike(utils.tree_merge({}, {}), {})
  alike(utils.tree_merge({{a = 1}, {}}, {{b = 2}, {}}), {{a = 1, b = 2}, {}})
  alike(utils.tree_merge({a = 1, b = {}, c = {}}, {a = {}, b = {}, c = 2}), {a = 1, b = {}, c = 2})
  alike(utils.tree_merge({a = {}}, {a = {}}, function() error("called for empty trees") end), {a = {}})
  -- Lua has one kind of table: an empty list, tuple and dict are one.
end

function t.test_supported_trees()
  -- A table with a class is a tree as any other. What a map makes is a plain table, as NamedTuple's fields go by names.
  local Params = {}
  local function add_one(x) return x + 1 end
  for _, tree in ipairs({{mx.array({0, 1}), mx.array(2)}, {m = mx.array({0, 1}), b = mx.array(2)},
    setmetatable({m = mx.array({0, 1}), b = mx.array(2)}, Params)}) do
    local m, b = tree.m and "m" or 1, tree.m and "b" or 2
    local names = tree.m and "b m" or "0 1"
    local mapped = utils.tree_map(add_one, tree)
    alike(mapped, {[m] = mx.array({1, 2}), [b] = mx.array(3)})
    local seen = {}
    alike(utils.tree_map_with_path(function(path, x)
      seen[#seen + 1] = path
      return x + 1
    end, tree), mapped)
    assert(table.concat(seen, " ") == names)
    seen = {}
    alike(utils.tree_map_with_path(function(path, x, y)
      seen[#seen + 1] = path
      return x + y
    end, tree, mapped), {[m] = mx.array({1, 3}), [b] = mx.array(5)})
    assert(table.concat(seen, " ") == names)
    alike(utils.tree_merge(tree, tree, function(x, y) return x + y end), {[m] = mx.array({0, 2}), [b] = mx.array(4)})
  end
end

function t.test_tree_unflatten_integer_key_collision()
  alike(utils.tree_unflatten({{"01", "a"}, {"1", "b"}, {"2", "c"}}), {["01"] = "a", ["1"] = "b", ["2"] = "c"})
  alike(utils.tree_unflatten({{"0", "a"}, {"1", "b"}, {"2", "c"}}), {"a", "b", "c"})
end

return t
