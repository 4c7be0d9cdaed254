package lua51

import (
	"errors"
	"strings"
)

// pattern is a Lua pattern made ready to match. gopher-lua's own matcher can run for ever on a short pattern without
// looking at the context; this one counts its steps.
type pattern struct {
	items    []item
	anchored bool
	captures int // how many captures it opens
}

type itemKind uint8

const (
	itemSet      itemKind = iota // a byte of a set, repeated as rep says
	itemOpen                     // (
	itemClose                    // )
	itemPosition                 // ()
	itemBack                     // %1 to %9
	itemBalance                  // %bxy
	itemFrontier                 // %f[set]
	itemEnd                      // $ at the end
)

type item struct {
	kind itemKind
	set  byteSet
	rep  byte // 0, '*', '+', '-' or '?'
	a, b byte // the delimiters of %b; the capture's number, from 0, of a back reference and of a parenthesis
}

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }
func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

func (s *byteSet) union(o byteSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

const maxCaptures = 32

// classes are the character classes of Lua's patterns, in the C locale.
var classes = map[byte]func(c byte) bool{
	'a': isLetter,
	'c': func(c byte) bool { return c < 32 || c == 127 },
	'd': isDigit,
	'l': func(c byte) bool { return c >= 'a' && c <= 'z' },
	'p': func(c byte) bool { return c > 32 && c < 127 && !isLetter(c) && !isDigit(c) },
	's': func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	'u': func(c byte) bool { return c >= 'A' && c <= 'Z' },
	'w': func(c byte) bool { return isLetter(c) || isDigit(c) },
	'x': func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' },
	'z': func(c byte) bool { return c == 0 },
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// classSet is the set of %c: a class, its complement for a capital, or the character itself.
func classSet(c byte) (s byteSet) {
	in := classes[c|0x20]
	if in == nil || !isLetter(c) {
		s.add(c)
		return s
	}
	for i := range 256 {
		if in(byte(i)) {
			s.add(byte(i))
		}
	}
	if c < 'a' {
		s.invert()
	}
	return s
}

// parsePattern reads a pattern. A ^ at its beginning is an anchor where anchors is set, else a character.
func parsePattern(text string, anchors bool) (*pattern, error) {
	p := &pattern{}
	r := patternReader{text: text}
	if anchors && strings.HasPrefix(text, "^") {
		p.anchored = true
		r.at++
	}
	var open []byte
	for r.at < len(text) {
		it, err := r.next()
		if err != nil {
			return nil, err
		}
		switch it.kind {
		case itemOpen, itemPosition:
			if p.captures == maxCaptures {
				return nil, errors.New("too many captures")
			}
			it.a = byte(p.captures)
			p.captures++
			if it.kind == itemOpen {
				open = append(open, it.a)
			}
		case itemClose:
			if len(open) == 0 {
				return nil, errors.New("invalid pattern capture")
			}
			it.a = open[len(open)-1]
			open = open[:len(open)-1]
		case itemBack:
			unfinished := false
			for _, o := range open {
				unfinished = unfinished || o == it.a
			}
			if int(it.a) >= p.captures || unfinished {
				return nil, errors.New("invalid capture index")
			}
		}
		p.items = append(p.items, it)
	}
	if len(open) > 0 {
		return nil, errors.New("unfinished capture")
	}
	return p, nil
}

type patternReader struct {
	text string
	at   int
}

// next reads one item; there is text left.
func (r *patternReader) next() (item, error) {
	c := r.text[r.at]
	rest := r.text[r.at+1:]
	switch {
	case c == '(' && strings.HasPrefix(rest, ")"):
		r.at += 2
		return item{kind: itemPosition}, nil
	case c == '(':
		r.at++
		return item{kind: itemOpen}, nil
	case c == ')':
		r.at++
		return item{kind: itemClose}, nil
	case c == '$' && rest == "":
		r.at++
		return item{kind: itemEnd}, nil
	case c == '%' && strings.HasPrefix(rest, "b"):
		if len(rest) < 3 {
			return item{}, errors.New("unbalanced pattern")
		}
		r.at += 4
		return item{kind: itemBalance, a: rest[1], b: rest[2]}, nil
	case c == '%' && strings.HasPrefix(rest, "f"):
		r.at += 2
		if r.at >= len(r.text) || r.text[r.at] != '[' {
			return item{}, errors.New("missing '[' after '%f' in pattern")
		}
		set, err := r.set()
		return item{kind: itemFrontier, set: set}, err
	case c == '%' && rest != "" && isDigit(rest[0]):
		if rest[0] == '0' {
			return item{}, errors.New("invalid capture index")
		}
		r.at += 2
		return item{kind: itemBack, a: rest[0] - '1'}, nil
	}
	it := item{kind: itemSet}
	var err error
	if it.set, err = r.single(); err != nil {
		return item{}, err
	}
	if r.at < len(r.text) && strings.IndexByte("*+-?", r.text[r.at]) >= 0 {
		it.rep = r.text[r.at]
		r.at++
	}
	return it, nil
}

// single reads what matches one byte: a character, '.', a class or a set in brackets.
func (r *patternReader) single() (s byteSet, err error) {
	switch c := r.text[r.at]; c {
	case '.':
		s.invert()
	case '[':
		return r.set()
	case '%':
		r.at++
		if r.at == len(r.text) {
			return s, errors.New("malformed pattern (ends with '%')")
		}
		s = classSet(r.text[r.at])
	default:
		s.add(c)
	}
	r.at++
	return s, nil
}

// set reads a set in brackets.
func (r *patternReader) set() (s byteSet, err error) {
	missing := errors.New("malformed pattern (missing ']')")
	r.at++
	negated := r.at < len(r.text) && r.text[r.at] == '^'
	if negated {
		r.at++
	}
	for first := true; ; first = false {
		if r.at >= len(r.text) {
			return s, missing
		}
		c := r.text[r.at]
		switch {
		case c == ']' && !first:
			r.at++
			if negated {
				s.invert()
			}
			return s, nil
		case c == '%':
			if r.at++; r.at == len(r.text) {
				return s, missing
			}
			s.union(classSet(r.text[r.at]))
			r.at++
		case r.at+2 < len(r.text) && r.text[r.at+1] == '-' && r.text[r.at+2] != ']':
			for i := int(c); i <= int(r.text[r.at+2]); i++ {
				s.add(byte(i))
			}
			r.at += 3
		default:
			s.add(c)
			r.at++
		}
	}
}

// span is a capture: bytes from start to end, or a position, which has end -1.
type span struct{ start, end int }

// matching is a pattern at work on a text. poll is called every some thousand steps.
type matching struct {
	*pattern
	text     string
	captured [maxCaptures]span
	steps    int
	poll     func()
}

// at matches at one place: the end of the match, or -1.
func (m *matching) at(start int) int { return m.match(0, start) }

// step counts one byte or item looked at.
func (m *matching) step() {
	const often = 1 << 14
	if m.steps++; m.steps%often == 0 {
		m.poll()
	}
}

// match matches the items from i on at a place of the text.
func (m *matching) match(i, at int) int {
	for ; i < len(m.items); i++ {
		m.step()
		it := &m.items[i]
		switch it.kind {
		case itemSet:
			if it.rep != 0 {
				return m.repeat(it, i+1, at)
			}
			if at >= len(m.text) || !it.set.has(m.text[at]) {
				return -1
			}
			at++
		case itemOpen, itemPosition, itemClose:
			old := m.captured[it.a]
			switch it.kind {
			case itemOpen:
				m.captured[it.a] = span{at, at}
			case itemPosition:
				m.captured[it.a] = span{at, -1}
			default:
				m.captured[it.a].end = at
			}
			end := m.match(i+1, at)
			if end < 0 {
				m.captured[it.a] = old
			}
			return end
		case itemBack:
			was := m.capture(int(it.a))
			if !strings.HasPrefix(m.text[at:], was) {
				return -1
			}
			at += len(was)
		case itemBalance:
			if at = m.balance(it, at); at < 0 {
				return -1
			}
		case itemFrontier:
			before, after := byte(0), byte(0)
			if at > 0 {
				before = m.text[at-1]
			}
			if at < len(m.text) {
				after = m.text[at]
			}
			if it.set.has(before) || !it.set.has(after) {
				return -1
			}
		case itemEnd:
			if at != len(m.text) {
				return -1
			}
		}
	}
	return at
}

// repeat matches a repeated item and what follows it.
func (m *matching) repeat(it *item, next, at int) int {
	fits := func(at int) bool { return at < len(m.text) && it.set.has(m.text[at]) }
	switch it.rep {
	case '?':
		if fits(at) {
			if end := m.match(next, at+1); end >= 0 {
				return end
			}
		}
		return m.match(next, at)
	case '-':
		for {
			if end := m.match(next, at); end >= 0 {
				return end
			}
			if !fits(at) {
				return -1
			}
			at++
		}
	}
	last := at
	for fits(last) {
		m.step()
		last++
	}
	if it.rep == '+' {
		at++
	}
	for ; last >= at; last-- {
		if end := m.match(next, last); end >= 0 {
			return end
		}
	}
	return -1
}

// balance is the end of a balanced pair that starts at a place, or -1.
func (m *matching) balance(it *item, at int) int {
	if at >= len(m.text) || m.text[at] != it.a {
		return -1
	}
	depth := 1
	for at++; at < len(m.text); at++ {
		m.step()
		switch m.text[at] {
		case it.b:
			if depth--; depth == 0 {
				return at + 1
			}
		case it.a:
			depth++
		}
	}
	return -1
}

// capture is the text of a capture.
func (m *matching) capture(i int) string {
	c := m.captured[i]
	if c.end < 0 {
		return ""
	}
	return m.text[c.start:c.end]
}

// find is the first match from a place on: its start and end, or -1.
func (m *matching) find(from int) (start, end int) {
	for start = from; start <= len(m.text); start++ {
		m.step()
		if end = m.at(start); end >= 0 {
			return start, end
		}
		if m.anchored {
			break
		}
	}
	return -1, -1
}
