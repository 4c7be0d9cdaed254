package compile

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
)

// A plan is recorded in pieces: as many calls of one stream as nobody else has to wait for together. A piece is one
// node, whichever stream or device it runs on, and nodes meet as all do. What cannot be recorded is a piece of its own:
// its call is made again each time. Most plans are one piece.

// piece is such a part of a plan.
type piece struct {
	plan   *plan // its calls, on inputs of its own
	in     []ref // what these are in the whole
	given  []ref // what it computes for others
	to     []int // where that goes: its place among the values of a steadyCall
	stream *tensor.Stream
	rec    *tensor.Recording // nil: its one call is made again
	kept   map[int]*tensor.Prepared
}

// pieceOf is the steps of a piece, by their places in the plan.
type pieceOf struct {
	stream *tensor.Stream
	steps  []int
}

// divide finds the pieces of the steps that are live, in an order in which none reads what a later one computes. Alone
// says which steps are pieces of their own. A piece takes further calls of its stream until another one reads what it
// computes, which would have to wait for them.
func (p *plan) divide(live []bool, alone func(i int) bool) []*pieceOf {
	var all []*pieceOf
	of := make([]*pieceOf, len(p.steps))
	open := map[*tensor.Stream]*pieceOf{}
	for i := range p.steps {
		if !live[i] {
			continue
		}
		s := &p.steps[i]
		var to *pieceOf
		if !alone(i) {
			to = open[s.call.Stream]
		}
		if to == nil {
			to = &pieceOf{stream: s.call.Stream}
			all = append(all, to)
			if !alone(i) {
				open[s.call.Stream] = to
			}
		}
		for _, r := range s.in {
			if r.kind != 's' {
				continue
			}
			if from := of[p.stepOf(r.i)]; from != to && open[from.stream] == from {
				delete(open, from.stream)
			}
		}
		to.steps, of[i] = append(to.steps, i), to
	}
	// Whatever a step reads of another piece is closed from then on: the piece that ends later reads the other.
	last := func(q *pieceOf) int { return q.steps[len(q.steps)-1] }
	slices.SortFunc(all, func(a, b *pieceOf) int { return last(a) - last(b) })
	return all
}

// cut makes a plan of some steps, on inputs of its own. It says what these are in the whole, and which slots of its own
// stand for the whole's.
func (p *plan) cut(steps []int) (q *plan, in []ref, own map[int]int) {
	q, own = &plan{consts: p.consts}, map[int]int{}
	slots := 0
	for _, i := range steps {
		s := p.steps[i]
		refs := make([]ref, len(s.in))
		for k, r := range s.in {
			at, mine := own[r.i]
			switch {
			case r.kind == 'c':
				refs[k] = r
				continue
			case r.kind == 's' && mine:
				refs[k] = ref{'s', at}
				continue
			}
			if at = slices.Index(in, r); at < 0 {
				at, in = len(in), append(in, r)
			}
			refs[k] = ref{'i', at}
		}
		for k := range s.given {
			own[s.first+k] = slots + k
		}
		s.in, s.first, slots = refs, slots, slots+len(s.given)
		q.steps = append(q.steps, s)
	}
	return q, in, own
}

// mostCopied is the most bytes of an input that a user's kernel changes in a copy where it is recorded. Larger ones it
// changes in place, by a call of its own: it may never end, so nobody can wait until what comes behind it has run too,
// and the input must be right if it is stopped before that.
const mostCopied = 256 << 10

// changesMuch reports whether a step is a user's kernel that may change a large input of the plan in place.
func (p *plan) changesMuch(i int, in []*tensor.Array) bool {
	s := &p.steps[i]
	if !s.call.Unending() {
		return false
	}
	for k := range s.given {
		if from := s.call.Starts(k); from >= 0 {
			if r := p.startOf(ref{'s', s.first + k}); r >= 0 && in[r].Spec().NBytes() > mostCopied {
				return true
			}
		}
	}
	return false
}
