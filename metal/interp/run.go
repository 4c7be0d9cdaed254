package interp

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Launch is one dispatch of a kernel.
type Launch struct {
	Grid        [3]int // threads, not threadgroups; nothing runs if one is 0
	Threadgroup [3]int // at least 1 each, at most 1024 in all; threadgroups at the grid's edge are smaller
	// Buffers holds the bound bytes of each Param, in the order of Kernel.Params; nil for Threadgroup ones.
	Buffers [][]byte
	// Fixed says which of Buffers nobody writes while the launch runs, because their bytes were given with it, in the
	// order of Buffers; nil: none are known to be so.
	Fixed []bool
	// ThreadgroupBytes is the length of each Threadgroup Param's memory, in the order of Kernel.Params; nil if
	// there are none.
	ThreadgroupBytes []int
	// Interrupt, if not nil, stops the launch soon after it becomes true; it then ends with ErrInterrupted.
	Interrupt *atomic.Bool
	// Workers is how many goroutines Executable.Run uses; 0 means one for each processor.
	Workers int
	// Written says under Validate of each byte of a buffer whether it was ever written: reads of others are faults, and
	// writes are noted there. It is in the order of Buffers; nil, or an entry of nil, watches nothing.
	Written [][]bool
	// Validate makes reads of uninitialised memory, races and barriers that not all threads reach faults. One
	// worker runs it.
	Validate bool
}

// Run is a launch in execution: any number of goroutines may Work on it.
type Run struct {
	exe       *Executable
	buffers   [][]byte
	grid, tg  [3]int
	groups    [3]int
	total     int64
	next      atomic.Int64
	end       atomic.Int64 // threadgroups from this one on need not run
	interrupt *atomic.Bool
	tgParams  []int // byte offset in threadgroup memory of each Param, -1 for others
	tgSizes   []int
	tgBytes   int
	shadow    *shadow

	mu    sync.Mutex
	err   error
	errAt int64
}

// Run executes a launch and waits for it. It returns a *Fault for what the kernel did wrong, ErrInterrupted, or an
// error that says what is wrong with the launch.
func (p *Executable) Run(l Launch) error {
	r, err := p.NewRun(l)
	if err != nil {
		return err
	}
	n := l.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	most, _ := r.Parallelism()
	n = min(n, most)
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(r.Work)
	}
	r.Work()
	wg.Wait()
	return r.Err()
}

// NewRun checks a launch and readies it. Buffers must stay valid until every Work has returned.
func (p *Executable) NewRun(l Launch) (*Run, error) {
	r := &Run{exe: p, buffers: l.Buffers, grid: l.Grid, tg: l.Threadgroup, interrupt: l.Interrupt}
	var plan Plan
	if err := plan.Check(p.kernel, &l); err != nil {
		return nil, err
	}
	r.groups, r.total = plan.Groups, plan.Total
	r.end.Store(r.total)
	r.tgParams, r.tgSizes, r.tgBytes = plan.Offsets, plan.Lengths, plan.Bytes
	if l.Validate {
		r.shadow = newShadow(p)
		r.shadow.device = l.Written
	}
	return r, nil
}

// Parallelism is how many goroutines may usefully Work at once, and that a launch here is long enough to wake them.
func (r *Run) Parallelism() (goroutines int, long bool) {
	if r.shadow != nil {
		return int(min(r.total, 1)), true // its tables are not locked
	}
	return int(min(r.total, 1<<16)), true
}

// Err returns how the launch ended; it is meaningful when every Work has returned. Of several faults it is the one in
// the first threadgroup, however many worked, unless threadgroups may wait for each other: then all stop at once.
func (r *Run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Run) fail(err error, at int64) {
	r.mu.Lock()
	if r.err == nil || at < r.errAt {
		r.err, r.errAt = err, at
	}
	if r.exe.waits || errors.Is(err, ErrInterrupted) {
		at = 0
	}
	r.end.Store(min(at, r.end.Load()))
	r.mu.Unlock()
}

// over reports whether threadgroup i need not run, or not go on: the launch is interrupted, or one before it had a
// fault. If it is interrupted over records that.
func (r *Run) over(i int64) bool {
	if i >= r.end.Load() {
		return true
	}
	if r.interrupt != nil && r.interrupt.Load() {
		r.fail(ErrInterrupted, 1<<62)
		return true
	}
	return false
}

// turnTime is how long a worker goes on before other goroutines get a turn.
const turnTime = 100 * time.Microsecond

// Work executes threadgroups until none is left that no other worker has begun, the launch is interrupted or a kernel
// faults. Threadgroups that wait for others are suspended, and others take turns with them.
func (r *Run) Work() {
	var alive []*group
	idle := 0 // turns of all of them in which none ended
	turn := time.Now()
	for !r.over(0) {
		// A turn for new threadgroups: as many may be suspended as are so already, so that threadgroups that
		// all wait for each other are soon all begun, and a few long ones do not fill the memory.
		quota := 1
		if len(alive) > 0 {
			quota = AliveQuota(len(alive), alive[0].bytes(), idle)
			if err := StuckAlive(r.exe.kernel, len(alive), alive[0].bytes(), idle); err != nil {
				r.fail(err, 0)
				return
			}
		}
		for quota > 0 {
			i := r.next.Add(1) - 1
			if i >= r.total || r.over(i) {
				r.next.Store(r.total) // keeps the counter from running away
				break
			}
			g := r.begin(i)
			if g.step() {
				r.finish(g)
				if time.Since(turn) > turnTime { // whoever builds the next graph needs a processor too
					runtime.Gosched()
					turn = time.Now()
				}
			} else {
				alive = append(alive, g)
				quota--
			}
		}
		if len(alive) == 0 {
			if r.next.Load() >= r.total {
				return
			}
			continue
		}
		rest := alive[:0]
		for _, g := range alive {
			if r.over(g.index) || !g.step() {
				rest = append(rest, g)
			} else {
				r.finish(g)
			}
		}
		if idle++; len(rest) < len(alive) {
			idle = 0
		}
		alive = rest
		runtime.Gosched() // what they wait for may be another worker's
	}
}

// group is a threadgroup in execution.
type group struct {
	run     *Run
	index   int64
	pos     [3]int // in the grid of threadgroups
	origin  [3]int // the first thread's position in the grid
	size    [3]int
	threads int
	frames  []*frame
	mem     []uint64 // threadgroup memory
	objs    []object
	inited  []bool // under validation: bytes of mem that were written
	races   groupRaces
}

func (g *group) bytes() int {
	p := g.run.exe
	return 8*len(g.mem) + len(g.frames)*(p.regBytes+p.threadBytes+1024)
}

// begin makes threadgroup i ready.
func (r *Run) begin(i int64) *group {
	p := r.exe
	g, _ := p.groups.Get().(*group)
	if g == nil {
		g = &group{}
	}
	g.run, g.index, g.threads = r, i, 1
	n := i
	for d := range 3 {
		g.pos[d] = int(n % int64(r.groups[d]))
		n /= int64(r.groups[d])
		g.origin[d] = g.pos[d] * r.tg[d]
		g.size[d] = min(r.tg[d], r.grid[d]-g.origin[d])
		g.threads *= g.size[d]
	}
	if len(g.mem) != r.tgBytes/8 {
		g.mem = make([]uint64, r.tgBytes/8)
	} else {
		clear(g.mem)
	}
	g.objects()
	if r.shadow != nil {
		g.inited = make([]bool, r.tgBytes)
		r.shadow.begin(g)
	}
	want := 1
	if p.resumable {
		want = ceilDiv(g.threads, lanes)
	}
	for len(g.frames) < want {
		g.frames = append(g.frames, newFrame(g, p))
	}
	if p.resumable {
		for sg, f := range g.frames[:want] {
			f.start(sg)
		}
	}
	return g
}

func (r *Run) finish(g *group) {
	g.run = nil
	clear(g.objs)
	for _, f := range g.frames {
		clear(f.objs)
		f.shadow, f.fault = nil, nil
	}
	r.exe.groups.Put(g)
}

// objects fills the table of memory objects; frames add their Thread regions.
func (g *group) objects() {
	r, k := g.run, g.run.exe.kernel
	tg := func(off, size int) unsafe.Pointer {
		if size == 0 {
			return nil
		}
		return unsafe.Add(unsafe.Pointer(&g.mem[0]), off)
	}
	g.objs = append(g.objs[:0], object{space: noSpace})
	for i, p := range k.Params {
		b := r.buffers[i]
		o := object{space: p.Space, size: uint64(len(b)), base: unsafe.Pointer(unsafe.SliceData(b))}
		if p.Space == kir.Threadgroup {
			o.base, o.size = tg(r.tgParams[i], r.tgSizes[i]), uint64(r.tgSizes[i])
		}
		g.objs = append(g.objs, o)
	}
	for i, q := range k.Regions {
		o := object{space: q.Space, size: uint64(q.Size)}
		switch q.Space {
		case kir.Constant:
			o.base = unsafe.Pointer(unsafe.SliceData(q.Data))
		case kir.Threadgroup:
			o.base = tg(r.exe.tgOff[i], q.Size)
		}
		g.objs = append(g.objs, o)
	}
}

// noSpace is the space of the null object: no pointer type has it.
const noSpace = kir.Space(0xff)

// step runs the threadgroup until it ends (true: also by a fault) or all that can go on have had a turn.
func (g *group) step() bool {
	if !g.run.exe.resumable {
		f := g.frames[0]
		for sg := 0; sg*lanes < g.threads; sg++ {
			f.start(sg)
			if f.run(); f.state != done {
				return g.stopped(f)
			}
		}
		return true
	}
	frames := g.frames[:ceilDiv(g.threads, lanes)]
	for {
		waiting, running := (*frame)(nil), false
		for _, f := range frames {
			if f.state == ready {
				f.run()
			}
			switch f.state {
			case stopped:
				return g.stopped(f)
			case ready:
				running = true
			case atBarrier:
				if waiting != nil && waiting.pc != f.pc && f.shadow != nil {
					f.fail(f.barrier(), "", 0, 0,
						"SIMD-group %d waits at this barrier while SIMD-group %d waits at another, line %d",
						f.sg, waiting.sg, waiting.barrier().pos.Line)
					return g.stopped(f)
				}
				waiting = f
			}
		}
		if running {
			return false
		}
		if waiting == nil {
			return true
		}
		if r := g.run.shadow; r != nil {
			r.barrier(g, waiting.barrier().mode)
		}
		for _, f := range frames {
			f.release()
		}
		if g.run.over(g.index) {
			return true
		}
	}
}

// stopped passes on why the frame stopped.
func (g *group) stopped(f *frame) bool {
	if f.fault != nil {
		g.run.fail(f.fault, g.index)
	} else {
		g.run.over(g.index)
	}
	return true
}
