package template

import (
	"html"
	"strings"
)

// markup is text that is ready to stand in a web page, as the filters safe and escape make it: Python's Markup, a str
// that escapes what is put to it. Printed, compared or joined by ~ and join it is like any text.
type markup string

// plain is a value as what it is beside being ready: a text.
func plain(v any) any {
	if m, ok := v.(markup); ok {
		return string(m)
	}
	return v
}

// isText reports whether v is a str in Python.
func isText(v any) bool { return isString(plain(v)) }

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

// escaped is the text of v, ready to stand in a web page.
func (r *values) escaped(v any) string {
	if m, ok := v.(markup); ok {
		return string(m)
	}
	s := r.text(v)
	r.alloc(6 * len(s))
	return escapeHTML(s)
}

// markupBinary is a op b where one of them is markup; not ok where it counts as any text.
func (r *values) markupBinary(op string, a, b any) (any, bool) {
	_, left := a.(markup)
	switch {
	case op == "+" && isText(a) && isText(b):
		return markup(r.escaped(a) + r.escaped(b)), true
	case op == "*":
		if v, ok := r.sequences(op, plain(a), plain(b)); ok {
			return markup(v.(string)), true
		}
	case op == "%" && left:
		if strings.Contains(string(a.(markup)), "%r") || strings.Contains(string(a.(markup)), "%a") {
			r.fail("a Markup with %%r or %%a is not built")
		}
		return markup(r.percent(string(a.(markup)), r.escapedArguments(b))), true
	}
	return nil, false
}

// escapedArguments are the arguments of % on markup: what is no number becomes escaped text.
func (r *values) escapedArguments(v any) any {
	one := func(v any) any {
		if isNumber(v) {
			return v
		}
		return r.escaped(v)
	}
	switch v := v.(type) {
	case *List:
		if v.kind == "tuple" {
			out := tuple()
			for _, x := range v.Items {
				out.Items = append(out.Items, one(x))
			}
			return out
		}
	case *Dict:
		out := NewDict()
		for i, k := range v.keys {
			out.set(k, one(v.vals[i]))
		}
		return out
	}
	return tuple(one(v))
}

// markupMethods says of the methods of str which argument markup escapes, -1 for none, -2 for all items of the first;
// what they give is markup again. Others, such as find, are those of any text.
var markupMethods = map[string]int{
	"upper": -1, "lower": -1, "casefold": -1, "capitalize": -1, "title": -1, "swapcase": -1, "strip": -1, "lstrip": -1,
	"rstrip": -1, "removeprefix": -1, "removesuffix": -1, "split": -1, "rsplit": -1, "splitlines": -1, "partition": -1,
	"rpartition": -1, "expandtabs": -1, "zfill": -1, "replace": 1, "center": 1, "ljust": 1, "rjust": 1, "join": -2,
}

// markupField is a method of markup.
func (r *run) markupField(of markup, name string) (any, bool) {
	v, ok := method(string(of), name, stringMethods)
	if !ok {
		return nil, false
	}
	if name == "format" {
		r.fail("format of a Markup is not built")
	}
	at, wraps := markupMethods[name]
	if !wraps {
		at = -1
	}
	f := v.(*function)
	return &function{name: name, call: func(r *run, c call) any {
		args := make([]any, len(c.args))
		for i, x := range c.args {
			args[i] = plain(x)
			if i == at {
				args[i] = r.escaped(x)
			}
		}
		if at == -2 && len(args) > 0 {
			items := NewList()
			for _, x := range r.items(args[0]) {
				if !isText(x) {
					r.fail("join: a '%s' among the texts", typeName(x))
				}
				items.Items = append(items.Items, r.escaped(x))
			}
			args[0] = items
		}
		out := f.call(r, call{args: args, names: c.names, values: c.values})
		if !wraps {
			return out
		}
		return ready(out)
	}}, true
}

// ready makes markup of a text, and of those in a list.
func ready(v any) any {
	switch v := v.(type) {
	case string:
		return markup(v)
	case *List:
		for i, x := range v.Items {
			v.Items[i] = ready(x)
		}
	}
	return v
}

// markupFilters are the filters to which markup is not any text, or that give it: raw ones take it as it is, those that
// keep it give markup again.
var markupFilters = map[string]string{
	"safe": "raw", "escape": "raw", "e": "raw", "forceescape": "raw", "string": "raw", "default": "raw", "d": "raw",
	"attr": "raw", "last": "raw", "format": "raw",
	"upper": "keep", "lower": "keep", "capitalize": "keep", "trim": "keep", "center": "keep", "reverse": "keep",
	"indent": "keep", "truncate": "raw",
}

// filter calls a filter, whose value and arguments can be markup.
func (r *run) filter(name string, f func(r *run, c call) any, c call) any {
	how := markupFilters[name]
	_, ready := c.args[0].(markup)
	for _, x := range append(c.args[1:len(c.args):len(c.args)], c.values...) {
		if _, is := x.(markup); is && !ready && (name == "indent" || name == "truncate") {
			r.fail("%s with an argument that is a Markup is not built", name)
		}
	}
	if how == "raw" {
		return f(r, c)
	}
	args, values := make([]any, len(c.args)), make([]any, len(c.values))
	for i, x := range c.args {
		args[i] = plain(x)
	}
	for i, x := range c.values {
		values[i] = plain(x)
	}
	out := f(r, call{args: args, names: c.names, values: values})
	if s, is := out.(string); is && ready && how != "" {
		return markup(s)
	}
	return out
}

// filterStripTags takes tags and comments out, makes one blank of several, and characters of their names in HTML.
func filterStripTags(r *run, c call) any {
	s := r.text(c.bind(r, "striptags", "value")[0])
	r.alloc(2 * len(s))
	var b strings.Builder
	for {
		start := strings.IndexByte(s, '<')
		if start < 0 {
			break
		}
		from, end := start, ">"
		if strings.HasPrefix(s[start:], "<!--") {
			from, end = start+4, "-->"
		}
		at := strings.Index(s[from:], end)
		if at < 0 {
			break
		}
		b.WriteString(s[:start])
		s = s[from+at+len(end):]
	}
	b.WriteString(s)
	return html.UnescapeString(strings.Join(strings.FieldsFunc(b.String(), pySpace), " "))
}
