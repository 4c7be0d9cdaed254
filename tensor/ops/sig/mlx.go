package sig

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed mlx.txt
var mlxText string

// MLX is a name of MLX's core as testdata/names.py found it: the whole of what a script of MLX's may name.
type MLX struct {
	// Name is the name below mx; a method or property of arrays is "array.sum".
	Name string
	// Calls are the parameters of a function, for each way of calling it: "axis=None".
	Calls [][]string
	// SecondOf is the function that this one is a second name of, or "".
	SecondOf string
	// What is what the name stands for if it is no function: "Dtype", "module", "property" ...
	What string
}

var mlxNames = sync.OnceValue(func() map[string]*MLX {
	names := map[string]*MLX{}
	for _, line := range strings.Split(strings.TrimSuffix(mlxText, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.IndexAny(line, "( :")
		if end < 0 {
			panic("BUG: sig: mlx.txt: " + line)
		}
		m := names[line[:end]]
		if m == nil {
			m = &MLX{Name: line[:end]}
			names[m.Name] = m
		}
		switch rest := line[end:]; {
		case strings.HasPrefix(rest, " = "):
			m.SecondOf = rest[3:]
		case strings.HasPrefix(rest, ": "):
			m.What = rest[2:]
		default:
			m.Calls = append(m.Calls, strings.FieldsFunc(strings.Trim(rest, "()"), func(r rune) bool { return r == ' ' }))
			last := m.Calls[len(m.Calls)-1]
			for i, p := range last {
				last[i] = strings.TrimSuffix(p, ",")
			}
		}
	}
	return names
})

// MLXName is what MLX has under a name below mx, or nil.
func MLXName(name string) *MLX { return mlxNames()[name] }

// MLXNames are all names of MLX's, sorted.
func MLXNames() []string {
	var out []string
	for name := range mlxNames() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Differs says how parameters differ from those of MLX's function in names, order or defaults, "" if they do not. A
// parameter of MLX's without a default may have one here.
func (m *MLX) Differs(params []Param) string {
	var first string
	for _, call := range m.Calls {
		diff := differs(params, call)
		if diff == "" {
			return ""
		}
		if first == "" {
			first = diff
		}
	}
	return first
}

func differs(params []Param, want []string) string {
	for i, text := range want {
		name, def, hasDefault := strings.Cut(text, "=")
		name, many := strings.CutPrefix(name, "*")
		if i >= len(params) {
			return fmt.Sprintf("MLX has the parameter %s too", text)
		}
		p := &params[i]
		switch {
		case p.Name != name:
			return fmt.Sprintf("parameter %d is %s, MLX's is %s", i, p.Name, name)
		case p.Many != many:
			return fmt.Sprintf("%s takes any number of arguments in one of the two", name)
		case hasDefault && !p.defaultIs(def):
			return fmt.Sprintf("the default of %s is %q, MLX's is %s", name, p.Default, def)
		}
	}
	if len(params) > len(want) {
		return fmt.Sprintf("MLX has no parameter %s", params[len(want)].Name)
	}
	return ""
}

// defaultIs says whether the parameter's default is one that MLX's list gives as Python writes it.
func (p *Param) defaultIs(python string) bool {
	switch python {
	case "None":
		return p.Optional && p.Default == ""
	case "True", "False":
		return p.Default == strings.ToLower(python)
	}
	if have, err := strconv.ParseFloat(p.Default, 64); err == nil {
		want, err := strconv.ParseFloat(python, 64)
		return err == nil && have == want
	}
	return p.Default == strings.Trim(python, `'"`)
}
