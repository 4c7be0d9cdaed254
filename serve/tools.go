package serve

import (
	"encoding/json"
	"regexp"

	"github.com/mlxlua/mlxlua/text/grammar"
	"github.com/mlxlua/mlxlua/text/says"
)

// wish is what an answer has to be, beside a text: calls of tools, or JSON.
type wish struct {
	tools    []tool
	rendered string // tools, as a chat template is given them
	choice   string // "none", "auto", "required", or "tool"
	name     string // of the one tool that has to be called
	single   bool   // one call at most
	schema   json.RawMessage
}

// tool is one that a model may call.
type tool struct {
	Name       string
	Parameters json.RawMessage
	Strict     bool
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// tools reads tools and tool_choice.
func (f *fields) tools() (w wish) {
	var list []struct {
		Type     string
		Function struct {
			Name        string
			Description string
			Parameters  json.RawMessage
			Strict      *bool
		}
	}
	if f.value("tools", "a list of tools", &list) && len(list) > 0 {
		for i, t := range list {
			switch {
			case t.Type != "function":
				f.fail("tools", "tools[%d] has the type %q, want function", i, t.Type)
			case !toolName.MatchString(t.Function.Name):
				f.fail("tools", "tools[%d] has the name %q, want letters, digits, _, . and -", i, t.Function.Name)
			}
			w.tools = append(w.tools, tool{t.Function.Name, t.Function.Parameters,
				t.Function.Strict != nil && *t.Function.Strict})
		}
		w.rendered = string(f.raw["tools"])
	}
	w.choice = "none"
	if len(w.tools) > 0 {
		w.choice = "auto"
	}
	if raw, ok := f.take("tool_choice"); ok {
		var word string
		var one struct {
			Type     string
			Function struct{ Name string }
		}
		switch {
		case json.Unmarshal(raw, &word) == nil && (word == "none" || word == "auto" || word == "required"):
			w.choice = word
		case word == "" && json.Unmarshal(raw, &one) == nil && one.Type == "function":
			w.choice, w.name = "tool", one.Function.Name
		default:
			f.fail("tool_choice", "tool_choice is %s, want none, auto, required or a function", short(raw))
		}
		w.check(f)
	}
	var parallel bool
	if f.value("parallel_tool_calls", "true or false", &parallel) {
		w.single = !parallel
	}
	if w.choice == "none" {
		w.rendered = ""
	}
	return w
}

// check refuses a choice of tools that there are not.
func (w *wish) check(f *fields) {
	known := false
	for _, t := range w.tools {
		known = known || t.Name == w.name
	}
	switch {
	case w.choice == "tool" && !known:
		f.fail("tool_choice", "tool_choice names %q, which is none of the tools", w.name)
	case w.choice != "none" && len(w.tools) == 0:
		f.fail("tool_choice", "tool_choice is only allowed where there are tools")
	}
}

// format reads response_format.
func (f *fields) format(w *wish) {
	var v struct {
		Type   string
		Schema *struct {
			Name, Description string
			Schema            json.RawMessage
			Strict            *bool
		} `json:"json_schema"`
	}
	if !f.value("response_format", "an object", &v) {
		return
	}
	switch v.Type {
	case "text":
	case "json_object":
		w.schema = json.RawMessage(`{"type":"object"}`)
	case "json_schema":
		if v.Schema == nil || v.Schema.Schema == nil {
			f.fail("response_format", "response_format has no json_schema with a schema")
			return
		}
		w.schema = v.Schema.Schema
		if _, err := grammar.Compile(formOf(grammar.Part{Schema: w.schema}), nil); err != nil {
			f.fail("response_format", "%v", err)
		}
	default:
		f.fail("response_format", "response_format has the type %q, want text, json_object or json_schema", v.Type)
	}
}

func formOf(parts ...grammar.Part) grammar.Form {
	return grammar.Form{Choices: [][]grammar.Part{parts}}
}

// called are the texts around a tool's arguments in a form of calls; false: it cannot be held to that.
func called(form says.Form, name string) (before, after string, ok bool) {
	if form.Channels {
		return "<|channel|>commentary to=functions." + name + " <|constrain|>json<|message|>", "", true
	}
	if len(form.Calls) == 0 {
		return "", "", false
	}
	quoted := encoded(name)
	switch form.Calls[0].Name {
	case "hermes", "coder", "glm":
		return "<tool_call>\n{\"name\": " + quoted + ", \"arguments\": ", "}\n</tool_call>", true
	case "llama":
		return "{\"name\": " + quoted + ", \"parameters\": ", "}", true
	case "mistral":
		return "[TOOL_CALLS][{\"name\": " + quoted + ", \"arguments\": ", "}]", true
	case "deepseek":
		return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>" + name + "<｜tool▁sep｜>",
			"<｜tool▁call▁end｜><｜tool▁calls▁end｜>", true
	case "kimi":
		return "<|tool_calls_section_begin|><|tool_call_begin|>functions." + name + ":0<|tool_call_argument_begin|>",
			"<|tool_call_end|><|tool_calls_section_end|>", true
	}
	return "", "", false
}

// put adds what is wished to a request to a model that writes in a form.
func (w *wish) put(r request, form says.Form) error {
	if w.rendered != "" {
		if len(form.Calls) == 0 && !form.Channels {
			return invalid("tools", "the chat template of this model knows no tools")
		}
		r["tools"] = w.rendered
	}
	if marks := form.Marked(w.rendered != ""); len(marks) > 0 {
		list := make([]any, len(marks))
		for i, m := range marks {
			list[i] = m
		}
		r["shown"] = list
	}
	if form.Think.Open != "" {
		r["think"] = []any{form.Think.Open, form.Think.Close}
	}
	g, err := w.grammar(form)
	if err != nil || g == nil {
		return err
	}
	if _, err := grammar.Compile(*g, nil); err != nil {
		return invalid("tools", "%v", err)
	}
	r["grammar"] = encoded(g)
	if form.Channels && w.schema != nil && w.rendered == "" {
		r["after"] = "<|channel|>final<|message|>"
	}
	return nil
}

// grammar is the form that an answer has to have; nil: it is free.
func (w *wish) grammar(form says.Form) (*grammar.Form, error) {
	g := &grammar.Form{}
	strict := false
	for _, t := range w.tools {
		strict = strict || t.Strict
		if w.choice == "none" || w.choice == "tool" && t.Name != w.name {
			continue
		}
		schema := t.Parameters
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		before, after, ok := called(form, t.Name)
		if !ok {
			if w.choice == "auto" && w.schema == nil && !strict {
				continue
			}
			return nil, invalid("tool_choice", "this model's form of calls is one that answers cannot be held to")
		}
		g.Choices = append(g.Choices, []grammar.Part{{Text: before}, {Schema: schema}, {Text: after}})
	}
	switch {
	case w.schema != nil && (w.choice == "none" || w.choice == "auto"):
		g.Choices = append(g.Choices, []grammar.Part{{Schema: w.schema}})
	case w.choice == "none", w.choice == "auto" && !strict:
		return nil, nil
	case w.choice == "auto": // what begins as a call is one
		g.Optional, g.After = true, mark(form)
		for i := range g.Choices {
			parts := g.Choices[i]
			parts[0].Text = parts[0].Text[len(g.After):]
		}
		if g.After == "" {
			return nil, invalid("tools", "strict tools need tool_choice: required with this model's form of calls")
		}
	}
	return g, nil
}

// mark is the text that a call begins with, "" for none.
func mark(form says.Form) string {
	if form.Channels || form.Calls[0].Name == "llama" {
		return ""
	}
	return form.Calls[0].Open
}
