-- What the goroutine of a model calls: see model.go.
local mx, lm = require("mx"), require("lm")
local Engine = require("lm.engine")
local engine, session

function open(path, o)
  if o.invariant then mx.set_batch_invariant(true) end
  session = lm.open(lm.load(path, {ignore = o.ignore}), o.tokenizer)
  engine = Engine.new(session, o)
  return {template = session:template(), context = engine.context, special = session.special}
end

function add(request) return engine:add(request) end
function cancel(id) engine:cancel(id) end
function turn()
  local events, idle = engine:turn()
  return events, idle, engine:figures()
end
