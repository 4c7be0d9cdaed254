package tensor

import (
	"context"
	"sync"
)

// schedMu makes claiming nodes and handing them to streams one step: all streams agree on the order of evaluations.
var schedMu sync.Mutex

// claimID numbers the walks over the graph; guarded by schedMu.
var claimID uint64

// frame is a node on the way from a root: its inputs from next on are still to be looked at.
type frame struct {
	n           *Node
	next, reads int
}

// claimScratch is the scratch of claim, guarded by schedMu.
var claimScratch struct {
	frames []frame
	segs   []*segment
	checks []indexCheck // of the job's tasks so far: see checkedBefore
}

// claim turns the lazy nodes that the job's roots depend on into scheduled ones, each after those that it reads, and
// hands them to their streams. It goes over the graph once, and no further when whoever waits for the job has left.
// Called with schedMu held.
func (j *job) claim() {
	claimID++
	w := &claimScratch
	frames, segs := w.frames[:0], w.segs[:0]
	var seg *segment
	var deps []*job // that are waited for
	tasks, deepest, steps, left := spareTasks.get(), 0, 0, false
	for _, x := range j.roots {
		next := x.Node // that the walk comes to
		for !left {
			if steps++; steps%askWaiter == 0 && j.waiter != nobody && j.waiter.Err() != nil {
				left = true
				break
			}
			if next != nil && next.seenBy != claimID && next.claimable() {
				next.seenBy = claimID
				frames = append(frames, frame{n: next, reads: next.specFrom(len(next.in))})
				deepest = max(deepest, len(frames))
			}
			if len(frames) == 0 {
				break
			}
			f := &frames[len(frames)-1]
			if f.next < f.reads {
				next = f.n.in[f.next].Node
				f.next++
				continue
			}
			n, reads := f.n, f.reads
			next, frames = nil, frames[:len(frames)-1]
			if n.runs = n.stream; n.runs == nil {
				n.runs = j.fallback
			}
			if seg == nil || seg.stream != n.runs {
				seg = &segment{job: j, stream: n.runs, first: len(tasks)}
				segs = append(segs, seg)
			}
			lost := false
			for _, v := range n.in[:reads] {
				in := v.Node
				if in.seenBy == claimID {
					continue
				}
				if in.pending() && in.seg.job.visited != claimID {
					in.seg.job.visited = claimID
					deps = append(deps, in.seg.job)
				} else if in.now() == Failed {
					lost = true
				}
			}
			n.seg, n.slot = seg, int32(len(tasks)-seg.first)
			tasks = append(tasks, task{n, n.in, reads})
			j.foresee(&tasks[len(tasks)-1], lost)
			n.state.Store(int32(Scheduled))
			n.yieldInputs(&tasks[len(tasks)-1])
		}
	}
	for _, x := range j.roots {
		if x.Node.seenBy == claimID { // it is claimed now; its stream does not know it yet
			x.Node.out[x.Out].asked = true
		}
	}
	if left {
		j.leaveRoots()
	}
	j.roots, j.waiter = nil, nobody
	j.tasks.Store(int64(len(tasks)))
	j.countClaimed(int64(len(tasks)))
	j.waitFor(deps)
	if left && len(segs) == 0 {
		j.setUnsettled(1)
		go j.segmentSettled() // it needs schedMu
	} else {
		j.setUnsettled(len(segs))
	}
	for i, s := range segs {
		end := len(tasks)
		if i+1 < len(segs) {
			end = segs[i+1].first
		}
		s.tasks, s.whole = tasks[s.first:end:end], len(segs) == 1
	}
	for _, s := range segs {
		s.stream.enqueue(s) // from here on it is the stream's
	}
	if len(segs) == 0 {
		spareTasks.put(tasks)
	}
	w.frames, w.segs, w.checks = emptied(frames[:deepest]), emptied(segs), emptied(w.checks)
}

// askWaiter is how many steps of a walk stand between two looks at the waiter's context.
const askWaiter = 1 << 10

// leaveRoots stops the job before all of it is claimed: what is claimed is undone, and so are roots that are not.
// Called with schedMu held.
func (j *job) leaveRoots() {
	none := &segment{job: j}
	for _, x := range j.roots {
		if n := x.Node; n.now() == submitted {
			n.seg = none
			n.state.Store(int32(undone))
			j.mu.Lock()
			j.undone = append(j.undone, n)
			j.mu.Unlock()
		}
	}
	jobs.Lock()
	j.stop(context.Cause(j.waiter))
	jobs.Unlock()
}

// maxSpare is the most elements of a list that is kept for later evaluations.
const maxSpare = 1 << 14

// emptied is a list for later use, or nil if it is too long to keep.
func emptied[T any](l []T) []T {
	if cap(l) > maxSpare {
		return nil
	}
	clear(l)
	return l[:0]
}

// spareTasks are lists of tasks for later evaluations.
var spareTasks taskLists

type taskLists struct {
	mu    sync.Mutex
	lists [][]task
}

// maxTaskLists is the most lists that taskLists keep.
const maxTaskLists = 4

func (l *taskLists) get() []task {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.lists)
	if n == 0 {
		return nil
	}
	tasks := l.lists[n-1]
	l.lists = l.lists[:n-1]
	return tasks
}

// put takes a list back; nothing refers to its elements any more.
func (l *taskLists) put(tasks []task) {
	if tasks = emptied(tasks); cap(tasks) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lists) < maxTaskLists {
		l.lists = append(l.lists, tasks)
	}
}

// yieldInputs gives the node's inputs to its task, unless a trace may still walk it: then the task has uses of its own.
func (n *Node) yieldInputs(t *task) {
	if n.traces != nil {
		addUses(n, t.in, 1) // first: a trace that ends meanwhile takes the node's own away
		held := false
		for _, tr := range n.traces.list() {
			held = tr.keep(n) || held
		}
		if held {
			return
		}
		addUses(n, t.in, -1)
	}
	n.mu.Lock()
	n.dropInputs()
	n.mu.Unlock()
}

// dropInputs forgets the node's inputs; its task may still read them. Called with mu held.
func (n *Node) dropInputs() {
	n.in = nil
	if n.taskDone {
		clear(n.few[:])
	}
}

// claimAll claims the evaluations that were handed over before the call, in their order. Whatever depends on how far a
// node has come begins with it. S is the stream on whose goroutine it runs, or nil.
func claimAll(s *Stream) {
	if handed.unclaimed.Load() == 0 {
		return
	}
	schedMu.Lock()
	defer schedMu.Unlock()
	claimAllHeld(s)
}

// claimAllHeld is claimAll with schedMu held.
func claimAllHeld(s *Stream) {
	handed.Lock()
	jobs := handed.jobs
	handed.jobs = spareJobs[:0]
	handed.Unlock()
	if len(jobs) > 0 {
		defer beginClaiming(s).End(Place{})
	}
	for _, j := range jobs {
		j.claim()
		handed.unclaimed.Add(-1)
	}
	spareJobs = emptied(jobs)
}

// beginClaiming begins the span of claiming on the goroutine of s, or on the running one where s is nil.
func beginClaiming(s *Stream) Span {
	if s != nil {
		return s.span("claim", "graph")
	}
	return BeginSpan("claim", "graph")
}
