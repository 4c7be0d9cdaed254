-- A loop of training, and one of evaluation.
local mx, define, fail, _, core = ...

-- batches is an iterator over an epoch of data: a loader, or a function that gives an iterator.
local function batches(op, data)
  local iterator, state, control = data()
  if type(iterator) ~= "function" then
    fail(op, ("data() gave a %s, want an iterator: a function"):format(mx.type(iterator)))
  end
  return iterator, state, control
end

local function check_data(op, name, data)
  if not core.callable(data) then
    fail(op, ("%s is a %s, want a DataLoader, or a function that gives an iterator over batches"):format(name,
      mx.type(data)))
  end
end

-- is_loader reports whether data has a place to go on at.
local function is_loader(data) return type(data) == "table" and type(data.state) == "table" end

-- check_functions wants a table of functions by names.
local function check_functions(op, what, t, known)
  for name, f in pairs(t) do
    if type(name) ~= "string" or not core.callable(f) then
      fail(op, ("%s.%s is a %s, want a function"):format(what, tostring(name), mx.type(f)))
    end
    if known and not known[name] then fail(op, ("%s has no %q; it takes epoch and step"):format(what, name)) end
  end
end

-- names are the keys of a table in order.
local function names_of(t)
  local out = {}
  for name in pairs(t) do out[#out + 1] = name end
  table.sort(out)
  return out
end

-- evaluator is a function that gives the averages of metrics over data.
local function evaluator(model, metrics, compile)
  local names = names_of(metrics)
  local function all(...)
    local out = {}
    for i, name in ipairs(names) do out[i] = mx.mean(metrics[name](model, ...):astype(mx.float32)) end
    return out
  end
  if compile then all = mx.compile(all, {inputs = {model}}) end
  -- measure is the averages while the model is in evaluation mode.
  local function measure(data)
    local was, sums, count = model.training, {}, 0
    model:eval()
    for batch, second, third, fourth in batches("evaluate", data) do
      local out = all(batch, second, third, fourth)
      local n = is_loader(data) and data.valid or 1
      mx.eval(out)
      for i, x in ipairs(out) do sums[i] = (sums[i] or 0) + n * x:item() end
      count = count + n
    end
    if count == 0 then fail("evaluate", "data has no batch") end
    model:train(was)
    local averages = {}
    for i, name in ipairs(names) do averages[name] = sums[i] / count end
    return averages
  end
  return function(data)
    return core.guarded("evaluate", function() return measure(data) end, model)
  end
end

define{
  name = "evaluate", sig = "model:any data:any metrics:table compile:bool=true",
  help = "The averages over data of metrics, a table of functions f(model, ...) of a batch, such as a loss or an " ..
    "accuracy: a table of numbers. data is a DataLoader, whose batches count by their samples, or a function that " ..
    "gives an iterator over batches (of at most four values). The model is in evaluation mode meanwhile. The " ..
    "functions are compiled unless compile is false.",
  call = function(model, data, metrics, compile)
    check_data("evaluate", "data", data)
    check_functions("evaluate", "metrics", metrics)
    return evaluator(model, metrics, compile)(data)
  end,
}

-- stepper is a function that does one step of training and gives the loss.
local function stepper(run)
  local model, optimizer, loss, max_norm = run.model, run.optimizer, run.loss, run.max_norm
  local value_and_grad = mx.nn.value_and_grad(model, function(...) return loss(model, ...) end)
  local parameters = model:trainable_parameters()
  if #mx.utils.tree_flatten(parameters) == 0 then
    fail("fit", "model has no parameter to train: it has none, or all are frozen")
  end
  optimizer:init(parameters)
  local state = {model, optimizer.state, mx.random.state}
  local function step(...)
    local value, grads = value_and_grad(...)
    if max_norm then grads = mx.optimizers.clip_grad_norm(grads, max_norm) end
    optimizer:update(model, grads)
    return value
  end
  if run.compile then step = mx.compile(step, {inputs = state, outputs = state}) end
  return function(...)
    local value = step(...)
    mx.eval(value, model, optimizer.state)
    return value:item()
  end
end

-- numbers shows a table of numbers.
local function numbers(t)
  local out = {}
  for _, name in ipairs(names_of(t)) do
    if name ~= "epoch" and name ~= "seconds" and name ~= "step" then
      out[#out + 1] = ("%s %.4g"):format(name, t[name])
    end
  end
  return table.concat(out, "  ")
end

-- save writes the checkpoint of a run.
local function save(run)
  mx.train.save_checkpoint(run.checkpoint, {model = run.model, optimizer = run.optimizer,
    loader = is_loader(run.data) and run.data or nil, fit = run.at, history = run.history})
end

-- exists reports whether there is a file. A script without Lua's io library asks mx.load.
local function exists(file)
  if io then
    local f = io.open(file, "rb")
    if f then f:close() end
    return f ~= nil
  end
  local ok, why = pcall(mx.load, file, {format = "safetensors"})
  return ok or not tostring(why):find("there is no file", 1, true)
end

-- resume takes a run up where its checkpoint left it, if there is one.
local function resume(run)
  local file = run.checkpoint
  if not exists(file) then return end
  local loader = is_loader(run.data) and run.data or nil
  local rest = mx.train.load_checkpoint(file, {model = run.model, optimizer = run.optimizer, loader = loader})
  if type(rest.fit) ~= "table" then fail("fit", file .. " is a checkpoint of something else") end
  run.at, run.history = rest.fit, rest.history or {}
end

-- epoch trains for one epoch; it reports whether a callback wants to stop.
local function epoch(run, step)
  local at, started = run.at, mx.clock()
  local total = type(run.data) == "table" and run.data.size and run.data:size()
  local label = ("epoch %d/%d"):format(at.epoch + 1, run.epochs)
  local line = run.progress and mx.train.Progress(total, {label = label})
  if line then line.count = at.batch end
  local function one(...)
    local loss = step(...)
    at.step, at.batch, at.sum = at.step + 1, at.batch + 1, at.sum + loss
    if line then line:step(("loss %.4g"):format(loss)) end
    local again = run.callbacks.step and
      run.callbacks.step{step = at.step, epoch = at.epoch + 1, loss = loss, model = run.model}
    local due = run.every and at.step % run.every == 0
    if due and run.data.state.batch > 0 then save(run) end -- the last batch's checkpoint is the epoch's
    return again == false
  end
  local stop = false
  for first, second, third, fourth in batches("fit", run.data) do
    stop = one(first, second, third, fourth)
    if stop then break end
  end
  if at.batch == 0 then fail("fit", "data has no batch") end
  local entry = {epoch = at.epoch + 1, loss = at.sum / at.batch, seconds = mx.clock() - started}
  local whole = not stop or is_loader(run.data) and run.data.state.batch == 0
  if run.evaluate and whole then
    for name, v in pairs(run.evaluate(run.validation)) do entry["validation_" .. name] = v end
  end
  if line then
    line:close(("%s  %d steps in %.1f s  %s"):format(label, at.batch, entry.seconds, numbers(entry)))
  end
  if whole then
    run.history[#run.history + 1] = entry
    at.epoch, at.batch, at.sum = at.epoch + 1, 0, 0
    local again = run.callbacks.epoch and run.callbacks.epoch(entry)
    stop = stop or again == false
  end
  if run.checkpoint then save(run) end
  return stop
end

define{
  name = "fit",
  sig = "model:any optimizer:any loss:function data:any epochs:int=1 validation:any? metrics:table? " ..
    "callbacks:table? compile:bool=true max_norm:number? checkpoint:string? every:int? resume:bool=false " ..
    "progress:bool=true",
  help = "Trains a model: for each batch of data, a DataLoader or a function that gives an iterator over batches " ..
    "(of at most four values), loss(model, ...) is computed and the optimizer updates the model by its gradients; " ..
    "with max_norm these are clipped first. A step is compiled, with the model, the optimizer and the random " ..
    "numbers as inputs and outputs, unless compile is false. After each epoch the loss and the metrics, functions " ..
    "f(model, ...), are averaged over validation. callbacks.step is called with {step, epoch, loss, model}, " ..
    "callbacks.epoch with what the history gets; if one gives false, training ends. The result is the history: a " ..
    "list of {epoch, loss, seconds, validation_loss, ...}. A checkpoint is written to a file after each epoch, and " ..
    "every so many steps. With resume, training goes on where that file says, if it is there, and ends with the " ..
    "bytes that it would have had without the break; in the middle of an epoch data has to be a DataLoader for " ..
    "that. A line shows how far it is unless progress is false.",
  call = function(model, optimizer, loss, data, epochs, validation, metrics, callbacks, compile, max_norm, checkpoint,
                  every, again, progress)
    if not mx.nn.Module.is_module(model) then
      fail("fit", ("model is a %s, want a module of mx.nn"):format(mx.type(model)))
    end
    if type(optimizer) ~= "table" or type(optimizer.apply_gradients) ~= "function" then
      fail("fit", ("optimizer is a %s, want one of mx.optimizers"):format(mx.type(optimizer)))
    end
    check_data("fit", "data", data)
    if validation ~= nil then check_data("fit", "validation", validation) end
    if epochs < 0 then fail("fit", ("epochs is %d, want at least 0"):format(epochs)) end
    if every and every < 1 then fail("fit", ("every is %d, want at least 1"):format(every)) end
    if (every or again) and not checkpoint then
      fail("fit", "every and resume are about checkpoint, which is missing")
    end
    if every and not is_loader(data) then
      fail("fit", "every needs a DataLoader, which can go on in the middle of an epoch")
    end
    if metrics and not validation then fail("fit", "metrics are computed on validation, which is missing") end
    check_functions("fit", "callbacks", callbacks or {}, {epoch = true, step = true})
    local measured = {loss = loss}
    for name, f in pairs(metrics or {}) do measured[name] = f end
    check_functions("fit", "metrics", measured)
    local run = {model = model, optimizer = optimizer, loss = loss, data = data, epochs = epochs, history = {},
      validation = validation, callbacks = callbacks or {}, compile = compile, max_norm = max_norm, progress = progress,
      checkpoint = checkpoint, every = every, at = {epoch = 0, batch = 0, step = 0, sum = 0}}
    if validation then run.evaluate = evaluator(model, measured, compile) end
    if again then resume(run) end
    model:train()
    local step = stepper(run)
    while run.at.epoch < epochs do
      if epoch(run, step) then break end
    end
    return run.history
  end,
}
