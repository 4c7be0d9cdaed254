package edit

import (
	"io"
	"strings"
	"unicode/utf8"
)

// key is what was typed: a character, or one of the names below.
type key string

// The keys that are no characters. A character that Alt was held with is metaKey before it.
const (
	keyUp        key = "<up>"
	keyDown      key = "<down>"
	keyLeft      key = "<left>"
	keyRight     key = "<right>"
	keyHome      key = "<home>"
	keyEnd       key = "<end>"
	keyDelete    key = "<delete>"
	keyWordLeft  key = "<word left>"
	keyWordRight key = "<word right>"
	keyPaste     key = "<paste>" // the pasted text follows
	keyUnknown   key = "<unknown>"
	metaKey      key = "<alt>"
)

// isCharacter reports whether a key is a character that is inserted.
func (k key) isCharacter() bool { return k >= " " && k != "\x7f" && (k[0] != '<' || k == "<") }

// sequences are what terminals send for keys, behind ESC.
var sequences = map[string]key{
	"[A": keyUp, "[B": keyDown, "[C": keyRight, "[D": keyLeft, "[H": keyHome, "[F": keyEnd,
	"OA": keyUp, "OB": keyDown, "OC": keyRight, "OD": keyLeft, "OH": keyHome, "OF": keyEnd,
	"[1~": keyHome, "[7~": keyHome, "[4~": keyEnd, "[8~": keyEnd, "[3~": keyDelete,
	"[1;5C": keyWordRight, "[1;3C": keyWordRight, "[1;5D": keyWordLeft, "[1;3D": keyWordLeft, "[200~": keyPaste,
}

const pasteEnd = "\x1b[201~"

// keyReader reads keys from a terminal. What was typed ahead stays for the next entry.
type keyReader struct {
	in      io.Reader
	pending []byte
}

// more waits for bytes.
func (r *keyReader) more() error {
	var b [1024]byte
	n, err := r.in.Read(b[:])
	r.pending = append(r.pending, b[:n]...)
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// take gives the next n bytes.
func (r *keyReader) take(n int) (string, error) {
	for len(r.pending) < n {
		if err := r.more(); err != nil {
			return "", err
		}
	}
	text := string(r.pending[:n])
	r.pending = r.pending[n:]
	return text, nil
}

// next waits for a key; of keyPaste it gives the text too.
func (r *keyReader) next() (k key, pasted string, err error) {
	first, err := r.take(1)
	if err != nil {
		return "", "", err
	}
	if first == "\x1b" {
		return r.sequence()
	}
	c := []byte(first)
	for !utf8.FullRune(c) {
		b, err := r.take(1)
		if err != nil {
			return "", "", err
		}
		c = append(c, b...)
	}
	if r, _ := utf8.DecodeRune(c); r == utf8.RuneError {
		return keyUnknown, "", nil
	}
	return key(c), "", nil
}

// sequence reads what follows ESC.
func (r *keyReader) sequence() (k key, pasted string, err error) {
	s, err := r.take(1)
	if err != nil {
		return "", "", err
	}
	if s != "[" && s != "O" {
		return metaKey + key(s), "", nil
	}
	for {
		b, err := r.take(1)
		if err != nil {
			return "", "", err
		}
		s += b
		if b[0] >= 0x40 && b[0] <= 0x7e || b[0] < 0x20 || len(s) > 16 {
			break
		}
	}
	k, ok := sequences[s]
	if !ok {
		return keyUnknown, "", nil
	}
	if k == keyPaste {
		pasted, err = r.paste()
	}
	return k, pasted, err
}

// paste reads a pasted text: lines end as Unix's do, and there are no other control characters than tabs.
func (r *keyReader) paste() (string, error) {
	for {
		if before, after, ok := strings.Cut(string(r.pending), pasteEnd); ok {
			r.pending = []byte(after)
			text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(before, ""))
			return strings.Map(func(c rune) rune {
				if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
					return -1
				}
				return c
			}, text), nil
		}
		if err := r.more(); err != nil {
			return "", err
		}
	}
}
