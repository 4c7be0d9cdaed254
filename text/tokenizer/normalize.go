package tokenizer

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A normalizer changes the characters of a text.
type normalizer interface {
	normalize(w *worker, p piece) piece
}

// readNormalizers reads the normalizer of the file; a Sequence becomes its members.
func readNormalizers(s *section) ([]normalizer, error) {
	var out []normalizer
	switch kind := s.kind(); kind {
	case "Sequence":
		for _, member := range s.list("normalizers") {
			more, err := readNormalizers(member)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	case "NFC":
		out = []normalizer{unicodeForm{norm.NFC}}
	case "NFD":
		out = []normalizer{unicodeForm{norm.NFD}}
	case "NFKC":
		out = []normalizer{unicodeForm{norm.NFKC}}
	case "NFKD":
		out = []normalizer{unicodeForm{norm.NFKD}}
	case "Lowercase":
		out = []normalizer{lowercase{}}
	case "StripAccents":
		out = []normalizer{dropChars{of: combining}}
	case "Nmt":
		out = []normalizer{nmt{}}
	case "ByteLevel":
		out = []normalizer{bytesNormalizer{}}
	case "Prepend":
		var p prependText
		s.need("prepend", &p.text)
		out = []normalizer{p}
	case "Strip":
		var st stripSpace
		s.need("strip_left", &st.left)
		s.need("strip_right", &st.right)
		out = []normalizer{st}
	case "Replace":
		r := &replace{pattern: readPattern(s)}
		s.need("content", &r.by)
		out = []normalizer{r}
	case "BertNormalizer", "Bert":
		out = readBertNormalizer(s)
	case "Precompiled":
		pre, err := readPrecompiled(s)
		if err != nil {
			s.fail("%v", err)
		}
		out = []normalizer{pre}
	default:
		s.fail("does not know the normalizer %q", kind)
	}
	return out, s.finish()
}

func readBertNormalizer(s *section) (out []normalizer) {
	var clean, chinese, small bool
	var accents *bool
	s.need("clean_text", &clean)
	s.need("handle_chinese_chars", &chinese)
	s.value("strip_accents", &accents)
	s.need("lowercase", &small)
	if clean {
		out = append(out, dropChars{of: unclean}, blankSpaces{})
	}
	if chinese {
		out = append(out, spaceChinese{})
	}
	if accents != nil && *accents || accents == nil && small {
		out = append(out, unicodeForm{norm.NFD}, dropChars{of: nonspacing})
	}
	if small {
		out = append(out, lowercase{})
	}
	return out
}

// lowercase makes small letters, character by character.
type lowercase struct{}

func (lowercase) normalize(w *worker, p piece) piece {
	if !w.track && isASCII(p.s) {
		p.s = strings.ToLower(p.s)
		return p
	}
	c, e := classes(), edit(p, w.track)
	var buf [4]rune
	for _, r := range p.s {
		for i, l := range c.toLower(buf[:0], r) {
			e.put(l, min(i, 1))
		}
	}
	return e.done()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// dropChars drops the characters of some classes.
type dropChars struct{ of class }

func (d dropChars) normalize(w *worker, p piece) piece {
	c := classes()
	return filter(p, w.track, func(r rune) bool { return c.of(r)&d.of == 0 })
}

func filter(p piece, track bool, keep func(r rune) bool) piece {
	if strings.IndexFunc(p.s, func(r rune) bool { return !keep(r) }) < 0 {
		return p
	}
	e := edit(p, track)
	for i, r := range p.s {
		if n := utf8.RuneLen(r); keep(r) {
			e.at = i
			e.keep(n)
		}
	}
	return e.done()
}

// mapChars replaces characters one by one.
func mapChars(p piece, track bool, to func(r rune) rune) piece {
	if strings.IndexFunc(p.s, func(r rune) bool { return to(r) != r }) < 0 {
		return p
	}
	e := edit(p, track)
	for _, r := range p.s {
		e.put(to(r), 0)
	}
	return e.done()
}

// blankSpaces makes all white space the space.
type blankSpaces struct{}

func (blankSpaces) normalize(w *worker, p piece) piece {
	c := classes()
	return mapChars(p, w.track, func(r rune) rune {
		if c.of(r)&space != 0 {
			return ' '
		}
		return r
	})
}

// spaceChinese puts spaces around the ideographs of Chinese.
type spaceChinese struct{}

func (spaceChinese) normalize(w *worker, p piece) piece {
	if strings.IndexFunc(p.s, isChinese) < 0 {
		return p
	}
	e := edit(p, w.track)
	for _, r := range p.s {
		if !isChinese(r) {
			e.put(r, 0)
			continue
		}
		e.put(' ', 0)
		e.put(r, 1)
		e.put(' ', 1)
	}
	return e.done()
}

func isChinese(r rune) bool {
	return r >= 0x3400 && (r <= 0x4DBF || r >= 0x4E00 && r <= 0x9FFF || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F ||
		r >= 0x2B920 && r <= 0x2CEAF || r >= 0x2F800 && r <= 0x2FA1F)
}

// nmt is the cleaning of the NMT models: no control characters, and plain spaces.
type nmt struct{}

func (nmt) normalize(w *worker, p piece) piece {
	p = filter(p, w.track, func(r rune) bool {
		return r == 0 || r > 8 && r != 0x0B && (r < 0x0E || r > 0x1F) && r != 0x7F && r != 0x8F && r != 0x9F
	})
	return mapChars(p, w.track, func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200B && r <= 0x200F, r == 0x2028,
			r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return ' '
		}
		return r
	})
}

// bytesNormalizer writes each byte as a character of its own.
type bytesNormalizer struct{}

func (bytesNormalizer) normalize(w *worker, p piece) piece { return mapBytes(p, w.track) }

// prependText puts a text before a text that is not empty.
type prependText struct{ text string }

func (n prependText) normalize(w *worker, p piece) piece {
	if p.s == "" || n.text == "" {
		return p
	}
	return p.prepend(n.text, w.track)
}

// stripSpace cuts white space off the ends.
type stripSpace struct{ left, right bool }

func (n stripSpace) normalize(_ *worker, p piece) piece {
	c := classes()
	from, to := 0, len(p.s)
	if n.left {
		from = c.run(p.s, 0, space)
	}
	for n.right && to > from && c.last(p.s[:to])&space != 0 {
		_, size := utf8.DecodeLastRuneInString(p.s[:to])
		to -= size
	}
	return p.slice(from, to)
}

// replace writes a text for every match of a pattern.
type replace struct {
	pattern *pattern
	by      string
}

func (n *replace) normalize(w *worker, p piece) piece {
	if lit := n.pattern.literal; lit != "" && (!w.track || !strings.Contains(p.s, lit)) {
		p.s = strings.ReplaceAll(p.s, lit, n.by)
		return p
	}
	e := edit(p, w.track)
	err := n.pattern.each(p.s, func(from, to int, match bool) {
		if match {
			e.swap(to-from, n.by)
		} else {
			e.keep(to - from)
		}
	})
	w.fail(err)
	return e.done()
}
