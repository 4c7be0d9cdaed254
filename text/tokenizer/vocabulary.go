package tokenizer

import (
	"fmt"
	"math"
)

// A model splits words into tokens.
type model interface {
	// tokenize emits the tokens of a word to w.
	tokenize(w *worker, p piece) error
	// id is the number of a token.
	id(token string) (int32, bool)
	// name is the token of a number.
	name(id int32) (string, bool)
	// size is how many tokens there are.
	size() int
	// each calls f for every token, in no order.
	each(f func(token string, id int32))
	// bytes is about how much memory it takes.
	bytes() int64
}

// vocabulary maps tokens to numbers and back.
type vocabulary struct {
	ids   map[string]int32
	names map[int32]string
}

// readJSON reads {"token": id, ...}.
func (v *vocabulary) readJSON(raw []byte) (err error) {
	if v.ids, err = readIDs(raw); err != nil {
		return fmt.Errorf("is no map of tokens to ids from 0 to %d: %w", math.MaxInt32, err)
	}
	v.names = make(map[int32]string, len(v.ids))
	for token, id := range v.ids {
		if id < 0 {
			return fmt.Errorf("the id of %q is %d", token, id)
		}
		if other, taken := v.names[id]; taken && other < token {
			continue
		}
		v.names[id] = token
	}
	return nil
}

func (v *vocabulary) id(token string) (int32, bool) {
	id, ok := v.ids[token]
	return id, ok
}

// idOr is the number of a token, or another number.
func (v *vocabulary) idOr(token string, other int32) int32 {
	if id, ok := v.ids[token]; ok {
		return id
	}
	return other
}

func (v *vocabulary) name(id int32) (string, bool) {
	token, ok := v.names[id]
	return token, ok
}

func (v *vocabulary) size() int { return len(v.ids) }

func (v *vocabulary) each(f func(token string, id int32)) {
	for token, id := range v.ids {
		f(token, id)
	}
}
