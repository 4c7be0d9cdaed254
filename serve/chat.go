package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/mlxlua/mlxlua/text/says"
)

// chat is POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	f, err := s.body(w, r)
	if err != nil {
		return err
	}
	name, n, stream, usage := f.choices()
	base := request{}
	f.drawing(base)
	f.length(base, "max_tokens", "max_completion_tokens")
	f.stops(base, 16)
	if f.flag("ignore_eos") {
		base["ignore_end"] = true
	}
	base["messages"] = f.messages()
	if f.flag("logprobs") {
		best, _ := f.count("top_logprobs", 0, 20)
		base["ranked"] = float64(best)
	} else if _, ok := f.take("top_logprobs"); ok {
		f.fail("top_logprobs", "top_logprobs needs logprobs: true")
	}
	f.rendering(base)
	seed := f.seed()
	f.ignored()
	f.only("modalities", `["text"]`)
	want := f.tools()
	f.format(&want)
	if err := f.done(); err != nil {
		return err
	}
	a, spoken, err := s.converse(r.Context(), name, base, want, seed, n)
	if err != nil {
		return err
	}
	defer a.end()
	c := &chatting{s: s, a: a, id: newID("chatcmpl-"), model: name, created: time.Now().Unix(),
		choices: make([]chatChoice, n)}
	for i := range c.choices {
		c.choices[i].spoken = spoken
	}
	if stream {
		return c.stream(w, r, usage)
	}
	return c.whole(w, r)
}

// rendering reads what the chat template is given beside the messages.
func (f *fields) rendering(r request) {
	var arguments map[string]any
	f.value("chat_template_kwargs", "an object", &arguments)
	if effort := f.text("reasoning_effort"); effort != "" {
		if arguments == nil {
			arguments = map[string]any{}
		}
		arguments["reasoning_effort"] = effort
	}
	if arguments != nil {
		r["arguments"] = arguments
	}
	if f.flag("continue_final_message") {
		r["continue"] = true
	}
}

// message is one of a conversation, as chat templates know it.
type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	Name       string     `json:"name,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Reasoning  string     `json:"reasoning_content,omitempty"`
}

// toolCall is a call of a tool. In a conversation arguments are what their JSON says, where it is an object.
type toolCall struct {
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// messages reads a conversation, and gives it as the JSON that a chat template is given.
func (f *fields) messages() string {
	raw, ok := f.take("messages")
	if !ok {
		f.fail("messages", "you must provide messages")
		return ""
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		f.fail("messages", "messages is %s, want a list of messages", short(raw))
		return ""
	}
	if len(list) == 0 {
		f.fail("messages", "messages is empty")
	}
	out := make([]message, len(list))
	for i, m := range list {
		one := &fields{raw: m, taken: map[string]bool{}}
		out[i] = one.message()
		if err := one.done(); err != nil && f.err == nil {
			bad := failureOf(err)
			f.fail("messages", "messages[%d]: %s", i, bad.message)
		}
	}
	return encoded(out)
}

// message reads one message.
func (f *fields) message() (m message) {
	m.Role = f.text("role")
	switch m.Role {
	case "system", "user", "assistant", "tool", "developer":
	case "":
		f.fail("role", "there is no role")
	default:
		f.fail("role", "the role is %q, want system, developer, user, assistant or tool", m.Role)
	}
	m.Content = f.content()
	m.Name, m.ToolCallID, m.Reasoning = f.text("name"), f.text("tool_call_id"), f.text("reasoning_content")
	f.only("refusal")
	f.only("annotations", "[]")
	f.only("audio")
	f.only("function_call")
	if f.value("tool_calls", "a list of calls", &m.ToolCalls) {
		if m.Role != "assistant" {
			f.fail("tool_calls", "only an assistant calls tools")
		}
		for i := range m.ToolCalls {
			c := &m.ToolCalls[i].Function
			var text string
			if json.Unmarshal(c.Arguments, &text) == nil && json.Valid([]byte(text)) {
				c.Arguments = json.RawMessage(text)
			}
			if len(c.Arguments) == 0 {
				c.Arguments = json.RawMessage("{}")
			}
		}
	}
	if m.Role == "tool" && m.ToolCallID == "" {
		f.fail("tool_call_id", "the answer of a tool needs the tool_call_id that it belongs to")
	}
	return m
}

// content is a message's text, or that of its parts.
func (f *fields) content() string {
	raw, ok := f.take("content")
	if !ok {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct{ Type, Text, Refusal string }
	if json.Unmarshal(raw, &parts) != nil {
		f.fail("content", "content is %s, want a text or a list of parts", short(raw))
		return ""
	}
	var all []string
	for _, p := range parts {
		switch p.Type {
		case "text":
			all = append(all, p.Text)
		case "refusal":
			all = append(all, p.Refusal)
		default:
			f.fail("content", "a part has the type %q: models read text only here, no pictures and no sound", p.Type)
		}
	}
	return strings.Join(all, "")
}

// encoded is a value as JSON, with <, > and & as they are: chat templates show it.
func encoded(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("BUG: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// chatting is a request to /v1/chat/completions that is being answered.
type chatting struct {
	s       *Server
	a       *answers
	id      string
	model   string
	created int64
	choices []chatChoice
}

// chatChoice is what there is of one answer.
type chatChoice struct {
	spoken
	begun  bool
	probs  []any
	ranked bool
	tokens int
}

// add notes a token, and gives it in OpenAI's form.
func (c *chatChoice) add(t *token) {
	if t == nil {
		return
	}
	c.ranked = true
	one := func(r ranked) map[string]any {
		numbers := make([]int, len(r.bytes)) // a []byte would be written as base64
		for i := range numbers {
			numbers[i] = int(r.bytes[i])
		}
		return map[string]any{"token": readable(r.bytes), "logprob": r.logprob, "bytes": numbers}
	}
	o := one(t.ranked)
	best := []any{}
	for _, b := range t.best {
		best = append(best, one(b))
	}
	o["top_logprobs"] = best
	c.probs = append(c.probs, o)
}

// taken is logprobs of what was noted since the last call; nil: there are none.
func (c *chatChoice) taken() any {
	if !c.ranked {
		return nil
	}
	list := c.probs
	c.probs = nil
	if list == nil {
		list = []any{}
	}
	return map[string]any{"content": list, "refusal": nil}
}

func (c *chatting) object(kind string, choices []any) map[string]any {
	return map[string]any{"id": c.id, "object": kind, "created": c.created, "model": c.model, "choices": choices,
		"system_fingerprint": nil}
}

// calls are calls of tools in OpenAI's form, numbered from a number on.
func calls(list []says.Call, from int, streamed bool) []any {
	out := make([]any, len(list))
	for i, c := range list {
		o := map[string]any{"id": newID("call_"), "type": "function", "function": map[string]any{"name": c.Name,
			"arguments": c.Arguments}}
		if streamed {
			o["index"] = from + i
		}
		out[i] = o
	}
	return out
}

// take notes an event, and ends an answer that has its one call.
func (c *chatting) take(i int, e event) []says.Part {
	choice := &c.choices[i]
	choice.add(e.token)
	choice.tokens++
	parts := choice.spoken.take(c.a.jobs[i], e)
	if choice.over {
		c.a.drop(i, choice.tokens)
	}
	return parts
}

// whole answers at once.
func (c *chatting) whole(w http.ResponseWriter, r *http.Request) error {
	err := c.a.each(r.Context(), func(i int, e event) error {
		c.take(i, e)
		return nil
	})
	if err != nil {
		return err
	}
	c.s.metrics.answered(c.a.first)
	list := make([]any, len(c.choices))
	for i := range c.choices {
		choice := &c.choices[i]
		message := map[string]any{"role": "assistant", "content": choice.content.String(), "refusal": nil}
		if choice.thought.Len() > 0 {
			message["reasoning_content"] = choice.thought.String()
		}
		if len(choice.calls) > 0 {
			message["tool_calls"] = calls(choice.calls, 0, false)
			if choice.content.Len() == 0 {
				message["content"] = nil
			}
		}
		list[i] = map[string]any{"index": i, "message": message, "finish_reason": choice.reason, "logprobs": choice.taken()}
	}
	o := c.object("chat.completion", list)
	o["usage"] = c.a.usage(c.a.jobs[0].prompt)
	reply(w, http.StatusOK, o)
	return nil
}

// stream answers piece by piece.
func (c *chatting) stream(w http.ResponseWriter, r *http.Request, usage bool) error {
	out := newSSE(w)
	send := func(i int, delta map[string]any, reason, probs any) error {
		o := c.object("chat.completion.chunk", []any{map[string]any{"index": i, "delta": delta, "finish_reason": reason,
			"logprobs": probs}})
		if usage {
			o["usage"] = nil
		}
		return out.send("", o)
	}
	err := c.a.each(r.Context(), func(i int, e event) error {
		choice := &c.choices[i]
		if !choice.begun {
			choice.begun = true
			if err := send(i, map[string]any{"role": "assistant", "content": ""}, nil, nil); err != nil {
				return err
			}
		}
		before := len(choice.calls)
		parts := c.take(i, e)
		if len(parts) == 0 && e.token != nil {
			parts = []says.Part{{}} // the token's probabilities
		}
		for _, p := range parts {
			delta := map[string]any{"content": p.Content}
			switch {
			case p.Call != nil:
				delta = map[string]any{"tool_calls": calls([]says.Call{*p.Call}, before, true)}
				before++
			case p.Thought != "":
				delta = map[string]any{"reasoning_content": p.Thought}
			}
			if err := send(i, delta, nil, choice.taken()); err != nil {
				return err
			}
		}
		if choice.over {
			return send(i, map[string]any{}, choice.reason, nil)
		}
		return nil
	})
	if err == nil {
		c.s.metrics.answered(c.a.first)
		if usage {
			o := c.object("chat.completion.chunk", []any{})
			o["usage"] = c.a.usage(c.a.jobs[0].prompt)
			err = out.send("", o)
		}
	}
	out.finish(err)
	return err
}

// converse hands a conversation to a model: n answers that are what is wanted. What it returns has to be ended.
func (s *Server) converse(ctx context.Context, name string, base request, want wish, seed uint64, n int) (*answers,
	spoken, error) {
	m, release, err := s.models.get(ctx, name)
	if err != nil {
		return nil, spoken{}, err
	}
	form := says.FormOf(m.template)
	if err := want.put(base, form); err != nil {
		release()
		return nil, spoken{}, err
	}
	var list []request
	for k := range n {
		one := maps.Clone(base)
		one["seed"] = seedOf(seed, k)
		list = append(list, one)
	}
	a, err := s.ask(ctx, m, release, list)
	return a, spoken{form: form, tools: want.rendered != "", single: want.single}, err
}
