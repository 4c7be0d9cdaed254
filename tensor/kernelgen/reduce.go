package kernelgen

import (
	"math"
	"strconv"
)

// Spread is how a reduction is spread over threads.
type Spread uint8

// The spreads. Which one serves follows from shape and axes alone, never from strides or threads: so results are the
// same in every layout and on every machine.
const (
	Lane  Spread = iota // a thread for each output
	Simd                // a SIMD-group for each output
	Group               // a threadgroup for each output
)

// Reduction is a reduction of a expression's last value (or only operand) to an output of another shape.
type Reduction struct {
	Expr    Expression // Outputs and Out are not used
	Reducer Reducer
	OutType string // MSL; the result is converted to it
	Pass    Pass
}

// Pass is the part of a reduction that a kernel does, as FirstPass and NextPass choose it.
type Pass struct {
	Spread  Spread
	Parts   int    // of an output's elements; more than 1: accumulators are written, for the next pass
	Chunk   int    // elements of a part
	Short   bool   // so few elements that a chain is accurate enough
	Tall    bool   // so many that the tree of a thread's chains has more than lowTree levels
	Deep    bool   // the reduced axes are several dimensions, in memory
	Wide    bool   // 64-bit indices
	Along   bool   // with Lane a SIMD-group's outputs lie along the innermost kept dimension, Inner long
	Strips  bool   // then a thread does laneStrips outputs, 32 apart: memory is touched in longer runs
	Raw     bool   // accumulators are written, whatever Parts is: there are other axes to reduce
	Unit    uint64 // then bit k says that operand k has stride 1 there
	Outputs int    // of the whole reduction
	Reduced int    // elements for each output in this pass
	Inner   int
}

// accSizes are the sizes of accumulators that may stand in memory between two passes.
var accSizes = map[string]int{
	"bool": 1, "uchar": 1, "char": 1, "uint8_t": 1, "int8_t": 1, "ushort": 2, "short": 2,
	"uint16_t": 2, "int16_t": 2, "half": 2, "bfloat16_t": 2, "uint": 4, "int": 4, "uint32_t": 4,
	"int32_t": 4, "float": 4, "ulong": 8, "long": 8, "uint64_t": 8, "int64_t": 8, "double": 8,
	"complex64_t": 8,
}

// AccSize is the size of an accumulator of that MSL type in bytes, 0 if it is a struct of the op's own.
func AccSize(msl string) int { return accSizes[msl] }

// The limits that choose a spread.
const (
	fewElements = 16    // for each output: a thread does them
	simdRow     = 16384 // a SIMD-group does them
	groupRow    = 65536 // a threadgroup does them
	laneChunk   = 512
	laneBlock   = 4 // elements in a chain, before the tree; 3 additions, within the bound of 2 log2 4
	rowBlock    = 8
	lowTree     = 8  // levels of the tree of fewer than 256 chains: a thread clears all that it has
	tallTree    = 32 // of all others
	laneShort   = 7
	laneStrips  = 4
	stripSteps  = 8 // more steps are not worth printing for each strip
)

// FirstPass chooses how to reduce reduced elements to each of outputs; inner says that the innermost axis is among
// the reduced. The number of outputs has no say: a row has the same sum alone and beside others.
func FirstPass(outputs, reduced int, inner bool, acc string) Pass {
	p := Pass{Parts: 1, Chunk: max(reduced, 1), Outputs: outputs, Reduced: reduced}
	split := AccSize(acc) > 0
	switch {
	case !inner || reduced < fewElements:
		p.Spread = Lane
		if split && reduced > 2*laneChunk {
			p.Chunk = laneChunk
		}
	case reduced <= simdRow:
		p.Spread = Simd
	default:
		p.Spread = Group
		if split && reduced > groupRow {
			p.Chunk = groupRow / 2
		}
	}
	p.finish()
	return p
}

// leastSplit is how many elements a row has at least for Split.
const leastSplit = 32

// Split is the first of two steps of a reduction of several axes that are not neighbours, of which the innermost
// ones are rows of so many elements: it reduces these, so that no index is divided, and leaves accumulators. It is
// chosen by shape and axes alone; ok is false if it is of no use.
func Split(shape []int, reduced []bool, acc string) (p Pass, trailing int, ok bool) {
	at := len(shape)
	row, rows := 1, 1
	for ; at > 0 && (reduced[at-1] || shape[at-1] == 1); at-- {
		row *= shape[at-1]
	}
	apart := false
	for d, n := range shape[:at] {
		rows *= n
		apart = apart || reduced[d] && n > 1
	}
	if !apart || rows == 0 || row < leastSplit || AccSize(acc) == 0 {
		return p, 0, false
	}
	p = FirstPass(rows, row, true, acc)
	p.Raw = true
	return p, len(shape) - at, p.Parts == 1
}

func (p *Pass) finish() {
	p.Parts = max((p.Reduced+p.Chunk-1)/p.Chunk, 1)
	p.Short = p.Chunk <= [...]int{laneShort, rowBlock * 32, rowBlock * GroupThreads}[p.Spread]
	p.Tall = p.Chunk/[...]int{laneBlock, rowBlock * 32, rowBlock * GroupThreads}[p.Spread] >= 1<<lowTree-1
}

// levels is how many levels a thread's tree of chains may have.
func (p Pass) levels() int {
	if p.Tall {
		return tallTree
	}
	return lowTree
}

// NextPass is the pass that reduces the parts of p; ok is false if there is none. Its input is p's accumulators:
// those of an output are side by side, except with Lane, where they are Outputs apart.
func (p Pass) NextPass() (next Pass, ok bool) {
	if p.Parts == 1 {
		return Pass{}, false
	}
	next = Pass{Spread: p.Spread, Chunk: p.Parts, Outputs: p.Outputs, Reduced: p.Parts}
	if p.Spread == Group && p.Parts <= simdRow {
		next.Spread = Simd
	}
	if p.Spread == Lane && p.Parts > 2*laneChunk {
		next.Chunk = laneChunk
	}
	next.finish()
	return next, true
}

// For is the pass for a layout and an expression of n steps.
func (p Pass) For(l *ReduceLayout, steps int) Pass {
	p.Wide = l.Wide(p)
	p.Deep = len(l.Shape)-l.Kept > 1
	if p.Spread != Lane || l.Kept == 0 || l.Shape[l.Kept-1] < 32 {
		return p
	}
	p.Along, p.Inner = true, l.Shape[l.Kept-1]
	p.Strips = p.Reduced >= fewElements && p.Inner%(32*laneStrips) == 0 && steps <= stripSteps &&
		p.Outputs >= 32*laneStrips*laneStrips
	for k, st := range l.Strides {
		if k < 64 && st[l.Kept-1] == 1 {
			p.Unit |= 1 << k
		}
	}
	return p
}

// strips is how many outputs a thread does.
func (p Pass) strips() int {
	if p.Strips {
		return laneStrips
	}
	return 1
}

// Threads is the size of the launch, in threads; threadgroups have GroupThreads.
func (p Pass) Threads() int {
	switch p.Spread {
	case Lane:
		if p.Along {
			run := 32 * p.strips()
			return (p.Inner + run - 1) / run * (p.Outputs / p.Inner) * 32 * p.Parts
		}
		return (p.Outputs + 31) / 32 * 32 * p.Parts
	case Simd:
		return p.Outputs * p.Parts * 32
	}
	return p.Outputs * p.Parts * GroupThreads
}

// ReduceEntry is the name of the kernel that PrintReduce prints.
const ReduceEntry = "reduce"

// ReduceLayout is how the operands of a reduction lie: kept dimensions, then reduced ones.
type ReduceLayout struct {
	Layout
	Kept int // the first Kept dimensions of Shape are kept

	arena []int // that Shape and Strides are cut from
	kind  []bool
}

// Plan makes out the layout l over the reduction's input with the kept dimensions first, the reduced ones after them,
// and both collapsed. It keeps l.Base, and uses out's memory again.
func (out *ReduceLayout) Plan(l *Layout, reduced []bool) {
	n := len(l.Shape)
	if size := n * (1 + len(l.Strides)); cap(out.arena) < size {
		out.arena = make([]int, size)
	}
	arena := out.arena[:n*(1+len(l.Strides))]
	kind := out.kind[:0]
	for _, want := range []bool{false, true} {
		for d := range n {
			if reduced[d] != want {
				continue
			}
			at := len(kind)
			kind = append(kind, want)
			arena[at] = l.Shape[d]
			for k := range l.Strides {
				arena[n*(k+1)+at] = l.Strides[k][d]
			}
		}
	}
	out.kind, out.Base, out.Strides = kind, l.Base, out.Strides[:0]
	for k := range l.Strides {
		out.Strides = append(out.Strides, arena[n*(k+1):n*(k+2)])
	}
	out.Shape, out.Kept = collapse(arena[:n], out.Strides, kind)
}

// Numbers are the numbers for the kernel of a pass: outputs, parts, elements, chunk, kept dimensions, reduced
// dimensions, and their sizes; then for each operand that is not Scalar its base, its stride along the innermost
// reduced dimension, its strides. They are appended to out.
func (l *ReduceLayout) Numbers(out []int, p Pass, scalar func(k int) bool) []int {
	n := len(l.Shape)
	out = append(out, p.Outputs, p.Parts, p.Reduced, p.Chunk, l.Kept, n-l.Kept)
	out = append(out, l.Shape...)
	for k, st := range l.Strides {
		if scalar(k) {
			continue
		}
		lane := 0
		if n > l.Kept {
			lane = st[n-1]
		}
		out = append(out, l.Base[k], lane)
		out = append(out, st...)
	}
	return out
}

// Class is operand k's class along the reduced elements; where those are several dimensions it is Strided.
func (l *ReduceLayout) Class(k int) Class {
	switch n := len(l.Shape); {
	case n-l.Kept > 1:
		return Strided
	case n == l.Kept:
		return Repeat
	default:
		return classOf(l.Strides[k][n-1])
	}
}

// Wide reports whether some index is past 31 bits.
func (l *ReduceLayout) Wide(p Pass) bool {
	return l.Layout.Wide() || p.Outputs > math.MaxInt32/2 || p.Reduced > math.MaxInt32/2 ||
		p.Outputs*p.Parts > math.MaxInt32/2
}

// Key appends text that tells reductions apart to b.
func (r *Reduction) Key(b []byte) []byte {
	b = r.Expr.Key(b)
	for _, s := range []string{r.OutType, r.Reducer.Acc, r.Reducer.Header, r.Reducer.Init, r.Reducer.Load,
		r.Reducer.Next, r.Reducer.Combine, r.Reducer.Finish, r.Reducer.Down} {
		b = append(b, '|')
		b = append(b, s...)
	}
	flag := func(f bool) byte {
		if f {
			return '1'
		}
		return '0'
	}
	p := r.Pass
	b = append(b, '|', '0'+byte(p.Spread), flag(p.Parts > 1 || p.Raw), flag(p.Short), flag(p.Tall), flag(p.Deep),
		flag(p.Wide), flag(p.Along), flag(p.Strips))
	return strconv.AppendUint(b, p.Unit, 16)
}

// itoa shortens the printers.
func itoa(n int) string { return strconv.Itoa(n) }
