package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"golang.org/x/term"

	"github.com/mlxlua/mlxlua/cmd/mlxlua/edit"
	"github.com/mlxlua/mlxlua/luabind"
)

// entryReader gives the entries of a REPL.
type entryReader interface {
	// next waits for an entry behind a prompt, whose end it finds by ends; io.EOF ends the session,
	// edit.ErrInterrupted drops what was typed.
	next(prompt string, ends func(entry string) bool) (string, error)
	// remember puts an entry into the history.
	remember(entry string)
}

// repl reads, runs and prints until the input ends.
func (p *program) repl() int {
	luabind.OpenREPL(p.s)
	return p.loop(p.entries("history", func(before string) ([]string, int) { return luabind.Completions(p.s, before) }))
}

// startUp runs the start-up file of sessions, if there is one. Its error is told, and the session begins.
func (p *program) startUp() {
	path := configFile("init.lua")
	if p.o.ignoreEnvironment || path == "" {
		return
	}
	if _, err := os.Stat(path); err != nil {
		return
	}
	p.tell(p.interruptible(func(ctx context.Context) error {
		_, err := p.s.RunFile(ctx, path)
		return err
	}), nil)
}

// loop is the REPL on an input; it gives the exit status.
func (p *program) loop(in entryReader) int {
	// A Ctrl-C between two inputs, while the terminal is not the editor's, ends nothing.
	idle := make(chan os.Signal, 1)
	signal.Notify(idle, os.Interrupt)
	defer signal.Stop(idle)
	for !p.terminated.Load() {
		entry, err := in.next("> ", p.ends)
		switch {
		case errors.Is(err, edit.ErrInterrupted):
			continue
		case errors.Is(err, io.EOF):
			if strings.TrimSpace(entry) != "" { // it is begun, and that is what is wrong with it
				p.evaluate(parseCommand(entry))
			}
			fmt.Fprintln(p.stdout)
			return 0
		case err != nil:
			fmt.Fprintf(p.stderr, "mlxlua: cannot read the input: %v\n", err)
			return 1
		}
		if strings.TrimSpace(entry) == "" {
			continue
		}
		in.remember(entry)
		if status, exit := p.evaluate(parseCommand(entry)); exit {
			return status
		}
	}
	return statusTerminated
}

// ends reports whether an entry is whole.
func (p *program) ends(entry string) bool { return !luabind.IsBegun(p.s, parseCommand(entry).src) }

// request is what an entry asks for.
type request struct {
	src   string
	timed bool // the time it takes is told
	quiet bool // its values are not printed
}

// parseCommand reads what is no Lua in an entry: ?name and name? ask for help, "time" before an expression for its
// time; = before one is what older versions of Lua need. A semicolon at the end keeps values from being printed.
func parseCommand(entry string) request {
	c := request{src: entry}
	text := strings.TrimSpace(entry)
	if rest, ok := strings.CutPrefix(text, "time "); ok && !strings.HasPrefix(strings.TrimSpace(rest), "=") {
		c.timed, text = true, strings.TrimSpace(rest)
		c.src = text
	}
	name, asked := strings.CutPrefix(text, "?")
	if !asked {
		name, asked = strings.CutSuffix(text, "?")
	}
	switch name = methodName.ReplaceAllString(strings.TrimSpace(name), "$1.$2"); {
	case asked && name == "", !c.timed && text == "help":
		c.src = "help()"
	case asked && luabind.InPackage(name): // which need not be loaded
		c.src = "help(\"" + name + "\")"
	case asked && names.MatchString(name):
		c.src = "help(" + name + ", \"" + name + "\")"
	case asked && !strings.ContainsAny(name, "\n\"'"):
		c.src = "help(" + name + ")"
	default:
		c.src = strings.TrimPrefix(c.src, "=")
		c.quiet = strings.HasSuffix(text, ";")
	}
	return c
}

// methodName is a method as it is called, session:answer, which is the field session.answer.
var methodName = regexp.MustCompile(`^([\w.]+):(\w+)$`)

// names are a name of Lua's, or several with points between them.
var names = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)

// evaluate runs an entry and prints its values, the last of which is then the global ans. Errors are printed and the
// session goes on; os.exit ends it.
func (p *program) evaluate(c request) (status int, exit bool) {
	var took time.Duration
	err := p.interruptible(func(ctx context.Context) error {
		began := time.Now()
		values, _, err := p.s.Eval(ctx, c.src)
		if err == nil && c.timed {
			err = luabind.EvalAll(ctx, p.s, values)
		}
		took = time.Since(began)
		if err != nil {
			return err
		}
		return p.show(ctx, c, values)
	})
	if c.timed && err == nil {
		fmt.Fprintf(p.stdout, "%s\n", p.paint(dim, "took "+durationText(took)))
	}
	if err == nil {
		return 0, false
	}
	var se *luabind.ScriptError
	if errors.As(err, &se) && se.Exit != nil {
		p.exited = true
		return *se.Exit, true
	}
	if leaves(c.src) && strings.Contains(err.Error(), "attempt to call ") {
		err = errors.New(howToLeave)
	}
	p.tell(p.withValue(err), strings.Split(c.src, "\n"))
	return 0, false
}

// withValue is an error that also shows the table that a script called error with, if its message does not say more.
// Functions of the script's can be what shows it.
func (p *program) withValue(err error) error {
	var se *luabind.ScriptError
	if !errors.As(err, &se) || !strings.HasSuffix(se.Message, "(error object is a table value)") {
		return err
	}
	told := *se
	failed := p.interruptible(func(ctx context.Context) error {
		v, err := p.s.ToLua(se.Value)
		if err != nil {
			return err
		}
		text, err := p.s.Show(ctx, v)
		told.Message += ": " + text
		return err
	})
	if failed != nil {
		told.Message = se.Message + ", which cannot be shown: " + failed.Error()
	}
	return &told
}

// show prints the values of an entry.
func (p *program) show(ctx context.Context, c request, values []lua.LValue) error {
	var texts []string
	for _, v := range values {
		if c.quiet {
			break
		}
		text, err := p.s.Show(ctx, v)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	if len(values) > 0 && values[0] != lua.LNil {
		if err := p.s.SetGlobal("ans", values[0]); err != nil {
			return err
		}
	}
	if leaves(c.src) && strings.Join(texts, "") == "nil" {
		texts = []string{howToLeave}
	}
	if len(texts) > 0 {
		fmt.Fprintln(p.stdout, strings.Join(texts, "\t"))
	}
	return nil
}

// durationText is a time with three digits.
func durationText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g us", float64(d)/float64(time.Microsecond))
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

const howToLeave = "Ctrl-D ends the session"

// leaves reports whether an input is what ends a session of Python.
func leaves(src string) bool {
	name := strings.TrimSuffix(strings.TrimSpace(src), "()")
	return name == "exit" || name == "quit"
}

// entries is an editor on a terminal, with a history in a file of that name, and plain lines elsewhere.
func (p *program) entries(history string, complete func(before string) ([]string, int)) entryReader {
	if !isTerminal(p.stdin) {
		return &plainLines{bufio.NewReader(p.stdin)}
	}
	t := &terminal{history: edit.OpenHistory(configFile(history))}
	t.editor = edit.New(edit.Options{In: p.stdin, Out: p.stdout, History: t.history, Color: p.colors, Size: terminalSize,
		Complete: complete})
	return t
}

// configFile is where a file of the user's is that belongs to mlxlua, in a folder that is there, or "" if there is no
// place for it.
func configFile(name string) string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "mlxlua")
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	return filepath.Join(dir, name)
}

// terminalSize is the size of the terminal, which some do not tell.
func terminalSize() (columns, rows int) {
	columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || columns < 8 || rows < 2 {
		return 80, 24
	}
	return columns, rows
}

// terminal reads entries from a terminal, which is in raw mode only while one is edited.
type terminal struct {
	editor  *edit.Editor
	history *edit.History
}

func (t *terminal) next(prompt string, ends func(entry string) bool) (string, error) {
	fd := int(os.Stdin.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, state) }() // the terminal is restored or gone
	return t.editor.Read(prompt, ends)
}

func (t *terminal) remember(entry string) { t.history.Add(entry) }

// plainLines reads entries from a pipe, of lines of any length.
type plainLines struct{ in *bufio.Reader }

func (l *plainLines) next(_ string, ends func(entry string) bool) (string, error) {
	var entry strings.Builder
	for {
		text, err := l.in.ReadString('\n')
		if err != nil && text == "" {
			return entry.String(), err
		}
		entry.WriteString(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"))
		if strings.TrimSpace(entry.String()) == "" || ends(entry.String()) {
			return entry.String(), nil
		}
		entry.WriteByte('\n')
	}
}

func (l *plainLines) remember(string) {}
