package msl

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// source is a text under preprocessing or preprocessed.
type source struct {
	name    string
	raw     string     // as given
	text    string     // without line splices; raw itself if it has none
	splices []splice   // where they were
	lines   []uint32   // offset in raw of the start of each line
	maps    []lineMark // #line directives, in order
}

// splice says that from the offset at of text on, raw is skip bytes ahead.
type splice struct{ at, skip uint32 }

// lineMark says that the physical line phys of raw is line `line` of file `file`.
type lineMark struct {
	phys, line uint32
	file       uint16
}

// maxSource bounds a text, so that offsets fit.
const maxSource = 16 << 20

func newSource(name, raw string, file uint16) *source {
	s := &source{name: name, raw: raw, text: raw, maps: []lineMark{{phys: 1, line: 1, file: file}}}
	s.lines = make([]uint32, 1, 16+len(raw)/32)
	for i := 0; ; {
		n := strings.IndexByte(raw[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
		s.lines = append(s.lines, uint32(i))
	}
	if strings.IndexByte(raw, '\\') >= 0 {
		s.removeSplices()
	}
	return s
}

// removeSplices joins lines that end in a backslash.
func (s *source) removeSplices() {
	var b strings.Builder
	from, skipped := 0, 0
	for i := 0; i < len(s.raw); i++ {
		if s.raw[i] != '\\' {
			continue
		}
		n := 0
		switch rest := s.raw[i+1:]; {
		case strings.HasPrefix(rest, "\n"):
			n = 2
		case strings.HasPrefix(rest, "\r\n"):
			n = 3
		default:
			continue
		}
		b.WriteString(s.raw[from:i])
		from = i + n
		skipped += n
		s.splices = append(s.splices, splice{at: uint32(b.Len()), skip: uint32(skipped)})
		i = from - 1
	}
	if skipped > 0 {
		b.WriteString(s.raw[from:])
		s.text = b.String()
	}
}

// physical returns the line and column, from 1, of an offset into the text.
func (s *source) physical(off uint32) (line, col uint32) {
	if n := sort.Search(len(s.splices), func(i int) bool { return s.splices[i].at > off }); n > 0 {
		off += s.splices[n-1].skip
	}
	n := sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > off })
	return uint32(n), off - s.lines[n-1] + 1
}

// position returns an offset's place after #line.
func (s *source) position(off uint32) kir.Pos {
	line, col := s.physical(off)
	return s.mapped(line, col)
}

func (s *source) mapped(line, col uint32) kir.Pos {
	n := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].phys > line })
	m := s.maps[max(n-1, 0)]
	return kir.Pos{File: m.file, Line: m.line + line - m.phys, Col: col}
}

// lineText returns a physical line.
func (s *source) lineText(line uint32) string {
	from, to := s.lines[line-1], uint32(len(s.raw))
	if int(line) < len(s.lines) {
		to = s.lines[line] - 1
	}
	return s.raw[from:to]
}

// scanner makes preprocessing tokens of a text.
type scanner struct {
	text string
	pos  int
	src  uint16
	bol  bool // at the start of a line, white space aside
	syms *symtab
	fail func(code Code, off int, format string, args ...any) // nil: errors are not reported
}

// Character classes.
const (
	cIdent uint8 = 1 << iota // letters, digits, _ and $
	cDigit
	cSpace // without the newline
)

var charClass = func() (c [256]uint8) {
	for i := range c {
		switch ch := byte(i); {
		case ch >= '0' && ch <= '9':
			c[i] = cIdent | cDigit
		case ch >= 'a' && ch <= 'z', ch >= 'A' && ch <= 'Z', ch == '_', ch == '$':
			c[i] = cIdent
		case ch == ' ', ch == '\t', ch == '\r', ch == '\v', ch == '\f':
			c[i] = cSpace
		}
	}
	return
}()

func (s *scanner) errorf(code Code, off int, format string, args ...any) {
	if s.fail != nil {
		s.fail(code, off, format, args...)
	}
}

// skipSpace skips white space and comments and returns the flags of the next token.
func (s *scanner) skipSpace() (flags uint8) {
	text, i := s.text, s.pos
	if s.bol {
		flags = fBOL | fSpace
	}
	for i < len(text) {
		switch c := text[i]; {
		case charClass[c]&cSpace != 0:
			i++
			flags |= fSpace
		case c == '\n':
			i++
			flags |= fBOL | fSpace
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				n = len(text) - i
			}
			i += n
			flags |= fSpace
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				s.errorf(UnterminatedComment, i, "the comment has no end: */ is missing")
				i = len(text)
			} else {
				i += n + 4
			}
			flags |= fSpace
		default:
			s.pos, s.bol = i, false
			return flags
		}
	}
	s.pos, s.bol = i, false
	return flags
}

// next returns the next token; at the end of the text, tEOF with the flag fBOL.
func (s *scanner) next() token {
	t := token{src: s.src, flags: s.skipSpace(), off: uint32(s.pos)}
	text, i := s.text, s.pos
	if i >= len(text) {
		t.flags |= fBOL
		return t
	}
	c := text[i]
	cl := charClass[c]
	switch {
	case cl == cIdent || c >= utf8.RuneSelf:
		h := uint32(2166136261)
		for i < len(text) && charClass[text[i]]&cIdent != 0 {
			h = (h ^ uint32(text[i])) * 16777619
			i++
		}
		if i < len(text) && text[i] >= utf8.RuneSelf {
			if i = s.unicodeIdent(i); i == s.pos {
				return s.badByte(t)
			}
			h = hashIdent(text[s.pos:i])
		}
		t.kind = tIdent
		t.text = text[s.pos:i]
		t.sym = s.syms.intern(t.text, h)
	case cl&cDigit != 0, c == '.' && i+1 < len(text) && charClass[text[i+1]]&cDigit != 0:
		t.kind = tNumber
		i = s.number(i)
	case c == '"', c == '\'':
		t.kind = tString
		if c == '\'' {
			t.kind = tChar
		}
		i = s.quoted(i)
	default:
		var n int
		if t.kind, n = punct(text[i:]); n == 0 {
			return s.badByte(t)
		}
		i += n
	}
	t.text = text[s.pos:i]
	s.pos = i
	return t
}

// unicodeIdent returns the end of an identifier that goes on with a character outside ASCII.
func (s *scanner) unicodeIdent(i int) int {
	for i < len(s.text) {
		if charClass[s.text[i]]&cIdent != 0 {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s.text[i:])
		if r < utf8.RuneSelf || !unicode.IsLetter(r) {
			break
		}
		i += n
	}
	return i
}

// badByte skips a character that starts no token. It is an error where it reaches the parser, see preproc.emit.
func (s *scanner) badByte(t token) token {
	_, n := utf8.DecodeRuneInString(s.text[s.pos:])
	t.kind = tOther
	t.text = s.text[s.pos : s.pos+n]
	s.pos += n
	return t
}

// number returns the end of a preprocessing number.
func (s *scanner) number(i int) int {
	text := s.text
	for i++; i < len(text); i++ {
		c := text[i]
		if charClass[c]&cIdent != 0 || c == '.' {
			continue
		}
		if c == '+' || c == '-' {
			if e := text[i-1] | 0x20; e == 'p' || e == 'e' && !isHex(text[s.pos:i]) {
				continue
			}
		}
		if c == '\'' && i+1 < len(text) && charClass[text[i+1]]&cIdent != 0 {
			continue
		}
		break
	}
	return i
}

func isHex(s string) bool { return len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x' }

// quoted returns the end of a string or character literal.
func (s *scanner) quoted(i int) int {
	text, q := s.text, s.text[i]
	for i++; i < len(text); i++ {
		switch text[i] {
		case q:
			return i + 1
		case '\\':
			i++
		case '\n':
			s.errorf(UnterminatedLiteral, s.pos, "the literal has no end: %c is missing", q)
			return i
		}
	}
	s.errorf(UnterminatedLiteral, s.pos, "the literal has no end: %c is missing", q)
	return len(text)
}

// digraph returns the bracket, brace or # that two characters at the start of s are another spelling of.
func digraph(s string) (tok, int) {
	if len(s) < 2 {
		return tOther, 0
	}
	switch s[:2] {
	case "<:":
		// <:: is < and :: in X<::Y>, so that a template argument may name the global scope
		if strings.HasPrefix(s, "<::") && !strings.HasPrefix(s, "<:::") && !strings.HasPrefix(s, "<::>") {
			return tOther, 0
		}
		return tLBrack, 2
	case ":>":
		return tRBrack, 2
	case "<%":
		return tLBrace, 2
	case "%>":
		return tRBrace, 2
	case "%:":
		if strings.HasPrefix(s, "%:%:") {
			return tHashHash, 4
		}
		return tHash, 2
	}
	return tOther, 0
}

// punct returns the punctuator at the start of s and its length, 0 for none.
func punct(s string) (tok, int) {
	var c1, c2 byte
	if len(s) > 1 {
		c1 = s[1]
	}
	if len(s) > 2 {
		c2 = s[2]
	}
	// two returns the two-character token when c1 fits, else the one-character one.
	two := func(c byte, yes, no tok) (tok, int) {
		if c1 == c {
			return yes, 2
		}
		return no, 1
	}
	op := func(plain, assign, double tok) (tok, int) {
		if c1 == '=' {
			return assign, 2
		}
		if c1 == s[0] && double != tEOF {
			return double, 2
		}
		return plain, 1
	}
	switch s[0] {
	case '<', '%', ':':
		if k, n := digraph(s); n > 0 {
			return k, n
		}
	}
	switch s[0] {
	case '(':
		return tLParen, 1
	case ')':
		return tRParen, 1
	case '[':
		return tLBrack, 1
	case ']':
		return tRBrack, 1
	case '{':
		return tLBrace, 1
	case '}':
		return tRBrace, 1
	case ',':
		return tComma, 1
	case ';':
		return tSemi, 1
	case '?':
		return tQuestion, 1
	case '~':
		return tTilde, 1
	case ':':
		return two(':', tColonColon, tColon)
	case '#':
		return two('#', tHashHash, tHash)
	case '.':
		if c1 == '.' && c2 == '.' {
			return tEllipsis, 3
		}
		return two('*', tDotStar, tDot)
	case '-':
		if c1 == '>' {
			if c2 == '*' {
				return tArrowStar, 3
			}
			return tArrow, 2
		}
		return op(tSub, tSubAssign, tDec)
	case '<':
		if c1 == '<' && c2 == '=' {
			return tShlAssign, 3
		}
		return op(tLt, tLe, tShl)
	case '>':
		if c1 == '>' && c2 == '=' {
			return tShrAssign, 3
		}
		return op(tGt, tGe, tShr)
	case '=':
		return two('=', tEq, tAssign)
	case '!':
		return two('=', tNe, tNot)
	case '*':
		return op(tMul, tMulAssign, tEOF)
	case '/':
		return op(tDiv, tDivAssign, tEOF)
	case '%':
		return op(tRem, tRemAssign, tEOF)
	case '^':
		return op(tXor, tXorAssign, tEOF)
	case '+':
		return op(tAdd, tAddAssign, tInc)
	case '&':
		return op(tAnd, tAndAssign, tLAnd)
	case '|':
		return op(tOr, tOrAssign, tLOr)
	}
	return tOther, 0
}
