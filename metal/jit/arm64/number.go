package arm64

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// What is computed once need not be computed again: where an instruction stands again, after the first on every way
// there, and its sources were not written since, its result is the first's. What a copy wrote is what it read, if both
// registers are written once, since such a register holds one value wherever it is read. Which instructions come
// before a label on every way is known of two kinds: of labels that only jumps forward lead to, those before the first
// of these jumps; of those at the head of a loop, all.

// key is what is computed: an instruction, without what it writes, and how often each of its sources was written
// before.
type key struct {
	i       inst
	n, m, a int32
}

// entry is a value that there is.
type entry struct {
	key  key
	r    code.R
	at   int  // where it is computed
	hot  int  // and after how many instructions that are not cold
	once bool // its sources are written once
}

// origin is an instruction, at one less than at: how often two of its sources were written before, and how many loops
// began.
type origin struct{ at, n, m, loops int32 }

// numberer is the work of number.
type numberer struct {
	p       *program
	same    []code.R // by virtual register: another one of the same value, 0 if there is none
	known   []entry  // in the order of their places
	places  map[key]int32
	written []int32  // by virtual register: how often so far
	made    []origin // by virtual register: what wrote it last
	loops   int32    // how many began so far
	low     []bool   // by virtual register: nothing writes its upper 32 bits, which are zeros
	jumps   []int32  // by label: where the first jump to it leaves, -1 if there was none
	hot     int      // instructions so far that are not cold
	entered []int32  // where control leaves for the cold code around
}

// number replaces values that are there already, before registers are chosen.
func (p *program) number() {
	n := &numberer{p: p, places: map[key]int32{}}
	total := p.f.NumRegs(code.GPR) + p.vecs
	p.defs, n.same = append(p.defs[:0], make([]uint8, total)...), make([]code.R, total)
	n.written, n.made, n.low = make([]int32, total), make([]origin, total), make([]bool, total)
	for k := range n.low {
		n.low[k] = true
	}
	n.jumps = make([]int32, p.f.NumLabels()+1)
	for k := range n.jumps {
		n.jumps[k] = -1
	}
	for k := range p.insts {
		p.insts[k].visit(func(r *code.R, _, def bool) {
			if def && r.Virtual() {
				p.defs[p.index(*r)] = min(p.defs[p.index(*r)]+1, 2)
				n.low[p.index(*r)] = n.low[p.index(*r)] && p.insts[k].writesLow()
			}
		})
	}
	for k := range p.insts {
		n.inst(k)
		p.insts[k].visit(func(r *code.R, _, def bool) {
			if def && r.Virtual() {
				n.written[p.index(*r)]++
				i := &p.insts[k]
				n.made[p.index(*r)] = origin{int32(k) + 1, n.version(i.n), n.version(i.m), n.loops}
			}
		})
	}
}

// version is how often a register was written.
func (n *numberer) version(r code.R) int32 {
	if !r.Virtual() {
		return 0
	}
	return n.written[n.p.index(r)]
}

// steady reports whether a register is one of those that only written counts.
func steady(r code.R) bool { return r == 0 || r == zero || r == block || r.Virtual() }

// nearBy is how many instructions on a value is taken from a register that might serve something else meanwhile.
const nearBy = 160

// repeats reports whether an operation makes the same of the same registers wherever it stands: it reads no memory and
// no flags.
func repeats(op opcode) bool {
	switch {
	case specs[op].flags&(effect|tied|usesD|definesA) != 0, op == cSel, op == cSet:
		return false
	case op >= ldrQ && op <= stpQ, op >= ld1S && op <= prfm:
		return false
	}
	return true
}

// once reports whether a register holds one value wherever it is read.
func (p *program) once(r code.R) bool {
	return r == 0 || r == zero || r == block || r.Virtual() && p.defs[p.index(r)] == 1
}

// inst looks at instruction k.
func (n *numberer) inst(k int) {
	i := &n.p.insts[k]
	i.visit(func(r *code.R, _, def bool) {
		if !def && r.Virtual() && n.same[n.p.index(*r)] != 0 {
			*r = n.same[n.p.index(*r)]
		}
	})
	n.combine(i)
	switch i.op {
	case loopBegin:
		n.loops++
	case coldBegin:
		n.entered = append(n.entered, -1)
	case coldEnd:
		n.entered = n.entered[:len(n.entered)-1]
	case place:
		n.place(k, i.label)
	}
	if i.op <= loadLive {
		return
	}
	if len(n.entered) == 0 {
		n.hot++
	}
	if i.label != 0 {
		at := int32(k)
		if len(n.entered) > 0 {
			at = max(n.entered[0], 0)
		}
		if j := n.jumps[i.label]; j < 0 || at < j {
			n.jumps[i.label] = at
		}
		return
	}
	if len(n.entered) > 0 || !repeats(i.op) && !n.p.constant(i) || !i.d.Virtual() || !n.p.once(i.d) ||
		!steady(i.n) || !steady(i.m) || !steady(i.a) {
		return
	}
	once := n.p.once(i.n) && n.p.once(i.m) && n.p.once(i.a)
	if specs[i.op].flags&copies != 0 {
		if once {
			n.same[n.p.index(i.d)] = i.n
		}
		return
	}
	key := key{i: *i, n: n.version(i.n), m: n.version(i.m), a: n.version(i.a)}
	key.i.d = 0
	if at, ok := n.places[key]; ok {
		if e := &n.known[at]; n.hot-e.hot < nearBy || n.p.constant(i) {
			n.same[n.p.index(i.d)] = e.r
		}
		return
	}
	n.places[key] = int32(len(n.known))
	n.known = append(n.known, entry{key, i.d, k, n.hot, once})
}

// place looks at a label.
func (n *numberer) place(k int, l code.Label) {
	from := n.jumps[l]
	if len(n.entered) > 0 {
		if e := &n.entered[0]; from >= 0 && (*e < 0 || from < *e) {
			*e = from
		}
		return
	}
	if from < 0 && k > 0 && n.p.insts[k-1].op == loopBegin {
		n.forget(func(e *entry) bool { return !e.once }) // what may be written in the loop
		return
	}
	n.forget(func(e *entry) bool { return from < 0 || e.at >= int(from) })
}

// forget drops entries.
func (n *numberer) forget(which func(*entry) bool) {
	kept := n.known[:0]
	for k := range n.known {
		e := n.known[k]
		delete(n.places, e.key)
		if !which(&e) {
			n.places[e.key] = int32(len(kept))
			kept = append(kept, e)
		}
	}
	n.known = kept
}

// mostHoisted and mostHoistedGPR are how many constants a loop keeps in registers at most, if the allocator finds some
// for them.
const (
	mostHoisted    = 12
	mostHoistedGPR = 5
)

// hoist makes the constants of loops before they begin, those that are read most. Loops that code leaves by saveLive
// would store and load what they do not change.
func (p *program) hoist() {
	reads := make([]int32, p.f.NumRegs(code.GPR)+p.vecs)
	p.spare = p.spare[:0]
	done := 0
	for from := 0; from < len(p.insts); from++ {
		if p.insts[from].op != loopBegin {
			continue
		}
		to, saves := p.loopEnd(from)
		if saves {
			continue
		}
		var consts []int
		cold, depth := 0, 0
		for k := from; k <= to; k++ {
			switch i := &p.insts[k]; i.op {
			case coldBegin:
				cold++
			case coldEnd:
				cold--
			case loopBegin:
				depth++
			case loopEnd:
				depth--
			default:
				if cold > 0 {
					continue
				}
				i.visit(func(r *code.R, use, _ bool) {
					if use && r.Virtual() {
						reads[p.index(*r)] += 1 << (3 * min(depth-1, 4))
					}
				})
				if i.op > loadLive && p.constant(i) && i.label == 0 && i.d.Virtual() && p.once(i.d) {
					consts = append(consts, k)
				}
			}
		}
		slices.SortStableFunc(consts, func(a, b int) int {
			return int(reads[p.index(p.insts[b].d)] - reads[p.index(p.insts[a].d)])
		})
		p.spare = append(p.spare, p.insts[done:from]...)
		room := [code.NumClasses]int{code.Vec: mostHoisted, code.GPR: mostHoistedGPR}
		for _, k := range consts {
			if c := p.insts[k].d.Class(); room[c] > 0 {
				room[c]--
				p.spare = append(p.spare, p.insts[k])
				p.insts[k] = inst{}
			}
		}
		done, from = from, to
	}
	p.spare = append(p.spare, p.insts[done:]...)
	p.insts, p.spare = slices.DeleteFunc(p.spare, func(i inst) bool { return i.op == none }), p.insts
}

// loopEnd returns where the loop that begins at an instruction ends, and whether there is a saveLive in it.
func (p *program) loopEnd(from int) (to int, saves bool) {
	depth := 0
	for k := from; k < len(p.insts); k++ {
		switch p.insts[k].op {
		case loopBegin:
			depth++
		case loopEnd:
			if depth--; depth == 0 {
				return k, saves
			}
		case saveLive:
			saves = true
		}
	}
	return len(p.insts) - 1, saves
}
