package luabind

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// hints are what the Lua engine's own errors leave a script's author to guess.
var hints = []struct{ part, hint string }{
	{"attempt to compare array with ", compareByName},
	{"attempt to compare number with array", compareByName},
	{"attempt to compare nil with array", compareByName},
	{"(table expected, got array)", throughRows},
	{"(number expected, got array)", "x:item() is the number in an array of one element; mx has functions of arrays"},
}

const (
	compareByName = "write a:item() < b of an array of one element, mx.less(a, b) element by element"
	throughRows   = "for row in x:rows() do ... end goes through an array"
)

// colonHint says what was meant where a method of a script's own was called with a dot.
const colonHint = "is the method called with a colon, as in object:method(x)?"

// explain adds what to do to an error of the Lua engine.
func explain(s *State, L *lua.LState, v lua.LValue) lua.LValue {
	text, ok := v.(lua.LString)
	if !ok {
		return v
	}
	message := string(text)
	indexed, _ := lua51.Indexed(L)
	hint := ""
	switch n := len(s.transforming); {
	case n > 0 && strings.Contains(message, lua51.YieldAcross) && !strings.HasSuffix(message, noYield):
		hint = "the function that mx." + s.transforming[n-1] + noYield
	case s.mx.has(indexed) && strings.Contains(message, "attempt to index "):
		hint = "methods are called with a colon: x:at(i), not x.at[i]"
	case strings.Contains(message, "attempt to index local 'self' (a "):
		hint = colonHint
	case strings.Contains(message, "attempt to call "):
		hint = hintOfCall(L, message)
	}
	for _, h := range hints {
		if strings.Contains(message, h.part) {
			hint = h.hint
		}
	}
	if hint == "" || strings.HasSuffix(message, "; "+hint) {
		return v
	}
	return text + lua.LString("; "+hint)
}

// typeInMessages is what the engine's messages call the type of a userdata.
func typeInMessages(ud *lua.LUserData) string {
	if name := typeName(ud); name != "userdata" {
		return name
	}
	if mt, ok := ud.Metatable.(*lua.LTable); ok {
		if name, ok := mt.RawGetString("__name").(lua.LString); ok {
			return string(name)
		}
	}
	return ""
}

// has reports whether a value is a function of mx, or a method of arrays.
func (m *module) has(v lua.LValue) bool {
	f, ok := v.(*lua.LFunction)
	if !ok {
		return false
	}
	found := m.help[f] != nil
	m.methods.ForEach(func(_, method lua.LValue) { found = found || method == v })
	return found
}

// noYield ends a hint of what a function of a transform cannot do.
const noYield = " calls runs in one go, and cannot yield"

// calledByName is of the error of a call of what has a name and is no function.
var calledByName = regexp.MustCompile(`attempt to call (\w+) '(\w+)' \((an? \w+ value)\)$`)

// hintOfCall says what was meant by a call of what is no function, or "".
func hintOfCall(L *lua.LState, message string) string {
	switch v := lua51.Iterated(L).(type) {
	case *lua.LUserData:
		if _, ok := array(v); ok {
			return throughRows
		}
	case *lua.LTable:
		return "for i, x in ipairs(t) do ... end goes through a list, for k, v in pairs(t) do ... end through a table"
	}
	m := calledByName.FindStringSubmatch(message)
	switch {
	case m == nil:
		return ""
	case m[1] == "method" && slices.Contains(properties, m[2]):
		return m[2] + " of an array is a property: x." + m[2]
	case pythonCalls[m[2]] != "" && m[3] == "a nil value":
		return "Lua has no " + m[2] + ": write " + pythonCalls[m[2]]
	}
	return ""
}

// syntaxHint says what was meant by a text that is no Lua program, or "".
func syntaxHint(e *lua51.SyntaxError) string {
	if e.AtEnd() {
		return ""
	}
	hint := syntaxOfOthers(e.Token, e.Text, e.Line)
	if line := lineThatEndsText(e.Text, e.Line); line > 0 {
		hint += fmt.Sprintf("; if line %d is in a text between [[ and ]], its ]] ends the text: [==[ and ]==] do not", line)
	}
	return hint
}

// otherLanguages are operators of Python and C, and what to write instead.
var otherLanguages = []struct{ operator, lua string }{
	{"!=", "write a ~= b, or mx.not_equal(a, b) of arrays element by element"},
	{"//", "write mx.floor_divide(a, b), or math.floor(a / b) of numbers; comments begin with --"},
	{"+=", "write x = x + y"}, {"-=", "write x = x - y"}, {"*=", "write x = x * y"}, {"/=", "write x = x / y"},
	{"**", "write a ^ b"},
	{"@", "write mx.matmul(a, b)"},
	{"&", "write a and b of numbers and booleans, mx.logical_and(a, b) of arrays"},
	{"|", "write a or b of numbers and booleans, mx.logical_or(a, b) of arrays"},
	{"!", "write not a, or mx.logical_not(a) of arrays"},
	{"?", "write a and b or c, or mx.where(a, b, c) of arrays"},
	{"#", "comments begin with --, and #a is a's length"},
}

// otherWords are keywords of Python, and what to write instead. The parser stops at the word after them.
var otherWords = map[string]string{
	"import": `local mx = require("mx")`, "from": `local mx = require("mx")`, "def": "function f(x) ... end",
	"lambda": "function(x) return ... end", "elif": "elseif", "with": "mx.stream(s, f)",
}

// pythonCalls are functions of Python that have other names in Lua.
var pythonCalls = map[string]string{
	"len": "#x", "range": "for i = 0, n - 1 do ... end", "enumerate": "for i, x in ipairs(list) do ... end",
	"zip": "for i, x in ipairs(list) do local y = other[i] ... end", "str": "tostring(x)", "repr": "tostring(x)",
	"int": "math.floor(x), or tonumber(x) of a text", "float": "tonumber(x)", "isinstance": `mx.type(x) == "array"`,
	"append": "list[#list + 1] = x", "abs": "math.abs(x), or mx.abs(x) of arrays",
	"max": "math.max(a, b), or mx.max(x) of arrays", "min": "math.min(a, b), or mx.min(x) of arrays",
}

// pythonIndex is an index of several parts, as Python writes it: a[0, 1:].
var pythonIndex = regexp.MustCompile(`([\w.]+)\[([^\[\]"]*,[^\[\]"]*)\]`)

// severalParts says how an index of several parts is written, where a line has one; else it is "".
func severalParts(line string) string {
	m := pythonIndex.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	if _, err := parseSlice(strings.TrimSpace(m[2])); err == nil {
		return fmt.Sprintf("; an index of several parts is a text: %s[\"%s\"]", m[1], strings.TrimSpace(m[2]))
	}
	parts := strings.Split(m[2], ",")
	for i, part := range parts {
		if parts[i] = strings.TrimSpace(part); strings.ContainsAny(part, ":.") || parts[i] == "None" {
			parts[i] = `"` + parts[i] + `"`
		}
	}
	return fmt.Sprintf("; an index of several parts is %s:index(%s)", m[1], strings.Join(parts, ", "))
}

// What Python's slices, lists, tuples, dicts and keyword arguments look like.
var (
	pythonSlice = regexp.MustCompile(`\[[^\]"]*:`)
	pythonList  = regexp.MustCompile(`[=(,{\[]\s*\[`)
	pythonTuple = regexp.MustCompile(`\([^()]*\([^()]*,`)
	pythonDict  = regexp.MustCompile(`\{[^}]*:`)
	// a keyword, and the word at which the parser stops
	keywordAndNext = regexp.MustCompile(`\b(import|from|def|lambda|elif|with)\s+(\w+)`)
	pythonKeyword  = regexp.MustCompile(`[(,]\s*\w+\s*=`)
)

// syntaxOfOthers is a hint where the parser stopped at the syntax of another language, or "".
func syntaxOfOthers(token, text string, line int) string {
	lines := strings.Split(text, "\n")
	if token == "" || line < 1 || line > len(lines) {
		return ""
	}
	if token == "," || token == ":" {
		if hint := severalParts(lines[line-1]); hint != "" {
			return hint
		}
	}
	switch {
	case token == ":" && pythonSlice.MatchString(lines[line-1]):
		return "; a slice is a text: x[\"1:2\"], x[\"..., 0\"]"
	case token == "[" && pythonList.MatchString(lines[line-1]):
		return "; a list is written {1, 2}"
	case token == "," && pythonTuple.MatchString(lines[line-1]):
		return "; a tuple is written {1, 2}"
	case token == ":" && pythonDict.MatchString(lines[line-1]):
		return "; a dict is written {name = 1, [2] = 3}"
	case token == "=" && pythonKeyword.MatchString(lines[line-1]):
		return "; keywords go into a table, f(x, {axis = 1}), and == compares"
	}
	for _, m := range keywordAndNext.FindAllStringSubmatch(lines[line-1], -1) {
		if h := otherWords[m[1]]; h != "" && m[2] == token {
			return fmt.Sprintf("; Lua has no %s: write %s", m[1], h)
		}
	}
	for _, o := range otherLanguages {
		if strings.HasPrefix(o.operator, token) && strings.Contains(lines[line-1], o.operator) {
			return fmt.Sprintf("; Lua has no %s: %s", o.operator, o.lua)
		}
	}
	return ""
}

// lineThatEndsText returns the number of the last line, up to a limit, whose ]] seems to end a text between [[ and ]]
// too early: it closes two brackets of that line, as in a[b[i]] and in [[fallthrough]]. It is 0 if there is none.
func lineThatEndsText(text string, limit int) int {
	found, line, counted := 0, 1, 0
	for q := range lua51.AllQuoted(text) {
		if q.Opening != "[[" || q.End < 0 {
			continue
		}
		end := q.End - len("]]")
		line += strings.Count(text[counted:end], "\n")
		if counted = end; line > limit {
			break
		}
		inside := text[q.Begin+len("[[") : end]
		last := inside[strings.LastIndexByte(inside, '\n')+1:]
		if strings.Count(last, "[")-strings.Count(last, "]") >= 2 {
			found = line
		}
	}
	return found
}
