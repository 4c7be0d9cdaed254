package edit

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// buffer is the text that is edited: lines of characters as people see them, and a cursor before one of them.
type buffer struct {
	lines    [][]string
	row, col int
}

// characters are a text's characters as people see them, with what combines with them.
func characters(text string) []string {
	var out []string
	for state := -1; text != ""; {
		var c string
		c, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		out = append(out, c)
	}
	return out
}

// newBuffer is a buffer with a text, the cursor at its end.
func newBuffer(text string) buffer {
	var b buffer
	for _, line := range strings.Split(text, "\n") {
		b.lines = append(b.lines, characters(line))
	}
	b.row = len(b.lines) - 1
	b.col = len(b.lines[b.row])
	return b
}

// text is all of the buffer.
func (b *buffer) text() string {
	lines := make([]string, len(b.lines))
	for i, l := range b.lines {
		lines[i] = strings.Join(l, "")
	}
	return strings.Join(lines, "\n")
}

// before is what stands before the cursor in its line.
func (b *buffer) before() string { return strings.Join(b.lines[b.row][:b.col], "") }

// after is what stands behind the cursor in its line.
func (b *buffer) after() string { return strings.Join(b.lines[b.row][b.col:], "") }

// insert puts a text before the cursor.
func (b *buffer) insert(text string) {
	before, after := b.before(), b.after()
	pieces := strings.Split(before+text, "\n")
	last := len(pieces) - 1
	var put [][]string
	for _, p := range pieces[:last] {
		put = append(put, characters(p))
	}
	put = append(put, characters(pieces[last]+after))
	b.lines = append(b.lines[:b.row:b.row], append(put, b.lines[b.row+1:]...)...)
	b.row += last
	b.col = min(len(characters(pieces[last])), len(b.lines[b.row]))
}

// cut takes out what stands between the cursor and another place of its line, and gives it.
func (b *buffer) cut(to int) string {
	from := b.col
	if to < from {
		from, to = to, from
	}
	line := b.lines[b.row]
	gone := strings.Join(line[from:to], "")
	b.lines[b.row] = append(append([]string(nil), line[:from]...), line[to:]...)
	b.col = from
	return gone
}

// join puts the next line behind a row.
func (b *buffer) join(row int) {
	b.lines[row] = append(append([]string(nil), b.lines[row]...), b.lines[row+1]...)
	b.lines = append(b.lines[:row+1:row+1], b.lines[row+2:]...)
}

// backspace takes out the character before the cursor, or the end of the line before it.
func (b *buffer) backspace() {
	switch {
	case b.col > 0:
		b.cut(b.col - 1)
	case b.row > 0:
		b.row--
		b.col = len(b.lines[b.row])
		b.join(b.row)
	}
}

// remove takes out the character behind the cursor, or the end of the line.
func (b *buffer) remove() {
	switch {
	case b.col < len(b.lines[b.row]):
		b.cut(b.col + 1)
	case b.row+1 < len(b.lines):
		b.join(b.row)
	}
}

// left and right move the cursor by a character, over ends of lines too.
func (b *buffer) left() {
	switch {
	case b.col > 0:
		b.col--
	case b.row > 0:
		b.row--
		b.col = len(b.lines[b.row])
	}
}

func (b *buffer) right() {
	switch {
	case b.col < len(b.lines[b.row]):
		b.col++
	case b.row+1 < len(b.lines):
		b.row, b.col = b.row+1, 0
	}
}

// vertical moves the cursor by lines, and reports whether there is such a line.
func (b *buffer) vertical(by int) bool {
	if b.row+by < 0 || b.row+by >= len(b.lines) {
		return false
	}
	b.row += by
	b.col = min(b.col, len(b.lines[b.row]))
	return true
}

// wordLeft and wordRight are the places in the line where the word before the cursor begins, and where that behind it
// ends.
func (b *buffer) wordLeft() int {
	line, i := b.lines[b.row], b.col
	for i > 0 && !isWord(line[i-1]) {
		i--
	}
	for i > 0 && isWord(line[i-1]) {
		i--
	}
	return i
}

func (b *buffer) wordRight() int {
	line, i := b.lines[b.row], b.col
	for i < len(line) && !isWord(line[i]) {
		i++
	}
	for i < len(line) && isWord(line[i]) {
		i++
	}
	return i
}

// isWord reports whether a character is part of a word.
func isWord(c string) bool {
	for _, r := range c {
		return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	return false
}
