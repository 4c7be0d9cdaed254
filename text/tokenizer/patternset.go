package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A charset is a set of characters: ranges from..to, both within, in order and with gaps between.
type charset []charRange

type charRange struct{ from, to rune }

// union is the characters of a or b.
func (a charset) union(b charset) charset { return slices.Concat(a, b).tidied() }

// tidied is the set of ranges that lie in any order, over each other, too: it sorts them.
func (a charset) tidied() charset {
	slices.SortFunc(a, func(x, y charRange) int { return cmp.Compare(x.from, y.from) })
	var out charset
	for _, r := range a {
		if n := len(out); n > 0 && r.from <= out[n-1].to+1 {
			out[n-1].to = max(out[n-1].to, r.to)
			continue
		}
		out = append(out, r)
	}
	return out
}

// complement is all other characters.
func (a charset) complement() charset {
	var out charset
	next := rune(0)
	for _, r := range a {
		if next < r.from {
			out = append(out, charRange{next, r.from - 1})
		}
		next = r.to + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, charRange{next, unicode.MaxRune})
	}
	return out
}

// intersection is the characters of a and b.
func (a charset) intersection(b charset) charset {
	return a.complement().union(b.complement()).complement()
}

// pattern is the set as Go's regexp and regexp2 read it.
func (a charset) pattern() string {
	if len(a) == 0 {
		return charset{{0, unicode.MaxRune}}.not()
	}
	return "[" + a.ranges() + "]"
}

func (a charset) not() string { return "[^" + a.ranges() + "]" }

func (a charset) ranges() string {
	var out strings.Builder
	for _, r := range a {
		fmt.Fprintf(&out, `\x{%X}-\x{%X}`, r.from, r.to)
	}
	return out.String()
}

// folded adds what stands for the same letters in another case; ok says that a has none beyond ASCII.
func (a charset) folded() (out charset, ok bool) {
	out = a
	for _, r := range a {
		for c := r.from; c <= r.to; c++ {
			if c >= 128 {
				return nil, false
			}
			out = out.union(foldedLetter(c))
		}
	}
	return out, true
}

// foldedLetter is an ASCII character in all cases: the long s is an s, the Kelvin sign a k.
func foldedLetter(c rune) charset {
	small, capital := unicode.ToLower(c), unicode.ToUpper(c)
	out := charset{{small, small}}.union(charset{{capital, capital}})
	switch small {
	case 's':
		out = out.union(charset{{'ſ', 'ſ'}})
	case 'k':
		out = out.union(charset{{'\u212A', '\u212A'}})
	}
	return out
}

// namedSet is \p{name}, or \w, \d and \s by their letters: as Oniguruma has them, which is what unicode.txt says. It is
// shared: nobody changes it.
func namedSet(name string) (out charset, known bool) {
	if len(name) > 1 { // \s is not \p{S}
		name = strings.ToLower(name)
	}
	out, known = namedSets()[name]
	return out, known
}

var namedSets = sync.OnceValue(func() map[string]charset {
	sets := map[string]charset{}
	for line := range strings.SplitSeq(strings.TrimSpace(unicodeText), "\n") {
		key, rest, _ := strings.Cut(line, " ")
		_, class := classNames[key]
		short, only := strings.CutPrefix(key, patternsOnly)
		if !only && !(class && (len(key) <= 2 || key == "Han")) { // other lines are of other libraries
			continue
		}
		if len(short) > 1 {
			short = strings.ToLower(short)
		}
		var set charset
		eachRange(rest, func(from, to int) { set = append(set, charRange{rune(from), rune(to - 1)}) })
		sets[short] = set
	}
	return sets
})

// fewerWords are no words within classes, and are outside, as Oniguruma has it.
var fewerWords = charset{{'²', '³'}, {'¹', '¹'}, {'¼', '¾'}}

// wordsInClasses is what \w means within a class.
var wordsInClasses = sync.OnceValue(func() charset {
	set, _ := namedSet("w")
	return set.intersection(fewerWords.complement())
})
