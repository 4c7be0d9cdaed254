-- Mixtures of experts as DeepSeek V3 has them: scores by themselves, a bias that counts for choosing only, groups of
-- experts, and experts that are always there.
local mx, nn = require("mx"), require("mx.nn")
local layers, moe, Decoder = require("lm.layers"), require("lm.moe"), require("lm.decoder")

local grouped = {}

-- settings adds those of a mixture to c: which layers have one says sparse(i), i from 1.
function grouped.settings(c, config)
  c.experts = config:get("n_routed_experts", nil, "size")
  c.chosen = moe.chosen(config, c.experts or math.huge)
  c.groups, c.chosen_groups = config:get("n_group", 1, "size"), config:get("topk_group", 1, "size")
  c.norm_shares, c.factor = config:get("norm_topk_prob", false), config:need("routed_scaling_factor", "number")
  c.shared = config:get("n_shared_experts", 0, "count")
  c.hidden = config:get("moe_intermediate_size", nil, "size")
  local second = config.model_type == "deepseek_v2" -- a softmax, no bias, and groups by their best expert
  c.softmax = config:only("scoring_func", second and "softmax" or "sigmoid") == "softmax"
  if second then
    local greedy = config:only("topk_method", "greedy", "group_limited_greedy") == "greedy"
    if greedy then c.groups, c.chosen_groups = 1, 1 end
    c.norm_shares = false -- whatever norm_topk_prob says
  else
    config:only("topk_method", "noaux_tc")
  end
  local each = c.experts and c.experts / c.groups
  if each and (c.chosen_groups > c.groups or c.groups > 1 and (each % 1 ~= 0 or each < 2) or
    c.chosen > c.chosen_groups * each) then
    error(("lm: config.json: n_group = %s groups, topk_group = %s of them, num_experts_per_tok = %s of %s %s"):format(
      c.groups, c.chosen_groups, c.chosen, c.experts, "experts are not built"), 0)
  end
  local types = config:by_layer("mlp_layer_types", "strings", c.layers)
  local dense = config:get("first_k_dense_replace", types and 1 or 0, "count")
  c.sparse = function(i)
    if types then return types[i] == "sparse" end
    return i > dense
  end
end

local Experts = nn.class("Experts")

-- gates makes what chooses.
function Experts:gates(w, c)
  self.chosen, self.groups, self.chosen_groups, self.softmax = c.chosen, c.groups, c.chosen_groups, c.softmax
  self.norm, self.factor = c.norm_shares, c.factor
  self.gate = {weight = w:array("gate.weight", {c.experts, c.hidden_size}),
    e_score_correction_bias = not c.softmax and w:array("gate.e_score_correction_bias", {c.experts}) or nil}
end

function Experts:init(w, c)
  self:gates(w, c)
  self.switch_mlp = layers.SwitchGLU(w:at("switch_mlp"), c.experts, c.hidden_size, c.hidden, layers.gated(c.act))
  if c.shared > 0 then
    self.shared_experts = layers.GLU(w:at("shared_experts"), c.hidden_size, c.hidden * c.shared, c.act)
  end
end

-- choose gives the experts of each token and their shares. The bias counts for choosing only: of the groups, those
-- whose two best experts are best, and in them the best experts.
function Experts:choose(x)
  local scores = mx.matmul(x:astype(mx.float32), self.gate.weight.T:astype(mx.float32))
  scores = self.softmax and mx.softmax(scores, -1, {precise = true}) or mx.sigmoid(scores)
  local for_choice = self.softmax and scores or scores + self.gate.e_score_correction_bias
  if self.groups > 1 then
    local grouped = for_choice:unflatten(-1, {self.groups, -1})
    local sums = mx.topk(grouped, self.softmax and 1 or 2, -1):sum(-1, true)
    local out = self.groups - self.chosen_groups
    if out > 0 then
      local worst = mx.argpartition(sums, out - 1, -2):index("...", "0:" .. out, ":")
      grouped = mx.put_along_axis(grouped, mx.stop_gradient(worst), mx.array(0, grouped.dtype), -2)
    end
    for_choice = grouped:flatten(-2, -1)
  end
  local which = mx.stop_gradient(moe.best(for_choice, self.chosen))
  local shares = mx.take_along_axis(scores, which, -1)
  if self.norm then shares = shares / (shares:sum(-1, true) + 1e-20) end
  return which, shares * self.factor
end

function Experts:forward(x)
  local which, shares = self:choose(x)
  local y = moe.weighed(x, which, shares, self.switch_mlp):astype(x.dtype)
  if not self.shared_experts then return y end
  return y + self.shared_experts(x)
end

-- names leaves out the layers that predict several tokens.
function grouped.names(name, config)
  local i = name:match("^model%.layers%.(%d+)%.")
  if i and tonumber(i) >= config:need("num_hidden_layers", "size") then return nil end
  return Decoder.names(name, config)
end

grouped.Experts = Experts
return grouped
