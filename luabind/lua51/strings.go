package lua51

import (
	"math"
	"reflect"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openStrings replaces the functions of the string library: gopher-lua's have work or results without bounds, read
// UTF-8, and take no text for a number.
func (s *State) openStrings() {
	lib := s.library(lua.StringLibName)
	s.Method(lib, "rep", with(s, stringRep))
	s.Method(lib, "find", func(L *lua.LState) int { return stringFind(s, L, true) })
	s.Method(lib, "match", func(L *lua.LState) int { return stringFind(s, L, false) })
	lib.RawSetString("gfind", s.Method(lib, "gmatch", with(s, stringGMatch)))
	s.Method(lib, "gsub", with(s, stringGSub))
	s.Method(lib, "format", with(s, stringFormat))
	bytewise(s, lib, "upper", func(piece []byte) {
		for i, c := range piece {
			if 'a' <= c && c <= 'z' {
				piece[i] = c - 'a' + 'A'
			}
		}
	})
	bytewise(s, lib, "lower", func(piece []byte) {
		for i, c := range piece {
			if 'A' <= c && c <= 'Z' {
				piece[i] = c - 'A' + 'a'
			}
		}
	})
	bytewise(s, lib, "reverse", nil)
	s.Method(lib, "byte", stringByte)
	for name, f := range map[string]lua.LGFunction{"sub": stringSub, "char": stringChar, "len": stringLen} {
		if lib.RawSetString(name, s.plain(f)); s.opt.Limits.Memory > 0 { // what it makes is charged
			s.Method(lib, name, f)
		}
	}
}

// fromEnd is a place in a text of so many bytes, where negative ones count from the end.
func fromEnd(at, length int) int {
	if at < 0 {
		return max(at+length+1, 0)
	}
	return at
}

func stringByte(L *lua.LState) int {
	text := textArg(L, 1)
	first := fromEnd(optional(L, 2, integerArg, 1), len(text))
	last := fromEnd(optional(L, 3, integerArg, first), len(text))
	first, last = max(first, 1), min(last, len(text))
	if first > last {
		return 0
	}
	if last-first >= maxResults {
		L.RaiseError("string slice too long")
	}
	for _, c := range []byte(text[first-1 : last]) {
		L.Push(lua.LNumber(c))
	}
	return last - first + 1
}

func stringSub(L *lua.LState) int {
	text := textArg(L, 1)
	first := max(fromEnd(integerArg(L, 2), len(text)), 1)
	last := min(fromEnd(optional(L, 3, integerArg, -1), len(text)), len(text))
	if first > last {
		L.Push(lua.LString(""))
		return 1
	}
	L.Push(lua.LString(text[first-1 : last]))
	return 1
}

func stringChar(L *lua.LState) int {
	bytes := make([]byte, L.GetTop())
	for i := range bytes {
		c := integerArg(L, i+1)
		if c < 0 || c > 255 {
			L.ArgError(i+1, "invalid value")
		}
		bytes[i] = byte(c)
	}
	L.Push(lua.LString(bytes))
	return 1
}

func stringLen(L *lua.LState) int {
	L.Push(lua.LNumber(len(textArg(L, 1))))
	return 1
}

// bytewise is a function of the string library that changes each byte, or reverses their order where change is nil.
// gopher-lua's change what is no ASCII, also texts that are no UTF-8.
func bytewise(s *State, lib *lua.LTable, name string, change func(piece []byte)) {
	s.Method(lib, name, func(L *lua.LState) int {
		text := textArg(L, 1)
		s.Charge(stringBytes + 2*int64(len(text)))
		var out strings.Builder
		out.Grow(len(text))
		piece := make([]byte, min(len(text), pollEvery))
		for at := 0; at < len(text); at += len(piece) {
			s.poll()
			piece = piece[:min(len(piece), len(text)-at)]
			if change != nil {
				copy(piece, text[at:])
				change(piece)
			} else {
				copy(piece, text[len(text)-at-len(piece):])
				slices.Reverse(piece)
			}
			out.Write(piece)
		}
		L.Push(lua.LString(out.String()))
		return 1
	})
}

func stringRep(s *State, L *lua.LState) int {
	text, n := textArg(L, 1), numberArg(L, 2)
	if len(text) == 0 || !(n >= 1) { // NaN too
		L.Push(lua.LString(""))
		return 1
	}
	if float64(len(text))*n > maxString {
		s.fail("string.rep: %v times %d bytes are more than %d", n, len(text), maxString)
	}
	s.Charge(int64(float64(len(text)) * n))
	L.Push(lua.LString(strings.Repeat(text, int(n))))
	return 1
}

// patternKey is what parsePattern is given.
type patternKey struct {
	text    string
	anchors bool
}

const (
	patternBytes = 64   // of an item, of which a pattern has at most one for each of its bytes
	longPattern  = 1024 // bytes of patterns that are not kept
)

// patternOf is a pattern argument, read before or now.
func patternOf(s *State, text string, anchors bool) *pattern {
	const most = 256 // patterns kept
	k := patternKey{text, anchors}
	if p := s.patterns[k]; p != nil {
		return p
	}
	s.Charge(patternBytes * int64(len(text)))
	p, err := parsePattern(text, anchors)
	if err != nil {
		s.L.RaiseError("%s", err.Error())
	}
	if len(text) > longPattern {
		return p
	}
	if len(s.patterns) >= most || s.patterns == nil {
		s.patterns = map[patternKey]*pattern{}
	}
	s.patterns[k] = p
	return p
}

// stringFind is string.find, or string.match.
func stringFind(s *State, L *lua.LState, places bool) int {
	text, pat := textArg(L, 1), textArg(L, 2)
	init := min(max(fromEnd(optional(L, 3, integerArg, 1), len(text))-1, 0), len(text)) // past the end: there
	if places && (lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(pat, "^$*+?.([%-")) {
		i := strings.Index(text[init:], pat)
		if i < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(init + i + 1))
		L.Push(lua.LNumber(init + i + len(pat)))
		return 2
	}
	m := &matching{pattern: patternOf(s, pat, true), text: text, poll: s.poll}
	from, to := m.find(init)
	if from < 0 {
		L.Push(lua.LNil)
		return 1
	}
	if !places {
		return pushCaptures(L, m, from, to, true)
	}
	L.Push(lua.LNumber(from + 1))
	L.Push(lua.LNumber(to))
	return 2 + pushCaptures(L, m, from, to, false)
}

// pushCaptures pushes a match's captures; whole: the match itself where it has none.
func pushCaptures(L *lua.LState, m *matching, from, to int, whole bool) int {
	if m.captures == 0 && whole {
		L.Push(lua.LString(m.text[from:to]))
		return 1
	}
	for i := range m.captures {
		L.Push(captureValue(m, i))
	}
	return m.captures
}

func captureValue(m *matching, i int) lua.LValue {
	if c := m.captured[i]; c.end < 0 {
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.capture(i))
}

// matchingBytes is what an iterator of gmatch takes beside its text.
var matchingBytes = int64(reflect.TypeFor[matching]().Size())

func stringGMatch(s *State, L *lua.LState) int {
	text, pat := textArg(L, 1), textArg(L, 2)
	m := &matching{pattern: patternOf(s, pat, false), text: text, poll: s.poll}
	at := 0
	L.Push(s.Func(func(L *lua.LState) int {
		from, to := m.find(at)
		if from < 0 {
			at = len(m.text) + 1
			return 0
		}
		if at = to; to == from {
			at++
		}
		return pushCaptures(L, m, from, to, true)
	}, lua.LString(text), s.Weigh(matchingBytes)))
	return 1
}

func stringGSub(s *State, L *lua.LState) int {
	text, pat := textArg(L, 1), textArg(L, 2)
	repl := L.Get(3)
	most := optional(L, 4, integerArg, math.MaxInt)
	switch repl.Type() {
	case lua.LTString, lua.LTNumber, lua.LTFunction, lua.LTTable:
	default:
		L.ArgError(3, "string/function/table expected")
	}
	m := &matching{pattern: patternOf(s, pat, true), text: text, poll: s.poll}
	out := s.longText("string.gsub")
	defer out.end()
	at, count := 0, 0
	for count < most {
		m.step()
		end := m.at(at)
		if end >= 0 {
			count++
			addReplacement(s, out, m, at, end, repl)
		}
		switch {
		case end > at:
			at = end
		case at < len(text):
			out.addByte(text[at])
			at++
		default:
			at++
		}
		if at > len(text) || m.anchored {
			break
		}
	}
	if at < len(text) {
		out.add(text[at:])
	}
	L.Push(out.value())
	L.Push(lua.LNumber(count))
	return 2
}

// addReplacement writes what stands for a match.
func addReplacement(s *State, out *longText, m *matching, from, to int, repl lua.LValue) {
	L := s.L
	whole := m.text[from:to]
	first := lua.LValue(lua.LString(whole))
	if m.captures > 0 {
		first = captureValue(m, 0)
	}
	var v lua.LValue
	switch r := repl.(type) {
	case *lua.LFunction:
		L.Push(r)
		n := pushCaptures(L, m, from, to, true)
		L.Call(n, 1)
		v = L.Get(-1)
		L.Pop(1)
	case *lua.LTable:
		v = L.GetTable(r, first)
	default:
		with, _ := asText(r)
		addTemplate(s, out, m, whole, with)
		return
	}
	piece, ok := asText(v)
	if !ok && lua.LVAsBool(v) {
		s.fail("invalid replacement value (a %s)", typeName(s, v))
	}
	if !ok {
		piece = whole
	}
	out.add(piece)
}

// addTemplate writes a replacement string, in which %0 to %9 are captures.
func addTemplate(s *State, out *longText, m *matching, whole, text string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '%' {
			out.addByte(c)
			continue
		}
		i++
		if c = 0; i < len(text) { // as texts of C's end
			c = text[i]
		}
		switch {
		case !isDigit(c):
			out.addByte(c)
		case c == '0' || c == '1' && m.captures == 0:
			out.add(whole)
		case int(c-'0') > m.captures:
			s.fail("invalid capture index")
		default:
			piece, _ := asText(captureValue(m, int(c-'1')))
			out.add(piece)
		}
	}
}
