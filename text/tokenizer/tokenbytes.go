package tokenizer

import (
	"strconv"
	"strings"
)

// TokenBytes are the bytes that a token adds to a text that has begun, which need not be whole characters; false: no
// token has the number. Of tokens whose text depends on their neighbours they are those beside ordinary ones.
func (t *Tokenizer) TokenBytes(id int32) ([]byte, bool) {
	if a, ok := t.added.byID[id]; ok {
		return []byte(a.Content), true
	}
	token, ok := t.model.name(id)
	if !ok {
		return nil, false
	}
	s := t.Stream(false)
	if d, ok := s.first.(*whole); ok {
		if _, bytewise := d.next.(*byteText); bytewise {
			if b, ok := unmapBytes(token); ok {
				return b, true
			}
			return []byte(token), true
		}
	}
	if len(token) == 6 && strings.HasPrefix(token, "<0x") && token[5] == '>' && t.inside("<0x41>") == "A" {
		if b, err := strconv.ParseUint(token[3:5], 16, 8); err == nil {
			return []byte{byte(b)}, true
		}
	}
	return []byte(t.inside(token)), true
}

// inside is what a token adds after another one.
func (t *Tokenizer) inside(token string) string {
	const before = "x"
	s := t.Stream(false)
	s.first.part(before, true)
	s.first.part(token, true)
	return strings.TrimPrefix(s.out.take()+s.Finish(), before)
}
