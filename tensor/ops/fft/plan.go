package fft

import "slices"

const (
	room           = 2048          // numbers of a tile
	mostStages     = 12            // of a tile
	widest         = 32            // transforms of a tile
	leastAlongside = 8             // transforms of a tile that read whole cache lines
	stageLength    = room / widest // numbers of transforms in such a tile
	longestRadix   = 61            // beyond, there are more numbers than a kernel holds, and a convolution serves
	longest        = 1 << 28       // numbers of a transform
	mostSideBySide = 1 << 30       // numbers that kernels count in 32 bits
)

// factors are the prime factors of n, largest first.
func factors(n int) []int {
	var out []int
	for p := 2; p*p <= n; p++ {
		for ; n%p == 0; n /= p {
			out = append(out, p)
		}
	}
	if n > 1 {
		out = append(out, n)
	}
	slices.Reverse(out)
	return out
}

// isSmooth reports whether stages transform n numbers.
func isSmooth(n int) bool {
	f := factors(n)
	return len(f) == 0 || f[0] <= longestRadix
}

// radices are the stages of a tile's transform of n numbers, which is smooth. Powers of two come last: there
// numbers lie close to each other, and 8 of them make one stage.
func radices(n int) []int {
	var odd []int
	twos := 0
	for _, p := range factors(n) {
		if p == 2 {
			twos++
		} else {
			odd = append(odd, p)
		}
	}
	switch {
	case twos == 1:
		odd = append(odd, 2)
	case twos%3 == 1:
		odd, twos = append(odd, 4, 4), twos-4
	case twos%3 == 2:
		odd, twos = append(odd, 4), twos-2
	}
	for ; twos >= 3; twos -= 3 {
		odd = append(odd, 8)
	}
	return odd
}

// split cuts n, which is smooth, into the fewest lengths of at most stageLength numbers.
func split(n int) []int {
	f := factors(n)
	for count := 1; ; count++ {
		lengths := make([]int, count)
		for i := range lengths {
			lengths[i] = 1
		}
		for _, p := range f {
			lengths[slices.Index(lengths, slices.Min(lengths))] *= p
		}
		if slices.Max(lengths) <= stageLength {
			return lengths
		}
	}
}

// convolutionLength is a length of at least n numbers whose factors are 2, 3 and 5: of those up to 2 n the one whose
// stages touch the fewest numbers.
func convolutionLength(n int) int {
	best, least := 0, 0
	for p5 := 1; p5 < 2*n; p5 *= 5 {
		for p3 := p5; p3 < 2*n; p3 *= 3 {
			m := p3
			for m < n {
				m *= 2
			}
			if cost := m * len(radices(m)); best == 0 || cost < least {
				best, least = m, cost
			}
		}
	}
	return best
}

// tileWidth is how many transforms of n numbers a tile has, of so many side by side: one, or as many as there are
// lanes.
func tileWidth(n, transforms int) int {
	if n <= stageLength && transforms >= leastAlongside {
		return widest
	}
	return 1
}
