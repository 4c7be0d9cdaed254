package says

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// jsonObject is a text that is a JSON object, without the spaces between its parts.
func jsonObject(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return "", false
	}
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return "", false
	}
	return out.String(), true
}

// named is a call as an object of a name and arguments, or parameters.
type named struct {
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	Parameters json.RawMessage `json:"parameters"`
}

func (n named) call() (Call, bool) {
	arguments := n.Arguments
	if arguments == nil {
		arguments = n.Parameters
	}
	var text string
	if json.Unmarshal(arguments, &text) == nil && arguments != nil {
		arguments = json.RawMessage(text)
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	object, ok := jsonObject(string(arguments))
	return Call{n.Name, object}, ok && n.Name != ""
}

// readObject reads one call, a list of calls, or several separated by white space or semicolons.
func readObject(body string) (out []Call, ok bool) {
	body = strings.TrimSpace(body)
	if strings.HasPrefix(body, "[") {
		var list []named
		if json.Unmarshal([]byte(body), &list) != nil {
			return nil, false
		}
		for _, n := range list {
			c, ok := n.call()
			if !ok {
				return nil, false
			}
			out = append(out, c)
		}
		return out, len(out) > 0
	}
	for body != "" {
		d := json.NewDecoder(strings.NewReader(body))
		var n named
		if d.Decode(&n) != nil {
			return nil, false
		}
		c, ok := n.call()
		if !ok {
			return nil, false
		}
		out = append(out, c)
		body = strings.TrimLeft(body[d.InputOffset():], " \n\t\r;")
	}
	return out, len(out) > 0
}

// readMistral reads a list of calls, or names each followed by arguments.
func readMistral(body string) (out []Call, ok bool) {
	body = strings.TrimSpace(body)
	if strings.HasPrefix(body, "[") || strings.HasPrefix(body, "{") {
		return readObject(body)
	}
	for _, one := range strings.Split(body, "[TOOL_CALLS]") {
		at := strings.Index(one, "{")
		if at < 0 {
			return nil, false
		}
		name, _, _ := strings.Cut(one[:at], "[ARGS]")
		name, _, _ = strings.Cut(name, "[CALL_ID]")
		a, ok := jsonObject(one[at:])
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, false
		}
		out = append(out, Call{name, a})
	}
	return out, len(out) > 0
}

var (
	functions = regexp.MustCompile(`(?s)<function=([^>\n]+)>(.*?)(?:</function>|$)`)
	parameter = regexp.MustCompile(`(?s)<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>`)
	invokes   = regexp.MustCompile(`(?s)<invoke name="([^"]+)">(.*?)</invoke>`)
	invoked   = regexp.MustCompile(`(?s)<parameter name="([^"]+)">\n?(.*?)\n?</parameter>`)
	argument  = regexp.MustCompile(`(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>`)
	deepseek  = regexp.MustCompile(`(?s)<｜tool▁call▁begin｜>(.*?)<｜tool▁sep｜>(.*?)<｜tool▁call▁end｜>`)
	kimi      = regexp.MustCompile(`(?s)<\|tool_call_begin\|>\s*(.*?)\s*<\|tool_call_argument_begin\|>(.*?)` +
		`<\|tool_call_end\|>`)
	fenced = regexp.MustCompile("(?s)^\\s*(\\S+)\\s*```json\\s*(.*?)\\s*```\\s*$")
)

// tagged is an object of names and values, which are JSON where they can be, else texts.
func tagged(pairs [][]string) string {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, p := range pairs {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(quoted(strings.TrimSpace(p[1])))
		out.WriteByte(':')
		var value bytes.Buffer
		if json.Compact(&value, []byte(p[2])) == nil {
			out.Write(value.Bytes())
		} else {
			out.WriteString(quoted(p[2]))
		}
	}
	out.WriteByte('}')
	return out.String()
}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be written
	return strings.TrimSuffix(b.String(), "\n")
}

// each reads calls by a pattern of a name and a body, and one of arguments in it.
func each(body string, calls, arguments *regexp.Regexp) (out []Call, ok bool) {
	for _, m := range calls.FindAllStringSubmatch(body, -1) {
		out = append(out, Call{strings.TrimSpace(m[1]), tagged(arguments.FindAllStringSubmatch(m[2], -1))})
	}
	return out, len(out) > 0
}

// readFunctions reads <function=name><parameter=key>value</parameter></function>.
func readFunctions(body string) ([]Call, bool) {
	if out, ok := each(body, functions, parameter); ok {
		return out, true
	}
	return readObject(body)
}

// readInvokes reads <invoke name="name"><parameter name="key">value</parameter></invoke>.
func readInvokes(body string) ([]Call, bool) { return each(body, invokes, invoked) }

// readGLM reads a name and pairs of <arg_key> and <arg_value>.
func readGLM(body string) ([]Call, bool) {
	name, rest := strings.TrimSpace(body), ""
	if at := strings.Index(body, "<arg_key>"); at >= 0 {
		name, rest = strings.TrimSpace(body[:at]), body[at:]
	}
	if name == "" || strings.ContainsAny(name, " \n{") {
		return readObject(body)
	}
	return []Call{{name, tagged(argument.FindAllStringSubmatch(rest, -1))}}, true
}

// readDeepseek reads names and arguments between special tokens: with the kind before the name and the arguments in a
// fence, as V3 has them, or without, as V3.1 has.
func readDeepseek(body string) (out []Call, ok bool) {
	for _, m := range deepseek.FindAllStringSubmatch(body, -1) {
		name, text := strings.TrimSpace(m[1]), m[2]
		if f := fenced.FindStringSubmatch(text); f != nil {
			name, text = f[1], f[2]
		}
		a, ok := jsonObject(text)
		if !ok {
			return nil, false
		}
		out = append(out, Call{name, a})
	}
	return out, len(out) > 0
}

// readKimi reads functions.name:number and arguments between special tokens.
func readKimi(body string) (out []Call, ok bool) {
	for _, m := range kimi.FindAllStringSubmatch(body, -1) {
		name := strings.TrimPrefix(m[1], "functions.")
		if at := strings.LastIndexByte(name, ':'); at >= 0 {
			if _, err := strconv.Atoi(name[at+1:]); err == nil {
				name = name[:at]
			}
		}
		a, ok := jsonObject(m[2])
		if !ok {
			return nil, false
		}
		out = append(out, Call{name, a})
	}
	return out, len(out) > 0
}

// readPythonic reads [name(key="value", other=2)] with values as Python writes them.
func readPythonic(body string) (out []Call, ok bool) {
	p := &python{text: strings.TrimSpace(body)}
	if !p.eat("[") {
		return nil, false
	}
	for !p.eat("]") {
		name := p.name()
		if name == "" || !p.eat("(") {
			return nil, false
		}
		var pairs []string
		for !p.eat(")") {
			key := p.name()
			if key == "" || !p.eat("=") {
				return nil, false
			}
			v, ok := p.value(0)
			if !ok {
				return nil, false
			}
			pairs = append(pairs, quoted(key)+":"+v)
			p.eat(",")
		}
		out = append(out, Call{name, "{" + strings.Join(pairs, ",") + "}"})
		p.eat(",")
	}
	return out, len(out) > 0 && p.text == ""
}

// python reads literals of Python's.
type python struct{ text string }

func (p *python) eat(s string) bool {
	p.text = strings.TrimLeft(p.text, " \n\t\r")
	rest, ok := strings.CutPrefix(p.text, s)
	if ok {
		p.text = strings.TrimLeft(rest, " \n\t\r")
	}
	return ok
}

func (p *python) name() string {
	n := 0
	for n < len(p.text) && (p.text[n] == '_' || p.text[n] == '.' || p.text[n] == '-' || p.text[n] >= '0' &&
		p.text[n] <= '9' ||
		p.text[n]|32 >= 'a' && p.text[n]|32 <= 'z') {
		n++
	}
	name := p.text[:n]
	p.text = strings.TrimLeft(p.text[n:], " \n\t\r")
	return name
}

// value reads a literal and gives it as JSON.
func (p *python) value(depth int) (string, bool) {
	if depth > 50 || p.text == "" {
		return "", false
	}
	switch c := p.text[0]; {
	case c == '"' || c == '\'':
		return p.quoted(c)
	case c == '[' || c == '(':
		return p.items(string(c), map[byte]string{'[': "]", '(': ")"}[c], "[", "]", false, depth)
	case c == '{':
		return p.items("{", "}", "{", "}", true, depth)
	}
	for word, as := range map[string]string{"True": "true", "False": "false", "None": "null", "true": "true",
		"false": "false", "null": "null"} {
		if p.eat(word) {
			return as, true
		}
	}
	word := p.name()
	if word == "" && strings.HasPrefix(p.text, "+") {
		p.eat("+")
		word = p.name()
	}
	return word, json.Valid([]byte(word)) && word != ""
}

// items reads a collection.
func (p *python) items(open, end, asOpen, asEnd string, keys bool, depth int) (string, bool) {
	p.eat(open)
	var list []string
	for !p.eat(end) {
		v, ok := p.value(depth + 1)
		if ok && keys {
			key := v
			if ok = p.eat(":") && strings.HasPrefix(key, `"`); ok {
				v, ok = p.value(depth + 1)
				v = key + ":" + v
			}
		}
		if !ok {
			return "", false
		}
		list = append(list, v)
		p.eat(",")
	}
	return asOpen + strings.Join(list, ",") + asEnd, true
}

// quoted reads a string.
func (p *python) quoted(by byte) (string, bool) {
	var out strings.Builder
	for i := 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == by:
			p.text = strings.TrimLeft(p.text[i+1:], " \n\t\r")
			return quoted(out.String()), true
		case c == '\\' && i+1 < len(p.text):
			i++
			if r, ok := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r'}[p.text[i]]; ok {
				out.WriteByte(r)
			} else {
				out.WriteByte(p.text[i])
			}
		default:
			out.WriteByte(c)
		}
	}
	return "", false
}
