package fake

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/mlxlua/mlxlua/internal/goroutine"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

// Machine is the Mac that a Runtime is.
type Machine struct {
	Version    string // of macOS
	Translated bool
	NoDefault  bool // the default device is nil, as in programs without a screen
	NoDevice   bool
	Name       string
	Family     int64 // the newest that the GPU is of: 1007 is the M1's
	Split      bool  // the GPU has memory of its own
	Memory     uint64
	MostBuffer uint64
	Threads    int  // that a pipeline permits, where nobody asks for more; 0: 1024
	Refuses    bool // buffers on memory that it did not allocate
	Capture    bool // started with MTL_CAPTURE_ENABLED
}

// M1 is a Mac with an M1 and 8 GiB.
var M1 = Machine{Version: "15.1", Name: "Apple M1", Family: 1007, Memory: 5 << 30, MostBuffer: 4 << 30}

// Runtime is objc.Runtime without a Mac.
type Runtime struct {
	machine Machine

	mu       sync.Mutex
	changed  *sync.Cond
	next     objc.Object
	objects  map[objc.Object]*object
	classes  map[string]objc.Object
	pools    map[uintptr][]*pool // by goroutine
	problems []string
	device   *object
	r        *rand.Rand
	fail     []failure
	held     map[uint64][]byte // texts that C code has the address of
	launches int
	captured string
	options  []compileOptions // of all texts
}

// failure is what a command buffer is to fail with.
type failure struct {
	code int64
	text string
}

// pool is an autorelease pool.
type pool struct {
	token   objc.Pool
	objects []*object
}

// object is an object, or a class.
type object struct {
	id    objc.Object
	class string // of which it is; of a class: "+" and its name
	refs  int
	gone  func() // what is to be looked at when the last reference is given back
	is    any    // what it is
}

var _ objc.Runtime = (*Runtime)(nil)

// New makes a runtime on a machine.
func New(m Machine) *Runtime {
	r := &Runtime{machine: m, next: 0x10000, objects: map[objc.Object]*object{}, classes: map[string]objc.Object{},
		pools: map[uintptr][]*pool{}, r: rand.New(rand.NewPCG(7, 9)), held: map[uint64][]byte{}}
	r.changed = sync.NewCond(&r.mu)
	return r
}

// Problems are what a Mac would not have put up with, so far.
func (r *Runtime) Problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.problems)
}

// Leaks are the objects that somebody still has to release.
func (r *Runtime) Leaks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, o := range r.objects {
		if o.refs > 0 && !strings.HasPrefix(o.class, "+") && o.class != "MTLCaptureManager" {
			all = append(all, fmt.Sprintf("%s %#x: %d", o.class, o.id, o.refs))
		}
	}
	slices.Sort(all)
	return all
}

// Fail has the next command buffer fail, with an NSError of Metal's.
func (r *Runtime) Fail(code int64, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = append(r.fail, failure{code, text})
}

// Launches counts the launches of kernels.
func (r *Runtime) Launches() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.launches
}

// problem notes a misuse, and ends the goroutine's work. Called with mu held.
func (r *Runtime) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.problems = append(r.problems, text)
	panic("[fake] " + text)
}

// make makes an object with one reference. Called with mu held.
func (r *Runtime) make(class string, is any) *object {
	r.next += 16
	o := &object{id: r.next, class: class, refs: 1, is: is}
	r.objects[o.id] = o
	return o
}

// release gives a reference back. Called with mu held.
func (r *Runtime) release(o *object) {
	if o.refs--; o.refs < 0 {
		r.problem("%s %#x is released once too often", o.class, o.id)
	}
	if o.refs == 0 && o.gone != nil {
		o.gone()
	}
}

// find is the object of a reference, which is alive. Called with mu held.
func (r *Runtime) find(id objc.Object, what string) *object {
	o := r.objects[id]
	switch {
	case o == nil:
		r.problem("%s: %#x is no object", what, id)
	case o.refs <= 0:
		r.problem("%s: %s %#x was deallocated", what, o.class, id)
	}
	return o
}

// autorelease leaves a reference to the innermost pool of the thread. Called with mu held.
func (r *Runtime) autorelease(o *object) objc.Object {
	pools := r.pools[goroutine.ID()]
	if len(pools) == 0 {
		r.problem("%s is autoreleased with no pool in place: it leaks", o.class)
	}
	p := pools[len(pools)-1]
	p.objects = append(p.objects, o)
	return o.id
}

// Push begins a pool of this goroutine, which keeps its thread.
func (r *Runtime) Push() objc.Pool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next += 16
	id := goroutine.ID()
	r.pools[id] = append(r.pools[id], &pool{token: objc.Pool(r.next)})
	return objc.Pool(r.next)
}

// Pop ends a pool, which has to be the last that this goroutine began.
func (r *Runtime) Pop(token objc.Pool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := goroutine.ID()
	pools := r.pools[id]
	if len(pools) == 0 || pools[len(pools)-1].token != token {
		r.problem("a pool is popped that is not the last of its thread")
	}
	if r.pools[id] = pools[:len(pools)-1]; len(pools) == 1 {
		delete(r.pools, id)
	}
	for _, o := range pools[len(pools)-1].objects {
		r.release(o)
	}
}

// Class is a class, of those that the driver uses.
func (r *Runtime) Class(name string) objc.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains([]string{"NSString", "NSURL", "MTLCompileOptions", "MTLComputePipelineDescriptor",
		"MTLFunctionConstantValues", "MTLCaptureManager", "MTLCaptureDescriptor"}, name) {
		return 0
	}
	if r.classes[name] == 0 {
		r.classes[name] = r.make("+"+name, nil).id
	}
	return r.classes[name]
}

// DefaultDevice is the machine's GPU.
func (r *Runtime) DefaultDevice() objc.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine.NoDevice || r.machine.NoDefault {
		return 0
	}
	return r.gpu()
}

// gpu is a reference to the GPU. Called with mu held.
func (r *Runtime) gpu() objc.Object {
	if r.device == nil || r.device.refs == 0 {
		r.device = r.make("MTLDevice", nil)
	} else {
		r.device.refs++
	}
	return r.device.id
}

// AllDevices is an array of the machine's GPUs.
func (r *Runtime) AllDevices() objc.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*object
	if !r.machine.NoDevice {
		all = append(all, r.objects[r.gpu()])
	}
	array := r.make("NSArray", all)
	array.gone = func() {
		for _, o := range all {
			r.release(o)
		}
	}
	return array.id
}

// System is the machine's.
func (r *Runtime) System() objc.System {
	return objc.System{Version: r.machine.Version, Translated: r.machine.Translated}
}

// Text copies a text that a UTF8String led to.
func (r *Runtime) Text(address uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if address == 0 {
		return ""
	}
	b := r.held[address]
	if b == nil {
		r.problem("%#x is no text", address)
	}
	return string(b[:len(b)-1])
}

// text is a text that ends with a zero byte, for as long as the runtime lives. Called with mu held.
func (r *Runtime) text(s string) uint64 {
	b := append([]byte(s), 0)
	address := uint64(uintptr(unsafe.Pointer(&b[0])))
	r.held[address] = b
	return address
}

// SendDouble sends a message whose result is a double.
func (r *Runtime) SendDouble(m *objc.Message) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.check(m)
	if objc.Rows[m.Sel].Types[0] != 'd' {
		r.problem("%s gives no double", objc.Rows[m.Sel].Name)
	}
	b := o.is.(*commandBuffer)
	if b.status < statusCompleted {
		r.problem("the times of a command buffer that has not ended are asked for")
	}
	if m.Sel == objc.GPUStartTime {
		return b.start
	}
	return b.end
}

// Send sends a message.
func (r *Runtime) Send(m *objc.Message) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.check(m)
	row := &objc.Rows[m.Sel]
	if row.Types[0] == 'd' {
		r.problem("%s gives a double", row.Name)
	}
	return r.perform(o, m)
}

// check holds a message against the table: the receiver has such a message, the arguments have its types, and objects
// among them are alive. Called with mu held.
func (r *Runtime) check(m *objc.Message) *object {
	row := &objc.Rows[m.Sel]
	o := r.find(m.To, row.Name)
	if !r.understands(o, m.Sel) {
		r.problem("%s does not understand %s, which is %s's", o.class, row.Name, row.Of)
	}
	types := strings.Fields(row.Types)[1:]
	if len(types) != len(m.Args) {
		r.problem("%s takes %d arguments, and got %d", row.Name, len(types), len(m.Args))
	}
	for i, want := range types {
		a := &m.Args[i]
		kind := map[string]objc.Kind{"@": objc.KindObject, "@?": objc.KindObject, "Q": objc.KindUnsigned,
			"q": objc.KindSigned, "Z": objc.KindBool, ":": objc.KindSelector, "^v": objc.KindBytes, "^@": objc.KindOut,
			"{MTLSize=QQQ}": objc.KindSize}[want]
		if a.Kind != kind {
			r.problem("argument %d of %s is of kind %q, and the type is %s", i, row.Name, a.Kind, want)
		}
		switch {
		case want == "@?" && a.Words[0] != 0:
			r.problem("argument %d of %s is a block", i, row.Name)
		case want == "@":
			r.find(objc.Object(a.Words[0]), row.Name)
		case want == "Z" && a.Words[0] > 1:
			r.problem("argument %d of %s is no truth value: %d", i, row.Name, a.Words[0])
		case want == "^v" && (a.Pointer == nil || a.Bytes <= 0):
			r.problem("argument %d of %s leads nowhere", i, row.Name)
		case want == "^@" && a.Pointer != nil && *(*objc.Object)(a.Pointer) != 0:
			r.problem("argument %d of %s is a place that holds something", i, row.Name)
		}
	}
	return o
}

// labelled are what setLabel: is understood by.
var labelled = []string{"MTLCommandBuffer", "MTLComputePipelineDescriptor"}

// understands reports whether an object has a message.
func (r *Runtime) understands(o *object, s objc.Selector) bool {
	row := &objc.Rows[s]
	class := strings.HasPrefix(o.class, "+")
	switch {
	case row.Since > majorOf(r.machine.Version):
		return false
	case row.Of == "NSObject":
		return !class
	case row.Of == "+NSObject":
		return class
	case s == objc.SetLabel:
		return slices.Contains(labelled, o.class)
	}
	return row.Of == o.class
}

func majorOf(version string) (n int) {
	_, _ = fmt.Sscanf(version, "%d", &n)
	return n
}
