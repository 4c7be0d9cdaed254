package tensor

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/metal"
)

// Profile adds up where the time of evaluations goes: for each op or fused ops, kernel and line of a program. There is
// one at a time; it sees all goroutines of the process.
type Profile struct {
	start time.Time

	mu   sync.Mutex
	rows map[profileKey]*ProfileRow
	took time.Duration // from start to Stop
	over bool
}

// profileKey is what the rows of a profile are told apart by.
type profileKey struct {
	op, kernel string
	place      Place
}

// ProfileRow is what calls of one kind took.
type ProfileRow struct {
	Op     string // what was called; of fused ops all, the last one first
	Kernel string // that ran; "host" for Go code, "copy or fill", "compile" for the time that texts of kernels took
	Place  Place  // of the call, of the last one of fused ops
	Calls  int
	Copied int // calls that were to change an input in place and have copied it: something else may read it
	Time   time.Duration
	Bytes  int64   // that the calls read and wrote; of what they change in place only the part that changes
	Flops  float64 // operations on numbers; 0: unknown
}

// updateMoves is what a call moves that changes an input in place, beside what it reads.
type updateMoves struct {
	changed int64 // bytes that its kernels write
	copied  int64 // bytes of the input, where it was copied
}

func (u *updateMoves) bytes() int64 { return u.changed + 2*u.copied }

var profile atomic.Pointer[Profile]

// StartProfile begins to measure. It is an error if another Profile is being measured.
func StartProfile() (*Profile, error) {
	p := &Profile{start: time.Now(), rows: map[profileKey]*ProfileRow{}}
	if !profile.CompareAndSwap(nil, p) {
		return nil, errors.New("[profile] another profile is being measured")
	}
	return p, nil
}

// Stop ends the measuring. What runs then is left out: see Synchronize.
func (p *Profile) Stop() {
	profile.CompareAndSwap(p, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over, p.took = true, time.Since(p.start)
	}
}

// Took is the time from start to Stop.
func (p *Profile) Took() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took
}

// Rows are the rows, the one with the longest time first.
func (p *Profile) Rows() []ProfileRow {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []ProfileRow
	for _, r := range slices.Collect(maps.Values(p.rows)) {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b ProfileRow) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Kernel, b.Kernel),
			cmp.Compare(a.Place.String(), b.Place.String()))
	})
	return out
}

// add adds what r says of calls to their row.
func (p *Profile) add(k profileKey, by ProfileRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	r := p.rows[k]
	if r == nil {
		r = &ProfileRow{Op: k.op, Kernel: k.kernel, Place: k.place}
		p.rows[k] = r
	}
	r.Calls += by.Calls
	r.Copied += by.Copied
	r.Time += by.Time
	r.Bytes += by.Bytes
	r.Flops += by.Flops
}

// addBatch adds a batch whose commands have run, before its nodes are settled.
func (p *Profile) addBatch(b *batch) {
	took := b.cb.Took()
	for i := 0; i < len(b.nodes); {
		j := i + 1
		for j < len(b.nodes) && b.nodes[j].first == b.nodes[i].first && b.nodes[j].last == b.nodes[i].last {
			j++
		}
		p.addUnit(b.nodes[i:j], took)
		i = j
	}
}

// addUnit adds the commands that fused nodes share. The kernel is the one that took longest.
func (p *Profile) addUnit(nodes []settling, took []metal.CommandTime) {
	first, last := nodes[0].first, min(nodes[0].last, len(took))
	if first >= last {
		return
	}
	var total, longest time.Duration
	kernel := ""
	for _, t := range took[first:last] {
		total += t.Took
		if t.Kernel != "" && t.Took >= longest {
			kernel, longest = t.Kernel, t.Took
		}
	}
	if kernel == "" {
		kernel = "copy or fill"
	}
	root := nodes[len(nodes)-1].node
	key := profileKey{root.op.name, kernel, root.Place()}
	by := ProfileRow{Calls: 1, Time: total}
	inside, stored := map[*Node]bool{}, map[Value]bool{}
	for i := range nodes {
		inside[nodes[i].node] = true
		by.Flops += nodes[i].flops()
	}
	if len(nodes) > 1 {
		names := make([]string, len(nodes))
		for i := range nodes {
			names[len(nodes)-1-i] = nodes[i].node.op.name
		}
		key.op = strings.Join(names, "+")
	}
	for i := range nodes {
		n, update := nodes[i].node, nodes[i].update
		for k, v := range nodes[i].reads() {
			if !inside[v.Node] && !stored[v] && (update == nil || !n.op.updatesInput(n.attrs, len(n.out), k)) {
				stored[v] = true
				by.Bytes += v.Spec().NBytes()
			}
		}
		by.Bytes += written(n, n == root, update != nil)
		if update == nil {
			continue
		}
		by.Bytes += update.bytes()
		if update.copied > 0 {
			by.Copied++
		}
	}
	if nodes[0].kind == unfinished {
		by = ProfileRow{Time: total} // the rest comes with a later batch
	}
	p.add(key, by)
}

// written is how many bytes of outputs a node has stored, or of all where that is known; but for those that it changes
// in place, if they are counted apart.
func written(n *Node, all, apart bool) (bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.out {
		if o := &n.out[i]; (all || o.data.buf != nil) && !(apart && n.op.starts(n.attrs, i) >= 0) {
			bytes += o.spec.NBytes()
		}
	}
	return bytes
}

// flops is how many operations on numbers the task takes; 0 if that is unknown.
func (t *task) flops() float64 {
	n := t.node
	switch {
	case n.op.flops != nil:
		return float64(countedFlops(n, t.in))
	case n.op.expr != nil:
		return float64(n.out[0].spec.Shape.Size())
	case n.op.reduce != nil:
		return float64(t.in[0].Spec().Shape.Size())
	}
	return 0
}

// countedFlops is how many operations on numbers a node takes by its op's own rule, from these inputs; 0 if the op has
// none.
func countedFlops(n *Node, inputs []Value) int64 {
	if n.op.flops == nil {
		return 0
	}
	in, out := make([]Spec, len(inputs)), make([]Spec, len(n.out))
	for i, v := range inputs {
		in[i] = v.Spec()
	}
	for i := range n.out {
		out[i] = n.out[i].spec
	}
	const most = 1 << 50 // so that sums do not overflow
	return int64(min(n.op.flops(in, out, n.attrs), most))
}

// addHost adds a call that Go code computed.
func (p *Profile) addHost(t *task, took time.Duration) {
	var bytes int64
	for _, v := range t.reads() {
		bytes += v.Spec().NBytes()
	}
	for i := range t.node.out {
		bytes += t.node.out[i].spec.NBytes()
	}
	p.add(profileKey{t.node.op.name, "host", t.node.Place()}, ProfileRow{Calls: 1, Time: took, Bytes: bytes,
		Flops: t.flops()})
}
