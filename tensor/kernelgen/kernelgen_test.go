package kernelgen_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/msl"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

var types = []string{"bool", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t",
	"int64_t", "half",
	"bfloat16_t", "float", "double", "complex64_t"}

func compiles(t *testing.T, text string) {
	t.Helper()
	_, err := msl.Compile(msl.Source{Name: "test", Text: text},
		msl.Options{Float64: strings.Contains(text, "double")})
	require.NoError(t, err, "%s", text)
}

func program(typ string, class kernelgen.Class, out kernelgen.Class) *kernelgen.Expression {
	return &kernelgen.Expression{
		Operands: []kernelgen.Operand{{Type: typ, Class: class}, {Type: typ, Class: kernelgen.Scalar}},
		Steps: []kernelgen.Step{{Op: "first", Type: typ, Text: "$0 + $1", Args: []int{0, 1}},
			{Op: "second", Type: typ, Text: "$1 * $0", Args: []int{2, 0}}},
		Outputs: []int{3, 2}, Out: []kernelgen.Class{out, out},
	}
}

func TestElementwiseTextsCompile(t *testing.T) {
	for _, typ := range types {
		compiles(t, kernelgen.PrintLinear(program(typ, kernelgen.Linear, kernelgen.Linear)))
		for _, class := range []kernelgen.Class{kernelgen.Unit, kernelgen.Repeat, kernelgen.Strided} {
			for _, wide := range []bool{false, true} {
				compiles(t, kernelgen.PrintGeneral(program(typ, class, kernelgen.Unit), wide))
				compiles(t, kernelgen.PrintGeneral(program(typ, class, kernelgen.Strided), wide))
			}
		}
	}
}

// Small strides, folds and rows are written into the kernel.
func TestPlannedTextsCompile(t *testing.T) {
	for _, typ := range types {
		for bits := range 8 {
			p := program(typ, kernelgen.Near(bits-4), kernelgen.Near(2))
			if bits&1 != 0 {
				p.Fold = kernelgen.Fold{Size: 3, Strides: []int{0, 0, 1, 7}}
			}
			p.Rows = bits&2 != 0
			compiles(t, kernelgen.PrintGeneral(p, bits&4 != 0))
		}
	}
}

func TestTileTextsCompile(t *testing.T) {
	for _, typ := range types {
		for _, wide := range []bool{false, true} {
			compiles(t, kernelgen.PrintTile(typ, typ, "$0", 8, wide))
		}
	}
	compiles(t, kernelgen.PrintTile("float", "int", "$0", 4, false))
}

func TestAlongTextsCompile(t *testing.T) {
	for _, inner := range []int{40, 512} {
		for _, typ := range []string{"half", "int", "float", "double", "complex64_t"} {
			zero := typ + "(0)"
			if typ == "complex64_t" {
				zero = "complex64_t(0, 0)"
			}
			var l kernelgen.ReduceLayout
			l.Plan(&kernelgen.Layout{Shape: []int{9, 30, inner}, Base: []int{0},
				Strides: [][]int{{30 * inner, inner, 1}}}, []bool{false, true, false})
			pass := kernelgen.FirstPass(9*inner, 30, false, typ).For(&l, 0)
			require.True(t, pass.Along)
			require.Equal(t, inner == 512, pass.Strips)
			compiles(t, kernelgen.PrintReduce(&kernelgen.Reduction{OutType: typ, Pass: pass,
				Expr:    kernelgen.Expression{Operands: []kernelgen.Operand{{Type: typ, Class: kernelgen.Strided}}},
				Reducer: kernelgen.Reducer{Acc: typ, Init: zero, Load: "$0", Combine: "$0 + $1", Finish: "$0"}}))
		}
	}
}

func TestReduceTextsCompile(t *testing.T) {
	forms := []kernelgen.Spread{kernelgen.Lane, kernelgen.Simd, kernelgen.Group}
	for _, typ := range types {
		for k, form := range forms {
			for bits := range 16 {
				flag := func(n int) bool { return bits>>n&1 == 1 }
				if typ != "float" && (bits+k)%5 != 0 {
					continue
				}
				zero := "0"
				if typ == "complex64_t" {
					zero = "complex64_t(0, 0)"
				}
				r := &kernelgen.Reduction{OutType: typ,
					Reducer: kernelgen.Reducer{Acc: typ, Init: zero, Load: typ + "($0)", Combine: "$0 + $1",
						Finish: "$0"},
					Expr: *program(typ, kernelgen.Strided, 0),
					Pass: kernelgen.Pass{Spread: form, Parts: 1, Short: flag(0), Deep: flag(1), Wide: flag(2)}}
				r.Expr.Outputs, r.Expr.Out = nil, nil
				if flag(3) {
					r.Pass.Parts = 2
				}
				compiles(t, kernelgen.PrintReduce(r))
			}
		}
	}
}

func TestTextsSayWhatTheyAre(t *testing.T) {
	text := kernelgen.PrintLinear(program("float", kernelgen.Linear, kernelgen.Linear))
	require.True(t, strings.HasPrefix(text, "// first second\n#pragma clang fp contract(off)\n"))
	require.Contains(t, text, "const float v2 = static_cast<float>(v0 + v1);")
	require.Equal(t, text, kernelgen.PrintLinear(program("float", kernelgen.Linear, kernelgen.Linear)))
}

// Programs of equal keys print alike, and those of different keys do not.
func TestKeys(t *testing.T) {
	texts := map[string]string{}
	keys := map[string]string{}
	for _, typ := range types {
		for _, class := range []kernelgen.Class{kernelgen.Unit, kernelgen.Repeat, kernelgen.Strided} {
			for _, expr := range []string{"$0 + $1", "$1 + $0", "$0"} {
				for _, outs := range [][]int{{2}, {3}, {2, 3}, {3, 2}} {
					p := program(typ, class, kernelgen.Unit)
					p.Steps[0].Text = expr
					p.Outputs, p.Out = outs, make([]kernelgen.Class, len(outs))
					for i := range p.Out {
						p.Out[i] = kernelgen.Unit
					}
					key, text := string(p.Key(nil)), kernelgen.PrintGeneral(p, false)
					require.NotContains(t, texts, key)
					require.NotContains(t, keys, text)
					texts[key], keys[text] = text, key
				}
			}
		}
	}
}

// walk lists what the general kernel does: for each run and element, each array's element number.
func walk(l *kernelgen.Layout, arrays int) [][]int {
	numbers := l.General(nil, func(int) bool { return false })
	n, perRow, of := numbers[0], numbers[1], numbers[2:]
	rows, per, runs := 1, 1, 1
	if l.Rows() {
		rows, per, runs, of = of[0], of[1], of[2], of[3:]
	}
	nd := of[0]
	sizes, blocks, width := of[1:1+nd], of[1+nd:], 2+nd
	if l.Rows() {
		width++
	}
	outer := 1
	for _, s := range sizes {
		outer *= s
	}
	fold := l.Fold(nil)
	var out [][]int
	for run := range outer * runs * perRow {
		row, first := run/perRow, run%perRow*kernelgen.RunLength
		top := row % runs * per
		for at := top; at < min(rows, top+per); at++ {
			base := make([]int, arrays)
			for k := range arrays {
				b := blocks[k*width:]
				base[k] = b[0]
				if l.Rows() {
					base[k] += at * b[2+nd]
				}
				rest := row / runs
				for d := nd - 1; d >= 0; d-- {
					base[k] += rest % sizes[d] * b[2+d]
					rest /= sizes[d]
				}
			}
			for x := first; x < min(n, first+kernelgen.RunLength); x++ {
				for f := range max(fold.Size, 1) {
					at := make([]int, arrays)
					for k := range arrays {
						at[k] = base[k] + x*blocks[k*width+1]
						if fold.Size > 0 {
							at[k] += f * fold.Strides[k]
						}
					}
					out = append(out, at)
				}
			}
		}
	}
	return out
}

// Collapsing and moving dimensions changes the order of the elements, never which elements of the arrays meet.
func TestLayoutsMeetTheSameElements(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		rank := r.IntN(6)
		l := kernelgen.Layout{Base: []int{r.IntN(5), r.IntN(5)}, Strides: [][]int{nil, nil}}
		step := 1
		for range rank {
			n := []int{1, 2, 3, 5, 40, 300}[r.IntN(6)]
			if step*n > 20000 {
				n = 2
			}
			l.Shape = append([]int{n}, l.Shape...)
			l.Strides[0] = append([]int{step}, l.Strides[0]...)
			l.Strides[1] = append([]int{[]int{0, 1, -3, 2 * step, step}[r.IntN(5)]}, l.Strides[1]...)
			step *= n
		}
		want := map[string]int{}
		for i := range step {
			a, b, rest := l.Base[0], l.Base[1], i
			for d := rank - 1; d >= 0; d-- {
				a += rest % l.Shape[d] * l.Strides[0][d]
				b += rest % l.Shape[d] * l.Strides[1][d]
				rest /= l.Shape[d]
			}
			want[fmt.Sprint([]int{a, b})]++
		}
		shape := append([]int(nil), l.Shape...)
		l.PlanLanes(1)
		got := map[string]int{}
		for _, at := range walk(&l, 2) {
			got[fmt.Sprint(at)]++
		}
		require.Equal(t, want, got, "shape %v, planned as %+v", shape, l)
		require.Equal(t, l.Runs(), runs(&l))
	}
}

// runs counts the runs that the numbers speak of.
func runs(l *kernelgen.Layout) int {
	numbers := l.General(nil, func(int) bool { return true })
	n, at := numbers[1], 2
	if l.Rows() {
		n, at = n*numbers[4], 5
	}
	for _, d := range numbers[at+1:] {
		n *= d
	}
	return n
}

func TestContiguousArraysCollapseToOneDimension(t *testing.T) {
	strides := [][]int{{12, 12, 4, 1}, {24, 99, 8, 2}}
	shape := kernelgen.Collapse([]int{2, 1, 3, 4}, strides)
	require.Equal(t, []int{24}, shape)
	require.Equal(t, [][]int{{1}, {2}}, strides)
	strides = [][]int{{3, 1}, {0, 1}}
	shape = kernelgen.Collapse([]int{2, 3}, strides)
	require.Equal(t, []int{2, 3}, shape)
	require.Equal(t, [][]int{{3, 1}, {0, 1}}, strides)
}

// The form of a reduction follows from its shape; the parts of all passes cover all elements.
func TestPassesCoverAllElements(t *testing.T) {
	for _, outputs := range []int{1, 3, 100, 10000} {
		for _, reduced := range []int{0, 1, 7, 8, 16, 300, 5000, 70000, 3_000_000} {
			for _, inner := range []bool{false, true} {
				for _, acc := range []string{"float", "pair"} {
					p := kernelgen.FirstPass(outputs, reduced, inner, acc)
					left := reduced
					for n := 0; ; n++ {
						require.Less(t, n, 4)
						require.Equal(t, left, p.Reduced)
						require.GreaterOrEqual(t, p.Parts*p.Chunk, p.Reduced)
						require.Positive(t, p.Threads())
						next, more := p.NextPass()
						require.Equal(t, p.Parts > 1, more)
						if !more {
							break
						}
						require.NotEqual(t, "pair", acc, "accumulators of unknown size never stand in memory")
						left, p = p.Parts, next
					}
				}
			}
		}
	}
}

// TestTilesTurn: a copy goes through tiles if it turns a matrix, not if it repeats a column.
func TestTilesTurn(t *testing.T) {
	for _, c := range []struct {
		from  []int
		tiles bool
	}{{[]int{1, 100}, true}, {[]int{1, 0}, false}, {[]int{100, 1}, false}} {
		l := kernelgen.Layout{Shape: []int{100, 100}, Strides: [][]int{c.from, {100, 1}}, Base: []int{0, 0}}
		l.Plan()
		_, ok := l.Tile(4)
		require.Equal(t, c.tiles, ok, "%v", c.from)
	}
}
