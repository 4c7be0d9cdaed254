// Package opt rewrites kernels into kernels that do the same with less work. It is the one optimiser of kir: front ends
// call Clean, which makes a kernel of what they wrote down, and executors that compile call Run, on what they know of a
// launch. README.md lists the passes.
package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// Hints is what a front end knows of the instructions of a kernel and kir does not say.
type Hints struct {
	Unroll   map[*kir.Instr]bool // of a Loop: whether its text asks that it be unrolled, or that it be not
	Volatile map[*kir.Instr]bool // Loads that are never taken for another one
	Checks   map[*kir.Instr]bool // Ifs around what happens only where an index is outside of an array
}

// maxRounds bounds how often a kernel is cleaned: once more after arrays became variables.
const maxRounds = 3

// Clean rewrites a kernel as a front end writes it down: values replace the variables that hold them, Breaks become
// branches, short loops are unrolled, arrays whose indices turn out to be constant become variables, what repeats or
// has no use goes, unread loads too. What the kernel's Body holds is used up.
func Clean(k *kir.Kernel, h Hints) {
	k.Renumber()
	marks := make([]mark, k.NumInstrs)
	k.Body.Walk(func(in *kir.Instr) { marks[in.ID] = h.mark(in) })
	for range maxRounds {
		r := newRewriter(k, k, marks, cleaning)
		r.run(k.Body)
		if !promote(k) {
			break
		}
		marks = r.renumber()
	}
	sweep(k, func(in *kir.Instr) bool { return in.Op != kir.Load && acts(in) })
	dropRegions(k)
	k.Renumber()
}

func (h Hints) mark(in *kir.Instr) mark {
	var m mark
	if h.Volatile[in] {
		m |= isVolatile
	}
	if h.Checks[in] {
		m |= isCheck
	}
	if wish, ok := h.Unroll[in]; ok && wish {
		m |= wantsUnrolling
	} else if ok {
		m |= wantsLoop
	}
	return m
}

// Launch is what is known of the launches that a kernel is made for: Facts of its Words, and which Load reads which
// word, as FindWords returns them for it. Nothing is known of the zero Launch.
type Launch struct {
	Words []Word
	Loads []uint8
	Facts Facts
}

// Run returns a kernel that does the same as a verified one in launches of which something is known; it does not change
// its argument. It is for executors that run many lanes at once: small conditionals on lanes become selections, and
// pointers that move along in step keep what is uniform of them apart. Loops whose rounds become known with the launch
// are unrolled. The kernel computes the same bits (but for the payload of NaNs) and touches the same memory in the same
// order; positions stay.
func Run(k *kir.Kernel, l Launch) *kir.Kernel {
	out := *k
	out.Vars = append([]kir.Var(nil), k.Vars...)
	marks := make([]mark, k.NumInstrs)
	if l.Facts != 0 {
		for id, n := range l.Loads {
			marks[id] = mark(n) << wordShift
		}
		out.Params = append([]kir.Param(nil), k.Params...)
		for i, w := range l.Words {
			if p := &out.Params[w.Param]; l.Facts.Of(i) != Nothing {
				p.MinBytes = max(p.MinBytes, w.End())
			}
		}
	}
	limits := compiling
	if l.Facts == 0 {
		limits.unrollTotal = 0
	}
	r := newRewriter(k, &out, marks, limits)
	r.facts = l.Facts
	r.run(k.Body)
	splitPointers(&out, r.differs)
	sweep(&out, acts)
	out.Renumber()
	return &out
}

// limits says how far a rewrite goes.
type limits struct {
	// own: the kernel that is read may be changed. shareLoads: loads between which memory does not change are one.
	own, shareLoads bool
	// lanes: only conditions that differ between lanes become selections.
	lanes bool
	// divide: divisions by constants become products. Executors see to that themselves, by what they know of lanes.
	divide bool
	// matrices: products of matrices are taken apart.
	matrices bool
	// launch: rounds are known from a launch. Loops that have barriers, or loops in them, are unrolled as others are.
	launch bool
	// Of unrolling, in rounds and in the instructions that it makes of a loop: by default, of loops that index a lane's
	// own arrays (they become variables), and of those whose text asks for it; then of all loops.
	rounds, size, arrayRounds, arraySize, wishRounds, wishSize, unrollTotal int
}

var (
	cleaning = limits{
		own: true, shareLoads: true, divide: true, rounds: 16, size: 256, arrayRounds: 64, arraySize: 1024, wishRounds: 64,
		wishSize: 2048, unrollTotal: 1 << 13,
	}
	// What a text asks of its loops has been done when a kernel is compiled.
	compiling = limits{
		lanes: true, matrices: true, launch: true, rounds: 8, size: 512, arrayRounds: 8, arraySize: 512, unrollTotal: 1 << 12,
	}
)
