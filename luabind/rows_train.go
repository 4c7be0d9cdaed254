package luabind

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// trainRows are the functions of mx.train that are not written in Lua.
var trainRows = []row{
	{name: "train.is_terminal", sig: "", host: true,
		help: "Whether the standard error stream, which mx.train.status writes to, is a terminal.",
		call: func(a *args) any {
			_, terminal := statusStream(a.s)
			return terminal
		}},
	{name: "train.status", sig: "text:string done:bool", host: true,
		help: "Writes a line to the standard error stream. On a terminal a line with done = false gives way to the next " +
			"one, and is cut at 79 characters. In a sandbox whose host gives no such stream it writes nothing.",
		call: func(a *args) any {
			if w, terminal := statusStream(a.s); w != nil {
				showStatus(w, a.Text(0), a.Bool(1), terminal)
				a.s.status = terminal && !a.Bool(1)
			}
			return nil
		}},
}

// statusStream is where status lines go, nil for nowhere, and whether it is a terminal.
func statusStream(s *State) (w io.Writer, terminal bool) {
	switch {
	case s.opt.Stderr != nil:
		return s.opt.Stderr, isTerminal(s.opt.Stderr, nil)
	case s.opt.Sandbox:
		return nil, false
	}
	return os.Stderr, isTerminal(os.Stderr, nil)
}

// besideStatus writes what scripts print to w, and before it takes a status line away that stands on a terminal.
type besideStatus struct {
	stands      *bool
	status, out io.Writer
}

// Write writes b.
func (w besideStatus) Write(b []byte) (int, error) {
	if *w.stands {
		*w.stands = false
		fmt.Fprint(w.status, "\r\x1b[K")
	}
	return w.out.Write(b)
}

// printStream is where print writes: the state's stream, with regard to a terminal's status line.
func printStream(s *State) io.Writer {
	status, terminal := statusStream(s)
	if !terminal {
		return s.opt.Stdout
	}
	w := besideStatus{&s.status, status, os.Stdout}
	if s.opt.Stdout != nil {
		w.out = s.opt.Stdout
	}
	return w
}

// statusColumns are the columns of a line that gives way to another: one that a narrow terminal breaks would stay.
const statusColumns = 79

// showStatus writes a line of mx.train.status.
func showStatus(w io.Writer, text string, done, terminal bool) {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }), " ")
	if !terminal {
		fmt.Fprintln(w, text)
		return
	}
	end := "\n"
	if !done {
		end = ""
		if r := []rune(text); len(r) > statusColumns {
			text = string(r[:statusColumns])
		}
	}
	fmt.Fprintf(w, "\r%s\x1b[K%s", text, end)
}
