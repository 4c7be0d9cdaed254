package cuda

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/ptx/machine"
)

// card is a card that runs everywhere: each stream is a goroutine that does one thing after another, some time later,
// on memory that the host has no view of. Texts are executed by metal/ptx/machine. What a real card would not notice is
// an error here: pinned memory that is none, memory that nobody has, calls outside of Enter and Leave.
type card struct {
	memory int64 // bytes that it has
	inside atomic.Int64

	mu       sync.Mutex
	changed  *sync.Cond
	next     uint64
	pieces   []piece // in order of their addresses
	used     int64
	programs map[program]*fakeProgram
	kernels  map[function]*fakeProgram
	streams  map[stream]*fakeStream
	events   map[event]*fakeEvent
	failure  error // of all calls from now on
	launches int
	graphs   map[graph][]kernelLaunch

	graphLaunches int
	loads         int
	slow          bool // each thing takes a little time
	r             *rand.Rand
}

type piece struct {
	at     address
	bytes  []byte
	pinned bool
}

type fakeProgram struct {
	text string
	pool sync.Pool
}

type fakeStream struct {
	todo []func() error
	live bool // a goroutine is at it
}

type fakeEvent struct {
	recorded, done int
	at             time.Time
}

var _ api = (*card)(nil)

func newCard() *card {
	c := &card{memory: 1 << 30, next: 0x7f0000000000, programs: map[program]*fakeProgram{},
		kernels: map[function]*fakeProgram{}, streams: map[stream]*fakeStream{}, events: map[event]*fakeEvent{},
		graphs: map[graph][]kernelLaunch{},
		r:      rand.New(rand.NewPCG(1, 2))}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// begin locks the card for a call.
func (c *card) begin(call string) error {
	c.mu.Lock()
	if c.inside.Load() <= 0 {
		return fmt.Errorf("%s outside of Enter and Leave", call)
	}
	return c.failure
}

func (c *card) Enter() error { c.inside.Add(1); return nil }
func (c *card) Leave()       { c.inside.Add(-1) }

func (c *card) Properties() properties {
	return properties{name: "a card of the tests", version: 12040, sm: 90, processors: 2, resident: 2048, memory: c.memory}
}

func (c *card) Free() (int64, error) {
	defer c.mu.Unlock()
	err := c.begin("Free")
	return c.memory - c.used, err
}

// add makes a piece of memory, full of what somebody else has left, with nothing beside it.
func (c *card) add(n int, pinned bool) piece {
	c.next = (c.next + 1<<20) &^ 255
	p := piece{at: c.next, bytes: make([]byte, n), pinned: pinned}
	for i := range p.bytes {
		p.bytes[i] = 0xDB
	}
	c.next += uint64(n+255) &^ 255
	c.pieces = append(c.pieces, p)
	return p
}

func (c *card) Alloc(n int64) (address, error) {
	defer c.mu.Unlock()
	if err := c.begin("Alloc"); err != nil {
		return 0, err
	}
	if c.used+n > c.memory {
		return 0, &callError{"cuMemAlloc", codeNoMemory, "out of memory"}
	}
	c.used += n
	return c.add(int(n), false).at, nil
}

func (c *card) find(at address) int {
	i, _ := slices.BinarySearchFunc(c.pieces, at, func(p piece, at address) int {
		if p.at <= at {
			return -1
		}
		return 1
	})
	return i - 1
}

// bytesAt is the memory at an address, nil if nobody has so much there.
func (c *card) bytesAt(at address, n int) []byte {
	i := c.find(at)
	if i < 0 {
		return nil
	}
	p := c.pieces[i]
	off := at - p.at
	if off > uint64(len(p.bytes)) || uint64(len(p.bytes))-off < uint64(n) {
		return nil
	}
	return p.bytes[off:][:n]
}

func (c *card) remove(at address) error {
	i := c.find(at)
	if i < 0 || c.pieces[i].at != at {
		return fmt.Errorf("%#x is no allocation", at)
	}
	if !c.pieces[i].pinned {
		c.used -= int64(len(c.pieces[i].bytes))
	}
	c.pieces = slices.Delete(c.pieces, i, i+1)
	return nil
}

func (c *card) Release(at address) error {
	defer c.mu.Unlock()
	if err := c.begin("Release"); err != nil {
		return err
	}
	return c.remove(at)
}

func (c *card) Pin(n int) (pinned, error) {
	defer c.mu.Unlock()
	if err := c.begin("Pin"); err != nil {
		return pinned{}, err
	}
	p := c.add(n, true)
	return pinned{p.bytes, p.at}, nil
}

func (c *card) Unpin(p pinned) error {
	defer c.mu.Unlock()
	if err := c.begin("Unpin"); err != nil {
		return err
	}
	return c.remove(p.address)
}

func (c *card) Load(text string, level int) (program, error) {
	defer c.mu.Unlock()
	if err := c.begin("Load"); err != nil {
		return 0, err
	}
	if _, err := machine.New(text); err != nil {
		return 0, &callError{"cuModuleLoadDataEx", 218, err.Error()}
	}
	c.next++
	c.loads++
	c.programs[program(c.next)] = &fakeProgram{text: text}
	return program(c.next), nil
}

func (c *card) Unload(p program) error {
	defer c.mu.Unlock()
	err := c.begin("Unload")
	delete(c.programs, p)
	return err
}

func (c *card) Function(p program, name string) (function, error) {
	defer c.mu.Unlock()
	if err := c.begin("Function"); err != nil {
		return 0, err
	}
	x := c.programs[p]
	if x == nil || !strings.Contains(x.text, ".entry "+name+"(") {
		return 0, &callError{"cuModuleGetFunction", 500, "named symbol not found"}
	}
	c.next++
	c.kernels[function(c.next)] = x
	return function(c.next), nil
}

func (c *card) AllowShared(function, int) error { return nil }

func (c *card) NewStream() (stream, error) {
	defer c.mu.Unlock()
	err := c.begin("NewStream")
	c.next++
	c.streams[stream(c.next)] = &fakeStream{}
	return stream(c.next), err
}

func (c *card) EndStream(s stream) error {
	defer c.mu.Unlock()
	err := c.begin("EndStream")
	delete(c.streams, s)
	return err
}

// put has a stream do something later. Called with mu held, which is held when it is done, too.
func (c *card) put(s stream, f func() error) error {
	x := c.streams[s]
	if x == nil {
		return fmt.Errorf("no stream %d", s)
	}
	x.todo = append(x.todo, f)
	if !x.live {
		x.live = true
		go c.serve(x)
	}
	return nil
}

func (c *card) serve(x *fakeStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(x.todo) > 0 {
		if c.slow {
			n := c.r.IntN(50)
			c.mu.Unlock()
			time.Sleep(time.Duration(n) * time.Microsecond)
			c.mu.Lock()
		}
		f := x.todo[0]
		if c.failure == nil {
			c.failure = f()
		}
		x.todo = x.todo[1:]
		c.changed.Broadcast()
	}
	x.live = false
}

// memoryAt is bytesAt of what a copy needs.
func (c *card) memoryAt(at address, n int) ([]byte, error) {
	if b := c.bytesAt(at, n); b != nil {
		return b, nil
	}
	return nil, &callError{"a copy", codeFirstFatal, fmt.Sprintf("illegal address %#x of %d bytes", at, n)}
}

func (c *card) CopyIn(s stream, to address, from []byte) error {
	defer c.mu.Unlock()
	if err := c.begin("CopyIn"); err != nil {
		return err
	}
	return c.put(s, func() error {
		b, err := c.memoryAt(to, len(from))
		copy(b, from)
		return err
	})
}

func (c *card) CopyOut(s stream, to []byte, from address) error {
	defer c.mu.Unlock()
	if err := c.begin("CopyOut"); err != nil {
		return err
	}
	return c.put(s, func() error {
		b, err := c.memoryAt(from, len(to))
		copy(to, b)
		return err
	})
}

func (c *card) Copy(s stream, to, from address, n int64) error {
	defer c.mu.Unlock()
	if err := c.begin("Copy"); err != nil {
		return err
	}
	return c.put(s, func() error {
		a, err := c.memoryAt(to, int(n))
		if err != nil {
			return err
		}
		b, err := c.memoryAt(from, int(n))
		copy(a, b)
		return err
	})
}

func (c *card) CopyPeer(s stream, to address, other api, from address, n int64) (bool, error) {
	o, ok := other.(*card)
	if !ok {
		return false, nil
	}
	o.mu.Lock()
	b := slices.Clone(o.bytesAt(from, int(n)))
	o.mu.Unlock()
	defer c.mu.Unlock()
	if err := c.begin("CopyPeer"); err != nil {
		return true, err
	}
	return true, c.put(s, func() error {
		a, err := c.memoryAt(to, int(n))
		copy(a, b)
		return err
	})
}

func (c *card) Fill8(s stream, to address, n int64, v byte) error {
	defer c.mu.Unlock()
	if err := c.begin("Fill8"); err != nil {
		return err
	}
	return c.put(s, func() error {
		b, err := c.memoryAt(to, int(n))
		for i := range b {
			b[i] = v
		}
		return err
	})
}

func (c *card) Fill32(s stream, to address, words int64, v uint32) error {
	defer c.mu.Unlock()
	if err := c.begin("Fill32"); err != nil {
		return err
	}
	return c.put(s, func() error {
		b, err := c.memoryAt(to, int(4*words))
		for i := range b {
			b[i] = byte(v >> (8 * (i % 4)))
		}
		return err
	})
}

func (c *card) Launch(s stream, l *kernelLaunch) error {
	defer c.mu.Unlock()
	if err := c.begin("Launch"); err != nil {
		return err
	}
	c.launches++
	return c.launch(s, *l)
}

// launch puts a launch on a stream.
func (c *card) launch(s stream, l kernelLaunch) error {
	x, parameter := c.kernels[l.f], slices.Clone(l.parameter)
	if x == nil {
		return &callError{"cuLaunchKernel", 400, "invalid resource handle"}
	}
	return c.put(s, func() error {
		m, _ := x.pool.Get().(*machine.Machine)
		if m == nil {
			m, _ = machine.New(x.text)
		}
		defer x.pool.Put(m)
		err := m.Run(machine.Launch{Args: parameter, Blocks: l.blocks, Block: l.block, Shared: l.shared, Memory: c.bytesAt,
			Rest: func() error { // others may do something meanwhile
				c.mu.Unlock()
				runtime.Gosched()
				c.mu.Lock()
				return c.failure
			}})
		if err != nil {
			return &callError{"a kernel", codeFirstFatal, err.Error()}
		}
		return nil
	})
}

func (c *card) NewGraph(all []kernelLaunch) (graph, error) {
	defer c.mu.Unlock()
	err := c.begin("NewGraph")
	c.next++
	g := make([]kernelLaunch, len(all))
	for i, l := range all {
		l.parameter = slices.Clone(l.parameter)
		g[i] = l
	}
	c.graphs[graph(c.next)] = g
	return graph(c.next), err
}

func (c *card) Change(g graph, i int, l *kernelLaunch) error {
	defer c.mu.Unlock()
	err := c.begin("Change")
	c.graphs[g][i] = *l
	c.graphs[g][i].parameter = slices.Clone(l.parameter)
	return err
}

func (c *card) LaunchGraph(s stream, g graph) error {
	defer c.mu.Unlock()
	if err := c.begin("LaunchGraph"); err != nil {
		return err
	}
	c.graphLaunches++
	for _, l := range c.graphs[g] {
		if err := c.launch(s, l); err != nil {
			return err
		}
	}
	return nil
}

func (c *card) EndGraph(g graph) error {
	defer c.mu.Unlock()
	err := c.begin("EndGraph")
	delete(c.graphs, g)
	return err
}

func (c *card) NewEvent(bool) (event, error) {
	defer c.mu.Unlock()
	err := c.begin("NewEvent")
	c.next++
	c.events[event(c.next)] = &fakeEvent{}
	return event(c.next), err
}

func (c *card) EndEvent(e event) error {
	defer c.mu.Unlock()
	err := c.begin("EndEvent")
	delete(c.events, e)
	return err
}

func (c *card) Record(e event, s stream) error {
	defer c.mu.Unlock()
	if err := c.begin("Record"); err != nil {
		return err
	}
	x := c.events[e]
	x.recorded++
	n := x.recorded
	return c.put(s, func() error {
		x.done, x.at = max(x.done, n), time.Now()
		return nil
	})
}

func (c *card) Wait(s stream, e event) error {
	defer c.mu.Unlock()
	if err := c.begin("Wait"); err != nil {
		return err
	}
	x := c.events[e]
	n := x.recorded
	return c.put(s, func() error {
		for x.done < n && c.failure == nil {
			c.changed.Wait()
		}
		return c.failure
	})
}

func (c *card) Done(e event) (bool, error) {
	defer c.mu.Unlock()
	err := c.begin("Done")
	return c.events[e].done >= c.events[e].recorded, err
}

func (c *card) Synchronize(e event) error {
	defer c.mu.Unlock()
	if err := c.begin("Synchronize"); err != nil {
		return err
	}
	x := c.events[e]
	for n := x.recorded; x.done < n && c.failure == nil; {
		c.changed.Wait()
	}
	return c.failure
}

func (c *card) Between(first, last event) (float64, error) {
	defer c.mu.Unlock()
	err := c.begin("Between")
	return c.events[last].at.Sub(c.events[first].at).Seconds() * 1000, err
}

// Products is the library of the suite.
func (c *card) Products() (products, error) { return fakeProducts{c}, nil }

type fakeProducts struct{ c *card }

func (p fakeProducts) Offers(m metal.MatMul) bool { return drivertest.Products{}.Offers(m) }

func (p fakeProducts) Multiply(s stream, m metal.MatMul, a, b, out, _ address, _ int64) error {
	c := p.c
	defer c.mu.Unlock()
	if err := c.begin("Multiply"); err != nil {
		return err
	}
	return c.put(s, func() error {
		var all [3][]byte
		for i, at := range []address{a, b, out} {
			n := []int64{reach(m.A, m.M, m.K, m.Batch), reach(m.B, m.K, m.N, m.Batch), int64(m.Batch * m.M * m.N)}[i]
			var err error
			if all[i], err = c.memoryAt(at, int(n)*m.Element.Size()); err != nil {
				return err
			}
		}
		return drivertest.Products{}.Call(m, all[:2], all[2:])
	})
}

func (c *card) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used != 0 {
		return fmt.Errorf("%d bytes were not given back", c.used)
	}
	return nil
}
