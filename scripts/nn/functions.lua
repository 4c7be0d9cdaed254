-- Gradients of models.
local mx, define, fail, use, core = ...

local is_module = use("class").is_module

-- put_back gives a model its own parameters again, those that it still has, and gives the other arguments.
local function put_back(model, parameters, ...)
  model:update(parameters, false)
  return ...
end

define{
  name = "value_and_grad", sig = "model:any fn:any",
  help = "The function that calls fn with its arguments and gives what fn returns, whose first result is the " ..
    "loss, a " ..
    "scalar array, and then the gradients of the loss by the model's trainable parameters: a tree as " ..
    "model:trainable_parameters() is. fn reaches the model as any function does.",
  call = function(model, fn)
    if not is_module(model) then
      fail("value_and_grad", ("model is a %s, want a module; it comes before fn"):format(mx.type(model)))
    end
    return function(...)
      local args, n = {...}, select("#", ...)
      -- fn is given the arguments themselves: the model may be one of them, and mx.value_and_grad would copy it.
      local with_gradients = mx.value_and_grad(function(parameters)
        model:update(parameters)
        return fn(unpack(args, 1, n))
      end)
      local gradients
      local value = core.guarded("value_and_grad", function()
        local parameters, value = model:trainable_parameters()
        value, gradients = with_gradients(parameters)
        put_back(model, parameters)
        return value
      end, model)
      return value, gradients
    end
  end,
}

define{
  name = "checkpoint", sig = "module:any fn:any?",
  help = "fn, or else the module, as a function whose intermediate values are not kept for its gradient but " ..
    "computed " ..
    "again there: the gradient by the module's trainable parameters and by the arguments.",
  call = function(module, fn)
    fn = fn or module
    local checkpointed = mx.checkpoint(function(parameters, ...)
      module:update(parameters)
      return fn(...)
    end)
    return function(...)
      local args, n = {...}, select("#", ...)
      return core.guarded("checkpoint", function()
        local parameters = module:trainable_parameters()
        return put_back(module, parameters, checkpointed(parameters, unpack(args, 1, n)))
      end, module)
    end
  end,
}
