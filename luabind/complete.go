package luabind

import (
	"errors"
	"io"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

func newReader(text string) io.Reader { return strings.NewReader(text) }

// isIncomplete reports whether a compile error is that of a text which ends too early.
func isIncomplete(err error) bool {
	var se *lua51.SyntaxError
	return errors.As(err, &se) && se.AtEnd() && !opensString(se)
}

// opensString reports whether a text ends in a string that its last line leaves open: no other line can end it,
// unless a backslash says so.
func opensString(e *lua51.SyntaxError) bool {
	return strings.Contains(e.Message, "unterminated string") && !strings.HasSuffix(e.Text, "\\")
}

// Completions lists the words that could stand at the end of what is typed so far, sorted: globals, entries of tables
// and methods after a dot or colon, and keywords where a function of mx is called with a table, as in mx.softmax{ax.
// They stand in place of that many last bytes.
func Completions(s *State, typed string) (words []string, bytes int) {
	start := len(typed)
	for start > 0 && isPathByte(typed[start-1]) {
		start--
	}
	word := typed[start:]
	if !strings.ContainsAny(word, ".:") {
		words = s.mx.keywordsAfter(typed[:start], word)
	}
	if len(words) == 0 {
		words = s.mx.complete(s.State, word)
	}
	return words, len(word)
}

// isPathByte reports whether a byte can stand in a name with dots and colons.
func isPathByte(c byte) bool {
	return c == '.' || c == ':' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// complete lists the completions of the beginning of an expression that starts with a global, sorted.
func (m *module) complete(s *lua51.State, prefix string) []string {
	cut := strings.LastIndexAny(prefix, ".:")
	scope, last := lua.LValue(s.L.G.Global), prefix
	if cut >= 0 {
		last = prefix[cut+1:]
		scope = m.at(prefix[:cut])
	}
	if _, ok := array(scope); ok {
		scope = m.methods
	}
	t, ok := scope.(*lua.LTable)
	if !ok {
		return nil
	}
	s.Unfold(t)
	var out []string
	t.ForEach(func(k, _ lua.LValue) {
		if name, ok := k.(lua.LString); ok && strings.HasPrefix(string(name), last) {
			out = append(out, prefix[:cut+1]+string(name))
		}
	})
	if scope == m.methods {
		for _, name := range properties {
			if strings.HasPrefix(name, last) && prefix[cut] == '.' {
				out = append(out, prefix[:cut+1]+name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// at is what a path of names with dots and colons leads to from the globals; nil: nothing.
func (m *module) at(path string) lua.LValue {
	scope := lua.LValue(m.s.L.G.Global)
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == ':' }) {
		if _, ok := array(scope); ok {
			scope = m.methods
		}
		t, ok := scope.(*lua.LTable)
		if !ok {
			return nil
		}
		scope = m.s.Entry(t, name)
	}
	return scope
}

// keywordsAfter lists the keywords that begin with a word and have a meaning behind a text: it ends in the table of a
// call of a function, and its last item has begun.
func (m *module) keywordsAfter(text, word string) []string {
	open := openBracket(text)
	if open < 0 || text[open] != '{' {
		return nil
	}
	if item := strings.TrimSpace(text[open+1:]); item != "" && !strings.HasSuffix(item, ",") {
		return nil
	}
	before := strings.TrimRight(text[:open], " ")
	if paren := openBracket(before); paren >= 0 && before[paren] == '(' &&
		(strings.HasSuffix(before, ",") || strings.HasSuffix(before, "(")) {
		before = before[:paren]
	}
	start := len(before)
	for start > 0 && isPathByte(before[start-1]) {
		start--
	}
	path := before[start:]
	f := m.functionOf(m.at(path))
	if path == "" || f == nil {
		return nil
	}
	var out []string
	for i, p := range f.params {
		if p.Many || i == 0 && strings.Contains(path, ":") || !strings.HasPrefix(p.Name, word) ||
			strings.Contains(text[open:], p.Name+" =") || strings.Contains(text[open:], p.Name+"=") {
			continue
		}
		out = append(out, p.Name+" = ")
	}
	if f.op != nil && strings.HasPrefix("stream", word) {
		out = append(out, "stream = ")
	}
	slices.Sort(out)
	return out
}

// functionOf describes what a value is called with; nil: nobody knows.
func (m *module) functionOf(v lua.LValue) *function {
	switch v := v.(type) {
	case *lua.LFunction:
		return m.help[v]
	case *lua.LTable:
		return m.classes[v]
	}
	if _, ok := unwrap[*luaKernel](v); ok {
		return newFunction(kernelCallRow)
	}
	return nil
}

// openBracket is the place of the last bracket of a text that is not closed, or -1. What is in quotes does not count.
func openBracket(text string) int {
	var open []int
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			open = append(open, i)
		case strings.IndexByte(")]}", c) >= 0 && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 || quote != 0 {
		return -1
	}
	return open[len(open)-1]
}
