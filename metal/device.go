package metal

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// DialectVersion counts the changes of meaning of the MSL dialect that msl accepts; it is part of every library key.
const DialectVersion = 1

// RetainEnv is the environment variable that, set to "0" when a device is made, switches off the retention of bound
// buffers for bisection: a buffer then goes back to the pool when its last holder lets go of it, even if a command
// buffer that was encoded or runs still refers to it.
const RetainEnv = "MLX_METAL_RETAIN_BOUND_BUFFERS"

// ValidateEnv is the environment variable that, set to anything but "" and "0" when a device is made, switches the
// validation layer on from the start (see SetValidate).
const ValidateEnv = "MLXLUA_VALIDATE"

// DeviceOptions are the settings of NewDevice; the zero value is right for programs.
type DeviceOptions struct {
	// MemoryLimit is the most bytes of driver memory; 0 means 80 % of Info.Memory.
	MemoryLimit int64
	// CacheLimit is the most bytes kept for reuse; 0 means a quarter of the memory limit, a negative number none.
	CacheLimit int64
	// Validate switches the validation layer on from the start (see SetValidate), as ValidateEnv does.
	Validate bool
	// LibraryCap is how many libraries stay cached; 0 means 1024.
	LibraryCap int
	// LibraryBytes is how many bytes the cached libraries may take; 0 means 256 MiB.
	LibraryBytes int64
	// Collect runs one garbage collection to its end; nil means runtime.GC. Tests put theirs here.
	Collect func()
	// Now is the clock that paces collections, and Heap the bytes of the heap that they look at; nil means time.Now and
	// the runtime's own figure. Tests put theirs here.
	Now  func() time.Time
	Heap func() int64
	// Ablate brings bugs back on purpose, so that tests can prove that they would be seen. Tests only.
	Ablate Ablations
}

// Ablations are switches for tests: each removes one of the device model's defences.
type Ablations struct {
	// DropRAW, DropWAR and DropWAW leave out the barriers that are due to a read after a write, a write after a read,
	// and a write after a write.
	DropRAW, DropWAR, DropWAW bool
	// NoRetain is RetainEnv=0.
	NoRetain bool
	// KeyByName makes the source's label the only key of a library.
	KeyByName bool
	// ClearOnMismatch, with KeyByName, frees a cached library as soon as its name comes with another source, though
	// command buffers that use it may be pending.
	ClearOnMismatch bool
	// Hash replaces SHA-256, to force collisions.
	Hash func([]byte) Key
}

// Device is a driver with what every back end shares: the buffer pool and its budget, the library cache, command
// buffers with hazards and retention, and the validation layer. Its methods may be called from any goroutine.
type Device struct {
	driver   Driver
	info     Info
	threads  atomic.Int64 // Info.Threads, which SetThreads changes
	pool     *pool
	libs     *libraryCache
	validate atomic.Bool
	retain   bool
	ablate   Ablations
	closed   atomic.Bool
	ids      atomic.Uint64 // of command buffers
	queues   sync.Map      // *submissions by queue
	kept     keptSteps
}

// NewDevice makes a device of a driver, which it owns from then on.
func NewDevice(d Driver, opt DeviceOptions) (*Device, error) {
	if d == nil {
		return nil, fmt.Errorf("[device] no driver")
	}
	if opt.MemoryLimit < 0 {
		return nil, fmt.Errorf("[device] the memory limit is negative: %d", opt.MemoryLimit)
	}
	if opt.LibraryCap < 0 {
		return nil, fmt.Errorf("[device] the number of cached libraries is negative: %d", opt.LibraryCap)
	}
	if opt.LibraryBytes < 0 {
		return nil, fmt.Errorf("[device] the bytes of cached libraries are negative: %d", opt.LibraryBytes)
	}
	info := d.Info()
	if info.Pace == (Pace{}) {
		info.Pace = DefaultPace
	}
	dev := &Device{driver: d, info: info, ablate: opt.Ablate}
	dev.threads.Store(int64(info.Threads))
	dev.retain = !opt.Ablate.NoRetain && os.Getenv(RetainEnv) != "0"
	env := os.Getenv(ValidateEnv)
	dev.validate.Store(opt.Validate || env != "" && env != "0")
	dev.pool = newPool(dev, opt)
	dev.libs = newLibraryCache(dev, opt)
	return dev, nil
}

// Info describes the device. Only SetThreads changes it.
func (d *Device) Info() Info {
	i := d.info
	i.Threads = int(d.threads.Load())
	return i
}

// SetThreads says on how many threads the device runs kernels, from the next command on, and returns on how many
// before. No result depends on it. There are between 1 and as many as the device was opened with; a device whose
// kernels do not run on the host's processors is an error.
func (d *Device) SetThreads(n int) (before int, err error) {
	t, ok := d.driver.(Threader)
	if !ok {
		return 0, fmt.Errorf("[set_threads] kernels of the device %s do not run on the host's processors", d.info.Name)
	}
	if most := d.info.Threads; n < 1 || n > most {
		return 0, fmt.Errorf("[set_threads] %d threads: it is between 1 and the %d that the device was opened with", n, most)
	}
	before = int(d.threads.Swap(int64(n)))
	t.SetThreads(n)
	return before, nil
}

// leastBandwidth is what a device copies in a second whose driver does not know.
const leastBandwidth = 1 << 30

// CopyBandwidth is about how many bytes a second a kernel copies.
func (d *Device) CopyBandwidth() float64 {
	if m, ok := Capability[BandwidthMeter](d); ok {
		return max(m.CopyBandwidth(), leastBandwidth)
	}
	return leastBandwidth
}

// Driver is the device's driver; see Capability for its optional interfaces.
func (d *Device) Driver() Driver { return d.driver }

// Retains reports whether command buffers retain what is bound to them: always, but for tests and RetainEnv.
func (d *Device) Retains() bool { return d.retain }

// Capability returns the device's driver as the optional interface T, if it has it.
func Capability[T any](d *Device) (T, bool) {
	t, ok := d.driver.(T)
	return t, ok
}

// SetValidate switches the validation layer on or off for the command buffers and buffers made from then on. It poisons
// freed memory, checks every reference of a command buffer before and after it runs, and proves that no barrier is
// missing; drivers check bounds, races and uninitialised reads, and run independent commands in shuffled order.
func (d *Device) SetValidate(on bool) { d.validate.Store(on) }

// Validating reports whether the validation layer is on.
func (d *Device) Validating() bool { return d.validate.Load() }

// Close waits for committed command buffers, frees all memory and closes the driver. Buffers that are still held lose
// their bytes (Bytes returns nil); their Release stays legal. Later allocations, libraries and commits are errors.
// A second Close does nothing.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.libs.close()
	d.pool.close()
	return d.driver.Close()
}

// errClosed is the error of op on a closed device.
func errClosed(op string) error { return fmt.Errorf("[%s] the device is closed", op) }

// cause is the reason why ctx is done.
func cause(ctx context.Context) error { return context.Cause(ctx) }
