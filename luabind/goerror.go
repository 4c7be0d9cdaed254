package luabind

import (
	"runtime"
	"strings"
)

// GoError is the error of a Go function that a script has called.
type GoError struct {
	Function string // its name in Go
	File     string // where it is, or where it panicked
	Line     int
	Err      error // what it returned, or says what it panicked with
}

// Error is what the function returned.
func (e *GoError) Error() string { return e.Err.Error() }

// Unwrap is what the function returned.
func (e *GoError) Unwrap() error { return e.Err }

// goError is an error of the function with its code there.
func goError(at uintptr, err error) *GoError {
	e := &GoError{Err: err}
	if code := runtime.FuncForPC(at); code != nil {
		e.Function = code.Name()
		e.File, e.Line = code.FileLine(code.Entry())
	}
	return e
}

// functionName is the name of the Go function with its code there, with its package's name alone.
func functionName(at uintptr) string {
	code := runtime.FuncForPC(at)
	if code == nil {
		return "function"
	}
	name := code.Name()
	return name[strings.LastIndexByte(name, '/')+1:]
}

// panicked notes where the panic came from that is being recovered.
func (e *GoError) panicked() {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	raised := false
	for {
		f, more := frames.Next()
		if raised && !strings.HasPrefix(f.Function, "runtime.") {
			e.File, e.Line = f.File, f.Line
			return
		}
		raised = raised || f.Function == "runtime.gopanic"
		if !more {
			return
		}
	}
}
