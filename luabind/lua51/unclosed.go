package lua51

import (
	"iter"
	"regexp"
	"strings"
)

// mostToken is how many bytes of a string or a comment that nothing ends are shown.
const mostToken = 40

// Quoted is a string or a comment of a program.
type Quoted struct {
	Begin, End int    // its first byte, and the one behind it; End is -1 where nothing ends it
	Opening    string // with its dashes, quote or brackets: --, ", [==[, --[[
}

// longOpening is what a long string or a long comment begins with.
var longOpening = regexp.MustCompile(`^(?:--)?\[=*\[`)

// AllQuoted are the strings and comments of a program. One that nothing ends is the last.
func AllQuoted(text string) iter.Seq[Quoted] {
	return func(yield func(Quoted) bool) {
		i := 0
		if strings.HasPrefix(text, "#") { // the line of a script that names its program
			i = lineEnd(text, 0)
		}
		for {
			next := strings.IndexAny(text[i:], `-["'`)
			if next < 0 {
				return
			}
			i += next
			q := quotedAt(text, i)
			if q.Opening == "" {
				i++
				continue
			}
			if !yield(q) || q.End < 0 {
				return
			}
			i = q.End
		}
	}
}

// quotedAt is what begins at a place of a text, without an opening where that is neither string nor comment.
func quotedAt(text string, at int) Quoted {
	rest := text[at:]
	if long := longOpening.FindString(rest); long != "" {
		q := Quoted{at, -1, long}
		closing := strings.ReplaceAll(strings.TrimPrefix(long, "--"), "[", "]")
		if n := strings.Index(rest[len(long):], closing); n >= 0 {
			q.End = at + len(long) + n + len(closing)
		}
		return q
	}
	switch {
	case strings.HasPrefix(rest, "--"):
		return Quoted{at, lineEnd(text, at), "--"}
	case rest[0] == '"' || rest[0] == '\'':
		return Quoted{at, quoteEnd(text, at), rest[:1]}
	}
	return Quoted{}
}

// unclosed is where in a text the string or the comment begins that nothing ends; -1: each has its end.
func unclosed(text string) int {
	for q := range AllQuoted(text) {
		if q.End < 0 {
			return q.Begin
		}
	}
	return -1
}

// lineEnd is where the line ends that a place of a text is on.
func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// quoteEnd is the place behind the string in quotes that begins there; -1: its line does not end it.
func quoteEnd(text string, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case text[at]:
			return i + 1
		case '\n':
			return -1
		case '\\':
			i++
		}
	}
	return -1
}

// begins has the error name the string or comment that begins at a place of the text and that nothing ends; early says
// whether the text ends within it.
func (e *SyntaxError) begins(at int, early bool) {
	e.early = early
	e.Line = 1 + strings.Count(e.Text[:at], "\n")
	e.Column = at - strings.LastIndexByte(e.Text[:at], '\n')
	e.Token, _, _ = strings.Cut(e.Text[at:min(at+mostToken, len(e.Text))], "\n")
	e.Token = strings.ToValidUTF8(strings.TrimSuffix(e.Token, "\r"), "")
}
