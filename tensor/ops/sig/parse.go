package sig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// Param is a parameter.
type Param struct {
	Name  string
	Kinds []Kind   // what it takes; none: one of Words only
	Words []string // that it takes as a string
	// Many says that it takes any number of arguments, which are its kind's; Spread that the numbers of its list may be
	// given as the last arguments, without a table.
	Many, Spread bool
	Optional     bool
	Default      string // as the signature has it; "" if there is none
	// Value is what Default stands for, as Args holds it, nil if there is none; a number where the kind is an array,
	// which the caller makes. Nobody may change it.
	Value any
}

// Kind is the parameter's first kind.
func (p *Param) Kind() Kind {
	if len(p.Kinds) == 0 {
		return KindString
	}
	return p.Kinds[0]
}

// Is says whether k is among the parameter's kinds.
func (p *Param) Is(k Kind) bool { return slices.Contains(p.Kinds, k) }

// Go says whether all kinds are known outside of the binding.
func (p *Param) Go() bool {
	return !slices.ContainsFunc(p.Kinds, func(k Kind) bool { return k >= KindFunction })
}

// MustParse is Parse for signatures that are part of the program: it panics on a wrong one.
func MustParse(signature string) []Param {
	params, err := Parse(signature)
	if err != nil {
		panic("BUG: sig: " + err.Error())
	}
	return params
}

// Parse turns a signature into parameters.
func Parse(signature string) ([]Param, error) {
	var out []Param
	for _, field := range strings.Fields(signature) {
		p, err := parseParam(field)
		if err != nil {
			return nil, fmt.Errorf("%s in %q: %w", field, signature, err)
		}
		for _, q := range out {
			if q.Name == p.Name {
				return nil, fmt.Errorf("%s in %q: there are two", p.Name, signature)
			}
			if q.Many && !p.Optional {
				return nil, fmt.Errorf("%s in %q: behind ... it must be optional", p.Name, signature)
			}
			if q.Spread {
				return nil, fmt.Errorf("%s in %q: %s... must be the last", p.Name, signature, q.Name)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

func parseParam(field string) (Param, error) {
	var p Param
	end := strings.IndexAny(field, ":?=")
	if dots := strings.Index(field, "..."); dots >= 0 && (end < 0 || dots < end) {
		end = dots
	}
	if end < 0 {
		end = len(field)
	}
	p.Name = field[:end]
	if p.Name == "" {
		return p, fmt.Errorf("there is no name")
	}
	kinds, rest := "array", field[end:]
	if text, ok := strings.CutPrefix(rest, ":"); ok {
		kinds, rest = text, ""
		if i := strings.IndexAny(text, "?="); i >= 0 {
			kinds, rest = text[:i], text[i:]
		}
	}
	many := false
	kinds, many = strings.CutSuffix(kinds, "...")
	if text, ok := strings.CutPrefix(rest, "..."); ok {
		many, rest = true, text
	}
	if err := p.parseKinds(kinds); err != nil {
		return p, err
	}
	if many {
		p.Spread = p.Kind().list() && len(p.Kinds) == 1
		p.Many = !p.Spread
	}
	switch {
	case rest == "?":
		p.Optional = true
	case strings.HasPrefix(rest, "=") && len(rest) > 1:
		p.Optional, p.Default = true, rest[1:]
		var err error
		if p.Value, err = p.parseValue(p.Default); err != nil {
			return p, err
		}
	case rest != "":
		return p, fmt.Errorf("%q is neither ? nor a default", rest)
	}
	return p, nil
}

func (p *Param) parseKinds(text string) error {
	for _, name := range strings.Split(text, "|") {
		if word, ok := strings.CutPrefix(name, "'"); ok {
			word, ok = strings.CutSuffix(word, "'")
			if !ok || word == "" {
				return fmt.Errorf("%s is no word in quotes", name)
			}
			p.Words = append(p.Words, word)
			continue
		}
		k := slices.Index(kindNames[:], name)
		if k < 0 {
			return fmt.Errorf("%q is no kind", name)
		}
		p.Kinds = append(p.Kinds, Kind(k))
	}
	return nil
}

// parseValue is a default: of the first kind that has such a value, or one of the words.
func (p *Param) parseValue(text string) (any, error) {
	if slices.Contains(p.Words, text) {
		return text, nil
	}
	for _, k := range p.Kinds {
		if v := k.parse(text); v != nil {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%q is no value of the parameter", text)
}

// parse is the value of a kind that a text stands for, or nil.
func (k Kind) parse(text string) any {
	switch k {
	case KindInt, KindAxis:
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	case KindNumber, KindArray, KindOperand, KindFloat:
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return v
		}
	case KindBool:
		if v, err := strconv.ParseBool(text); err == nil && (text == "true" || text == "false") {
			return v
		}
	case KindString:
		return text
	case KindDType:
		if d, err := tensor.ParseDType(text); err == nil {
			return d
		}
	case KindInts, KindAxes, KindList:
		if n, err := strconv.Atoi(text); err == nil {
			return []int{n}
		}
		if list, ok := parseInts(text); ok {
			return list
		}
	case KindIntLists:
		if n, err := strconv.Atoi(text); err == nil {
			return &IntLists{Lists: [][]int{{n}}, Depth: 0}
		}
	case KindShape:
		if list, ok := parseInts(text); ok {
			s := tensor.Sizes(list...)
			return &s
		}
	}
	return nil
}

// parseInts reads [1,2].
func parseInts(text string) ([]int, bool) {
	inner, ok := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return nil, false
	}
	list := []int{}
	if inner == "" {
		return list, true
	}
	for _, part := range strings.Split(inner, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}
