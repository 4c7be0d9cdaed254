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
	{": attempt to compare userdata with ", "an array is compared element by element by name: mx.less(a, b)"},
	{": attempt to compare number with userdata", "an array is compared element by element by name: mx.less(a, b)"},
	{" to ipairs (table expected, got userdata)", "for row in x:rows() do ... end goes through an array"},
	{" to pairs (table expected, got userdata)", "for row in x:rows() do ... end goes through an array"},
	{" (number expected, got userdata)", "x:item() is the number in an array of one element; mx has functions of arrays"},
}

// explain adds to an error of the Lua engine's what is to be done.
func explain(L *lua.LState, v lua.LValue) lua.LValue {
	text, ok := v.(lua.LString)
	if !ok {
		return v
	}
	for _, h := range hints {
		if strings.Contains(string(text), h.part) && !strings.HasSuffix(string(text), h.hint) {
			return text + lua.LString("; "+h.hint)
		}
	}
	return nameCalls(L, text)
}

// nameCalls adds to an error that does not say which call failed what the line calls.
func nameCalls(L *lua.LState, text lua.LString) lua.LValue {
	if !strings.HasSuffix(string(text), ": attempt to call a non-function object") {
		return text
	}
	for level := 0; ; level++ {
		dbg, ok := L.GetStack(level)
		if !ok {
			return text
		}
		fn, err := L.GetInfo("fl", dbg, lua.LNil)
		if f, ok := fn.(*lua.LFunction); err == nil && ok && !f.IsG {
			names := callsIn(f.Proto, dbg.CurrentLine)
			for _, name := range names {
				if slices.Contains(properties, name) {
					return text + lua.LString("; "+name+" of an array is a property: x."+name)
				}
			}
			if len(names) > 0 {
				hint := "; the line calls " + strings.Join(names, ", ")
				for _, name := range names {
					h := pythonCalls[name]
					if h != "" && (len(names) == 1 || !strings.Contains(h, "mx."+name+"(")) { // it may be mx's
						hint += "; Lua has no " + name + ": write " + h
					}
				}
				return text + lua.LString(hint)
			}
			return text
		}
	}
}

// callsIn are the names of what a line of a function calls, without those that have none.
func callsIn(p *lua.FunctionProto, line int) []string {
	var names []string
	for _, c := range p.DbgCalls {
		known := c.Name != "" && c.Name != "?" && !slices.Contains(names, c.Name)
		if known && c.Pc < len(p.DbgSourcePositions) && p.DbgSourcePositions[c.Pc] == line {
			names = append(names, c.Name)
		}
	}
	return names
}

// syntaxHint says what a text that is no Lua program may be instead, or "".
func syntaxHint(e *lua51.SyntaxError) string {
	if e.AtEnd() {
		return ""
	}
	hint := foreign(e.Token, e.Text, e.Line)
	if line := endsText(e.Text, e.Line); line > 0 {
		hint += fmt.Sprintf("; if line %d is in a text between [[ and ]], its ]] ends the text: [==[ and ]==] do not", line)
	}
	return hint
}

// otherLanguages are operators of Python and C, and what to write for them.
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

// otherWords are keywords of Python, at which the parser stops one word later, and what to write for them.
var otherWords = map[string]string{
	"import": `local mx = require("mx")`, "from": `local mx = require("mx")`, "def": "function f(x) ... end",
	"lambda": "function(x) return ... end", "elif": "elseif", "with": "mx.stream(s, f)",
}

// pythonCalls are functions of Python's that Lua has under other names.
var pythonCalls = map[string]string{
	"len": "#x", "range": "for i = 0, n - 1 do ... end", "enumerate": "for i, x in ipairs(list) do ... end",
	"zip": "for i, x in ipairs(list) do local y = other[i] ... end", "str": "tostring(x)", "repr": "tostring(x)",
	"int": "math.floor(x), or tonumber(x) of a text", "float": "tonumber(x)", "isinstance": `mx.type(x) == "array"`,
	"append": "list[#list + 1] = x", "abs": "math.abs(x), or mx.abs(x) of arrays",
	"max": "math.max(a, b), or mx.max(x) of arrays", "min": "math.min(a, b), or mx.min(x) of arrays",
}

// What Python's slices, lists, tuples, dicts and keyword arguments look like.
var (
	slice = regexp.MustCompile(`\[[^\]"]*:`)
	list  = regexp.MustCompile(`[=(,{\[]\s*\[`)
	tuple = regexp.MustCompile(`\([^()]*\([^()]*,`)
	dict  = regexp.MustCompile(`\{[^}]*:`)
	// a word, and that at which the parser stops
	twoWords = regexp.MustCompile(`\b(import|from|def|lambda|elif|with)\s+(\w+)`)
	keyword  = regexp.MustCompile(`[(,]\s*\w+\s*=`)
)

// foreign is a hint at the syntax of another language that the parser stopped at, or "".
func foreign(token, text string, line int) string {
	lines := strings.Split(text, "\n")
	if token == "" || line < 1 || line > len(lines) {
		return ""
	}
	switch {
	case token == ":" && slice.MatchString(lines[line-1]):
		return "; a slice is a text: x[\"1:2\"], x[\"..., 0\"]"
	case token == "[" && list.MatchString(lines[line-1]):
		return "; a list is written {1, 2}"
	case token == "," && tuple.MatchString(lines[line-1]):
		return "; a tuple is written {1, 2}"
	case token == ":" && dict.MatchString(lines[line-1]):
		return "; a dict is written {name = 1, [2] = 3}"
	case token == "=" && keyword.MatchString(lines[line-1]):
		return "; keywords go into a table, f(x, {axis = 1}), and == compares"
	}
	for _, m := range twoWords.FindAllStringSubmatch(lines[line-1], -1) {
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

// endsText is the first line up to a limit that looks like one of a kernel whose nested index, as in a[b[i]], ends the
// text that it stands in; 0 if there is none.
func endsText(text string, limit int) int {
	opened := false
	for i, line := range strings.Split(text, "\n") {
		if i >= limit {
			break
		}
		before, _, found := strings.Cut(line, "]]")
		if opened && found && !strings.Contains(before, "[[") && strings.Count(before, "[") >= 2 {
			return i + 1
		}
		opened = opened || strings.Contains(line, "[[")
	}
	return 0
}
