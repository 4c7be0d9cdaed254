package interp

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// Run is a launch in execution: any number of goroutines may Work on it.
type Run struct {
	exe      *Executable
	buffers  [][]byte
	grid, tg [3]int
	groups   [3]int
	total    int64
	progress launch.Progress
	tgParams []int // byte offset in threadgroup memory of each Param, -1 for others
	tgSizes  []int
	tgBytes  int
	shadow   *shadow
}

// NewRun checks a launch and readies it. Buffers must stay valid until every Work has returned.
func (p *Executable) NewRun(l launch.Launch) (*Run, error) {
	r := &Run{exe: p, buffers: l.Buffers, grid: l.Grid, tg: l.Threadgroup}
	var plan launch.Plan
	if err := plan.Check(p.kernel, &l); err != nil {
		return nil, err
	}
	r.groups, r.total = plan.Groups, plan.Total
	r.progress.Begin(r.total, l.Interrupt)
	r.progress.SetWaits(p.waits)
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

// Err returns how the launch ended, as launch.Progress.Err does.
func (r *Run) Err() error { return r.progress.Err() }

// Panicked ends the launch with an error, after a panic of Work.
func (r *Run) Panicked(v any) { r.progress.Panicked(r.exe.kernel.Name, v) }

// turnTime is how long a worker goes on before other goroutines get a turn.
const turnTime = 100 * time.Microsecond

// Work executes threadgroups until none is left that no other worker has begun, the launch is interrupted or a kernel
// faults. Threadgroups that wait for others are suspended, and others take turns with them.
func (r *Run) Work() { launch.TakeTurns(&r.progress, r.exe.kernel, &worker{run: r, turn: time.Now()}) }

// worker is a goroutine's part in a Run.
type worker struct {
	run  *Run
	turn time.Time // when other goroutines last got one
}

// Begin implements launch.Turns.
func (w *worker) Begin(i int64) (g *group, ended, ok bool) {
	g = w.run.begin(i)
	if ended = w.Turn(g, 0); ended && time.Since(w.turn) > turnTime { // who builds the next graph needs a processor too
		w.Yield()
		w.turn = time.Now()
	}
	return g, ended, true
}

// Turn implements launch.Turns.
func (w *worker) Turn(g *group, _ int) (ended bool) {
	if !g.step() {
		return false
	}
	w.run.finish(g)
	return true
}

// Index implements launch.Turns.
func (w *worker) Index(g *group) int64 { return g.index }

// Bytes implements launch.Turns.
func (w *worker) Bytes(g *group) int {
	p := w.run.exe
	return 8*len(g.mem) + len(g.frames)*(p.regBytes+p.threadBytes+1024)
}

// Yield implements launch.Turns.
func (w *worker) Yield() { runtime.Gosched() }

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
	g.objs = append(g.objs[:0], object{space: noSpace, write: noSpace})
	for i, p := range k.Params {
		b := r.buffers[i]
		o := object{space: p.Space, write: p.Space, size: uint64(len(b)), base: unsafe.Pointer(unsafe.SliceData(b))}
		if p.ReadOnly {
			o.write = noSpace
		}
		if p.Space == kir.Threadgroup {
			o.base, o.size = tg(r.tgParams[i], r.tgSizes[i]), uint64(r.tgSizes[i])
		}
		g.objs = append(g.objs, o)
	}
	for i, q := range k.Regions {
		o := object{space: q.Space, write: q.Space, size: uint64(q.Size)}
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
		if g.run.progress.Over(g.index) {
			return true
		}
	}
}

// stopped passes on why the frame stopped, if by a fault.
func (g *group) stopped(f *frame) bool {
	if f.fault != nil {
		g.run.progress.Fail(f.fault, g.index)
	}
	return true
}
