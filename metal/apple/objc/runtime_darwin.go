package objc

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Libraries of macOS. Without CoreGraphics a program without a screen has no default device.
const (
	libObjC         = "/usr/lib/libobjc.A.dylib"
	libFoundation   = "/System/Library/Frameworks/Foundation.framework/Foundation"
	libCoreGraphics = "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics"
	libMetal        = "/System/Library/Frameworks/Metal.framework/Metal"
)

// system is macOS's runtime.
type system struct {
	msgSend, getClass, push, pop uintptr
	defaultDevice, allDevices    uintptr
	double                       func(self, sel uintptr) float64
	selectors                    [numSelectors]uintptr
	classes                      sync.Map // uintptr by name
	calls                        sync.Pool
	version                      string
	translated                   bool
}

// Open loads macOS's runtime, once and for good.
func Open() (Runtime, error) {
	s, err := opened()
	if err != nil {
		return nil, err
	}
	return s, nil
}

var opened = sync.OnceValues(func() (*system, error) {
	s := &system{}
	s.calls.New = func() any { return new(Call) }
	handles := map[string]uintptr{}
	for _, path := range []string{libObjC, libFoundation, libCoreGraphics, libMetal} {
		h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return nil, fmt.Errorf("macOS has no %s: %w", path, err)
		}
		handles[path] = h
	}
	var register uintptr
	for _, f := range []struct {
		to        *uintptr
		lib, name string
	}{
		{&s.msgSend, libObjC, "objc_msgSend"}, {&s.getClass, libObjC, "objc_getClass"},
		{&register, libObjC, "sel_registerName"}, {&s.push, libObjC, "objc_autoreleasePoolPush"},
		{&s.pop, libObjC, "objc_autoreleasePoolPop"}, {&s.defaultDevice, libMetal, "MTLCreateSystemDefaultDevice"},
		{&s.allDevices, libMetal, "MTLCopyAllDevices"},
	} {
		var err error
		if *f.to, err = purego.Dlsym(handles[f.lib], f.name); err != nil {
			return nil, fmt.Errorf("macOS has no %s: %w", f.name, err)
		}
	}
	purego.RegisterFunc(&s.double, s.msgSend)
	for i := range Rows {
		if s.selectors[i] = s.named(register, Rows[i].Name); s.selectors[i] == 0 {
			return nil, errors.New("macOS registers no selector " + Rows[i].Name)
		}
	}
	var err error
	if s.version, err = syscall.Sysctl("kern.osproductversion"); err != nil {
		return nil, fmt.Errorf("macOS does not tell its version: %w", err)
	}
	n, err := syscall.SysctlUint32("sysctl.proc_translated") // it is not there on Intel's processors
	s.translated = err == nil && n == 1
	return s, nil
})

// named calls a function of C with a text.
func (s *system) named(f uintptr, text string) uintptr {
	b := append([]byte(text), 0)
	r, _, _ := purego.SyscallN(f, uintptr(unsafe.Pointer(&b[0])))
	runtime.KeepAlive(b)
	return r
}

// place makes a call of a message.
func (s *system) place(m *Message) *Call {
	for i := range m.Args {
		if a := &m.Args[i]; a.Kind == KindSelector {
			a.Words[0] = uint64(s.selectors[a.Words[0]])
		}
	}
	c := s.calls.Get().(*Call)
	if err := c.Place(runtime.GOARCH, uintptr(m.To), s.selectors[m.Sel], m.Args); err != nil {
		panic(err)
	}
	return c
}

// Send sends a message.
func (s *system) Send(m *Message) uint64 {
	c := s.place(m)
	r, _, _ := purego.SyscallN(s.msgSend, c.Words[:c.N]...)
	runtime.KeepAlive(m) // the memory that its arguments lead to
	s.calls.Put(c)
	switch Rows[m.Sel].Types[0] {
	case 'v':
		return 0
	case 'Z': // the other bits are anything
		if r&0xff != 0 {
			return 1
		}
		return 0
	}
	return uint64(r)
}

// SendDouble sends a message without arguments whose result is a double.
func (s *system) SendDouble(m *Message) float64 { return s.double(uintptr(m.To), s.selectors[m.Sel]) }

// Class is the class of a name.
func (s *system) Class(name string) Object {
	if c, ok := s.classes.Load(name); ok {
		return c.(Object)
	}
	c := Object(s.named(s.getClass, name))
	s.classes.Store(name, c)
	return c
}

// DefaultDevice is a new reference to the system's GPU.
func (s *system) DefaultDevice() Object {
	r, _, _ := purego.SyscallN(s.defaultDevice)
	return Object(r)
}

// AllDevices is a new reference to an array of all.
func (s *system) AllDevices() Object {
	r, _, _ := purego.SyscallN(s.allDevices)
	return Object(r)
}

// Push begins a pool of this thread.
func (s *system) Push() Pool {
	r, _, _ := purego.SyscallN(s.push)
	return Pool(r)
}

// Pop ends a pool.
func (s *system) Pop(p Pool) { purego.SyscallN(s.pop, uintptr(p)) }

// Text copies a text that ends with a zero byte.
func (s *system) Text(address uint64) string {
	if address == 0 {
		return ""
	}
	at := uintptr(address)
	p := *(**byte)(unsafe.Pointer(&at)) // C's memory: no number that the collector knows
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// System is this Mac.
func (s *system) System() System { return System{Version: s.version, Translated: s.translated} }
