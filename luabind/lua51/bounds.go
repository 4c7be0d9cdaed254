package lua51

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The context is polled between Lua instructions only, so one call of a library function may not take long: what can
// is bounded, or polls by itself.
const (
	maxString  = 1 << 28 // bytes of the longest string that a library function makes
	maxResults = 1 << 18 // values that unpack and string.byte give: more registers grow in steps that take long
	pollEvery  = 1 << 12
)

// longText is a text that a library function makes piece by piece. It is at most maxString bytes long, and counts as
// held, with the room that it grew into, until end.
type longText struct {
	s       *State
	name    string // of the function
	text    strings.Builder
	counted int   // bytes of the text
	held    int64 // by the functions around this one
}

func (s *State) longText(name string) *longText {
	t := &longText{s: s, name: name}
	if s.meter != nil {
		t.held = s.meter.held
	}
	return t
}

// end says that the function is done, with an error too.
func (t *longText) end() {
	if t.s.meter != nil {
		t.s.meter.held = t.held
	}
}

func (t *longText) add(text string) {
	t.count(len(text))
	t.text.WriteString(text)
}

func (t *longText) addByte(c byte) {
	t.count(1)
	t.text.WriteByte(c)
}

func (t *longText) count(more int) {
	length := t.text.Len() + more
	if length <= t.counted+pollEvery {
		return
	}
	if length > maxString {
		t.s.fail("%s: the result has more than %d bytes", t.name, maxString)
	}
	hold(t.s, 2*int64(length-t.counted))
	t.counted = length
	t.s.poll()
}

// value is the text, without much room behind it.
func (t *longText) value() lua.LString {
	text := t.text.String()
	if t.text.Cap() > len(text)+len(text)/8 {
		text = strings.Clone(text)
	}
	return lua.LString(text)
}
