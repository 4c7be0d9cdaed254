package objc

import "unsafe"

// Object is a reference to an object; 0 is nil.
type Object uint64

// Pool is an autorelease pool.
type Pool uint64

// Kind is what an argument of a message is. Its letters are those of Objective-C's type encodings.
type Kind byte

// The kinds.
const (
	KindObject   Kind = '@' // also a block, where 0 says that there is none
	KindUnsigned Kind = 'Q'
	KindSigned   Kind = 'q'
	KindBool     Kind = 'Z'
	KindSelector Kind = ':'
	KindBytes    Kind = '^' // a pointer to bytes
	KindOut      Kind = 'o' // a pointer to an object, which the callee sets
	KindSize     Kind = '{' // MTLSize by value
)

// Arg is an argument of a message. Words are the value: one, but for a struct. Pointer is memory that the callee reads
// or writes before it returns, or that is its own.
type Arg struct {
	Kind    Kind
	Words   [3]uint64
	Pointer unsafe.Pointer
	Bytes   int // of what Pointer leads to
}

// Obj is an object as an argument.
func Obj(o Object) Arg { return Arg{Kind: KindObject, Words: [3]uint64{uint64(o)}} }

// Num is an NSUInteger as an argument.
func Num(n uint64) Arg { return Arg{Kind: KindUnsigned, Words: [3]uint64{n}} }

// Signed is an NSInteger as an argument.
func Signed(n int64) Arg { return Arg{Kind: KindSigned, Words: [3]uint64{uint64(n)}} }

// Sel is the selector of a message as an argument.
func Sel(s Selector) Arg { return Arg{Kind: KindSelector, Words: [3]uint64{uint64(s)}} }

// Size is an MTLSize as an argument, in threads.
func Size(x, y, z int) Arg {
	return Arg{Kind: KindSize, Words: [3]uint64{uint64(x), uint64(y), uint64(z)}}
}

// Yes is a truth value as an argument.
func Yes(b bool) Arg {
	if b {
		return Arg{Kind: KindBool, Words: [3]uint64{1}}
	}
	return Arg{Kind: KindBool}
}

// Bytes is memory as an argument, of at least one byte.
func Bytes(b []byte) Arg {
	return Arg{Kind: KindBytes, Pointer: unsafe.Pointer(unsafe.SliceData(b)), Bytes: len(b)}
}

// Out is where the callee puts an object, such as an error. What it holds before is nil.
func Out(o *Object) Arg { return Arg{Kind: KindOut, Pointer: unsafe.Pointer(o), Bytes: 8} }

// Nothing is no place for an object: the callee puts none.
func Nothing() Arg { return Arg{Kind: KindOut} }

// Message is a message to an object.
type Message struct {
	To   Object
	Sel  Selector
	Args []Arg
}

// Runtime is Objective-C's runtime with the frameworks that have Metal. Its methods may be called from any goroutine.
// What lies between Push and Pop has to be on one thread: see Caller.Pooled.
type Runtime interface {
	// Send sends a message whose result is an integer, a pointer, an object or nothing. A truth value is 0 or 1.
	Send(m *Message) uint64
	// SendDouble sends a message whose result is a double.
	SendDouble(m *Message) float64
	// Class is the class of a name, 0 if there is none.
	Class(name string) Object
	// DefaultDevice is a new reference to the system's GPU, 0 if there is none; AllDevices to an array of all.
	DefaultDevice() Object
	AllDevices() Object
	// Text copies a text that ends with a zero byte.
	Text(address uint64) string
	Push() Pool
	Pop(Pool)
	// System says what this machine is.
	System() System
}

// System is a machine, as far as Metal asks.
type System struct {
	Version    string // of macOS: "15.1"
	Translated bool   // this program is for another processor
}
