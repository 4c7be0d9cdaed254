package msl

import (
	"fmt"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Error is one error in a source text.
type Error struct {
	Code    Code
	Pos     kir.Pos // after #line; a token that a macro made has the place of the macro's use
	File    string  // the name Pos.File stands for
	Msg     string  // what is wrong, with the values
	Note    string  // where to look next, such as a macro's definition; "" for most
	Excerpt string  // the line of the source and, below it, a caret; "" if the place is unknown
}

// Error returns `source:3:14: error MSL0201: expected ';'`, then the excerpt and the note, each on lines of its own.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s:", e.File)
	}
	if e.Pos.Line != 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Pos.Line, e.Pos.Col)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	fmt.Fprintf(&b, "error %s: %s", e.Code, e.Msg)
	if e.Excerpt != "" {
		b.WriteByte('\n')
		b.WriteString(e.Excerpt)
	}
	if e.Note != "" {
		b.WriteString("\nnote: ")
		b.WriteString(e.Note)
	}
	return b.String()
}

// ErrorList is the errors of a unit in the order of their discovery, at most MaxErrors and a last one that says so.
type ErrorList []*Error

// MaxErrors bounds how many errors are reported for one unit.
const MaxErrors = 50

// Error returns all errors, one below the other.
func (l ErrorList) Error() string {
	texts := make([]string, len(l))
	for i, e := range l {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "\n")
}

// Err returns the list as an error, nil if it is empty.
func (l ErrorList) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Add appends e, once per place and code. It returns false when the list is full: the caller should give up.
func (l *ErrorList) Add(e *Error) bool {
	n := len(*l)
	if n > MaxErrors {
		return false
	}
	for _, old := range *l {
		if old.Code == e.Code && old.Pos == e.Pos && (e.Pos.Line != 0 || old.Msg == e.Msg) {
			return true
		}
	}
	if n == MaxErrors {
		*l = append(*l, &Error{
			Code: TooManyErrors, Pos: e.Pos, File: e.File,
			Msg: fmt.Sprintf("more than %d errors: the rest are not shown", MaxErrors),
		})
		return false
	}
	*l = append(*l, e)
	return true
}

// Errorf returns an error at a place of f or of its parents, with its excerpt; a place inside a macro gets a note.
func (f *File) Errorf(code Code, at Pos, format string, args ...any) *Error {
	loc := f.Location(at)
	return &Error{
		Code: code, Pos: loc.Pos, File: loc.File, Msg: fmt.Sprintf(format, args...), Note: loc.Note, Excerpt: loc.Excerpt(),
	}
}
