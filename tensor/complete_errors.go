package tensor

import (
	"errors"

	"github.com/mlxlua/mlxlua/metal"
)

// errMissed is the outcome of a node whose commands have not all run: it is undone, unless what it has checked before
// says that it has failed.
var errMissed = errors.New("BUG: nobody sees that commands were interrupted")

// outcome is errUndone if an input was not computed, or is not yet, though nothing went wrong, errMissed if the node
// was not, and else the error of its first failed input or of its commands in earlier batches. Stop is how the batch
// was interrupted, if it was.
func (sn *settling) outcome(stop *metal.Interrupted) error {
	for _, v := range sn.reads() {
		if s := v.Node.now(); s == undone || s == Scheduled { // another stream's: see turn
			return errUndone
		}
		if err := v.Node.failure(); err != nil {
			return err
		}
	}
	if sn.early != nil && *sn.early != nil {
		return *sn.early
	}
	if stop == nil {
		return nil
	}
	missed, err := sn.missed(stop)
	if missed && err == nil {
		err = errMissed
	}
	return err
}

// commandError is a node's share of its command buffer's error: all of it, unless the driver says which commands
// failed. In a call of a recording it is that of the op whose command it was.
func (b *batch) commandError(sn *settling, all error, single []*metal.CommandError) error {
	if len(single) == 0 {
		return all
	}
	for _, c := range single {
		if c.Index >= sn.first && c.Index < sn.last {
			if u := b.unitOf(sn.node, c.Index); u != nil {
				return u.op.named(c.Err, u.place)
			}
			return c.Err
		}
	}
	return nil
}

// commandErrors lists the errors of single commands, if err consists of such.
func commandErrors(err error) []*metal.CommandError {
	var one *metal.CommandError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*metal.CommandError
		for _, e := range joined.Unwrap() {
			if !errors.As(e, &one) {
				return nil
			}
			out = append(out, one)
		}
		return out
	}
	if errors.As(err, &one) {
		return []*metal.CommandError{one}
	}
	return nil
}
