package serve

import (
	"encoding/json"
	"net/http"
	"strings"
)

// messages is POST /v1/messages, Anthropic's form of a conversation.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	f, err := s.body(w, r)
	if err != nil {
		return err
	}
	base := request{"temp": 1.0}
	name := f.text("model")
	stream := f.flag("stream")
	if _, ok := f.raw["max_tokens"]; !ok {
		f.fail("max_tokens", "max_tokens: Field required")
	}
	f.length(base, "max_tokens")
	for field, as := range map[string]string{"temperature": "temp", "top_p": "top_p"} {
		if v, ok := f.number(field, 0, 1); ok {
			base[as] = v
		}
	}
	if n, ok := f.count("top_k", 0, 1<<31-1); ok {
		base["top_k"] = float64(n)
	}
	f.raw["stop"] = f.raw["stop_sequences"]
	f.taken["stop_sequences"] = true
	if f.raw["stop"] == nil {
		delete(f.raw, "stop")
	}
	f.stops(base, 0)
	base["messages"] = f.blocks()
	want := f.anthropicTools()
	f.thinking(base)
	f.only("metadata")
	f.only("service_tier", `"auto"`, `"standard_only"`)
	if err := f.done(); err != nil {
		return err
	}
	a, spoken, err := s.converse(r.Context(), name, base, want, f.seed(), 1)
	if err != nil {
		return err
	}
	defer a.end()
	c := &letter{s: s, a: a, spoken: spoken, id: newID("msg_"), model: name}
	if stream {
		return c.stream(w, r)
	}
	return c.whole(w, r)
}

// thinking reads whether the model is to think aloud, which some chat templates know as enable_thinking.
func (f *fields) thinking(r request) {
	var v struct {
		Type   string
		Budget float64 `json:"budget_tokens"`
	}
	if !f.value("thinking", "an object", &v) {
		return
	}
	switch v.Type {
	case "enabled", "adaptive":
		r["arguments"] = map[string]any{"enable_thinking": true}
	case "disabled":
		r["arguments"] = map[string]any{"enable_thinking": false}
	default:
		f.fail("thinking", "thinking has the type %q, want enabled or disabled", v.Type)
	}
}

// anthropicTools reads tools and tool_choice.
func (f *fields) anthropicTools() (w wish) {
	var list []struct {
		Type        string
		Name        string
		Description string
		Schema      json.RawMessage `json:"input_schema"`
	}
	if f.value("tools", "a list of tools", &list) && len(list) > 0 {
		var rendered []any
		for i, t := range list {
			switch {
			case t.Type != "" && t.Type != "custom":
				f.fail("tools", "tools[%d] has the type %q, which is not supported", i, t.Type)
			case !toolName.MatchString(t.Name):
				f.fail("tools", "tools[%d] has the name %q, want letters, digits, _, . and -", i, t.Name)
			}
			w.tools = append(w.tools, tool{Name: t.Name, Parameters: t.Schema})
			function := map[string]any{"name": t.Name, "parameters": t.Schema}
			if t.Description != "" {
				function["description"] = t.Description
			}
			rendered = append(rendered, map[string]any{"type": "function", "function": function})
		}
		w.rendered = encoded(rendered)
	}
	w.choice = "none"
	if len(w.tools) > 0 {
		w.choice = "auto"
	}
	var choice struct {
		Type   string
		Name   string
		Single bool `json:"disable_parallel_tool_use"`
	}
	if f.value("tool_choice", "an object", &choice) {
		w.single = choice.Single
		switch choice.Type {
		case "auto", "none":
			w.choice = choice.Type
		case "any":
			w.choice = "required"
		case "tool":
			w.choice, w.name = "tool", choice.Name
		default:
			f.fail("tool_choice", "tool_choice has the type %q, want auto, any, tool or none", choice.Type)
		}
		w.check(f)
	}
	if w.choice == "none" {
		w.rendered = ""
	}
	return w
}

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// blocksOf are the parts of a message's content, which may be a text alone.
func (f *fields) blocksOf(param string, raw json.RawMessage) (list []block) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	if json.Unmarshal(raw, &list) != nil {
		f.fail(param, "%s: the content is %s, want a text or a list of blocks", param, short(raw))
	}
	return list
}

// blocks reads system and messages, and gives the conversation as a chat template knows it.
func (f *fields) blocks() string {
	var out []message
	if raw, ok := f.take("system"); ok {
		text := ""
		for _, b := range f.blocksOf("system", raw) {
			text += b.Text
		}
		out = append(out, message{Role: "system", Content: text})
	}
	var list []struct {
		Role    string
		Content json.RawMessage
	}
	if !f.value("messages", "a list of messages", &list) || len(list) == 0 {
		f.fail("messages", "messages: at least one message is required")
		return ""
	}
	for i, m := range list {
		if m.Role != "user" && m.Role != "assistant" {
			f.fail("messages", "messages.%d.role: %q, want user or assistant", i, m.Role)
		}
		one := message{Role: m.Role}
		var texts []string
		for _, b := range f.blocksOf("messages", m.Content) {
			switch {
			case b.Type == "text":
				texts = append(texts, b.Text)
			case b.Type == "thinking" && m.Role == "assistant":
				one.Reasoning += b.Thinking
			case b.Type == "redacted_thinking" && m.Role == "assistant":
			case b.Type == "tool_use" && m.Role == "assistant":
				one.ToolCalls = append(one.ToolCalls, toolCall{b.ID, "function", toolFunction{b.Name, b.Input}})
			case b.Type == "tool_result" && m.Role == "user":
				text := ""
				if b.Content != nil {
					for _, part := range f.blocksOf("messages", b.Content) {
						if part.Type != "text" {
							f.fail("messages", "messages.%d: a result has the type %q: models read text only here", i, part.Type)
						}
						text += part.Text
					}
				}
				out = append(out, message{Role: "tool", Content: text, ToolCallID: b.ToolUseID})
			default:
				f.fail("messages", "messages.%d: a block has the type %q: models read text only here, no pictures and no sound",
					i, b.Type)
			}
		}
		one.Content = strings.Join(texts, "")
		if len(texts) > 0 || len(one.ToolCalls) > 0 || one.Reasoning != "" {
			out = append(out, one)
		}
	}
	return encoded(out)
}

// letter is a request to /v1/messages that is being answered.
type letter struct {
	s *Server
	a *answers
	spoken
	id     string
	model  string
	tokens int
	opened string // the type of the block that is open, in a stream
	count  int    // of blocks
}

// take notes an event.
func (c *letter) take(e event) []part {
	c.tokens++
	var out []part
	for _, p := range c.spoken.take(c.a.jobs[0], e) {
		switch {
		case p.Call != nil:
			out = append(out, part{"tool_use", p.Call.Arguments, map[string]any{"type": "tool_use", "id": newID("toolu_"),
				"name": p.Call.Name, "input": map[string]any{}}})
		case p.Thought != "":
			out = append(out, part{"thinking", p.Thought, map[string]any{"type": "thinking", "thinking": "", "signature": ""}})
		case p.Content != "":
			out = append(out, part{"text", p.Content, map[string]any{"type": "text", "text": ""}})
		}
	}
	if c.over {
		c.a.drop(0, c.tokens)
	}
	return out
}

// part is a piece of a block: its type, its text, and the block as it begins.
type part struct {
	kind, text string
	block      map[string]any
}

// stopReason is why an answer ended, in Anthropic's words, and the text that ended it.
func (c *letter) stopReason() (reason string, text any) {
	switch {
	case c.reason == "tool_calls":
		return "tool_use", nil
	case c.reason == "length":
		return "max_tokens", nil
	case c.stop != "":
		return "stop_sequence", c.stop
	}
	return "end_turn", nil
}

// usage is what was used.
func (c *letter) usage(said int) map[string]any {
	prompt := c.a.jobs[0].prompt
	return map[string]any{"input_tokens": prompt - min(c.a.cached, prompt), "cache_read_input_tokens": min(c.a.cached,
		prompt),
		"cache_creation_input_tokens": 0, "output_tokens": said}
}

// object is the message.
func (c *letter) object(content []any, said int) map[string]any {
	o := map[string]any{"id": c.id, "type": "message", "role": "assistant", "model": c.model, "content": content,
		"stop_reason": nil, "stop_sequence": nil, "usage": c.usage(said)}
	if c.over {
		o["stop_reason"], o["stop_sequence"] = c.stopReason()
	}
	return o
}

// whole answers at once.
func (c *letter) whole(w http.ResponseWriter, r *http.Request) error {
	content := []any{}
	kind := ""
	err := c.a.each(r.Context(), func(_ int, e event) error {
		for _, p := range c.take(e) {
			field := p.kind
			if p.kind == "tool_use" {
				p.block["input"] = json.RawMessage(p.text)
				content, kind = append(content, p.block), ""
				continue
			}
			if p.kind != kind {
				content, kind = append(content, p.block), p.kind
			}
			b := content[len(content)-1].(map[string]any)
			b[field] = b[field].(string) + p.text
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.s.metrics.answered(c.a.first)
	reply(w, http.StatusOK, c.object(content, c.a.said))
	return nil
}

// stream answers piece by piece.
func (c *letter) stream(w http.ResponseWriter, r *http.Request) error {
	out := newSSE(w)
	err := out.send("message_start", map[string]any{"type": "message_start", "message": c.object([]any{}, 0)})
	if err == nil {
		err = c.a.each(r.Context(), func(_ int, e event) error {
			for _, p := range c.take(e) {
				if err := c.piece(out, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		_ = out.send("error", failureOf(err).body(true))
		return err
	}
	c.s.metrics.answered(c.a.first)
	if err := c.close(out); err != nil {
		return err
	}
	reason, text := c.stopReason()
	err = out.send("message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": reason,
		"stop_sequence": text}, "usage": c.usage(c.a.said)})
	if err == nil {
		err = out.send("message_stop", map[string]any{"type": "message_stop"})
	}
	return err
}

// piece writes a piece of a block, which it opens if need be.
func (c *letter) piece(out *sse, p part) error {
	if c.opened != p.kind || p.kind == "tool_use" {
		if err := c.close(out); err != nil {
			return err
		}
		c.opened = p.kind
		if err := out.send("content_block_start", map[string]any{"type": "content_block_start", "index": c.count,
			"content_block": p.block}); err != nil {
			return err
		}
	}
	delta := map[string]any{"type": "text_delta", "text": p.text}
	switch p.kind {
	case "tool_use":
		delta = map[string]any{"type": "input_json_delta", "partial_json": p.text}
	case "thinking":
		delta = map[string]any{"type": "thinking_delta", "thinking": p.text}
	}
	return out.send("content_block_delta", map[string]any{"type": "content_block_delta", "index": c.count, "delta": delta})
}

// close ends the block that is open.
func (c *letter) close(out *sse) error {
	if c.opened == "" {
		return nil
	}
	c.opened = ""
	c.count++
	return out.send("content_block_stop", map[string]any{"type": "content_block_stop", "index": c.count - 1})
}
