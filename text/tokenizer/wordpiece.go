package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// wordPiece takes the longest token that a word begins with, then the longest one of those with a prefix (##), and so
// on. A word that cannot be split so is unknown.
type wordPiece struct {
	vocabulary
	unk      int32 // -1: missing
	prefix   string
	maxChars int
	trie     pairs // (node, byte) -> (node, 1 + id of the token that ends there)
	inside   int32 // the node of the prefix, -1 if no token has it
}

func readWordPiece(s *section) (model, error) {
	m := &wordPiece{prefix: "##", maxChars: 100}
	unk := "[UNK]"
	s.need("vocab", &m.vocabulary)
	s.value("unk_token", &unk)
	s.value("continuing_subword_prefix", &m.prefix)
	s.value("max_input_chars_per_word", &m.maxChars)
	s.ignore("type")
	m.unk = m.idOr(unk, -1)
	trie := &unigram{}
	nodes := int32(1)
	for token, id := range m.ids {
		nodes = trie.grow(token, id, nodes)
	}
	m.trie = trie.trie
	for i := range len(m.prefix) {
		next, _, ok := m.trie.get(m.inside, int32(m.prefix[i]))
		if !ok {
			m.inside = -1
			break
		}
		m.inside = next
	}
	return m, s.finish()
}

func (m *wordPiece) tokenize(w *worker, p piece) error {
	if hit := w.words.find(p.s); hit != nil {
		w.emitAll(p, hit)
		return nil
	}
	w.tokens = w.tokens[:0]
	if utf8.RuneCountInString(p.s) <= m.maxChars {
		m.search(w, p.s)
	}
	if len(w.tokens) == 0 {
		if m.unk < 0 {
			return fmt.Errorf("[tokenizer] model: %q is unknown, but the unk_token is not in the vocabulary", p.s)
		}
		w.tokens = append(w.tokens, token{m.unk, int32(len(p.s))})
	}
	w.words.keep(p.s, w.tokens)
	w.emitAll(p, w.tokens)
	return nil
}

// search leaves the tokens of s in w.tokens, none if it cannot be split.
func (m *wordPiece) search(w *worker, s string) {
	node := int32(0)
	for at := 0; at < len(s); {
		id, size := int32(-1), 0
		for i := at; i < len(s) && node >= 0; i++ {
			child, end, ok := m.trie.get(node, int32(s[i]))
			if !ok {
				break
			}
			node = child
			if end > 0 {
				id, size = end-1, i+1-at
			}
		}
		if id < 0 {
			w.tokens = w.tokens[:0]
			return
		}
		w.tokens = append(w.tokens, token{id, int32(size)})
		at += size
		node = m.inside
	}
}

// wordLevel knows whole words only.
type wordLevel struct {
	vocabulary
	unk int32 // -1: missing
}

func readWordLevel(s *section) (model, error) {
	m := &wordLevel{}
	unk := "<unk>"
	s.need("vocab", &m.vocabulary)
	s.value("unk_token", &unk)
	s.ignore("type")
	m.unk = m.idOr(unk, -1)
	return m, s.finish()
}

func (m *wordLevel) tokenize(w *worker, p piece) error {
	id := m.idOr(p.s, m.unk)
	if id < 0 {
		return fmt.Errorf("[tokenizer] model: %q is unknown, but the unk_token is not in the vocabulary", p.s)
	}
	w.emit(p, id, 0, len(p.s), "")
	return nil
}
