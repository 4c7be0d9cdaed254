//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cursorQuery = "\x1b[6n"   // "where is the cursor?", which the line editor asks before each prompt
	firstColumn = "\x1b[1;1R" // an answer
	// answerLimit is how long a terminal has for its first answer: those at the end of slow lines take some tenths of a
	// second.
	answerLimit = 700 * time.Millisecond
)

var cursorAnswer = regexp.MustCompile(`\x1b\[[0-9]+;[0-9]+R`)

// cursorAnswers stands between the line editor and a terminal. The editor waits for good for the answer to its query,
// so that a terminal which gives none, such as a program that plays one, would never see a prompt. For such a terminal
// it answers that the cursor is in the first column. Reads and writes come from different goroutines.
type cursorAnswers struct {
	in, out *os.File
	asked   atomic.Bool // and not answered so far
	silent  bool        // the terminal did not answer the last time
	last    []byte      // what was read last, where it may be the beginning of an answer
}

// throughCursorAnswers gives the editor's side of a terminal.
func throughCursorAnswers(in, out *os.File) *cursorAnswers { return &cursorAnswers{in: in, out: out} }

// Write writes to the terminal, and notes whether the editor asks.
func (c *cursorAnswers) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(cursorQuery)) {
		c.asked.Store(true)
	}
	return c.out.Write(b)
}

// Read reads what the terminal sends, or the answer that it does not give.
func (c *cursorAnswers) Read(b []byte) (int, error) {
	if c.asked.Load() {
		limit := answerLimit
		if c.silent {
			limit = 0
		}
		if !c.readable(limit) {
			c.asked.Store(false)
			c.silent, c.last = true, nil
			return copy(b, firstColumn), nil
		}
	}
	n, err := c.in.Read(b)
	c.last = append(c.last, b[:n]...)
	if cursorAnswer.Match(c.last) {
		c.asked.Store(false)
		c.silent, c.last = false, nil
	}
	c.last = c.last[max(len(c.last)-len("\x1b[9999;9999"), 0):]
	return n, err
}

// readable waits until the terminal has sent something; false: it has not within the limit.
func (c *cursorAnswers) readable(limit time.Duration) bool {
	end := time.Now().Add(limit)
	for {
		left := max(time.Until(end), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.in.Fd()), Events: unix.POLLIN}}, int(left/time.Millisecond))
		if !errors.Is(err, unix.EINTR) {
			return err != nil || n > 0 // an error is for Read to find
		}
	}
}
