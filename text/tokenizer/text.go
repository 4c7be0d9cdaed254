package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Span is a range of bytes of the text that was given: text[From:To].
type Span struct{ From, To int }

// piece is a stretch of the input on its way through the stages.
type piece struct {
	s string
	// spans says for each byte of s which character of the input it comes from. Without spans, s is the input itself
	// from byte at on, or nobody wants to know.
	spans []Span
	at    int
}

// slice is a part of a piece.
func (p piece) slice(from, to int) piece {
	q := piece{s: p.s[from:to], at: p.at + from}
	if p.spans != nil {
		q.spans = p.spans[from:to]
	}
	return q
}

// start is where the first character of p begins in the input.
func (p piece) start() int {
	if p.spans != nil {
		return p.spans[0].From
	}
	return p.at
}

// span is where the bytes from..to of p come from: whole characters. An empty range is itself, as in Python.
func (p piece) span(from, to int) Span {
	if p.spans != nil {
		if from == to {
			return Span{p.start() + from, p.start() + to}
		}
		return Span{p.spans[from].From, p.spans[to-1].To}
	}
	for from > 0 && from < len(p.s) && !utf8.RuneStart(p.s[from]) {
		from--
	}
	for to < len(p.s) && !utf8.RuneStart(p.s[to]) {
		to++
	}
	return Span{p.at + from, p.at + to}
}

// withSpans gives a piece the spans that it has anyway.
func (p piece) withSpans() piece {
	if p.spans != nil {
		return p
	}
	p.spans = make([]Span, len(p.s))
	for i := 0; i < len(p.s); {
		_, n := utf8.DecodeRuneInString(p.s[i:])
		for j := range n {
			p.spans[i+j] = Span{p.at + i, p.at + i + n}
		}
		i += n
	}
	return p
}

// edits builds the successor of a piece, character by character. Each character comes with a change: 0 if it stands
// for the next character of the old text, n > 0 if it is new and belongs to the character before it, -n if it stands
// for the next one and the n after that go away.
type edits struct {
	old   piece
	track bool // whether spans are wanted
	out   strings.Builder
	spans []Span
	at    int // in old.s: what has been used
}

// edit begins the successor of p.
func edit(p piece, track bool) *edits {
	e := &edits{old: p, track: track}
	if track {
		e.old = p.withSpans()
		e.spans = make([]Span, 0, len(p.s)+8)
	}
	e.out.Grow(len(p.s) + 8)
	return e
}

// drop removes the next n characters of the old text.
func (e *edits) drop(n int) {
	for ; n > 0 && e.at < len(e.old.s); n-- {
		_, size := utf8.DecodeRuneInString(e.old.s[e.at:])
		e.at += size
	}
}

// put adds a character.
func (e *edits) put(r rune, change int) {
	n, _ := e.out.WriteRune(r)
	if e.track {
		var span Span
		switch {
		case change > 0 && e.at > 0:
			span = e.old.spans[min(e.at, len(e.old.spans))-1]
		case change <= 0 && e.at < len(e.old.spans):
			span = e.old.spans[e.at]
		}
		for range n {
			e.spans = append(e.spans, span)
		}
	}
	if change <= 0 {
		e.drop(1 - change)
	}
}

// keep takes over the next n bytes of the old text.
func (e *edits) keep(n int) {
	e.out.WriteString(e.old.s[e.at : e.at+n])
	if e.track {
		e.spans = append(e.spans, e.old.spans[e.at:e.at+n]...)
	}
	e.at += n
}

// swap replaces the next n bytes of the old text by s; what is new belongs to the last character that went.
func (e *edits) swap(n int, s string) {
	e.out.WriteString(s)
	e.at += n
	if !e.track {
		return
	}
	var span Span
	if e.at > 0 {
		span = e.old.spans[e.at-1]
	}
	for range len(s) {
		e.spans = append(e.spans, span)
	}
}

// done is the successor.
func (e *edits) done() piece {
	return piece{s: e.out.String(), spans: e.spans, at: e.old.at}
}

// prepend puts s before a piece that is not empty; s belongs to its first character.
func (p piece) prepend(s string, track bool) piece {
	q := piece{s: s + p.s, at: p.at}
	if track {
		p = p.withSpans()
		q.spans = make([]Span, 0, len(q.s))
		for range len(s) {
			q.spans = append(q.spans, p.spans[0])
		}
		q.spans = append(q.spans, p.spans...)
	}
	return q
}

// valid replaces what is not UTF-8 by U+FFFD, one for each longest stretch of bytes that could begin a character, as
// Python's errors="replace" and Rust's from_utf8_lossy do.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			n = max(1, partial(s[i:]))
		}
		if r == utf8.RuneError {
			b.WriteRune(r)
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// partial is how many bytes at the beginning of s could begin a character that s does not end: 0 if none.
func partial(s string) int {
	need, low, high := 0, byte(0x80), byte(0xBF)
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	default:
		return 0
	}
	n := 1
	for n <= need && n < len(s) && s[n] >= low && s[n] <= high {
		n++
		low, high = 0x80, 0xBF
	}
	return n
}
