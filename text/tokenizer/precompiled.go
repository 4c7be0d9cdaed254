package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// precompiled is SentencePiece's table of replacements: a trie in a double array (as the library Darts lays it out),
// whose values are places in a text of replacements that end in a zero byte.
type precompiled struct {
	units []uint32
	texts string
}

func readPrecompiled(s *section) (normalizer, error) {
	var text string
	s.need("precompiled_charsmap", &text)
	if s.err != nil {
		return nil, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < 4 {
		return nil, fmt.Errorf("precompiled_charsmap is not base64: %v", err)
	}
	size := int(binary.LittleEndian.Uint32(raw))
	if size > len(raw)-4 || size%4 != 0 {
		return nil, fmt.Errorf("precompiled_charsmap: a trie of %d bytes in %d", size, len(raw))
	}
	p := &precompiled{units: make([]uint32, size/4), texts: valid(string(raw[4+size:]))}
	for i := range p.units {
		p.units[i] = binary.LittleEndian.Uint32(raw[4+4*i:])
	}
	return p, nil
}

// find is the replacement of the shortest key that s begins with.
func (n *precompiled) find(s string) (string, bool) {
	node := uint32(0)
	offset := func() bool {
		if int(node) >= len(n.units) {
			return false
		}
		u := n.units[node]
		node ^= u >> 10 << (u & (1 << 9) >> 6)
		return int(node) < len(n.units)
	}
	if !offset() {
		return "", false
	}
	for i := 0; i < len(s) && s[i] != 0; i++ {
		node ^= uint32(s[i])
		if int(node) >= len(n.units) {
			return "", false
		}
		u := n.units[node]
		if u&(1<<31|0xFF) != uint32(s[i]) || !offset() {
			return "", false
		}
		if u>>8&1 == 1 {
			at := int(n.units[node] & (1<<31 - 1))
			if at > len(n.texts) {
				return "", false
			}
			text, _, _ := strings.Cut(n.texts[at:], "\x00")
			return text, true
		}
	}
	return "", false
}

// shortGrapheme is below which size in bytes a grapheme is looked up as a whole, too.
const shortGrapheme = 6

func (n *precompiled) normalize(w *worker, p piece) piece {
	e, changed := edit(p, w.track), false
	one := func(s string) {
		if text, ok := n.find(s); ok {
			changed = true
			swapRunes(e, s, text)
		} else {
			e.keep(len(s))
		}
	}
	for i := 0; i < len(p.s); {
		g := grapheme(p.s[i:])
		if _, ok := n.find(p.s[i : i+g]); ok && g < shortGrapheme {
			one(p.s[i : i+g])
			i += g
			continue
		}
		for end := i + g; i < end; {
			_, size := utf8.DecodeRuneInString(p.s[i:])
			one(p.s[i : i+size])
			i += size
		}
	}
	if !changed {
		return p
	}
	return e.done()
}

// swapRunes writes now for the next characters old. With nothing to write, the old ones go.
func swapRunes(e *edits, old, now string) {
	if now == "" {
		e.at += len(old)
		return
	}
	replaceRunes(e, old, now)
}

// grapheme is the length of the extended grapheme cluster at the beginning of s (Unicode Annex 29), in bytes. It does
// not keep pairs of flags, emoji sequences and Hangul syllables of several parts together: they are longer than
// anybody asks.
func grapheme(s string) int {
	c := classes()
	before, size := c.at(s, 0)
	if s[0] == '\r' && len(s) > 1 && s[1] == '\n' {
		return 2
	}
	if before&gcbControl != 0 || s[0] == '\r' || s[0] == '\n' {
		return size
	}
	for size < len(s) && size < 2*shortGrapheme {
		is, n := c.at(s, size)
		joins := is&(gcbExtend|gcbSpacing) != 0 || strings.HasPrefix(s[size:], "\u200D") ||
			before&gcbPrepend != 0 && is&(gcbControl|newline) == 0
		if !joins {
			break
		}
		before = is
		size += n
	}
	return size
}
