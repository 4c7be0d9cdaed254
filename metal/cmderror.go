package metal

import "fmt"

// CommandError is the error of one command of a command buffer whose other commands ran nevertheless. A driver that
// can tell ends a command buffer with one, or with errors.Join of several; any other error means that none of its
// results counts.
type CommandError struct {
	Index int // in CommandBuffer.Commands
	Err   error
}

// explained is the error of a command; under validation it says which command that is.
func (cb *CommandBuffer) explained(e *CommandError) *CommandError {
	if !cb.validate {
		return e
	}
	return &CommandError{Index: e.Index, Err: fmt.Errorf("%w, in %s", e.Err, cb.rec.cmds[e.Index].place(e.Index))}
}

// Error is the command's error.
func (e *CommandError) Error() string { return fmt.Sprintf("command %d: %v", e.Index, e.Err) }

// Unwrap is the command's error.
func (e *CommandError) Unwrap() error { return e.Err }
