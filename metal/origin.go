package metal

import (
	"runtime"
	"strconv"
	"strings"
)

// Place is a place in a program: a Lua script's line, or a Go caller's. The zero Place is unknown.
type Place struct {
	File string  // "" if unknown
	Line int     // in File
	PC   uintptr // in place of File and Line: a Go caller, looked up when someone asks
}

// String is "file:line", or "" if the place is unknown.
func (p Place) String() string {
	if p.PC != 0 {
		f, _ := runtime.CallersFrames([]uintptr{p.PC}).Next()
		return f.File[strings.LastIndexByte(f.File, '/')+1:] + ":" + strconv.Itoa(f.Line)
	}
	if p.File == "" {
		return ""
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// Origin is what a buffer holds and the call that it was made for: for messages, and for Device.Live.
type Origin struct {
	Op    string // "" if unknown
	Place Place  // of the call
	Shape []int  // of the array that lies in it; nil for memory that an op needs while it runs
	Type  string // of its elements

	Account *Account // that the buffer is charged to; nil: none
	Owner   Owner    // who may see its bytes
}

// String is "op made at file:line".
func (o Origin) String() string {
	if place := o.Place.String(); place != "" {
		return o.Op + " made at " + place
	}
	return o.Op
}

// account is the origin's, which may be nil.
func (o *Origin) account() *Account {
	if o == nil {
		return nil
	}
	return o.Account
}

// SetOrigin says what the buffer is used for from now on, and charges it to the origin's account whatever that holds.
// An owner that it did not have gets it as it is: who says so lets that one see its bytes.
func (b *Buffer) SetOrigin(o Origin) {
	b.pool.mu.Lock()
	b.assign(&o)
	b.pool.mu.Unlock()
}

// Assign is SetOrigin, unless the origin's account has no room for the buffer: then it does nothing and is false.
func (b *Buffer) Assign(o *Origin) bool {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	if o.Account != b.origin.Account && !o.Account.fits(b.charge()) {
		return false
	}
	b.assign(o)
	return true
}

// assign is SetOrigin with the pool's mu held.
func (b *Buffer) assign(o *Origin) {
	if o.Owner != b.owner {
		b.owner, b.mixed = o.Owner, true
	}
	b.origin.Account.charge(-b.charge())
	b.origin = *o
	b.origin.Account.charge(b.charge())
}

// Origin is what SetOrigin said last.
func (b *Buffer) Origin() Origin {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return b.origin
}

// LiveBuffer is an entry of Device.Live.
type LiveBuffer struct {
	ID     uint64
	Bytes  int64 // what it costs, rounding included
	Origin Origin
}

// Live lists the buffers that have references, oldest first. Those that only garbage holds are among them: see Collect.
func (d *Device) Live() []LiveBuffer {
	p := d.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]LiveBuffer, 0, p.live)
	for b := p.first; b != nil; b = b.newer {
		out = append(out, LiveBuffer{b.id, b.cost(), b.origin})
	}
	return out
}

// link puts a new buffer into the list of live ones, and unlink takes one out. Called with mu held.
func (p *pool) link(b *Buffer) {
	if b.older = p.last; b.older != nil {
		b.older.newer = b
	} else {
		p.first = b
	}
	p.last = b
}

func (p *pool) unlink(b *Buffer) {
	if b.older != nil {
		b.older.newer = b.newer
	} else {
		p.first = b.newer
	}
	if b.newer != nil {
		b.newer.older = b.older
	} else {
		p.last = b.older
	}
	b.older, b.newer = nil, nil
}
