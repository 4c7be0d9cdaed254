package luabind

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/docs"
)

// calls is a call with options of each function of the package that takes some.
const calls = `
local prompt, tokens = session:tokens("hello there"), {}
for i = 1, 40 do tokens[i] = i end
local chat = {{role = "user", content = "hi"}}
local calls = {
	["lm.Session.answer"] = function(o) return said(prompt, o) end,
	["lm.Session.conversation"] = function(o) return session:conversation(chat, o) end,
	["lm.Session.rendered"] = function(o) return session:rendered(chat, o) end,
	["lm.build"] = function(o) return lm.build(lm.weights(session.model), lm.Config.read("tiny"), o) end,
	["lm.caches"] = function(o) return lm.caches(session.model, o) end,
	["lm.generate"] = function(o) return lm.generate(session.model, prompt, o) end,
	["lm.load"] = function(o) return lm.load("tiny", o) end,
	["lm.perplexity"] = function(o) return lm.perplexity(session.model, tokens, o) end,
	["lm.processors"] = lm.processors,
	["lm.quantize"] = function(o) return lm.quantize(lm.load("tiny"), o) end,
	["lm.sampler"] = lm.sampler,
	["lm.save"] = function(o) return lm.save(session.model, "saved", o) end,
	["lm.stream"] = function(o) return lm.stream(session.model, prompt, o) end,
}
`

// Each function of the package that the manual gives options refuses a keyword that it does not know, and what is no
// table of them.
func TestModelOptionsAreKnown(t *testing.T) {
	scripts := map[string]string{}
	for _, name := range docs.Package("lm", "") {
		if strings.Contains(docs.Usage(name), "options") {
			scripts[name] = fmt.Sprintf(calls+`
				local name, f = %q, nil
				f = calls[name]
				refused(name .. ': unknown keyword "maxkv"; it takes ', f, {maxkv = 3})
				refused(name .. ': unknown keyword "1"; it takes ', f, {"a"})
				refused(name .. ": options is a number, want a table of ", f, 3)
				refused(name .. ": options is a dtype, want a table of ", f, mx.float16)`, name)
		}
	}
	require.GreaterOrEqual(t, len(scripts), 13)
	scripts["named"] = calls + `
		refused("it takes temp, top_p, min_p, ", calls["lm.sampler"], {temperature = 1})
		refused('"temp"; it takes caches, max_tokens, sampler, ', calls["lm.stream"], {temp = 1})
		refused('lm.stream: unknown keyword "stop"', calls["lm.stream"], {stop = {[5] = true}})
		refused('lm.Session.answer: unknown keyword "padding"', calls["lm.Session.answer"], {padding = {1}})
		refused('lm.quantize.predicate: unknown keyword "group"', calls["lm.quantize"],
			{predicate = function() return {group = 32} end})
		refused("lm.quantize.predicate: options is a number", calls["lm.quantize"], {predicate = function() return 4 end})
		refused('lm: cache:attend: unknown keyword "sale"; it takes scale, softcap, sinks', function()
			local caches, x = lm.caches(session.model), mx.zeros({1, 2, 1, 16})
			caches.layers[1]:attend(caches, x, x, x, {sale = 1})
		end)
		assert(not host.kind("saved"))`
	// A table of an answer, empty or come back, is one for what an answer is made of.
	scripts["handed on"] = calls + `
		local function all() return {max_tokens = 2, temp = 1, top_k = 5, xtc_probability = 0.5, repetition_penalty = 1.1,
			logit_bias = {[3] = 1}, max_kv = 30, chunk = 4, stop = "never", ends = {[5] = true}, progress = function() end} end
		local o = all()
		said(prompt, o)
		assert(o.said and o.figures.tokens == 2)
		for _, table in ipairs{all(), o} do
			assert(lm.caches(session.model, table):key():find("window=30", 1, true))
			assert(#lm.processors(table) == 2)
			equal(lm.sampler(table)(mx.zeros({1, 9})).ndim, 1)
		end
		o.caches = nil
		said(prompt, o)
		said({7, 8, 9})
		equal(#lm.generate(session.model, prompt, {max_tokens = 3, stop = {[599] = true}, chunk = 1}), 3)`
	sessions(t, scripts)
}

// A model is computed in floats.
func TestModelDtypes(t *testing.T) {
	sessions(t, map[string]string{"dtype": `
		for _, dtype in ipairs{mx.int8, mx.uint32, mx.bool, mx.complex64, "float16", 16, true} do
			local text = ("dtype = %s, want one of floats: mx.float16, "):format(tostring(dtype))
			refused("lm.load: " .. text, lm.load, "tiny", {dtype = dtype})
			refused("lm.load: " .. text, lm.load, "nowhere", {dtype = dtype})
			refused("lm.cast: " .. text, lm.cast, session.model, dtype)
		end
		local tokens = mx.array({{1, 2, 3}}, mx.int32)
		local want = session.model(tokens, lm.caches(session.model))
		for _, dtype in ipairs{mx.float16, mx.bfloat16, mx.float32, mx.float64} do
			local scores = mx.stream(mx.cpu, function()
				local model = lm.load("tiny", {dtype = dtype})
				local out = model(tokens, lm.caches(model))
				mx.eval(out)
				return out
			end)
			equal(scores.dtype, dtype)
			assert(mx.allclose(scores:astype(mx.float32), want, 0.05, 0.05):item())
		end`})
}

// A number that is no token of the model is named, wherever a caller gives it: an index from the end is none.
func TestModelTokens(t *testing.T) {
	sessions(t, map[string]string{"tokens": `
		local model, many = session.model, {}
		for i = 1, 40 do many[i] = i end
		local function first(prompt, o) for token in lm.stream(model, prompt, o) do return token end end
		local function array(...) return mx.array({{...}}, mx.int32) end
		local function prefill(...) return lm.prefill(model, array(...), lm.caches(model)) end
		for id, want in pairs{[-1] = "want an integer from 0", [600] = "want less than the 600 tokens there are"} do
			local function wrong(op, what, f, ...)
				refused(("%s: %s has the token %d, %s"):format(op, what, id, want), f, ...)
			end
			wrong("lm.Session.answer", "the prompt", said, {1, id})
			wrong("lm.Session.answer", "ends", said, {1}, {ends = {[id] = true}})
			wrong("lm.Session.answer", "xtc_special_tokens", said, {1}, {xtc_special_tokens = {id}})
			wrong("lm.generate", "the prompt", lm.generate, model, {1, id})
			wrong("lm.generate", "stop", lm.generate, model, {1}, {stop = {[id] = true}})
			wrong("lm.perplexity", "tokens", lm.perplexity, model, {id, unpack(many)}, {length = 8})
			wrong("lm.prefill", "the prompt", prefill, 1, id)
			wrong("lm.stream", "context", first, {1}, {context = {id}})
			for _, prompt in ipairs{{1, id}, {{1, 2}, {id}}, array(1, id), array(id, 1)[0]} do
				wrong("lm.stream", "the prompt", first, prompt)
			end
			wrong("lm.processors", "logit_bias", function()
				lm.processors({logit_bias = {[id] = 1}})[1](nil, mx.zeros({1, 600}))
			end)
			wrong("lm.sampler", "xtc_special_tokens", function()
				local o = {temp = 1, xtc_probability = 1, xtc_special_tokens = {id}}
				lm.sampler(o)(mx.zeros({1, 600}))
			end)
		end
		refused("the prompt has the token 1.5, want an integer", said, {1.5})
		refused("the prompt has the token hi, want an integer", first, {"hi"})
		refused("stop has 1 = 5, want {[token] = true}", lm.generate, model, {1}, {stop = {5}})
		assert(first({0, 599}) and first(array(599, 0)))
		local o = {max_tokens = 1, temp = 1, xtc_probability = 1} -- an end of the directory's that the model does not have
		session.ends[600] = true
		said({1}, o)
		session.ends[600] = nil`})
}
