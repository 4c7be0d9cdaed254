package kernelgen

// How SIMD-groups go over the elements of a general kernel. Lanes run along one dimension, RunLength elements
// at a time. Where the dimension is short, a SIMD-group takes several rows: consecutive places along another
// dimension. And where the innermost dimension is too short for lanes, each lane goes through all of it: a
// fold, whose size and strides are written into the kernel, so that what neighbouring lanes load and store lies
// together.

const (
	// longest fold, and the largest stride that is written into a kernel
	mostFold, mostNear, mostFoldStride = 8, 8, 64
	// leastPlanned is the fewest elements for which a kernel of its own strides is worth compiling.
	leastPlanned = 4096
	// rowLength is about how many elements a SIMD-group takes where it takes several rows.
	rowLength = 1024
)

// near is the class of stride 0; those around it are of small strides, which are written into the kernel.
const near Class = 64

// Near is the class of an array of which neighbours are a stride apart, if that is small; else Strided.
func Near(stride int) Class {
	if stride < -mostNear || stride > mostNear {
		return Strided
	}
	return Class(int(near) + stride)
}

// stride returns the stride of a Near class.
func (c Class) stride() (s int, ok bool) {
	s = int(c) - int(near)
	return s, s >= -mostNear && s <= mostNear
}

// PlanLanes changes the layout in place: it collapses it and chooses the dimensions of lanes, rows and fold,
// which become the last ones in the order rows, fold, lanes. The last written arrays are written, the others
// read. An empty shape becomes one dimension of size 1.
func (l *Layout) PlanLanes(written int) {
	l.fold, l.rows = false, false
	l.Shape = Collapse(l.Shape, l.Strides)
	if len(l.Shape) == 0 {
		l.Shape = []int{1}
		for k := range l.Strides {
			l.Strides[k] = []int{0}
		}
		return
	}
	last, total := len(l.Shape)-1, 1
	for _, n := range l.Shape {
		total *= n
	}
	best, least := last, l.cost(last, false, written)
	for d := last - 1; d >= 0; d-- {
		for _, fold := range []bool{false, true} {
			if fold && (total < leastPlanned || !l.foldable()) {
				continue
			}
			if c := l.cost(d, fold, written); c < least {
				best, least, l.fold = d, c, fold
			}
		}
	}
	l.moveToEnd(best)
	l.rows = total >= leastPlanned && l.outer() > 0 && 2*l.Shape[last] <= RunLength
}

// moveToEnd makes a dimension the last one.
func (l *Layout) moveToEnd(d int) {
	move := func(v []int) {
		x := v[d]
		copy(v[d:], v[d+1:])
		v[len(v)-1] = x
	}
	move(l.Shape)
	for _, st := range l.Strides {
		move(st)
	}
}

// foldable reports whether the innermost dimension is short and all strides along it small.
func (l *Layout) foldable() bool {
	last := len(l.Shape) - 1
	if l.Shape[last] > mostFold {
		return false
	}
	for _, st := range l.Strides {
		if st[last] > mostFoldStride || st[last] < -mostFoldStride {
			return false
		}
	}
	return true
}

// cost says about how long an element takes where lanes run along dimension d, with a fold of the innermost one or
// without: what its memory costs, times the part of the lanes that have something to do.
func (l *Layout) cost(d int, fold bool, written int) float64 {
	const farthest = 16 // elements in a line of the cache
	last, c := len(l.Shape)-1, 0.0
	for k, st := range l.Strides {
		s := max(st[d], -st[d])
		if n := l.Shape[last]; fold && s == n*max(st[last], -st[last]) {
			s /= n
		}
		of := 0.25
		if s > 0 {
			of = float64(min(s, farthest))
		}
		if k >= len(l.Strides)-written {
			of *= 1.5
		}
		c += of
	}
	if n := l.Shape[d]; n < 32 {
		c *= 32 / float64(n)
	}
	return c
}

// outer is the number of dimensions before those of fold and lanes.
func (l *Layout) outer() int {
	if l.fold {
		return len(l.Shape) - 2
	}
	return len(l.Shape) - 1
}

// Class is the class of array k in a general kernel.
func (l *Layout) Class(k int) Class {
	stride := l.Strides[k][len(l.Shape)-1]
	total := 1
	for _, n := range l.Shape {
		total *= n
	}
	if c := classOf(stride); c != Strided || total < leastPlanned {
		return c
	}
	return Near(stride)
}

// Fold returns the fold that lanes of a general kernel go through: its size, and the arrays' strides along it.
func (l *Layout) Fold(strides []int) Fold {
	f := Fold{Strides: strides[:0]}
	if !l.fold {
		return f
	}
	at := len(l.Shape) - 2
	f.Size = l.Shape[at]
	for _, st := range l.Strides {
		f.Strides = append(f.Strides, st[at])
	}
	return f
}

// Rows reports whether SIMD-groups take several rows.
func (l *Layout) Rows() bool { return l.rows }

// perRun is how many rows a SIMD-group takes.
func (l *Layout) perRun() int {
	if !l.rows {
		return 1
	}
	n := (l.Shape[len(l.Shape)-1] + 31) / 32 * 32
	if l.fold {
		n *= l.Shape[len(l.Shape)-2]
	}
	return max(1, min(rowLength/n, l.Shape[l.outer()-1]))
}

// Runs is the number of runs: SIMD-groups to launch.
func (l *Layout) Runs() int {
	n := (l.Shape[len(l.Shape)-1] + RunLength - 1) / RunLength
	outer := l.outer()
	if l.rows {
		outer--
		n *= (l.Shape[outer] + l.perRun() - 1) / l.perRun()
	}
	for _, d := range l.Shape[:outer] {
		n *= d
	}
	return n
}

// General are the numbers for the general kernel: the size of the lanes' dimension, runs in it; with rows their
// number, how many a run takes, and runs in them; the number of outer dimensions and their sizes; then for each
// array that is not Scalar its base, its stride along the lanes, its outer strides, and with rows that along
// them. They are appended to out.
func (l *Layout) General(out []int, scalar func(k int) bool) []int {
	last, outer := len(l.Shape)-1, l.outer()
	out = append(out, l.Shape[last], (l.Shape[last]+RunLength-1)/RunLength)
	if l.rows {
		outer--
		n, per := l.Shape[outer], l.perRun()
		out = append(out, n, per, (n+per-1)/per)
	}
	out = append(out, outer)
	out = append(out, l.Shape[:outer]...)
	for k, st := range l.Strides {
		if scalar(k) {
			continue
		}
		out = append(out, l.Base[k], st[last])
		out = append(out, st[:outer]...)
		if l.rows {
			out = append(out, st[outer])
		}
	}
	return out
}
