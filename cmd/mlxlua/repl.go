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
	"strings"

	"github.com/ergochat/readline"

	"github.com/mlxlua/mlxlua/luabind"
)

// lineReader gives the lines of a REPL.
type lineReader interface {
	// line reads a line after a prompt; io.EOF ends the session, errInterrupted drops what was typed so far.
	line(prompt string) (string, error)
	// remember puts an input, which may have several lines, into the history.
	remember(input string)
	close()
}

// repl reads, runs and prints until the input ends.
func (p *program) repl() int {
	in, err := p.lines()
	if err != nil {
		fmt.Fprintf(p.stderr, "mlxlua: %v\n", err)
		return 1
	}
	defer in.close()
	return p.loop(in)
}

// loop is the REPL on an input; it gives the exit status.
func (p *program) loop(in lineReader) int {
	// A Ctrl-C between two inputs, while the terminal is not the editor's, ends nothing.
	idle := make(chan os.Signal, 1)
	signal.Notify(idle, os.Interrupt)
	defer signal.Stop(idle)
	var pending strings.Builder
	var missing error // why what is pending is incomplete
	for {
		prompt := "> "
		if pending.Len() > 0 {
			prompt = ">> "
		}
		text, err := in.line(prompt)
		switch {
		case errors.Is(err, errInterrupted):
			pending.Reset()
			continue
		case errors.Is(err, io.EOF):
			if pending.Len() > 0 {
				fmt.Fprintln(p.stderr, missing)
			}
			fmt.Fprintln(p.stdout)
			return 0
		case err != nil:
			fmt.Fprintf(p.stderr, "mlxlua: cannot read the input: %v\n", err)
			return 1
		}
		if pending.Len() > 0 {
			pending.WriteByte('\n')
		}
		pending.WriteString(text)
		src := strings.TrimPrefix(pending.String(), "=")
		if strings.TrimSpace(src) == "" {
			pending.Reset()
			continue
		}
		var status int
		var exit bool
		if status, exit, missing = p.evaluate(src); missing != nil {
			continue
		}
		in.remember(pending.String())
		pending.Reset()
		if exit {
			return status
		}
	}
}

// evaluate runs an input and prints its values. Errors are printed and the session goes on; os.exit ends it. missing
// says why the input is only the beginning of one, which is not printed.
func (p *program) evaluate(src string) (status int, exit bool, missing error) {
	incomplete := false
	err := p.interruptible(func(ctx context.Context) error {
		values, begun, err := p.s.Eval(ctx, src)
		if err != nil {
			incomplete = begun
			return err
		}
		var texts []string
		for _, v := range values {
			text, err := p.s.Show(ctx, v)
			if err != nil {
				return err
			}
			texts = append(texts, text)
		}
		if leaves(src) && strings.Join(texts, "") == "nil" {
			texts = []string{howToLeave}
		}
		if len(texts) > 0 {
			fmt.Fprintln(p.stdout, strings.Join(texts, "\t"))
		}
		return nil
	})
	if err == nil {
		return 0, false, nil
	}
	if incomplete {
		return 0, false, err
	}
	var se *luabind.ScriptError
	if errors.As(err, &se) && se.Exit != nil {
		p.exited = true
		return *se.Exit, true, nil
	}
	if leaves(src) && strings.Contains(err.Error(), "attempt to call a non-function") {
		err = errors.New(howToLeave)
	}
	fmt.Fprintln(p.stderr, err)
	return 0, false, nil
}

const howToLeave = "Ctrl-D ends the session"

// leaves reports whether an input is what ends a session of Python.
func leaves(src string) bool {
	name := strings.TrimSuffix(strings.TrimSpace(src), "()")
	return name == "exit" || name == "quit"
}

// lines is an editor with history on a terminal, and plain lines elsewhere.
func (p *program) lines() (lineReader, error) {
	if !isTerminal(p.stdin) {
		return &plainLines{bufio.NewReader(p.stdin)}, nil
	}
	tty := throughCursorAnswers(os.Stdin, os.Stdout)
	rl, err := readline.NewFromConfig(&readline.Config{HistoryFile: historyFile(), DisableAutoSaveHistory: true,
		AutoComplete: completer{p.s}, Undo: true, Stdin: tty, Stdout: tty})
	if err != nil {
		return nil, err
	}
	return &editor{rl}, nil
}

// historyFile is where inputs are kept between sessions, or "" if there is no place for them.
func historyFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "mlxlua")
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	return filepath.Join(dir, "history")
}

type editor struct{ rl *readline.Instance }

func (e *editor) line(prompt string) (string, error) {
	e.rl.SetPrompt(prompt)
	text, err := e.rl.ReadLine()
	if errors.Is(err, readline.ErrInterrupt) {
		return "", errInterrupted
	}
	return text, err
}

func (e *editor) remember(input string) {
	for _, entry := range entries(input) {
		_ = e.rl.SaveToHistory(entry) // a history that cannot be written is no error of the session
	}
}

// entries are an input's entries in the history, whose entries are lines: several lines are one, unless a comment or a
// long string makes them mean something else on one line.
func entries(input string) []string {
	for _, sign := range []string{"--", "[[", "[="} {
		if strings.Contains(input, sign) {
			return strings.Split(input, "\n")
		}
	}
	return []string{strings.ReplaceAll(input, "\n", " ")}
}

func (e *editor) close() { _ = e.rl.Close() } // the terminal is restored or gone

// completer offers globals, entries of tables and methods.
type completer struct{ s *luabind.State }

// Do gives the completions of the word before the cursor: what is missing of each, and the word's length.
func (c completer) Do(line []rune, pos int) ([][]rune, int) {
	start := pos
	for start > 0 && isPathRune(line[start-1]) {
		start--
	}
	word := string(line[start:pos])
	var out [][]rune
	for _, name := range c.s.Names(word) {
		out = append(out, []rune(name[len(word):]))
	}
	return out, len(word)
}

// isPathRune reports whether a rune can stand in a name with dots and colons.
func isPathRune(r rune) bool {
	return r == '.' || r == ':' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// plainLines reads lines of any length from a pipe.
type plainLines struct{ in *bufio.Reader }

func (l *plainLines) line(string) (string, error) {
	text, err := l.in.ReadString('\n')
	if err != nil && text == "" {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), nil
}

func (l *plainLines) remember(string) {}
func (l *plainLines) close()          {}
