// Package grammar says which tokens may come next where a text has to be of a form: JSON, JSON that a schema describes,
// or that between fixed texts. A form becomes an automaton over bytes with a stack (schema.go, build.go); its states
// are made when a text first comes to them, and kept for all texts (states.go); and which tokens lead on from a state
// is found once, over the sorted vocabulary (mask.go).
//
// Every text that the automaton accepts is JSON that the schema takes. It does not accept all of them: properties come
// in the schema's order, there is little white space, and numbers have at most 15 digits. What of a schema cannot be
// held to is an error that names the keyword.
package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Form is what a text has to be: one of Choices, each a list of parts. It begins behind After, at once if that is
// empty;
// before that anything may come, and with Optional the text may end.
type Form struct {
	After    string   `json:"after,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	Choices  [][]Part `json:"choices"`
}

// Part is a text that stands there as it is, or JSON that a schema describes.
type Part struct {
	Text   string          `json:"text,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// Unsupported is the error of a schema with a keyword, or a value of one, that texts cannot be held to.
type Unsupported struct{ Path, Keyword, Why string }

// Error says which keyword it is, where, and why.
func (u *Unsupported) Error() string {
	text := fmt.Sprintf("the schema's keyword %q is not supported", u.Keyword)
	if u.Path != "" {
		text += " at " + u.Path
	}
	if u.Why != "" {
		text += ": " + u.Why
	}
	return text
}

// Automaton is a form that was compiled, for one vocabulary. It belongs to one goroutine at a time.
type Automaton struct {
	form   Form
	words  *Words
	states *states
	late   *state // where the form begins behind a mark: there may be white space before it
}

// Compile makes an Automaton. words may be nil: that only says whether the form is right.
func Compile(form Form, words *Words) (*Automaton, error) {
	b := newBuilder()
	end := b.add(node{kind: endNode})
	var starts []int32
	for _, parts := range form.Choices {
		at := end
		for i := len(parts) - 1; i >= 0; i-- {
			p := parts[i]
			if p.Schema == nil {
				at = b.literal(p.Text, at)
				continue
			}
			s := &schemas{b: b, root: p.Schema, rules: map[string]int32{}}
			at = s.compile(p.Schema, "", at)
			if s.err != nil {
				return nil, s.err
			}
		}
		starts = append(starts, at)
	}
	if len(starts) == 0 {
		return nil, errors.New("there is no form")
	}
	if b.full {
		return nil, errors.New("the schema is too large: its lengths and counts together")
	}
	start := b.either(starts...)
	late := b.times(start, 0, 3, func(next int32) int32 { return b.bytes(next, ' ', ' ', '\n', '\n') })
	st, err := newStates(b, start)
	if err != nil {
		return nil, err
	}
	return &Automaton{form: form, words: words, states: st, late: st.closure([]config{{late, 0}})}, nil
}

// Begin is the beginning of a text, whose form begins behind a mark, or if that is "" behind the form's own.
func (a *Automaton) Begin(after string) *Text {
	if after == "" {
		after = a.form.After
	}
	if after != "" {
		return &Text{a: a, state: a.late, after: after, free: true}
	}
	return &Text{a: a, state: a.states.start}
}

// Text is how far a text has come. It is a draw.Grammar.
type Text struct {
	a     *Automaton
	state *state
	after string
	free  bool   // anything may come
	last  []byte // of what came
}

// Allowed are the tokens that may come now, a bit for each.
func (t *Text) Allowed() []uint64 {
	switch {
	case t.free && t.a.form.Optional:
		return t.a.words.ended
	case t.free:
		return t.a.words.all
	}
	return t.a.mask(t.state)
}

// Accept goes on by a token.
func (t *Text) Accept(token int32) error {
	w := t.a.words
	if w.ends[token] {
		return nil
	}
	text := w.bytes(token)
	if t.free {
		t.last = append(t.last, text...)
		at := lastIndex(t.last, t.after)
		if at < 0 {
			if n := len(t.last) - len(t.after); n > 0 {
				t.last = append(t.last[:0], t.last[n:]...)
			}
			return nil
		}
		text, t.free = t.last[at:], false
	}
	for _, c := range text {
		next := t.a.states.step(t.state, c)
		if next == nil {
			return fmt.Errorf("the token %d does not go on with the form", token)
		}
		t.state = next
	}
	return nil
}

// Done reports whether the text may end here.
func (t *Text) Done() bool { return !t.free && t.state.accept }
