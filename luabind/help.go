package luabind

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/docs"
	"github.com/mlxlua/mlxlua/tensor"
)

// addHelp makes help(x): the signature and the text of a function, or the functions of a module. A function may be
// given by its name, and help() says so.
func (m *module) addHelp() {
	s := m.s
	help := s.Func(func(L *lua.LState) int {
		text := helpOfHelp
		switch what := L.Get(1); {
		case L.GetTop() == 2 && what == lua.LNil: // a name that the REPL was asked for, and that has no value
			text = m.helpText(L.Get(2))
		case L.GetTop() > 0:
			text = m.helpText(what)
		}
		s.Write(text + "\n")
		return 0
	})
	s.L.SetGlobal("help", help)
	m.RawSetString("help", help)
	m.addPlain()
}

// helpOfHelp is what help() says.
const helpOfHelp = `help(mx) lists the functions of mx, help(mx.fast) those of a module;
help(mx.softmax) or help("softmax") explains one, help(x) an array, help("lm") the
package of language models. docs/lua.md says how to write MLX's Python in Lua.`

// helpText is what help says of a value.
func (m *module) helpText(v lua.LValue) string {
	loadLibrary(m.s)
	switch v := v.(type) {
	case lua.LString:
		if text := packageHelp(string(v)); text != "" {
			return text
		}
		if f := m.named(strings.TrimPrefix(string(v), "mx.")); f != nil {
			return f.usage() + "\n" + f.text()
		}
		return m.like(string(v))
	case *lua.LFunction:
		if f := m.help[v]; f != nil {
			return f.usage() + "\n" + f.text()
		}
		if name := inPackage(m.s, v); name != "" {
			return packageHelp(name)
		}
		return "a function of the script"
	case *lua.LTable:
		if name := inPackage(m.s, v); name != "" {
			return packageHelp(name)
		}
		if f := m.classOf(v); f != nil {
			return f.usage() + "\n" + f.text()
		}
		var names []string
		for name := range m.funcs {
			if m.within(name) == v {
				names = append(names, m.funcs[name].usage())
			}
		}
		if v == m.LTable {
			names = append(names, m.named("dims").usage())
		}
		sort.Strings(names)
		if v == m.LTable {
			names = append(names, m.overview())
		}
		if less := m.missing(v); len(less) > 0 {
			names = append(names, wrapped("MLX has and mx has not, so far: "+strings.Join(less, ", ")))
		}
		if len(names) > 0 {
			return strings.Join(names, "\n")
		}
	}
	if _, ok := array(v); ok {
		methods := keysOf(m.methods)
		sort.Strings(methods)
		return describe(v) + "\n" + wrapped("Properties: "+strings.Join(properties, ", ")) + "\n" +
			wrapped("Methods, called as x:sum(): "+strings.Join(methods, ", "))
	}
	return describe(v)
}

// like lists the functions whose names hold a text.
func (m *module) like(text string) string {
	const most = 20
	var names []string
	if text != "" && len(text) <= mostQuoted {
		lower := strings.ToLower(text)
		for name, f := range m.funcs {
			if strings.Contains(strings.ToLower(name), lower) {
				names = append(names, f.usage())
			}
		}
		for _, full := range docs.Package("lm", lower) {
			names = append(names, docs.Usage(full))
		}
	}
	sort.Strings(names)
	switch n := len(names); {
	case n == 0:
		return fmt.Sprintf("there is no %s; help(mx) lists what there is", quote(text))
	case n > most:
		names = append(names[:most], fmt.Sprintf("and %d others", n-most))
	}
	return strings.Join(names, "\n")
}

// classOf is what makes objects of a class of mx, from the class or an object of it; nil of other tables.
func (m *module) classOf(t *lua.LTable) *function {
	if f := m.classes[t]; f != nil {
		return f
	}
	class, _ := t.Metatable.(*lua.LTable)
	return m.classes[class]
}

// overview names what mx holds beside functions.
func (m *module) overview() string {
	var dtypes, modules []string
	for _, d := range tensor.DTypes() {
		dtypes = append(dtypes, "mx."+d.String())
	}
	for _, name := range m.modules {
		for full := range m.funcs {
			if strings.HasPrefix(full, name+".") {
				modules = append(modules, "mx."+name)
				break
			}
		}
	}
	return wrapped("Modules, each with a help of its own: "+strings.Join(modules, ", ")) + "\n" +
		"Packages: help(\"lm\"), language models\n" +
		wrapped("Dtypes: "+strings.Join(dtypes, ", "))
}

// usage is a function's signature as it is written in Lua.
func (f *function) usage() string {
	if f.written != "" {
		return f.written
	}
	var b strings.Builder
	fmt.Fprintf(&b, "mx.%s(", f.name)
	for i, p := range f.params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
		switch {
		case p.Many:
			b.WriteString("...")
		case p.Default != "":
			b.WriteString("=" + p.luaDefault())
		case p.Optional:
			b.WriteString("=nil")
		}
	}
	b.WriteString(")")
	return b.String()
}

// luaDefault is the parameter's default as Lua writes it.
func (p *param) luaDefault() string {
	switch p.Value.(type) {
	case string:
		return strconv.Quote(p.Default)
	case tensor.DType:
		return "mx." + p.Default
	}
	return strings.NewReplacer("[", "{", "]", "}").Replace(p.Default)
}

// text is the function's help: what the manual says of it.
func (f *function) text() string {
	if text := docs.Help(f.name); text != "" {
		return text
	}
	return wrapped(f.help) // until the manual is made anew
}

// wrapped is a text in lines of at most 80 columns, as the comments of Go functions are.
func wrapped(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+utf8.RuneCountInString(word) > 80:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += utf8.RuneCountInString(word)
	}
	return b.String()
}
