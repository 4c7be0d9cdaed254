package lua51

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// numberText is a number as Lua writes it: with 14 digits. Which sign a NaN has depends on the processor, so none is
// shown.
func numberText(n lua.LNumber) string {
	v := float64(n)
	switch {
	case alike(v):
		return strconv.Itoa(int(v))
	case math.IsInf(v, 0) || math.IsNaN(v):
		return notFinite(v)
	}
	return strconv.FormatFloat(v, 'g', 14, 64)
}

// notFinite is what C writes of an infinity, and of a NaN without its sign.
func notFinite(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case v < 0:
		return "-inf"
	}
	return "inf"
}

// asText is the text of a value that is a text or a number; false: it is neither.
func asText(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return numberText(v), true
	}
	return "", false
}

// toNumber is tonumber.
func toNumber(L *lua.LState) int {
	base := optional(L, 2, integerArg, 10)
	var n float64
	var ok bool
	if base == 10 {
		n, ok = operandNumber(L.CheckAny(1))
	} else {
		digits := textArg(L, 1)
		if base < 2 || base > 36 {
			L.ArgError(2, "base out of range")
		}
		var read lua.LNumber
		read, ok = readNumber(digits, base)
		n = float64(read)
	}
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(n))
	return 1
}

// isDecimal reports whether text is a number as Lua writes it, without the names of infinity and not-a-number.
func isDecimal(text string) bool {
	digits := func() bool {
		rest := strings.TrimLeft(text, "0123456789")
		some := len(rest) < len(text)
		text = rest
		return some
	}
	sign := func() {
		if text != "" && (text[0] == '-' || text[0] == '+') {
			text = text[1:]
		}
	}
	sign()
	some := digits()
	if strings.HasPrefix(text, ".") {
		text = text[1:]
		some = digits() || some
	}
	if some && text != "" && (text[0] == 'e' || text[0] == 'E') {
		text = text[1:]
		sign()
		some = digits()
	}
	return some && text == ""
}

// readNumber reads text as Lua's manual says: a number of base 10 as in source text, others as integers.
func readNumber(text string, base int) (lua.LNumber, bool) {
	text = strings.Trim(text, " \t\n\v\f\r")
	if base == 10 && isDecimal(text) {
		v, err := strconv.ParseFloat(text, 64)
		return lua.LNumber(v), err == nil || v != 0 // too large a number is infinity
	}
	digits := strings.TrimLeft(text, "-+")
	if len(text)-len(digits) > 1 {
		return 0, false
	}
	hex := len(digits) > 2 && strings.EqualFold(digits[:2], "0x")
	switch {
	case hex && (base == 10 || base == 16):
		base, digits = 16, digits[2:]
	case base == 10:
		return 0, false
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil && v != math.MaxUint64 { // which stands for what is larger
		return 0, false
	}
	if text[0] == '-' {
		return -lua.LNumber(v), true
	}
	return lua.LNumber(v), true
}
