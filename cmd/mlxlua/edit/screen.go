package edit

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// screen draws an entry on a terminal, over what it drew before. It goes by how wide characters are; a terminal that is
// asked nothing cannot fail to answer.
type screen struct {
	out    io.Writer
	size   func() (columns, rows int)
	cursor int // the row that the cursor was left in, counted from the first that was drawn
}

// picture is what is drawn: rows as wide as the terminal at most.
type picture struct {
	rows     []string
	row, col int // the cursor
}

// tab is what a tab looks like.
const tab = "    "

// shownAs is how a character is drawn, and how wide that is.
func shownAs(c string) (text string, width int) {
	if c == "\t" {
		return tab, len(tab)
	}
	return c, uniseg.StringWidth(c)
}

// compose is the picture of lines of characters behind their prompts, with the cursor before a character.
func compose(lines [][]string, prompts func(i int) (text string, width int), row, col, columns int) picture {
	var p picture
	for i, line := range lines {
		prompt, at := prompts(i)
		var b strings.Builder
		b.WriteString(prompt)
		wrap := func() {
			p.rows = append(p.rows, b.String())
			b.Reset()
			at = 0
		}
		for j, c := range append(line[:len(line):len(line)], "") {
			text, width := shownAs(c)
			if at+max(width, 1) > columns { // the cursor needs a column too
				wrap()
			}
			if i == row && j == col {
				p.row, p.col = len(p.rows), at
			}
			b.WriteString(text)
			at += width
		}
		wrap()
	}
	return p
}

// draw shows a picture. Of one that is higher than the terminal it shows the rows around the cursor.
func (s *screen) draw(p picture) error {
	_, height := s.size()
	if top := max(0, min(p.row-height/2, len(p.rows)-height)); top > 0 || len(p.rows) > height {
		p.rows, p.row = p.rows[top:min(top+height, len(p.rows))], p.row-top
	}
	var b strings.Builder
	b.WriteString("\x1b[?25l")
	s.home(&b)
	b.WriteString(strings.Join(p.rows, "\r\n"))
	if up := len(p.rows) - 1 - p.row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	if p.col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", p.col)
	}
	b.WriteString("\x1b[?25h")
	s.cursor = p.row
	_, err := io.WriteString(s.out, b.String())
	return err
}

// home goes to the beginning of what was drawn, and clears from there.
func (s *screen) home(b *strings.Builder) {
	if s.cursor > 0 {
		fmt.Fprintf(b, "\x1b[%dA", s.cursor)
	}
	b.WriteString("\r\x1b[J")
}

// begin begins a picture in a new row: behind what a program left without an end of line stands a sign.
func (s *screen) begin() error {
	s.cursor = 0
	columns, _ := s.size()
	_, err := io.WriteString(s.out, "%"+strings.Repeat(" ", columns-1)+"\r\x1b[J")
	return err
}

// columnsOf lists words in columns, in at most so many rows.
func columnsOf(words []string, width, most int) []string {
	widest := 0
	for _, w := range words {
		widest = max(widest, uniseg.StringWidth(w))
	}
	across := max(1, width/(widest+2))
	rows := (len(words) + across - 1) / across
	var out []string
	for r := 0; r < rows; r++ {
		if r == most-1 && rows > most {
			out = append(out, fmt.Sprintf("... %d in all", len(words)))
			break
		}
		var b strings.Builder
		for i := r; i < len(words); i += rows {
			w := words[i]
			if i+rows < len(words) {
				w += strings.Repeat(" ", widest+2-uniseg.StringWidth(w))
			}
			b.WriteString(w)
		}
		out = append(out, clipped(b.String(), width))
	}
	return out
}

// clipped is a text cut where it is wider than the terminal.
func clipped(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	at := 0
	for _, c := range characters(text) {
		if at += uniseg.StringWidth(c); at > width {
			break
		}
		b.WriteString(c)
	}
	return b.String()
}
