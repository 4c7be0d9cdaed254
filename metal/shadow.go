package metal

// Shadow is what the validation layer knows of a buffer's contents: which bytes were written since the buffer was
// given to its present use. It changes as commands run, in their order.
type Shadow struct {
	written []bool
	writer  string // the last command that may have written to it
}

// TrackWrites has the validation layer watch which bytes of the buffer are written: none so far. What the host writes
// is not seen, so it is for buffers that kernels fill. Call it before the buffer is bound.
func (b *Buffer) TrackWrites() {
	b.shadow.Store(&Shadow{written: make([]bool, b.length)})
}

// Written says of each byte of a range whether it was written, for drivers to read and to keep; nil if nobody
// watches.
func (r Range) Written() []bool {
	if r.Buf == nil {
		return nil
	}
	s := r.Buf.shadow.Load()
	if s == nil {
		return nil
	}
	return s.written[r.Offset : r.Offset+r.Bytes]
}

// Unwritten is the first byte of a range, counted from its beginning, that was never written although the buffer is
// watched, how many there are, and the last command that might have written them; -1 if there is none.
func (r Range) Unwritten() (at, bytes int64, writer string) {
	at = -1
	for i, ok := range r.Written() {
		if ok {
			continue
		}
		if bytes++; at < 0 {
			at, writer = int64(i), r.Buf.shadow.Load().writer
		}
	}
	return at, bytes, writer
}

// trackAll notes what the commands of a command buffer that has ended have written, on devices whose drivers do not ask
// for each one.
func (cb *CommandBuffer) trackAll(ran []bool) {
	if !cb.validate || cb.dev.info.TracksWrites {
		return
	}
	for i := range cb.rec.cmds {
		if ran == nil || ran[i] {
			cb.track(i)
		}
	}
}

// track notes what a command is about to write. Drivers whose Info says so watch the bytes that kernels write; for
// others a kernel writes all that is bound for it.
func (cb *CommandBuffer) track(i int) {
	c := &cb.commands()[i]
	c.accesses(func(a access, r Range) {
		s := r.Buf.shadow.Load()
		if s == nil {
			return
		}
		if a == 0 && s.writer == "" {
			s.writer = c.place(i) // a kernel that does not touch what is bound for it, such as one without a body
		}
		if a&accWrite == 0 {
			return
		}
		w := s.written[r.Offset : r.Offset+r.Bytes]
		switch {
		case c.Undefined:
			clear(w)
			s.writer = ""
			return
		case c.Kind == CmdCopy && c.Src.Written() != nil:
			copy(w, c.Src.Written())
		case c.Kind != CmdDispatch || !cb.dev.info.TracksWrites:
			for j := range w {
				w[j] = true
			}
		}
		s.writer = c.place(i)
	})
}
