package grammar

import (
	"bytes"
	"slices"
)

// Words is a vocabulary: what each token adds to a text.
type Words struct {
	sorted []word
	text   map[int32][]byte
	ends   map[int32]bool
	size   int
	all    []uint64 // tokens
	ended  []uint64 // those, and what ends a text
}

// word is a token in the order of its bytes, with how many it shares with the one before.
type word struct {
	text   []byte
	token  int32
	shared int
}

// NewWords is the vocabulary of size tokens. text gives a token's bytes, and whether it is a special one, which stands
// in no form; false: there is no such token. ends are the tokens that end a text.
func NewWords(size int, text func(token int32) (b []byte, special, ok bool), ends []int32) *Words {
	w := &Words{text: map[int32][]byte{}, ends: map[int32]bool{}, size: size, all: make([]uint64, (size+63)/64)}
	for _, id := range ends {
		w.ends[id] = true
	}
	for id := range int32(size) {
		b, special, ok := text(id)
		if !ok || w.ends[id] {
			continue
		}
		w.text[id] = b
		w.all[id/64] |= 1 << (id % 64)
		if len(b) > 0 && !special {
			w.sorted = append(w.sorted, word{text: b, token: id})
		}
	}
	w.ended = slices.Clone(w.all)
	w.end(w.ended)
	slices.SortFunc(w.sorted, func(a, b word) int { return bytes.Compare(a.text, b.text) })
	for i := 1; i < len(w.sorted); i++ {
		a, b := w.sorted[i-1].text, w.sorted[i].text
		for n := 0; n < len(a) && n < len(b) && a[n] == b[n]; n++ {
			w.sorted[i].shared = n + 1
		}
	}
	return w
}

// end adds what ends a text.
func (w *Words) end(mask []uint64) {
	for id := range w.ends {
		if id >= 0 && int(id) < w.size {
			mask[id/64] |= 1 << (id % 64)
		}
	}
}

// bytes is what a token adds to a text.
func (w *Words) bytes(token int32) []byte { return w.text[token] }

func lastIndex(text []byte, mark string) int {
	if at := bytes.LastIndex(text, []byte(mark)); at >= 0 {
		return at + len(mark)
	}
	return -1
}

// mostMasks is how many masks are kept.
const mostMasks = 512

// mask are the tokens that may come in a state. Tokens are looked at in the order of their bytes, so that what two
// neighbours share is walked once, and what no token may begin with is passed over.
func (a *Automaton) mask(st *state) []uint64 {
	if st.mask != nil {
		return st.mask
	}
	out := make([]uint64, len(a.words.all))
	path := []*state{st}
	dead := -1
	for _, w := range a.words.sorted {
		if dead >= 0 && w.shared > dead {
			continue
		}
		dead = -1
		path = path[:w.shared+1]
		for d := w.shared; d < len(w.text); d++ {
			next := a.states.step(path[d], w.text[d])
			if next == nil {
				dead = d
				break
			}
			path = append(path, next)
		}
		if dead < 0 {
			out[w.token/64] |= 1 << (w.token % 64)
		}
	}
	if st.accept {
		a.words.end(out)
	}
	if s := a.states; len(s.masked) >= mostMasks {
		for _, other := range s.masked {
			other.mask = nil
		}
		s.masked = s.masked[:0]
	}
	st.mask = out
	a.states.masked = append(a.states.masked, st)
	return out
}
