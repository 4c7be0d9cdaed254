// Package says takes apart what a language model says: what it thinks, what it tells, and which tools it calls, in the
// forms that families of models have learned. It knows text only, and takes it piece by piece.
package says

import (
	"strings"
)

// Form is how a model writes.
type Form struct {
	Think Marks   // around what it thinks; empty: it does not tell that apart
	Calls []Calls // how it calls tools
	// Channels says that what is said is split into channels, as gpt-oss does.
	Channels bool
}

// Marks are the texts around a part of what is said.
type Marks struct{ Open, Close string }

// Calls is one form of calls. Read gives the calls in a text that stood between the marks; false: it is none.
type Calls struct {
	Marks
	Read func(body string) ([]Call, bool)
	Bare bool // the call is all that is said: there are no marks
	Name string
}

// Call is a call of a tool. Arguments is a JSON object.
type Call struct{ Name, Arguments string }

// Part is a piece of what was said: one of the three.
type Part struct {
	Content, Thought string
	Call             *Call
}

// FormOf is the form of a model with that chat template. It is found by the marks that the template writes.
func FormOf(template string) Form {
	has := func(s string) bool { return strings.Contains(template, s) }
	var f Form
	switch {
	case has("<|channel|>") && has("<|message|>"):
		f.Channels = true
		return f
	case has("[THINK]"):
		f.Think = Marks{"[THINK]", "[/THINK]"}
	case has("<seed:think>"):
		f.Think = Marks{"<seed:think>", "</seed:think>"}
	case has("<think>") || has("</think>"):
		f.Think = Marks{"<think>", "</think>"}
	}
	switch {
	case has("<minimax:tool_call>"):
		f.Calls = []Calls{{Marks: Marks{"<minimax:tool_call>", "</minimax:tool_call>"}, Read: readInvokes, Name: "minimax"}}
	case has("<|tool_calls_section_begin|>"):
		f.Calls = []Calls{{Marks: Marks{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}, Read: readKimi,
			Name: "kimi"}}
	case has("<｜tool▁calls▁begin｜>"):
		f.Calls = []Calls{{Marks: Marks{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}, Read: readDeepseek, Name: "deepseek"}}
	case has("<arg_key>"):
		f.Calls = []Calls{{Marks: Marks{"<tool_call>", "</tool_call>"}, Read: readGLM, Name: "glm"}}
	case has("<function="):
		f.Calls = []Calls{{Marks: Marks{"<tool_call>", "</tool_call>"}, Read: readFunctions, Name: "coder"}}
	case has("<tool_call>"):
		f.Calls = []Calls{{Marks: Marks{"<tool_call>", "</tool_call>"}, Read: readObject, Name: "hermes"}}
	case has("[TOOL_CALLS]"):
		f.Calls = []Calls{{Marks: Marks{Open: "[TOOL_CALLS]"}, Read: readMistral, Name: "mistral"}}
	case has("<|tool_call_start|>"):
		f.Calls = []Calls{{Marks: Marks{"<|tool_call_start|>", "<|tool_call_end|>"}, Read: readPythonic, Name: "pythonic"}}
	case has("<|python_tag|>") || has("Environment: ipython"):
		f.Calls = []Calls{{Marks: Marks{Open: "<|python_tag|>"}, Read: readObject, Name: "llama"},
			{Bare: true, Read: readObject, Name: "llama"}}
	case has("tools"):
		// a template that shows tools in words of its own: what models say then is nearly always one of these
		f.Calls = []Calls{{Marks: Marks{"<tool_call>", "</tool_call>"}, Read: readObject, Name: "hermes"},
			{Bare: true, Read: readObject, Name: "llama"}}
	}
	return f
}

// Marked are the texts that have to be seen, though they may be special tokens.
func (f Form) Marked(tools bool) (out []string) {
	add := func(m Marks) {
		for _, s := range []string{m.Open, m.Close} {
			if s != "" {
				out = append(out, s)
			}
		}
	}
	if f.Channels {
		return []string{"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>", "<|call|>", "<|return|>"}
	}
	add(f.Think)
	for _, c := range f.Calls {
		if tools {
			add(c.Marks)
		}
	}
	for _, c := range f.Calls {
		switch {
		case !tools:
		case c.Name == "deepseek":
			out = append(out, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>")
		case c.Name == "kimi":
			out = append(out, "<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>")
		case c.Name == "mistral":
			out = append(out, "[ARGS]", "[CALL_ID]")
		}
	}
	return out
}

// Reader takes apart what one model says.
type Reader struct {
	form    Form
	tools   bool
	text    string // what is not told yet
	in      string // the mark that ends the part in which it is; "" outside
	calls   *Calls
	begun   bool // something was told
	trim    bool // white space at the beginning belongs to marks
	channel string
	head    bool // in a channel's head
}

// NewReader is a Reader of what is said with tools, or without, to a prompt that ends so: it may have begun a thought.
func NewReader(form Form, tools bool, prompt string) *Reader {
	r := &Reader{form: form, tools: tools}
	if form.Channels {
		r.head = true
		if i := strings.LastIndex(prompt, "<|start|>"); i >= 0 && strings.Contains(prompt[i:], "<|message|>") {
			r.head, r.channel = false, "final"
		}
		return r
	}
	if o := form.Think.Open; o != "" {
		if rest := strings.TrimRight(prompt, " \n"); strings.HasSuffix(rest, o) {
			r.in, r.trim = form.Think.Close, true
		}
	}
	return r
}

// Thinking reports whether what comes next is a thought.
func (r *Reader) Thinking() bool { return r.in != "" && r.calls == nil }

// Push takes a piece, and gives what is certain.
func (r *Reader) Push(piece string) []Part {
	r.text += piece
	if r.form.Channels {
		return r.channels(false)
	}
	return r.parts(false)
}

// Finish gives the rest.
func (r *Reader) Finish() []Part {
	if r.form.Channels {
		return r.channels(true)
	}
	return r.parts(true)
}

// held is how much of the end of a text could be the beginning of a mark.
func held(text string, marks ...string) (most int) {
	for _, m := range marks {
		for n := min(len(m)-1, len(text)); n > most; n-- {
			if m != "" && strings.HasSuffix(text, m[:n]) {
				most = n
				break
			}
		}
	}
	return most
}

// first is the mark that comes first in a text, by its number, and where it is; -1: there is none.
func first(text string, marks []string) (which, at int) {
	which, at = -1, len(text)
	for k, m := range marks {
		if i := strings.Index(text, m); m != "" && i >= 0 && i < at {
			which, at = k, i
		}
	}
	return which, at
}

// parts are those that are certain.
func (r *Reader) parts(last bool) (out []Part) {
	for {
		if r.trim {
			r.text = strings.TrimLeft(r.text, " \n\t\r")
			if r.text == "" {
				return out
			}
			r.trim = false
		}
		switch {
		case r.calls != nil:
			done, more := r.call(last)
			out = append(out, more...)
			if !done {
				return out
			}
			continue
		case r.in != "":
			at := strings.Index(r.text, r.in)
			if at < 0 {
				keep := held(r.text, r.in)
				keep = len(r.text) - len(strings.TrimRight(r.text[:len(r.text)-keep], " \n")) // of the mark
				if last {
					keep = 0
				}
				out = thought(out, r.text[:len(r.text)-keep])
				r.text = r.text[len(r.text)-keep:]
				return out
			}
			out = thought(out, strings.TrimRight(r.text[:at], " \n"))
			r.text, r.in, r.trim = r.text[at+len(r.in):], "", true
			continue
		}
		more, done := r.outside(last)
		out = append(out, more...)
		if !done {
			return out
		}
	}
}

// outside takes what is neither a thought nor a call, and reports whether something of those begins behind it.
func (r *Reader) outside(last bool) (out []Part, begins bool) {
	marks := []string{r.form.Think.Open}
	if r.tools {
		for i := range r.form.Calls {
			c := &r.form.Calls[i]
			if c.Bare && !r.begun && strings.HasPrefix(strings.TrimLeft(r.text, " \n"), "{") {
				r.calls = c
				return nil, true
			}
			marks = append(marks, c.Open)
		}
	}
	which, at := first(r.text, marks)
	if which < 0 {
		keep := held(r.text, marks...)
		if last {
			keep = 0
		} else if r.tools { // white space before a call is none of the content
			keep = max(keep, len(r.text)-len(strings.TrimRight(r.text[:len(r.text)-keep], " \n\t\r")))
		}
		out = r.content(out, r.text[:len(r.text)-keep])
		r.text = r.text[len(r.text)-keep:]
		return out, false
	}
	before := r.text[:at]
	if which > 0 || strings.TrimSpace(before) == "" {
		before = strings.TrimRight(before, " \n\t\r")
	}
	out = r.content(out, before)
	r.text = r.text[at+len(marks[which]):]
	if which == 0 {
		r.in, r.trim = r.form.Think.Close, true
		return out, true
	}
	for i := range r.form.Calls {
		if c := &r.form.Calls[i]; c.Open == marks[which] && !c.Bare {
			r.calls = c
			break
		}
	}
	return out, true
}

func (r *Reader) content(out []Part, text string) []Part {
	if text == "" {
		return out
	}
	r.begun = true
	if n := len(out); n > 0 && out[n-1].Call == nil && out[n-1].Thought == "" {
		out[n-1].Content += text
		return out
	}
	return append(out, Part{Content: text})
}

func thought(out []Part, text string) []Part {
	if text == "" {
		return out
	}
	return append(out, Part{Thought: text})
}

// call takes the text of a call, if all of it is there. What is no call is told as it is.
func (r *Reader) call(last bool) (done bool, out []Part) {
	c := r.calls
	body, rest := r.text, ""
	if c.Close != "" && !c.Bare {
		at := strings.Index(r.text, c.Close)
		if at < 0 && !last {
			return false, nil
		}
		if at >= 0 {
			body, rest = r.text[:at], r.text[at+len(c.Close):]
		}
	} else if !last {
		return false, nil
	}
	r.calls = nil
	calls, ok := c.Read(body)
	if !ok {
		out = r.content(out, c.Open+body)
		if rest != "" || len(body) < len(r.text) {
			out = r.content(out, c.Close)
		}
		r.text = rest
		r.begun = true
		return rest != "", out
	}
	r.begun = true
	for i := range calls {
		out = append(out, Part{Call: &calls[i]})
	}
	r.text = rest
	r.trim = true
	return rest != "", out
}

// channels are the parts of what is said in channels: analysis is thought, final and what has no address is told, and
// what is addressed to a function is a call.
func (r *Reader) channels(last bool) (out []Part) {
	ends := []string{"<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"}
	for {
		if r.head {
			at := strings.Index(r.text, "<|message|>")
			if at < 0 {
				if last {
					r.text = ""
				}
				return out
			}
			r.channel, r.text, r.head = r.text[:at], r.text[at+len("<|message|>"):], false
			continue
		}
		which, at := first(r.text, ends)
		_, to, addressed := strings.Cut(r.channel, "to=")
		if which < 0 {
			if addressed && !last {
				return out
			}
			keep := held(r.text, ends...)
			if last {
				keep = 0
			}
			at = len(r.text) - keep
		}
		body := r.text[:at]
		switch {
		case addressed && r.tools:
			name := strings.TrimPrefix(strings.FieldsFunc(to, func(c rune) bool { return c == ' ' || c == '<' })[0],
				"functions.")
			if a, ok := jsonObject(body); ok {
				out = append(out, Part{Call: &Call{name, a}})
			} else {
				out = r.content(out, body)
			}
		case strings.Contains(r.channel, "analysis"):
			out = thought(out, body)
		default:
			out = r.content(out, body)
		}
		if which < 0 {
			r.text = r.text[at:]
			return out
		}
		r.text, r.head = r.text[at+len(ends[which]):], true
	}
}
