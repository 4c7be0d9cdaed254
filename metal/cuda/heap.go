package cuda

import (
	"slices"
	"sync"
)

const (
	alignment  = 16 << 10 // of allocations: what the contract asks for
	slabBytes  = 64 << 20
	mostShared = 8 << 20 // a larger allocation is one of the library's
	largeStep  = 2 << 20 // whose sizes are multiples of that
)

// heap hands out the card's memory. A call of the library's for each buffer would take as long as many kernels, so
// small allocations share slabs. Called between Enter and Leave.
type heap struct {
	mu    sync.Mutex
	slabs []*slab
	large map[*allocation]struct{}
	bytes int64 // had from the library
}

// slab is one of the library's allocations, of which spans are free: in order, none beside another.
type slab struct {
	base address
	free []span
}

type span struct{ at, n int64 }

// allocation is the handle of the driver's memory.
type allocation struct {
	address address
	bytes   int64
	slab    *slab // nil: it is an allocation of the library's
}

func roundUp(n, step int64) int64 { return (n + step - 1) / step * step }

// alloc returns memory for n bytes, not cleared.
func (h *heap) alloc(lib api, n int64) (*allocation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n > mostShared {
		n = roundUp(n, largeStep)
		at, err := lib.Alloc(n)
		if err != nil {
			return nil, err
		}
		a := &allocation{address: at, bytes: n}
		h.large[a] = struct{}{}
		h.bytes += n
		return a, nil
	}
	n = roundUp(n, alignment)
	for _, s := range h.slabs {
		for i, f := range s.free {
			if f.n >= n {
				return s.take(i, n), nil
			}
		}
	}
	at, err := lib.Alloc(slabBytes)
	if err != nil {
		return nil, err
	}
	skip := int64(-at & (alignment - 1))
	s := &slab{base: at, free: []span{{skip, slabBytes - skip}}}
	h.slabs = append(h.slabs, s)
	h.bytes += slabBytes
	return s.take(0, n), nil
}

// take cuts n bytes off a free span.
func (s *slab) take(i int, n int64) *allocation {
	f := &s.free[i]
	a := &allocation{address: s.base + address(f.at), bytes: n, slab: s}
	if f.at, f.n = f.at+n, f.n-n; f.n == 0 {
		s.free = slices.Delete(s.free, i, i+1)
	}
	return a
}

// release takes memory back. Of slabs without use the last one is kept.
func (h *heap) release(lib api, a *allocation) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := a.slab
	if s == nil {
		if _, ours := h.large[a]; !ours {
			return nil
		}
		delete(h.large, a)
		h.bytes -= a.bytes
		return lib.Release(a.address)
	}
	at := int64(a.address - s.base)
	i, _ := slices.BinarySearchFunc(s.free, at, func(f span, at int64) int { return int(f.at>>10 - at>>10) })
	s.free = slices.Insert(s.free, i, span{at, a.bytes})
	if i+1 < len(s.free) && at+a.bytes == s.free[i+1].at {
		s.free[i].n += s.free[i+1].n
		s.free = slices.Delete(s.free, i+1, i+2)
	}
	if i > 0 && s.free[i-1].at+s.free[i-1].n == at {
		s.free[i-1].n += s.free[i].n
		s.free = slices.Delete(s.free, i, i+1)
	}
	if !s.empty() || len(h.slabs) == 1 {
		return nil
	}
	h.slabs = slices.DeleteFunc(h.slabs, func(o *slab) bool { return o == s })
	h.bytes -= slabBytes
	return lib.Release(s.base)
}

// empty reports whether nobody has memory of the slab.
func (s *slab) empty() bool { return len(s.free) == 1 && s.free[0].n > slabBytes-alignment }

// held is the bytes had from the library.
func (h *heap) held() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}

// close gives everything back.
func (h *heap) close(lib api) (err error) {
	for _, s := range h.slabs {
		if e := lib.Release(s.base); err == nil {
			err = e
		}
	}
	for a := range h.large {
		if e := lib.Release(a.address); err == nil {
			err = e
		}
	}
	h.slabs, h.large, h.bytes = nil, nil, 0
	return err
}
