package tensor

// order finds the order in which units are recorded. The graph's own is that of a walk from the roots, which comes to
// the gradient of a weight long after the cotangent that it needs was there, so that all of a step's cotangents and
// activations would be kept. A unit is therefore moved to the front as soon as it can run and gives back more memory
// than it takes. Its slices are indexed by unit, except where said; it is a stream's scratch.
type order struct {
	p     *plan
	tasks []task
	seg   *segment

	unitOf  []int32 // by the slot of a root
	size    []int64 // bytes that the unit's outputs take
	view    []bool  // it computes nothing
	need    []int32 // reads of what other units compute that is not there yet
	done    []bool
	fixed   []bool  // it stays in its place
	heads   []int32 // by output: where its readers begin
	readers []int32 // units that read an output, in the order of heads
	sorted  []unit
	ready   []int32 // units to look at
	early   []bool  // by the slot of a root: it comes before all that is not

	// By storage. Those of outputs have the outputs' numbers, and those from outside the segment come behind them.
	store []int32 // by output: its storage, which is its input's where it is a view
	bytes []int64 // that are given back when nothing is left to read it
	left  []int32 // units that read it and have not run
	last  []int32 // the exclusive or of their numbers: the number of the last one
	seen  []int32 // the question that came to it last
	asked int32
	outer map[Value]int32
}

// The least for which an order is looked for: bytes in all, and for each unit. Finding it takes 0.1 to 0.2 us for a
// unit.
const (
	leastOrdered     = 1 << 20
	leastOrderedUnit = 4 << 10
)

// noStorage says that an output needs no memory, or little.
const noStorage = -1

// orderUnits puts the plan's units into the order in which they are recorded.
func (p *plan) orderUnits(seg *segment, proof proof) {
	o := &p.order
	o.p, o.seg, o.tasks = p, seg, seg.tasks
	if o.measure() {
		o.link(proof)
		for u := range p.units {
			o.run(int32(u))
		}
		p.units, o.sorted = o.sorted, p.units
	}
	clear(o.outer)
	o.seg, o.tasks = nil, nil
}

// measure sizes the units. It reports whether to look for an order.
func (o *order) measure() bool {
	p := o.p
	n := len(p.units)
	if p.single || n < 3 {
		return false
	}
	o.size, o.view, o.fixed = resize(o.size, n), resize(o.view, n), resize(o.fixed, n)
	var sum int64
	for u := range p.units {
		root := &o.tasks[p.units[u].root]
		op := root.node.op
		o.view[u] = true
		o.fixed[u] = op.host != nil // the device is waited for
		for slot := p.units[u].first; slot >= 0; slot = p.next[slot] {
			t := &o.tasks[slot]
			o.view[u] = o.view[u] && t.isView()
			for i := range t.node.out {
				if slot == p.units[u].root || p.live[p.base[slot]+int32(i)] {
					o.size[u] += t.node.out[i].spec.NBytes()
				}
			}
		}
		if o.view[u] {
			o.size[u] = 0
		}
		sum += o.size[u]
	}
	return sum >= leastOrdered && sum >= int64(n)*leastOrderedUnit
}

// link notes who reads what, and which units can run.
func (o *order) link(proof proof) {
	p := o.p
	n, outs := len(p.units), len(p.live)
	o.unitOf, o.need, o.done = resize(o.unitOf, len(o.tasks)), resize(o.need, n), resize(o.done, n)
	o.heads, o.store = resize(o.heads, outs+1), resize(o.store, outs)
	o.bytes, o.left, o.last = resize(o.bytes, outs), resize(o.left, outs), resize(o.last, outs)
	o.seen, o.asked = resize(o.seen, outs), 0
	o.sorted, o.ready = o.sorted[:0], o.ready[:0]
	if o.outer == nil {
		o.outer = map[Value]int32{}
	}
	for u := range p.units {
		o.unitOf[p.units[u].root] = int32(u)
	}
	o.place()
	for u := range p.units {
		o.eachRead(int32(u), func(v Value, _, at int32) {
			if at >= 0 {
				o.heads[at]++
				o.need[u]++
			} else if in := v.Node; in.runs != o.seg.stream && in.pending() {
				o.fixed[u] = true // another stream is waited for
			}
		})
	}
	var sum int32
	for at := range o.heads {
		sum += o.heads[at]
		o.heads[at] = sum // the end of its readers, from which they are put in
	}
	o.readers = resize(o.readers, int(sum))
	for u := range p.units {
		o.eachRead(int32(u), func(_ Value, _, at int32) {
			if at >= 0 {
				o.heads[at]--
				o.readers[o.heads[at]] = int32(u)
			}
		})
		if !o.view[u] {
			o.eachStorage(int32(u), func(s int32) {
				o.left[s]++
				o.last[s] ^= int32(u)
			})
		}
	}
	for v, s := range o.outer {
		out := &v.Node.out[v.Out]
		if out.readers.waiting() != int32(o.bytes[s]) || !v.unheld(proof) {
			o.bytes[s] = 0
		} else {
			o.bytes[s] = out.spec.NBytes()
		}
	}
	for u := range p.units {
		if o.view[u] && o.need[u] == 0 {
			o.deliver(int32(u))
		}
	}
	o.ready = o.ready[:0] // what depends on nothing keeps its place
}

// place finds the storage of each output. Of those from outside it counts the reads, in place of bytes.
func (o *order) place() {
	p := o.p
	for i := range o.store {
		o.store[i] = noStorage
	}
	for u := range p.units {
		for slot := p.units[u].first; slot >= 0; slot = p.next[slot] {
			t := &o.tasks[slot]
			for _, v := range t.reads() {
				if v.Node.seg != o.seg && v.Spec().NBytes() >= leastFree {
					o.outside(v)
				}
			}
			for i := range t.node.out {
				at := p.base[slot] + int32(i)
				switch {
				case o.view[u] && len(t.in) > 0:
					if o.store[at] = o.storage(t.in[0]); p.live[at] && o.store[at] >= 0 && int(o.store[at]) < len(o.store) {
						o.bytes[o.store[at]] = 0 // it stays
					}
				case slot == p.units[u].root && !p.live[at]:
					o.store[at] = at
					o.bytes[at] = t.node.out[i].spec.NBytes()
				}
			}
		}
	}
}

// outside counts a read of a value from outside the segment.
func (o *order) outside(v Value) {
	s, known := o.outer[v]
	if !known {
		s = int32(len(o.bytes))
		o.outer[v] = s
		o.bytes, o.left, o.last, o.seen = append(o.bytes, 0), append(o.left, 0), append(o.last, 0), append(o.seen, 0)
	}
	o.bytes[s]++
}

// storage is where a value lies.
func (o *order) storage(v Value) int32 {
	if v.Node.seg == o.seg {
		return o.store[o.p.base[v.Node.slot]+int32(v.Out)]
	}
	if s, ok := o.outer[v]; ok {
		return s
	}
	return noStorage
}

// eachRead calls f for the values that a unit reads and does not compute, with the unit that computes a value and its
// number among outputs, or -1 for both.
func (o *order) eachRead(u int32, f func(v Value, from, at int32)) {
	p := o.p
	root := p.units[u].root
	for slot := p.units[u].first; slot >= 0; slot = p.next[slot] {
		for _, v := range o.tasks[slot].reads() {
			switch {
			case v.Node.seg != o.seg:
				f(v, -1, -1)
			case p.cluster[v.Node.slot] != root:
				f(v, o.unitOf[p.cluster[v.Node.slot]], p.base[v.Node.slot]+int32(v.Out))
			}
		}
	}
}

// eachStorage calls f once for each storage that a unit reads.
func (o *order) eachStorage(u int32, f func(s int32)) {
	o.asked++
	o.eachRead(u, func(v Value, _, _ int32) {
		if s := o.storage(v); s >= 0 && o.seen[s] != o.asked {
			o.seen[s] = o.asked
			f(s)
		}
	})
}

// run records a unit next, unless it has been, and then what is worth it.
func (o *order) run(u int32) {
	o.record(u)
	for len(o.ready) > 0 {
		c := o.ready[len(o.ready)-1]
		o.ready = o.ready[:len(o.ready)-1]
		if !o.done[c] && o.need[c] == 0 && !o.fixed[c] && o.gain(c) > 0 {
			o.record(c)
		}
	}
}

// record puts a unit behind those recorded so far, after the views that it reads, and notes what is worth a look now.
func (o *order) record(u int32) {
	if o.done[u] {
		return
	}
	o.done[u] = true
	o.eachRead(u, func(_ Value, from, _ int32) {
		if from >= 0 {
			o.record(from) // a view: all others have been
		}
	})
	o.sorted = append(o.sorted, o.p.units[u])
	if o.view[u] {
		return
	}
	o.eachStorage(u, func(s int32) {
		o.left[s]--
		if o.last[s] ^= u; o.left[s] == 1 {
			o.ready = append(o.ready, o.last[s])
		}
	})
	o.deliver(u)
}

// deliver says that what a unit computes is there, and so are its views, which cost nothing.
func (o *order) deliver(u int32) {
	p := o.p
	slot := p.units[u].root
	base := p.base[slot]
	for at := base; at < base+int32(len(o.tasks[slot].node.out)); at++ {
		for _, r := range o.readers[o.heads[at]:o.heads[at+1]] {
			if o.need[r]--; o.need[r] > 0 {
				continue
			}
			if o.view[r] {
				o.deliver(r)
			} else {
				o.ready = append(o.ready, r)
			}
		}
	}
}

// gain is how much more memory a unit gives back than it takes.
func (o *order) gain(u int32) int64 {
	gain := -o.size[u]
	o.eachStorage(u, func(s int32) {
		if o.left[s] == 1 {
			gain += o.bytes[s]
		}
	})
	return gain
}
