package luabind

import (
	"context"
	"fmt"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// What a REPL shows of a table.
const (
	shownEntries = 20 // of one table
	shownDepth   = 4  // of tables in tables
)

// Show is a value as a REPL shows it: a table with what it holds, everything else as print does. Reading an array
// evaluates it.
func (s *State) Show(ctx context.Context, v lua.LValue) (string, error) {
	var b strings.Builder
	err := s.show(ctx, &b, v, nil)
	return b.String(), err
}

// show writes a value that lies in the tables within.
func (s *State) show(ctx context.Context, b *strings.Builder, v lua.LValue, within []*lua.LTable) error {
	if text, ok := v.(lua.LString); ok && len(within) > 0 {
		fmt.Fprintf(b, "%q", string(text))
		return nil
	}
	t, ok := v.(*lua.LTable)
	if !ok || s.L.GetMetaField(t, "__tostring") != lua.LNil {
		text, err := s.Text(ctx, v)
		b.WriteString(text)
		return err
	}
	if name := s.moduleName(t); name != "" {
		fmt.Fprintf(b, "module %s: help(%s) lists its functions", name, name)
		return nil
	}
	for _, outer := range within {
		if outer == t || len(within) >= shownDepth {
			b.WriteString("{...}")
			return nil
		}
	}
	within = append(within[:len(within):len(within)], t)
	keys, more := shownKeys(t)
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		if n, ok := k.(lua.LNumber); !ok || int(n) != i+1 || lua.LNumber(int(n)) != n {
			if err := s.showKey(ctx, b, k, within); err != nil {
				return err
			}
		}
		if err := s.show(ctx, b, t.RawGet(k), within); err != nil {
			return err
		}
	}
	if more > 0 {
		fmt.Fprintf(b, ", ... %d more", more)
	}
	b.WriteByte('}')
	return nil
}

// showKey writes a key as a constructor of tables has it.
func (s *State) showKey(ctx context.Context, b *strings.Builder, k lua.LValue, within []*lua.LTable) error {
	if name, ok := k.(lua.LString); ok && isName(string(name)) {
		b.WriteString(string(name) + " = ")
		return nil
	}
	b.WriteByte('[')
	err := s.show(ctx, b, k, within)
	b.WriteString("] = ")
	return err
}

// shownKeys are a table's keys in the order they are shown in, numbers first and then names, and how many are left out.
func shownKeys(t *lua.LTable) (keys []lua.LValue, more int) {
	t.ForEach(func(k, _ lua.LValue) { keys = append(keys, k) })
	sort.SliceStable(keys, func(i, j int) bool {
		a, aNumber := keys[i].(lua.LNumber)
		b, bNumber := keys[j].(lua.LNumber)
		if aNumber || bNumber {
			return aNumber && (!bNumber || a < b)
		}
		c, aText := keys[i].(lua.LString)
		d, bText := keys[j].(lua.LString)
		return aText && (!bText || c < d)
	})
	if len(keys) > shownEntries {
		keys, more = keys[:shownEntries], len(keys)-shownEntries
	}
	return keys, more
}

// isName says whether a text can be a key without brackets.
func isName(text string) bool {
	for i, r := range text {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != ""
}

// moduleName is the name of mx or of one of its modules, "" for other tables.
func (s *State) moduleName(t *lua.LTable) string {
	if t == s.mx {
		return "mx"
	}
	for _, name := range moduleNames {
		if s.mx.RawGetString(name) == t {
			return "mx." + name
		}
	}
	return ""
}
