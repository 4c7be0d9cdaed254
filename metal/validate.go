package metal

import "fmt"

// Check is what a driver calls right before it runs command i of Commands: under validation it returns an error if the
// command refers to anything that was freed since. Without validation it costs nothing and returns nil.
func (cb *CommandBuffer) Check(i int) error {
	if !cb.validate {
		return nil
	}
	if err := cb.checkCommand(i); err != nil {
		return err
	}
	cb.track(i)
	return nil
}

// checkCommand finds freed objects among those that a command refers to.
func (cb *CommandBuffer) checkCommand(i int) error {
	c := &cb.commands()[i]
	dead := func(what fmt.Stringer) error {
		return fmt.Errorf("[validate] command buffer references deallocated object: %s in %s", what, c.place(i))
	}
	if c.Pipeline != nil && c.Pipeline.lib.freed.Load() {
		return dead(c.Pipeline.lib)
	}
	var err error
	c.accesses(func(_ access, r Range) {
		if err == nil && !r.Buf.Live() {
			err = dead(r.Buf)
		}
	})
	return err
}

// checkReferences checks all commands.
func (cb *CommandBuffer) checkReferences() error {
	for i := range cb.commands() {
		if err := cb.checkCommand(i); err != nil {
			return err
		}
	}
	return nil
}

// validateAll is what the validation layer asks of a command buffer before it runs.
func (cb *CommandBuffer) validateAll() error {
	if !cb.validate {
		return nil
	}
	if err := cb.checkReferences(); err != nil {
		return err
	}
	return cb.checkBarriers()
}

// name is how messages call a command.
func (c *Command) name() string {
	s := [...]string{"kernel", "copy", "fill", "barrier", "gate", "call"}[c.Kind]
	if c.Undefined {
		s = "reuse"
	}
	if c.Pipeline != nil {
		s += " " + c.Pipeline.Name()
	}
	if c.Call != nil {
		s += " " + c.Call.Routine.Routine()
	}
	if c.Label != "" {
		s += " [" + c.Label + "]"
	}
	return s
}

// place is how messages call command i.
func (c *Command) place(i int) string { return fmt.Sprintf("%s, command %d", c.name(), i) }

// accesses calls f with every buffer range that a command reads or writes.
func (c *Command) accesses(f func(access, Range)) {
	switch c.Kind {
	case CmdDispatch:
		for i, a := range c.Args {
			if a.Buffer.Buf != nil {
				f(c.Pipeline.access[i], a.Buffer)
			}
		}
	case CmdCopy:
		f(accRead, c.Src)
		f(accWrite, c.Dst)
	case CmdFill:
		f(accWrite, c.Dst)
	case CmdGate:
		for _, r := range c.Words {
			f(accRead, r)
		}
		f(accWrite, c.Dst)
	case CmdCall:
		for _, r := range c.Call.Reads {
			f(accRead, r)
		}
		for _, r := range c.Call.Writes {
			f(accWrite, r)
		}
	}
}

// Writes says that a dispatch's kernel may write what is bound to one of its parameters.
func (c *Command) Writes(param int) bool { return c.Pipeline.access[param]&accWrite != 0 }

// past is an access since the last barrier.
type past struct {
	cmd    int
	a      access
	lo, hi int64 // in the block
	buf    *Buffer
}

// checkBarriers proves that no two commands between two barriers touch the same memory, one of them writing. It knows
// nothing of the encoder's sets, and looks at addresses, not at buffers: so it also sees memory that the pool gave
// out twice.
func (cb *CommandBuffer) checkBarriers() error {
	since := map[*block][]past{}
	for i := range cb.commands() {
		c := &cb.commands()[i]
		if c.Kind == CmdBarrier {
			clear(since)
			continue
		}
		var err error
		c.accesses(func(a access, r Range) {
			if a == 0 {
				return // the kernel does not touch the parameter
			}
			lo := r.Buf.offset + r.Offset
			now := past{i, a, lo, lo + r.Bytes, r.Buf}
			for _, p := range since[r.Buf.blk] {
				if err == nil && p.cmd != i && p.lo < now.hi && now.lo < p.hi && (p.a|a)&accWrite != 0 {
					err = cb.missing(p, now)
				}
			}
			since[r.Buf.blk] = append(since[r.Buf.blk], now)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// missing is the error of two commands that need a barrier between them.
func (cb *CommandBuffer) missing(p, now past) error {
	kind := hazardWAW
	switch {
	case p.a&accWrite == 0:
		kind = hazardWAR
	case now.a&accRead != 0:
		kind = hazardRAW
	}
	return fmt.Errorf("[validate] missing barrier (%s) between %s, and %s: bytes %d to %d of %s",
		kind, cb.commands()[p.cmd].place(p.cmd), cb.commands()[now.cmd].place(now.cmd),
		max(p.lo, now.lo)-now.buf.offset, min(p.hi, now.hi)-now.buf.offset, now.buf)
}
