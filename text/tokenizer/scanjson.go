package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// A tokenizer.json has up to 20 MB, nearly all of it in two lists. The functions here walk JSON that is known to be
// valid, once, where encoding/json would read it again at each level.

// jsonWalk is a place in valid JSON.
type jsonWalk struct {
	raw []byte
	at  int
}

// next skips white space and gives the byte there; 0 at the end.
func (w *jsonWalk) next() byte {
	for w.at < len(w.raw) {
		if c := w.raw[w.at]; c > ' ' {
			return c
		}
		w.at++
	}
	return 0
}

// each calls f at every member of an array or object, until f fails. For an object, key is the text of the key.
func (w *jsonWalk) each(f func(key string) error) error {
	object := w.next() == '{'
	w.at++
	for {
		switch w.next() {
		case ']', '}', 0:
			w.at++
			return nil
		case ',':
			w.at++
			continue
		}
		key := ""
		if object {
			key = w.text()
			w.next()
			w.at++ // the colon
			w.next()
		}
		if err := f(key); err != nil {
			return err
		}
	}
}

// skip goes over a value and returns its bytes.
func (w *jsonWalk) skip() []byte {
	w.next()
	from, depth := w.at, 0
	for w.at < len(w.raw) {
		switch c := w.raw[w.at]; {
		case c == '"':
			w.skipText()
			if depth == 0 {
				return w.raw[from:w.at]
			}
			continue
		case c == '[' || c == '{':
			depth++
		case (c == ']' || c == '}') && depth == 0, c == ',' && depth == 0, c <= ' ' && depth == 0:
			return w.raw[from:w.at]
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				w.at++
				return w.raw[from:w.at]
			}
		}
		w.at++
	}
	return w.raw[from:]
}

// skipText goes over a string and reports whether it has escapes.
func (w *jsonWalk) skipText() (escapes bool) {
	for w.at++; w.at < len(w.raw); w.at++ {
		switch w.raw[w.at] {
		case '\\':
			escapes = true
			w.at++
		case '"':
			w.at++
			return escapes
		}
	}
	return escapes
}

// text reads a string.
func (w *jsonWalk) text() string {
	from := w.at
	if !w.skipText() {
		return valid(string(w.raw[from+1 : w.at-1]))
	}
	var s string
	if json.Unmarshal(w.raw[from:w.at], &s) != nil {
		return ""
	}
	return s
}

// isNull reports whether a value is null.
func isNull(raw []byte) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// splitObject gives the members of a valid JSON object.
func splitObject(raw []byte) (map[string]json.RawMessage, error) {
	w := &jsonWalk{raw: raw}
	if w.next() != '{' {
		return nil, fmt.Errorf("it is %.20q", raw)
	}
	out := map[string]json.RawMessage{}
	err := w.each(func(key string) error {
		out[key] = w.skip()
		return nil
	})
	return out, err
}

// readIDs reads {"token": id, ...}.
func readIDs(raw []byte) (map[string]int32, error) {
	w := &jsonWalk{raw: raw}
	if w.next() != '{' {
		return nil, fmt.Errorf("it is %.20q", raw)
	}
	out := make(map[string]int32, len(raw)/20)
	err := w.each(func(key string) error {
		id := w.skip()
		n, err := strconv.ParseInt(string(id), 10, 32)
		out[key] = int32(n)
		if err != nil {
			return fmt.Errorf("the id of %q is %.20s, want a whole number of 32 bits", key, id)
		}
		return nil
	})
	return out, err
}

// readPairs reads [["a", "b"], ...]; not ok if it is something else.
func readPairs(raw []byte) (out [][2]string, ok bool) {
	w := &jsonWalk{raw: raw}
	if w.next() != '[' {
		return nil, false
	}
	ok = true
	w.each(func(string) error {
		var pair [2]string
		n := 0
		if w.next() != '[' {
			ok = false
			return fmt.Errorf("no pair")
		}
		w.each(func(string) error {
			if w.next() != '"' || n == 2 {
				ok = false
				w.skip()
				return nil
			}
			pair[n] = w.text()
			n++
			return nil
		})
		ok = ok && n == 2
		out = append(out, pair)
		return nil
	})
	return out, ok
}
