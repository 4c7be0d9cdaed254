package products

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// step multiplies the operands at some places of a list, which are taken out of it, for a term that is put at its end.
type step struct {
	at  []int // in ascending order
	out term
}

// path is the order in which the operands of an equation are multiplied.
type path struct {
	steps           []step
	cost, naive     int // multiplications and additions, and those of all operands at once
	scaling, widest int // the most dimensions of a step, and of all operands at once
}

// union are the names of all terms, each once.
func union(terms ...term) term {
	var all term
	for _, t := range terms {
		for _, name := range t {
			if !all.has(name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// size is the number of elements of an array with those dimensions.
func (e *equation) size(t term) int {
	n := 1
	for _, name := range t {
		n *= e.sizes[name]
	}
	return n
}

// flops is the cost of multiplying n operands that have those dimensions together, for a term that sums over some or
// not.
func (e *equation) flops(all term, sums bool, n int) int {
	each := max(n-1, 1)
	if sums {
		each++
	}
	return e.size(all) * each
}

// pair is a possible step of two operands.
type pair struct {
	x, y          int
	removed, cost int // elements that the result has less than both operands
	all, out      term
}

// kept are the names of t that others or the result have, once each.
func (e *equation) kept(t term, others []term) term {
	var out term
	for _, name := range t {
		if e.out.has(name) || slices.ContainsFunc(others, func(o term) bool { return o.has(name) }) {
			out = append(out, name)
		}
	}
	return out
}

// search finds a path greedily: of the pairs with a common dimension, or of all if there is none, it takes the one that
// removes most elements, and of several the cheapest. A result that is larger than all operands and the result, and a
// path that costs more than multiplying all at once, are not considered.
func (e *equation) search() path {
	all := union(e.in...)
	sums := slices.ContainsFunc(all, func(name int) bool { return !e.out.has(name) })
	p := path{widest: len(all), naive: e.flops(all, sums, len(e.in))}
	if len(e.in) <= 2 {
		p.steps = []step{{kit.Identity(len(e.in)), e.out}}
		p.cost, p.scaling = p.naive, p.widest
		return p
	}
	most := e.size(e.out)
	terms := make([]term, len(e.in))
	for i, t := range e.in {
		most = max(most, e.size(t))
		terms[i] = union(t)
	}
	var possible []pair
	add := func(x, y int, outer bool) {
		all := union(terms[x], terms[y])
		if !outer && len(all) == len(terms[x])+len(terms[y]) {
			return
		}
		var others []term
		for i, t := range terms {
			if i != x && i != y {
				others = append(others, t)
			}
		}
		c := pair{x: x, y: y, all: all, out: e.kept(all, others)}
		n := e.size(c.out)
		c.removed = e.size(terms[x]) + e.size(terms[y]) - n
		c.cost = e.flops(all, len(c.out) < len(all), 2)
		if n <= most && p.cost+c.cost <= p.naive {
			possible = append(possible, c)
		}
	}
	addAll := func(first int, outer bool) {
		for x := range terms {
			for y := max(x+1, first); y < len(terms); y++ {
				add(x, y, outer)
			}
		}
	}
	first := 0 // pairs of an operand from here on are new
	for range len(e.in) - 1 {
		addAll(first, false)
		if len(possible) == 0 {
			addAll(first, true)
		}
		if len(possible) == 0 {
			all := union(terms...)
			sums := slices.ContainsFunc(all, func(name int) bool { return !e.out.has(name) })
			p.cost += e.flops(all, sums, len(terms))
			p.scaling = max(p.scaling, len(all))
			p.steps = append(p.steps, step{kit.Identity(len(terms)), e.out})
			return p
		}
		best := possible[0]
		for _, c := range possible[1:] {
			if c.removed > best.removed || c.removed == best.removed && c.cost < best.cost {
				best = c
			}
		}
		p.steps = append(p.steps, step{[]int{best.x, best.y}, best.out})
		p.cost += best.cost
		p.scaling = max(p.scaling, len(best.all))
		terms = append(slices.Delete(slices.Delete(terms, best.y, best.y+1), best.x, best.x+1), best.out)
		first = len(terms) - 1
		possible = slices.DeleteFunc(possible, func(c pair) bool {
			return c.x == best.x || c.x == best.y || c.y == best.x || c.y == best.y
		})
		for i, c := range possible {
			possible[i].x -= behind(c.x, best)
			possible[i].y -= behind(c.y, best)
		}
	}
	p.steps[len(p.steps)-1].out = e.out
	return p
}

// behind is how many of a pair's operands stand before place i.
func behind(i int, c pair) int {
	n := 0
	if i > c.x {
		n++
	}
	if i > c.y {
		n++
	}
	return n
}
