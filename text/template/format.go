package template

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is what stands between % and a letter, or behind the colon in {:>10}.
type spec struct {
	fill      string
	align     byte // '<', '>', '^', '=' or 0
	sign      byte // '+', ' ' or 0
	alt, zero bool
	width     int64
	comma     byte
	precision int // -1: none
	verb      byte
}

// digits reads a number at s[i:].
func (r *values) digits(s string, i int) (n int64, end int) {
	for end = i; end < len(s) && s[end] >= '0' && s[end] <= '9'; end++ {
		if n = n*10 + int64(s[end]-'0'); n > math.MaxInt32 {
			r.fail("a width or precision in '%.20s' is too large", s)
		}
	}
	return n, end
}

// percent is format % value.
func (r *values) percent(format string, value any) string {
	args := []any{value}
	single := true
	if l, ok := value.(*List); ok && l.kind == "tuple" {
		args, single = l.Items, false
	}
	named, _ := value.(*Dict)
	var b strings.Builder
	used := 0
	next := func() any {
		if used >= len(args) {
			r.fail("not enough arguments for format string")
		}
		used++
		return args[used-1]
	}
	byName := false
	for i := 0; i < len(format); {
		if format[i] != '%' {
			j := strings.IndexByte(format[i:]+"%", '%')
			b.WriteString(format[i : i+j])
			i += j
			continue
		}
		if strings.HasPrefix(format[i:], "%%") {
			b.WriteByte('%')
			i += 2
			continue
		}
		var v any
		i++
		if named != nil && strings.HasPrefix(format[i:], "(") {
			key, _, ok := strings.Cut(format[i+1:], ")")
			x, has := named.get(key)
			if !ok || !has {
				r.fail("there is no key '%s'", key)
			}
			v, byName = x, true
			i += len(key) + 2
		}
		sp, end := r.percentSpec(format, i, next)
		i = end
		if !byName {
			v = next()
		}
		s := r.percentValue(sp, v)
		r.alloc(len(s))
		b.WriteString(s)
	}
	_, list := value.(*List) // as a dict, it can have more than is asked for
	if used < len(args) && !byName && !(single && (named != nil || list)) {
		r.fail("not all arguments converted during string formatting")
	}
	r.alloc(b.Len())
	return b.String()
}

func (r *values) percentSpec(format string, i int, next func() any) (spec, int) {
	sp := spec{fill: " ", align: '>', precision: -1}
	for ; i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0; i++ {
		switch format[i] {
		case '-':
			sp.align = '<'
		case '+', ' ':
			sp.sign = format[i]
		case '#':
			sp.alt = true
		case '0':
			sp.zero = true
		}
	}
	if strings.HasPrefix(format[i:], "*") {
		sp.width, i = r.toInt(next()), i+1
	} else {
		sp.width, i = r.digits(format, i)
	}
	if strings.HasPrefix(format[i:], ".") {
		n, end := r.digits(format, i+1)
		sp.precision, i = int(n), end
	}
	if i >= len(format) {
		r.fail("incomplete format")
	}
	sp.verb = format[i]
	return sp, i + 1
}

func (r *values) percentValue(sp spec, v any) string {
	switch sp.verb {
	case 's', 'r', 'a':
		s := r.text(v)
		if sp.verb != 's' {
			s = mustRepr(v)
		}
		if sp.precision >= 0 {
			s = r.cut(s, sp.precision)
		}
		return r.align(sp, "", s, false)
	case 'c':
		if n, ok := integer(v); ok {
			return r.align(sp, "", string(rune(n)), false)
		}
		return r.align(sp, "", r.wantString("%c", v), false)
	case 'd', 'i', 'u':
		if _, ok := integer(v); !ok {
			v = int64(math.Trunc(r.number(v)))
		}
		sp.verb = 'd'
	case 'x', 'X', 'o':
		r.toInt(v)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if _, ok := integer(v); ok {
			v = r.number(v)
		}
	default:
		r.fail("unsupported format character '%c'", sp.verb)
	}
	return r.formatNumber(sp, v)
}

// cut is s[:n].
func (r *values) cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// formatNumber writes a number.
func (r *values) formatNumber(sp spec, v any) string {
	var digits, prefix string
	negative := false
	if n, ok := integer(v); ok && strings.IndexByte("eEfFgG%", sp.verb) < 0 {
		base := map[byte]int{'x': 16, 'X': 16, 'o': 8, 'b': 2}[sp.verb]
		if base == 0 {
			base = 10
		}
		digits = strconv.FormatUint(magnitude(n), base)
		negative = n < 0
		if sp.alt && base != 10 {
			prefix = "0" + strings.ToLower(string(sp.verb))
		}
		if sp.verb == 'X' {
			digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
		}
	} else {
		f := r.number(v)
		negative = math.Signbit(f) && !math.IsNaN(f)
		digits = r.floatDigits(sp, math.Abs(f))
	}
	if sp.comma != 0 {
		digits = group(digits, sp.comma)
	}
	sign := ""
	switch {
	case negative:
		sign = "-"
	case sp.sign != 0:
		sign = string(sp.sign)
	}
	return r.align(sp, sign+prefix, digits, true)
}

func (r *values) floatDigits(sp spec, f float64) string {
	precision, verb := sp.precision, sp.verb
	if precision > 10_000 {
		r.fail("a precision of %d is too large", precision)
	}
	switch {
	case math.IsInf(f, 0):
		return "inf"
	case math.IsNaN(f):
		return "nan"
	case verb == 0 && precision < 0:
		return floatText(f)
	case precision < 0:
		precision = 6
	}
	switch verb {
	case '%':
		return strconv.FormatFloat(f*100, 'f', precision, 64) + "%"
	case 0, 'g', 'G', 'n':
		return general(f, max(precision, 1), verb)
	case 'F':
		verb = 'f'
	}
	return strconv.FormatFloat(f, verb, precision, 64)
}

// general is %g: so many digits, without zeros at the end.
func general(f float64, precision int, verb byte) string {
	s := strconv.FormatFloat(f, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	e, _ := strconv.Atoi(exponent)
	if e < -4 || e >= precision {
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		s = mantissa + "e" + exponent
	} else {
		s = strconv.FormatFloat(f, 'f', max(0, precision-1-e), 64)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		if verb == 0 && !strings.Contains(s, ".") {
			s += ".0"
		}
	}
	if verb == 'G' {
		s = strings.ToUpper(s)
	}
	return s
}

// group puts a separator between thousands.
func group(digits string, by byte) string {
	whole, rest := digits, ""
	if i := strings.IndexAny(digits, ".e%"); i >= 0 {
		whole, rest = digits[:i], digits[i:]
	}
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(by)
		}
		b.WriteRune(c)
	}
	return b.String() + rest
}

// align fills up to the width; a number is filled between its sign and its digits, where zeros are asked for.
func (r *values) align(sp spec, sign, s string, isNumber bool) string {
	n := sp.width - int64(utf8.RuneCountInString(sign)+utf8.RuneCountInString(s))
	fill, how := sp.fill, sp.align
	if sp.zero && isNumber && how != '<' {
		fill, how = "0", '='
	}
	if n <= 0 {
		return sign + s
	}
	switch {
	case how == '=' && isNumber:
		return sign + r.times(fill, n) + s
	case how == '<' || how == 0 && !isNumber:
		return sign + s + r.times(fill, n)
	case how == '^':
		return r.times(fill, n/2) + sign + s + r.times(fill, n-n/2)
	}
	return r.times(fill, n) + sign + s
}

// format is s.format(...).
func (r *run) format(s string, c call) string {
	var b strings.Builder
	auto := 0
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "{{") || strings.HasPrefix(s[i:], "}}"):
			b.WriteByte(s[i])
			i += 2
		case s[i] == '}':
			r.fail("Single '}' encountered in format string")
		case s[i] == '{':
			field, _, ok := strings.Cut(s[i+1:], "}")
			if !ok || strings.Contains(field, "{") {
				r.fail("a field of a format string has no end, or holds another field: '%s'", field)
			}
			text := r.formatField(field, c, &auto)
			r.alloc(len(text))
			b.WriteString(text)
			i += len(field) + 2
		default:
			j := strings.IndexAny(s[i:], "{}")
			if j < 0 {
				j = len(s) - i
			}
			b.WriteString(s[i : i+j])
			i += j
		}
	}
	r.alloc(b.Len())
	return b.String()
}

func (r *run) formatField(field string, c call, auto *int) string {
	field, format, _ := strings.Cut(field, ":")
	field, conversion, _ := strings.Cut(field, "!")
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	v := r.formatArgument(field[:end], c, auto)
	for rest := field[end:]; rest != ""; {
		var key string
		if rest[0] == '[' {
			key, rest, _ = strings.Cut(rest[1:], "]")
			if n, err := strconv.ParseInt(key, 10, 64); err == nil {
				v = r.subscript(v, n)
				continue
			}
			v = r.subscript(v, key)
			continue
		}
		rest = rest[1:]
		n := strings.IndexAny(rest+".", ".[")
		key, rest = rest[:n], rest[n:]
		v = r.attribute(v, key)
	}
	switch conversion {
	case "":
	case "s":
		v = r.text(v)
	case "r":
		v = mustRepr(v)
	default:
		r.fail("Unknown conversion specifier '%s'", conversion)
	}
	return r.formatValue(format, v)
}

func (r *run) formatArgument(key string, c call, auto *int) any {
	n, err := int64(*auto), error(nil)
	if key == "" {
		*auto++
	} else {
		n, err = strconv.ParseInt(key, 10, 64)
	}
	if err != nil {
		for i, name := range c.names {
			if name == key {
				return c.values[i]
			}
		}
		r.fail("there is no argument '%s' to format", key)
	}
	if n < 0 || n >= int64(len(c.args)) {
		r.fail("Replacement index %d out of range for positional args tuple", n)
	}
	return c.args[n]
}

// formatValue is format(v, spec): [[fill]align][sign][#][0][width][,][.precision][type].
func (r *run) formatValue(format string, v any) string {
	if format == "" {
		return r.text(v)
	}
	sp := spec{fill: " ", precision: -1}
	i := 0
	_, n := utf8.DecodeRuneInString(format)
	switch {
	case len(format) > n && strings.IndexByte("<>^=", format[n]) >= 0:
		sp.fill, sp.align, i = format[:n], format[n], n+1
	case strings.IndexByte("<>^=", format[0]) >= 0:
		sp.align, i = format[0], 1
	}
	flag := func(set string) byte {
		if i < len(format) && strings.IndexByte(set, format[i]) >= 0 {
			i++
			return format[i-1]
		}
		return 0
	}
	if sp.sign = flag("+- "); sp.sign == '-' {
		sp.sign = 0
	}
	sp.alt = flag("#") != 0
	sp.zero = flag("0") != 0 && sp.align == 0
	sp.width, i = r.digits(format, i)
	sp.comma = flag(",_")
	if flag(".") != 0 {
		p, end := r.digits(format, i)
		sp.precision, i = int(p), end
	}
	sp.verb = flag("sdxXobeEfFgGn%c")
	if i < len(format) {
		r.fail("Invalid format specifier '%s'", format)
	}
	if _, isBool := v.(bool); isNumber(v) && sp.verb != 's' && !(isBool && sp.verb == 0) {
		if _, isInt := integer(v); !isInt && strings.IndexByte("dxXobc", sp.verb) >= 0 && sp.verb != 0 {
			r.fail("Unknown format code '%c' for object of type 'float'", sp.verb)
		}
		return r.formatNumber(sp, v)
	}
	if text := isText(v); !text && !isNumber(v) || sp.verb != 0 && sp.verb != 's' {
		r.fail("Invalid format specifier '%s' for object of type '%s'", format, typeName(v))
	}
	s := r.text(v)
	if sp.precision >= 0 {
		s = r.cut(s, sp.precision)
	}
	return r.align(sp, "", s, false)
}
