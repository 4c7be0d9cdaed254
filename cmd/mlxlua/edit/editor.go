package edit

import (
	"errors"
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// ErrInterrupted is the error of an entry that Ctrl-C dropped.
var ErrInterrupted = errors.New("interrupted")

// Options say how an Editor behaves.
type Options struct {
	In   io.Reader // the terminal's keys, which it sends as they are typed
	Out  io.Writer
	Size func() (columns, rows int) // of the terminal
	// Complete gives the words that could stand in place of the last bytes of what is before the cursor, and how many
	// bytes these are.
	Complete func(before string) (words []string, bytes int)
	History  *History
	Color    bool // whether the terminal shows colours
}

// Editor edits entries of one or more lines.
type Editor struct {
	opt    Options
	keys   keyReader
	screen screen
	entry
}

// entry is what belongs to the entry that is edited.
type entry struct {
	buffer
	below   []string  // what is shown under it: completions
	prompts [2]string // before the first line, and before the others
	ends    func(text string) bool
	at      int      // where in the history it comes from; the history's length: nowhere
	draft   string   // what was typed before the history was looked at
	killed  string   // what was cut last
	undo    []buffer // the states before changes, oldest first
	typing  bool     // the last change was a character that was typed
	search  *search  // nil: the history is not searched
}

// search is a search of the history that is under way.
type search struct {
	text   string
	at     int // the entry that is shown, or -1
	before buffer
}

// New makes an editor.
func New(opt Options) *Editor {
	if opt.History == nil {
		opt.History = &History{}
	}
	return &Editor{opt: opt, keys: keyReader{in: opt.In}, screen: screen{out: opt.Out, size: opt.Size}}
}

// verdict is what a key does with the entry as a whole.
type verdict int

const (
	goOn verdict = iota
	accept
	interrupt
	endOfInput
)

// Read reads an entry behind a prompt: others of its lines stand behind its last character but spaces, twice. Enter
// ends the entry if ends says so of its text; else it begins a line. Ctrl-C gives ErrInterrupted, Ctrl-D in an empty
// entry io.EOF. The terminal must be in raw mode.
func (e *Editor) Read(prompt string, ends func(text string) bool) (string, error) {
	killed := e.killed
	e.entry = entry{buffer: newBuffer(""), at: len(e.opt.History.entries), killed: killed,
		prompts: [2]string{prompt, more(prompt)}, ends: ends}
	if err := e.screen.begin(); err != nil {
		return "", err
	}
	const pasteOn, pasteOff = "\x1b[?2004h", "\x1b[?2004l" // pasted text comes in brackets
	if _, err := io.WriteString(e.opt.Out, pasteOn); err != nil {
		return "", err
	}
	for {
		if err := e.refresh(); err != nil {
			return "", err
		}
		k, pasted, err := e.keys.next()
		if err != nil {
			return "", err
		}
		v := e.press(k, pasted)
		if v == goOn {
			continue
		}
		end := ""
		if v == interrupt {
			end = "^C"
		}
		if err := e.leave(end + pasteOff + "\r\n"); err != nil {
			return "", err
		}
		switch v {
		case interrupt:
			return "", ErrInterrupted
		case endOfInput:
			return "", io.EOF
		}
		return e.text(), nil
	}
}

// more is the prompt of the other lines: ">> " for "> ".
func more(prompt string) string {
	text := strings.TrimRight(prompt, " ")
	if text == "" {
		return prompt
	}
	c := characters(text)
	return text + c[len(c)-1] + prompt[len(text):]
}

// leave draws the entry a last time, and writes what follows behind its end.
func (e *Editor) leave(text string) error {
	e.below, e.search = nil, nil
	e.row = len(e.lines) - 1
	e.col = len(e.lines[e.row])
	if err := e.refresh(); err != nil {
		return err
	}
	_, err := io.WriteString(e.opt.Out, text)
	return err
}

// refresh draws the entry and what is under it.
func (e *Editor) refresh() error {
	columns, height := e.screen.size()
	p := compose(e.lines, e.prompt, e.row, e.col, columns)
	if s := e.search; s != nil {
		note := "history search: " + s.text
		if s.at < 0 && s.text != "" {
			note = "no entry has: " + s.text
		}
		p.rows = append(p.rows, clipped(note, columns-1))
	}
	p.rows = append(p.rows, e.below[:min(len(e.below), max(0, height-len(p.rows)))]...)
	return e.screen.draw(p)
}

// prompt is what stands before a line, and how wide it is.
func (e *Editor) prompt(i int) (string, int) {
	text := e.prompts[min(i, 1)]
	if e.opt.Color {
		return "\x1b[1;32m" + text + "\x1b[0m", uniseg.StringWidth(text)
	}
	return text, uniseg.StringWidth(text)
}

// change notes the state before a change, for undo. Characters that are typed in a row are one change.
func (e *Editor) change(typed bool) {
	const most = 500 // changes that can be taken back
	if !typed || !e.typing {
		if e.undo = append(e.undo, e.copied()); len(e.undo) > most {
			e.undo = e.undo[1:]
		}
	}
	e.typing = typed
}

// copied is a copy of the buffer.
func (b *buffer) copied() buffer {
	c := newBuffer(b.text())
	c.row, c.col = b.row, min(b.col, len(c.lines[b.row]))
	return c
}

// set puts another text into the buffer.
func (e *Editor) set(text string) { e.buffer = newBuffer(text) }

// enter ends the entry, or begins a line that is indented as this one is.
func (e *Editor) enter() verdict {
	if text := e.text(); strings.TrimSpace(text) == "" || e.ends(text) {
		return accept
	}
	e.newLine()
	return goOn
}

func (e *Editor) newLine() {
	e.change(false)
	line := e.before()
	e.insert("\n" + line[:len(line)-len(strings.TrimLeft(line, " \t"))])
}

// paste inserts a text. One that was copied from a session has prompts, which go, with what the session printed.
func (e *Editor) paste(text string) {
	text = strings.TrimRight(text, "\n")
	prompt, more := e.prompts[0], e.prompts[1]
	if prompt != "" && strings.HasPrefix(text, prompt) {
		var lines []string
		for _, line := range strings.Split(text, "\n") {
			for _, p := range []string{more, prompt} {
				if rest, ok := strings.CutPrefix(line, p); ok {
					lines = append(lines, rest)
					break
				}
			}
		}
		text = strings.Join(lines, "\n")
	}
	e.change(false)
	e.insert(text)
}

// older and newer show the entry of the history before or after the shown one.
func (e *Editor) older() {
	h := e.opt.History
	if e.at == 0 {
		return
	}
	if e.at == len(h.entries) {
		e.draft = e.text()
	}
	e.change(false)
	e.at--
	e.set(h.entries[e.at])
}

func (e *Editor) newer() {
	h := e.opt.History
	if e.at >= len(h.entries) {
		return
	}
	e.change(false)
	if e.at++; e.at == len(h.entries) {
		e.set(e.draft)
		return
	}
	e.set(h.entries[e.at])
}

// complete completes the word before the cursor as far as it is sure, or shows how it may go on. In the space before
// a line it indents.
func (e *Editor) complete() {
	before := e.before()
	if strings.TrimSpace(before) == "" {
		e.change(false)
		e.insert("  ")
		return
	}
	if e.opt.Complete == nil {
		return
	}
	lines := strings.Split(e.text(), "\n")
	words, n := e.opt.Complete(strings.Join(append(lines[:e.row:e.row], before), "\n"))
	if len(words) == 0 || n > len(before) {
		return
	}
	word := before[len(before)-n:]
	common := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, common) {
			common = common[:len(common)-1]
		}
	}
	if strings.HasPrefix(common, word) && len(common) > len(word) {
		e.change(false)
		e.insert(common[len(word):])
		return
	}
	if len(words) > 1 {
		columns, height := e.screen.size()
		e.below = columnsOf(words, columns-1, max(3, height/2))
	}
}
