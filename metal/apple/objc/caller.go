package objc

import "runtime"

// Caller sends messages; it is for one goroutine at a time. It keeps the memory of its message, as a dispatch sends
// about ten of them.
type Caller struct {
	Runtime Runtime
	m       Message
	args    [4]Arg
}

// Pooled calls f between Push and Pop, on one thread: what f is given of objects that are not new lives until it
// returns, unless it is retained.
func (c *Caller) Pooled(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := c.Runtime.Push()
	defer c.Runtime.Pop(pool)
	f()
}

func (c *Caller) message(to Object, s Selector, args []Arg) *Message {
	c.m = Message{To: to, Sel: s, Args: c.args[:copy(c.args[:], args)]}
	return &c.m
}

// Send sends a message whose result is a number, or nothing. A message to nil is one that was lost: 0.
func (c *Caller) Send(to Object, s Selector, args ...Arg) uint64 {
	if to == 0 {
		return 0
	}
	n := c.Runtime.Send(c.message(to, s, args))
	clear(c.args[:]) // lets go of memory
	return n
}

// Object is Send where the result is an object.
func (c *Caller) Object(to Object, s Selector, args ...Arg) Object {
	return Object(c.Send(to, s, args...))
}

// Is is Send where the result is a truth value.
func (c *Caller) Is(to Object, s Selector, args ...Arg) bool { return c.Send(to, s, args...) != 0 }

// Double is Send where the result is a double.
func (c *Caller) Double(to Object, s Selector) float64 {
	if to == 0 {
		return 0
	}
	return c.Runtime.SendDouble(c.message(to, s, nil))
}

// Has reports whether an object knows a message that older systems lack.
func (c *Caller) Has(to Object, s Selector) bool { return c.Is(to, RespondsToSelector, Sel(s)) }

// New makes an object of a class, which the caller releases.
func (c *Caller) New(class string) Object { return c.Object(c.Runtime.Class(class), New) }

// Release gives references back.
func (c *Caller) Release(objects ...Object) {
	for _, o := range objects {
		c.Send(o, Release)
	}
}

// String makes a string, which the caller releases.
func (c *Caller) String(text string) Object {
	const utf8 = 4
	o := c.Object(c.Runtime.Class("NSString"), Alloc)
	b := []byte(text)
	if len(b) == 0 {
		b = make([]byte, 1)
	}
	return c.Object(o, InitWithBytes, Bytes(b), Num(uint64(len(text))), Num(utf8))
}

// Text is a string's text; "" of nil.
func (c *Caller) Text(o Object) string {
	if o == 0 {
		return ""
	}
	return c.Runtime.Text(c.Send(o, UTF8String))
}
