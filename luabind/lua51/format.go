package lua51

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stringFormat is string.format with C's defaults and rounding.
func (s *State) stringFormat(L *lua.LState) int {
	text := L.CheckString(1)
	out := s.longText("string.format")
	defer out.end()
	arg := 1
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			out.add(text)
			break
		}
		out.add(text[:i])
		text = text[i+1:]
		if strings.HasPrefix(text, "%") {
			out.addByte('%')
			text = text[1:]
			continue
		}
		spec, err := readDirective(text)
		if err != nil {
			L.RaiseError("%s", err.Error())
		}
		text = text[spec.length:]
		arg++
		if spec.verb == 'q' {
			out.addQuoted(L.CheckString(arg))
		} else {
			out.add(s.formatted(L, arg, spec))
		}
	}
	L.Push(out.value())
	return 1
}

// directive is a conversion of string.format: flags, width, precision (-1: none) and verb.
type directive struct {
	flags            string
	width, precision int
	verb             byte
	length           int
}

func readDirective(text string) (d directive, err error) {
	i := 0
	for i < len(text) && strings.IndexByte("-+ #0", text[i]) >= 0 {
		i++
	}
	d.flags = text[:i]
	digits := func() int {
		n, first := 0, i
		for i < len(text) && isDigit(text[i]) && i-first < 3 {
			n = 10*n + int(text[i]-'0')
			i++
		}
		if i-first > 2 {
			err = errors.New("invalid format (width or precision too long)")
		}
		return n
	}
	d.width, d.precision = digits(), -1
	if i < len(text) && text[i] == '.' {
		i++
		d.precision = digits()
	}
	switch {
	case err != nil:
	case len(d.flags) > 5:
		err = errors.New("invalid format (repeated flags)")
	case i == len(text):
		err = errors.New("invalid format (ends with '%')")
	default:
		d.verb, d.length = text[i], i+1
	}
	return d, err
}

// formatted is one converted argument, of any verb but q.
func (s *State) formatted(L *lua.LState, arg int, d directive) string {
	has := func(flag string) bool { return strings.Contains(d.flags, flag) }
	pad := func(text string) string {
		if fill := d.width - len(text); fill > 0 && has("-") {
			text += strings.Repeat(" ", fill)
		} else if fill > 0 {
			text = strings.Repeat(" ", fill) + text
		}
		return text
	}
	// The verb's own flags: padding with blanks is pad's.
	layout := func(precision int, verb string) string {
		f := "%" + strings.NewReplacer("-", "").Replace(d.flags)
		if has("0") && !has("-") && d.width > 0 {
			f += strconv.Itoa(d.width)
		} else {
			f = strings.ReplaceAll(f, "0", "")
		}
		if precision >= 0 {
			f += "." + strconv.Itoa(precision)
		}
		return f + verb
	}
	switch d.verb {
	case 'c':
		return pad(string([]byte{byte(L.CheckInt(arg))}))
	case 'd', 'i':
		return pad(fmt.Sprintf(layout(d.precision, "d"), int64(L.CheckNumber(arg))))
	case 'u', 'o', 'x', 'X':
		verb := strings.ReplaceAll(string(rune(d.verb)), "u", "d")
		v := float64(L.CheckNumber(arg))
		n := uint64(int64(v))
		if v >= 1<<63 {
			n = uint64(v)
		}
		return pad(fmt.Sprintf(layout(d.precision, verb), n))
	case 'e', 'E', 'f', 'g', 'G':
		v := float64(L.CheckNumber(arg))
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return pad(strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%"+strings.Trim(d.flags, "-#0 ")+"f", v), "+")))
		}
		precision := d.precision
		if precision < 0 {
			precision = 6
		}
		return pad(fmt.Sprintf(layout(precision, string(rune(d.verb))), v))
	case 's':
		if arg > L.GetTop() {
			L.ArgError(arg, "string expected, got no value")
		}
		text := Text(L, L.Get(arg))
		if d.precision >= 0 && d.precision < len(text) {
			text = text[:d.precision]
		}
		return pad(text)
	}
	L.RaiseError("invalid option '%%%c' to 'format'", d.verb)
	return ""
}

// addQuoted adds a string as Lua reads it.
func (t *longText) addQuoted(text string) {
	t.addByte('"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '"', '\\', '\n':
			t.addByte('\\')
			t.addByte(c)
		case '\r':
			t.add("\\r")
		case 0:
			t.add("\\000")
		default:
			t.addByte(c)
		}
	}
	t.addByte('"')
}
