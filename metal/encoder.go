package metal

import (
	"bytes"
	"fmt"
	"math"
	"sync"
)

// Encoder records commands into a command buffer. It keeps bindings until the next SetPipeline, puts a barrier before
// each command that depends on one since the last barrier, and retains what it binds. A wrong binding is reported by
// the Dispatch that would use it. An Encoder is for one goroutine.
type Encoder struct {
	cb *CommandBuffer
	p  *Pipeline
	*bindings
	err     error // of the bindings for p
	label   string
	unit    int
	unless  Range // of the commands that follow: see Gate
	looked  Range // the word that the host looks at before the command buffer is handed over, for calls
	fault   Range // and where they note that they have failed
	epoch   int
	n       int       // commands so far
	over    bool      // the command buffer was committed
	pinned  *Pipeline // the last that was retained
	due     hazard
	culprit *Buffer
	none    bindings          // what is used once the scratch was given back
	shared  func([]byte) bool // see ShareBytes
}

// bindings is an encoder's scratch.
type bindings struct {
	args   []Arg
	bound  []bool
	inline []byte       // where the bytes of args lie
	uses   []*bufferUse // of the command being recorded, by argument
}

var spareBindings = sync.Pool{New: func() any {
	return &bindings{make([]Arg, 0, 16), make([]bool, 0, 16), make([]byte, 0, 256), make([]*bufferUse, 0, 16)}
}}

// begin makes the encoder ready.
func (e *Encoder) begin(cb *CommandBuffer) {
	e.cb, e.epoch, e.bindings = cb, 1, spareBindings.Get().(*bindings)
}

// end gives the scratch back when the command buffer is committed, for the next one: what is encoded from here on is
// refused.
func (e *Encoder) end() {
	b := e.bindings
	e.over, e.p, e.bindings = true, nil, &e.none
	clear(b.args[:cap(b.args)])
	clear(b.uses[:cap(b.uses)])
	spareBindings.Put(b)
}

// Len is the number of commands recorded so far, barriers included.
func (e *Encoder) Len() int { return e.n }

// Label names the commands that follow, until the next Label: the op, the script's line.
func (e *Encoder) Label(s string) { e.label = s }

// Unit says which Command.Unit the commands that follow belong to, until the next Unit.
func (e *Encoder) Unit(n int) { e.unit = n }

// SetPipeline chooses the kernel of the next dispatches and forgets all bindings.
func (e *Encoder) SetPipeline(p *Pipeline) {
	e.p, e.err = p, nil
	if p == nil {
		return
	}
	n := len(p.access)
	if cap(e.args) < n {
		e.args, e.bound = make([]Arg, n, n+8), make([]bool, n, n+8)
	}
	e.args, e.bound = e.args[:n], e.bound[:n]
	clear(e.args)
	clear(e.bound)
	e.inline = e.inline[:0]
}

// SetBuffer binds buf from offset (bytes) to its end to a parameter, counted as in Pipeline.Params.
func (e *Encoder) SetBuffer(param int, buf *Buffer, offset int64) {
	r := Range{Buf: buf, Offset: offset}
	if buf != nil {
		r.Bytes = buf.Len() - offset
	}
	e.SetBufferRange(param, r)
}

// SetBufferRange binds a range of a buffer to a parameter, counted as in Pipeline.Params.
func (e *Encoder) SetBufferRange(param int, r Range) {
	if !e.param(param, false) {
		return
	}
	p := e.p
	switch {
	case r.Buf == nil:
		e.fail(param, "no buffer")
	case !r.inside():
		e.fail(param, "bytes %d to %d are not inside %s", r.Offset, r.Offset+r.Bytes, r.Buf)
	case r.Offset%p.align[param] != 0:
		e.fail(param, "offset %d is not a multiple of %d", r.Offset, p.align[param])
	case r.Bytes < p.min[param]:
		e.fail(param, "%d bytes are bound, and the kernel needs %d", r.Bytes, p.min[param])
	}
	e.args[param] = Arg{Buffer: r}
}

// SetBytes binds a copy of b to a parameter that the kernel only reads: at most Limits.InlineBytes bytes.
func (e *Encoder) SetBytes(param int, b []byte) {
	if !e.param(param, false) {
		return
	}
	switch lim := e.cb.dev.info.Limits.InlineBytes; {
	case len(b) > lim:
		e.fail(param, "%d inline bytes are more than the limit of %d", len(b), lim)
	case int64(len(b)) < e.p.min[param]:
		e.fail(param, "%d inline bytes are bound, and the kernel needs %d", len(b), e.p.min[param])
	case e.p.access[param]&accWrite != 0:
		e.fail(param, "the kernel writes it, so it cannot be inline bytes")
	}
	if e.shares(b) {
		e.args[param] = Arg{Bytes: b}
		return
	}
	if old := e.args[param].Bytes; cap(old) >= len(b) {
		e.args[param] = Arg{Bytes: append(old[:0], b...)}
		return
	}
	e.inline = room(e.inline, len(b), 4*len(b))
	at := len(e.inline)
	e.inline = append(e.inline, b...)
	e.args[param] = Arg{Bytes: e.inline[at:len(e.inline):len(e.inline)]}
}

// SetThreadgroupBytes sets the length of a parameter in threadgroup memory.
func (e *Encoder) SetThreadgroupBytes(param, n int) {
	if !e.param(param, true) {
		return
	}
	if n < 0 || int64(n) < e.p.min[param] {
		e.fail(param, "%d bytes of threadgroup memory, and the kernel needs %d", n, e.p.min[param])
	}
	e.args[param] = Arg{TGBytes: n}
}

// param checks the number and the kind of a parameter about to be bound.
func (e *Encoder) param(i int, threadgroup bool) bool {
	if e.p == nil {
		return false
	}
	if i < 0 || i >= len(e.args) {
		e.keep(fmt.Errorf("[dispatch] kernel %s: parameter %d was bound, and it has %d", e.p.Name(), i, len(e.args)))
		return false
	}
	e.bound[i] = true
	if is := e.p.access[i] == accThreadgroup; is != threadgroup {
		what := [2]string{"is in device or constant memory: bind a buffer or bytes",
			"is in threadgroup memory: SetThreadgroupBytes sets its length"}
		k := 0
		if is {
			k = 1
		}
		e.fail(i, "%s", what[k])
		return false
	}
	return true
}

// fail keeps the first error of the bindings.
func (e *Encoder) fail(param int, format string, args ...any) {
	if e.err != nil {
		return
	}
	q := e.p.refl.Params[param]
	space := "buffer"
	if q.Threadgroup {
		space = "threadgroup"
	}
	e.err = fmt.Errorf("[dispatch] kernel %s: %s %d (%s): %s", e.p.Name(), space, q.Index, q.Name,
		fmt.Sprintf(format, args...))
}

func (e *Encoder) keep(err error) {
	if e.err == nil {
		e.err = err
	}
}

// inside reports whether a range lies in its buffer.
func (r Range) inside() bool {
	return r.Offset >= 0 && r.Bytes >= 0 && r.Offset <= r.Buf.Len() && r.Bytes <= r.Buf.Len()-r.Offset
}

// Dispatch records a run of the kernel over grid threads in threadgroups of tg, which is clamped to the grid as MLX
// does. A grid with a dimension of 0 records nothing. Whatever the device's limits or the kernel's parameters forbid
// is an error that names the kernel, the parameter and the values.
func (e *Encoder) Dispatch(grid, tg Size) error {
	p := e.p
	if e.over {
		e.cb.mu.Lock()
		defer e.cb.mu.Unlock()
		return e.cb.open("dispatch")
	}
	if p == nil {
		return fmt.Errorf("[dispatch] no pipeline was set")
	}
	if e.err != nil {
		return e.err
	}
	if err := e.checkSizes(grid, tg); err != nil {
		return err
	}
	tgBytes := p.refl.StaticTG
	for i, a := range p.access {
		if !e.bound[i] {
			e.fail(i, "nothing is bound")
			err := e.err
			e.err = nil // it may be bound yet
			return err
		}
		if a == accThreadgroup {
			tgBytes += roundUp(int64(e.args[i].TGBytes), 16) // Metal's granularity
		}
	}
	if lim := int64(e.cb.dev.info.Limits.ThreadgroupMemory); tgBytes > lim {
		return fmt.Errorf("[dispatch] kernel %s: %d bytes of threadgroup memory are more than the limit of %d",
			p.Name(), tgBytes, lim)
	}
	if grid.X == 0 || grid.Y == 0 || grid.Z == 0 {
		return nil
	}
	cb := e.cb
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if err := cb.open("dispatch"); err != nil {
		return err
	}
	e.uses = e.uses[:0]
	for i := range e.args {
		if err := e.hold(e.args[i].Buffer.Buf); err != nil {
			return fmt.Errorf("[dispatch] kernel %s: %w", p.Name(), err)
		}
	}
	if e.pinned != p {
		cb.usePipeline(p)
		e.pinned = p
	}
	for i := range e.args {
		e.check(i, p.access[i], &e.args[i].Buffer)
	}
	e.barrierIfDue()
	for i := range e.args {
		e.note(i, p.access[i], &e.args[i].Buffer)
	}
	cb.add(&Command{
		Kind: CmdDispatch, Label: e.label, Unit: e.unit, Unless: e.unless, Fault: e.fault, Pipeline: p,
		Args: cb.rec.keepArgs(e.args, e), Grid: grid,
		Threadgroup: Size{min(tg.X, grid.X), min(tg.Y, grid.Y), min(tg.Z, grid.Z)},
	})
	return nil
}

// checkSizes holds a grid and a threadgroup against the limits.
func (e *Encoder) checkSizes(grid, tg Size) error {
	name := e.p.Name()
	for i, n := range [3]int{grid.X, grid.Y, grid.Z} {
		if n < 0 || int64(n) > math.MaxUint32 {
			return fmt.Errorf("[dispatch] kernel %s: grid (%d, %d, %d): dimension %d is not between 0 and %d",
				name, grid.X, grid.Y, grid.Z, i, uint32(math.MaxUint32))
		}
	}
	most := e.p.refl.MaxThreads
	count := 1
	for i, n := range [3]int{tg.X, tg.Y, tg.Z} {
		if n < 1 {
			return fmt.Errorf("[dispatch] kernel %s: threadgroup (%d, %d, %d): dimension %d is less than 1",
				name, tg.X, tg.Y, tg.Z, i)
		}
		if n > most || count*n > most {
			return fmt.Errorf("[dispatch] kernel %s: threadgroup (%d, %d, %d) is more than the limit of %d threads",
				name, tg.X, tg.Y, tg.Z, most)
		}
		count *= n
	}
	if need := e.p.refl.Threads; need != (Size{}) && tg != need {
		return fmt.Errorf("[dispatch] kernel %s: threadgroup (%d, %d, %d), and the kernel requires (%d, %d, %d)",
			name, tg.X, tg.Y, tg.Z, need.X, need.Y, need.Z)
	}
	return nil
}

// Copy records dst = src, two ranges of one length that do not overlap. No bytes record nothing.
func (e *Encoder) Copy(dst, src Range) error {
	for _, r := range [2]Range{dst, src} {
		if r.Buf == nil {
			return fmt.Errorf("[copy] no buffer")
		}
		if !r.inside() {
			return fmt.Errorf("[copy] bytes %d to %d are not inside %s", r.Offset, r.Offset+r.Bytes, r.Buf)
		}
	}
	if dst.Bytes != src.Bytes {
		return fmt.Errorf("[copy] the lengths differ: destination %d bytes, source %d", dst.Bytes, src.Bytes)
	}
	if dst.Buf == src.Buf && dst.Offset < src.Offset+src.Bytes && src.Offset < dst.Offset+dst.Bytes && dst.Bytes > 0 {
		return fmt.Errorf("[copy] bytes %d to %d and %d to %d of %s overlap", src.Offset, src.Offset+src.Bytes,
			dst.Offset, dst.Offset+dst.Bytes, dst.Buf)
	}
	return e.transfer("copy", Command{Kind: CmdCopy, Src: src, Dst: dst})
}

// Fill records dst = pattern, repeated; dst's length is a multiple of the pattern's, which is at most
// Limits.InlineBytes. No bytes record nothing.
func (e *Encoder) Fill(dst Range, pattern []byte) error {
	switch lim := e.cb.dev.info.Limits.InlineBytes; {
	case dst.Buf == nil:
		return fmt.Errorf("[fill] no buffer")
	case !dst.inside():
		return fmt.Errorf("[fill] bytes %d to %d are not inside %s", dst.Offset, dst.Offset+dst.Bytes, dst.Buf)
	case len(pattern) == 0 || len(pattern) > lim:
		return fmt.Errorf("[fill] a pattern of %d bytes: it must have 1 to %d", len(pattern), lim)
	case dst.Bytes%int64(len(pattern)) != 0:
		return fmt.Errorf("[fill] %d bytes are not a multiple of the pattern's %d", dst.Bytes, len(pattern))
	}
	return e.transfer("fill", Command{Kind: CmdFill, Dst: dst, Pattern: bytes.Clone(pattern)})
}

// Reuse records, under validation, that a buffer's contents are worthless from here on, whatever they were: it poisons
// them, and no byte counts as written, where that is watched. Without validation it records nothing.
func (e *Encoder) Reuse(b *Buffer) error {
	if !e.cb.validate {
		return nil
	}
	if b == nil {
		return fmt.Errorf("[reuse] no buffer")
	}
	return e.transfer("reuse", Command{Kind: CmdFill, Dst: b.All(), Pattern: []byte{poisonByte}, Undefined: true})
}

// transfer records a copy or a fill.
func (e *Encoder) transfer(op string, c Command) error {
	if c.Dst.Bytes == 0 {
		return nil
	}
	cb := e.cb
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if err := cb.open(op); err != nil {
		return err
	}
	e.uses = e.uses[:0]
	for _, b := range [2]*Buffer{c.Src.Buf, c.Dst.Buf} {
		if err := e.hold(b); err != nil {
			return fmt.Errorf("[%s] %w", op, err)
		}
	}
	e.check(0, accRead, &c.Src)
	e.check(1, accWrite, &c.Dst)
	e.barrierIfDue()
	e.note(0, accRead, &c.Src)
	e.note(1, accWrite, &c.Dst)
	c.Label, c.Unit, c.Unless, c.Fault = e.label, e.unit, e.unless, e.fault
	cb.add(&c)
	return nil
}

// Barrier records a barrier, whether one is due or not.
func (e *Encoder) Barrier() error {
	e.cb.mu.Lock()
	defer e.cb.mu.Unlock()
	if err := e.cb.open("barrier"); err != nil {
		return err
	}
	e.epoch++
	e.cb.add(&Command{Kind: CmdBarrier, Label: e.label})
	return nil
}

// hold appends the record of b (nil if b is) to e.uses, and retains b unless retention is off. Called with cb.mu held.
func (e *Encoder) hold(b *Buffer) error {
	if b == nil {
		e.uses = append(e.uses, nil)
		return nil
	}
	if b.pool != e.cb.dev.pool {
		return fmt.Errorf("%s belongs to another device", b)
	}
	u := e.cb.use(b)
	e.uses = append(e.uses, u)
	switch {
	case u.retained:
	case !e.cb.dev.retain:
		if !b.Live() {
			return fmt.Errorf("use after release: %s", b)
		}
	case !b.tryRetain():
		return fmt.Errorf("use after release: %s", b)
	default:
		u.retained = true
	}
	if !e.cb.validate && b.shadow.Load() != nil {
		b.shadow.Store(nil) // nobody watches what these commands write
	}
	return nil
}

// check finds the hazards of the i-th of e.uses with the accesses since the last barrier. Called with cb.mu held.
func (e *Encoder) check(i int, a access, r *Range) {
	u := e.uses[i]
	if u == nil || e.due != hazardNone {
		return
	}
	e.due = u.at(e.epoch).conflict(a, r.Offset, r.Offset+r.Bytes, &e.cb.dev.ablate)
	if e.due != hazardNone {
		e.culprit = r.Buf
	}
}

// note records the access of the i-th of e.uses. Called with cb.mu held.
func (e *Encoder) note(i int, a access, r *Range) {
	if u := e.uses[i]; u != nil {
		u.at(e.epoch).note(a, r.Offset, r.Offset+r.Bytes)
	}
}

// barrierIfDue records the barrier that check found due. Called with cb.mu held.
func (e *Encoder) barrierIfDue() {
	if e.due == hazardNone {
		return
	}
	c := Command{Kind: CmdBarrier, Label: string(e.due)}
	if e.cb.validate {
		c.Label += ": " + e.culprit.String()
	}
	e.culprit, e.due = nil, hazardNone
	e.epoch++
	e.cb.add(&c)
}
