-- What scripts/lm needs of Go: JSON that stays what it was, and conversations as texts.
local host = require("lm.host")

local text = '{"a": [], "b": {}, "c": [1, 2.5, -3e+20, true, null], "d": "\\u00e9\\"<>", "e": {"f": [[]]}}'
local v = host.decode(text)
assert(#v.a == 0 and v.c[2] == 2.5 and v.c[4] == true and v.c[5] == host.null and v.d == "é\"<>")
local again = host.encode(v)
assert(again == '{"a": [], "b": {}, "c": [1, 2.5, -3e+20, true, null], "d": "é\\"<>", "e": {"f": [[]]}}', again)
assert(host.encode({1, {x = host.list{}}}, "  ") == '[\n  1,\n  {\n    "x": []\n  }\n]')
for _, wrong in ipairs{"", "{", "[1,]", "{} x", "nul", '{"a" 1}'} do
  local nothing, why = host.decode(wrong)
  assert(nothing == nil and why:find("JSON: ", 1, true), wrong)
end
local nothing, why = host.encode({[1.5] = 2})
assert(nothing == nil and why:find("an object has the key the number 1.5, want strings", 1, true), why)
nothing, why = host.encode(0 / 0)
assert(nothing == nil and why:find("NaN cannot be written", 1, true), why)
local round = {}
round[1] = round
nothing, why = host.encode(round)
assert(nothing == nil and why:find("nested more than 100 deep", 1, true), why)

local template = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}" ..
  "{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}[assistant]{% endif %}"
local variables = host.encode{messages = host.list{{role = "user", content = "hi"}}, bos_token = "<s>"}
assert(host.render(template, variables, true) == "<s>[user]hi[assistant]")
assert(host.render(template, variables, false, '[{"z": 1, "a": 2}]') == '<s>[user]hi[{"z": 1, "a": 2}]')
nothing, why = host.render("{% if %}", variables, true)
assert(nothing == nil and why)
nothing, why = host.render("{{ raise_exception('no') }}", variables, true)
assert(nothing == nil and why:find("no", 1, true))
nothing, why = host.tokenizer("no/such/directory")
assert(nothing == nil and why)
