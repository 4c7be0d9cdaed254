package drivertest

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// Discrete is a driver whose device has memory of its own, as a GPU has, on every machine: it passes another driver's
// kernels through, whose memory the host must not address. What the host writes lies in staging memory until something
// is submitted or read, and the staging memory is poisoned then: neither side sees the other's bytes but by the verbs.
// Memory is poisoned before it is freed. It keeps forms of steps, and refuses command buffers that these do not make as
// they were recorded. Close closes the other driver.
type Discrete struct {
	metal.Driver
	info  metal.Info
	Forms Forms // that it keeps of steps

	mu     sync.Mutex
	staged []upload
	counts Transfers
}

// upload is a write that has not reached the device's memory.
type upload struct {
	mem    metal.Memory
	offset int64
	bytes  []byte
}

// Transfers counts what went between the host and a discrete device, or from another one to it.
type Transfers struct {
	Reads, Writes, Peers         int
	ReadBytes, WroteBytes, Moved int64
	Sets                         int // of memory that the device has set itself
}

// discretePoison is what staging memory and freed memory are full of: no pattern that the device model uses.
const discretePoison = 0xDB

// NewDiscrete makes device number index of a driver whose memory has no host view.
func NewDiscrete(d metal.Driver, index int) *Discrete {
	info := d.Info()
	info.Kind, info.Host, info.Index = "discrete", false, index
	info.ID = fmt.Sprintf("discrete:%d", index)
	info.Name += ", as a discrete device"
	return &Discrete{Driver: d, info: info}
}

// Info is the other driver's but for its identity.
func (d *Discrete) Info() metal.Info { return d.info }

// Offers reports whether the other driver computes a routine.
func (d *Discrete) Offers(r metal.Routine) bool {
	c, ok := d.Driver.(metal.Caller)
	return ok && c.Offers(r)
}

// KeepStep makes a form of a step.
func (d *Discrete) KeepStep(s *metal.Step) metal.StepForm { return d.Forms.KeepStep(s) }

// Alloc is the other driver's.
func (d *Discrete) Alloc(n int64) (metal.Memory, error) {
	mem, err := d.Driver.Alloc(n)
	if err == nil && mem.Host != nil {
		d.Driver.Free(mem)
		err = fmt.Errorf("[alloc] BUG: the host can address the memory of a discrete device")
	}
	return mem, err
}

// Free poisons the memory and returns it.
func (d *Discrete) Free(mem metal.Memory) {
	d.upload()
	_ = d.Driver.Write(mem, 0, bytes.Repeat([]byte{discretePoison}, int(mem.Size)))
	d.Driver.Free(mem)
}

// Write keeps a copy of src until it is needed.
func (d *Discrete) Write(mem metal.Memory, offset int64, src []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.staged = append(d.staged, upload{mem, offset, bytes.Clone(src)})
	d.counts.Writes++
	d.counts.WroteBytes += int64(len(src))
	return nil
}

// Set sets bytes of the device's memory, in order with what was written.
func (d *Discrete) Set(mem metal.Memory, offset, n int64, v byte) error {
	d.upload()
	d.mu.Lock()
	d.counts.Sets++
	d.mu.Unlock()
	return d.Driver.Write(mem, offset, bytes.Repeat([]byte{v}, int(n)))
}

// Read reads what was written by then.
func (d *Discrete) Read(dst []byte, mem metal.Memory, offset int64) error {
	d.upload()
	d.mu.Lock()
	d.counts.Reads++
	d.counts.ReadBytes += int64(len(dst))
	d.mu.Unlock()
	return d.Driver.Read(dst, mem, offset)
}

// CopyPeer copies from another discrete device.
func (d *Discrete) CopyPeer(mem metal.Memory, offset int64, other metal.Driver, from metal.Memory, fromOffset,
	n int64) (bool, error) {
	peer, ok := other.(*Discrete)
	if !ok {
		return false, nil
	}
	peer.upload()
	moved := make([]byte, n)
	if err := peer.Driver.Read(moved, from, fromOffset); err != nil {
		return true, err
	}
	d.upload()
	d.mu.Lock()
	d.counts.Peers++
	d.counts.Moved += n
	d.mu.Unlock()
	return true, d.Driver.Write(mem, offset, moved)
}

// Submit brings what was written to the device, and then the commands.
func (d *Discrete) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	if err := d.Forms.Check(cb); err != nil {
		done(metal.Result{Err: err})
		return
	}
	d.upload()
	d.Driver.Submit(queue, cb, done)
}

// upload brings what was written to the device.
func (d *Discrete) upload() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range d.staged {
		_ = d.Driver.Write(u.mem, u.offset, u.bytes) // it fails only once the driver is closed
		for i := range u.bytes {
			u.bytes[i] = discretePoison
		}
	}
	d.staged = d.staged[:0]
}

// Transfers is what was counted since the last call.
func (d *Discrete) Transfers() Transfers {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.counts
	d.counts = Transfers{}
	return was
}
