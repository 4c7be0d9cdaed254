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
func stringFormat(s *State, L *lua.LState) int {
	text := textArg(L, 1)
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
		if arg++; arg > L.GetTop() {
			L.ArgError(arg, "no value")
		}
		spec, err := readDirective(text)
		if err != nil {
			L.RaiseError("%s", err.Error())
		}
		text = text[spec.length:]
		if spec.verb == 'q' {
			out.addQuoted(textArg(L, arg))
		} else {
			out.add(formatted(s, L, arg, spec))
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
		err = errors.New("invalid option '%' to 'format'")
	default:
		d.verb, d.length = text[i], i+1
	}
	return d, err
}

// formatted is one converted argument, of any verb but q.
func formatted(s *State, L *lua.LState, arg int, d directive) string {
	switch d.verb {
	case 'c':
		c := byte(integerArg(L, arg))
		if c == 0 { // which ends a text of C's
			return d.padded("", "", false)
		}
		return d.padded("", string([]byte{c}), false)
	case 'd', 'i':
		n := integerArg(L, arg)
		size := uint64(n)
		if n < 0 {
			size = -size
		}
		return d.whole(d.sign(n < 0), strconv.FormatUint(size, 10))
	case 'u', 'o', 'x', 'X':
		return d.unsigned(numberArg(L, arg))
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(numberArg(L, arg))
	case 's':
		text := Text(L, L.Get(arg))
		if d.precision >= 0 && d.precision < len(text) {
			text = text[:d.precision]
		}
		return d.padded("", text, false)
	}
	L.RaiseError("invalid option '%%%c' to 'format'", d.verb)
	return ""
}

func (d directive) has(flag byte) bool { return strings.IndexByte(d.flags, flag) >= 0 }

// sign is what stands before a number.
func (d directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.has('+'):
		return "+"
	case d.has(' '):
		return " "
	}
	return ""
}

// padded fills a text up to the width: with zeros between what is before and it, or with blanks.
func (d directive) padded(before, text string, zeros bool) string {
	fill := d.width - len(before) - len(text)
	switch {
	case fill <= 0:
		return before + text
	case d.has('-'):
		return before + text + strings.Repeat(" ", fill)
	case zeros && d.has('0'):
		return before + strings.Repeat("0", fill) + text
	}
	return strings.Repeat(" ", fill) + before + text
}

// whole is a whole number by its digits: as many as the precision says, and none for 0 with the precision 0.
func (d directive) whole(before, digits string) string {
	if d.precision == 0 && digits == "0" {
		digits = ""
	}
	if more := d.precision - len(digits); more > 0 {
		digits = strings.Repeat("0", more) + digits
	}
	return d.padded(before, digits, d.precision < 0)
}

// unsigned is a whole number without a sign, of 64 bits.
func (d directive) unsigned(v float64) string {
	n := uint64(integer(v))
	if v >= 1<<63 {
		n = uint64(v)
	}
	switch d.verb {
	case 'u':
		return d.whole("", strconv.FormatUint(n, 10))
	case 'o':
		digits := strconv.FormatUint(n, 8)
		if d.has('#') && n != 0 {
			digits = "0" + digits
		}
		return d.whole("", digits)
	}
	before, digits := "", strconv.FormatUint(n, 16)
	if d.has('#') && n != 0 {
		before = "0x"
	}
	if d.verb == 'X' {
		before, digits = strings.ToUpper(before), strings.ToUpper(digits)
	}
	return d.whole(before, digits)
}

// float is a number with a fraction or an exponent.
func (d directive) float(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		text := notFinite(math.Abs(v))
		if d.verb < 'a' {
			text = strings.ToUpper(text)
		}
		return d.padded(d.sign(v < 0), text, false)
	}
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	layout := "%."
	if d.has('#') {
		layout = "%#."
	}
	text := fmt.Sprintf(layout+strconv.Itoa(precision)+string(rune(d.verb)), math.Abs(v))
	return d.padded(d.sign(math.Signbit(v)), text, true)
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
