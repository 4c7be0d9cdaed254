package tensor

import "slices"

// Bounds of what is computed early to check indices: units for each index, and the bytes that one of them writes.
const (
	mostEarly      = 64
	mostEarlyBytes = 64 << 10
)

// leadIndices puts what computes indices first, where that is little, while a change is under way: then they can be
// checked ahead of what writes over old values (see Rules.CheckIndices), wherever the calls are that use them.
func (p *plan) leadIndices(seg *segment) {
	if changes.n.Load() == 0 && !p.lead || p.single || len(p.units) < 2 {
		return
	}
	o := &p.order
	any := false
	o.early = resize(o.early, len(seg.tasks))
	for i := range seg.tasks {
		t := &seg.tasks[i]
		if t.node.op.checkIndices != nil {
			for _, v := range t.indices() {
				any = v.Node.seg == seg && p.early(seg, p.cluster[v.Node.slot]) || any
			}
		}
	}
	if !any {
		return
	}
	o.sorted = o.sorted[:0]
	for _, first := range []bool{true, false} {
		for _, u := range p.units {
			if o.early[u.root] == first {
				o.sorted = append(o.sorted, u)
			}
		}
	}
	p.units, o.sorted = o.sorted, p.units
}

// early marks the unit of a root, and those behind it, as ones that come first, if that is little.
func (p *plan) early(seg *segment, root int32) bool {
	var few [mostEarly]int32
	found := append(few[:0], root)
	for i := 0; i < len(found); i++ {
		if p.order.early[found[i]] {
			continue
		}
		for slot := p.first[found[i]]; slot >= 0; slot = p.next[slot] {
			t := &seg.tasks[slot]
			if t.mayFail() || !t.isView() && t.node.out[0].spec.NBytes() > mostEarlyBytes {
				return false
			}
			for _, v := range t.reads() {
				if v.Node.seg != seg {
					if v.Node.runs != seg.stream && v.Node.pending() {
						return false // another stream is waited for
					}
					continue
				}
				if from := p.cluster[v.Node.slot]; from != found[i] && !slices.Contains(found, from) {
					if len(found) == mostEarly {
						return false
					}
					found = append(found, from)
				}
			}
		}
	}
	for _, root := range found {
		p.order.early[root] = true
	}
	return true
}
