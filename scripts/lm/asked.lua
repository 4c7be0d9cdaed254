-- What a request to lm.engine asks for: its prompt, and how tokens are chosen.
local asked = {}

-- refuse is the error of a request: status is one of HTTP's, param the field that it is about.
function asked.refuse(status, param, text, ...)
  error({status = status, param = param, message = text:format(...)}, 0)
end

-- prompt is a request's prompt as tokens, and the end of its text.
function asked.prompt(self, r)
  local prompt, ending, session = r.prompt, nil, self.session
  if r.messages then
    if not session:template() then asked.refuse(400, "messages", "the model has no chat template") end
    local ok, out = pcall(session.rendered, session, r.messages, {tools = r.tools, arguments = r.arguments,
      continue = r.continue})
    if not ok then asked.refuse(400, "messages", "%s", (tostring(out):gsub("^lm: ", ""))) end
    prompt, ending = session:tokens(out, false), out:sub(-256)
  elseif type(prompt) == "string" then
    prompt = session:tokens(prompt)
  end
  for i, id in ipairs(prompt) do
    if type(id) ~= "number" or id % 1 ~= 0 or id < 0 or id >= self.words then
      asked.refuse(400, "prompt", "prompt[%d] is %s, want a token from 0 to %d", i - 1, tostring(id), self.words - 1)
    end
  end
  if #prompt == 0 then asked.refuse(400, r.messages and "messages" or "prompt", "the prompt is empty") end
  return prompt, ending
end

-- plain says whether a request takes the best token of the scores as they are.
function asked.plain(r)
  local function none(name, v) return r[name] == nil or r[name] == 0 or r[name] == v end
  return none("temp") and next(r.logit_bias) == nil and none("repetition_penalty", 1) and none("presence_penalty") and
    none("frequency_penalty") and not r.grammar
end

-- shown are the tokens whose texts have to be seen, though they are special ones.
function asked.shown(self, r)
  local out = {}
  for _, text in ipairs(r.shown or {}) do
    local id = self.session.tokenizer.id(text)
    if id then out[id] = text end
  end
  return out
end

-- grammar is the form that an answer has to have, or nil: behind the thought that the prompt has begun, if it has.
function asked.grammar(self, r, ending)
  if not r.grammar then return nil end
  local ends = {}
  for id in pairs(self.session.ends) do ends[#ends + 1] = id end
  if #ends == 0 then asked.refuse(400, "response_format", "the model has no token that ends an answer") end
  local after = r.after
  if not after and r.think and (ending or ""):gsub("%s+$", ""):sub(-#r.think[1]) == r.think[1] then
    after = r.think[2]
  end
  local form, why = self.session.tokenizer.grammar(r.grammar, self.words, ends, after)
  return form or asked.refuse(400, "response_format", "%s", why)
end

return asked
