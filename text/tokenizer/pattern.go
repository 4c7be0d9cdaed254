package tokenizer

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// A pattern covers a text with matches and what is between them.
type pattern struct {
	literal string
	text    string // of the file, for messages
	scan    scanner
	linear  *regexp.Regexp  // where Go's own syntax means the same: it never takes long
	any     *regexp2.Regexp // with look-around
}

// patternTime bounds the search for one match by a pattern that backtracks.
const patternTime = 2 * time.Second

// readPattern reads the key pattern: {"String": "..."} or {"Regex": "..."}.
func readPattern(s *section) *pattern {
	var raw struct{ String, Regex *string }
	s.need("pattern", &raw)
	p := &pattern{}
	switch {
	case s.err != nil:
	case raw.String != nil && *raw.String != "":
		p.literal = *raw.String
	case raw.String != nil:
		p.linear = regexp.MustCompile("")
	case raw.Regex != nil:
		if err := p.compile(*raw.Regex); err != nil {
			s.fail("pattern %.99q: %v", *raw.Regex, err)
		}
	default:
		s.fail("pattern is neither String nor Regex")
	}
	return p
}

func (p *pattern) compile(text string) error {
	if p.scan = scanners[text]; p.scan != nil {
		return nil
	}
	p.text = text
	text, linear, err := translated(text)
	if err != nil {
		return err
	}
	return p.compileTranslated(text, linear)
}

func (p *pattern) compileTranslated(text string, linear bool) error {
	if linear {
		if re, err := regexp.Compile(text); err == nil {
			p.linear = re
			return nil
		}
	}
	re, err := regexp2.Compile(text, regexp2.Multiline)
	if err != nil {
		return err
	}
	re.MatchTimeout = patternTime
	p.any = re
	return nil
}

// each covers s, in order, with matches and what is between them. Matches can be empty.
func (p *pattern) each(s string, f func(from, to int, match bool)) error {
	done := 0
	found := func(from, to int) {
		if done < from {
			f(done, from, false)
		}
		f(from, to, true)
		done = to
	}
	var err error
	switch {
	case p.literal != "":
		for {
			i := strings.Index(s[done:], p.literal)
			if i < 0 {
				break
			}
			found(done+i, done+i+len(p.literal))
		}
	case p.scan != nil:
		c := classes()
		for i := 0; i < len(s); {
			if end := p.scan(c, s, i); end > i {
				found(i, end)
				i = end
				continue
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
		}
	case p.linear != nil:
		for _, m := range p.linear.FindAllStringIndex(s, -1) {
			found(m[0], m[1])
		}
	default:
		err = p.backtrack(s, found)
	}
	if done < len(s) && err == nil {
		f(done, len(s), false)
	}
	return err
}

// backtrack finds the matches of the pattern that regexp2 runs, which counts in characters.
func (p *pattern) backtrack(s string, found func(from, to int)) error {
	at, chars := 0, 0 // the same place in bytes and in characters
	place := func(index int) int {
		for ; chars < index; chars++ {
			_, n := utf8.DecodeRuneInString(s[at:])
			at += n
		}
		return at
	}
	m, err := p.any.FindStringMatch(s)
	for last := -1; m != nil && err == nil; m, err = p.any.FindNextMatch(m) {
		from := place(m.Index)
		to := place(m.Index + m.Length)
		if from == to && from == last {
			continue
		}
		found(from, to)
		last = to
	}
	if err != nil {
		return fmt.Errorf("[tokenizer] pattern %s: %w", p.text, err)
	}
	return nil
}
