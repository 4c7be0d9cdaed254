package tensor

import (
	"os"
	"slices"
	"sync/atomic"
)

// fuse is false where MLXLUA_FUSE=0 asks for a kernel of its own for each op: results are the same, byte for byte.
var fuse atomic.Bool

func init() { fuse.Store(os.Getenv("MLXLUA_FUSE") != "0") }

// SetFusion switches the fusion of ops into kernels on or off for evaluations that begin after the call, and says
// what it was: for tests and bisection. MLXLUA_FUSE=0 in the environment switches it off from the start.
func SetFusion(on bool) (before bool) { return fuse.Swap(on) }

// The limits of a fused kernel: ops, and buffers (operands and outputs; Metal allows 31, one holds numbers).
const (
	maxFusedOps     = 64
	maxFusedBuffers = 28
)

// unit is what is encoded as one: a cluster of element-wise nodes, a reduction with the element-wise nodes before
// it, or one node. Its members are a chain of slots, the last of which is the root.
type unit struct{ first, root int32 }

// plan is the stream's scratch for planning a segment; its slices are indexed by slot, except where said.
type plan struct {
	fuse    bool
	single  bool    // every call runs by itself, and its result is looked at
	base    []int32 // of the slot's first output in the slices by output
	edges   []int32 // by output: reads of it inside the segment
	live    []bool  // by output: someone may read it after the segment
	cluster []int32 // the slot of the root of its cluster
	reader  []int32 // the one cluster that reads all of it: noReader or manyReaders if there is not one
	next    []int32 // the following member of its cluster
	first   []int32 // by root: the first member
	ops     []int32 // by root: members
	buffers []int32 // by root: at most so many operands and outputs
	units   []unit
	step    []int32 // the member's place in the kernel that is being recorded: notMember if it is none of its members
	seen    []Value // of exact
	order   order
	lead    bool // what computes indices comes first also where no change is under way
}

// notMember is the place of slots outside of the unit that is being recorded.
const notMember = -2

const (
	noReader    = -1
	manyReaders = -2
)

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		s = make([]T, n, n+n/2)
	}
	s = s[:n]
	clear(s)
	return s
}

// makePlan fills the plan: which outputs someone may read later, and what is encoded as one.
func (c *current) makePlan(s *Stream) {
	p, seg := &c.plan, c.seg
	p.single = checkNaN.Load()
	p.fuse = fuse.Load() && !p.single
	p.units = p.units[:0]
	stopped := &c.job.stopped // looked at after each pass over the graph
	p.countReaders(seg)
	if !stopped.Load() {
		c.findLive(s)
	}
	if !stopped.Load() {
		p.makeUnits(seg)
	}
	if !stopped.Load() {
		p.orderUnits(seg, c.job.proof)
		p.leadIndices(seg)
	}
}

// countReaders numbers the outputs of the segment and counts their readers in it. None is live so far.
func (p *plan) countReaders(seg *segment) {
	p.base = resize(p.base, len(seg.tasks))
	outs := 0
	for i := range seg.tasks {
		p.base[i] = int32(outs)
		outs += len(seg.tasks[i].node.out)
	}
	p.edges = resize(p.edges, outs)
	for i := range seg.tasks {
		for _, v := range seg.tasks[i].reads() {
			if v.Node.seg == seg {
				p.edges[p.base[v.Node.slot]+int32(v.Out)]++
			}
		}
	}
	p.live = resize(p.live, outs)
}

// makeUnits decides what is encoded as one, where it is known which outputs are live.
func (p *plan) makeUnits(seg *segment) {
	tasks := seg.tasks
	n := len(tasks)
	p.cluster, p.reader = resize(p.cluster, n), resize(p.reader, n)
	p.next, p.first = resize(p.next, n), resize(p.first, n)
	p.ops, p.buffers = resize(p.ops, n), resize(p.buffers, n)
	p.step = resize(p.step, n)
	for i := range p.reader {
		p.reader[i], p.next[i], p.step[i] = noReader, -1, notMember
	}
	for i := int32(n) - 1; i >= 0; i-- {
		p.join(tasks, i)
		for _, v := range tasks[i].reads() {
			if v.Node.seg != seg {
				continue
			}
			j := v.Node.slot
			switch c := p.cluster[i]; {
			case p.reader[j] == noReader:
				p.reader[j] = c
			case p.reader[j] != c:
				p.reader[j] = manyReaders
			}
		}
	}
	p.units = p.units[:0]
	for i := range tasks {
		if p.cluster[i] == int32(i) {
			p.units = append(p.units, unit{p.first[i], int32(i)})
		}
	}
}

// join puts slot i in the cluster that reads it, if it may be computed there, or begins a cluster.
func (p *plan) join(tasks []task, i int32) {
	t := &tasks[i]
	c := p.reader[i]
	if c >= 0 && p.fuse && t.elementwise() && p.fits(tasks, i, c) {
		p.cluster[i] = c
		p.next[i], p.first[c] = p.first[c], i
		p.ops[c]++
		p.buffers[c] += p.addedBuffers(t, i)
		return
	}
	p.cluster[i], p.first[i] = i, i
	p.ops[i] = 1
	if e := t.node.op; e.expr != nil || e.reduce != nil {
		p.buffers[i] = int32(t.from) + 1
	}
}

// addedBuffers is how many more buffers a cluster binds, at most, when the node in slot i, which it reads, is computed
// in it.
func (p *plan) addedBuffers(t *task, i int32) int32 {
	n := int32(t.from) - 1
	if p.live[p.base[i]] {
		n++
	}
	return n
}

// exactBuffers counts the buffers of cluster c, a value that several members read once.
func (p *plan) exactBuffers(tasks []task, c int32) int32 {
	p.seen = p.seen[:0]
	n := int32(1)
	for i := p.first[c]; i >= 0; i = p.next[i] {
		if i != c && p.live[p.base[i]] {
			n++
		}
		for _, v := range tasks[i].reads() {
			inside := v.Node.seg == tasks[c].node.seg && p.cluster[v.Node.slot] == c
			if !inside && !slices.Contains(p.seen, v) {
				p.seen = append(p.seen, v)
			}
		}
	}
	n += int32(len(p.seen))
	clear(p.seen)
	return n
}

// fits reports whether the element-wise node in slot i, which cluster c alone reads, may be computed in c's kernel.
func (p *plan) fits(tasks []task, i, c int32) bool {
	t, root := &tasks[i], &tasks[c]
	if p.ops[c] >= maxFusedOps {
		return false
	}
	if p.buffers[c]+p.addedBuffers(t, i) > maxFusedBuffers {
		if p.buffers[c] = p.exactBuffers(tasks, c); p.buffers[c]+p.addedBuffers(t, i) > maxFusedBuffers {
			return false
		}
	}
	shape := t.node.out[0].spec.Shape
	switch {
	case root.elementwise():
		return shape.Equal(root.node.out[0].spec.Shape)
	case root.node.op.reduce != nil: // its kernel writes nothing but its output
		return !p.live[p.base[i]] && shape.Equal(root.in[0].Spec().Shape)
	}
	return false
}

// members lists the slots of a unit, inputs first.
func (p *plan) members(u unit, out []int32) []int32 {
	for i := u.first; i >= 0; i = p.next[i] {
		out = append(out, i)
	}
	return out
}
