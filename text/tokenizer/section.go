package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mlxlua/mlxlua/internal/jsonfault"
)

// section reads one object of a tokenizer.json, key by key. It remembers the first error, and the keys that were read,
// so that finish can name those that nobody knows.
type section struct {
	path string
	keys map[string]json.RawMessage
	read map[string]bool
	err  error
	deep int  // how many lists it is within
	all  *int // how many members the lists of a file's part have together
}

// Bounds of a list of sections, each of which hands its texts on to the next one.
const (
	maxMembers = 1000 // with those of the lists within
	maxLists   = 60   // within each other: as the Rust library reads
)

// openSection begins to read an object, which is valid JSON.
func openSection(path string, raw json.RawMessage) *section {
	s := &section{path: path, read: map[string]bool{}, all: new(int)}
	keys, err := splitObject(raw)
	if err != nil {
		s.err = fmt.Errorf("[tokenizer] %s is no object: %w", path, err)
	}
	s.keys = keys
	return s
}

// fail remembers an error about this section.
func (s *section) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("[tokenizer] "+s.path+": "+format, args...)
	}
}

// has reports whether a key is there and not null.
func (s *section) has(key string) bool {
	s.read[key] = true
	raw, ok := s.keys[key]
	return ok && !isNull(raw)
}

// value reads a key into a variable; without the key, or with null, the variable stays as it is.
func (s *section) value(key string, to any) {
	if !s.has(key) {
		return
	}
	var err error
	if large, ok := to.(interface{ readJSON(raw []byte) error }); ok {
		err = large.readJSON(s.keys[key])
	} else {
		err = explained(s.keys[key], to)
	}
	if err != nil {
		s.fail("%s: %v", key, err)
	}
}

// explained is json.Unmarshal with errors in plain words.
func explained(raw []byte, to any) error {
	return jsonfault.Explain(string(raw), json.Unmarshal(raw, to))
}

// need is value for a key that must be there.
func (s *section) need(key string, to any) {
	if !s.has(key) {
		s.fail("there is no %q", key)
	}
	s.value(key, to)
}

// char reads a key that holds one character.
func (s *section) char(key string, r *rune) {
	var text string
	s.need(key, &text)
	c, n := utf8.DecodeRuneInString(text)
	if n != len(text) || n == 0 {
		s.fail("%s is one character, not %q", key, text)
	}
	*r = c
}

// list is the array of sections behind a key.
func (s *section) list(key string) (out []*section) {
	if !s.has(key) {
		s.fail("there is no %q", key)
		return nil
	}
	w := &jsonWalk{raw: s.keys[key]}
	if w.next() != '[' {
		s.fail("%s: it is %.20q, want an array", key, s.keys[key])
		return nil
	}
	if s.deep == maxLists {
		s.fail("%s: lists are nested more than %d deep", key, maxLists)
		return nil
	}
	err := w.each(func(string) error {
		if *s.all++; *s.all > maxMembers {
			return fmt.Errorf("there are more than %d members", maxMembers)
		}
		member := openSection(fmt.Sprintf("%s.%s[%d]", s.path, key, len(out)), w.skip())
		member.deep, member.all = s.deep+1, s.all
		out = append(out, member)
		return nil
	})
	if err != nil {
		s.fail("%s: %v", key, err)
		return nil
	}
	return out
}

// kind reads the key "type".
func (s *section) kind() string {
	var kind string
	s.need("type", &kind)
	return kind
}

// ignore marks keys as known that change nothing here.
func (s *section) ignore(keys ...string) {
	for _, k := range keys {
		s.read[k] = true
	}
}

// finish is the first error, or that a key is unknown.
func (s *section) finish() error {
	if s.err != nil {
		return s.err
	}
	var unknown []string
	for _, k := range slices.Sorted(maps.Keys(s.keys)) {
		if !s.read[k] {
			unknown = append(unknown, fmt.Sprintf("%q", k))
		}
	}
	if unknown != nil {
		s.fail("does not know the key %s", strings.Join(unknown, ", "))
	}
	return s.err
}
