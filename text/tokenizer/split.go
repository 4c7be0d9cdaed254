package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A splitter is one pre-tokenizer: it hands the parts of p on to the stage next, in order.
type splitter interface {
	split(w *worker, p piece, next int)
}

// behavior says what becomes of the matches of a pattern.
type behavior int

const (
	isolated behavior = iota
	removed
	contiguous
	withPrevious
	withNext
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous, "MergedWithPrevious": withPrevious,
	"MergedWithNext": withNext,
}

// parts puts the matches of a pattern, and what is between them, together as a behavior wants it.
type parts struct {
	how      behavior
	emit     func(from, to int)
	held     bool // from..to waits for its neighbour
	match    bool // whether the last part was a match
	from, to int
}

func (b *parts) add(from, to int, match bool) {
	join := false
	switch b.how {
	case isolated:
		b.emit(from, to)
		return
	case removed:
		if !match {
			b.emit(from, to)
		}
		return
	case contiguous:
		join = match == b.match
	case withPrevious:
		join = match && !b.match
	case withNext:
		join = !match && b.match
	}
	b.match = match
	if b.held && join {
		b.to = to
		return
	}
	b.flush()
	b.held, b.from, b.to = true, from, to
}

func (b *parts) flush() {
	if b.held {
		b.emit(b.from, b.to)
	}
	b.held = false
}

// splitPattern is the pre-tokenizer Split.
type splitPattern struct {
	pattern *pattern
	how     behavior
	invert  bool
}

func (sp *splitPattern) split(w *worker, p piece, next int) {
	if scan := sp.pattern.scan; scan != nil && sp.how == isolated {
		scanAll(scan, w, p, next)
		return
	}
	b := parts{how: sp.how, emit: func(from, to int) { w.pass(next, p.slice(from, to)) }}
	w.fail(sp.pattern.each(p.s, func(from, to int, match bool) { b.add(from, to, match != sp.invert) }))
	b.flush()
}

// scanAll is the fast path of known patterns.
func scanAll(scan scanner, w *worker, p piece, next int) {
	c, done := classes(), 0
	for i := 0; i < len(p.s); {
		end := scan(c, p.s, i)
		if end == i {
			_, n := utf8.DecodeRuneInString(p.s[i:])
			i += n
			continue
		}
		if done < i {
			w.pass(next, p.slice(done, i))
		}
		w.pass(next, p.slice(i, end))
		i, done = end, end
	}
	if done < len(p.s) {
		w.pass(next, p.slice(done, len(p.s)))
	}
}

// splitChars splits at each character of some classes: Digits, Punctuation, CharDelimiterSplit and WhitespaceSplit.
type splitChars struct {
	of   class
	char rune // a delimiter, where of is 0
	how  behavior
}

func (sc *splitChars) split(w *worker, p piece, next int) {
	c := classes()
	b := parts{how: sc.how, emit: func(from, to int) { w.pass(next, p.slice(from, to)) }}
	done := 0
	for i := 0; i < len(p.s); {
		r, n := utf8.DecodeRuneInString(p.s[i:])
		if c.of(r)&sc.of != 0 || sc.of == 0 && r == sc.char {
			if done < i {
				b.add(done, i, false)
			}
			b.add(i, i+n, true)
			done = i + n
		}
		i += n
	}
	if done < len(p.s) {
		b.add(done, len(p.s), false)
	}
	b.flush()
}

// splitWords is the pre-tokenizer Whitespace: \w+|[^\w\s]+.
type splitWords struct{}

func (splitWords) split(w *worker, p piece, next int) {
	c := classes()
	for i := 0; i < len(p.s); {
		is, n := c.at(p.s, i)
		end := i + n
		switch {
		case is&word != 0:
			end = c.run(p.s, end, word)
		case is&space == 0:
			end = c.runNot(p.s, end, word|space)
		}
		if is&(word|space) != space {
			w.pass(next, p.slice(i, end))
		}
		i = end
	}
}

// fixedLength splits into so many characters each.
type fixedLength struct{ chars int }

func (f fixedLength) split(w *worker, p piece, next int) {
	from, count := 0, 0
	for i := range p.s {
		if count == f.chars {
			w.pass(next, p.slice(from, i))
			from, count = i, 0
		}
		count++
	}
	w.pass(next, p.slice(from, len(p.s)))
}

// metaspace writes spaces as another character and splits before each.
type metaspace struct {
	char    rune
	text    string // char
	prepend string // "first", "never" or "always"
	cut     bool
}

func (m *metaspace) split(w *worker, p piece, next int) {
	if n := strings.Count(p.s, " "); n > 0 {
		e := edit(p, w.track)
		for i := strings.IndexByte(p.s, ' '); i >= 0; i = strings.IndexByte(p.s[e.at:], ' ') {
			e.keep(i)
			e.swap(1, m.text)
		}
		e.keep(len(p.s) - e.at)
		p = e.done()
	}
	if !strings.HasPrefix(p.s, m.text) && (m.prepend == "always" || m.prepend == "first" && p.start() == 0) {
		p = p.prepend(m.text, w.track)
	}
	if !m.cut {
		w.pass(next, p)
		return
	}
	for from := 0; from < len(p.s); {
		to := len(p.s)
		_, n := utf8.DecodeRuneInString(p.s[from:])
		if i := strings.Index(p.s[from+n:], m.text); i >= 0 {
			to = from + n + i
		}
		w.pass(next, p.slice(from, to))
		from = to
	}
}

// byteWords is the part of ByteLevel that splits.
type byteWords struct {
	prefix bool // a space before text that begins with none
	cut    bool // by the pattern of GPT-2
}

func (b byteWords) split(w *worker, p piece, next int) {
	if b.prefix && p.s[0] != ' ' {
		p = p.prepend(" ", w.track)
	}
	if b.cut {
		scanAll(scanGPT2, w, p, next)
	} else {
		w.pass(next, p)
	}
}

// byteMap is the part of ByteLevel that writes each byte as a character of its own. A model that takes bytes goes
// without.
type byteMap struct{}

func (byteMap) split(w *worker, p piece, next int) { w.pass(next, mapBytes(p, w.track)) }

func mapBytes(p piece, track bool) piece {
	if track {
		p = p.withSpans()
	}
	var out strings.Builder
	var spans []Span
	for i := range len(p.s) {
		n, _ := out.WriteRune(byteChars[p.s[i]])
		for range n {
			if track {
				spans = append(spans, p.spans[i])
			}
		}
	}
	return piece{s: out.String(), spans: spans, at: p.at}
}

// byteChars gives GPT-2's character for each byte: itself where it can be seen, else one from U+0100 on.
var byteChars = func() (chars [256]rune) {
	hidden := rune(256)
	for b := range chars {
		if b >= '!' && b <= '~' || b >= 0xA1 && b != 0xAD {
			chars[b] = rune(b)
		} else {
			chars[b] = hidden
			hidden++
		}
	}
	return chars
}()

// charBytes is byteChars from the other side.
var charBytes = func() map[rune]byte {
	m := map[rune]byte{}
	for b, r := range byteChars {
		m[r] = byte(b)
	}
	return m
}()

// unmapBytes gives the bytes that the characters of s stand for; not ok if one stands for none.
func unmapBytes(s string) (b []byte, ok bool) {
	b = make([]byte, 0, len(s))
	for _, r := range s {
		c, known := charBytes[r]
		if !known {
			return nil, false
		}
		b = append(b, c)
	}
	return b, true
}
