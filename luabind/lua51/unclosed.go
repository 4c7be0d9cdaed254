package lua51

import (
	"regexp"
	"strings"
)

// mostToken is how many bytes of a string or a comment that nothing ends are shown.
const mostToken = 40

// longOpening is what a long string begins with, or a comment behind its --.
var longOpening = regexp.MustCompile(`^\[=*\[`)

// unclosed is where in a text the string or the comment begins that nothing ends; -1: each has its end.
func unclosed(text string) int {
	i := 0
	if strings.HasPrefix(text, "#") { // the line of a script that names its program
		i = lineEnd(text, 0)
	}
	for i < len(text) {
		begin := i
		comment := strings.HasPrefix(text[i:], "--")
		if comment {
			i += 2
		}
		long := ""
		if i < len(text) && text[i] == '[' {
			long = longOpening.FindString(text[i:])
		}
		switch {
		case long != "":
			end := strings.Index(text[i:], strings.ReplaceAll(long, "[", "]"))
			if end < 0 {
				return begin
			}
			i += end + len(long)
		case comment:
			i = lineEnd(text, i)
		case text[i] == '"' || text[i] == '\'':
			if i = quoteEnd(text, i); i < 0 {
				return begin
			}
		default:
			i++
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
