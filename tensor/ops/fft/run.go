package fft

import (
	_ "embed"
	"fmt"
	"math"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

var (
	//go:embed numbers.metal
	numbersText string
	//go:embed stages.metal
	stagesText string
	//go:embed transform.metal
	transformText string
	//go:embed pieces.metal
	piecesText string
)

// variant is what all kernels depend on, tileVariant what those of the stages do: how the numbers of a tile lie.
type variant struct {
	kind    kind
	inverse bool
}

type tileVariant struct {
	variant
	tile   int
	inRows bool
	out    layout
	// convolve: the whole transform is a convolution, in one pass
	convolve bool
	odd      uint64 // a bit for each radix that has no kernel text of its own
}

// Macros are the stages of those radices: a length without them does without their code, which is long.
func (v tileVariant) Macros() string {
	var b strings.Builder
	b.WriteString("#define ODD_STAGES")
	for r := range 64 {
		if v.odd>>r&1 != 0 {
			fmt.Fprintf(&b, " case %d: odd_stage<Odd<%d>>(x, y, s, step, roots, m.table, lane); break;", r, r)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// isOdd reports whether a radix is one of the above.
func isOdd(r int) bool { return r > 5 && r != 8 }

// pieceVariant chooses kernels around the stages: whether a transform's numbers lie side by side.
type pieceVariant struct {
	variant
	rows bool
}

// layout says what lies side by side in the output.
type layout uint8

const (
	rowsLayout    layout = iota // a transform's numbers
	columnsLayout               // those of a tile's transforms
	otherLayout
)

var (
	pieceKernels = kit.NewKernels[pieceVariant](numbersText, piecesText)
	tileKernels  = kit.NewKernels[tileVariant](numbersText, stagesText, transformText)
)

// job is a transform along one dimension that is being encoded: n numbers, outer of them times inner side by side. The
// dimension has inLength numbers in the input, of which known count, and outLength in the output.
type job struct {
	*tensor.Run
	variant
	in, out                    tensor.Operand
	outer, n, inner            int
	inLength, known, outLength int
	scale, weight              float64
	tables                     map[int]table
}

// table holds the roots that a tile's transform multiplies by.
type table struct {
	roots  tensor.Operand
	stages []tileStage
	size   int
}

// tileStage is a stage of a tile's transform: there are transforms of count numbers before it.
type tileStage struct{ radix, between, count, roots int }

// complexes is memory for n complex numbers.
func (j *job) complexes(n int) (tensor.Operand, error) {
	return j.Temp(tensor.Spec{Shape: tensor.Shape{n}, DType: tensor.Complex64})
}

// table is that of transforms of n numbers; it is computed when it is needed first.
func (j *job) table(n int) (table, error) {
	if t, ok := j.tables[n]; ok {
		return t, nil
	}
	type run struct{ count, order, from, size int }
	var t table
	var runs []run
	count := 1
	for _, r := range radices(n) {
		t.stages = append(t.stages, tileStage{r, n / (r * count), count, t.size})
		runs = append(runs, run{count, r * count, t.size, (r - 1) * count})
		t.size += (r - 1) * count
		if isOdd(r) { // their sums go round the circle
			runs = append(runs, run{r, r, t.size, r})
			t.size += r
		}
		count *= r
	}
	var err error
	if t.roots, err = j.complexes(max(t.size, 1)); err != nil {
		return t, err
	}
	for _, r := range runs {
		err := pieceKernels.Launch(j.Run, pieceVariant{}, "powers", kit.Line(r.size), t.roots.Arg(),
			tensor.Const([]uint32{uint32(r.count), uint32(r.order), uint32(r.from), uint32(t.size)}))
		if err != nil {
			return t, err
		}
	}
	j.tables[n] = t
	return t, nil
}

// pass is a launch that transforms some of the numbers: many transforms of length numbers. Rows says that the
// numbers of each lie side by side in the input, otherwise those of neighbouring transforms do.
type pass struct {
	variant
	in, out                     tensor.Operand
	outer, inOuter, outOuter    int
	transforms, length, known   int
	rows                        bool
	inIndex, inElement          int
	outLow, outHigh, outElement int
	low, whole, order           int
	scale, weight               float64
	more                        []tensor.Arg // the roots of the whole; of a convolution the chirp and the filter
	convolve                    bool
}

func (j *job) pass(p pass) error {
	t, err := j.table(p.length)
	if err != nil {
		return err
	}
	v := tileVariant{variant: p.variant, tile: tileWidth(p.length, p.transforms), inRows: p.rows, out: otherLayout,
		convolve: p.convolve}
	switch {
	case p.outElement == 1:
		v.out = rowsLayout
	case p.low%v.tile == 0 || p.low >= p.transforms:
		v.out = columnsLayout
	}
	for _, s := range t.stages {
		if isOdd(s.radix) {
			v.odd |= 1 << s.radix
		}
	}
	b := kit.Params{}.Long(p.inOuter, p.outOuter).Uint(p.inIndex, p.inElement, p.outLow, p.outHigh, p.outElement, p.low,
		p.transforms, p.length, p.known, p.whole, p.order, t.size, len(t.stages)).Float(tensor.Float32, p.scale, p.weight)
	for i := range mostStages {
		var s tileStage
		if i < len(t.stages) {
			s = t.stages[i]
		}
		b = b.Uint(s.radix, s.between*v.tile, s.count, s.roots)
	}
	tiles := (p.transforms + v.tile - 1) / v.tile
	grid := kit.Grid{Threads: metal.Size{X: 32 * tiles, Y: p.outer, Z: 1}, Group: metal.Size{X: 32, Y: 1, Z: 1}}
	args := append([]tensor.Arg{p.in.Arg(), p.out.Arg(), b.Arg(), t.roots.Arg()}, p.more...)
	return tileKernels.Launch(j.Run, v, "transform", grid, args...)
}

// encode chooses how to transform.
func (j *job) encode() error {
	if err := kit.CheckCount(j.n, longest, "numbers in a transform"); err != nil {
		return err
	}
	if err := kit.CheckCount(max(j.n, j.known)*j.inner, mostSideBySide, "numbers in transforms side by side"); err != nil {
		return err
	}
	if err := kit.CheckCount(j.outer, math.MaxUint32, "transforms"); err != nil {
		return err
	}
	switch {
	case j.halves():
		return j.half()
	case !isSmooth(j.n):
		return j.convolve()
	case j.fitsTile(j.n):
		return j.atOnce()
	case j.kind == complexToComplex && j.inLength == j.n:
		return j.stages(complexes(j.inverse), j.in, j.out, j.n, j.scale)
	}
	x, err := j.pack(j.n, nil)
	if err != nil {
		return err
	}
	y, err := j.complexes(j.outer * j.n * j.inner)
	if err != nil {
		return err
	}
	if err := j.stages(complexes(false), x, y, j.n, 1); err != nil {
		return err
	}
	return j.unpack(y, j.n, nil)
}

// leastHalved is the least length at which half gains more than its pass through memory costs.
const leastHalved = 16

// halves reports whether real numbers lie as half as many complex ones that stages transform.
func (j *job) halves() bool {
	if j.inner != 1 || j.n%2 != 0 || j.n < leastHalved || !isSmooth(j.n/2) {
		return false
	}
	switch j.kind {
	case realToComplex:
		return !j.fitsTile(j.n) && j.inLength == j.n && j.in.OffsetBytes%8 == 0 // one pass is quicker
	case complexToReal:
		return j.out.OffsetBytes%8 == 0
	}
	return false
}

// half transforms real numbers, or to them, as half as many complex ones: even numbers are real parts, odd ones
// imaginary parts (Press and others, "Numerical Recipes", section 12.3).
func (j *job) half() error {
	h := j.n / 2
	roots, err := j.complexes(h + 1)
	if err != nil {
		return err
	}
	if err := pieceKernels.Launch(j.Run, pieceVariant{}, "circle", kit.Line(h+1), roots.Arg(), kit.Uint(j.n)); err != nil {
		return err
	}
	if j.kind == realToComplex {
		between, err := j.complexes(j.outer * h)
		if err != nil {
			return err
		}
		if err := j.stages(complexes(false), j.in, between, h, 1); err != nil {
			return err
		}
		return j.piece("untangle", between, j.out, h+1, h, &roots)
	}
	from := source{variant: variant{half, true}, circle: &roots}
	if !j.inverse {
		from.kind = conjugatedHalf
	}
	return j.stages(from, j.in, j.out, h, j.scale)
}

// atOnce transforms in one pass.
func (j *job) atOnce() error {
	p := pass{variant: j.variant, in: j.in, out: j.out, outer: j.outer, inOuter: j.inLength * j.inner,
		outOuter: j.outLength * j.inner, transforms: j.inner, length: j.n, known: j.known, rows: j.inner == 1,
		inElement: j.inner, outLow: 1, outElement: j.inner, low: j.inner, whole: j.n, scale: j.scale, weight: j.weight}
	j.alongside(&p)
	return j.pass(p)
}

// alongside has a tile take several rows where one has too few numbers for the lanes.
func (j *job) alongside(p *pass) {
	rows := j.outer
	if j.inner == 1 && p.length <= stageLength && rows*max(p.inOuter, p.outOuter) <= mostSideBySide {
		p.outer, p.transforms, p.low, p.inIndex, p.outLow = 1, rows, rows, p.inOuter, p.outOuter
	}
}

// source is what stages begin with: complex numbers, or half a spectrum and the roots of the whole's order.
type source struct {
	variant
	circle *tensor.Operand
}

func complexes(inverse bool) source { return source{variant: variant{inverse: inverse}} }

// stages transforms rows of n complex numbers in as many passes as it takes. The input must not be the output.
func (j *job) stages(from source, in, out tensor.Operand, n int, scale float64) error {
	lengths := []int{n}
	if !j.fitsTile(n) {
		lengths = split(n)
	}
	row := n * j.inner
	var between tensor.Operand
	if len(lengths) > 1 {
		var err error
		if between, err = j.complexes(j.outer * row); err != nil {
			return err
		}
	}
	apart, left := j.inner, n
	for i, length := range lengths {
		to := out
		if (len(lengths)-i)%2 == 0 {
			to = between
		}
		p := pass{variant: variant{inverse: from.inverse}, in: in, out: to, outer: j.outer, inOuter: row, outOuter: row,
			transforms: row / length, length: length, known: length, inElement: row / length, rows: row == length, outLow: 1,
			outHigh: length * apart, outElement: apart, low: apart, scale: 1}
		if i < len(lengths)-1 {
			p.order = left
		} else {
			p.scale = scale
		}
		if i == 0 && from.circle != nil {
			p.variant, p.inOuter, p.known, p.whole, p.weight = from.variant, j.inLength, j.known, j.n, j.weight
			p.more = []tensor.Arg{from.circle.Arg()}
		}
		if row == length {
			j.alongside(&p)
		}
		if err := j.pass(p); err != nil {
			return err
		}
		apart *= length
		left /= length
		in = to
	}
	return nil
}

// fitsTile reports whether rows of n numbers are transformed in one pass.
func (j *job) fitsTile(n int) bool {
	return n <= room && (j.inner < leastAlongside || n <= stageLength)
}

// piece launches a kernel over rows of so many numbers of one dimension, in or out of complex rows of length numbers.
func (j *job) piece(entry string, in, out tensor.Operand, numbers, length int, chirp *tensor.Operand) error {
	chirped := 1
	if chirp == nil {
		chirped, chirp = 0, &in // not read
	}
	m := kit.Params{}.Uint(j.inner, j.inLength, j.known, j.n, length, chirped).Float(tensor.Float32, j.scale, j.weight)
	grid := kit.Tiles(j.inner, numbers, j.outer)
	if j.inner == 1 {
		grid = kit.Tiles(numbers, 1, j.outer)
		grid.Group.X = min(numbers, 256)
	}
	args := []tensor.Arg{in.Arg(), out.Arg(), m.Arg(), chirp.Arg()}
	return pieceKernels.Launch(j.Run, pieceVariant{j.variant, j.inner == 1}, entry, grid, args...)
}

// pack makes complex rows of length numbers of the input, times the chirp if there is one.
func (j *job) pack(length int, chirp *tensor.Operand) (tensor.Operand, error) {
	x, err := j.complexes(j.outer * length * j.inner)
	if err != nil {
		return x, err
	}
	return x, j.piece("pack", j.in, x, length, length, chirp)
}

// unpack makes the output of complex rows of length numbers, times the chirp if there is one.
func (j *job) unpack(x tensor.Operand, length int, chirp *tensor.Operand) error {
	return j.piece("unpack", x, j.out, j.outLength, length, chirp)
}

// convolve transforms rows of any length by one convolution (Bluestein, "A linear filtering approach to the
// computation of the discrete Fourier transform", 1970): j k = (j^2 + k^2 - (k - j)^2) / 2.
func (j *job) convolve() error {
	length := convolutionLength(2*j.n - 1)
	if err := kit.CheckCount(length*j.inner, mostSideBySide, "numbers in transforms side by side"); err != nil {
		return err
	}
	chirp, err := j.complexes(j.n)
	if err != nil {
		return err
	}
	if err := pieceKernels.Launch(j.Run, pieceVariant{}, "chirps", kit.Line(j.n), chirp.Arg(), kit.Uint(j.n)); err != nil {
		return err
	}
	filter, err := j.filter(chirp, length)
	if err != nil {
		return err
	}
	if j.inner == 1 && length <= room {
		return j.pass(pass{variant: j.variant, in: j.in, out: j.out, outer: j.outer, inOuter: j.inLength,
			outOuter: j.outLength, transforms: 1, length: length, known: j.known, rows: true, inElement: 1, outLow: 1,
			outElement: 1, low: 1, whole: j.n, scale: j.scale / float64(length), weight: j.weight,
			more: []tensor.Arg{chirp.Arg(), filter.Arg()}, convolve: true})
	}
	x, err := j.pack(length, &chirp)
	if err != nil {
		return err
	}
	y, err := j.complexes(j.outer * length * j.inner)
	if err != nil {
		return err
	}
	if err := j.stages(complexes(false), x, y, length, 1); err != nil {
		return err
	}
	if err := j.piece("multiply", y, filter, length, length, nil); err != nil {
		return err
	}
	if err := j.stages(complexes(true), y, x, length, 1/float64(length)); err != nil {
		return err
	}
	return j.unpack(x, length, &chirp)
}

// filter is the transform of what rows are convolved with.
func (j *job) filter(chirp tensor.Operand, length int) (tensor.Operand, error) {
	x, err := j.complexes(length)
	if err != nil {
		return x, err
	}
	y, err := j.complexes(length)
	if err != nil {
		return y, err
	}
	err = pieceKernels.Launch(j.Run, pieceVariant{}, "wrap", kit.Line(length), chirp.Arg(), x.Arg(),
		tensor.Const([]uint32{uint32(j.n), uint32(length)}))
	if err != nil {
		return y, err
	}
	one := *j
	one.outer, one.inner = 1, 1
	return y, one.stages(complexes(false), x, y, length, 1)
}
