package template

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is a fault of a template, or one that it raised itself.
type Error struct {
	Line, Column int    // from 1; the column counts characters
	Message      string // without the place
	Raised       bool   // by raise_exception: the message is meant for the user
}

// Error gives the place and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("[template] line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// errorAt makes an error about the byte pos of a source.
func errorAt(source string, pos int, format string, args ...any) *Error {
	before := source[:min(pos, len(source))]
	return &Error{
		Line:    1 + strings.Count(before, "\n"),
		Column:  1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]),
		Message: fmt.Sprintf(format, args...),
	}
}

type tokenKind int

const (
	endOfText tokenKind = iota
	data
	blockBegin
	blockEnd
	variableBegin
	variableEnd
	name
	stringToken
	integerToken
	floatToken
	operator
)

// lexeme is one token; text is its text, or for strings what they stand for.
type lexeme struct {
	kind tokenKind
	text string
	pos  int
}

// lexer splits the source of a template into tokens.
type lexer struct {
	source string
	pos    int
	tokens []lexeme
	// lineStart says that the text at pos begins a line, or what is left of one after a tag.
	lineStart bool
}

// lex splits a source whose lines end in \n.
func lex(source string) []lexeme {
	l := &lexer{source: source, lineStart: true}
	for l.pos < len(source) {
		at, tag := l.nextTag()
		if at < 0 {
			l.add(data, source[l.pos:], l.pos)
			break
		}
		l.data(at, tag)
		switch tag {
		case "{#":
			l.comment()
		case "{%":
			if !l.raw() {
				l.add(blockBegin, "{%", at)
				l.inside("%}", blockEnd)
			}
		default:
			l.add(variableBegin, "{{", at)
			l.inside("}}", variableEnd)
		}
	}
	l.add(endOfText, "", len(source))
	return l.tokens
}

func (l *lexer) fail(pos int, format string, args ...any) {
	panic(errorAt(l.source, pos, format, args...))
}

func (l *lexer) add(kind tokenKind, text string, pos int) {
	l.tokens = append(l.tokens, lexeme{kind, text, pos})
}

// nextTag finds the next "{{", "{%" or "{#".
func (l *lexer) nextTag() (at int, tag string) {
	for i := l.pos; i+1 < len(l.source); i++ {
		if l.source[i] == '{' && (l.source[i+1] == '{' || l.source[i+1] == '%' || l.source[i+1] == '#') {
			return i, l.source[i : i+2]
		}
	}
	return -1, ""
}

// data adds the text before a tag, and skips the beginning of the tag. A minus sign takes white space away before it;
// without sign, a tag that begins a line takes the white space before it on that line, but {{ does not.
func (l *lexer) data(at int, tag string) {
	text := l.source[l.pos:at]
	pos := l.pos
	l.pos = at + len(tag)
	sign := byte(0)
	if l.pos < len(l.source) && (l.source[l.pos] == '-' || l.source[l.pos] == '+' && tag != "{{") {
		sign = l.source[l.pos]
		l.pos++
	}
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	case sign == 0 && tag != "{{":
		line := strings.LastIndexByte(text, '\n') + 1
		if (line > 0 || l.lineStart) && strings.TrimSpace(text[line:]) == "" {
			text = text[:line]
		}
	}
	if text != "" {
		l.add(data, text, pos)
	}
}

// end skips the end of a tag with its sign. A minus sign takes the white space after it away; otherwise blocks and
// comments take one newline.
func (l *lexer) end(sign byte, trims bool) {
	l.lineStart = false
	switch {
	case sign == '-':
		rest := strings.TrimLeftFunc(l.source[l.pos:], unicode.IsSpace)
		l.pos = len(l.source) - len(rest)
		l.lineStart = l.source[l.pos-1] == '\n'
	case sign == 0 && trims && strings.HasPrefix(l.source[l.pos:], "\n"):
		l.pos++
		l.lineStart = true
	}
}

func (l *lexer) comment() {
	begin := l.pos
	i := strings.Index(l.source[l.pos:], "#}")
	if i < 0 {
		l.fail(begin-2, "a comment has no end")
	}
	l.pos += i + 2
	sign := byte(0)
	if c := l.source[l.pos-3]; i > 0 && (c == '-' || c == '+') {
		sign = c
	}
	l.end(sign, true)
}

// raw takes {% raw %}...{% endraw %} whole.
func (l *lexer) raw() bool {
	rest := strings.TrimLeftFunc(l.source[l.pos:], unicode.IsSpace)
	after, ok := strings.CutPrefix(rest, "raw")
	after = strings.TrimLeftFunc(after, unicode.IsSpace)
	sign := byte(0)
	if strings.HasPrefix(after, "-") {
		sign, after = '-', after[1:]
	}
	if !ok || !strings.HasPrefix(after, "%}") {
		return false
	}
	begin := l.pos
	l.pos = len(l.source) - len(after) + 2
	l.end(sign, false)
	for from := l.pos; ; {
		i := strings.Index(l.source[from:], "{%")
		if i < 0 {
			l.fail(begin, "raw has no endraw")
		}
		at := from + i
		tail := strings.TrimLeft(l.source[at+2:], "+-")
		tail = strings.TrimLeftFunc(tail, unicode.IsSpace)
		tail, ok := strings.CutPrefix(tail, "endraw")
		tail = strings.TrimLeftFunc(tail, unicode.IsSpace)
		end := byte(0)
		if len(tail) > 0 && (tail[0] == '-' || tail[0] == '+') {
			end, tail = tail[0], tail[1:]
		}
		if !ok || !strings.HasPrefix(tail, "%}") {
			from = at + 2
			continue
		}
		l.data(at, "{%")
		l.pos = len(l.source) - len(tail) + 2
		l.end(end, true)
		return true
	}
}

// operators, longest first.
var operators = []string{
	"**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
	":", "|", ",", ";",
}

// inside adds the tokens of a tag up to its end.
func (l *lexer) inside(end string, kind tokenKind) {
	begin, open := l.pos, []byte(nil) // the brackets that wait for their ends
	for {
		l.pos = len(l.source) - len(strings.TrimLeftFunc(l.source[l.pos:], unicode.IsSpace))
		rest := l.source[l.pos:]
		if rest == "" {
			l.fail(begin-2, "a tag has no end %s", end)
		}
		if len(open) == 0 {
			sign := byte(0)
			if rest[0] == '-' || rest[0] == '+' && kind == blockEnd {
				sign = rest[0]
			}
			tail := rest
			if sign != 0 {
				tail = rest[1:]
			}
			if strings.HasPrefix(tail, end) {
				l.add(kind, end, l.pos)
				l.pos += len(rest) - len(tail) + len(end)
				l.end(sign, kind == blockEnd)
				return
			}
		}
		c, _ := utf8.DecodeRuneInString(rest)
		switch {
		case c == '\'' || c == '"':
			l.string(rest)
		case c >= '0' && c <= '9':
			l.number(rest)
		case c == '_' || unicode.IsLetter(c):
			n := strings.IndexFunc(rest, func(c rune) bool {
				return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.Is(unicode.M, c)
			})
			if n < 0 {
				n = len(rest)
			}
			l.add(name, rest[:n], l.pos)
			l.pos += n
		default:
			open = l.operator(rest, open)
		}
	}
}

// operator adds an operator, and keeps account of the brackets that are open.
func (l *lexer) operator(rest string, open []byte) []byte {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			open = append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[op])
		case ")", "]", "}":
			if len(open) == 0 {
				l.fail(l.pos, "unexpected '%s'", op)
			}
			if want := open[len(open)-1]; want != op[0] {
				l.fail(l.pos, "unexpected '%s', expected '%c'", op, want)
			}
			open = open[:len(open)-1]
		}
		l.add(operator, op, l.pos)
		l.pos += len(op)
		return open
	}
	c, _ := utf8.DecodeRuneInString(rest)
	l.fail(l.pos, "unexpected char %q", c)
	return open
}

func (l *lexer) string(rest string) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			l.add(stringToken, l.unescape(rest[1:i]), l.pos)
			l.pos += i + 1
			return
		}
	}
	l.fail(l.pos, "a text has no end %c", rest[0])
}

// unescape is Python's unicode-escape.
func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '\n':
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			code, err := strconv.ParseUint(s[i+1:min(len(s), i+1+n)], 16, 32)
			if err != nil || i+n >= len(s) || code > unicode.MaxRune {
				l.fail(l.pos, "a text has a bad escape \\%c", c)
			}
			b.WriteRune(rune(code))
			i += n
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := i
			for n < len(s) && n < i+3 && s[n] >= '0' && s[n] <= '7' {
				n++
			}
			code, _ := strconv.ParseUint(s[i:n], 8, 32)
			b.WriteRune(rune(code))
			i = n - 1
		case '\\', '\'', '"':
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (l *lexer) number(rest string) {
	n := 0
	for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '_' || isHex(rest, n)) {
		n++
	}
	kind := integerToken
	digits := func(i int) int {
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '_') {
			i++
		}
		return i
	}
	if !isHex(rest, 1) {
		if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' {
			kind, n = floatToken, digits(n+1)
		}
		if n < len(rest) && (rest[n]|0x20) == 'e' {
			e := n + 1
			if e < len(rest) && (rest[e] == '+' || rest[e] == '-') {
				e++
			}
			if end := digits(e); end > e {
				kind, n = floatToken, end
			}
		}
	}
	l.add(kind, strings.ReplaceAll(rest[:n], "_", ""), l.pos)
	l.pos += n
}

// isHex reports whether the byte i of a number belongs to 0x1f, 0b1 or 0o7.
func isHex(s string, i int) bool {
	if len(s) < 3 || s[0] != '0' || i == 0 || i >= len(s) {
		return false
	}
	digits := map[byte]string{'x': "0123456789abcdef", 'b': "01", 'o': "01234567"}[s[1]|0x20]
	return digits != "" && (i == 1 && strings.IndexByte(digits, s[2]|0x20) >= 0 ||
		i > 1 && strings.IndexByte(digits, s[i]|0x20) >= 0)
}
