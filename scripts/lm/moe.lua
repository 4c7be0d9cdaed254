-- Mixtures of experts as Qwen has them: a softmax over all experts, the best k of each token, with or without one that
-- is always there.
local mx, nn = require("mx"), require("mx.nn")
local layers, Weights = require("lm.layers"), require("lm.weights")

local moe = {}

-- chosen is how many experts a token goes to.
function moe.chosen(config, experts, ...)
  local n = config:need("num_experts_per_tok", "count", ...)
  if n < 1 or n > experts then
    error(("lm: config.json: num_experts_per_tok = %s of %s experts"):format(tostring(n), tostring(experts)), 0)
  end
  return n
end

-- settings are those of a mixture, and which layers have one: sparse(i), i from 1. always says that all layers have
-- one, and that the shares of the chosen experts are divided by their sum, whatever config.json leaves out.
function moe.settings(config, always)
  local m = {
    experts = config:need("num_experts", "count", "num_local_experts"),
    hidden = config:need("moe_intermediate_size", "size"),
    norm = always or config:get("norm_topk_prob", false),
    shared = config:get("shared_expert_intermediate_size", 0, "count"), act = config:act("hidden_act"),
  }
  m.chosen = m.experts > 0 and moe.chosen(config, m.experts)
  if always then
    config:only("norm_topk_prob", true)
    config:only("decoder_sparse_step", 1)
    return m, function() return true end
  end
  local every, dense = config:need("decoder_sparse_step", "size"), {}
  for _, i in ipairs(config:get("mlp_only_layers", {}, "counts")) do dense[i + 1] = true end
  return m, function(i) return m.experts > 0 and not dense[i] and i % every == 0 end
end

-- stack brings the experts' weights into one array for each layer.
function moe.stack(arrays, config)
  return Weights.stack_experts(arrays, config:need("num_experts", "count", "num_local_experts"))
end

-- portable gives the number of experts the name that mlx-lm knows: see Config:portable.
function moe.portable(settings)
  if settings.num_experts == nil then settings.num_experts = settings.num_local_experts end
end

-- pack_more says that the layers which choose experts are packed less than the others: see lm.quantize.
function moe.pack_more(path)
  if path:match("mlp%.gate$") or path:match("shared_expert_gate$") then return {group_size = 64, bits = 8} end
  return true
end

local SparseMoE = nn.class("SparseMoE")

function SparseMoE:init(w, dims, m)
  self.chosen, self.norm = m.chosen, m.norm
  self.gate = w:linear("gate", dims, m.experts)
  self.switch_mlp = layers.SwitchGLU(w:at("switch_mlp"), m.experts, dims, m.hidden, layers.gated(m.act))
  if m.shared > 0 then
    self.shared_expert = layers.GLU(w:at("shared_expert"), dims, m.shared, m.act)
    self.shared_expert_gate = w:linear("shared_expert_gate", dims, 1)
  end
end

-- best are the indices of the k largest elements along the last axis, in any order.
function moe.best(x, k) return mx.argpartition(-x, k - 1, -1):index("...", "0:" .. k) end

-- scored_best are the best k experts of each token, and their scores. A bias, which may be nil, counts for choosing
-- only.
function moe.scored_best(scores, k, bias)
  local which = mx.stop_gradient(moe.best(bias and scores + bias or scores, k))
  return which, mx.take_along_axis(scores, which, -1)
end

-- weighed is what each token's experts make of x, in these shares.
function moe.weighed(x, which, shares, experts)
  return (experts(x, which) * mx.expand_dims(shares, -1)):sum(-2)
end

function SparseMoE:forward(x)
  local shares = mx.softmax(self.gate(x), -1, {precise = true})
  local which
  which, shares = moe.scored_best(shares, self.chosen)
  if self.norm then shares = shares / shares:sum(-1, true) end
  local y = moe.weighed(x, which, shares, self.switch_mlp)
  if not self.shared_expert then return y end
  return y + mx.sigmoid(self.shared_expert_gate(x)) * self.shared_expert(x)
end

-- softmax_best are the best k experts of each token, and their shares: a softmax over the scores of these.
function moe.softmax_best(scores, k)
  local which, best = moe.scored_best(scores, k)
  return which, mx.softmax(best, -1, {precise = true})
end

-- mixed is what the best k experts by scores make of x, in shares that are a softmax over the scores of these.
function moe.mixed(x, scores, k, experts)
  local which, shares = moe.softmax_best(scores, k)
  return moe.weighed(x, which, shares, experts)
end

moe.SparseMoE = SparseMoE
return moe
