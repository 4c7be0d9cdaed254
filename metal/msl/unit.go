package msl

import (
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Source is a named text.
type Source struct {
	Name string
	Text string
}

// Unit is what Parse parses: one or more texts, one after the other, on top of a parent.
type Unit struct {
	Sources []Source
	// Parent is a file whose declarations and macros the unit sees, such as the prelude; it may be nil. It is
	// not changed and may serve several units at once.
	Parent *File
	// Include resolves #include of a name that is no Metal header; it may be nil. Each name is included once.
	Include func(name string) (text string, ok bool)
	// Defines are macros defined before the first text: {"N", "16"} is #define N 16.
	Defines []Define
}

// Define is a macro that the caller defines.
type Define struct {
	Name string // may carry parameters: "MAX(a,b)"
	Text string
}

// Location is a place for people to read.
type Location struct {
	Pos  kir.Pos // after #line
	File string  // the name Pos.File stands for
	// Line and Col are the physical place, counted from 1, in the text Source, whatever #line says.
	Source    string
	Line, Col uint32
	Text      string // that line of the text
	Note      string // for a token made by a macro: which, and where it is defined
}

// Excerpt returns the line and below it a caret, "" if the place is unknown. Tabs stay tabs, so that the caret fits.
func (l Location) Excerpt() string {
	if l.Line == 0 {
		return ""
	}
	text := strings.TrimRight(l.Text, " \t\r")
	const width = 200 // of a line shown: longer ones are cut around the column
	col := int(l.Col) - 1
	if col > len(text) {
		col = len(text)
	}
	if len(text) > width {
		from := max(0, col-width/2)
		text = strings.ToValidUTF8(text[from:min(len(text), from+width)], "?")
		col = min(col-from, len(text))
	}
	var pad strings.Builder
	for _, r := range text[:col] {
		if r == '\t' {
			pad.WriteByte('\t')
		} else {
			pad.WriteByte(' ')
		}
	}
	return text + "\n" + pad.String() + "^"
}
