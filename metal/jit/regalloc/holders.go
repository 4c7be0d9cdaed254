package regalloc

// stretchBits: a stretch of the list, which has its own list of who holds a register there, is 1<<stretchBits
// positions long.
const stretchBits = 7

// index tells who holds a register where: for each register and each stretch, the ranges in it.
type index struct {
	heads []int32 // by register and stretch: the first of its holds, -1: none
	holds []hold
	spare int32 // the first of a list of holds to use again, -1: none
}

// hold is a range of positions that a virtual register has a register in.
type hold struct{ from, to, v, next int32 }

// empty makes an index of n stretches without holders.
func (x *index) empty(n int) {
	x.heads = resize(x.heads, n)
	for k := range x.heads {
		x.heads[k] = -1
	}
	x.holds, x.spare = x.holds[:0], -1
}

// hold puts v among the holders of a register.
func (a *Allocator) hold(v int32, r int) {
	a.turn++
	a.ivs[v].turn = a.turn
	x := &a.held
	for k := a.ivs[v].head; k >= 0; k = a.ranges[k].next {
		s := &a.ranges[k]
		a.work -= int(s.to>>stretchBits-s.from>>stretchBits) + 1
		for t := s.from >> stretchBits; t <= s.to>>stretchBits; t++ {
			head := &x.heads[r*a.stretches+int(t)]
			h := hold{from: s.from, to: s.to, v: v, next: *head}
			if n := x.spare; n >= 0 {
				x.spare, x.holds[n] = x.holds[n].next, h
				*head = n
				continue
			}
			x.holds = append(x.holds, h)
			*head = int32(len(x.holds) - 1)
		}
	}
}

// letGo takes v out of the holders of a register.
func (a *Allocator) letGo(v int32, r int) {
	x := &a.held
	for k := a.ivs[v].head; k >= 0; k = a.ranges[k].next {
		s := &a.ranges[k]
		for t := s.from >> stretchBits; t <= s.to>>stretchBits; t++ {
			for link := &x.heads[r*a.stretches+int(t)]; *link >= 0; {
				n := *link
				a.work--
				if x.holds[n].v != v {
					link = &x.holds[n].next
					continue
				}
				*link = x.holds[n].next
				x.holds[n].next, x.spare = x.spare, n
			}
		}
	}
}

// eachHolder calls f once for each holder of a register that is live somewhere together with v, until f returns
// false.
func (a *Allocator) eachHolder(v int32, r int, f func(u int32) bool) {
	x := &a.held
	a.search++
	for k := a.ivs[v].head; k >= 0; k = a.ranges[k].next {
		s := &a.ranges[k]
		a.work -= int(s.to>>stretchBits-s.from>>stretchBits) + 1
		for t := s.from >> stretchBits; t <= s.to>>stretchBits; t++ {
			for n := x.heads[r*a.stretches+int(t)]; n >= 0; n = x.holds[n].next {
				h := &x.holds[n]
				a.work--
				if h.to < s.from || h.from > s.to || a.met[h.v] == a.search {
					continue
				}
				a.met[h.v] = a.search
				if !f(h.v) {
					return
				}
			}
		}
	}
}
