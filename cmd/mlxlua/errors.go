package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/mlxlua/mlxlua/luabind"
)

// What text is painted with on terminals.
const (
	red  = "31"
	dim  = "2"
	bold = "1"
)

// paint is a text in a colour, if the program shows any.
func (p *program) paint(color, text string) string {
	if !p.colors {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// showsColors reports whether a program that writes to this terminal may paint: see no-color.org.
func showsColors(out any) bool {
	f, ok := out.(*os.File)
	return ok && isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

// tell prints an error of a session, with the line that it is about. lines are those of the entry; nil: it comes from
// a file.
func (p *program) tell(err error, lines []string) {
	if err == nil {
		return
	}
	fmt.Fprintln(p.stderr, p.paint(red, err.Error()))
	if text := excerpt(err, lines); text != "" {
		fmt.Fprintln(p.stderr, text)
	}
}

// failedOp is the op in a message: stdin:1: [softmax] ...
var failedOp = regexp.MustCompile(`\[([a-z_0-9.]+)\] `)

// excerpt is the line that an error is about, and under it a caret where that is known; "" if the line is not.
func excerpt(err error, lines []string) string {
	var script *luabind.ScriptError
	if !errors.As(err, &script) || script.Line < 1 {
		return ""
	}
	if lines == nil || script.File != "stdin" {
		text, err := os.ReadFile(script.File)
		if err != nil {
			return ""
		}
		lines = strings.Split(string(text), "\n")
	}
	if script.Line > len(lines) {
		return ""
	}
	line := strings.TrimSuffix(lines[script.Line-1], "\r")
	column, length := script.Column, max(script.Length, 1)
	if m := failedOp.FindStringSubmatch(script.Message); m != nil && column == 0 {
		name := m[1][strings.LastIndexByte(m[1], '.')+1:]
		if called := regexp.MustCompile(`\b`+name+`\b`).FindAllStringIndex(line, 2); len(called) == 1 {
			column, length = called[0][0]+1, len(name)
		}
	}
	const most = 160 // bytes of a line that says something
	if len(line) > most {
		return ""
	}
	if column < 1 || column-1+length > len(line) {
		if len(lines) == 1 {
			return "" // it is the line that was typed
		}
		return "  " + line
	}
	under := strings.Map(func(r rune) rune { // as wide as what is above
		if r == '\t' {
			return r
		}
		return ' '
	}, line[:column-1])
	return "  " + line + "\n  " + under + strings.Repeat("^", length)
}
