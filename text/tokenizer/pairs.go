package tokenizer

import "math/bits"

// pairs is a map from two numbers to two numbers, in one array: the merges of a BPE, and the edges of tries. The first
// key is at least 0.
type pairs struct {
	slots []pairSlot // a power of two of them, at most half of them used
	used  int
}

type pairSlot struct {
	a, b int32 // a is one more than the key, so that 0 is a free slot
	x, y int32
}

func (p *pairs) slot(a, b int32) int {
	h := (uint64(uint32(a))<<32 | uint64(uint32(b))) * 0x9E3779B97F4A7C15
	return int(h >> (64 - uint(bits.Len(uint(len(p.slots)-1)))))
}

func (p *pairs) get(a, b int32) (x, y int32, ok bool) {
	if len(p.slots) == 0 {
		return 0, 0, false
	}
	a++
	for i := p.slot(a, b); ; i = (i + 1) & (len(p.slots) - 1) {
		s := &p.slots[i]
		if s.a == a && s.b == b {
			return s.x, s.y, true
		}
		if s.a == 0 {
			return 0, 0, false
		}
	}
}

func (p *pairs) set(a, b, x, y int32) {
	if 2*(p.used+1) > len(p.slots) {
		p.grow(max(16, 2*len(p.slots)))
	}
	a++
	i := p.slot(a, b)
	for p.slots[i].a != 0 && (p.slots[i].a != a || p.slots[i].b != b) {
		i = (i + 1) & (len(p.slots) - 1)
	}
	if p.slots[i].a == 0 {
		p.used++
	}
	p.slots[i] = pairSlot{a, b, x, y}
}

func (p *pairs) grow(n int) {
	old := p.slots
	p.slots = make([]pairSlot, n)
	for _, s := range old {
		if s.a == 0 {
			continue
		}
		i := p.slot(s.a, s.b)
		for p.slots[i].a != 0 {
			i = (i + 1) & (n - 1)
		}
		p.slots[i] = s
	}
}
