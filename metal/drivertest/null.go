package drivertest

import (
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// Null is a driver whose device computes nothing and takes no time: what is submitted has run at once. It compiles as
// another driver does, so that whatever programs ask of it is recorded as for that one: what is left of the time is the
// host's. What is as short as words is filled, and zero where kernels write it, since checks and scripts read that.
type Null struct {
	metal.Driver
	commands atomic.Int64
}

// NewNull is a null device beside the driver's. Close closes the driver.
func NewNull(d metal.Driver) *Null { return &Null{Driver: d} }

// Commands is how many commands were submitted so far.
func (n *Null) Commands() int64 { return n.commands.Load() }

// short is the most bytes of what is filled.
const short = 64

// Submit says that the commands have run.
func (n *Null) Submit(_ int, cb *metal.CommandBuffer, done func(metal.Result)) {
	cmds := cb.Commands()
	n.commands.Add(int64(len(cmds)))
	for i := range cmds {
		c := &cmds[i]
		switch {
		case c.Kind == metal.CmdFill && c.Dst.Bytes <= short:
			to := c.Dst.Buf.Host()[c.Dst.Offset:][:c.Dst.Bytes]
			for at := 0; at < len(to); at += len(c.Pattern) {
				copy(to[at:], c.Pattern)
			}
		case c.Kind == metal.CmdDispatch:
			for k := range c.Args {
				if r := c.Args[k].Buffer; r.Buf != nil && r.Bytes <= short && c.Pipeline.Writes(k) {
					clear(r.Buf.Host()[r.Offset:][:r.Bytes])
				}
			}
		}
	}
	done(metal.Result{})
}
