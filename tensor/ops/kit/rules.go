// Package kit is what the rooms of the ops share: launching kernels, checks of indices and of shapes, strides that
// kernels step through, and helpers of rules that need no op.
package kit

import (
	"github.com/mlxlua/mlxlua/tensor"
)

// Unusable returns the first array that carries an error, or one that fails because an input is nil; nil if all can be
// used.
func Unusable(c *tensor.Ctx, name string, in ...*tensor.Array) *tensor.Array {
	for _, x := range in {
		if x == nil {
			return tensor.Fail(c, name, "an input is nil")
		}
		if x.Err() != nil {
			return x
		}
	}
	return nil
}

// FailedAs returns x; if the call that made it failed, with that failure in the name of the op that the user called.
func FailedAs(c *tensor.Ctx, op string, x *tensor.Array) *tensor.Array {
	if err, ok := x.Err().(*tensor.OpError); ok && err.Op != op {
		return tensor.Fail(c, op, "%s", err.Msg)
	}
	return x
}
