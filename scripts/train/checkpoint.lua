-- Checkpoints: all that a training run is, in one .safetensors file. Arrays stand there under paths, everything else as
-- metadata, in a text that begins with a letter for its type.
local mx, define, fail, _, core = ...

local mark = "mlxlua.checkpoint"

local function is_module(v) return mx.nn.Module.is_module(v) end

-- has_state reports whether v is an optimizer or a loader: an object whose field state is a tree.
local function has_state(v)
  return type(v) == "table" and getmetatable(v) ~= nil and not is_module(v) and type(v.state) == "table"
end

-- tree is what is saved of a part.
local function tree(v)
  if is_module(v) then return v:parameters() end
  if has_state(v) then return v.state end
  return v
end

-- rule is an optimizer's rule; nil for other parts.
local function rule(v)
  if has_state(v) and type(v.rule) == "string" then return v.rule end
end

-- described says what a part is.
local function described(v)
  if rule(v) then return "of the class " .. rule(v) end
  local class = getmetatable(v)
  return "a " .. (type(class) == "table" and class.__name or mx.type(v))
end

-- encode is a value that is no array as text.
local function encode(path, v)
  if type(v) == "number" then return "n" .. ("%.17g"):format(v) end
  if type(v) == "string" then return "s" .. v end
  if type(v) == "boolean" then return "b" .. tostring(v) end
  fail("save_checkpoint", ("%s is a %s, want arrays, numbers, strings and booleans"):format(path, mx.type(v)))
end

local function decode(text)
  local kind, value = text:sub(1, 1), text:sub(2)
  if kind == "n" then
    local n = tonumber(value)
    if n then return n end
    return value:find("nan") and 0 / 0 or value:sub(1, 1) == "-" and -math.huge or math.huge
  end
  if kind == "b" then return value == "true" end
  return value
end

define{
  name = "save_checkpoint", sig = "file:string parts:table",
  help = "Writes what a training run is to a .safetensors file: parts is a table of modules (their parameters), " ..
    "optimizers and loaders (their state), and trees of arrays, numbers, strings and booleans, by names of your " ..
    "own. The state of the random numbers is written too. The file is there, or replaced, when all has been " ..
    "written.",
  call = function(file, parts)
    local arrays, texts = {[mark .. ".random"] = mx.random.state[1]}, {[mark] = "1"}
    for name, part in pairs(parts) do
      if type(name) ~= "string" or name:find(".", 1, true) then
        fail("save_checkpoint", ("parts has the key %s, want names without dots"):format(tostring(name)))
      end
      texts[mark .. ".rule." .. name] = rule(part)
      for _, leaf in ipairs(mx.utils.tree_flatten(tree(part), "." .. name)) do
        local path, v = leaf[1], leaf[2]
        if core.is_array(v) then arrays[path] = v else texts[path] = encode(path, v) end
      end
    end
    mx.save_safetensors(file, arrays, texts)
  end,
}

-- rules_in takes out of a file's texts which part is the state of an optimizer of which class.
local function rules_in(texts)
  local out, start = {}, mark .. ".rule."
  for path, text in pairs(texts) do
    if path:sub(1, #start) == start then out[path:sub(#start + 1)] = text end
  end
  for name in pairs(out) do texts[start .. name] = nil end
  return out
end

-- sorted is the leaves of a checkpoint by the names of the parts: lists of pairs {path in the part, leaf}.
local function sorted(arrays, texts)
  local out = {}
  local function enter(path, v)
    local name, rest = path:match("^([^.]*)%.(.*)$")
    name = name or path
    out[name] = out[name] or {}
    table.insert(out[name], {rest or "", v})
  end
  for path, x in pairs(arrays) do enter(path, x) end
  for path, text in pairs(texts) do enter(path, decode(text)) end
  for _, leaves in pairs(out) do table.sort(leaves, function(a, b) return a[1] < b[1] end) end
  return out
end

define{
  name = "load_checkpoint", sig = "file:string parts:table?",
  help = "Reads a file of save_checkpoint: gives the modules, optimizers and loaders in parts, by the names that " ..
    "they were saved under, what they had, and the random numbers their state. The result is a table of all other " ..
    "parts that the file has. What is done after that gives the same bytes as if there had been no break. It is an " ..
    "error if a part, or a parameter of a module, is missing in the file, or an optimizer is of another class, and " ..
    "then nothing is changed.",
  call = function(file, parts)
    local arrays, texts = mx.load(file, {format = "safetensors", return_metadata = true})
    local random = mark .. ".random"
    if texts[mark] ~= "1" or arrays[random] == nil then
      fail("load_checkpoint", file .. " is no checkpoint")
    end
    mx.eval(arrays) -- what cannot be read is told before anything is changed
    local key = arrays[random]
    arrays[random], texts[mark] = nil, nil
    local rules = rules_in(texts)
    local saved = sorted(arrays, texts)
    for name, part in pairs(parts or {}) do
      if not is_module(part) and not has_state(part) then
        fail("load_checkpoint", ("parts.%s is a %s, want a module, an optimizer or a loader"):format(tostring(name),
          mx.type(part)))
      end
      if not saved[name] and next(mx.utils.tree_flatten(tree(part))) ~= nil then
        fail("load_checkpoint", ("%s has no part %s"):format(file, tostring(name)))
      end
      -- Files before this one was written named a MultiOptimizer by its class alone.
      if rules[name] and rules[name] ~= rule(part) and rules[name] ~= part.class then
        fail("load_checkpoint", ("%s has the state of the optimizer %s for %s, which is %s"):format(file, rules[name],
          name, described(part)))
      end
    end
    core.guarded("load_checkpoint", function()
      for name, part in pairs(parts or {}) do
        local leaves = saved[name] or {}
        if is_module(part) then part:load_weights(leaves) else part.state = mx.utils.tree_unflatten(leaves) end
        saved[name] = nil
      end
    end, parts)
    mx.random.state[1] = key
    local rest = {}
    for name, leaves in pairs(saved) do rest[name] = mx.utils.tree_unflatten(leaves) end
    return rest
  end,
}
