package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"
)

// unigram splits a word into the tokens whose scores (logarithms of probabilities) have the largest sum.
type unigram struct {
	vocabulary
	scores   []float64
	trie     pairs   // (node, byte) -> (node, 1 + id of the token that ends there)
	unk      int32   // -1: none
	unkScore float64 // of a character that is no token
	fallback *[256]int32
}

// viterbi is the best way to split a word up to some byte.
type viterbi struct {
	score float64
	from  int32 // where its last token begins, -1: no way yet
	id    int32
}

// unkPenalty is how much worse than the worst token an unknown character is.
const unkPenalty = 10

func readUnigram(s *section) (model, error) {
	var list [][2]json.RawMessage
	var unk *int32
	var byteFallback bool
	s.need("vocab", &list)
	s.value("unk_id", &unk)
	s.value("byte_fallback", &byteFallback)
	s.ignore("type")
	m := &unigram{unk: -1, scores: make([]float64, len(list))}
	m.ids, m.names = make(map[string]int32, len(list)), make(map[int32]string, len(list))
	lowest, nodes := math.Inf(1), int32(1)
	for i, entry := range list {
		var token string
		if json.Unmarshal(entry[0], &token) != nil || json.Unmarshal(entry[1], &m.scores[i]) != nil {
			s.fail("vocab[%d] is not a token and its score", i)
			break
		}
		m.ids[token], m.names[int32(i)] = int32(i), token
		lowest = min(lowest, m.scores[i])
		nodes = m.grow(token, int32(i), nodes)
	}
	m.unkScore = lowest - unkPenalty
	if unk != nil {
		if m.unk = *unk; m.unk < 0 || int(m.unk) >= len(list) {
			s.fail("unk_id is %d, of %d tokens", m.unk, len(list))
		}
	}
	if byteFallback {
		m.fallback = new([256]int32)
		for b := range m.fallback {
			m.fallback[b] = m.idOr(fmt.Sprintf("<0x%02X>", b), -1)
		}
	}
	return m, s.finish()
}

// grow adds a token to the trie, which has so many nodes, and returns how many it has then.
func (m *unigram) grow(token string, id, nodes int32) int32 {
	node := int32(0)
	for i := range len(token) {
		child, end, ok := m.trie.get(node, int32(token[i]))
		if !ok {
			child = nodes
			nodes++
		}
		if i == len(token)-1 {
			end = id + 1
		}
		m.trie.set(node, int32(token[i]), child, end)
		node = child
	}
	return nodes
}

func (m *unigram) tokenize(w *worker, p piece) error {
	if hit := w.words.find(p.s); hit != nil {
		w.emitUnigram(p, hit, m)
		return nil
	}
	if err := m.search(w, p.s); err != nil {
		return err
	}
	w.words.keep(p.s, w.tokens)
	w.emitUnigram(p, w.tokens, m)
	return nil
}

// search leaves the tokens of s in w.tokens. A token of id -1-n stands for the n bytes of a stretch that is in no
// vocabulary and has one token for each byte.
func (m *unigram) search(w *worker, s string) error {
	best := append(w.best[:0], make([]viterbi, len(s)+1)...)
	w.best = best
	for i := range best {
		best[i].from = -1
	}
	best[0].from = 0
	for at := 0; at < len(s); {
		_, size := utf8.DecodeRuneInString(s[at:])
		here, single, node := best[at].score, false, int32(0)
		for i := at; i < len(s); i++ {
			child, end, ok := m.trie.get(node, int32(s[i]))
			if !ok {
				break
			}
			node = child
			if end == 0 {
				continue
			}
			single = single || i+1-at == size
			better(&best[i+1], here+m.scores[end-1], at, end-1)
		}
		if !single {
			if m.unk < 0 && (best[at+size].from < 0 || here+m.unkScore > best[at+size].score) {
				return fmt.Errorf("[tokenizer] model: there is an unknown character in %q, but no unk_id", s[at:at+size])
			}
			better(&best[at+size], here+m.unkScore, at, m.unk)
		}
		at += size
	}
	w.tokens = w.tokens[:0]
	for end := len(s); end > 0; {
		from := int(best[end].from)
		id := best[end].id
		if id == m.unk { // unknown characters in a row are one
			for from > 0 && best[from].id == m.unk {
				from = int(best[from].from)
			}
			id = m.idOr(s[from:end], -1)
			if id < 0 && m.fallsBack(s[from:end]) {
				id = bytesOf
			} else if id < 0 {
				id = m.unk
			}
		} else {
			id = m.ids[s[from:end]]
		}
		w.tokens = append(w.tokens, token{id, int32(end - from)})
		end = from
	}
	for i, j := 0, len(w.tokens)-1; i < j; i, j = i+1, j-1 {
		w.tokens[i], w.tokens[j] = w.tokens[j], w.tokens[i]
	}
	return nil
}

// bytesOf stands in place of an id for one token for each byte.
const bytesOf = -2

func better(v *viterbi, score float64, from int, id int32) {
	if v.from < 0 || score > v.score {
		*v = viterbi{score, int32(from), id}
	}
}

func (m *unigram) fallsBack(s string) bool {
	if m.fallback == nil {
		return false
	}
	for i := range len(s) {
		if m.fallback[s[i]] < 0 {
			return false
		}
	}
	return true
}

// emitUnigram is emitAll, with bytes for what is unknown.
func (w *worker) emitUnigram(p piece, tokens []token, m *unigram) {
	at := 0
	for _, t := range tokens {
		end := at + int(t.size)
		if t.id == bytesOf {
			for i := at; i < end; i++ {
				w.emit(p, m.fallback[p.s[i]], at, end, "")
			}
		} else {
			w.emit(p, t.id, at, end, p.s[at:end])
		}
		at = end
	}
}
