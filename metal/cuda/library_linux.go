//go:build syslibs && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/mlxlua/mlxlua/metal/front"
)

// Open makes a driver of a card, numbered from 0. The library is opened for good, once.
func Open(index int) (*Driver, error) {
	lib, err := openLibrary(index)
	if err != nil {
		return nil, fmt.Errorf("[cuda:%d] %w", index, err)
	}
	return newDriver(lib, index, front.Compile)
}

// Functions of libcuda's, by their places in functions.
const (
	fnInit = iota
	fnDriverGetVersion
	fnDeviceGetCount
	fnDeviceGet
	fnDeviceGetName
	fnDeviceGetAttribute
	fnDeviceTotalMem
	fnPrimaryCtxRetain
	fnPrimaryCtxRelease
	fnCtxSetCurrent
	fnMemGetInfo
	fnMemAlloc
	fnMemFree
	fnMemHostAlloc
	fnMemFreeHost
	fnMemHostGetDevicePointer
	fnMemcpyHtoDAsync
	fnMemcpyDtoHAsync
	fnMemcpyDtoDAsync
	fnMemcpyPeerAsync
	fnDeviceCanAccessPeer
	fnCtxEnablePeerAccess
	fnMemsetD8Async
	fnMemsetD32Async
	fnStreamCreate
	fnStreamDestroy
	fnStreamWaitEvent
	fnEventCreate
	fnEventDestroy
	fnEventRecord
	fnEventQuery
	fnEventSynchronize
	fnEventElapsedTime
	fnModuleLoadDataEx
	fnModuleUnload
	fnModuleGetFunction
	fnFuncSetAttribute
	fnLaunchKernel
	fnGraphCreate
	fnGraphAddKernelNode
	fnGraphInstantiate
	fnGraphSetParams
	fnGraphLaunch
	fnGraphExecDestroy
	fnGraphDestroy
	fnGetErrorString
	numFunctions
)

var functionNames = [numFunctions]string{
	"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
	"cuDeviceTotalMem_v2", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent",
	"cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuMemHostGetDevicePointer_v2",
	"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyPeerAsync", "cuDeviceCanAccessPeer",
	"cuCtxEnablePeerAccess", "cuMemsetD8Async",
	"cuMemsetD32Async", "cuStreamCreate", "cuStreamDestroy_v2", "cuStreamWaitEvent", "cuEventCreate", "cuEventDestroy_v2",
	"cuEventRecord", "cuEventQuery", "cuEventSynchronize", "cuEventElapsedTime", "cuModuleLoadDataEx", "cuModuleUnload",
	"cuModuleGetFunction", "cuFuncSetAttribute", "cuLaunchKernel", "cuGraphCreate", "cuGraphAddKernelNode",
	"cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams", "cuGraphLaunch", "cuGraphExecDestroy",
	"cuGraphDestroy", "cuGetErrorString",
}

// sonames are what NVIDIA's driver calls its library. Others of the name libcuda.so may be stubs of a toolkit's.
var sonames = []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}

// libcuda is the library, once it was opened.
var libcuda struct {
	sync.Once
	functions [numFunctions]uintptr
	version   int32
	cards     int32
	err       error
}

func initLibrary() {
	l := &libcuda
	var handle uintptr
	for _, name := range sonames {
		var err error
		if handle, err = purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL); err == nil {
			break
		}
		if l.err == nil {
			l.err = fmt.Errorf("NVIDIA's driver is not installed: %w", err)
		}
	}
	if handle == 0 {
		return
	}
	l.err = nil
	for i, name := range functionNames {
		if l.functions[i], l.err = purego.Dlsym(handle, name); l.err != nil {
			l.err = fmt.Errorf("NVIDIA's driver is too old: %w", l.err)
			return
		}
	}
	if l.err = do(fnInit, 0); l.err != nil {
		return
	}
	if l.err = do(fnDriverGetVersion, uintptr(unsafe.Pointer(&l.version))); l.err != nil {
		return
	}
	l.err = do(fnDeviceGetCount, uintptr(unsafe.Pointer(&l.cards)))
}

// do calls a function.
//
//go:uintptrescapes
func do(fn int, args ...uintptr) error {
	rc, _, _ := purego.SyscallN(libcuda.functions[fn], args...)
	if int32(rc) == 0 {
		return nil
	}
	return failure(fn, int(int32(rc)))
}

// failure is the error of a call that returned a code.
func failure(fn, code int) error {
	e := &callError{call: functionNames[fn], code: code, text: "unknown error"}
	var text *byte
	purego.SyscallN(libcuda.functions[fnGetErrorString], uintptr(code), uintptr(unsafe.Pointer(&text)))
	if text != nil {
		e.text = cString(unsafe.Slice(text, 1<<10))
	}
	return e
}

// cString is what comes before the first zero byte.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// library is libcuda for one card.
type library struct {
	device  int32
	context uintptr
	card    properties

	mu      sync.Mutex
	graphs  map[graph]*launchGraph
	reached map[int32]bool // cards whose memory this one may address, or never will
}

var _ api = (*library)(nil)

func openLibrary(index int) (*library, error) {
	libcuda.Do(initLibrary)
	switch {
	case libcuda.err != nil:
		return nil, libcuda.err
	case libcuda.cards == 0:
		return nil, fmt.Errorf("there is no GPU")
	case index >= int(libcuda.cards):
		return nil, fmt.Errorf("there is no GPU of this number: there are %d", libcuda.cards)
	}
	l := &library{}
	if err := do(fnDeviceGet, uintptr(unsafe.Pointer(&l.device)), uintptr(index)); err != nil {
		return nil, err
	}
	name := make([]byte, 256)
	if err := do(fnDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(l.device)); err != nil {
		return nil, err
	}
	var memory uint64
	if err := do(fnDeviceTotalMem, uintptr(unsafe.Pointer(&memory)), uintptr(l.device)); err != nil {
		return nil, err
	}
	l.card = properties{name: cString(name), version: int(libcuda.version), memory: int64(memory)}
	var major, minor int
	for _, a := range []struct {
		number int
		to     *int
	}{{75, &major}, {76, &minor}, {16, &l.card.processors}, {39, &l.card.resident}, {36, &l.card.memoryClock},
		{37, &l.card.memoryBusWidth}} {
		var v int32
		if err := do(fnDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), uintptr(a.number), uintptr(l.device)); err != nil {
			return nil, err
		}
		*a.to = int(v)
	}
	l.card.sm = 10*major + minor
	if err := do(fnPrimaryCtxRetain, uintptr(unsafe.Pointer(&l.context)), uintptr(l.device)); err != nil {
		return nil, err
	}
	return l, nil
}

// Enter makes the card's context that of the goroutine's thread, on which the goroutine stays.
func (l *library) Enter() error {
	runtime.LockOSThread()
	if err := do(fnCtxSetCurrent, l.context); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	return nil
}

// Leave lets the goroutine go.
func (l *library) Leave() { runtime.UnlockOSThread() }

// Properties are the card's.
func (l *library) Properties() properties { return l.card }

// Free is what nobody has of the card's memory.
func (l *library) Free() (int64, error) {
	var free, all uint64
	err := do(fnMemGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&all)))
	return int64(free), err
}

// Alloc is cuMemAlloc.
func (l *library) Alloc(n int64) (at address, err error) {
	err = do(fnMemAlloc, uintptr(unsafe.Pointer(&at)), uintptr(n))
	return at, err
}

// Release is cuMemFree.
func (l *library) Release(at address) error { return do(fnMemFree, uintptr(at)) }

// Pin is cuMemHostAlloc of memory that all cards, and their kernels, may use.
func (l *library) Pin(n int) (p pinned, err error) {
	const portable, mapped = 1, 2
	var host unsafe.Pointer
	if err := do(fnMemHostAlloc, uintptr(unsafe.Pointer(&host)), uintptr(n), portable|mapped); err != nil {
		return p, err
	}
	p.bytes = unsafe.Slice((*byte)(host), n)
	err = do(fnMemHostGetDevicePointer, uintptr(unsafe.Pointer(&p.address)), uintptr(host), 0)
	return p, err
}

// Unpin is cuMemFreeHost.
func (l *library) Unpin(p pinned) error {
	return do(fnMemFreeHost, uintptr(unsafe.Pointer(&p.bytes[0])))
}

// Load is cuModuleLoadDataEx. Its error has the compiler's words.
func (l *library) Load(text string, level int) (p program, err error) {
	const errorLog, errorLogBytes, optimization = 5, 6, 7
	source, log := append([]byte(text), 0), make([]byte, 8<<10)
	options := []int32{errorLog, errorLogBytes, optimization}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log)), uintptr(level)}
	err = do(fnModuleLoadDataEx, uintptr(unsafe.Pointer(&p)), uintptr(unsafe.Pointer(&source[0])), uintptr(len(options)),
		uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])))
	if said := cString(log); err != nil && said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return p, err
}

// Unload is cuModuleUnload.
func (l *library) Unload(p program) error { return do(fnModuleUnload, uintptr(p)) }

// Function is cuModuleGetFunction.
func (l *library) Function(p program, name string) (f function, err error) {
	b := append([]byte(name), 0)
	err = do(fnModuleGetFunction, uintptr(unsafe.Pointer(&f)), uintptr(p), uintptr(unsafe.Pointer(&b[0])))
	return f, err
}

// AllowShared is cuFuncSetAttribute.
func (l *library) AllowShared(f function, n int) error {
	const mostDynamicShared = 8
	return do(fnFuncSetAttribute, uintptr(f), mostDynamicShared, uintptr(n))
}

// NewStream is cuStreamCreate of one that the default stream has nothing to do with.
func (l *library) NewStream() (s stream, err error) {
	const nonBlocking = 1
	err = do(fnStreamCreate, uintptr(unsafe.Pointer(&s)), nonBlocking)
	return s, err
}

// EndStream is cuStreamDestroy.
func (l *library) EndStream(s stream) error { return do(fnStreamDestroy, uintptr(s)) }

// launchWords is the argument block that says where a launch's parameter is, and that of a graph's launch.
type launchWords struct {
	extra [5]uintptr
	size  uintptr
	node  nodeParams
}

// nodeParams is CUDA_KERNEL_NODE_PARAMS, as it was first.
type nodeParams struct {
	f             function
	blocks, block [3]uint32
	shared        uint32
	parameters    uintptr
	extra         uintptr
}

var launchBlocks = sync.Pool{New: func() any { return &launchWords{} }}

// wordsOf fills an argument block, which is in use as long as the launch's parameter is.
func wordsOf(l *kernelLaunch) *launchWords {
	const parameterAt, parameterBytes = 1, 2
	w := launchBlocks.Get().(*launchWords)
	w.size = uintptr(len(l.parameter))
	w.extra = [5]uintptr{parameterAt, uintptr(unsafe.Pointer(&l.parameter[0])), parameterBytes,
		uintptr(unsafe.Pointer(&w.size)), 0}
	w.node = nodeParams{f: l.f, blocks: [3]uint32{uint32(l.blocks[0]), uint32(l.blocks[1]), uint32(l.blocks[2])},
		block: [3]uint32{uint32(l.block), 1, 1}, shared: uint32(l.shared), extra: uintptr(unsafe.Pointer(&w.extra[0]))}
	return w
}

// Launch is cuLaunchKernel.
func (l *library) Launch(s stream, x *kernelLaunch) error {
	w := wordsOf(x)
	err := do(fnLaunchKernel, uintptr(x.f), uintptr(x.blocks[0]), uintptr(x.blocks[1]), uintptr(x.blocks[2]),
		uintptr(x.block), 1, 1, uintptr(x.shared), uintptr(s), 0, uintptr(unsafe.Pointer(&w.extra[0])))
	runtime.KeepAlive(x)
	launchBlocks.Put(w)
	return err
}

// launchGraph is a graph that can be launched, and what it was made of, which names its places.
type launchGraph struct {
	exec, graph uintptr
	nodes       []uintptr
}

// NewGraph is cuGraphInstantiate of kernel nodes in a row.
func (l *library) NewGraph(all []kernelLaunch) (_ graph, err error) {
	g := &launchGraph{nodes: make([]uintptr, len(all))}
	if err := do(fnGraphCreate, uintptr(unsafe.Pointer(&g.graph)), 0); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, do(fnGraphDestroy, g.graph))
		}
	}()
	for i := range all {
		var before *uintptr
		n := uintptr(0)
		if i > 0 {
			before, n = &g.nodes[i-1], 1
		}
		w := wordsOf(&all[i])
		err := do(fnGraphAddKernelNode, uintptr(unsafe.Pointer(&g.nodes[i])), g.graph, uintptr(unsafe.Pointer(before)), n,
			uintptr(unsafe.Pointer(&w.node)))
		launchBlocks.Put(w)
		if err != nil {
			return 0, err
		}
	}
	if err := do(fnGraphInstantiate, uintptr(unsafe.Pointer(&g.exec)), g.graph, 0); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.graphs == nil {
		l.graphs = map[graph]*launchGraph{}
	}
	l.graphs[graph(g.exec)] = g
	return graph(g.exec), nil
}

func (l *library) graphOf(g graph) *launchGraph {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.graphs[g]
}

// Change is cuGraphExecKernelNodeSetParams.
func (l *library) Change(g graph, i int, x *kernelLaunch) error {
	w := wordsOf(x)
	err := do(fnGraphSetParams, uintptr(g), l.graphOf(g).nodes[i], uintptr(unsafe.Pointer(&w.node)))
	runtime.KeepAlive(x)
	launchBlocks.Put(w)
	return err
}

// LaunchGraph is cuGraphLaunch.
func (l *library) LaunchGraph(s stream, g graph) error {
	return do(fnGraphLaunch, uintptr(g), uintptr(s))
}

// EndGraph is cuGraphExecDestroy, and cuGraphDestroy.
func (l *library) EndGraph(g graph) error {
	x := l.graphOf(g)
	l.mu.Lock()
	delete(l.graphs, g)
	l.mu.Unlock()
	return errors.Join(do(fnGraphExecDestroy, x.exec), do(fnGraphDestroy, x.graph))
}

// CopyIn is cuMemcpyHtoDAsync.
func (l *library) CopyIn(s stream, to address, from []byte) error {
	return do(fnMemcpyHtoDAsync, uintptr(to), uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)), uintptr(s))
}

// CopyOut is cuMemcpyDtoHAsync.
func (l *library) CopyOut(s stream, to []byte, from address) error {
	return do(fnMemcpyDtoHAsync, uintptr(unsafe.Pointer(&to[0])), uintptr(from), uintptr(len(to)), uintptr(s))
}

// Copy is cuMemcpyDtoDAsync.
func (l *library) Copy(s stream, to, from address, n int64) error {
	return do(fnMemcpyDtoDAsync, uintptr(to), uintptr(from), uintptr(n), uintptr(s))
}

// reach lets the card address another one's memory, where the two are linked: else copies take a detour by the host.
func (l *library) reach(o *library) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reached[o.device] {
		return
	}
	if l.reached == nil {
		l.reached = map[int32]bool{}
	}
	l.reached[o.device] = true
	var may int32
	err := do(fnDeviceCanAccessPeer, uintptr(unsafe.Pointer(&may)), uintptr(l.device), uintptr(o.device))
	if err == nil && may != 0 {
		_ = do(fnCtxEnablePeerAccess, o.context, 0) // copies work without
	}
}

// CopyPeer is cuMemcpyPeerAsync.
func (l *library) CopyPeer(s stream, to address, other api, from address, n int64) (bool, error) {
	o, ok := other.(*library)
	if !ok {
		return false, nil
	}
	l.reach(o)
	return true, do(fnMemcpyPeerAsync, uintptr(to), l.context, uintptr(from), o.context, uintptr(n), uintptr(s))
}

// Fill8 is cuMemsetD8Async.
func (l *library) Fill8(s stream, to address, n int64, v byte) error {
	return do(fnMemsetD8Async, uintptr(to), uintptr(v), uintptr(n), uintptr(s))
}

// Fill32 is cuMemsetD32Async.
func (l *library) Fill32(s stream, to address, words int64, v uint32) error {
	return do(fnMemsetD32Async, uintptr(to), uintptr(v), uintptr(words), uintptr(s))
}

// NewEvent is cuEventCreate of one whose waiting takes no processor.
func (l *library) NewEvent(timed bool) (e event, err error) {
	const blocking, untimed = 1, 2
	flags := uintptr(blocking)
	if !timed {
		flags |= untimed
	}
	err = do(fnEventCreate, uintptr(unsafe.Pointer(&e)), flags)
	return e, err
}

// EndEvent is cuEventDestroy.
func (l *library) EndEvent(e event) error { return do(fnEventDestroy, uintptr(e)) }

// Record is cuEventRecord.
func (l *library) Record(e event, s stream) error { return do(fnEventRecord, uintptr(e), uintptr(s)) }

// Wait is cuStreamWaitEvent.
func (l *library) Wait(s stream, e event) error {
	return do(fnStreamWaitEvent, uintptr(s), uintptr(e), 0)
}

// Done is cuEventQuery.
func (l *library) Done(e event) (bool, error) {
	const notReady = 600
	rc, _, _ := purego.SyscallN(libcuda.functions[fnEventQuery], uintptr(e))
	switch code := int(int32(rc)); code {
	case 0:
		return true, nil
	case notReady:
		return false, nil
	default:
		return false, failure(fnEventQuery, code)
	}
}

// Synchronize is cuEventSynchronize.
func (l *library) Synchronize(e event) error { return do(fnEventSynchronize, uintptr(e)) }

// Between is cuEventElapsedTime.
func (l *library) Between(first, last event) (float64, error) {
	var ms float32
	err := do(fnEventElapsedTime, uintptr(unsafe.Pointer(&ms)), uintptr(first), uintptr(last))
	return float64(ms), err
}

// Close gives the context back.
func (l *library) Close() error { return do(fnPrimaryCtxRelease, uintptr(l.device)) }
