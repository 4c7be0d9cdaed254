package tokenizer

import (
	"hash/maphash"
	"strings"
)

// worker carries one text through the stages. A tokenizer keeps idle ones for the next text.
type worker struct {
	t     *Tokenizer
	track bool // whether offsets are wanted, or a stage needs them
	err   error

	ids    []int32
	spans  []Span   // with track
	values []string // with track: the tokens as text

	words  wordCache
	bpe    bpeWord
	tokens []token
	best   []viterbi
}

// encode adds the ids of a text to w.ids.
func (w *worker) encode(text string) error {
	t := w.t
	w.err, w.spans, w.values = nil, w.spans[:0], w.values[:0]
	text = valid(text)
	t.added.raw.split(piece{s: text}, func(p piece) {
		for _, n := range t.normalizers {
			if p.s == "" {
				return
			}
			p = n.normalize(w, p)
		}
		t.added.normal.split(p, func(p piece) { w.pass(0, p) }, w.addedToken)
	}, w.addedToken)
	return w.err
}

func (w *worker) addedToken(p piece, t *AddedToken) { w.emit(p, t.ID, 0, len(p.s), p.s) }

// pass hands a piece to a stage of splitting, or to the model after the last one.
func (w *worker) pass(stage int, p piece) {
	switch {
	case p.s == "" || w.err != nil:
	case stage < len(w.t.splitters):
		w.t.splitters[stage].split(w, p, stage+1)
	default:
		w.fail(w.t.model.tokenize(w, p))
	}
}

func (w *worker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// emit adds a token that covers the bytes from..to of p. Its text is that of the vocabulary if value is empty.
func (w *worker) emit(p piece, id int32, from, to int, value string) {
	w.ids = append(w.ids, id)
	if !w.track {
		return
	}
	if value == "" {
		value, _ = w.t.model.name(id)
	}
	w.values = append(w.values, value)
	w.spans = append(w.spans, p.span(from, to))
}

// emitAll adds the tokens of a word, one behind the other.
func (w *worker) emitAll(p piece, tokens []token) {
	at := 0
	for _, t := range tokens {
		w.emit(p, t.id, at, at+int(t.size), "")
		at += int(t.size)
	}
}

// wordCache remembers the tokens of short words. A word takes the place of another one with the same hash.
type wordCache struct {
	seed  maphash.Seed
	slots []cachedWord
}

type cachedWord struct {
	word   string
	tokens []token
}

const (
	cachedWords    = 1 << 12
	cachedWordSize = 64 // bytes
)

func (c *wordCache) slot(word string) *cachedWord {
	if c.slots == nil {
		c.seed = maphash.MakeSeed()
		c.slots = make([]cachedWord, cachedWords)
	}
	return &c.slots[maphash.String(c.seed, word)%cachedWords]
}

// find is the tokens of a word, nil if it is not there.
func (c *wordCache) find(word string) []token {
	if len(word) > cachedWordSize {
		return nil
	}
	if s := c.slot(word); s.word == word {
		return s.tokens
	}
	return nil
}

func (c *wordCache) keep(word string, tokens []token) {
	if len(word) > cachedWordSize || len(tokens) == 0 {
		return
	}
	s := c.slot(word)
	s.word = strings.Clone(word)
	s.tokens = append(s.tokens[:0], tokens...)
}
