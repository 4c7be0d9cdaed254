package luabind

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
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
			if names := callsIn(f.Proto, dbg.CurrentLine); len(names) > 0 {
				return text + lua.LString("; the line calls "+strings.Join(names, ", "))
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

// syntaxError is what the parser says of a text, as name:line: what is wrong.
func syntaxError(err error, name, text string) error {
	var pe *parse.Error
	if !errors.As(err, &pe) {
		return err
	}
	message := strings.TrimSpace(pe.Message)
	if pe.Pos.Line == parse.EOF {
		return fmt.Errorf("%s: %s at EOF", name, message)
	}
	if pe.Token != "" {
		message += " near '" + pe.Token + "'"
	}
	if line := endsText(text, pe.Pos.Line); line > 0 {
		message += fmt.Sprintf("; if line %d is in a text between [[ and ]], its ]] ends the text: [==[ and ]==] do not",
			line)
	}
	return fmt.Errorf("%s:%d: %s", name, pe.Pos.Line, message)
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
