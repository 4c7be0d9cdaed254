-- Rotary position embeddings of all kinds that published models have. A kind is a list of wavelengths / (2 pi), which
-- mx.fast.rope calls freqs, and a factor of what is turned. Formulas: transformers' modeling_rope_utils.
local mx, nn = require("mx"), require("mx.nn")

local function fail(text, ...) error(("lm: config.json: rope: " .. text):format(...), 0) end

local function need(s, key)
  if s[key] == nil then fail("%s is missing for rope_type %s", key, s.rope_type) end
  return s[key]
end

-- plain are base^(2i / dims) for i from 0, times f(i, that).
local function plain(dims, base, f)
  local out = {}
  for i = 0, dims / 2 - 1 do
    local v = base ^ (2 * i / dims)
    out[i + 1] = f and f(i, v) or v
  end
  return out
end

-- attention_scale is yarn's factor for contexts that are so many times longer.
local function attention_scale(factor, m) return factor <= 1 and 1 or 0.1 * (m or 1) * math.log(factor) + 1 end

local kinds = {}

function kinds.default(dims, s) return plain(dims, s.rope_theta) end

function kinds.linear(dims, s)
  local factor = need(s, "factor")
  return plain(dims, s.rope_theta, function(_, v) return v * factor end)
end

function kinds.llama3(dims, s)
  local factor, low, high = need(s, "factor"), need(s, "low_freq_factor"), need(s, "high_freq_factor")
  local old = need(s, "original_max_position_embeddings")
  return plain(dims, s.rope_theta, function(_, v)
    local length = 2 * math.pi * v
    if length < old / high then return v end
    if length > old / low then return v * factor end
    local smooth = (old / length - low) / (high - low)
    return v / ((1 - smooth) / factor + smooth)
  end)
end

function kinds.yarn(dims, s)
  local old = need(s, "original_max_position_embeddings")
  local factor = need(s, "factor")
  local function turns(n) return dims * math.log(old / (n * 2 * math.pi)) / (2 * math.log(s.rope_theta)) end
  local low, high = turns(s.beta_fast or 32), turns(s.beta_slow or 1)
  if s.truncate ~= false then low, high = math.floor(low), math.ceil(high) end
  low, high = math.max(low, 0), math.min(high, dims - 1)
  if low == high then high = high + 0.001 end
  local scale = s.attention_factor
  if not scale and s.mscale and s.mscale_all_dim and s.mscale ~= 0 and s.mscale_all_dim ~= 0 then
    scale = attention_scale(factor, s.mscale) / attention_scale(factor, s.mscale_all_dim)
  end
  local freqs = plain(dims, s.rope_theta, function(i, v)
    local far = math.min(math.max((i - low) / (high - low), 0), 1) -- the share of the stretched wavelength
    return 1 / (far / (factor * v) + (1 - far) / v)
  end)
  return freqs, scale or attention_scale(factor)
end

-- longrope has two lists of factors: for texts up to the original length, and for longer ones, all of whose tokens are
-- turned by the second.
function kinds.longrope(dims, s)
  local old = need(s, "original_max_position_embeddings")
  local factor = s.factor or (s.max_position_embeddings or old) / old
  local scale = s.attention_factor or factor <= 1 and 1 or math.sqrt(1 + math.log(factor) / math.log(old))
  local function times(list, name)
    if #list ~= dims / 2 then fail("%s has %d numbers, want %d", name, #list, dims / 2) end
    return plain(dims, s.rope_theta, function(i, v) return v * list[i + 1] end)
  end
  return times(need(s, "short_factor"), "short_factor"), scale, times(need(s, "long_factor"), "long_factor")
end
kinds.su = kinds.longrope

-- proportional turns a share of the pairs of a whole head: the others have infinite wavelengths.
function kinds.proportional(dims, s)
  local turned = math.floor((s.partial_rotary_factor or 1) * dims / 2)
  local factor = s.factor or 1
  return plain(dims, s.rope_theta, function(i, v) return i < turned and v * factor or math.huge end)
end

-- factors has a factor for each wavelength: so GGUF files keep llama3.
function kinds.factors(dims, s)
  return plain(dims, s.rope_theta, function(i, v) return v * s.factors[i + 1] end)
end

-- dynamic stretches the base with the length of the text, once it is beyond the model's.
function kinds.dynamic(dims, s)
  need(s, "factor")
  need(s, "max_position_embeddings")
  return plain(dims, s.rope_theta)
end

local RoPE = nn.class("RoPE")

-- init: s is what Config:rope gives; interleaved says that neighbours make a pair, not halves.
function RoPE:init(dims, s, interleaved)
  local kind = kinds[s.rope_type]
  if not kind then fail("rope_type = %s is not built", tostring(s.rope_type)) end
  if s.mrope_section and not s.text_only then fail("mrope_section is not built") end
  local share = s.partial_rotary_factor
  if share and s.rope_type ~= "proportional" then dims = math.floor(dims * share) end
  if dims < 2 or dims % 2 ~= 0 then fail("an even number of a head's elements is turned, not %s", tostring(dims)) end
  local freqs, scale, long = kind(dims, s)
  self.dims, self.scale, self.interleaved, self.rope_type = dims, scale or 1, interleaved or false, s.rope_type
  self._freqs = mx.array(freqs)
  if long then self._long = mx.array(long) end
  if s.rope_type == "dynamic" then
    self.base, self.factor, self.old = s.rope_theta, s.factor, s.max_position_embeddings
  end
end

-- bounds says what in rotary settings depends on the length of a text, for Caches: switch is the length beyond which
-- all tokens are turned by other wavelengths, longest the one beyond which each further token changes those of all.
local function bounds(s)
  local kind = kinds[s.rope_type]
  return {switch = kind == kinds.longrope and s.original_max_position_embeddings or nil,
    longest = kind == kinds.dynamic and s.max_position_embeddings or nil}
end

-- chosen are the wavelengths for the text that caches have, with the tokens of a call.
function RoPE:chosen(caches)
  if not (self._long or self.old) then return self._freqs end
  if not caches then
    fail("rope_type %s depends on the length of the text: want rope(x, position, caches)", self.rope_type)
  end
  if self._long then return caches.long and self._long or self._freqs end
  local length = caches.total
  if caches.traced or length <= self.old then return self._freqs end
  local grown = (length * (self.factor / self.old) - (self.factor - 1)) ^ (self.dims / (self.dims - 2)) * self.base
  return mx.array(plain(self.dims, grown))
end

-- forward turns x (batch, heads, tokens, size) from position offset on, a number or an array of one for each example.
-- caches are those of the call.
function RoPE:forward(x, offset, caches)
  if self.scale ~= 1 then
    local size = x:dim(-1)
    if size == self.dims then
      x = x * self.scale
    else
      local turned, rest = unpack(mx.split(x, {self.dims}, -1))
      x = mx.concatenate({turned * self.scale, rest}, -1)
    end
  end
  return mx.fast.rope(x, self.dims, {traditional = self.interleaved, scale = 1, offset = offset,
    freqs = self:chosen(caches)})
end

return {RoPE = RoPE, bounds = bounds, attention_scale = attention_scale}
