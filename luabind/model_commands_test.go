package luabind

import "testing"

// commands is what scripts of sessions call `mlxlua lm` by: lines(...) is the status and what a command writes and
// notes; line(text, ...) wants a command to fail in one line that has the text.
const commands = `
function lines(...)
	local out, notes = {}, {}
	local status = require("lm.cli").run({...}, {write = function(text) out[#out + 1] = text end,
		note = function(text) notes[#notes + 1] = text end})
	return status, table.concat(out), table.concat(notes)
end
function line(text, ...)
	local status, _, notes = lines(...)
	if status ~= 1 or not notes:find(text, 1, true) or not notes:match("^mlxlua lm: [^\n]+\n$") or
		notes:find(".lua:", 1, true) then
		error(("status %d, %q, want %q"):format(status, notes, text), 2)
	end
end
function generated(...)
	local status, out, notes = lines("generate", "--model", "tiny", "-m", "6", ...)
	if status ~= 0 then error(notes, 2) end
	return out
end
function answer(...) return generated("--verbose", "false", ...) end
chat = "{% for m in messages %}<{{ m.role }}> {{ m.content }} </{{ m.role }}>{% endfor %}<assistant>"
host.write("chat", chat)
`

// What is wrong with a command is said in a line, whoever found it.
func TestModelCommandsFailInALine(t *testing.T) {
	sessions(t, map[string]string{
		"options": commands + `
			line("--prompt and --prompt-file exclude each other", "generate", "--model", "tiny", "-p", "a", "--prompt-file",
				"b")
			for _, option in ipairs{"--system-prompt", "--chat-template", "--chat-template-config"} do
				line("--ignore-chat-template and " .. option .. " exclude each other", "generate", "--model", "tiny", "-p", "a",
					"--ignore-chat-template", option, "{}")
			end
			for _, option in ipairs{"--system-prompt", "--chat-template-config"} do
				line(option .. " needs a chat template, and tiny has none: see --chat-template", "generate", "--model", "tiny",
					"-p", "a", option, "{}")
			end
			line("--chat-template-config needs a chat template", "chat", "--model", "tiny", "--chat-template-config", "{}")
			assert(answer("-p", "a", "--chat-template", "chat", "--system-prompt", "b"))
			local _, help = lines("generate", "--help")
			assert(help:find("most tokens of an answer (100)", 1, true))
			_, help = lines("chat", "--help")
			assert(help:find("most tokens of an answer (256)", 1, true))`,
		"ops": commands + `
			local function answers(text, ...) line(text, "generate", "--model", "tiny", "-p", "a", ...) end
			answers("want a positive integer", "--prefill-step-size", "0")
			answers('stop has ""', "--stop", "")
			answers("logit_bias has the token 99999, want less than the 600 tokens", "--logit-bias", "99999=1")
			answers("want a number for token 5, not x", "--logit-bias", '{"5": "x"}')
			answers("-5 is no token's number", "--logit-bias", '{"-5": 1}')
			answers("[random.seed]", "--seed", "1e30")
			answers("[save_safetensors] cannot create nowhere/a.safetensors", "--prompt-cache-file", "nowhere/a")
			answers("heads of 16 elements cannot be packed", "--kv-bits", "8")
			line("[quantize] group_size is 16", "quantize", "--model", "tiny", "--mlx-path", "packed", "--q-group-size", "16")
			line("[load] cannot open nowhere.gguf", "show", "--model", "nowhere.gguf")
			host.mkdir("damaged")
			host.copy("tiny/config.json", "damaged/config.json")
			host.write("damaged/model.safetensors", host.read("tiny/model.safetensors"):sub(1, 1000))
			line("[load] damaged/model.safetensors: the file ends within its header", "show", "--model", "damaged")
			refused("attempt to", require("lm.cli").run, {"show", "--model", "tiny"}, {write = function() local x; x.y = 1 end})
			refused("logit_bias has x for the token 1", lm.processors, {logit_bias = {[1] = "x"}})
			refused("logit_bias has the token 0.5, want an integer", lm.processors, {logit_bias = {[0.5] = 1}})`,
	})
}

// A file of a prompt serves all prompts, with a chat template, too, and reads again what they do not share.
func TestModelCommandsKeepPrompts(t *testing.T) {
	sessions(t, map[string]string{"prompts": commands + `
		local function tokens(...) return tonumber(generated(...):match("Prompt: (%d+) tokens")) end
		local prompt = "hello there my good friend, how are you"
		for _, more in ipairs{{"--kv-group-size", "64"}, {"--chat-template", "chat"}} do
			local file = "kept" .. more[1]
			local function fresh(text) return answer("-p", text, unpack(more)) end
			local function kept(text) return answer("-p", text, "--prompt-cache-file", file, unpack(more)) end
			equal(kept(prompt), fresh(prompt))
			assert(host.kind(file .. ".safetensors"))
			for _, text in ipairs{prompt, prompt .. " today", "other", prompt:sub(1, 20)} do equal(kept(text), fresh(text)) end
			assert(tokens("-p", prompt .. " today", "--prompt-cache-file", file .. ".safetensors", unpack(more)) <
				tokens("-p", prompt .. " today", unpack(more)) - 10)
		end
		local asked = 0
		local status = require("lm.cli").run({"generate", "--model", "tiny", "-p", prompt, "--prompt-cache-file", "never",
			"--prefill-step-size", "1"}, {write = error, note = function() end, interrupted = function()
			asked = asked + 1
			return asked == 3
		end})
		assert(status == 130 and asked == 3 and not host.kind("never.safetensors"))
		host.mkdir("twin")
		for _, name in ipairs(host.files("tiny")) do host.copy("tiny/" .. name, "twin/" .. name) end
		line("is of the model tiny, not of twin", "generate", "--model", "twin", "-p", prompt, "--prompt-cache-file",
			"kept--chat-template")`,
	})
}

// convert and show leave for later what is computed of weights; perplexity has mlx-lm's defaults and no NaN.
func TestModelCommandsMeasure(t *testing.T) {
	sessions(t, map[string]string{
		"whole": commands + `
			local _, out = lines("quantize", "--model", "tiny", "--mlx-path", "packed")
			assert(out:find("left whole, since their rows are no multiple of a group: 2 layers, " ..
				"model.layers.0.mlp.down_proj, model.layers.1.mlp.down_proj\n", 1, true), out)
			lines("quantize", "--model", "packed", "--mlx-path", "all", "--q-group-size", "32")
			line("all is packed already", "quantize", "--model", "all", "--mlx-path", "again", "--q-group-size", "32")
			line("no layer of tiny has rows that are a multiple of a group", "quantize", "--model", "tiny", "--mlx-path",
				"again", "--q-group-size", "128")`,
		"lazy": commands + `
			local load, lazy = lm.load, {}
			lm.load = function(name, options)
				lazy[#lazy + 1] = options.lazy or false
				return load(name, options)
			end
			lines("show", "--model", "tiny")
			lines("convert", "--model", "tiny", "--mlx-path", "lazy")
			answer("-p", "a")
			lm.load = load
			equal(table.concat({tostring(lazy[1]), tostring(lazy[2]), tostring(lazy[3])}, " "), "true true false")`,
		"perplexity": commands + `
			local tokens = {}
			for i = 1, 1100 do tokens[i] = (i * 37) % 600 end
			local model = session.model
			equal(lm.perplexity(model, tokens).tokens, 2 * 511)
			equal(lm.perplexity(model, tokens, {length = 8, samples = 3}).tokens, 3 * 7)
			local one = lm.perplexity(model, tokens, {length = 2, samples = 1})
			assert(one.tokens == 1 and one.error == nil and one.perplexity > 1)
			for _, o in ipairs{{length = 1}, {length = 2.5}, {batch = 0}, {samples = 0}, {samples = "x"}} do
				local name = next(o)
				refused(("lm.perplexity: %s = %s, want an integer"):format(name, o[name]), lm.perplexity, model, tokens, o)
			end
			refused("3 tokens are less than a sequence of 4", lm.perplexity, model, {1, 2, 3}, {length = 4})
			host.write("text", "hello there")
			local _, out = lines("perplexity", "--model", "tiny", "--data-path", "text", "--sequence-length", "2",
				"--num-samples", "1")
			assert(out:match("^Perplexity: %d+%.%d+\n"), out)`,
	})
}
