package interp

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
}

// Error returns the fault as "[kernel] what is wrong (file:line:column)".
func (f *Fault) Error() string {
	if f.Pos.Line == 0 {
		return fmt.Sprintf("[%s] %s", f.Kernel, f.Msg)
	}
	return fmt.Sprintf("[%s] %s (%s:%d:%d)", f.Kernel, f.Msg, f.File, f.Pos.Line, f.Pos.Col)
}

// fail records the frame's first fault.
func (f *frame) fail(in *inst, object string, index, length int64, format string, args ...any) {
	if f.fault != nil {
		return
	}
	file := "source"
	if n := int(in.pos.File); n < len(f.prog.files) {
		file = f.prog.files[n]
	}
	f.fault = &Fault{Kernel: f.prog.kernel.Name, Object: object, Index: index, Len: length, Pos: in.pos, File: file,
		Msg: fmt.Sprintf(format, args...)}
}

// describe returns what messages say about an object.
func (f *frame) describe(ob int) (name string, elem int64) {
	k := f.prog.kernel
	if ob-1 < len(k.Params) {
		p := k.Params[ob-1]
		return p.Name, int64(p.ElemSize)
	}
	r := k.Regions[ob-1-len(k.Params)]
	return r.Name, int64(r.Elem.Size())
}

// floorDiv is the index of the element that a byte offset falls into, also of a negative one.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func (f *frame) badPointer(in *inst, q uint64, acc access) {
	if kir.PtrObject(q) == 0 {
		f.fail(in, "", 0, 0, "%s through a null pointer", accessName[acc])
		return
	}
	f.fail(in, "", 0, 0, "%s through a pointer to no object: %#x", accessName[acc], q)
}

// rightSpace reports a pointer whose object is null or in another address space than the pointer's type says; it
// returns
// false, for callers that stop then.
func (f *frame) rightSpace(in *inst, q uint64, acc access) bool {
	ob := kir.PtrObject(q)
	if ob == 0 {
		f.badPointer(in, q, acc)
		return false
	}
	name, _ := f.describe(ob)
	f.fail(in, name, 0, 0, "%s of %s memory through a pointer to %s memory: %s",
		accessName[acc], f.objs[ob].space, in.space, name)
	return false
}

func (f *frame) outOfRange(in *inst, q, size uint64, acc access) {
	ob := kir.PtrObject(q)
	name, elem := f.describe(ob)
	index, length := floorDiv(kir.PtrOffset(q), elem), int64(f.objs[ob].size)/elem
	if index >= 0 && index < length { // the access is wider than what is left
		f.fail(in, name, index, length, "%s of %d bytes at %s[%d] is out of range: %s has %d elements",
			accessName[acc], size, name, index, name, length)
		return
	}
	f.fail(in, name, index, length, "%s of %s[%d] is out of range: %s has %d elements",
		accessName[acc], name, index, name, length)
}

func (f *frame) misaligned(in *inst, q uint64) {
	ob := kir.PtrObject(q)
	name, elem := f.describe(ob)
	f.fail(in, name, floorDiv(kir.PtrOffset(q), elem), int64(f.objs[ob].size)/elem,
		"atomic access is not aligned: byte %d of %s", kir.PtrOffset(q), name)
}
