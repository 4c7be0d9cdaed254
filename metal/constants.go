package metal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Constant is a value for a function constant of a kernel's text: a variable with [[function_constant(n)]].
type Constant struct {
	Name  string // as the text declares it, with its namespaces; "": Index says which
	Index int
	// Values are bools for bool, float64s for numbers, or an integer's digits as a string where a float64 does not hold
	// them: one for a scalar, and one for each component of a vector.
	Values []any
}

// String names the constant in messages.
func (c Constant) String() string {
	if c.Name == "" {
		return "[" + strconv.Itoa(c.Index) + "]"
	}
	return c.Name
}

// ConstantsText writes constants as Options.Constants wants them, always in the same order. It fails where a name is no
// identifier, a constant is given twice, or a value is none.
func ConstantsText(list []Constant) (string, error) {
	parts := make([]string, len(list))
	for i, c := range list {
		if c.Name != "" && !isQualified(c.Name) {
			return "", fmt.Errorf("%q is no name of a function constant", c.Name)
		}
		if slices.ContainsFunc(list[:i], func(o Constant) bool { return o.Name == c.Name && o.Index == c.Index }) {
			return "", fmt.Errorf("the function constant %s is given twice", c)
		}
		values := make([]string, len(c.Values))
		for j, v := range c.Values {
			switch v := v.(type) {
			case bool:
				values[j] = strconv.FormatBool(v)
			case float64:
				values[j] = "f" + strconv.FormatFloat(v, 'g', -1, 64)
			case string:
				if strings.Trim(strings.TrimPrefix(v, "-"), "0123456789") != "" || v == "" || v == "-" {
					return "", fmt.Errorf("the function constant %s is %q, want digits", c, v)
				}
				values[j] = "d" + v
			default:
				return "", fmt.Errorf("the function constant %s is a %T, want a bool, a number or digits", c, v)
			}
		}
		if len(values) == 0 {
			return "", fmt.Errorf("the function constant %s has no value", c)
		}
		parts[i] = c.String() + "=" + strings.Join(values, ",")
	}
	slices.Sort(parts)
	return strings.Join(parts, ";"), nil
}

// isQualified reports whether a text is an identifier, with namespaces or without.
func isQualified(text string) bool {
	for part := range strings.SplitSeq(text, "::") {
		for i, r := range part {
			letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			if !letter && (i == 0 || r < '0' || r > '9') {
				return false
			}
		}
		if part == "" {
			return false
		}
	}
	return true
}

// ParseConstants reads what ConstantsText has written.
func ParseConstants(text string) ([]Constant, error) {
	if text == "" {
		return nil, nil
	}
	var list []Constant
	for part := range strings.SplitSeq(text, ";") {
		name, values, ok := strings.Cut(part, "=")
		c := Constant{Name: name}
		if index, is := strings.CutPrefix(name, "["); is {
			n, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil {
				return nil, fmt.Errorf("[constants] the text %q has no index", part)
			}
			c = Constant{Index: n}
		}
		for v := range strings.SplitSeq(values, ",") {
			x, err := parseConstant(v)
			if err != nil || !ok {
				return nil, fmt.Errorf("[constants] the text %q has no value", part)
			}
			c.Values = append(c.Values, x)
		}
		list = append(list, c)
	}
	if again, err := ConstantsText(list); err != nil || again != text {
		return nil, fmt.Errorf("[constants] %q is no text of constants", text)
	}
	return list, nil
}

func parseConstant(text string) (any, error) {
	if number, is := strings.CutPrefix(text, "f"); is && text != "false" {
		return strconv.ParseFloat(number, 64)
	}
	if digits, is := strings.CutPrefix(text, "d"); is {
		return digits, nil
	}
	return strconv.ParseBool(text)
}
