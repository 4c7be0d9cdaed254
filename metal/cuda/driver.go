package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/front"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

// Version names what turns texts into machine code: part of every library key, with the version of NVIDIA's driver.
const Version = "cuda-1"

// Driver is a card as a metal.Driver.
type Driver struct {
	lib        api
	info       metal.Info
	sm         int
	compile    front.Compiler
	move       transfers
	aside      stream // for words that stop kernels: nothing else is before them
	fixed      pinned // a page of zeros, and a word that is 1
	helpers    helpers
	multiplier multiplier

	lost atomic.Pointer[lostError]

	mu     sync.Mutex
	queues map[int]*queue
	heap   heap
	closed bool
	busy   sync.WaitGroup // command buffers that were submitted, and calls under way
}

var (
	_ metal.Driver         = (*Driver)(nil)
	_ metal.Setter         = (*Driver)(nil)
	_ metal.PeerCopier     = (*Driver)(nil)
	_ metal.BandwidthMeter = (*Driver)(nil)
)

// errClosed is the error of calls after Close.
var errClosed = errors.New("[cuda] the driver is closed")

// lostError is why nothing of a card can be used any more.
type lostError struct {
	device string
	cause  error
}

// Error says what happened, and what is left.
func (e *lostError) Error() string {
	return fmt.Sprintf("[%s] the device is lost, and its arrays with it, until the program is started again: %v", e.device,
		e.cause)
}

// Unwrap is what happened.
func (e *lostError) Unwrap() error { return e.cause }

// share is the part of a card's memory, in percent, that is the device's: contexts and libraries need some.
const share = 95

// newDriver makes a driver of a card. It closes lib if it fails.
func newDriver(lib api, index int, compile front.Compiler) (d *Driver, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("[cuda:%d] %w", index, err), lib.Close())
		}
	}()
	if err := lib.Enter(); err != nil {
		return nil, err
	}
	defer lib.Leave()
	card := lib.Properties()
	d = &Driver{lib: lib, compile: compile, queues: map[int]*queue{}, heap: heap{large: map[*allocation]struct{}{}}}
	for _, sm := range ptx.Targets() {
		if sm <= card.sm {
			d.sm = sm
		}
	}
	if d.sm == 0 {
		return nil, fmt.Errorf("%s has compute capability %d.%d; kernels need 7.5", card.name, card.sm/10, card.sm%10)
	}
	memory := card.memory / 100 * share
	d.info = metal.Info{
		Name: card.name, Kind: "cuda", ID: fmt.Sprintf("cuda:%d", index), Index: index,
		Version: fmt.Sprintf("%s, driver %d.%d, sm_%d", Version, card.version/1000, card.version%1000/10, d.sm),
		Faults:  metal.FaultsPlaced, Stops: metal.StopsMidway, Skips: true, GPU: true, Lanes: 32, Threads: card.processors,
		Simds:  card.resident / 32,
		Memory: memory, Limits: metal.MetalLimits(memory),
		Pace: metal.Pace{Commands: 256, First: 64, Idle: 64, Bytes: 4 << 30, IdleBytes: 64 << 20, Pending: 16, Least: 3,
			PendingBytes: memory / 8},
	}
	if err := d.move.open(lib); err != nil {
		return nil, err
	}
	if d.aside, err = lib.NewStream(); err != nil {
		return nil, err
	}
	if d.fixed, err = lib.Pin(pageBytes + wordBytes); err != nil {
		return nil, err
	}
	clear(d.fixed.bytes)
	d.fixed.bytes[pageBytes] = 1
	return d, nil
}

const (
	pageBytes = 4096
	wordBytes = 4
)

// zeros and one are in pinned memory.
func (d *Driver) zeros(n int) []byte { return d.fixed.bytes[:n] }
func (d *Driver) one() []byte        { return d.fixed.bytes[pageBytes : pageBytes+wordBytes] }

// Info describes the card.
func (d *Driver) Info() metal.Info { return d.info }

// CopyBandwidth is what the card copies in a second by its data sheet, less what is never reached.
func (d *Driver) CopyBandwidth() float64 {
	p := d.lib.Properties()
	if p.memoryClock == 0 {
		return 1e12
	}
	return 0.45 * 2 * float64(p.memoryClock) * 1000 * float64(p.memoryBusWidth/8)
}

// checked is an error as the device model gets it, and notes that the card is lost if it is.
func (d *Driver) checked(err error) error {
	if err == nil || !isFinal(err) {
		return err
	}
	d.lost.CompareAndSwap(nil, &lostError{device: d.info.ID, cause: err})
	return d.lost.Load()
}

// call does something with the library, unless the driver is closed or the card is lost.
func (d *Driver) call(f func() error) error {
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
	err := d.lib.Enter()
	if err == nil {
		defer d.lib.Leave()
		err = f()
	}
	return d.checked(err)
}

// Alloc returns n bytes of zeroed memory.
func (d *Driver) Alloc(n int64) (metal.Memory, error) {
	if n <= 0 || n > d.info.Limits.MaxBufferBytes {
		return metal.Memory{}, fmt.Errorf("[alloc] %d bytes: the limit is %d", n, d.info.Limits.MaxBufferBytes)
	}
	var a *allocation
	err := d.call(func() (err error) {
		a, err = d.heap.alloc(d.lib, n)
		if isNoMemory(err) {
			free, _ := d.lib.Free()
			return fmt.Errorf("[alloc] %d bytes: the card has %d bytes left of %d, this process holds %d (%w)", n, free,
				d.lib.Properties().memory, d.heap.held(), err)
		}
		if err == nil {
			err = d.move.fill(a.address, a.bytes, 0)
		}
		return err
	})
	if err != nil {
		return metal.Memory{}, err
	}
	return metal.Memory{Size: a.bytes, Handle: a}, nil
}

// Free takes memory back. A lost card's is gone anyway.
func (d *Driver) Free(m metal.Memory) {
	a, ok := m.Handle.(*allocation)
	if !ok {
		return
	}
	_ = d.call(func() error {
		if a.slab == nil { // what was written to it may be under way
			if err := d.move.settle(); err != nil {
				return err
			}
		}
		return d.heap.release(d.lib, a)
	})
}

// Read copies from memory.
func (d *Driver) Read(dst []byte, mem metal.Memory, offset int64) error {
	a := mem.Handle.(*allocation)
	return d.call(func() error { return d.move.read(dst, a.address+address(offset)) })
}

// Write copies to memory.
func (d *Driver) Write(mem metal.Memory, offset int64, src []byte) error {
	a := mem.Handle.(*allocation)
	return d.call(func() error { return d.move.write(a.address+address(offset), src) })
}

// Set sets bytes of memory.
func (d *Driver) Set(mem metal.Memory, offset, n int64, v byte) error {
	a := mem.Handle.(*allocation)
	return d.call(func() error { return d.move.fill(a.address+address(offset), n, v) })
}

// CopyPeer copies from another card.
func (d *Driver) CopyPeer(mem metal.Memory, offset int64, other metal.Driver, from metal.Memory, fromOffset,
	n int64) (done bool, err error) {
	peer, ok := other.(*Driver)
	if !ok {
		return false, nil
	}
	if err := peer.call(peer.move.settle); err != nil {
		return true, err
	}
	to, at := mem.Handle.(*allocation), from.Handle.(*allocation)
	err = d.call(func() error {
		done, err = d.move.copyPeer(to.address+address(offset), peer.lib, at.address+address(fromOffset), n)
		return err
	})
	return done || err != nil, err
}

// Close waits for what was submitted, and gives the card back. Closing again does nothing.
func (d *Driver) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.busy.Wait()
	if d.lost.Load() != nil {
		return nil // no call reaches it
	}
	if err := d.lib.Enter(); err != nil {
		return err
	}
	err := d.heap.close(d.lib)
	d.lib.Leave()
	return errors.Join(err, d.lib.Close())
}
