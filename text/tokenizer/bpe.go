package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// bpe is byte-pair encoding: a word begins as single characters (or bytes), and the pair of neighbours that stands
// first in the list of merges is joined, until none is in the list.
type bpe struct {
	vocabulary
	merges   pairs // (left, right) -> (joined, rank)
	unk      int32 // -1: characters that are not in the vocabulary vanish
	prefix   string
	suffix   string
	fuseUnk  bool
	whole    bool        // ignore_merges: a word of the vocabulary is one token, whatever the merges say
	fallback *[256]int32 // ids of <0x00> to <0xFF>, -1 for those missing
	ascii    [128]int32  // ids of single ASCII characters, -1 for those missing
	raw      *rawBytes   // set if words come as bytes
	cutAt    string      // "▁" if no merge joins what ends otherwise with what begins with it
}

// rawBytes is what a BPE behind ByteLevel needs to take bytes instead of the characters that stand for them.
type rawBytes struct {
	ids   [256]int32
	words map[string]int32 // of tokens, by their bytes; for ignore_merges
}

func readBPE(s *section) (model, error) {
	m := &bpe{unk: -1}
	var unk *string
	var dropout float64
	var byteFallback bool
	var merges mergeList
	s.need("vocab", &m.vocabulary)
	s.need("merges", &merges)
	s.value("unk_token", &unk)
	s.value("dropout", &dropout)
	s.value("continuing_subword_prefix", &m.prefix)
	s.value("end_of_word_suffix", &m.suffix)
	s.value("fuse_unk", &m.fuseUnk)
	s.value("byte_fallback", &byteFallback)
	s.value("ignore_merges", &m.whole)
	s.ignore("type")
	if dropout != 0 {
		s.fail("dropout is %g: encoding would be random, which is for training", dropout)
	}
	if unk != nil {
		id, ok := m.id(*unk)
		if !ok {
			id = missingUnk
		}
		m.unk = id
	}
	for rank, pair := range merges {
		if err := m.addMerge(rank, pair); err != nil {
			s.fail("merges[%d]: %v", rank, err)
			break
		}
	}
	if byteFallback {
		m.fallback = new([256]int32)
		for b := range m.fallback {
			m.fallback[b] = m.idOr(fmt.Sprintf("<0x%02X>", b), -1)
		}
	}
	for c := range m.ascii {
		m.ascii[c] = m.idOr(string(rune(c)), -1)
	}
	m.findCut(merges)
	return m, s.finish()
}

// missingUnk is an unk_token that the vocabulary does not have: an error where it is needed.
const missingUnk = -2

func (m *bpe) addMerge(rank int, pair [2]string) error {
	left, ok1 := m.id(pair[0])
	right, ok2 := m.id(pair[1])
	if !ok1 || !ok2 {
		return fmt.Errorf("%q or %q is not in the vocabulary", pair[0], pair[1])
	}
	if len(pair[1]) < len(m.prefix) {
		return fmt.Errorf("%q is shorter than the prefix %q", pair[1], m.prefix)
	}
	joined, ok := m.id(pair[0] + pair[1][len(m.prefix):])
	if !ok {
		return fmt.Errorf("%q is not in the vocabulary", pair[0]+pair[1][len(m.prefix):])
	}
	m.merges.set(left, right, joined, int32(rank))
	return nil
}

// findCut sets cutAt, so that text without words (as SentencePiece has it) can be split into words all the same: where
// no merge goes across, each part merges for itself.
func (m *bpe) findCut(merges mergeList) {
	const mark = "▁"
	if _, known := m.id(mark); !known || m.whole || m.prefix != "" || m.suffix != "" {
		return
	}
	for _, pair := range merges {
		if strings.HasPrefix(pair[1], mark) && strings.Trim(pair[0], mark) != "" {
			return
		}
	}
	m.cutAt = mark
}

// takeBytes makes the model take bytes; it reports whether it can.
func (m *bpe) takeBytes() bool {
	if m.prefix != "" || m.suffix != "" || m.fallback != nil {
		return false
	}
	m.raw = &rawBytes{words: map[string]int32{}}
	for b := range m.raw.ids {
		m.raw.ids[b] = m.idOr(string(byteChars[b]), -1)
	}
	if m.whole {
		for token, id := range m.ids {
			if b, ok := unmapBytes(token); ok {
				m.raw.words[string(b)] = id
			}
		}
	}
	m.cutAt = ""
	return true
}

func (m *bpe) tokenize(w *worker, p piece) error {
	if m.cutAt == "" {
		return m.word(w, p)
	}
	for from := 0; from < len(p.s); {
		to := from // the marks, then what is not a mark
		for strings.HasPrefix(p.s[to:], m.cutAt) {
			to += len(m.cutAt)
		}
		if i := strings.Index(p.s[to:], m.cutAt); i >= 0 {
			to += i
		} else {
			to = len(p.s)
		}
		if err := m.word(w, p.slice(from, to)); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (m *bpe) word(w *worker, p piece) error {
	if hit := w.words.find(p.s); hit != nil {
		w.emitAll(p, hit)
		return nil
	}
	if m.whole {
		words := m.ids
		if m.raw != nil {
			words = m.raw.words
		}
		if id, ok := words[p.s]; ok {
			w.emit(p, id, 0, len(p.s), "")
			return nil
		}
	}
	b := &w.bpe
	b.reset()
	if err := m.symbols(b, p.s); err != nil {
		return err
	}
	b.merge(&m.merges)
	w.tokens = b.tokens(w.tokens[:0])
	w.words.keep(p.s, w.tokens)
	w.emitAll(p, w.tokens)
	return nil
}

// symbols splits a word into what merging begins with.
func (m *bpe) symbols(b *bpeWord, s string) error {
	if m.raw != nil {
		return m.byteSymbols(b, s)
	}
	unk := 0 // bytes of unknown characters that wait to become a token
	flush := func() error {
		if unk > 0 {
			if m.unk == missingUnk {
				return fmt.Errorf("[tokenizer] model: the unk_token is not in the vocabulary")
			}
			b.add(m.unk, unk)
		}
		unk = 0
		return nil
	}
	for i := 0; i < len(s); {
		_, n := utf8.DecodeRuneInString(s[i:])
		id, text := m.symbol(s, i, n)
		switch {
		case id >= 0:
			if err := flush(); err != nil {
				return err
			}
			b.add(id, n)
		case m.fallback != nil && m.fallBack(b, text):
		case m.unk != -1:
			if !m.fuseUnk {
				if err := flush(); err != nil {
					return err
				}
			}
			unk += n
		}
		i += n
	}
	return flush()
}

// symbol is the character s[i:i+n] with the prefix or suffix that its place in the word asks for, and its id or -1.
func (m *bpe) symbol(s string, i, n int) (id int32, text string) {
	text = s[i : i+n]
	if i > 0 && m.prefix != "" {
		text = m.prefix + text
	}
	if i+n == len(s) && m.suffix != "" {
		text += m.suffix
	}
	if len(text) == 1 && text[0] < utf8.RuneSelf {
		return m.ascii[text[0]], text
	}
	return m.idOr(text, -1), text
}

// fallBack adds the tokens of the bytes of a character, if there is one for each.
func (m *bpe) fallBack(b *bpeWord, text string) bool {
	for i := range len(text) {
		if m.fallback[text[i]] < 0 {
			return false
		}
	}
	for i := range len(text) {
		b.add(m.fallback[text[i]], 1)
	}
	return true
}

func (m *bpe) byteSymbols(b *bpeWord, s string) error {
	unk := 0
	for i := range len(s) {
		id := m.raw.ids[s[i]]
		if unk > 0 && (id >= 0 || !m.fuseUnk) {
			b.add(m.unk, unk)
			unk = 0
		}
		switch {
		case id >= 0:
			b.add(id, 1)
		case m.unk == missingUnk:
			return fmt.Errorf("[tokenizer] model: the unk_token is not in the vocabulary")
		case m.unk >= 0:
			unk++
		}
	}
	if unk > 0 {
		b.add(m.unk, unk)
	}
	return nil
}

// mergeList reads merges in both forms: "a b" and ["a", "b"].
type mergeList [][2]string

// readJSON reads the list.
func (l *mergeList) readJSON(raw []byte) error {
	if pairs, ok := readPairs(raw); ok {
		*l = pairs
		return nil
	}
	var lines []string
	if err := json.Unmarshal(raw, &lines); err != nil {
		return fmt.Errorf("merges are neither strings nor pairs of strings")
	}
	if len(lines) > math.MaxInt32 {
		return fmt.Errorf("there are %d merges", len(lines))
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "#version") {
			continue
		}
		a, b, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(b, " ") {
			return fmt.Errorf("merges[%d]: %q are not two tokens", i, line)
		}
		*l = append(*l, [2]string{a, b})
	}
	return nil
}
