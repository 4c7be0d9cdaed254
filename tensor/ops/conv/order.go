package conv

import "slices"

// The order of a sum's products is that of loops over depth and over the taps along the axes: depth first, then the
// axes as they stand, but the longest loop, or the last of several that are as long, is the innermost one. What has
// many products is cut into parts, each of which is added up alone. All ways of computing keep to that. So how many
// examples and places there are, how operands lie and what a device says of itself choose who computes, and show in no
// bit.

// ofDepth stands for the loop over depth among those over the taps of up to three axes.
const ofDepth = 3

// order is the loops that have several products, the innermost last: axes, or ofDepth.
func (s *sums) order() []int {
	list, longest := []int{}, 0
	if s.depth > 1 {
		list = append(list, ofDepth)
	}
	for i, a := range s.axes {
		if a.taps > 1 {
			list = append(list, i)
		}
	}
	for k, i := range list {
		if s.length(i) >= s.length(list[longest]) {
			longest = k
		}
	}
	if len(list) > 0 {
		list = append(slices.Delete(slices.Clone(list), longest, longest+1), list[longest])
	}
	return list
}

// length is how many products a loop has.
func (s *sums) length(loop int) int {
	if loop == ofDepth {
		return s.depth
	}
	return s.axes[loop].taps
}

// parts are how the products of a sum are cut: into n parts, of chunks of the two outermost loops, which number second
// along the second one. A loop that is not cut has one chunk.
type parts struct {
	n, second, chunk0, chunk1 int
	loops                     []int // that are cut
}

// partProducts is about how many products a part has: about as much of w as stays in a cache close by.
const partProducts = 2048

// parts cuts sums of many products. The innermost loop is never cut.
func (s *sums) parts() parts {
	order := s.order()
	n := [2]int{1, 1}
	each, loops := 1, order[:min(max(len(order)-1, 0), 2)]
	for k, loop := range order {
		if k < len(loops) {
			n[k] = s.length(loop)
		} else {
			each *= s.length(loop)
		}
	}
	p := parts{1, 1, n[0], n[1], loops}
	switch {
	case n[0]*n[1]*each <= 2*partProducts:
		return p
	case n[1]*each > partProducts:
		p.chunk0, p.chunk1 = 1, ceil(n[1], ceil(n[1]*each, partProducts))
	default:
		p.chunk0 = ceil(n[0], ceil(n[0]*n[1]*each, partProducts))
	}
	p.second = ceil(n[1], p.chunk1)
	p.n = p.second * ceil(n[0], p.chunk0)
	return p
}

// chunk says which places a part has of a loop of so many: those from part / div % mod * size on, size at most.
func (p parts) chunk(loop, places int) (size, div, mod int) {
	for k, cut := range p.loops {
		switch {
		case cut == loop && k == 0:
			return p.chunk0, p.second, p.n
		case cut == loop:
			return p.chunk1, 1, p.second
		}
	}
	return places, 1, 1
}
