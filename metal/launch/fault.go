package launch

import (
	"errors"
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// ErrInterrupted is what a launch ends with when its Interrupt flag was set before it was done.
var ErrInterrupted = errors.New("[metal_kernel] interrupted")

// Fault is what a kernel did wrong.
type Fault struct {
	Kernel string
	Object string  // the buffer, threadgroup or thread array, "" if none is concerned
	Index  int64   // the element's index in Object
	Len    int64   // Object's length in elements
	Pos    kir.Pos // where, zero if unknown
	File   string  // name of Pos.File
	Msg    string  // what, without kernel and place

	Param     int  // Object's place among the kernel's parameters, -1 if it is none of them
	Unwritten bool // it read bytes of a buffer that nothing had written (Launch.Written)
}

// Error returns the fault as "[kernel] what is wrong (file:line:column)".
func (f *Fault) Error() string {
	if f.Pos.Line == 0 {
		return fmt.Sprintf("[%s] %s", f.Kernel, f.Msg)
	}
	return fmt.Sprintf("[%s] %s (%s:%d:%d)", f.Kernel, f.Msg, f.File, f.Pos.Line, f.Pos.Col)
}

// FileName is the name of a place's file: the index of a place is that in files.
func FileName(files []string, pos kir.Pos) string {
	if n := int(pos.File); n < len(files) {
		return files[n]
	}
	return "source"
}

// AccessKind is what an access does.
type AccessKind uint8

// The kinds of accesses.
const (
	Read AccessKind = iota
	Write
	AtomicRead // an atomic operation that only reads
	Atomic     // any other one
)

// String is the access in messages.
func (k AccessKind) String() string {
	return [...]string{"read", "write", "atomic access", "atomic access"}[k]
}

// Writes reports whether the access may change memory.
func (k AccessKind) Writes() bool { return k == Write || k == Atomic }

// IsAtomic reports whether it is an atomic operation's.
func (k AccessKind) IsAtomic() bool { return k >= AtomicRead }

// Access is a memory access that must not happen.
type Access struct {
	Kernel  *kir.Kernel
	Files   []string   // as Prepare got them
	Instr   *kir.Instr // the Load, Store or atomic
	Pointer uint64     // one lane's, all 64 bits
	// Bytes is the length of an object, by its number in pointers.
	Bytes func(object int) uint64
}

// Fault says what is wrong with the access: there is no such object, it is in another address space than the
// pointer's, it is read-only and written, the bytes are not inside it, or else the address of an atomic is not aligned.
// Every executor's faults are made here, so that they read the same.
func (a Access) Fault() *Fault {
	space, _ := a.Instr.Args[0].Type.Space()
	size, acc := a.Instr.Type.Size(), Read
	switch {
	case a.Instr.Op == kir.AtomicLoad:
		acc = AtomicRead
	case a.Instr.Op.IsAtomic():
		acc = Atomic
		if a.Instr.Op == kir.AtomicStore {
			size = a.Instr.Args[1].Type.Size()
		}
	case a.Instr.Op == kir.Store:
		acc, size = Write, a.Instr.Args[1].Type.Size()
	}
	return BadAccess(a.Kernel, a.Files, a.Instr.Pos, space, acc, a.Pointer, uint64(size), a.Bytes)
}

// BadAccess is Access.Fault of an access of size bytes through pointer q to memory of a space.
func BadAccess(
	k *kir.Kernel, files []string, pos kir.Pos, space kir.Space, acc AccessKind, q, size uint64, bytes func(int) uint64,
) *Fault {
	f := &Fault{Kernel: k.Name, Param: -1, Pos: pos, File: FileName(files, pos)}
	ob, verb := kir.PtrObject(q), acc.String()
	switch {
	case ob == 0:
		f.Msg = verb + " through a null pointer"
		return f
	case ob > len(k.Params)+len(k.Regions):
		f.Msg = fmt.Sprintf("%s through a pointer to no object: %#x", verb, q)
		return f
	}
	name, elem, in := Describe(k, ob)
	if f.Object = name; ob <= len(k.Params) {
		f.Param = ob - 1
	}
	if in != space {
		f.Msg = fmt.Sprintf("%s of %s memory through a pointer to %s memory: %s", verb, in, space, name)
		return f
	}
	length := bytes(ob)
	readOnly := acc.Writes() && f.Param >= 0 && k.Params[f.Param].ReadOnly
	f.Index, f.Len = FloorDiv(kir.PtrOffset(q), elem), int64(length)/elem
	off := uint64(kir.PtrOffset(q))
	switch {
	case readOnly:
		f.Msg = fmt.Sprintf("%s of %s[%d], which is an input: kernels only read those, but for mutable_inputs",
			verb, name, f.Index)
	case off <= length && length-off >= size:
		f.Msg = fmt.Sprintf("atomic access is not aligned: byte %d of %s", kir.PtrOffset(q), name)
	case ob > len(k.Params) && k.Regions[ob-1-len(k.Params)].ElemSize == 0:
		f.Msg = fmt.Sprintf("%s of byte %d of %s is out of range: it has %d bytes", verb, f.Index, name, f.Len)
	case f.Index >= 0 && f.Index < f.Len: // the access is wider than what is left
		f.Msg = fmt.Sprintf("%s of %d bytes at %s[%d] is out of range: %s has %d elements",
			verb, size, name, f.Index, name, f.Len)
	default:
		f.Msg = fmt.Sprintf("%s of %s[%d] is out of range: %s has %d elements", verb, name, f.Index, name, f.Len)
	}
	return f
}

// Describe returns what messages say about an object, by its number in pointers: its name, the size of its elements and
// the space that it is in.
func Describe(k *kir.Kernel, ob int) (name string, elem int64, space kir.Space) {
	if ob-1 < len(k.Params) {
		p := k.Params[ob-1]
		return p.Name, int64(p.ElemSize), p.Space
	}
	r := k.Regions[ob-1-len(k.Params)]
	return r.Name, int64(max(r.ElemSize, 1)), r.Space
}

// FloorDiv returns the index of the element that a byte offset falls into, also of a negative one.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
