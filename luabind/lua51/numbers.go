package lua51

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openToNumber replaces tonumber, because gopher-lua's knows no exponent without a point: its tonumber("1e-3") is nil.
func (s *State) openToNumber() {
	s.L.SetGlobal("tonumber", s.Func(func(L *lua.LState) int {
		base := L.OptInt(2, 10)
		if base < 2 || base > 36 {
			L.ArgError(2, "base out of range")
		}
		var result lua.LValue = lua.LNil
		switch v := L.CheckAny(1).(type) {
		case lua.LNumber:
			result = v
		case lua.LString:
			if n, ok := readNumber(string(v), base); ok {
				result = n
			}
		}
		L.Push(result)
		return 1
	}))
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
	if err != nil {
		return 0, false
	}
	if text[0] == '-' {
		return -lua.LNumber(v), true
	}
	return lua.LNumber(v), true
}
