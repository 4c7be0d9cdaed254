package metal

import "fmt"

// CommandError is the error of one command of a command buffer whose other commands ran nevertheless. A driver that
// can tell ends a command buffer with one, or with errors.Join of several; any other error means that none of its
// results counts.
type CommandError struct {
	Index int // in CommandBuffer.Commands
	Err   error
}

// Failed is the error of the command at an index, for drivers. Under validation it says which command that is.
func (cb *CommandBuffer) Failed(index int, err error) *CommandError {
	cb.chain.failed.Store(true)
	if cb.validate {
		err = fmt.Errorf("%w, in %s", err, cb.commands()[index].place(index))
	}
	return &CommandError{Index: index, Err: err}
}

// Error is the command's error.
func (e *CommandError) Error() string { return fmt.Sprintf("command %d: %v", e.Index, e.Err) }

// Unwrap is the command's error.
func (e *CommandError) Unwrap() error { return e.Err }
