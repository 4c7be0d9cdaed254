-- mx.utils: functions over trees, which are nested tables of arrays and other leaves.
local _, define, fail, _, core = ...
local trees = core.trees

local rank = {number = 1, boolean = 2, string = 3}

local function order(a, b)
  local x, y = type(a), type(b)
  if x ~= y then return (rank[x] or 4) < (rank[y] or 4) end
  if x == "boolean" then return not a and b end
  return rank[x] ~= nil and a < b
end

-- keys are a table's keys in the order of trees: 1..n, then the others.
local function keys(t)
  local out, n, list, names = {}, 0, true, true
  for k in pairs(t) do
    n = n + 1
    out[n] = k
    list = list and k == n
    names = names and type(k) == "string"
  end
  if list then return out end
  if names then table.sort(out) else table.sort(out, order) end
  return out
end

-- step is the part of a path that a key is: elements count from 0, as in MLX's names.
local function step(k)
  if type(k) == "number" then return ("%d"):format(k - 1) end
  return tostring(k)
end

-- below is the path of an entry.
local function below(path, k)
  if path == nil or path == "" then return step(k) end
  return path .. "." .. step(k)
end

-- options takes the keywords of a function that takes any number of trees off its arguments: a last table in which
-- there is nothing but a function is_leaf and a string path.
local function options(rest)
  local last = rest[#rest]
  if type(last) ~= "table" or next(last) == nil then return {} end
  for k, v in pairs(last) do
    if not (k == "is_leaf" and type(v) == "function" or k == "path" and type(v) == "string") then return {} end
  end
  rest[#rest] = nil
  return last
end

define{
  name = "tree_map", sig = "fn:function tree:tree rest:tree...",
  help = "The tree with fn(leaf, ...) in the place of each leaf. The trees in rest have what the tree has, and " ..
    "more; fn is given their values too. A last table {is_leaf = f} says what else is a leaf: f is asked of each " ..
    "table.",
  call = function(fn, tree, ...)
    local rest = {...}
    local is_leaf = options(rest).is_leaf
    return trees.map("tree_map", fn, is_leaf or false, false, tree, unpack(rest))
  end,
}

define{
  name = "tree_map_with_path", sig = "fn:function tree:tree rest:tree...",
  help = "As tree_map, but fn is given the leaf's path first: \"layers.0.weight\", where elements count from 0. A " ..
    "last table {is_leaf = f, path = \"prefix\"} says what else is a leaf, and what the paths begin with.",
  call = function(fn, tree, ...)
    local rest = {...}
    local o = options(rest)
    return trees.map("tree_map_with_path", fn, o.is_leaf or false, o.path, tree, unpack(rest))
  end,
}

-- visit calls f with the path and the value of each leaf.
local function visit(f, tree, path, is_leaf)
  if type(tree) ~= "table" or is_leaf and is_leaf(tree) then
    f(path, tree)
    return
  end
  for _, k in ipairs(keys(tree)) do visit(f, tree[k], path .. "." .. step(k), is_leaf) end
end

define{
  name = "tree_flatten", sig = "tree:tree prefix:string? is_leaf:function? destination:table?",
  help = "The leaves as a list of pairs {path, leaf}: {\"layers.0.weight\", w}, where elements count from 0. The " ..
    "prefix stands before each path; its first character is left out, as in MLX. The destination is a table to " ..
    "enter the leaves in, under their paths, or a list to append the pairs to: {} is the former.",
  call = function(tree, prefix, is_leaf, destination)
    local out = destination or {}
    local pairwise = destination == nil or #destination > 0
    visit(function(path, leaf)
      path = path:sub(2)
      if pairwise then out[#out + 1] = {path, leaf} else out[path] = leaf end
    end, tree, prefix or "", is_leaf)
    return out
  end,
}

-- unflatten is tree_unflatten of a list of pairs.
local function unflatten(items)
  if #items == 1 and items[1][1] == "" then return items[1][2] end
  local children, names = {}, {}
  for _, item in ipairs(items) do
    local first, rest = item[1]:match("^([^.]*)%.(.*)$")
    first, rest = first or item[1], rest or ""
    if not children[first] then
      children[first] = {}
      names[#names + 1] = first
    end
    table.insert(children[first], {rest, item[2]})
  end
  local list, seen = #names > 0, {}
  for _, name in ipairs(names) do
    local n = name:match("^%d+$") and tonumber(name)
    list = list and n ~= nil and seen[n] == nil
    if n then seen[n] = name end
  end
  local out = {}
  if not list then
    for _, name in ipairs(names) do out[name] = unflatten(children[name]) end
    return out
  end
  local numbers = {}
  for n in pairs(seen) do numbers[#numbers + 1] = n end
  table.sort(numbers)
  for _, n in ipairs(numbers) do
    if n - #out > 1e6 then fail("tree_unflatten", ("element %d comes behind element %d"):format(n, #out - 1)) end
    while #out < n do out[#out + 1] = {} end
    out[#out + 1] = unflatten(children[seen[n]])
  end
  return out
end

define{
  name = "tree_unflatten", sig = "tree:table",
  help = "The tree of a list of pairs {path, leaf}, as tree_flatten makes it, or of a table of leaves under their " ..
    "paths, as load makes it. A table whose keys are all numbers is a list.",
  call = function(tree)
    local items = {}
    if #tree > 0 then
      for i, item in ipairs(tree) do
        if type(item) ~= "table" or type(item[1]) ~= "string" or item[2] == nil then
          fail("tree_unflatten", ("tree[%d] is no pair of a path and a leaf"):format(i))
        end
        items[i] = item
      end
    else
      for _, path in ipairs(keys(tree)) do
        if type(path) ~= "string" then fail("tree_unflatten", ("the key %s is no path"):format(tostring(path))) end
        items[#items + 1] = {path, tree[path]}
      end
    end
    return unflatten(items)
  end,
}

define{
  name = "tree_reduce", sig = "fn:function tree:tree initializer:list? is_leaf:function?",
  help = "fn(fn(initializer, first leaf), second leaf) and so on; without initializer it begins with the first leaf.",
  call = function(fn, tree, initializer, is_leaf)
    local result = initializer
    visit(function(_, leaf)
      if result == nil then result = leaf else result = fn(result, leaf) end
    end, tree, "", is_leaf)
    return result
  end,
}

-- merge is tree_merge below a path.
local function merge(a, b, fn, path)
  local tables = type(a) == "table" and type(b) == "table"
  if a == nil or type(a) == "table" and next(a) == nil and b ~= nil then
    if type(b) == "table" and next(b) == nil then return {} end
    return b
  elseif b == nil or type(b) == "table" and next(b) == nil then
    return a
  elseif tables and (#a > 0) == (#b > 0) then
    local out = {}
    for _, k in ipairs(keys(a)) do out[k] = merge(a[k], b[k], fn, below(path, k)) end
    for _, k in ipairs(keys(b)) do
      if a[k] == nil then out[k] = b[k] end
    end
    return out
  elseif fn == nil then
    fail("tree_merge", ("both trees have something at %s, and there is no merge_fn"):format(path or "their root"))
  end
  return fn(a, b)
end

define{
  name = "tree_merge", sig = "tree_a:tree tree_b:tree merge_fn:function?",
  help = "The tree with what both trees have. Where both have a leaf, merge_fn(a, b) makes one of them; an empty " ..
    "table gives way to what the other tree has.",
  call = function(a, b, fn) return merge(a, b, fn, nil) end,
}
