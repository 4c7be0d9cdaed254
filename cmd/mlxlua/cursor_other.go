//go:build !unix

package main

import (
	"io"
	"os"
)

// throughCursorAnswers gives the line editor's side of a console: the console itself, which answers.
func throughCursorAnswers(in, out *os.File) io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{in, out}
}
