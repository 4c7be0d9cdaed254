package fake

import (
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

// problemOf is an NSError.
type problemOf struct {
	code int64
	text string
}

// fails puts an NSError where the caller wants one. Called with mu held.
func (r *Runtime) fails(out *objc.Arg, code int64, text string) uint64 {
	if out.Pointer != nil {
		*(*objc.Object)(out.Pointer) = r.autorelease(r.make("NSError", &problemOf{code, text}))
	}
	return 0
}

// bytesOf are the bytes that an argument leads to.
func bytesOf(a *objc.Arg, n uint64) []byte { return unsafe.Slice((*byte)(a.Pointer), n) }

// string is an object's text. Called with mu held.
func (r *Runtime) string(a *objc.Arg) string {
	s, ok := r.find(objc.Object(a.Words[0]), "a string").is.(*string)
	if !ok {
		r.problem("an argument is no string")
	}
	return *s
}

// newString is an autoreleased string. Called with mu held.
func (r *Runtime) newString(s string) uint64 { return uint64(r.autorelease(r.make("NSString", &s))) }

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// perform does what a message says. Called with mu held.
func (r *Runtime) perform(o *object, m *objc.Message) uint64 {
	a := m.Args
	switch m.Sel {
	case objc.New:
		return uint64(r.make(o.class[1:], newState(o.class[1:])).id)
	case objc.Alloc:
		return uint64(r.make(o.class[1:], new(string)).id)
	case objc.Retain:
		o.refs++
		return uint64(o.id)
	case objc.Release:
		r.release(o)
		return 0
	case objc.RespondsToSelector:
		return truth(r.understands(o, objc.Selector(a[0].Words[0])))
	case objc.InitWithBytes:
		const utf8 = 4
		if int(a[1].Words[0]) > a[0].Bytes || a[2].Words[0] != utf8 {
			r.problem("a string of %d bytes of %d, encoding %d", a[1].Words[0], a[0].Bytes, a[2].Words[0])
		}
		*o.is.(*string) = string(bytesOf(&a[0], a[1].Words[0]))
		return uint64(o.id)
	case objc.UTF8String:
		return r.text(*o.is.(*string))
	case objc.Count:
		return uint64(len(o.is.([]*object)))
	case objc.ObjectAtIndex:
		all := o.is.([]*object)
		if a[0].Words[0] >= uint64(len(all)) {
			r.problem("NSRangeException: index %d of %d objects", a[0].Words[0], len(all))
		}
		return uint64(all[a[0].Words[0]].id)
	case objc.Code:
		return uint64(o.is.(*problemOf).code)
	case objc.LocalizedDescription:
		return r.newString(o.is.(*problemOf).text)
	}
	switch o.class {
	case "MTLDevice":
		return r.performDevice(o, m)
	case "MTLArchitecture":
		return r.newString("applegpu_g13g")
	case "MTLCommandQueue", "MTLCommandBuffer":
		return r.performBuffer(o, m)
	case "MTLComputeCommandEncoder":
		return r.performEncoder(o, o.is.(*encoder), m)
	case "MTLLibrary", "MTLCompileOptions", "MTLFunctionConstantValues", "MTLComputePipelineDescriptor",
		"MTLComputePipelineState":
		return r.performLibrary(o, m)
	case "+NSURL", "+MTLCaptureManager", "MTLCaptureManager", "MTLCaptureDescriptor":
		return r.performCapture(o, m)
	}
	r.problem("%s of %s is not there", objc.Rows[m.Sel].Name, o.class)
	return 0
}

// newState is what a new object of a class is.
func newState(class string) any {
	switch class {
	case "MTLCompileOptions":
		return &compileOptions{fast: true, mode: mathFast}
	case "MTLComputePipelineDescriptor":
		return &descriptor{}
	case "MTLFunctionConstantValues":
		return &constants{}
	case "MTLCaptureDescriptor":
		return &captureOrder{}
	}
	return nil
}

// performDevice does what a message to the GPU says. Called with mu held.
func (r *Runtime) performDevice(o *object, m *objc.Message) uint64 {
	a := m.Args
	switch m.Sel {
	case objc.DeviceName:
		return r.newString(r.machine.Name)
	case objc.Architecture:
		return uint64(r.autorelease(r.make("MTLArchitecture", nil)))
	case objc.SupportsFamily:
		return truth(int64(a[0].Words[0]) <= r.machine.Family)
	case objc.HasUnifiedMemory:
		return truth(!r.machine.Split)
	case objc.RecommendedMaxWorkingSetSize:
		return r.machine.Memory
	case objc.MaxBufferLength:
		return r.machine.MostBuffer
	case objc.NewCommandQueue:
		return uint64(r.newQueue(int(a[0].Words[0])).id)
	case objc.NewBufferWithBytes:
		n := a[1].Words[0]
		if n == 0 || int(n) > a[0].Bytes || a[2].Words[0] != 0 {
			r.problem("a buffer with %d bytes of %d, options %d", n, a[0].Bytes, a[2].Words[0])
		}
		return uint64(r.make("MTLBuffer", &buffer{append([]byte(nil), bytesOf(&a[0], n)...)}).id)
	case objc.NewBufferWithBytesNoCopy:
		const page = 16 << 10
		n := a[1].Words[0]
		if uintptr(a[0].Pointer)%page != 0 || n%page != 0 || n == 0 || int(n) > a[0].Bytes || a[2].Words[0] != 0 {
			r.problem("a buffer of %d bytes at %v, options %d: it has to be whole pages", n, a[0].Pointer, a[2].Words[0])
		}
		if r.machine.Refuses || n > r.machine.MostBuffer {
			return 0
		}
		return uint64(r.make("MTLBuffer", &buffer{bytesOf(&a[0], n)}).id)
	case objc.NewLibraryWithSource:
		return r.newLibrary(m)
	case objc.NewComputePipelineState:
		return r.newPipeline(m)
	}
	r.problem("%s of the device is not there", objc.Rows[m.Sel].Name)
	return 0
}

// buffer is memory of kernels.
type buffer struct{ bytes []byte }
