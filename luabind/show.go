package luabind

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// What a REPL shows of a table.
const (
	shownEntries = 20 // of one table
	shownDepth   = 4  // of tables in tables
	// How many elements an array may have to be shown as print does: more are elided, by MLX, and told of by their
	// shape.
	shownElements       = 1000
	shownElementsWithin = 50 // in a table
)

// Show is a value as a REPL shows it: a table with what it holds, everything else as print does. Reading an array
// evaluates it.
func (s *State) Show(ctx context.Context, v lua.LValue) (string, error) {
	if err := s.life.enter(ctx); err != nil {
		return "", err
	}
	defer s.life.leave()
	sh := shown{s: s, ctx: ctx}
	err := sh.value(v)
	return sh.out.String(), err
}

// shown is a value that is being shown.
type shown struct {
	s      *State
	ctx    context.Context
	out    strings.Builder
	within []*lua.LTable // the tables around what is being shown
}

// value shows a value.
func (sh *shown) value(v lua.LValue) error {
	if text, ok := v.(lua.LString); ok && len(sh.within) > 0 {
		sh.out.WriteString(quote(string(text)))
		return nil
	}
	if x, ok := array(v); ok && x.Size() > sh.most() {
		return sh.large(v, x)
	}
	if f, ok := v.(*lua.LFunction); ok {
		if known := sh.s.mx.help[f]; known != nil {
			sh.out.WriteString("function " + known.usage())
			return nil
		}
	}
	t, ok := v.(*lua.LTable)
	if !ok || sh.s.L.GetMetaField(t, "__tostring") != lua.LNil {
		text, err := sh.s.Text(sh.ctx, v)
		sh.out.WriteString(text)
		return err
	}
	if name := sh.s.mx.nameOf(t); name != "" {
		fmt.Fprintf(&sh.out, "module %s: help(%s) lists its functions", name, name)
		return nil
	}
	if len(sh.within) >= shownDepth || slices.Contains(sh.within, t) {
		sh.out.WriteString("{...}")
		return nil
	}
	sh.within = append(sh.within, t)
	defer func() { sh.within = sh.within[:len(sh.within)-1] }()
	return sh.table(t)
}

// most is how many elements an array may have here.
func (sh *shown) most() int {
	if len(sh.within) > 0 {
		return shownElementsWithin
	}
	return shownElements
}

// large shows an array of many elements: its dtype and shape, and unless a table holds it the text that print gives.
func (sh *shown) large(v lua.LValue, x *tensor.Array) error {
	if len(sh.within) > 0 {
		fmt.Fprintf(&sh.out, "array %v", x.Spec())
		return nil
	}
	text, err := sh.s.Text(sh.ctx, v)
	fmt.Fprintf(&sh.out, "%s  shape %v", text, x.Shape())
	return err
}

// table shows what a table holds.
func (sh *shown) table(t *lua.LTable) error {
	sh.s.Unfold(t)
	keys, omitted := shownKeys(t)
	sh.out.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			sh.out.WriteString(", ")
		}
		if n, ok := k.(lua.LNumber); !ok || int(n) != i+1 || lua.LNumber(int(n)) != n {
			if err := sh.key(k); err != nil {
				return err
			}
		}
		if err := sh.value(t.RawGet(k)); err != nil {
			return err
		}
	}
	if omitted > 0 {
		fmt.Fprintf(&sh.out, ", ... %d more", omitted)
	}
	sh.out.WriteByte('}')
	return nil
}

// key shows a key as a constructor of tables has it.
func (sh *shown) key(k lua.LValue) error {
	if name, ok := k.(lua.LString); ok && isName(string(name)) {
		sh.out.WriteString(string(name) + " = ")
		return nil
	}
	sh.out.WriteByte('[')
	err := sh.value(k)
	sh.out.WriteString("] = ")
	return err
}

// shownKeys are a table's keys in the order they are shown in, numbers first and then names, and how many are left out.
func shownKeys(t *lua.LTable) (keys []lua.LValue, omitted int) {
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
		keys, omitted = keys[:shownEntries], len(keys)-shownEntries
	}
	return keys, omitted
}

// isName reports whether a text can be a key without brackets.
func isName(text string) bool {
	for i, r := range text {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != ""
}

// nameOf is the name of mx or of one of its modules, "" for other tables.
func (m *module) nameOf(t *lua.LTable) string {
	if t == m.LTable {
		return "mx"
	}
	for name, module := range m.inner {
		if module == t {
			return "mx." + name
		}
	}
	return ""
}
