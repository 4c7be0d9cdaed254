package template

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// maxNesting bounds how deep values are walked: a namespace can contain itself.
const maxNesting = 100

// text is Python's str(v).
func (r *values) text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case undefined:
		return ""
	}
	var b strings.Builder
	r.repr(&b, v, 0)
	return b.String()
}

// mustRepr is repr for values of ours, in messages.
func mustRepr(v any) string {
	var b strings.Builder
	(&values{budget{limits: Limits{}.orDefault()}}).repr(&b, v, 0)
	return b.String()
}

// repr writes Python's repr(v).
func (r *values) repr(b *strings.Builder, v any, depth int) {
	if depth > maxNesting {
		r.fail("values are nested more than %d deep", maxNesting)
	}
	before := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatText(v))
	case string:
		reprString(b, v)
	case markup:
		b.WriteString("Markup(")
		reprString(b, string(v))
		b.WriteByte(')')
	case *List:
		r.reprList(b, v, depth)
	case *Dict:
		r.reprDict(b, v, depth)
	case undefined:
		b.WriteString("Undefined")
	case *namespace:
		b.WriteString("<Namespace ")
		r.reprDict(b, v.attrs, depth+1)
		b.WriteString(">")
	case *macro:
		fmt.Fprintf(b, "<Macro '%s'>", v.name)
	case *loop:
		fmt.Fprintf(b, "<LoopContext %d/%d>", v.index+1, len(v.items))
	default:
		r.fail("a %s has no text that is the same everywhere", typeName(v))
	}
	r.alloc(b.Len() - before)
}

func (r *values) reprList(b *strings.Builder, l *List, depth int) {
	open, shut := "[", "]"
	switch l.kind {
	case "tuple":
		open, shut = "(", ")"
		if len(l.Items) == 1 {
			shut = ",)"
		}
	case "dict_keys", "dict_values", "dict_items":
		open, shut = l.kind+"([", "])"
	case "range":
		r.fail("a range has no text here")
	}
	b.WriteString(open)
	for i, x := range l.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		r.repr(b, x, depth+1)
	}
	b.WriteString(shut)
}

func (r *values) reprDict(b *strings.Builder, d *Dict, depth int) {
	b.WriteString("{")
	for i, k := range d.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		r.repr(b, k, depth+1)
		b.WriteString(": ")
		r.repr(b, d.vals[i], depth+1)
	}
	b.WriteString("}")
}

// reprString writes a string with quotes: single ones, unless only those occur in it.
func reprString(b *strings.Builder, s string) {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteRune(quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7F:
			fmt.Fprintf(b, `\x%02x`, c)
		case c < 0x7F || printable(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			fmt.Fprintf(b, `\U%08x`, c)
		}
	}
	b.WriteRune(quote)
}

// printable is Python's str.isprintable of one character.
func printable(c rune) bool {
	return c == ' ' || c > 0x7F && unicode.IsGraphic(c) && !unicode.Is(unicode.Z, c) || c > ' ' && c < 0x7F
}

// floatText is Python's repr of a float.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	if e, _ := strconv.Atoi(exponent); e >= -4 && e < 16 {
		s = strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return mantissa + "e" + exponent
}
