package tensor

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// Where is a place in a program: a Lua script's line, or a Go caller's. The zero Where is unknown.
type Where struct {
	File string
	Line int
	pc   uintptr // a Go caller, turned into File and Line when someone asks
}

// place is a Where in less memory.
type place struct {
	file string
	at   uintptr // the line, or the Go caller where there is no file
}

func (w Where) place() place {
	if w.File == "" {
		return place{at: w.pc}
	}
	return place{w.File, uintptr(w.Line)}
}

func (p place) where() Where {
	if p.file == "" {
		return Where{pc: p.at}
	}
	return Where{File: p.file, Line: int(p.at)}
}

// String is "file:line", or "" if the place is unknown.
func (w Where) String() string {
	if w.pc != 0 {
		f, _ := runtime.CallersFrames([]uintptr{w.pc}).Next()
		return f.File[strings.LastIndexByte(f.File, '/')+1:] + ":" + strconv.Itoa(f.Line)
	}
	if w.File == "" {
		return ""
	}
	return w.File + ":" + strconv.Itoa(w.Line)
}

// Ctx says how an op is called: on which stream, and from where. Every op takes one as an optional last argument
// and hands it on to the ops it is made of. The zero Ctx, or none, means the default stream of the default device
// and the Go caller.
type Ctx struct {
	Stream *Stream // nil: the default stream
	Where  Where   // zero: the line of the Go program that called the op
}

// Call is the Ctx of an op's optional last argument: c[0], or a new one for the caller skip frames above.
// An op that calls others resolves its own first, so that errors name the user's line: c := tensor.Call(ctx).
func Call(c []*Ctx) *Ctx {
	if len(c) > 0 && c[0] != nil {
		return c[0]
	}
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	return &Ctx{Where: Where{pc: pc[0]}}
}

// where is the call's place, also of a nil Ctx.
func (c *Ctx) where() Where {
	if c == nil {
		return Where{}
	}
	return c.Where
}

// OpError is an op's error: the op, what is wrong with the values, and the line that called the op.
type OpError struct {
	Op    string
	Msg   string
	Where Where
	Err   error // the cause, if it was another error
}

// Error is "[op] message (file:line)", without the place if it is unknown.
func (e *OpError) Error() string {
	s := "[" + e.Op + "] " + e.Msg
	if w := e.Where.String(); w != "" {
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
	return fmt.Sprintf("%d %ss", n, what)
}

// Errorf makes an OpError of a call.
func (c *Ctx) Errorf(op, format string, args ...any) *OpError {
	err := fmt.Errorf(format, args...)
	var where Where
	if c != nil {
		where = c.Where
	}
	return &OpError{Op: op, Msg: err.Error(), Where: where, Err: err}
}
