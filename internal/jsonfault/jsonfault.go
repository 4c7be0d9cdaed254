// Package jsonfault says in plain words what is wrong with a JSON text, and where. encoding/json, which reads such
// texts here, speaks of its own states and of Go's types, and counts bytes.
package jsonfault

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Fault is the first thing that makes a text no JSON.
type Fault struct {
	What         string
	At           int // the byte, from 0
	Line, Column int // of the character, both from 1
}

// Error is what and where.
func (f *Fault) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.What)
}

// Explain is an error of encoding/json about a text in plain words. Other errors stay as they are.
func Explain(text string, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if f := Find(text); f != nil {
			return f
		}
		return errors.New("lists and objects are nested too deep")
	}
	return Kind(err)
}

// Kind is Explain for an error of reading JSON that is known to be valid: a value is not of the kind that is wanted.
func Kind(err error) error {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return err
	}
	is, number, _ := strings.Cut(e.Value, " ")
	switch is {
	case "number":
		is = "a number"
		if number != "" {
			is = "the number " + number
		}
	case "string":
		is = "a text"
	case "bool":
		is = "true or false"
	case "array":
		is = "a list"
	case "object":
		is = "an object"
	}
	where := "it"
	if e.Field != "" {
		where = e.Field
	}
	return fmt.Errorf("%s is %s, want %s", where, is, wanted(e.Type))
}

// wanted is what values of a type are in JSON.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number of %d bits that is not negative", t.Bits())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	}
	return "another value"
}

// Find is the first fault of a text, nil if it is one JSON value. Values may be nested as deep as one likes.
func Find(text string) *Fault {
	s := &scanner{text: text}
	what := s.document()
	if what == "" {
		return nil
	}
	return At(text, s.at, what)
}

// At is a fault at a byte of a text.
func At(text string, at int, what string) *Fault {
	before := text[:at]
	line := strings.LastIndexByte(before, '\n') + 1
	return &Fault{What: what, At: at, Line: strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[line:]) + 1}
}

// scanner goes over a text. Its methods say what is wrong at the place where it stands, or "".
type scanner struct {
	text string
	at   int
}

// document goes over the whole text.
func (s *scanner) document() string {
	var open []byte // the brackets that close what the place is within
	for {
		what, closes := s.begin(open)
		if what != "" {
			return what
		}
		if closes != 0 {
			open = append(open, closes)
			continue
		}
		// a value has ended
		for {
			c := s.next()
			if len(open) == 0 {
				if c == 0 && s.at == len(s.text) {
					return ""
				}
				return "there is more after the value: " + s.here()
			}
			within := open[len(open)-1]
			if c == ',' {
				s.at++
				break
			}
			if c != within {
				return s.wanted(fmt.Sprintf("a comma or %c", within))
			}
			s.at++
			open = open[:len(open)-1]
		}
	}
}

// begin goes over what stands before the next value has ended: a key, and the value if it is no list or object with
// something in it, whose closing bracket it gives.
func (s *scanner) begin(open []byte) (what string, closes byte) {
	if len(open) > 0 && open[len(open)-1] == '}' {
		if s.next() != '"' {
			return s.wanted("a key in double quotes"), 0
		}
		if what := s.string(); what != "" {
			return what, 0
		}
		if s.next() != ':' {
			return s.wanted("a colon after the key"), 0
		}
		s.at++
	}
	switch c := s.next(); {
	case c == '{', c == '[':
		closes = c + 2
		s.at++
		if s.next() == closes {
			s.at++
			return "", 0
		}
		return "", closes
	case c == '"':
		return s.string(), 0
	case c == '-', '0' <= c && c <= '9':
		return s.number(), 0
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(s.text[s.at:], word) {
			s.at += len(word)
			return "", 0
		}
	}
	return s.wanted("a value"), 0
}

// next skips white space and gives the byte there, 0 at the end.
func (s *scanner) next() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// here is what stands at the place.
func (s *scanner) here() string {
	rest := s.text[s.at:]
	if rest == "" {
		return "the end of the text"
	}
	word := strings.IndexFunc(rest, func(c rune) bool {
		return !(c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z')
	})
	switch {
	case word < 0:
		word = len(rest)
	case word == 0:
		_, word = utf8.DecodeRuneInString(rest)
	}
	if word > 20 {
		return fmt.Sprintf("%q...", rest[:20])
	}
	return fmt.Sprintf("%q", rest[:word])
}

func (s *scanner) wanted(what string) string { return what + " is wanted, not " + s.here() }

// string goes over a text in quotes.
func (s *scanner) string() string {
	begin := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return ""
		case c < ' ':
			return fmt.Sprintf("%q stands within quotes: it is written by a backslash there", c)
		case c == '\\':
			if what := s.escape(); what != "" {
				return what
			}
		}
	}
	s.at = begin
	return "the quotes that open here are never closed"
}

// escape goes over a backslash and all but the last character of what it stands for.
func (s *scanner) escape() string {
	rest := s.text[s.at+1:]
	switch {
	case rest == "" || strings.IndexByte(`"\/bfnrt`, rest[0]) >= 0:
		s.at++
		return ""
	case rest[0] != 'u':
		_, n := utf8.DecodeRuneInString(rest)
		return fmt.Sprintf("a backslash before %q means nothing", rest[:n])
	}
	for i := 1; i <= 4; i++ {
		if i == len(rest) {
			break // the quotes are not closed
		}
		if c := rest[i] | 0x20; !('0' <= rest[i] && rest[i] <= '9' || 'a' <= c && c <= 'f') {
			return `four hexadecimal digits are wanted after \u`
		}
	}
	s.at += min(5, len(rest))
	return ""
}

// number goes over a number.
func (s *scanner) number() string {
	digits := func() bool {
		rest := strings.TrimLeft(s.text[s.at:], "0123456789")
		some := len(rest) < len(s.text)-s.at
		s.at = len(s.text) - len(rest)
		return some
	}
	is := func(any string) bool {
		if s.at < len(s.text) && strings.IndexByte(any, s.text[s.at]) >= 0 {
			s.at++
			return true
		}
		return false
	}
	is("-")
	begin := s.at
	if !digits() {
		return s.wanted("a digit")
	}
	if s.text[begin] == '0' && s.at > begin+1 {
		s.at = begin
		return "a number begins with 0"
	}
	if is(".") && !digits() {
		return s.wanted("a digit after the point")
	}
	if is("eE") {
		is("+-")
		if !digits() {
			return s.wanted("a digit of the exponent")
		}
	}
	return ""
}
