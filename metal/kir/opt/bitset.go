package opt

import "math/bits"

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) add(i uint64)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) remove(i uint64)   { s[i/64] &^= 1 << (i % 64) }
func (s bitset) has(i uint64) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s bitset) or(t bitset) {
	for i, w := range t {
		s[i] |= w
	}
}

func (s bitset) clone() bitset { return append(bitset(nil), s...) }

// each calls f for every member, in increasing order.
func (s bitset) each(f func(i uint64)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			f(uint64(i*64 + bits.TrailingZeros64(w)))
		}
	}
}
