package msl

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// numberLit is a decoded number.
type numberLit struct {
	float    bool
	i        uint64
	decimal  bool
	unsigned bool
	long     bool
	f        float64
	text     string
	suffix   string
}

// parseNumber decodes a preprocessing number; msg is "" if it is one that C++ or Metal knows.
func parseNumber(s string) (n numberLit, msg string) {
	// The common case: one to nine decimal digits.
	if len(s) < 10 && (s[0] != '0' || len(s) == 1) {
		v := uint64(0)
		for i := 0; i < len(s); i++ {
			d := s[i] - '0'
			if d > 9 {
				goto general
			}
			v = v*10 + uint64(d)
		}
		return numberLit{i: v, decimal: true}, ""
	}
general:
	if strings.Contains(s, "'") {
		s = strings.ReplaceAll(s, "'", "")
	}
	low := strings.ToLower(s)
	hex := isHex(low)
	if strings.ContainsAny(low, ".") || !hex && !strings.HasPrefix(low, "0b") && strings.Contains(low, "e") ||
		hex && strings.Contains(low, "p") {
		return parseFloat(low, hex)
	}
	digits, base := low, 10
	switch {
	case hex:
		digits, base = low[2:], 16
	case strings.HasPrefix(low, "0b"):
		digits, base = low[2:], 2
	case len(low) > 1 && low[0] == '0':
		base = 8
	}
	end := 0
	for end < len(digits) && digitValue(digits[end]) < base {
		end++
	}
	suffix := digits[end:]
	digits = digits[:end]
	if base == 8 || base == 10 {
		switch suffix {
		case "f", "h", "bf": // 1f is no C++, but Metal's own headers' users write 1h
			if suffix != "f" {
				return parseFloat(low, false)
			}
		}
		if base == 8 && suffix != "" && suffix[0] >= '0' && suffix[0] <= '9' {
			return n, "'" + clip(s) + "' has a digit that is not octal"
		}
	}
	if digits == "" {
		return n, "'" + clip(s) + "' has no digits"
	}
	n.decimal = base == 10
	switch suffix {
	case "":
	case "u":
		n.unsigned = true
	case "l", "ll", "z":
		n.long = true
	case "ul", "ull", "lu", "llu", "uz", "zu":
		n.unsigned, n.long = true, true
	default:
		return n, "'" + clip(suffix) + "' is no suffix of an integer"
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return n, "'" + clip(s) + "' does not fit in 64 bits"
	}
	n.i = v
	return n, ""
}

func digitValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return 99
}

// parseFloat decodes a floating literal in lower case.
func parseFloat(low string, hex bool) (n numberLit, msg string) {
	body := low
	for _, suf := range []string{"bf", "f", "h", "l"} {
		if !strings.HasSuffix(body, suf) || hex && !strings.Contains(body, "p") {
			continue
		}
		n.suffix = suf
		body = strings.TrimSuffix(body, suf)
		break
	}
	if hex && !strings.Contains(body, "p") {
		return n, "'" + clip(low) + "': a hexadecimal floating literal needs an exponent: p"
	}
	f, err := strconv.ParseFloat(body, 64)
	if err != nil && !math.IsInf(f, 0) || strings.ContainsAny(body, "_nyi") || body == "" {
		return n, "'" + clip(low) + "' is not a number"
	}
	n.float, n.f, n.text = true, f, body
	return n, ""
}

// unescape decodes what stands between the quotes of a literal into bytes; msg is "" if its escapes are known.
func unescape(s string) (out []byte, msg string) {
	if strings.IndexByte(s, '\\') < 0 {
		return []byte(s), ""
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		if i >= len(s) {
			return out, "a lone \\"
		}
		c := s[i]
		if k := strings.IndexByte("abfnrtv\\'\"?", c); k >= 0 {
			out = append(out, "\a\b\f\n\r\t\v\\'\"?"[k])
			continue
		}
		switch {
		case c >= '0' && c <= '7':
			v, j := 0, i
			for ; j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7'; j++ {
				v = v*8 + int(s[j]-'0')
			}
			out = append(out, byte(v))
			i = j - 1
		case c == 'x':
			v, j := 0, i+1
			for ; j < len(s) && digitValue(s[j]|0x20) < 16 && v < 256; j++ {
				v = v*16 + digitValue(s[j]|0x20)
			}
			if j == i+1 || v > 255 {
				return out, "\\x needs one byte in hexadecimal"
			}
			out = append(out, byte(v))
			i = j - 1
		case c == 'u' || c == 'U':
			n := 4
			if c == 'U' {
				n = 8
			}
			if i+n >= len(s) {
				return out, "\\u needs 4 and \\U needs 8 hexadecimal digits"
			}
			v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil || !utf8.ValidRune(rune(v)) {
				return out, "\\u needs 4 and \\U needs 8 hexadecimal digits of a character"
			}
			out = utf8.AppendRune(out, rune(v))
			i += n
		default:
			return out, "unknown escape \\" + string(rune(c))
		}
	}
	return out, ""
}
