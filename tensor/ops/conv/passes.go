package conv

import "slices"

// mostPasses is how many passes a convolution is cut into: with more of them each would be short.
const mostPasses = 64

// passes are sums without spacing that make the elements of y together, but for those that are left zero; nil if there
// would be too many. Where x's elements lie apart, place o of y meets some of the taps only, and which ones repeats
// itself: each pass has the places that meet the same ones.
func (s *sums) passes() []*sums {
	s = s.merged()
	list := []*sums{s}
	for i, a := range s.axes {
		if a.spacing == 1 {
			continue
		}
		period := a.spacing / gcd(a.stride, a.spacing)
		if len(list)*period > mostPasses {
			return nil
		}
		var next []*sums
		for phase := range period {
			b, w, some := a.phase(phase, period)
			for _, p := range list {
				if some {
					q := *p
					q.axes = slices.Clone(p.axes)
					q.axes[i] = b
					q.wStart += w
					q.yStart += phase * a.y
					next = append(next, &q)
				}
			}
		}
		list = next
	}
	return list
}

// merged is s with the last axis as channels, where each place meets one tap, each tap meets the places of one
// phase, and taps and phases lie one after the other as channels do. That is so where windows lie side by side, as
// patches do.
func (s *sums) merged() *sums {
	last := len(s.axes) - 1
	a := s.axes[last]
	n := a.spacing
	if n == 1 || a.stride != 1 || a.dilation != 1 || a.taps != n || a.out%n != 0 || (a.low+1)%n != 0 ||
		-a.w != s.channels*s.wChannel || a.y != s.channels*s.yChannel {
		return s
	}
	m := *s
	m.wStart += (n - 1) * a.w
	m.channels *= n
	m.axes = slices.Clone(s.axes)
	m.axes[last] = step{out: a.out / n, taps: 1, stride: 1, dilation: 1, spacing: 1, low: (a.low+1)/n - 1, first: a.first,
		end: a.end, x: a.x, w: 0, y: n * a.y}
	return &m
}

// phase is the axis for places phase, phase + period and so on, without spacing, and where the first of their taps is
// in w; some reports whether there are places and taps.
func (a step) phase(phase, period int) (b step, w int, some bool) {
	between := a.spacing / gcd(a.dilation, a.spacing) // taps that meet elements of x
	first := 0
	for ; first < min(between, a.taps); first++ {
		if (phase*a.stride+first*a.dilation-a.low)%a.spacing == 0 {
			break
		}
	}
	if phase >= a.out || first >= min(between, a.taps) {
		return a, 0, false
	}
	b = step{out: (a.out-1-phase)/period + 1, taps: (a.taps-1-first)/between + 1, stride: period * a.stride / a.spacing,
		dilation: between * a.dilation / a.spacing, spacing: 1,
		low: -(phase*a.stride + first*a.dilation - a.low) / a.spacing, first: a.first, end: a.end,
		x: a.x, w: between * a.w, y: period * a.y}
	return b, first * a.w, true
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// folded is s with three axes, some of which may have one place only, in which axes of one tap are one where their
// elements follow each other, with the examples too.
func (s *sums) folded() *sums {
	f := *s
	f.outer, f.xOuter, f.yOuter = slices.Clone(s.outer), slices.Clone(s.xOuter), slices.Clone(s.yOuter)
	f.axes = nil
	for i := len(s.axes) - 1; i >= 0; i-- {
		a := s.axes[i]
		if a.out == 1 && a.taps == 1 && a.low == 0 && a.first == 0 {
			continue // it has no effect
		}
		if n := len(f.axes); n > 0 && a.plain() && f.axes[n-1].plain() {
			b := &f.axes[n-1]
			if a.x*a.stride == b.out*b.x*b.stride && a.y == b.out*b.y {
				*b = b.repeated(a.out)
				continue
			}
		}
		f.axes = append(f.axes, a)
	}
	last := len(s.outer) - 1
	if n := len(f.axes); n > 0 && f.axes[n-1].plain() {
		b := &f.axes[n-1]
		if f.xOuter[last] == b.out*b.x*b.stride && f.yOuter[last] == b.out*b.y {
			*b = b.repeated(f.outer[last])
			f.outer[last] = 1
		}
	}
	for len(f.axes) < 3 {
		f.axes = append(f.axes, unit)
	}
	slices.Reverse(f.axes)
	return &f
}

// plain reports whether the axis has one tap, which always meets an element.
func (a step) plain() bool {
	return a.taps == 1 && a.low == 0 && a.first == 0 && (a.out-1)*a.stride < a.end
}

// repeated is a plain axis n times, one after the other.
func (a step) repeated(n int) step {
	a.x, a.out, a.stride = a.x*a.stride, a.out*n, 1
	a.end = a.out
	return a
}
