package tensor

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
)

// Place is a place in a program: a Lua script's line, or a Go caller's. The zero Place is unknown.
type Place = metal.Place

// compactPlace is a Place in less memory.
type compactPlace struct {
	file string
	at   uintptr // the line, or the Go caller where there is no file
}

func compacted(p Place) compactPlace {
	if p.File == "" {
		return compactPlace{at: p.PC}
	}
	return compactPlace{p.File, uintptr(p.Line)}
}

func (p compactPlace) place() Place {
	if p.file == "" {
		return Place{PC: p.at}
	}
	return Place{File: p.file, Line: int(p.at)}
}

// Ctx says how an op is called: on which stream, and from where. Every op takes one as an optional last argument
// and hands it on to the ops it is made of. The zero Ctx, or none, means the default stream of the default device
// and the Go caller.
type Ctx struct {
	Stream *Stream // nil: the default stream
	Place  Place   // zero: the line of the Go program that called the op
	Holder *Holder // whose the arrays are that the op makes; nil: a Go program's
}

// Call is the Ctx of an op's optional last argument: c[0], or a new one for the caller skip frames above.
// An op that calls others resolves its own first, so that errors name the user's line: c := tensor.Call(ctx).
func Call(c []*Ctx) *Ctx {
	if len(c) > 0 && c[0] != nil {
		return c[0]
	}
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	return &Ctx{Place: Place{PC: pc[0]}}
}

// place is the call's place, also of a nil Ctx.
func (c *Ctx) place() Place {
	if c == nil {
		return Place{}
	}
	return c.Place
}

// holder is the call's holder, also of a nil Ctx.
func (c *Ctx) holder() *Holder {
	if c == nil {
		return nil
	}
	return c.Holder
}

// OpError is an op's error: the op, what is wrong with the values, and the line that called the op.
type OpError struct {
	Op    string
	Msg   string
	Place Place
	Err   error // the cause, if it was another error
}

// Error is "[op] message (file:line)", without the place if it is unknown.
func (e *OpError) Error() string {
	s := "[" + e.Op + "] " + e.Msg
	if w := e.Place.String(); w != "" {
		s += " (" + w + ")"
	}
	return s
}

// Unwrap is the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Count is a number of things in the words of a message: "1 input", "2 inputs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %s", n, plural(what))
}

// irregular are plurals that English took from elsewhere.
var irregular = map[string]string{"axis": "axes", "index": "indices", "matrix": "matrices"}

// plural is the plural of a noun, which may have words before it.
func plural(noun string) string {
	last := strings.LastIndexByte(noun, ' ') + 1
	if many, ok := irregular[noun[last:]]; ok {
		return noun[:last] + many
	}
	stem, y := strings.CutSuffix(noun, "y")
	switch {
	case y && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])):
		return stem + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"), strings.HasSuffix(noun, "ch"),
		strings.HasSuffix(noun, "sh"):
		return noun + "es"
	}
	return noun + "s"
}

// Errorf makes an OpError of a call.
func (c *Ctx) Errorf(op, format string, args ...any) *OpError {
	err := fmt.Errorf(format, args...)
	var where Place
	if c != nil {
		where = c.Place
	}
	return &OpError{Op: op, Msg: Brief(err.Error()), Place: where, Err: err}
}

// What Brief leaves of a line that is longer than mostLine bytes.
const (
	mostLine = 1000
	lineHead = 500
	lineTail = 300
)

// Brief is a message without the middles of its long lines: whoever gives an op a text, a name or a shape of a million
// bytes reads where it begins, and what is wrong with it.
func Brief(message string) string {
	if len(message) <= mostLine {
		return message
	}
	lines := strings.Split(message, "\n")
	for i, line := range lines {
		if cut := len(line) - lineHead - lineTail; len(line) > mostLine {
			lines[i] = fmt.Sprintf("%s ... %d bytes ... %s", strings.ToValidUTF8(line[:lineHead], ""), cut,
				strings.ToValidUTF8(line[lineHead+cut:], ""))
		}
	}
	return strings.Join(lines, "\n")
}
