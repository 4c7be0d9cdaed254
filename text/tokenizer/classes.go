package tokenizer

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed unicode.txt
var unicodeText string

// A class is a set of classes of characters, as bits.
type class uint32

const (
	upper       class = 1 << iota // \p{Lu}
	lower                         // \p{Ll}
	title                         // \p{Lt}
	modifier                      // \p{Lm}
	otherLetter                   // \p{Lo}
	mark                          // \p{M}
	number                        // \p{N}
	punctuation                   // \p{P}
	symbol                        // \p{S}
	space                         // \s
	word                          // \w of Rust's regex
	numeric                       // what Digits takes for a digit
	bertPunct                     // what Punctuation and BertPreTokenizer take for punctuation
	unclean                       // what BertNormalizer drops when it cleans
	nonspacing                    // what BertNormalizer drops as an accent
	combining                     // what StripAccents drops
	newline                       // [\r\n]
	han                           // \p{Han}
	gcbControl
	gcbExtend
	gcbSpacing
	gcbPrepend

	letter = upper | lower | title | modifier | otherLetter
)

var classNames = map[string]class{
	"Lu": upper, "Ll": lower, "Lt": title, "Lm": modifier, "Lo": otherLetter, "L": 0, "M": mark, "N": number,
	"P": punctuation, "S": symbol, "Han": han, "space": space, "word": word, "numeric": numeric, "punctuation": bertPunct,
	"unclean": unclean, "nonspacing": nonspacing, "combining": combining, "graphemeControl": gcbControl,
	"graphemeExtend": gcbExtend, "graphemeSpacingMark": gcbSpacing, "graphemePrepend": gcbPrepend}

const pageBits = 8

// patternsOnly begins the lines of unicode.txt that patterns without a scanner ask for: see namedSet.
const patternsOnly = "only"

// classTable gives the classes of every character: pages of 256, equal pages kept once.
type classTable struct {
	ascii [256]class // of the first 256 characters
	pages [(unicode.MaxRune + 1) >> pageBits]*[1 << pageBits]class
	small map[rune][]rune // small letters that package unicode does not give
}

var classes = sync.OnceValue(func() *classTable {
	t := &classTable{small: map[rune][]rune{}}
	all := make([]class, unicode.MaxRune+1)
	for _, line := range strings.Split(strings.TrimSpace(unicodeText), "\n") {
		name, rest, _ := strings.Cut(line, " ")
		bit, known := classNames[name]
		switch {
		case name == "#" || name == "scripts" || strings.HasPrefix(name, patternsOnly):
		case name == "lower":
			t.readSmall(rest)
		case !known:
			panic("BUG: unicode.txt: class " + name)
		default:
			eachRange(rest, func(from, to int) {
				for i := from; i < to; i++ {
					all[i] |= bit
				}
			})
		}
	}
	all['\r'] |= newline
	all['\n'] |= newline
	copy(t.ascii[:], all)
	kept := map[[1 << pageBits]class]*[1 << pageBits]class{}
	for i := range t.pages {
		page := [1 << pageBits]class(all[i<<pageBits:])
		if kept[page] == nil {
			kept[page] = &page
		}
		t.pages[i] = kept[page]
	}
	return t
})

// eachRange reads a line of unicode.txt: gap+length, or gap alone for a single character.
func eachRange(line string, f func(from, to int)) {
	at := 0
	for _, w := range strings.Fields(line) {
		gap, length, long := strings.Cut(w, "+")
		n := 1
		if long {
			n = mustInt(length, 10)
		}
		at += mustInt(gap, 10)
		f(at, at+n)
		at += n
	}
}

func (t *classTable) readSmall(line string) {
	for _, w := range strings.Fields(line) {
		from, to, _ := strings.Cut(w, "=")
		r := rune(mustInt(from, 16))
		for _, s := range strings.Split(to, ",") {
			t.small[r] = append(t.small[r], rune(mustInt(s, 16)))
		}
	}
}

func mustInt(s string, base int) int {
	n, err := strconv.ParseInt(s, base, 32)
	if err != nil {
		panic(fmt.Sprintf("BUG: unicode.txt: %q", s))
	}
	return int(n)
}

func (t *classTable) of(r rune) class {
	if r < 256 {
		return t.ascii[r]
	}
	return t.pages[r>>pageBits][r&(1<<pageBits-1)]
}

// at gives the classes of the character at s[i:], and its length in bytes.
func (t *classTable) at(s string, i int) (class, int) {
	if b := s[i]; b < utf8.RuneSelf {
		return t.ascii[b], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.of(r), n
}

// is reports whether there is a character at s[i:] and one of these classes.
func (t *classTable) is(s string, i int, of class) bool {
	if i >= len(s) {
		return false
	}
	c, _ := t.at(s, i)
	return c&of != 0
}

// last gives the classes of the last character of s, 0 for an empty s.
func (t *classTable) last(s string) class {
	r, n := utf8.DecodeLastRuneInString(s)
	if n == 0 {
		return 0
	}
	return t.of(r)
}

// run is the end of the characters of these classes from s[i:] on.
func (t *classTable) run(s string, i int, of class) int {
	for i < len(s) {
		c, n := t.at(s, i)
		if c&of == 0 {
			break
		}
		i += n
	}
	return i
}

// runBut is run without characters of the classes not.
func (t *classTable) runBut(s string, i int, of, not class) int {
	for i < len(s) {
		c, n := t.at(s, i)
		if c&of == 0 || c&not != 0 {
			break
		}
		i += n
	}
	return i
}

// runNot is the end of the characters of none of these classes from s[i:] on.
func (t *classTable) runNot(s string, i int, of class) int {
	for i < len(s) {
		c, n := t.at(s, i)
		if c&of != 0 {
			break
		}
		i += n
	}
	return i
}

// toLower appends the small letters of r.
func (t *classTable) toLower(to []rune, r rune) []rune {
	if r < 128 {
		return append(to, unicode.ToLower(r))
	}
	if s := t.small[r]; s != nil {
		return append(to, s...)
	}
	return append(to, unicode.ToLower(r))
}
