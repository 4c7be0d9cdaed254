package luabind

import (
	"context"
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/text/template"
	"github.com/mlxlua/mlxlua/text/tokenizer"
)

// openTokenizer is the tokenizer of a model directory or of a .gguf file as a table of functions: encode(text, special)
// gives a list of numbers, decode(list, skip_special) a text, stream(skip_special) a table of push(number) and finish()
// for text while it comes, id(token) and token(id) what the other is, or nil, bytes(id) what it adds to a text,
// and grammar(form, size, ends) what may come next in a text of a form. Its fields are what is said beside: bos,
// eos, chat_template and templates.
func openTokenizer(s *State) hostFunction {
	return onFiles(s, func(L *lua.LState) (lua.LValue, error) {
		open := tokenizer.Open
		if strings.HasSuffix(L.CheckString(1), ".gguf") {
			open = func(path string) (*tokenizer.Tokenizer, *tokenizer.Config, error) {
				return ggufTokenizer(s.Context(), path)
			}
		}
		tok, config, err := open(L.CheckString(1))
		if err != nil {
			return nil, err
		}
		t := s.NewTable(0, 16)
		for name, v := range map[string]string{"bos": config.BOS, "eos": config.EOS, "pad": config.PAD,
			"unk": config.UNK, "chat_template": config.ChatTemplate} {
			if v != "" {
				t.RawSetString(name, lua.LString(v))
			}
		}
		templates := s.NewTable(0, len(config.Templates))
		for name, v := range config.Templates {
			templates.RawSetString(name, lua.LString(v))
		}
		t.RawSetString("templates", templates)
		t.RawSetString("size", lua.LNumber(tok.Size()))
		weight := s.Weigh(tok.Bytes())
		for name, f := range map[string]lua.LGFunction{
			"encode": func(L *lua.LState) int { return encodeText(s, L, tok) },
			"decode": func(L *lua.LState) int {
				ids, err := tokenNumbers(L.CheckTable(1))
				if err != "" {
					L.ArgError(1, err)
				}
				L.Push(lua.LString(tok.Decode(ids, L.OptBool(2, false))))
				return 1
			},
			"stream": func(L *lua.LState) int {
				L.Push(tokenStream(s, tok.Stream(L.OptBool(1, false))))
				return 1
			},
			"grammar": grammars(s, tok),
			"bytes": func(L *lua.LState) int {
				if b, ok := tok.TokenBytes(int32(L.CheckInt(1))); ok {
					L.Push(lua.LString(b))
					return 1
				}
				return 0
			},
			"id": func(L *lua.LState) int {
				if id, ok := tok.ID(L.CheckString(1)); ok {
					L.Push(lua.LNumber(id))
					return 1
				}
				return 0
			},
			"token": func(L *lua.LState) int {
				if text, ok := tok.Token(int32(L.CheckInt(1))); ok {
					L.Push(lua.LString(text))
					return 1
				}
				return 0
			},
		} {
			f = withDot(s, "tokenizer."+name, 2, f)
			t.RawSetString(name, s.Func(f, weight, t, lua.LString("lm.tokenizer."+name))) // its name, for help, is last
		}
		return t, nil
	})
}

// ggufTokenizer is the tokenizer that a .gguf file describes itself.
func ggufTokenizer(ctx context.Context, path string) (*tokenizer.Tokenizer, *tokenizer.Config, error) {
	g, err := readGGUF(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	return tokenizer.FromGGUF(g)
}

// readGGUF is what a .gguf file says of its tokenizer.
func readGGUF(ctx context.Context, path string) (*tokenizer.GGUF, error) {
	_, about, err := format.LoadGGUF(path)
	if err != nil {
		return nil, err
	}
	const prefix = "tokenizer.ggml."
	text := func(key string) string { v, _ := about[key].(string); return v }
	list := func(key string) []string { v, _ := about[prefix+key].([]string); return v }
	id := func(key string) int32 {
		if v := numbersOf[int32](ctx, about[prefix+key]); len(v) == 1 {
			return v[0]
		}
		return -1
	}
	flag := func(key string) *bool {
		v := numbersOf[bool](ctx, about[prefix+key])
		if len(v) != 1 {
			return nil
		}
		return &v[0]
	}
	return &tokenizer.GGUF{
		Model: text(prefix + "model"), Pre: text(prefix + "pre"), Tokens: list("tokens"), Merges: list("merges"),
		Scores: numbersOf[float32](ctx, about[prefix+"scores"]),
		Types:  numbersOf[int32](ctx, about[prefix+"token_type"]),
		BOS:    id("bos_token_id"), EOS: id("eos_token_id"), UNK: id("unknown_token_id"), PAD: id("padding_token_id"),
		AddBOS: flag("add_bos_token"), AddEOS: flag("add_eos_token"), AddSpacePrefix: flag("add_space_prefix"),
		ChatTemplate: text("tokenizer.chat_template"),
	}, nil
}

// numbersOf are the numbers of a .gguf file's metadata, none if it is something else.
func numbersOf[T int32 | float32 | bool](ctx context.Context, v any) []T {
	x, ok := v.(*tensor.Array)
	if !ok {
		return nil
	}
	like := ops.FromSlice([]T{}, []int{0})
	out, err := ops.ToSlice[T](ctx, ops.AsType(x, like.DType()))
	if err != nil {
		return nil
	}
	return out
}

func encodeText(s *State, L *lua.LState, tok *tokenizer.Tokenizer) int {
	ids, err := tok.Encode(L.CheckString(1), L.OptBool(2, true))
	if err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	out := s.NewTable(len(ids), 0)
	for _, id := range ids {
		out.Append(lua.LNumber(id))
	}
	L.Push(out)
	return 1
}

// tokenNumbers are a list's numbers, and what is wrong with it.
func tokenNumbers(t *lua.LTable) (ids []int32, wrong string) {
	for i := 1; i <= t.Len(); i++ {
		n, ok := t.RawGetInt(i).(lua.LNumber)
		if !ok || float64(n) != float64(int32(n)) {
			return nil, "element " + describe(t.RawGetInt(i)) + " is no token's number"
		}
		ids = append(ids, int32(n))
	}
	return ids, ""
}

// tokenStream is a stream of tokens that become text.
func tokenStream(s *State, stream *tokenizer.Stream) lua.LValue {
	t := s.NewTable(0, 1)
	t.RawSetString("push", s.Func(withDot(s, "stream.push", 1, func(L *lua.LState) int {
		L.Push(lua.LString(stream.Push(int32(L.CheckInt(1)))))
		return 1
	}), t))
	t.RawSetString("finish", s.Func(withDot(s, "stream.finish", 1, func(L *lua.LState) int {
		L.Push(lua.LString(stream.Finish()))
		return 1
	}), t))
	return t
}

// templateBytes is what a byte of a template's source takes at most, when it is parsed.
const templateBytes = 64

// renderChat is a conversation as a text: of a chat template, an object of the template's variables with the list
// messages in it, whether the answer begins at the end, a list of tools, "" for none, and the messages themselves where
// they are not among the variables. All but the third are JSON. What that takes is the script's.
func renderChat(s *State, L *lua.LState) (lua.LValue, error) {
	taken := lua51.Hold(s.State)
	defer taken.End()
	take := func(bytes int) error { return taken.Add(int64(bytes)) }
	source := L.CheckString(1)
	if err := take(templateBytes * len(source)); err != nil {
		return nil, err
	}
	t, err := template.Parse(source)
	if err != nil {
		return nil, err
	}
	v, err := template.ReadJSON(L.CheckString(2), take)
	if err != nil {
		return nil, err
	}
	chat := template.Chat{AddGenerationPrompt: L.CheckBool(3), Arguments: template.NewDict()}
	vars, ok := v.(*template.Dict)
	if !ok {
		return nil, errors.New("the variables of a chat template are no JSON object")
	}
	for _, key := range vars.Keys() {
		value, _ := vars.Get(key)
		if key != "messages" {
			chat.Arguments.Set(key, value)
		} else if chat.Messages, ok = value.(*template.List); !ok {
			return nil, errors.New("the messages of a conversation are no list")
		}
	}
	if messages := L.OptString(5, ""); messages != "" {
		if v, err = template.ReadJSON(messages, take); err != nil {
			return nil, err
		}
		if chat.Messages, ok = v.(*template.List); !ok {
			return nil, errors.New("the messages of a conversation are no list")
		}
	}
	if chat.Messages == nil {
		return nil, errors.New("a conversation needs messages")
	}
	if tools := L.OptString(4, ""); tools != "" {
		if v, err = template.ReadJSON(tools, take); err != nil {
			return nil, err
		}
		if chat.Tools, ok = v.(*template.List); !ok {
			return nil, errors.New("the tools of a conversation are no list")
		}
	}
	text, err := t.Apply(s.Context(), chat, template.Options{Limits: template.Limits{
		Memory: int(max(s.opt.Limits.Memory, 256<<20)), Take: take}})
	return lua.LString(text), err
}
