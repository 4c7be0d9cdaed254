package metal

import (
	"fmt"
	"reflect"
)

// Routine says what a call of a driver's library computes, as data: a comparable struct, such as MatMul. Equal routines
// are one, so that whoever records commands can compare them.
type Routine interface {
	// Routine is the name that messages and timings have for it.
	Routine() string
}

// Caller is the capability of drivers that compute some routines by other means than kernels: a library's product, a
// collective. Such a call is a command, CmdCall, of which everything is known that is of other commands: what it reads
// and writes, how long it took, that it has failed.
type Caller interface {
	// Offers reports whether the device computes the routine. Where that depends on the number of rows, and not on a
	// routine's other figures alone, results must have the bytes of the portable kernel's: rows must not depend on others.
	Offers(Routine) bool
}

// Call is what a command of the kind CmdCall asks for. Which ranges stand for what is the routine's to say.
type Call struct {
	Routine       Routine
	Reads, Writes []Range
}

// Offers reports whether the device computes a routine by a call: see Encoder.Call.
func (d *Device) Offers(r Routine) bool {
	c, ok := Capability[Caller](d)
	return ok && c.Offers(r)
}

// Call records a call of a routine that the device offers. What it writes overlaps nothing else of it. A call cannot be
// skipped: behind a gate, on a device that skips, it has the host look at the gate's word before the command buffer is
// handed over, and fails with ErrGateBegins where the command buffer has commands that are not behind that look.
func (e *Encoder) Call(r Routine, reads, writes []Range) error {
	switch {
	case r == nil:
		return fmt.Errorf("[call] no routine")
	case !reflect.TypeOf(r).Comparable():
		return fmt.Errorf("[call] %s: a %T is not comparable", r.Routine(), r)
	case !e.cb.dev.Offers(r):
		return fmt.Errorf("[call] %s: device %s does not offer it: %+v", r.Routine(), e.cb.dev.info.Name, r)
	}
	for i, w := range append(writes[:len(writes):len(writes)], reads...) {
		switch {
		case w.Buf == nil:
			return fmt.Errorf("[call] %s: no buffer", r.Routine())
		case !w.inside():
			return fmt.Errorf("[call] %s: bytes %d to %d are not inside %s", r.Routine(), w.Offset, w.Offset+w.Bytes, w.Buf)
		}
		for _, o := range writes[:min(i, len(writes))] {
			if o.Buf == w.Buf && o.Offset < w.Offset+w.Bytes && w.Offset < o.Offset+o.Bytes {
				return fmt.Errorf("[call] %s: bytes %d to %d and %d to %d of %s overlap", r.Routine(), o.Offset,
					o.Offset+o.Bytes, w.Offset, w.Offset+w.Bytes, w.Buf)
			}
		}
	}
	cb := e.cb
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if err := cb.open("call"); err != nil {
		return err
	}
	e.uses = e.uses[:0]
	call := &Call{Routine: r, Reads: append([]Range(nil), reads...), Writes: append([]Range(nil), writes...)}
	for _, x := range append(call.Reads[:len(reads):len(reads)], call.Writes...) {
		if err := e.hold(x.Buf); err != nil {
			return fmt.Errorf("[call] %s: %w", r.Routine(), err)
		}
	}
	if word := e.unless; word.Buf != nil && word != e.looked {
		if e.n > 0 {
			return ErrGateBegins
		}
		cb.gate, e.looked = append(cb.gate, word), word
	}
	for i := range reads {
		e.check(i, accRead, &call.Reads[i])
	}
	for i := range writes {
		e.check(len(reads)+i, accWrite, &call.Writes[i])
	}
	e.barrierIfDue()
	for i := range reads {
		e.note(i, accRead, &call.Reads[i])
	}
	for i := range writes {
		e.note(len(reads)+i, accWrite, &call.Writes[i])
	}
	cb.add(&Command{Kind: CmdCall, Label: e.label, Unit: e.unit, Fault: e.fault, Call: call})
	return nil
}

// Element is what a routine's numbers are.
type Element uint8

// The elements of routines.
const (
	Float32 Element = iota
	Float16
	BFloat16
	Float64
	Complex64 // two float32: the real part first
)

// Size is the bytes of an element.
func (e Element) Size() int { return [...]int{4, 2, 2, 8, 8}[e] }

// Matrix is how the matrices of a batch lie in a range: element (i, j) is Lead*i + j elements behind its matrix's first
// one, or Lead*j + i where it is Turned; the matrices are Step elements apart, 0 where all are one.
type Matrix struct {
	Turned     bool
	Lead, Step int
}

// MatMul is the routine out = a b for Batch products of matrices, of M by K and K by N elements: it reads a and b, and
// writes out, which is the same matrices without gaps. Half types are added up in float32 and rounded once. In which
// order they are added up is the driver's own; M and Batch have no say in it.
type MatMul struct {
	Element        Element
	M, N, K, Batch int
	A, B           Matrix
	// Single says that out is of Float32, whatever Element is: its sums are not rounded.
	Single bool
}

// Out is what out's numbers are.
func (m MatMul) Out() Element {
	if m.Single {
		return Float32
	}
	return m.Element
}

// Routine is "matmul".
func (MatMul) Routine() string { return "matmul" }
