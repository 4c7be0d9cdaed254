package kernelgen

import "math"

// Layout is the strides of several arrays over one shape. Base is each array's first element, counted from where
// its buffer is bound.
type Layout struct {
	Shape   []int
	Strides [][]int // by array, in elements
	Base    []int
	// What PlanLanes found: how many of the last dimensions a SIMD-group goes through besides the lanes' one.
	fold, rows bool
}

// Collapse drops dimensions of size 1 and merges those that all arrays walk through as if they were one, in place;
// shape and strides keep their first entries.
func Collapse(shape []int, strides [][]int) []int {
	out, _ := collapse(shape, strides, nil)
	return out
}

// collapse drops dimensions of size 1 and merges those that all arrays walk through as if they were one, in place.
// Dimensions from the first reduced one on stay apart from those before it; it counts those before it. A nil reduced
// means that there are none.
func collapse(shape []int, strides [][]int, reduced []bool) (out []int, kept int) {
	n := 0 // dimensions so far
	var last bool
	for d, size := range shape {
		if size == 1 {
			continue
		}
		here := reduced != nil && reduced[d]
		merge := n > 0 && here == last
		for k := 0; merge && k < len(strides); k++ {
			merge = strides[k][n-1] == size*strides[k][d]
		}
		if merge {
			shape[n-1] *= size
			for _, st := range strides {
				st[n-1] = st[d]
			}
			continue
		}
		if last = here; !here {
			kept++
		}
		shape[n] = size
		for _, st := range strides {
			st[n] = st[d]
		}
		n++
	}
	for k := range strides {
		strides[k] = strides[k][:n]
	}
	return shape[:n], kept
}

// lanes is the least size of the innermost dimension that fills a SIMD-group well enough.
const lanes = 16

// Plan changes the layout in place: it collapses it and moves the dimension that lanes run along to the end: the
// innermost one, unless it is short and another is longer. An empty shape becomes one dimension of size 1.
func (l *Layout) Plan() {
	l.Shape = Collapse(l.Shape, l.Strides)
	if len(l.Shape) == 0 {
		l.Shape = []int{1}
		for k := range l.Strides {
			l.Strides[k] = []int{0}
		}
		return
	}
	last := len(l.Shape) - 1
	best := last
	for d, n := range l.Shape {
		if l.Shape[last] < lanes && n > l.Shape[best] {
			best = d
		}
	}
	move := func(v []int) {
		x := v[best]
		copy(v[best:], v[best+1:])
		v[last] = x
	}
	move(l.Shape)
	for k := range l.Strides {
		move(l.Strides[k])
	}
}

func classOf(stride int) Class {
	switch stride {
	case 0:
		return Repeat
	case 1:
		return Unit
	}
	return Strided
}

// Wide reports whether some index is past 31 bits.
func (l *Layout) Wide() bool {
	total := 1
	for _, n := range l.Shape {
		total *= n
	}
	if total > math.MaxInt32-RunLength {
		return true
	}
	for k, st := range l.Strides {
		high := l.Base[k]
		for d, n := range l.Shape {
			if st[d] > 0 {
				high += (n - 1) * st[d]
			}
		}
		if high > math.MaxInt32-RunLength {
			return true
		}
	}
	return false
}
