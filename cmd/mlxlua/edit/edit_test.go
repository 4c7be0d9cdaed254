package edit

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"
)

// terminal is a terminal of so many columns: what stands in its cells, and where its cursor is.
type terminal struct {
	columns  int
	cells    [][]string
	row, col int
}

// Write does what ECMA-48 says of the few sequences that the editor writes.
func (t *terminal) Write(b []byte) (int, error) {
	text := string(b)
	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e }) + 2
			t.sequence(text[2:end], text[end])
			text = text[end+1:]
			continue
		}
		c := characters(text)[0]
		text = text[len(c):]
		switch c {
		case "\r":
			t.col = 0
		case "\n":
			t.row++
		case "\r\n":
			t.row, t.col = t.row+1, 0
		default:
			if t.col+uniseg.StringWidth(c) > t.columns { // where the last column is full, the next character wraps
				t.row, t.col = t.row+1, 0
			}
			line := t.line()
			line[t.col] = c
			for i := 1; i < uniseg.StringWidth(c); i++ {
				line[t.col+i] = ""
			}
			t.col += uniseg.StringWidth(c)
		}
	}
	return len(b), nil
}

func (t *terminal) line() []string {
	for len(t.cells) <= t.row {
		line := make([]string, t.columns+1)
		for i := range line {
			line[i] = " "
		}
		t.cells = append(t.cells, line)
	}
	return t.cells[t.row]
}

func (t *terminal) sequence(params string, final byte) {
	n, _ := strconv.Atoi(params)
	switch final {
	case 'A':
		t.row -= max(n, 1)
	case 'C':
		t.col += max(n, 1)
	case 'J':
		line := t.line()
		for i := t.col; i < len(line); i++ {
			line[i] = " "
		}
		t.cells = t.cells[:t.row+1]
	}
}

// text is what the terminal shows.
func (t *terminal) text() string {
	var lines []string
	for _, l := range t.cells {
		lines = append(lines, strings.TrimRight(strings.Join(l, ""), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// typed is a session in which these keys are typed: the entries, and what the terminal shows in the end.
func typed(t *testing.T, h *History, columns int, keys string) (entries []string, screen string, err error) {
	t.Helper()
	term := &terminal{columns: columns}
	e := New(Options{In: strings.NewReader(keys), Out: term, History: h,
		Size: func() (int, int) { return columns, 24 },
		Complete: func(before string) ([]string, int) {
			word := before[strings.LastIndexAny(before, " (.\n")+1:]
			var out []string
			for _, w := range []string{"softmax", "softmin", "sum", "größe"} {
				if strings.HasPrefix(w, word) {
					out = append(out, w)
				}
			}
			return out, len(word)
		}})
	for {
		text, err := e.Read("> ", func(text string) bool { return strings.Count(text, "(") <= strings.Count(text, ")") })
		if err != nil {
			return entries, term.text(), err
		}
		entries = append(entries, text)
		e.opt.History.Add(text)
	}
}

// What is typed, moved, cut and completed is what is read; screens are those of a terminal.
func TestEditing(t *testing.T) {
	for name, c := range map[string]struct{ keys, want string }{
		"a line":                  {"abc\r", "abc"},
		"several lines":           {"f(1\r  2\r3)\r", "f(1\n  2\n  3)"},
		"left and right":          {"ac\x1b[Db\x1b[Cd\r", "abcd"},
		"wide characters":         {"語日本\x1b[D\x1b[D漢\r", "語漢日本"},
		"what combines":           {"ae\u0301b\x1b[D\x7fx\r", "axb"},
		"an emoji of several":     {"👩‍👩‍👧a\x1b[D\x7fb\r", "ba"},
		"home and end":            {"b\x01a\x05c\x1b[Hd\x1b[4~e\x1b[1~f\r", "fdabce"},
		"up in an entry":          {"f(\rb)\x1b[A1\r", "f(1\nb)"},
		"down in an entry":        {"f(\rb)\x1b[A\x1b[B2\r", "f(\nb)2"},
		"backspace over an end":   {"f(\r)\x01\x7f\r", "f()"},
		"delete over an end":      {"f(\r)\x1b[A\x05\x1b[3~\r", "f()"},
		"cut to the end, and put": {"abc\x1b[D\x0b\x01\x19\r", "cab"},
		"cut to the beginning":    {"abc\x1b[D\x15\r", "c"},
		"cut a word":              {"abc d_e\x17f\r", "abc f"},
		"words":                   {"ab cd\x1bb\x1bbx\x1bf!\x1b[1;5C?\r", "xab! cd?"},
		"cut words with Alt":      {"ab cd ef\x1b\x7f\x01\x1bd\r", " cd "},
		"undo":                    {"abc\x17\x1f\r", "abc"},
		"undo what was typed":     {"f(\r1)\x1f\x1f2)\r", "f(2)"},
		"a line with Alt":         {"a\x1b\rb\r", "a\nb"},
		"completion":              {"mx.sof\tx\r", "mx.softmx"},
		"completion of one":       {"mx.su\t(1)\r", "mx.sum(1)"},
		"completion beyond ASCII": {"x.gr\t\r", "x.größe"},
		"no completion":           {"mx.zz\t\r", "mx.zz"},
		"a tab indents":           {"f(\r\t1)\r", "f(\n  1)"},
		"paste":                   {"\x1b[200~for\r\n\tx\x07y\x1b[201~\r", "for\n\txy"},
		"paste a session":         {"\x1b[200~> f(\r>> 2)\rarray(3)\r> g()\r\x1b[201~\r", "f(\n2)\ng()"},
		"unknown keys":            {"a\x1b[99;9~\x1b[Z\xffb\r", "ab"},
		"a less-than sign":        {"a < b\r", "a < b"},
		"search":                  {"\x12tw\r", "entry two"},
		"search older":            {"\x12entry\x12\r", "entry two"},
		"search newer":            {"\x12entry\x12\x12\x13\r", "entry two"},
		"search and go on":        {"\x12one\x05!\r", "entry\none!"},
		"search nothing":          {"abc\x12zzz\x7f\x7f\x7f\r", "abc"},
		"leave a search":          {"abc\x12two\x07d\r", "abcd"},
		"history":                 {"x\x1b[A\x1b[A\x1b[A\x05!\r", "entry\none!"},
		"history and back":        {"x\x1b[A\x1b[A\x1b[B\x1b[B\r", "x"},
		"history by control keys": {"\x10\x10\x10\x0e\r", "entry two"},
	} {
		h := &History{entries: []string{"entry\none", "entry two", "entry 3"}}
		for _, columns := range []int{80, 9} {
			got, _, err := typed(t, h, columns, c.keys)
			require.ErrorIs(t, err, io.EOF, name)
			require.Equal(t, []string{c.want}, got, name)
			h = &History{entries: []string{"entry\none", "entry two", "entry 3"}}
		}
	}
}

// Ctrl-C drops an entry, Ctrl-D ends an empty one and deletes in others; what is typed ahead is the next entry.
func TestEnds(t *testing.T) {
	_, screen, err := typed(t, nil, 80, "abc\x03")
	require.ErrorIs(t, err, ErrInterrupted)
	require.Equal(t, "> abc^C", screen)
	got, _, err := typed(t, nil, 80, "ab\x01\x04\rsecond\r\x04more")
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"b", "second"}, got)
}

// The terminal shows the entry as it is, wherever it wraps.
func TestScreen(t *testing.T) {
	for name, c := range map[string]struct {
		columns    int
		keys, want string
	}{
		"a line":        {20, "abc", "> abc"},
		"lines":         {20, "f(1\r2)", "> f(1\n>> 2)"},
		"it wraps":      {10, "abcdefghijkl", "> abcdefgh\nijkl"},
		"it fills":      {10, "abcdefgh", "> abcdefgh"},
		"wide wraps":    {10, "abcdefg語日", "> abcdefg\n語日"},
		"it shrinks":    {10, "abcdefghijkl\x15x", "> x"},
		"choices":       {20, "s\t", "> s\nsoftmax  sum\nsoftmin"},
		"choices go":    {20, "s\tu", "> su"},
		"search":        {40, "\x12zz", ">\nno entry has: zz"},
		"it goes on":    {20, "x\ry", "> x\n> y"},
		"up and insert": {10, "abcdefghijkl\x01X", "> Xabcdefg\nhijkl"},
	} {
		_, screen, _ := typed(t, nil, c.columns, c.keys)
		require.Equal(t, c.want, screen, name)
	}
	// What a program printed last stays.
	term := &terminal{columns: 20}
	_, _ = term.Write([]byte("no end of line"))
	e := New(Options{In: strings.NewReader("a"), Out: term, Size: func() (int, int) { return 20, 24 }})
	_, err := e.Read("> ", nil)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "no end of line%\n> a", term.text())
	// Of an entry that is higher than the terminal the part with the cursor is shown.
	low := &terminal{columns: 20}
	e = New(Options{In: strings.NewReader("(\r1\r2\r3\r4\r5\r6"), Out: low,
		Size: func() (int, int) { return 20, 4 }})
	_, err = e.Read("> ", func(string) bool { return false })
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, ">> 3\n>> 4\n>> 5\n>> 6", low.text())
}

// Entries of several lines come back from the file as they were; a file of lines is read too, and one that grew is cut.
func TestHistoryFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	require.NoError(t, os.WriteFile(file, []byte("old one\n"), 0o600))
	h := OpenHistory(file)
	h.Add("for i = 1, 2 do\n\tprint(i) -- a comment\nend")
	h.Add("  x = [[a\n\nb]]\n")
	h.Add("x = [[a\n\nb]]")
	h.Add("   ")
	want := []string{"old one", "for i = 1, 2 do\n\tprint(i) -- a comment\nend", "x = [[a\n\nb]]"}
	require.Equal(t, want, h.entries)
	require.Equal(t, want, OpenHistory(file).entries)
	for i := range 2*mostEntries + 1 {
		h.entries = append(h.entries, strconv.Itoa(i))
	}
	h.rewrite()
	require.Len(t, OpenHistory(file).entries, mostEntries)
	require.Equal(t, strconv.Itoa(2*mostEntries), OpenHistory(file).entries[mostEntries-1])
	files, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, files, 1)
	(&History{file: filepath.Join(file, "none")}).Add("x") // which is no error
}
