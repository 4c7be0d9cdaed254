-- What a request to lm.engine asks for: its prompt, and how tokens are chosen.
local asked = {}

-- refuse is the error of a request: status is one of HTTP's, param the field that it is about.
function asked.refuse(status, param, text, ...)
  error({status = status, param = param, message = text:format(...)}, 0)
end

-- prompt is a request's prompt as tokens.
function asked.prompt(self, r)
  local prompt, session = r.prompt, self.session
  if r.messages then
    if not session:template() then asked.refuse(400, "messages", "the model has no chat template") end
    local ok, out = pcall(session.conversation, session, r.messages, {tools = r.tools, arguments = r.arguments,
      continue = r.continue})
    if not ok then asked.refuse(400, "messages", "%s", (tostring(out):gsub("^lm: ", ""))) end
    prompt = out
  elseif type(prompt) == "string" then
    prompt = session:tokens(prompt)
  end
  for i, id in ipairs(prompt) do
    if type(id) ~= "number" or id % 1 ~= 0 or id < 0 or id >= self.words then
      asked.refuse(400, "prompt", "prompt[%d] is %s, want a token from 0 to %d", i - 1, tostring(id), self.words - 1)
    end
  end
  if #prompt == 0 then asked.refuse(400, r.messages and "messages" or "prompt", "the prompt is empty") end
  return prompt
end

-- plain says whether a request takes the best token of the scores as they are.
function asked.plain(r)
  local function none(name, v) return r[name] == nil or r[name] == 0 or r[name] == v end
  return none("temp") and next(r.logit_bias) == nil and none("repetition_penalty", 1) and none("presence_penalty") and
    none("frequency_penalty") and not r.schema
end

return asked
