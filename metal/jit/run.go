package jit

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/metal/launch"
)

// Run is a launch in execution: any number of goroutines may Work on it.
type Run struct {
	exe         *Executable
	special     *specialization
	plan        launch.Plan
	buffers     [][]byte
	grid, tg    [3]int
	waits       bool
	nonTemporal bool // much is written: past the cache
	single      bool // one threadgroup a call
	progress    launch.Progress
	nanos       atomic.Int64 // what a threadgroup takes, 0 if unknown
	sharers     int64        // how many goroutines Work, at most
	help        func()
	helped      atomic.Bool
}

// NewRun checks a launch and readies it; the kernel is compiled for it if need be. Buffers must stay valid until
// every Work has returned. Launch.Validate has no meaning here.
func (p *Executable) NewRun(l launch.Launch) (*Run, error) {
	if err := p.root.ready(); err != nil {
		return nil, err
	}
	r, _ := p.runs.Get().(*Run)
	if r == nil {
		r = &Run{exe: p}
	}
	if err := r.plan.Check(p.kernel, &l); err != nil {
		p.runs.Put(r)
		return nil, err
	}
	var err error
	if r.special, err = p.specialize(&l); err != nil {
		p.runs.Put(r)
		return nil, err
	}
	r.buffers, r.grid, r.tg, r.help = l.Buffers, l.Grid, l.Threadgroup, nil
	r.progress.Begin(r.plan.Total, l.Interrupt)
	r.nonTemporal = p.alwaysNonTemporal || writesMuch(p.kernel, &l)
	r.helped.Store(false)
	r.nanos.Store(r.special.nanos.Load())
	r.sharers = int64(p.procs)
	if r.plan.Total > 0 {
		v, err := r.compile()
		for ; err != nil && r.special.from != nil; v, err = r.compile() {
			r.special = r.special.from // which may need less
		}
		if err != nil {
			return nil, err
		}
		r.waits = v.code.Info.Waits
		r.progress.SetWaits(r.waits)
		r.single = r.waits || v.code.Info.Barriers || r.tgBytes(v) > 0
	}
	return r, nil
}

// compile readies the code of all sizes of threadgroups that the launch has, and returns that of the first one.
func (r *Run) compile() (first *variant, err error) {
	for edges := range 8 {
		pos, has := [3]int{}, true
		for d := range 3 {
			if edges>>d&1 != 0 {
				pos[d] = r.plan.Groups[d] - 1
				has = has && pos[d] > 0 && r.grid[d]%r.tg[d] != 0
			}
		}
		if !has {
			continue
		}
		v, err := r.special.variant(r.sizeOf(pos), r.stride(), r.nonTemporal)
		if err != nil {
			return nil, err
		}
		if edges == 0 {
			first = v
		}
	}
	return first, nil
}

// Release lets another launch use the Run's memory. Every Work has returned, and nothing is asked of the Run any
// more.
func (r *Run) Release() {
	r.buffers, r.help = nil, nil
	r.progress.Begin(0, nil) // lets go of what it holds
	r.exe.runs.Put(r)
}

// OnLong makes Work call help once if the launch turns out to be longer than Parallelism thought. Call it before
// Work.
func (r *Run) OnLong(help func()) { r.help = help }

// soon is the time that is not worth another processor's while, and long what is worth waking a goroutine that sleeps.
const (
	soon = 8 * time.Microsecond
	long = 64 * time.Microsecond
)

// Parallelism is how many goroutines may usefully Work at once, going by how long the last launch took: one if others
// would come too late; and whether the launch is so long that they would not even if they slept.
func (r *Run) Parallelism() (goroutines int, lasting bool) {
	n := min(r.plan.Total, 1<<16)
	took := r.Estimate()
	if took <= 0 { // nothing is known, or threadgroups need each other
		return int(n), true
	}
	goroutines, lasting = Parallelism(took)
	n = min(n, int64(goroutines))
	if !lasting {
		r.sharers = min(r.sharers, n)
	}
	return int(n), lasting
}

// Parallelism is Run.Parallelism for launches side by side that take so long, all threadgroups one after another.
func Parallelism(took time.Duration) (goroutines int, lasting bool) {
	return int(min(1+took/soon, 1<<16)), took >= long
}

// Estimate is how long the launch may take, all threadgroups one after another, going by the last one; 0 if nothing is
// known of it, or threadgroups wait for each other.
func (r *Run) Estimate() time.Duration {
	if r.waits {
		return 0
	}
	return time.Duration(r.nanos.Load() * r.plan.Total)
}

// Each is how many nanoseconds a threadgroup may take, going by the last launch; 0 if nothing is known.
func (r *Run) Each() int64 { return r.nanos.Load() }

// Err returns how the launch ended, as launch.Progress.Err does.
func (r *Run) Err() error { return r.progress.Err() }

// Panicked ends the launch with an error, after a panic of Work.
func (r *Run) Panicked(v any) { r.progress.Panicked(r.exe.kernel.Name, v) }

// sizeOf is the size of the threadgroup at a position: smaller at the grid's edge.
func (r *Run) sizeOf(pos [3]int) (size [3]int) {
	for d := range 3 {
		size[d] = min(r.tg[d], r.grid[d]-pos[d]*r.tg[d])
	}
	return size
}

// stride is how far apart along x the first threads of threadgroups are, 0 if all of them have x = 0.
func (r *Run) stride() int {
	if r.plan.Groups[0] == 1 {
		return 0
	}
	return r.tg[0]
}

// segment returns the size of threadgroup i, and how many of the n from it on are of that size and in one row.
func (r *Run) segment(i, n int64) (size [3]int, count int64) {
	gx, gy := int64(r.plan.Groups[0]), int64(r.plan.Groups[1])
	pos := [3]int{int(i % gx), int(i / gx % gy), int(i / gx / gy)}
	size = r.sizeOf(pos)
	if r.single || size[0] < r.tg[0] {
		return size, 1
	}
	whole := int64(r.grid[0]/r.tg[0]) - int64(pos[0])
	return size, max(1, min(n, whole))
}

// Work executes threadgroups until none is left that no other worker has begun, the launch is interrupted or a kernel
// faults. Threadgroups that wait for others are suspended, and others take turns with them.
func (r *Run) Work() {
	if r.progress.Left() == 0 || r.progress.Over(0) {
		return
	}
	if r.waits {
		r.takeTurns()
		return
	}
	w := worker{run: r, share: share{processor: &goProcessor}} // stays on the stack
	defer w.end(debug.SetPanicOnFault(true))
	w.chunks()
}

// worker is a goroutine's part in a Run.
type worker struct {
	run    *Run
	groups [2]*group // for whole threadgroups, and others
	alive  []*group  // suspended threadgroups
	inCode *group    // what runs
	fuel   int64     // for a call, 0 at first
	share
}

// end gives the worker's memory back. Code that touched memory that is not there makes a panic, which ends here as an
// error: a last resort, since code checks what it touches.
func (w *worker) end(faults bool) {
	debug.SetPanicOnFault(faults)
	r := w.run
	if p := recover(); p != nil {
		if w.inCode == nil {
			panic(p)
		}
		err := fmt.Errorf("[%s] kernel fault: %v", r.exe.kernel.Name, p)
		if a, ok := p.(interface{ Addr() uintptr }); ok {
			err = fmt.Errorf("[%s] kernel fault at address %#x", r.exe.kernel.Name, a.Addr())
		}
		r.progress.Fail(err, w.inCode.at)
	}
	for _, g := range w.groups {
		if g != nil {
			g.release()
		}
	}
	for _, g := range w.alive {
		g.release()
	}
	runtime.KeepAlive(r.buffers)
}

// step runs a group's code for a while.
func (w *worker) step(g *group, spend int64) bool {
	w.inCode = g
	ended := g.step(spend)
	w.inCode = nil
	return ended
}

// group returns a group for threadgroups of the size.
func (w *worker) group(size [3]int) *group {
	n := 0
	if size != w.run.tg {
		n = 1
	}
	v, err := w.run.special.variant(size, w.run.stride(), w.run.nonTemporal)
	if err != nil {
		w.run.progress.Fail(err, 0)
		return nil
	}
	if g := w.groups[n]; g != nil {
		if g.v == v && g.frames >= v.frames(size) {
			return g
		}
		g.release()
		w.groups[n] = nil
	}
	g, err := w.run.group(v, size)
	if err != nil {
		w.run.progress.Fail(err, 0)
		return nil
	}
	w.groups[n] = g
	return g
}

// callTime is how long a call of machine code should take: long enough to make the call's cost small, short enough
// for the garbage collector, which waits for it.
const callTime = 100 * time.Microsecond

// chunks executes threadgroups several at a time.
func (w *worker) chunks() {
	r, size := w.run, int64(1)
	if each := r.nanos.Load(); each > 0 {
		size = int64(callTime)/each + 1
	}
	var begun time.Time
	for !r.progress.Over(0) {
		// Towards the end chunks become smaller, so that all workers end together.
		left := r.progress.Left()
		n := max(1, min(size, left/(2*r.sharers)))
		if r.plan.Total <= n {
			n = r.plan.Total
		}
		i, n := r.progress.Take(n)
		if n == 0 {
			return
		}
		start, away := time.Now(), w.away
		if begun.IsZero() {
			begun = start
		}
		if !w.chunk(i, n) {
			return
		}
		now := time.Now()
		took := now.Sub(start) - (w.away - away)
		each := max(1, int64(took)/n)
		r.nanos.Store(each)
		r.special.nanos.Store(each)
		size = min(int64(callTime)/each+1, 8*size)
		if r.help != nil && now.Sub(begun) > long/2 && r.progress.Left() > 0 && r.helped.CompareAndSwap(false, true) {
			r.help()
		}
		if took > callTime/2 {
			w.yield(now, took)
		}
	}
}

// chunk executes n threadgroups from i on; false means that the launch is over.
func (w *worker) chunk(i, n int64) bool {
	r := w.run
	for end := i + n; i < end && !r.progress.Over(i); {
		size, count := r.segment(i, end-i)
		g := w.group(size)
		if g == nil {
			return false
		}
		g.begin(i, size, int(count))
		if !w.finish(g) || g.again != nil && !w.repeat(g, i+count, size) {
			return false
		}
		i += count
	}
	return true
}

// repeat executes the threadgroups from where a paired variant met a fault to end, all of one size, with SIMD-groups
// one after the other. They read nothing that they write, so they can be run again; should one be without a fault then
// (because buffers overlap), the pair's fault stands.
func (w *worker) repeat(met *group, end int64, size [3]int) bool {
	i := met.index()
	v, err := w.run.special.plain(size, w.run.stride(), w.run.nonTemporal)
	if err != nil {
		w.run.progress.Fail(err, i)
		return false
	}
	g, err := w.run.group(v, size)
	if err != nil {
		w.run.progress.Fail(err, i)
		return false
	}
	defer g.release()
	g.begin(i, size, int(end-i))
	ended := w.finish(g)
	if ended && !g.failed {
		w.run.progress.Fail(met.again, i)
	}
	return ended
}

// finish runs a group to its end; false means that the launch is interrupted. Calls become shorter or longer until
// they take about callTime.
func (w *worker) finish(g *group) bool {
	if w.fuel == 0 {
		if w.fuel = w.run.special.fuel.Load(); w.fuel == 0 {
			w.fuel = fuel / 4 // nothing is known of the kernel
		}
	}
	if w.step(g, w.fuel) {
		return true
	}
	for start := time.Now(); !w.run.progress.Over(g.index()); {
		if w.step(g, w.fuel) {
			return true
		}
		now := time.Now()
		took := max(1, now.Sub(start))
		w.fuel = max(fuel/64, min(w.fuel*int64(callTime)/int64(took), 2*w.fuel, 64*fuel))
		w.run.special.fuel.Store(w.fuel)
		start = w.yield(now, took)
	}
	return false
}
