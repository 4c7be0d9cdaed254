package luabind

import (
	"context"
	"regexp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/docs"
	"github.com/mlxlua/mlxlua/scripts"
)

// The manual describes a package's functions that are written in Lua by the comments above them, as it describes ops by
// those of Go's functions; packagePlain describes those that are written in Go.

// packageTables are the tables whose functions help knows, by their names in the manual: the package itself, and the
// classes of what it makes.
func packageTables(s *State) map[string]*lua.LTable {
	out := map[string]*lua.LTable{}
	add := func(name string, v lua.LValue) {
		if t, ok := v.(*lua.LTable); ok {
			out[name] = t
		}
	}
	add("lm", s.packages.loaded.RawGetString("lm"))
	add("lm.Session", s.packages.loaded.RawGetString("lm.text"))
	add("lm.host", s.packages.loaded.RawGetString("lm.host"))
	if lm := out["lm"]; lm != nil {
		add("lm.Config", lm.RawGetString("Config"))
		add("lm.Weights", lm.RawGetString("Weights"))
	}
	return out
}

// packageObjects are the words for an object of a class in usages.
var packageObjects = map[string]string{"lm.Session": "session", "lm.Config": "config", "lm.Weights": "w"}

// inPackage is the manual's name of a function, a class or an object of a package; "" if it is none.
func inPackage(s *State, v lua.LValue) string {
	switch v := v.(type) {
	case *lua.LFunction:
		if v.IsG { // it has its name beside it
			if n := len(v.Upvalues); n > 0 {
				if name, ok := v.Upvalues[n-1].Value().(lua.LString); ok && docs.Help(string(name)) != "" {
					return string(name)
				}
			}
			return ""
		}
		for name, t := range packageTables(s) {
			for key, f := t.Next(lua.LNil); key != lua.LNil; key, f = t.Next(key) {
				if f == lua.LValue(v) {
					return name + "." + key.String()
				}
			}
		}
	case *lua.LTable:
		class, _ := v.Metatable.(*lua.LTable)
		for name, t := range packageTables(s) {
			if t == v || t == class {
				return name
			}
		}
	}
	return ""
}

// packageHelp is what help says of a name in a package, "lm.load" or "lm.Session"; "" if it is none.
func packageHelp(name string) string {
	if len(name) > mostQuoted {
		return ""
	}
	if text := docs.Help(name); text != "" && docs.Full(name) == name {
		return docs.Usage(name) + "\n" + text
	}
	root, _, _ := strings.Cut(name, ".")
	var lines []string
	for _, full := range docs.Package(root, "") {
		if last, ok := strings.CutPrefix(full, name+"."); ok && !strings.Contains(last, ".") {
			lines = append(lines, docs.Usage(full))
		}
	}
	if name == "lm" {
		lines = append(lines, `lm = require("lm") gives the package; docs/lm.md explains it.
help("lm.Session") lists the functions of what lm.open gives, help("lm.tokenizer") those of its
field tokenizer, help("lm.host") those of require("lm.host"): JSON, chat templates, files;
help("lm.Config") and help("lm.Weights") are for model scripts.`)
	}
	return strings.Join(lines, "\n")
}

// InPackage reports whether help knows a name of the packages that come with the program: lm, lm.load, lm.Session.
func InPackage(name string) bool { return packageHelp(name) != "" }

// packageEntries are the manual's entries of the packages.
func packageEntries(s *State) (out []ManualEntry) {
	if _, err := s.Run(context.Background(), strings.NewReader(`require("lm") require("lm.text")`), "lm"); err != nil {
		panic("BUG: scripts: " + err.Error())
	}
	for name, t := range packageTables(s) {
		for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
			if f, ok := v.(*lua.LFunction); ok && !f.IsG {
				if e, ok := commented(f.Proto, name+"."+key.String(), packageObjects[name]); ok {
					out = append(out, e)
				}
			}
		}
	}
	for _, f := range packagePlain {
		out = append(out, ManualEntry{f.name, f.usage(), wrapped(f.help)})
	}
	return out
}

// declaration is the line that a function of a package begins with.
var declaration = regexp.MustCompile(`^(?:local )?function (?:\w+([.:]))?(\w+)\((.*?)\)`)

// commented is the entry of a function that a package's file declares below a comment. Its first word is the function's
// name there.
func commented(p *lua.FunctionProto, name, object string) (e ManualEntry, ok bool) {
	text, err := scripts.Packages.ReadFile(p.SourceName)
	if err != nil {
		return e, false
	}
	lines := strings.Split(string(text), "\n")
	at := p.LineDefined - 1
	m := declaration.FindStringSubmatch(lines[at])
	if m == nil {
		return e, false
	}
	var comment []string
	for at > 0 && strings.HasPrefix(lines[at-1], "-- ") {
		at--
		comment = append(comment, strings.TrimPrefix(lines[at], "-- "))
	}
	if len(comment) == 0 {
		return e, false
	}
	slices.Reverse(comment)
	last := name[strings.LastIndexByte(name, '.')+1:]
	help := strings.Join(comment, " ")
	if rest, ok := strings.CutPrefix(help, m[2]+" "); ok {
		help = last + " " + rest
	}
	owner := object + ":"
	if m[1] != ":" {
		owner = strings.TrimSuffix(name, last)
	}
	return ManualEntry{name, owner + last + "(" + m[3] + ")", wrapped(help)}, true
}

// packagePlain describes the functions of packages that are written in Go.
var packagePlain = []*function{
	{name: "lm.host.decode", written: "host.decode(text)",
		help: "What a text of JSON says: objects and arrays are tables, null is host.null. Of a text that is no " +
			"JSON nil, and why."},
	{name: "lm.host.encode", written: "host.encode(value, indent=\"\")",
		help: "A value as JSON, on one line or indented. A table with host.array as its metatable, or with the " +
			"items 1 to n and no names, is an array, any other an object with its names sorted. Of what JSON has " +
			"not nil, and why."},
	{name: "lm.host.list", written: "host.list(t)",
		help: "The table t, which host.encode writes as an array from now on."},
	{name: "lm.host.tokenizer", written: "host.tokenizer(path)",
		help: "The tokenizer of a model directory (tokenizer.json with tokenizer_config.json) or of a .gguf file: " +
			"a table of functions, see lm.tokenizer.encode, with the fields bos, eos, pad, unk, chat_template " +
			"and templates, where the model has them, and size, the number of tokens. nil, and why, if there is " +
			"none that can be read."},
	{name: "lm.host.gguf_tokenizer", written: "host.gguf_tokenizer(path)",
		help: "The tokenizer of a .gguf file as the text of a tokenizer.json."},
	{name: "lm.host.render", written: "host.render(template, variables, open, tools=\"\", messages=\"\")",
		help: "A conversation as the text that a chat template makes of it. variables, an object of JSON, has the " +
			"list messages, unless that is given as JSON of its own; open says whether the model's answer begins at " +
			"the end; tools is a list in JSON. nil, and why, if the template fails."},
	{name: "lm.host.drawer", written: "host.drawer(rules, past, count)",
		help: "An object that chooses the tokens of one text, for host.draw. rules is a table of temp, top_p, min_p, " +
			"min_tokens_to_keep, top_k, logit_bias, repetition_penalty, presence_penalty and frequency_penalty, as " +
			"lm.sampler and lm.processors have them, context_size, how far back penalties look (20), seed, and form, what " +
			"tokenizer.grammar gives; past " +
			"are the tokens that the text has begun with, count is how many there are. nil, and why, of rules that " +
			"cannot be meant."},
	{name: "lm.host.draw", written: "host.draw(scores, drawers, ranked)",
		help: "The next token of several texts, each by its own drawer: of scores (texts, vocabulary), a list of " +
			"drawers, in which false takes the best token, and a list that says of how many of the best tokens the " +
			"probabilities are wanted, false for none. A list of tables: token, and logprob and best, a list of " +
			"{token, logprob}, where they were wanted; or why, what went wrong with that text."},
	{name: "lm.host.kind", written: "host.kind(path)",
		help: "\"file\" or \"directory\"; nil, and why, of what is not there."},
	{name: "lm.host.cached", written: "host.cached(name)",
		help: "The path of a repository's model in the cache of the model hub: a directory, or a .gguf file. nil, and " +
			"why, of what is not there: nothing is downloaded."},
	{name: "lm.host.files", written: "host.files(path)",
		help: "The names in a directory, sorted."},
	{name: "lm.host.read", written: "host.read(path)",
		help: "All of a file, as a text; nil, and why, of what cannot be read."},
	{name: "lm.host.mkdir", written: "host.mkdir(path)",
		help: "Makes a directory, with those that lead to it."},
	{name: "lm.host.beside", written: "host.beside(path)",
		help: "Makes a directory of a name of its own beside a path, and gives its path: for what gets that path " +
			"by host.rename when all of it is there."},
	{name: "lm.host.rename", written: "host.rename(from, to)",
		help: "Gives a file or a directory another name."},
	{name: "lm.host.remove", written: "host.remove(path)",
		help: "Removes a file, or a directory with all that is in it."},
	{name: "lm.host.copy", written: "host.copy(from, to)",
		help: "Copies a file."},
	{name: "lm.host.write", written: "host.write(path, text)",
		help: "Writes a text to a file."},
	{name: "lm.host.save", written: "host.save(path, arrays, metadata, written)",
		help: "Writes a .safetensors file of a table of arrays by name and one of texts by name. It evaluates one " +
			"array after the other, and calls written(name) after each."},
	{name: "lm.tokenizer.encode", written: "tokenizer.encode(text, special=true)",
		help: "The numbers of a text's tokens, a list; special says whether the tokenizer adds its own at the " +
			"ends. nil, and why, if it cannot."},
	{name: "lm.tokenizer.decode", written: "tokenizer.decode(tokens, skip_special=false)",
		help: "The text of a list of numbers, with or without special tokens."},
	{name: "lm.tokenizer.stream", written: "tokenizer.stream(skip_special=false)",
		help: "A table with push(token), which gives the text that is whole now, \"\" in the middle of a " +
			"character, and finish(), which gives the rest."},
	{name: "lm.tokenizer.bytes", written: "tokenizer.bytes(id)",
		help: "The bytes that the token of a number adds to a text that has begun, which need not be whole " +
			"characters; nil if there is none."},
	{name: "lm.tokenizer.grammar", written: "tokenizer.grammar(form, size, ends, after=\"\")",
		help: "An object for host.drawer that lets only those tokens come which go on with a text of a form: JSON of " +
			"{\"choices\": [[part, ...], ...]}, where a part is {\"text\": ...} or {\"schema\": ...}. size is how many " +
			"tokens there are, ends is a list of those that end a text; the form begins behind the text after, if there is " +
			"one. nil, and why, of a form " +
			"that texts cannot be held to."},
	{name: "lm.tokenizer.id", written: "tokenizer.id(token)",
		help: "The number of a token that is given as a text; nil if there is none."},
	{name: "lm.tokenizer.token", written: "tokenizer.token(id)",
		help: "The token of a number, as a text; nil if there is none."},
}
