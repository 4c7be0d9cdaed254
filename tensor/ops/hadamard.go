package ops

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// hadamardAttrs are the scale, where the user gave one, and whether the matrix is transposed.
type hadamardAttrs struct {
	Scale      tensor.F64
	Given      bool
	Transposed bool
}

var (
	hadamard = tensor.Declare[hadamardAttrs]("hadamard_transform")
	//go:embed hadamard.metal
	hadamardText    string
	hadamardKernels = kit.NewKernels[hadamardVariant](hadamardText)
)

type hadamardVariant struct {
	T     tensor.DType
	Radix int
}

// maxRadix is how many numbers of a row a thread holds.
const maxRadix = 16

func init() {
	hadamard.Define(tensor.Rules[hadamardAttrs]{
		Shape: func(in []tensor.Spec, _ hadamardAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			if len(s) == 0 {
				return nil, errors.New("BUG: a scalar has no rows")
			}
			_, _, err := hadamardFactors(s[len(s)-1])
			return append(outs, s), err
		},
		DType: kit.SameDType[hadamardAttrs],
		Run:   runHadamard,
		Gradient: func(g *tensor.VJP[hadamardAttrs]) *tensor.Array {
			a := g.Attrs
			a.Transposed = !a.Transposed
			return hadamard.One(g.Ctx, a, g.Cot[0])
		},
		Tangent: func(g *tensor.JVP[hadamardAttrs]) *tensor.Array { return hadamard.One(g.Ctx, g.Attrs, g.Tan[0]) },
		VMap: func(g *tensor.VMap[hadamardAttrs]) ([]*tensor.Array, []int) {
			return []*tensor.Array{hadamard.One(g.Ctx, g.Attrs, FrontOf(g, 0, 0))}, []int{0}
		},
	})
}

// hadamardFactors are m and the power of 2 that n is the product of, as there is a matrix of m rows.
func hadamardFactors(n int) (m, power int, err error) {
	for _, m := range []int{1, 12, 20, 28} {
		if q := n / m; n > 0 && n%m == 0 && q&(q-1) == 0 && bits.Len(uint(q)) <= 27 {
			return m, q, nil
		}
	}
	return 0, 0, fmt.Errorf("the last dimension is %d, want m*2^k with m 1, 12, 20 or 28 and k at most 26", n)
}

func runHadamard(r *tensor.Run, a hadamardAttrs) error {
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	out := r.Out[0]
	n := out.Shape[len(out.Shape)-1]
	m, power, err := hadamardFactors(n)
	if err != nil {
		return err
	}
	scale := 1 / math.Sqrt(float64(n))
	if a.Given {
		scale = a.Scale.Float()
	}
	d, from, count := out.DType, x, out.Shape.Size()
	if err := kit.CheckCount(count, math.MaxUint32, "elements"); err != nil {
		return err
	}
	for step := 1; step < power || m == 1 && step == 1; { // a row of one number is scaled
		radix := min(maxRadix, power/step)
		by := 1.0
		if m == 1 && step*radix == power {
			by = scale
		}
		if err := hadamardKernels.Launch(r, hadamardVariant{d, radix}, "butterflies", kit.Line(count/radix),
			from.Arg(), out.Arg(), kit.Uint(step), kit.Float(by, d)); err != nil {
			return err
		}
		from, step = out, max(step*radix, 2)
	}
	if m == 1 {
		return nil
	}
	if power == 1 {
		if err := r.CopyTo(out, x); err != nil {
			return err
		}
	}
	return hadamardKernels.Launch(r, hadamardVariant{d, m}, "mix", kit.Line(count/m), out.Arg(), kit.Uint(power),
		kit.Float(scale, d), kit.Params{}.Uint(hadamardRows(m, a.Transposed)...).Arg())
}

// hadamardBlocks are the matrices of 20 and 28 rows as four times four blocks: each is a circulant, whose rows are its
// first one moved on by one place after the other.
var hadamardBlocks = map[int]string{
	20: `+---- +---- ++--+ +-++-
	     -++++ +---- -+--+ ++--+
	     --++- +-++- +---- -++++
	     -+--+ --++- +---- +----`,
	28: `+------ ++----+ +-+--+- +--++--
	     --++++- +------ -++--++ +-+--+-
	     -+-++-+ +--++-- +------ --++++-
	     -++--++ -+-++-+ ++----+ +------`,
}

// hadamardRows is a matrix of m rows of +1 and -1 that are orthogonal to each other: bit k of row j is set where it has
// +1 in column k. That of 12 rows is Paley's, of the squares modulo 5.
func hadamardRows(m int, transposed bool) []int {
	rows := make([]int, m)
	set := func(row, column int, plus bool) {
		if transposed {
			row, column = column, row
		}
		if plus {
			rows[row] |= 1 << column
		}
	}
	if m == 12 {
		for i := range 6 {
			for j := range 6 {
				difference := (j - i + 5) % 5
				positive := i == 0 || j == 0 || difference == 1 || difference == 4
				for k := range 4 { // a block of 2 by 2
					plus := k == 0 // + - - - on the diagonal
					if i != j {
						plus = (k != 3) == positive // + + + - or its negative
					}
					set(2*i+k/2, 2*j+k%2, plus)
				}
			}
		}
		return rows
	}
	blocks, size := strings.Fields(hadamardBlocks[m]), m/4
	for i := range m {
		for j := range m {
			first := blocks[i/size*4+j/size]
			set(i, j, first[(j-i+m)%size] == '+')
		}
	}
	return rows
}

var _ = sig.Def("hadamard_transform", "a scale:number?", func(a *sig.Args) any {
	return HadamardTransform(a.Array(0), a.NumberOrNone(1), a.Ctx)
})

// HadamardTransform multiplies the rows along a's last axis by a Hadamard matrix and by scale, which is 1/sqrt(n) if it
// is nil, so that lengths stay. A row's size n is m*2^k with m 1, 12, 20 or 28 and k at most 26: the matrix is the
// Kronecker product of one of m rows and Sylvester's of 2^k. Other sizes and complex64 are errors. Integers and bool
// give float32, other dtypes their own; the half types are computed in float32 and rounded once. A scalar is a row of
// one number.
func HadamardTransform(a *tensor.Array, scale *float64, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "hadamard_transform"
	c := tensor.Call(ctx)
	in, f := Convert(c, op, kit.Refuse(kit.Inexact, ": it would lose the imaginary parts", tensor.Complex64), a)
	if f != nil {
		return f
	}
	x, attrs := in[0], hadamardAttrs{}
	if scale != nil {
		attrs = hadamardAttrs{Scale: tensor.MakeF64(*scale), Given: true}
	}
	d := x.DType()
	if x.NDim() == 0 {
		if scale == nil {
			return x
		}
		return Multiply(x, Number(*scale, d, c), c)
	}
	return AsType(hadamard.One(c, attrs, AsType(x, kit.Accumulator(d), c)), d, c)
}
