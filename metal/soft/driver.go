// Package soft is the driver that runs kernels on the processor: MSL text becomes kir, kir becomes machine code
// (package jit) or is executed by package interp, and threadgroups are spread over a fixed set of workers.
package soft

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/front"
	"github.com/mlxlua/mlxlua/metal/jit"
)

// Version names the toolchain: part of every library key. It changes when the meaning of a compiled text does.
const Version = "soft-2"

// Options choose how a Driver runs. The zero value is right for everything but tests.
type Options struct {
	// Workers is how many threadgroups run at once; 0 means one for each processor.
	Workers int
	// Memory replaces the machine's memory as the device's; 0 means the smaller of the RAM and the process's limit.
	Memory int64
	// Executor is "interp" for the interpreter, or the name of a level of machine code (jit.Level.Name): "avx2" and so on;
	// "" is what the environment variable MLXLUA_JIT says (0 for the interpreter, or a name), or the best there is.
	// Where the processor lacks the level the interpreter runs kernels, for an unknown value the best there is does;
	// Info.Name says so.
	Executor string
	// Compiler replaces the MSL compiler.
	Compiler front.Compiler
	// Hidden keeps the host from addressing the device's memory, and from stopping command buffers and skipping commands,
	// as if it were a simple GPU.
	Hidden bool
	// Library computes routines (metal.Caller); nil: the device offers none.
	Library Library
}

// Library computes routines on the device's memory: what a GPU's libraries are, for devices that stand for one in
// tests.
type Library interface {
	// Offers is metal.Caller's.
	Offers(metal.Routine) bool
	// Call computes a routine that is offered. An error fails the command.
	Call(r metal.Routine, reads, writes [][]byte) error
}

// Driver is the processor as a metal.Driver.
type Driver struct {
	info    metal.Info
	compile front.Compiler
	pool    *workers
	spare   sync.Pool // of *execution

	executor executor

	mu      sync.Mutex
	queues  map[int]*queue
	memory  map[*allocation]struct{} // what Alloc gave
	hidden  bool
	closed  bool
	library Library
	busy    sync.WaitGroup // submitted command buffers
}

var (
	_ metal.Driver     = (*Driver)(nil)
	_ metal.HostMapper = (*Driver)(nil)
	_ metal.Caller     = (*Driver)(nil)
	_ metal.Threader   = (*Driver)(nil)
)

// errClosed is the error of calls after Close.
var errClosed = errors.New("[soft] the driver is closed")

// New returns a driver with its workers running; Close ends them.
func New(o Options) *Driver {
	best, why := jit.Best()
	return newDriver(o, chooseExecutor(o.Executor, os.Getenv("MLXLUA_JIT"), best, why))
}

// newDriver is New with what runs kernels.
func newDriver(o Options, e executor) *Driver {
	n := o.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	mem := o.Memory
	if mem <= 0 {
		mem = machineMemory()
	}
	if o.Compiler == nil {
		o.Compiler = front.Compile
	}
	d := &Driver{
		executor: e,
		info: metal.Info{
			Name: fmt.Sprintf("%s, %d threads, %s", processorName(), n,
				e.name), Kind: "cpu", ID: "cpu", Host: true, Version: Version, Faults: metal.FaultsPlaced,
			Stops: metal.StopsMidway, Skips: true,
			Float64: true, PairDots: e.opt.Level == jit.AVX512BF16,
			Lanes: e.lanes(), TracksWrites: true, Threads: n, Cache: processorCache(),
			Memory: mem, Limits: metal.MetalLimits(mem),
		},
		compile: o.Compiler, pool: newWorkers(n - 1), queues: map[int]*queue{}, memory: map[*allocation]struct{}{},
		hidden: o.Hidden, library: o.Library,
	}
	if d.hidden { // a GPU's command buffers run to their end
		d.info.Stops, d.info.Skips = metal.StopsNever, false
	}
	d.spare.New = func() any { return newExecution(d) }
	return d
}

// Offers reports whether the library that the driver was given computes a routine.
func (d *Driver) Offers(r metal.Routine) bool { return d.library != nil && d.library.Offers(r) }

// Info describes the processor, with the threads that the driver was opened with.
func (d *Driver) Info() metal.Info { return d.info }

// SetThreads says how many threadgroups run at once, from the next launch on.
func (d *Driver) SetThreads(n int) { d.pool.n.Store(int32(n - 1)) }

// alignment is that of allocations: a page of Apple's processors, and enough for any vector.
const alignment = 16 << 10

// Allocations from largeMapping on begin where a large page of the system may.
const (
	largeMapping = 4 << 20
	largePage    = 2 << 20
)

// allocation is the handle of the driver's memory.
type allocation struct {
	bytes   []byte // for kernels
	mapping []byte // of the system; nil where somebody else made the memory
}

// seen is the memory as the device model sees it.
func (d *Driver) seen(a *allocation) metal.Memory {
	m := metal.Memory{Size: int64(len(a.bytes)), Host: a.bytes, Handle: a}
	if d.hidden {
		m.Host = nil
	}
	return m
}

// Alloc returns n bytes of zeroed memory outside the Go heap. The system gives pages when they are first touched.
func (d *Driver) Alloc(n int64) (metal.Memory, error) {
	if n <= 0 || n > d.info.Limits.MaxBufferBytes || int64(int(n+largePage)) != n+largePage {
		return metal.Memory{}, fmt.Errorf("[alloc] %d bytes: the limit is %d", n, d.info.Limits.MaxBufferBytes)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return metal.Memory{}, errClosed
	}
	align := alignment
	if n >= largeMapping {
		align = largePage
	}
	mapping, err := mapMemory(int(n) + align)
	if err != nil {
		return metal.Memory{}, fmt.Errorf("[alloc] %d bytes: %w", n, err)
	}
	skip := -int(addressOf(mapping)) & (align - 1)
	a := &allocation{mapping[skip : skip+int(n) : skip+int(n)], mapping}
	d.memory[a] = struct{}{}
	return d.seen(a), nil
}

// Free returns memory to the system. Memory that Alloc did not give, or that was freed before, is ignored.
func (d *Driver) Free(m metal.Memory) {
	a, ok := m.Handle.(*allocation)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ours := d.memory[a]; ours {
		delete(d.memory, a)
		unmapMemory(a.mapping)
	}
}

// CopyBandwidth is the bytes a second that this machine copies, measured once.
func (d *Driver) CopyBandwidth() float64 { return copyBandwidth() }

var copyBandwidth = sync.OnceValue(func() float64 {
	src, dst := make([]byte, 4<<20), make([]byte, 4<<20)
	copy(dst, src) // touches the pages
	start := time.Now()
	copy(dst, src)
	took := max(time.Since(start), time.Microsecond)
	return float64(len(src)) / took.Seconds()
})

// Read copies from memory.
func (d *Driver) Read(dst []byte, mem metal.Memory, offset int64) error {
	copy(dst, mem.Handle.(*allocation).bytes[offset:])
	return nil
}

// Write copies to memory.
func (d *Driver) Write(mem metal.Memory, offset int64, src []byte) error {
	copy(mem.Handle.(*allocation).bytes[offset:], src)
	return nil
}

// MapHost makes memory outside the Go heap memory of the device: it is, as kernels address what the host addresses.
func (d *Driver) MapHost(b []byte) (metal.Memory, int64, error) {
	if d.hidden {
		return metal.Memory{}, 0, metal.ErrNotMapped
	}
	return d.seen(&allocation{bytes: b}), 1, nil
}

// UnmapHost does nothing.
func (d *Driver) UnmapHost(metal.Memory) {}

// Close waits for submitted work, then frees all memory and ends the workers. Closing again does nothing.
func (d *Driver) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.busy.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for a := range d.memory {
		errs = append(errs, unmapMemory(a.mapping))
	}
	d.memory = nil
	d.pool.close()
	return errors.Join(errs...)
}
