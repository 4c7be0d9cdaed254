package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// AddedToken is a token that is cut out of the text before the model sees it, as the file describes it.
type AddedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // matches only where no letter, digit or underscore is beside it
	LStrip     bool   `json:"lstrip"`      // takes the white space before it too
	RStrip     bool   `json:"rstrip"`      // takes the white space after it too
	Normalized bool   `json:"normalized"`  // matches in the normalized text, after being normalized itself
	Special    bool   `json:"special"`     // can be left out when decoding
}

// added holds the added tokens of a tokenizer.
type added struct {
	byID    map[int32]AddedToken
	ids     map[string]int32
	special map[string]bool
	shown   map[int32]string // normalized content, where it differs: what a decoder gets
	raw     matcher          // tokens that match in the text as given
	normal  matcher          // tokens that match in the normalized text
}

// newAdded gives the tokens their ids (that of the model if it has the token, else the next free one, in the order of
// the file) and prepares the search for them.
func newAdded(tokens []AddedToken, m model, normalize func(string) string) (*added, error) {
	a := &added{
		byID: map[int32]AddedToken{}, ids: map[string]int32{}, special: map[string]bool{}, shown: map[int32]string{},
	}
	next := int32(m.size())
	for _, t := range tokens {
		if t.Content == "" {
			continue
		}
		id, known := a.ids[t.Content]
		if !known {
			id, known = m.id(t.Content)
		}
		if !known {
			id = next
			next++
		}
		t.ID = id
		if t.Normalized {
			if s := normalize(t.Content); s != t.Content {
				a.shown[id] = s
			}
		}
		a.ids[t.Content] = id
		if t.Special {
			a.special[t.Content] = true
		}
		a.byID[id] = t
	}
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		t, to := a.byID[id], &a.raw
		content := t.Content
		if t.Normalized {
			to = &a.normal
			if s, ok := a.shown[id]; ok {
				content = s
			}
		}
		if err := to.add(content, t); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// A matcher finds the leftmost, and of these the longest, added tokens in a text.
type matcher struct {
	tokens []AddedToken
	trie   pairs     // (node, byte) -> node
	ends   []int32   // of each node: the token that ends there, or -1
	first  [256]bool // bytes that a token begins with
}

func (m *matcher) add(content string, t AddedToken) error {
	if content == "" {
		return fmt.Errorf("[tokenizer] added_tokens: nothing is left of %q after normalizing", t.Content)
	}
	if m.ends == nil {
		m.ends = []int32{-1}
	}
	node := int32(0)
	for i := range len(content) {
		key := int32(content[i])
		child, _, ok := m.trie.get(node, key)
		if !ok {
			child = int32(len(m.ends))
			m.ends = append(m.ends, -1)
			m.trie.set(node, key, child, 0)
		}
		node = child
	}
	if other := m.ends[node]; other >= 0 {
		return fmt.Errorf("[tokenizer] added_tokens: %q and %q are one and the same after normalizing",
			m.tokens[other].Content, t.Content)
	}
	m.ends[node] = int32(len(m.tokens))
	m.tokens = append(m.tokens, t)
	m.first[content[0]] = true
	return nil
}

// find is the first token in s from byte from on, and where it lies.
func (m *matcher) find(s string, from int) (token *AddedToken, at, end int) {
	for i := from; i < len(s); i++ {
		if !m.first[s[i]] {
			continue
		}
		node := int32(0)
		for j := i; j < len(s); j++ {
			child, _, ok := m.trie.get(node, int32(s[j]))
			if !ok {
				break
			}
			node = child
			if m.ends[node] >= 0 {
				token, at, end = &m.tokens[m.ends[node]], i, j+1
			}
		}
		if token != nil {
			return token, at, end
		}
	}
	return nil, 0, 0
}

// split cuts the added tokens out of p, and hands on what is between them and the tokens themselves, in order. As in
// Python, white space that one token took with it can hold further tokens.
func (m *matcher) split(p piece, between func(piece), found func(piece, *AddedToken)) {
	c := classes()
	done, blank := 0, Span{}
	for from := 0; len(m.tokens) > 0; {
		t, at, end := m.find(p.s, from)
		if t == nil {
			break
		}
		from = end
		if t.SingleWord && !alone(c, p.s, at, end) {
			continue
		}
		if t.LStrip {
			for at > done && c.last(p.s[:at])&space != 0 {
				_, n := utf8.DecodeLastRuneInString(p.s[:at])
				at -= n
			}
			at = min(max(at, done), end)
		}
		if t.RStrip {
			if end < blank.From || end > blank.To {
				blank = Span{end, c.run(p.s, end, space)}
			}
			end = blank.To
		}
		if done < at {
			between(p.slice(done, at))
		}
		found(p.slice(at, end), t)
		done = end
	}
	if done < len(p.s) {
		between(p.slice(done, len(p.s)))
	}
}

// alone reports whether no character of a word touches s[at:end].
func alone(c *classTable, s string, at, end int) bool {
	return (at == 0 || c.last(s[:at])&word == 0) && (end == len(s) || !c.is(s, end, word))
}
