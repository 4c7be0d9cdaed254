package compile

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/tensor"
)

// steady is what a plan keeps for calls whose inputs have the same specs: recordings of the plan's pieces, by which a
// call makes one node each. The first call of such specs is replayed, which shows that the plan fits.
type steady struct {
	mu    sync.Mutex
	why   string // it has none; "" as long as nobody has asked, or there is no reason
	asked bool
	calls []*steadyCall // least recently used first
	used  int           // calls that were made by recordings
}

// steadyCall is the recordings for calls whose inputs have those specs.
type steadyCall struct {
	specs  []tensor.Spec
	pieces []piece
	outs   []ref  // the plan's; slots are places among the values that pieces compute for others
	kept   []bool // by such a place: it is an output of the plan
}

// mostSteady bounds the specs for which a plan has recordings.
const mostSteady = 8

// leastSteps is the least number of steps for which one node takes less time than their own.
const leastSteps = 2

// call is run, by recordings where there are some for the inputs.
func (p *plan) call(c *tensor.Ctx, in []*tensor.Array) ([]*tensor.Array, error) {
	if p.unsteady() != "" || tensor.Watched() != "" || slices.ContainsFunc(in, dependent) {
		return p.run(c, in)
	}
	if s := p.steady.find(in); s != nil {
		return s.call(p, c, in)
	}
	outs, values, err := p.replay(c, in)
	if err == nil {
		p.steady.add(p.record(in, values))
	}
	return outs, err
}

// dependent reports whether a transform under way may walk what depends on x.
func dependent(x *tensor.Array) bool { return tensor.Traced(x) }

// unsteady says why calls of the plan cannot be recorded; "": they can.
func (p *plan) unsteady() string {
	s := &p.steady
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		s.asked, s.why = true, p.whyUnsteady()
	}
	return s.why
}

func (p *plan) whyUnsteady() string {
	switch {
	case len(p.steps) < leastSteps:
		return "it has " + tensor.Count(len(p.steps), "op")
	case p.foreign:
		return "it uses an array of a surrounding transform"
	case !slices.ContainsFunc(p.outs, func(r ref) bool { return r.kind == 's' }):
		return "it computes nothing"
	}
	var why string
	all := slices.Repeat([]bool{true}, len(p.steps))
	pieces := p.divide(all, func(i int) bool {
		reason := p.steps[i].call.Recordable(len(p.steps[i].in))
		if why == "" {
			why = reason
		}
		return reason != ""
	})
	switch {
	case slices.ContainsFunc(pieces, func(q *pieceOf) bool { return len(q.steps) >= leastSteps }):
		return ""
	case why == "":
		return "its streams take turns at each op"
	}
	return why
}

// find is what is recorded for inputs, nil if there is nothing.
func (s *steady) find(in []*tensor.Array) *steadyCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range slices.Backward(s.calls) {
		if k.fits(in) {
			if i != len(s.calls)-1 {
				s.calls = append(slices.Delete(s.calls, i, i+1), k)
			}
			s.used++
			return k
		}
	}
	return nil
}

func (k *steadyCall) fits(in []*tensor.Array) bool {
	for i, x := range in {
		if s := x.Value().Spec(); s.DType != k.specs[i].DType || !s.Shape.Equal(k.specs[i].Shape) {
			return false
		}
	}
	return true
}

func (s *steady) add(k *steadyCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls = append(s.calls, k); len(s.calls) > mostSteady {
		s.calls = slices.Delete(s.calls, 0, 1)
	}
}

// record makes the recordings of calls with inputs like those, for which the steps gave values.
func (p *plan) record(in, values []*tensor.Array) *steadyCall {
	k := &steadyCall{}
	for _, x := range in {
		k.specs = append(k.specs, x.Spec())
	}
	wanted, outs := map[int]bool{}, []ref{}
	for _, r := range p.outs {
		if r.kind == 's' && !wanted[r.i] {
			wanted[r.i], outs = true, append(outs, r)
		}
	}
	live := p.live(outs, true)
	pieces := p.divide(live, func(i int) bool {
		s := &p.steps[i]
		return s.call.Recordable(len(s.in)) != "" || p.changesMuch(i, in)
	})
	places := map[int]int{} // of slots among the values that pieces compute for others
	for n, of := range pieces {
		q := piece{plan: p, stream: of.stream}
		own := map[int]int(nil)
		if len(pieces) > 1 {
			q.plan, q.in, own = p.cut(of.steps)
		} else {
			for i := range in {
				q.in = append(q.in, ref{'i', i})
			}
		}
		read := p.readByOthers(pieces, n)
		for _, i := range of.steps {
			s := &p.steps[i]
			for slot := s.first; slot < s.first+len(s.given); slot++ {
				if !wanted[slot] && !read[slot] {
					continue
				}
				at := slot
				if own != nil {
					at = own[slot]
				}
				places[slot] = len(k.kept)
				k.kept = append(k.kept, wanted[slot])
				q.given, q.to = append(q.given, ref{'s', at}), append(q.to, places[slot])
			}
		}
		if len(of.steps) >= leastSteps {
			q.record(p, of.steps, in, values)
		}
		for i, r := range q.in {
			q.in[i] = r.moved(places)
		}
		k.pieces = append(k.pieces, q)
	}
	for _, r := range p.outs {
		k.outs = append(k.outs, r.moved(places))
	}
	return k
}

// readByOthers says which slots other pieces than the n-th read.
func (p *plan) readByOthers(pieces []*pieceOf, n int) map[int]bool {
	read := map[int]bool{}
	for other, of := range pieces {
		for _, i := range of.steps {
			for _, r := range p.steps[i].in {
				if other != n && r.kind == 's' {
					read[r.i] = true
				}
			}
		}
	}
	return read
}

// record makes a piece's recording. Its steps are those of the whole plan, for whose inputs the whole's steps gave
// values.
func (q *piece) record(whole *plan, steps []int, in, values []*tensor.Array) {
	consts := q.plan.consts
	shape := tensor.StepShape{Consts: consts, Reads: make([]bool, len(q.in)), ConstReads: make([]bool, len(consts))}
	for _, r := range q.in {
		x := values
		if r.kind == 'i' {
			x = in
		}
		shape.Inputs = append(shape.Inputs, x[r.i].Value().Spec())
	}
	made := func(i, out int) *tensor.Array { // by a step of the piece's plan
		if q.plan != whole {
			i = steps[i]
		}
		return values[whole.steps[i].first+out]
	}
	for _, r := range q.given {
		i := q.plan.stepOf(r.i)
		s := &q.plan.steps[i]
		shape.Outs = append(shape.Outs, made(i, r.i-s.first).Value().Spec())
		shape.Starts = append(shape.Starts, q.plan.startOf(r))
	}
	live, built := q.plan.live(q.given, false), q.plan.live(q.given, true)
	for i := range q.plan.steps {
		s := &q.plan.steps[i]
		if k := tensor.PreparedBy(made(i, 0)); k != nil && built[i] {
			if q.kept == nil {
				q.kept = map[int]*tensor.Prepared{}
			}
			q.kept[i] = k
		}
		if !live[i] {
			continue
		}
		shape.Fails = shape.Fails || s.call.ChecksIndices(len(s.in))
		shape.Unending = shape.Unending || s.call.Unending()
		for _, r := range s.in[:s.call.Reads(len(s.in))] {
			switch r.kind {
			case 'i':
				shape.Reads[r.i] = true
			case 'c':
				shape.ConstReads[r.i] = true
			}
		}
	}
	build, given, kept := q.plan, q.given, q.kept
	q.rec = tensor.NewRecording(shape, func(c *tensor.Ctx, in, consts []*tensor.Array, need []bool) ([]*tensor.Array,
		error) {
		return build.build(c, in, consts, given, need, kept)
	})
}

// startOf is the input of the plan that a value starts as a copy of, or -1.
func (p *plan) startOf(r ref) int {
	changed := false
	for r.kind == 's' {
		i := p.stepOf(r.i)
		s := &p.steps[i]
		from := s.call.Starts(r.i - s.first)
		if from < 0 {
			return -1
		}
		changed = changed || s.call.Updates(r.i-s.first)
		r = s.in[from]
	}
	if r.kind != 'i' || !changed {
		return -1
	}
	return r.i
}

// stepOf is the step that a slot is of.
func (p *plan) stepOf(slot int) int {
	i, found := slices.BinarySearchFunc(p.steps, slot, func(s step, slot int) int { return s.first - slot })
	if !found {
		i--
	}
	return i
}

// build makes the nodes that values need, as far as they are needed; others are nil. Of steps whose op asks the program
// for something it has that from before.
func (p *plan) build(c *tensor.Ctx, in, consts []*tensor.Array, values []ref, need []bool,
	kept map[int]*tensor.Prepared) ([]*tensor.Array, error) {
	var wanted []ref
	for i, r := range values {
		if need[i] {
			wanted = append(wanted, r)
		}
	}
	live := p.live(wanted, true)
	made := make([]*tensor.Array, p.slots())
	get := func(r ref) *tensor.Array {
		switch r.kind {
		case 'i':
			return in[r.i]
		case 'c':
			return consts[r.i]
		}
		return made[r.i]
	}
	var args []*tensor.Array
	for i := range p.steps {
		s := &p.steps[i]
		if !live[i] {
			continue
		}
		args = args[:0]
		for _, r := range s.in {
			args = append(args, get(r))
		}
		outs := made[s.first:][:len(s.given)]
		s.call.IntoAs(c, outs, args, kept[i])
		for _, y := range outs {
			if err := y.Err(); err != nil {
				return nil, err
			}
		}
	}
	outs := make([]*tensor.Array, len(values))
	for i, r := range values {
		if need[i] {
			outs[i] = get(r)
		}
	}
	for i, x := range made {
		if x != nil && !slices.Contains(wanted, ref{'s', i}) {
			tensor.Drop(x)
		}
	}
	return outs, nil
}

// call makes the nodes of a call, and gives the plan's outputs.
func (k *steadyCall) call(p *plan, c *tensor.Ctx, in []*tensor.Array) ([]*tensor.Array, error) {
	values := make([]*tensor.Array, len(k.kept))
	get := func(r ref) *tensor.Array {
		switch r.kind {
		case 'i':
			return in[r.i]
		case 'c':
			return p.consts[r.i]
		}
		return values[r.i]
	}
	var args []*tensor.Array
	for i := range k.pieces {
		q := &k.pieces[i]
		args = args[:0]
		for _, r := range q.in {
			args = append(args, get(r))
		}
		if err := q.call(c, args, values); err != nil {
			return nil, err
		}
	}
	outs := make([]*tensor.Array, len(p.outs))
	for i, r := range k.outs {
		outs[i] = get(r)
	}
	for i, kept := range k.kept {
		if !kept {
			tensor.Drop(values[i])
		}
	}
	return outs, nil
}

// call makes the piece's node, and puts what it computes for others among the values.
func (q *piece) call(c *tensor.Ctx, in, values []*tensor.Array) error {
	if q.rec == nil {
		made, err := q.plan.build(c, in, q.plan.consts, q.given, slices.Repeat([]bool{true}, len(q.given)), nil)
		for i, x := range made {
			values[q.to[i]] = x
		}
		return err
	}
	at := *c
	if q.stream != nil {
		at.Stream = q.stream
	}
	made, err := q.rec.Call(&at, in)
	for i, x := range made {
		values[q.to[i]] = x
	}
	return err
}

// Recorded reports whether calls of the function have recordings, which DropRecordings drops: calls are recorded again
// where they are made again.
func (fn *Function) Recorded() bool {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	return slices.ContainsFunc(fn.entries, func(e *entry) bool { return e.plan.steady.some() })
}

// DropRecordings gives back what recordings take in memory.
func (fn *Function) DropRecordings() {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	for _, e := range fn.entries {
		e.plan.steady.drop()
	}
}

func (s *steady) some() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}

func (s *steady) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.calls {
		for _, r := range k.recordings() {
			r.Drop()
		}
	}
	s.calls = nil
}

// bytes is about what the recordings take in memory.
func (s *steady) bytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.calls {
		n += specBytes*int64(len(k.specs)) + refBytes*int64(len(k.outs)+len(k.kept))
		for i := range k.pieces {
			q := &k.pieces[i]
			n += pieceBytes + refBytes*int64(len(q.in)+2*len(q.given)) + preparedBytes*int64(len(q.kept))
			if len(k.pieces) > 1 {
				n += q.plan.bytes()
			}
		}
		for _, r := range k.recordings() {
			n += r.Bytes()
		}
	}
	return n
}

// recordings are those of the pieces.
func (k *steadyCall) recordings() (list []*tensor.Recording) {
	for i := range k.pieces {
		if r := k.pieces[i].rec; r != nil {
			list = append(list, r)
		}
	}
	return list
}

// text says for Explain whether calls are recorded.
func (p *plan) stepText() string {
	if why := p.unsteady(); why != "" {
		return "not recorded: " + why
	}
	if why := tensor.Watched(); why != "" {
		return "not recorded: " + why
	}
	s := &p.steady
	s.mu.Lock()
	defer s.mu.Unlock()
	text := "recorded: not yet"
	if s.used > 0 {
		made, cmds, nodes := 0, 0, "one node"
		for _, k := range s.calls {
			cmds = 0
			for _, r := range k.recordings() {
				n, _ := r.Takes()
				made, cmds = made+n, cmds+r.Commands()
			}
			if n := len(k.pieces); n != 1 {
				nodes = tensor.Count(n, "node")
			}
		}
		text = fmt.Sprintf("recorded: %s as %s, of %s, in %s", tensor.Count(s.used, "call"), nodes,
			tensor.Count(cmds, "command"), tensor.Count(made, "layout"))
	}
	return text
}
