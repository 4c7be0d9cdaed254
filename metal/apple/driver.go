// Package apple is the driver of Apple's GPUs. It hands MSL text through to Metal: metal/front reads the same text only
// to say what the parameters of kernels are, and what is wrong with them.
//
// The driver's logic stands on objc.Runtime, which open_darwin.go takes from macOS by purego. The tests have another
// one, metal/apple/fake, whose Metal runs kernels on the processor. Nothing here has run on Apple's hardware:
// docs/metal.md.
package apple

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
	"github.com/mlxlua/mlxlua/metal/front"
)

// Version names what the driver makes of texts: part of every library key, with what Metal is there.
const Version = "apple-1"

// Driver is a GPU as a metal.Driver.
type Driver struct {
	rt      objc.Runtime
	device  objc.Object
	info    metal.Info
	compile front.Compiler
	spare   sync.Pool // of *objc.Caller
	own     transfers

	capturing atomic.Bool

	lost    atomic.Pointer[lostError]
	ignored atomic.Int32 // command buffers one after another

	mu     sync.Mutex
	queues map[int]*queue
	memory map[*allocation]struct{}
	held   map[*holding]struct{} // of modules
	closed bool
	busy   sync.WaitGroup // command buffers that were submitted, and calls under way
}

var (
	_ metal.Driver         = (*Driver)(nil)
	_ metal.HostMapper     = (*Driver)(nil)
	_ metal.BandwidthMeter = (*Driver)(nil)
	_ metal.Capturer       = (*Driver)(nil)
)

// errClosed is the error of calls after Close.
var errClosed = errors.New("[metal] the driver is closed")

// lostError is why nothing of a GPU can be used any more.
type lostError struct{ cause error }

// Error says what happened, and what is left.
func (e *lostError) Error() string {
	return fmt.Sprintf("[metal] the device is lost, and its arrays with it, until the program starts again: %v", e.cause)
}

// What Metal's numbers mean.
const (
	familyApple7    = 1007      // the M1's
	languageVersion = 3<<16 | 1 // of the texts: 3.1, the first with bfloat
	storageShared   = 0
	mostBuffers     = 64 // command buffers of a queue that have not ended
	pageBytes       = 16 << 10
)

// New makes a driver of a runtime's GPU. It fails, and names the GPU, where that is none the driver was made for: one
// of Apple's from the M1 on, in a Mac with macOS 14 or later.
func New(rt objc.Runtime) (*Driver, error) {
	d := &Driver{rt: rt, compile: front.Compile, queues: map[int]*queue{}, memory: map[*allocation]struct{}{},
		held: map[*holding]struct{}{}}
	d.spare.New = func() any { return &objc.Caller{Runtime: rt} }
	var err error
	d.with(func(c *objc.Caller) { err = d.open(c) })
	if err != nil {
		return nil, fmt.Errorf("[metal] %w", err)
	}
	return d, nil
}

// with calls f with a Caller, within an autorelease pool.
func (d *Driver) with(f func(c *objc.Caller)) {
	c := d.spare.Get().(*objc.Caller)
	c.Pooled(func() { f(c) })
	d.spare.Put(c)
}

// open finds the GPU, and what it is.
func (d *Driver) open(c *objc.Caller) error {
	system := d.rt.System()
	major, _ := strconv.Atoi(strings.SplitN(system.Version, ".", 2)[0])
	switch {
	case system.Translated:
		return errors.New("this program is for Intel's processors, and runs translated: one for arm64 can use the GPU")
	case major < objc.Least:
		return fmt.Errorf("macOS %s: kernels need macOS %d, whose Metal has bfloat", system.Version, objc.Least)
	}
	gpu := d.rt.DefaultDevice()
	if gpu == 0 { // in a program without a screen
		all := d.rt.AllDevices()
		if c.Send(all, objc.Count) > 0 {
			gpu = c.Object(c.Object(all, objc.ObjectAtIndex, objc.Num(0)), objc.Retain)
		}
		c.Release(all)
	}
	if gpu == 0 {
		return errors.New("no GPU was found")
	}
	name := c.Text(c.Object(gpu, objc.DeviceName))
	if !c.Is(gpu, objc.SupportsFamily, objc.Signed(familyApple7)) || !c.Is(gpu, objc.HasUnifiedMemory) {
		c.Release(gpu)
		return fmt.Errorf("%s: kernels need a GPU of Apple's, from the M1 on, which shares the processor's memory", name)
	}
	arch := c.Text(c.Object(c.Object(gpu, objc.Architecture), objc.ArchitectureName))
	memory, largest := int64(c.Send(gpu, objc.RecommendedMaxWorkingSetSize)), int64(c.Send(gpu, objc.MaxBufferLength))
	if memory <= 0 || largest <= 0 {
		c.Release(gpu)
		return fmt.Errorf("%s: Metal says that it has %d bytes, in buffers of %d", name, memory, largest)
	}
	d.device = gpu
	d.info = metal.Info{
		Name: name, Kind: "metal", ID: "metal:0",
		Version: fmt.Sprintf("%s, macOS %s, %s, MSL 3.1", Version, system.Version, arch),
		Faults:  metal.FaultsUnchecked, Stops: metal.StopsBetween, Lanes: 32,
		Threads: coresOf(arch), Simds: simdsOfCore, Memory: memory, Limits: metal.MetalLimits(largest),
		Pace: metal.Pace{Commands: 40, First: 16, Idle: 16, Bytes: 64 << 20, IdleBytes: 4 << 20, Pending: 8, Least: 3,
			PendingBytes: memory / 8},
	}
	return nil
}

// simdsOfCore is how many SIMD-groups a core of the GPU keeps at once: 1,024 threads of a kernel of many registers.
const simdsOfCore = 32

// coresOf is about how many cores a GPU has, of which Metal does not tell: by the last letter of its architecture, such
// as applegpu_g16s. It matters to how work is divided, and to no result.
func coresOf(arch string) int {
	switch {
	case strings.HasSuffix(arch, "d"): // Ultra
		return 64
	case strings.HasSuffix(arch, "s"): // Max
		return 32
	}
	return 10
}

// Info describes the GPU.
func (d *Driver) Info() metal.Info { return d.info }

// CopyBandwidth is the bytes a second that the slowest GPU of this kind copies, the M1's: of 68 GB/s, half for each
// way.
func (d *Driver) CopyBandwidth() float64 { return 30e9 }

// call does something with Metal, unless the driver is closed.
func (d *Driver) call(f func(c *objc.Caller) error) (err error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return errClosed
	}
	d.busy.Add(1)
	d.mu.Unlock()
	defer d.busy.Done()
	if lost := d.lost.Load(); lost != nil {
		return lost
	}
	d.with(func(c *objc.Caller) { err = f(c) })
	return err
}

// Close waits for what was submitted, and gives back everything. Closing again does nothing.
func (d *Driver) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.busy.Wait()
	var err error
	d.with(func(c *objc.Caller) {
		for h := range d.held {
			c.Release(h.take()...)
		}
		for _, q := range d.queues {
			c.Release(q.object)
		}
		for a := range d.memory {
			err = errors.Join(err, a.release(c))
		}
		c.Release(d.device)
	})
	return err
}
