package tokenizer

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm is one of the normal forms. The Python package knows Unicode 9: characters that came later stay as they
// are, and stand between the others.
type unicodeForm struct{ form norm.Form }

func (n unicodeForm) normalize(w *worker, p piece) piece {
	if n.form.IsNormalString(p.s) {
		return p
	}
	e := edit(p, w.track)
	for i := 0; i < len(p.s); {
		j := i
		for j < len(p.s) {
			r, size := utf8.DecodeRuneInString(p.s[j:])
			if sinceUnicode9(r) {
				break
			}
			j += size
		}
		n.stretch(e, p.s[i:j])
		i = j
		for i < len(p.s) {
			r, size := utf8.DecodeRuneInString(p.s[i:])
			if !sinceUnicode9(r) {
				break
			}
			e.keep(size)
			i += size
		}
	}
	return e.done()
}

// stretch normalizes a part of the text, from one character that starts anew to the next.
func (n unicodeForm) stretch(e *edits, s string) {
	if !e.track && !manyMarks(s) {
		e.out.WriteString(n.form.String(s))
		e.at += len(s)
		return
	}
	var out []changed
	var buf []byte
	for len(s) > 0 {
		size := n.segment(s)
		if now := s[:size]; n.form.IsNormalString(now) {
			e.keep(size)
		} else {
			out, buf = n.byDefinition(now, out[:0], buf)
			for _, c := range out {
				e.put(c.r, c.change)
			}
		}
		s = s[size:]
	}
}

// segment is the length of the first part of s that normalizes by itself.
func (n unicodeForm) segment(s string) int {
	size := 0
	for i, r := range s {
		if i > 0 && n.form.PropertiesString(s[i:i+utf8.RuneLen(r)]).BoundaryBefore() {
			return i
		}
		size = i + utf8.RuneLen(r)
	}
	return size
}

// maxMarks is how many combining characters in a row the package norm takes before it puts a joiner between them.
const maxMarks = 30

func manyMarks(s string) bool {
	count := 0
	for i, r := range s {
		if r < 0x300 {
			count = 0
			continue
		}
		is := norm.NFKD.PropertiesString(s[i : i+utf8.RuneLen(r)])
		if is.LeadCCC() == 0 && is.TrailCCC() == 0 {
			count = 0
		} else if count++; count >= maxMarks-2 {
			return true
		}
	}
	return false
}

// changed is a character and how many it stands for; see edits.
type changed struct {
	r      rune
	ccc    uint8
	change int
}

// byDefinition normalizes in steps: decompose, order, compose (Unicode, section 3.11). It appends to out, and uses buf.
func (n unicodeForm) byDefinition(s string, out []changed, buf []byte) ([]changed, []byte) {
	apart := norm.NFD
	if n.form == norm.NFKC || n.form == norm.NFKD {
		apart = norm.NFKD
	}
	for i, r := range s {
		buf = apart.AppendString(buf[:0], s[i:i+utf8.RuneLen(r)])
		for at, first := 0, 0; at < len(buf); first = 1 {
			d, size := utf8.DecodeRune(buf[at:])
			out = append(out, changed{d, norm.NFD.Properties(buf[at:]).CCC(), first})
			at += size
		}
	}
	for i := 0; i < len(out); i++ {
		j := i
		for j < len(out) && out[j].ccc != 0 {
			j++
		}
		slices.SortStableFunc(out[i:j], func(a, b changed) int { return int(a.ccc) - int(b.ccc) })
		i = j
	}
	if n.form == norm.NFD || n.form == norm.NFKD {
		return out, buf
	}
	return compose(out), buf
}

// compose joins each starter with the marks after it that no equal or higher mark blocks.
func compose(runes []changed) []changed {
	out := runes[:0]
	starter, last := -1, uint8(0)
	for _, c := range runes {
		if starter >= 0 && (last < c.ccc || last == 0 && starter == len(out)-1) {
			one := norm.NFC.String(string([]rune{out[starter].r, c.r}))
			if r, size := utf8.DecodeRuneInString(one); size == len(one) {
				out[starter].r = r
				out[starter].change += c.change - 1
				continue
			}
		}
		if c.ccc == 0 {
			starter = len(out)
		}
		last = c.ccc
		out = append(out, c)
	}
	return out
}

// replaceRunes writes now for the next characters old: what is too much in now belongs to the last character of old,
// and the last one of now stands for what is too much in old.
func replaceRunes(e *edits, old, now string) {
	if old == now {
		e.keep(len(old))
		return
	}
	extra := utf8.RuneCountInString(now) - utf8.RuneCountInString(old)
	i, count := 0, utf8.RuneCountInString(now)
	for _, r := range now {
		i++
		switch {
		case extra > 0 && i > count-extra:
			e.put(r, 1)
		case extra < 0 && i == count:
			e.put(r, extra)
		default:
			e.put(r, 0)
		}
	}
}

// sinceUnicode9 reports whether Go's tables of normal forms say something of r that those of Unicode 9 do not.
func sinceUnicode9(r rune) bool {
	if r < 0x7FD {
		return false
	}
	if norm.NFD.PropertiesString(string(r)).CCC() != 0 {
		return classes().of(r)&combining == 0
	}
	switch {
	case r == 0x32FF, r >= 0xA7F2 && r <= 0xA7F4, r == 0xAB69, r >= 0x10781 && r <= 0x107BA,
		r >= 0x1E030 && r <= 0x1E06D, r == 0x1F16C, r >= 0x1FBF0 && r <= 0x1FBF9:
		return true
	case r >= 0x11930 && r <= 0x11938: // Dives Akuru's o, and the two that make it
		return true
	}
	return false
}
