package regalloc

// flow is where the global virtual registers, those that several blocks name, are live as blocks begin and end. They
// are followed one by one, from where they are read back to where they are written, so that the work and the memory
// are in proportion to the result.
type flow struct {
	places []place // where global virtual registers are read before they are written, and written, by block
	froms  []int32 // the blocks before block b are froms[fromAt[b]:fromAt[b+1]]
	fromAt []int32
	marks  []marks // by block
	work   []int32
	lives  []int32 // blocks whose beginnings the one at hand is live at
	ends   []int32 // blocks whose ends it is live at
	outs   []place // by block, in list form: what is live at its end
	outAt  []int32 // the first of a block's outs, -1: none
	never  map[pair]struct{}
}

// place is an entry of a list: of blocks for a virtual register, or the other way round.
type place struct{ what, next int32 }

// pair is a virtual register that is read in a block that it can reach only unwritten.
type pair struct{ v, block int32 }

// marks of a block name the virtual register they were last made for.
type marks struct{ in, out, def, known int32 }

// live finds the global virtual registers that are live where blocks end, or marks them as coarse once that has become
// too much work.
func (a *Allocator) live() {
	f := &a.flow
	f.places, f.outs, f.outAt = f.places[:0], f.outs[:0], resize(f.outAt, len(a.blocks))
	clear(f.never)
	f.marks = resize(f.marks, len(a.blocks))
	for b := range a.blocks {
		f.outAt[b] = -1
		f.marks[b] = marks{-1, -1, -1, -1}
		a.exposed(int32(b))
	}
	a.before()
	for v := range a.ivs {
		if a.ivs[v].reads < 0 {
			continue
		}
		if a.work < 0 {
			a.ivs[v].coarse = true
			continue
		}
		a.follow(int32(v))
	}
}

// exposed lists block b with what it reads before it writes it, and with what it writes.
func (a *Allocator) exposed(b int32) {
	f := &a.flow
	list := func(head *int32) {
		if *head < 0 || f.places[*head].what != b {
			f.places = append(f.places, place{what: b, next: *head})
			*head = int32(len(f.places) - 1)
		}
	}
	for i := a.blocks[b].first; i <= a.blocks[b].last; i++ {
		ops := a.ops[a.first[i]:a.first[i+1]]
		for _, o := range ops {
			iv := &a.ivs[o.V]
			if iv.block == -2 && o.Role&Use != 0 && (iv.written < 0 || f.places[iv.written].what != b) {
				list(&iv.reads)
			}
		}
		for _, o := range ops {
			if iv := &a.ivs[o.V]; iv.block == -2 && o.Role&Def != 0 {
				list(&iv.written)
			}
		}
	}
}

// before lists the blocks that come before each block.
func (a *Allocator) before() {
	f := &a.flow
	f.fromAt = resize(f.fromAt, len(a.blocks)+1)
	clear(f.fromAt)
	for b := range a.blocks {
		for _, t := range a.blocks[b].to {
			if t >= 0 {
				f.fromAt[t]++
			}
		}
	}
	n := int32(0)
	for b := range f.fromAt {
		n += f.fromAt[b]
		f.fromAt[b] = n
	}
	f.froms = resize(f.froms, int(n))
	for b := range a.blocks {
		for _, t := range a.blocks[b].to {
			if t >= 0 {
				f.fromAt[t]--
				f.froms[f.fromAt[t]] = int32(b)
			}
		}
	}
}

// follow finds the blocks at whose ends v is live.
func (a *Allocator) follow(v int32) {
	f := &a.flow
	f.lives, f.ends = f.lives[:0], f.ends[:0]
	for p := a.ivs[v].written; p >= 0; p = f.places[p].next {
		f.marks[f.places[p].what].def = v
	}
	for p := a.ivs[v].reads; p >= 0; p = f.places[p].next {
		b := f.places[p].what
		f.marks[b].in = v
		f.lives = append(f.lives, b)
	}
	unwritten := false
	for n := 0; n < len(f.lives); n++ {
		b := f.lives[n]
		unwritten = unwritten || !a.blocks[b].entered
		for _, p := range f.froms[f.fromAt[b]:f.fromAt[b+1]] {
			m := &f.marks[p]
			if m.out == v {
				continue
			}
			m.out = v
			f.ends = append(f.ends, p)
			if m.def != v && m.in != v {
				m.in = v
				f.lives = append(f.lives, p)
			}
		}
	}
	if unwritten {
		a.known(v)
	}
	a.work -= 4 * len(f.ends)
	for _, b := range f.ends {
		if m := &f.marks[b]; !unwritten || m.known == v || m.def == v {
			f.outs = append(f.outs, place{what: v, next: f.outAt[b]})
			f.outAt[b] = int32(len(f.outs) - 1)
		}
	}
}

// known marks the blocks in whose beginnings v may have been written. Where it is read on a path on which it was not
// written its value does not matter, and it is not live.
func (a *Allocator) known(v int32) {
	f := &a.flow
	f.work = f.work[:0]
	reach := func(b int32) {
		for _, t := range a.blocks[b].to {
			if t >= 0 && f.marks[t].in == v && f.marks[t].known != v {
				f.marks[t].known = v
				f.work = append(f.work, t)
			}
		}
	}
	for p := a.ivs[v].written; p >= 0; p = f.places[p].next {
		reach(f.places[p].what)
	}
	for n := 0; n < len(f.work); n++ {
		reach(f.work[n])
	}
	for p := a.ivs[v].reads; p >= 0; p = f.places[p].next {
		if m := &f.marks[f.places[p].what]; m.known != v && m.def != v {
			if f.never == nil {
				f.never = map[pair]struct{}{}
			}
			f.never[pair{v, f.places[p].what}] = struct{}{}
		}
	}
}
