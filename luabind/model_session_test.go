package luabind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// sessions runs scripts over one tiny model. They have mx, lm, host, session, a directory dir, the folder testdata/lm,
// refused(text, f, ...), which wants an error that has the text, and said(prompt, options), the whole of an answer.
func sessions(t *testing.T, scripts map[string]string) {
	t.Helper()
	folder, err := filepath.Abs("testdata/lm")
	require.NoError(t, err)
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.Close()
	t.Chdir(t.TempDir())
	tinyModel(t, s, folder)
	_, err = s.Run(t.Context(), strings.NewReader(`
		host, session, dir, folder = require("lm.host"), lm.open("tiny"), ...
		function refused(text, f, ...)
			local ok, why = pcall(f, ...)
			if ok then error("no error, want " .. text, 2) end
			if not tostring(why):find(text, 1, true) then error(("the error is %s, want %s"):format(tostring(why), text), 2) end
		end
		function said(prompt, options)
			local out = {}
			for piece in session:answer(prompt, options) do out[#out + 1] = piece end
			return table.concat(out)
		end
		function equal(got, want)
			if got ~= want then error(("got %q, want %q"):format(tostring(got), tostring(want)), 2) end
		end`), "sessions.lua", lua.LString(t.TempDir()), lua.LString(folder))
	require.NoError(t, err)
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			_, err := s.Run(t.Context(), strings.NewReader(script), "script")
			require.NoError(t, err)
		})
	}
}

// A message that the model goes on with is what transformers 5.23's render_jinja_template gives with
// continue_final_message; only of an empty one in a template that trims it takes the line ends before it, too.
func TestModelGoesOn(t *testing.T) {
	sessions(t, map[string]string{"rendered": `
		local head = "{% for m in messages %}<{{ m.role }}>\n\n"
		local trims, keeps = head .. "{{ m.content | trim }}<end>{% endfor %}", head .. "{{ m.content }}<end>{% endfor %}"
		local parts = "{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}"
		local thinks = "{% for m in messages %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}<end>{% endfor %}"
		local function render(template, content, user)
			local messages = {{role = "user", content = user or "Sure, hi"}, {role = "assistant", content = content}}
			local text = session:rendered(messages, {template = template, continue = true})
			assert(#messages == 2 and messages[2].content == content)
			return text
		end
		local before = "<user>\n\nSure, hi<end><assistant>\n\n"
		equal(render(trims, "Sure, "), before .. "Sure,")
		equal(render(trims, "Sure,"), before .. "Sure,")
		equal(render(trims, " Sure, yes \n"), before .. "Sure, yes")
		equal(render(trims, ""), before)
		equal(render(keeps, ""), before)
		equal(render(keeps, "Sure, "), before .. "Sure, ")
		equal(render(keeps, "Sure,\n"), before .. "Sure,\n")
		equal(render(keeps, "hi"), before .. "hi")
		equal(render(thinks, "a", "q"), "q<end>a")
		local q = {{type = "text", text = "q"}}
		local content = {{type = "text", text = "a"}, {type = "text", text = "b "}, {type = "image"}}
		equal(render(parts, content, q), "[q][a][b ")
		equal(content[2].text, "b ")
		refused("the chat template has changed the last message", render, thinks, "a</think>\n\nb")
		refused("the chat template has changed the last message", render, "{{ messages[0].content }}", "Sure")
		refused("has no text to go on with: its content is nil", render, trims, nil)
		refused("has no text to go on with", render, parts, {{type = "image"}}, q)
		refused("message 2 has a part of the type image: models read text only here", session.conversation, session,
			{{role = "user", content = q}, {role = "user", content = content}}, {template = parts})
		refused("there is no message to go on with", session.rendered, session, {}, {template = trims, continue = true})`,
	})
}

// Answers: what ends them, what the next one reads, and what is wrong with their options.
func TestModelAnswers(t *testing.T) {
	sessions(t, map[string]string{
		// An answer that its reader leaves at the last token, or that fails, leaves the next one what a fresh one is.
		"left": `
			local prompt = session:tokens("hello there my good friend")
			local function longer(o)
				local out = {unpack(prompt)}
				for _, id in ipairs(o.said) do out[#out + 1] = id end
				for _, id in ipairs(session:tokens(" and now you")) do out[#out + 1] = id end
				return out
			end
			local o = {max_tokens = 4}
			for _ in session:answer(prompt, o) do
				if o.figures.tokens == 4 then break end
			end
			local next_prompt = longer(o)
			o.max_tokens = 12
			equal(said(next_prompt, o), said(next_prompt, {max_tokens = 12}))
			assert(o.figures.prompt_tokens < #next_prompt - #prompt)
			local asked = 0
			o = {max_tokens = 4, chunk = 1, interrupted = function()
				asked = asked + 1
				return asked == 3
			end}
			said(prompt, o)
			assert(o.figures.reason == "interrupted" and o.caches.offset == 3)
			o.interrupted, o.max_tokens = nil, 12
			equal(said(next_prompt, o), said(next_prompt, {max_tokens = 12}))
			o = {max_tokens = 4}
			said(prompt, o)
			o.progress, o.chunk = function() error("no more") end, 1
			next_prompt = longer(o)
			refused("no more", said, next_prompt, o)
			o.progress, o.chunk, o.max_tokens = nil, nil, 12
			equal(said(next_prompt, o), said(next_prompt, {max_tokens = 12}))`,
		"trim": `
			local caches = lm.caches(session.model)
			mx.eval(lm.prefill(session.model, mx.array({{1, 2, 3}}, mx.int32), caches))
			refused("trim: -1 tokens", caches.trim, caches, -1)
			assert(caches:trim(2) and caches.offset == 1)
			assert(caches:trim(2) == false and caches.offset == 1)`,
		"stop": `
			local prompt = session:tokens("hello there")
			local whole = said(prompt, {max_tokens = 8})
			local stop = whole:sub(3, 4)
			local first = whole:sub(1, whole:find(stop, 1, true) - 1)
			equal(said(prompt, {max_tokens = 8, stop = stop}), first)
			equal(said(prompt, {max_tokens = 8, stop = {"never said", stop}}), first)
			refused('stop has ""', said, prompt, {stop = ""})
			refused('stop has ""', said, prompt, {stop = {"a", ""}})
			refused('stop has "3"', said, prompt, {stop = {3}})
			refused("stop = true, want a text", said, prompt, {stop = true})
			refused("max_tokens = x, want a number", said, prompt, {max_tokens = "x"})
			refused("ends has 1 = 308, want {[token] = true}", said, prompt, {ends = {308}})`,
		// XTC drops every token but the least probable one, and leaves those that end the answer.
		"xtc": `
			local prompt = session:tokens("hello there")
			local best = lm.generate(session.model, prompt, {max_tokens = 1})[1]
			local o = {max_tokens = 1, temp = 0.001, xtc_probability = 1, xtc_threshold = 0}
			said(prompt, o)
			assert(o.figures.reason == "length" and o.said[1] ~= best)
			o = {max_tokens = 1, temp = 0.001, xtc_probability = 1, xtc_threshold = 0, ends = {[best] = true}}
			said(prompt, o)
			equal(o.figures.reason, "stop")
			o.xtc_special_tokens = {}
			said(prompt, o)
			equal(o.figures.reason, "length")`,
		"generation_config.json": `
			host.mkdir(dir .. "/ends")
			for _, name in ipairs(host.files("tiny")) do host.copy("tiny/" .. name, dir .. "/ends/" .. name) end
			local path = dir .. "/ends/generation_config.json"
			host.write(path, '{"eos_token_id": [7, 8]}')
			assert(lm.open(dir .. "/ends").ends[8])
			for _, text in ipairs{'{"eos_token_id": [7, 8', "[", "null", "3"} do
				host.write(path, text)
				refused(path, lm.open, dir .. "/ends")
			end`,
		"prompts": `
			local function first(prompt, o) for token in lm.stream(session.model, prompt, o) do return token end end
			for _, prompt in ipairs{{}, {{1, 2}, {}}, mx.zeros({0}, mx.int32), mx.zeros({1, 0}, mx.int32)} do
				refused("the prompt is empty", first, prompt, {max_tokens = 1})
			end
			for _, most in ipairs{1, 2.5, -3, "x"} do
				refused("max_kv = " .. tostring(most) .. ", want at least 2, an integer", lm.caches, session.model, {max_kv = most})
			end
			for _, chunk in ipairs{0, -1, 1.5, 1 / 0, "x"} do
				refused("chunks of " .. tostring(chunk), first, {1, 2, 3}, {chunk = chunk})
			end`,
	})
}

// A file of a prompt is read by the model and with the caches that it is of, and by no other.
func TestModelPromptFiles(t *testing.T) {
	sessions(t, map[string]string{"files": `
		local function model(settings)
			local config, arrays = lm.Config.read("tiny"), lm.weights(session.model)
			for k, v in pairs(settings) do config.settings[k] = v end
			for k, v in pairs(lm.weights(session.model)) do
				if settings.num_hidden_layers == 4 then
					arrays[k:gsub("layers%.0", "layers.2"):gsub("layers%.1", "layers.3")] = v
				end
			end
			return lm.build(arrays, config)
		end
		local tokens = mx.array({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, mx.int32)
		local function saved(name, o)
			local caches = lm.caches(session.model, o)
			mx.eval(lm.prefill(session.model, tokens, caches))
			caches:save(name)
		end
		local function read(name, o, other)
			local all = {file = name}
			for k, v in pairs(o or {}) do all[k] = v end
			local caches = lm.caches(other or session.model, all)
			return (other or session.model)(mx.array({{11}}, mx.int32), caches):tolist()[1][1][1]
		end
		saved("plain")
		saved("six.safetensors", {max_kv = 6})
		assert(host.kind("plain.safetensors") and host.kind("six.safetensors"))
		local whole = session.model(mx.concatenate({tokens, mx.array({{11}}, mx.int32)}, 1), lm.caches(session.model))
		assert(math.abs(read("plain") - whole[0]:tolist()[11][1]) < 1e-5)
		read("plain.safetensors")
		read("six", {max_kv = 6})
		refused("six.safetensors is of other caches: layer 0 is kv window=6 keep=4 there, kv here", read, "six")
		refused("layer 0 is kv there, kv window=6 keep=4 here", read, "plain", {max_kv = 6})
		refused("layer 0 is kv there, packed bits=8 group_size=64 here", read, "plain", {kv_bits = 8})
		refused("layer 2 is none there, kv here", read, "plain", nil, model{num_hidden_layers = 4})
		local arrays, about = mx.load("plain.safetensors", {return_metadata = true})
		arrays["1.1"] = nil
		mx.save_safetensors("less.safetensors", arrays, about)
		refused("less.safetensors is damaged: layer 1 has 1 arrays, want 2", read, "less")
		arrays["1.1"], arrays["1.2"] = arrays["1.0"], arrays["1.0"]
		mx.save_safetensors("more.safetensors", arrays, about)
		refused("more.safetensors is damaged: layer 1 has 3 arrays, want 2", read, "more")
		mx.save_safetensors("other.safetensors", arrays)
		refused("other.safetensors is no file of a prompt", read, "other")`,
	})
}

// host.read gives all of a file, which counts as the script's memory, or nil and why.
func TestModelHostReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"some": "a\r\n\x00b", "none": "", "much": strings.Repeat("x", 9<<20)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := New(Options{Libraries: true, Limits: Limits{Limits: lua51.Limits{Memory: 8 << 20}}})
	defer s.Close()
	_, err := s.Run(t.Context(), strings.NewReader(`
		read, dir = require("lm.host").read, ...
		assert(read(dir .. "/some") == "a\r\n\0b" and read(dir .. "/none") == "")
		for _, path in ipairs{dir .. "/nowhere", dir} do
			local text, why = read(path)
			assert(text == nil and why:find(path, 1, true), why)
		end`), "read.lua", lua.LString(dir))
	require.NoError(t, err)
	_, err = s.Run(t.Context(), strings.NewReader(`return read(dir .. "/much")`), "read.lua")
	require.ErrorIs(t, err, ErrLimit)
}

// Keys and values that are packed after some tokens answer as mlx-lm 0.32.2's generate_step does, with kv_bits = 2,
// kv_group_size = 32 and these quantized_kv_start.
func TestModelPacksLater(t *testing.T) {
	sessions(t, map[string]string{"start": `
		package.path = folder .. "/?.lua;" .. package.path
		local weights = require("weights")
		local golden = weights.golden(folder .. "/peer", "mistral")
		weights.write("wide", weights.arrays(golden), golden.config)
		local model, prompt = lm.load("wide"), {}
		for i = 0, 13 do prompt[i + 1] = (i * 37 + 5) % 128 end
		for start, want in pairs{
			[14] = {{101, 101, 101, 101, 101, 101, 101, 28, 122, 20, 20, 94, 101, 28, 20, 28},
				{-3.8581, -3.7855, -3.7059, -3.6594, -3.6632, -3.7156, -3.7947, -3.8252, -3.6851, -3.8333, -4.0422, -4.0475,
				-3.8871, -3.8332, -3.8961, -3.9261}},
			[20] = {{101, 101, 101, 101, 122, 101, 101, 101, 101, 28, 122, 20, 122, 101, 94, 94},
				{-3.8581, -3.6339, -3.6142, -3.624, -3.664, -3.7107, -3.7455, -3.8408, -3.877, -3.9055, -3.7607, -3.984, -4.0338,
				-4.0903, -3.9632, -4.0178}},
		} do
			local how, at = {kv_bits = 2, kv_group_size = 32, quantized_kv_start = start}, 0
			for token, scores in lm.stream(model, prompt, {caches = lm.caches(model, how), max_tokens = 16}) do
				at = at + 1
				equal(token, want[1][at])
				local p = (scores - mx.logsumexp(scores, -1, true))[0][token]:item()
				if math.abs(p - want[2][at]) > 2e-4 then error(("%d, token %d: %g, want %g"):format(start, at, p, want[2][at])) end
			end
			equal(at, 16)
		end
		how = {kv_bits = 8, quantized_kv_start = 1000}
		refused("heads of 32 elements cannot be packed in groups of 64", function()
			for _ in lm.stream(model, prompt, {caches = lm.caches(model, how), max_tokens = 3}) do end
		end)
		local caches = lm.caches(model, how)
		mx.eval(lm.prefill(model, mx.array({{1}}, mx.int32), caches))
		caches:save("later")
		how.file = "later"
		assert(lm.caches(model, how):key() == "kv;kv")
		how.quantized_kv_start = 1
		refused("layer 0 is kv there, packed bits=8 group_size=64 here", lm.caches, model, how)`,
	})
}
