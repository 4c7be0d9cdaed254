package opt_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
)

var (
	ints   = []kir.Type{kir.I8, kir.U8, kir.I16, kir.U16, kir.I32, kir.U32, kir.I64, kir.U64}
	floats = []kir.Type{kir.F16, kir.BF16, kir.F32, kir.F64}

	onInts = []kir.Op{kir.Add, kir.Sub, kir.Mul, kir.Div, kir.Rem, kir.Min, kir.Max, kir.MulHi, kir.And, kir.Or, kir.Xor,
		kir.Shl, kir.Shr}
	onFloats = []kir.Op{kir.Add, kir.Sub, kir.Mul, kir.Div, kir.Min, kir.Max}
	onBools  = []kir.Op{kir.And, kir.Or, kir.Xor}
	compare  = []kir.Op{kir.Eq, kir.Ne, kir.Lt, kir.Le, kir.Gt, kir.Ge}
)

// expressions writes random ones, of operations that rules are about, over few operands, so that they often meet.
type expressions struct {
	b *kerneltest.Builder
	r *rand.Rand
	p *kir.Instr
	x map[kir.Type][2]*kir.Instr // loaded values, two of each type, at addresses that tell them apart
}

func pick[T any](e *expressions, list []T) T { return list[e.r.IntN(len(list))] }

func (e *expressions) aType() kir.Type {
	switch e.r.IntN(5) {
	case 0:
		return kir.Bool
	case 1:
		return pick(e, floats)
	}
	return pick(e, ints)
}

// edge returns bits of a value that rules or results may turn at.
func edge(r *rand.Rand, t kir.Type) uint64 {
	if t == kir.Bool {
		return r.Uint64() & 1
	}
	if t.IsFloat() {
		return kir.FromFloat64(t, []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5, -4, 3, math.Inf(1), math.Inf(-1),
			math.NaN(), 65504, 6e-8, 1e-40}[r.IntN(14)])
	}
	m := t.Mask()
	list := []uint64{0, 1, 2, 3, 5, 7, 8, 10, 31, 32, 33, 64, 100, 127, m, m - 1, m >> 1, m>>1 + 1, m>>1 - 1, m - 6}
	if n := r.IntN(len(list) + 2); n < len(list) {
		return list[n] & m
	}
	return r.Uint64() & m
}

func (e *expressions) leaf(t kir.Type) *kir.Instr {
	if e.r.IntN(2) == 0 {
		return e.b.Const(t, edge(e.r, t))
	}
	if _, ok := e.x[t]; !ok {
		load := func(i int64) *kir.Instr {
			return e.b.Op(kir.Load, t, e.b.Op(kir.PtrAdd, kir.PtrDevice, e.p, e.b.Int(kir.I64, 2*int64(t)+i)))
		}
		e.x[t] = [2]*kir.Instr{load(0), load(1)}
	}
	return e.x[t][e.r.IntN(2)]
}

func (e *expressions) of(t kir.Type, depth int) *kir.Instr {
	if depth == 0 {
		return e.leaf(t)
	}
	sub := func(t kir.Type) *kir.Instr { return e.of(t, e.r.IntN(depth)) }
	two := func(op kir.Op, on kir.Type) *kir.Instr {
		x := e.of(on, depth-1)
		if e.r.IntN(6) == 0 {
			return e.b.Op(op, t, x, x)
		}
		y := sub(on)
		if e.r.IntN(3) == 0 {
			x, y = y, x
		}
		return e.b.Op(op, t, x, y)
	}
	switch n := e.r.IntN(10); {
	case n == 0:
		return e.b.Op(kir.Select, t, e.of(kir.Bool, depth-1), sub(t), sub(t))
	case n == 1:
		if from := e.aType(); from != t {
			return e.b.Op(kir.Convert, t, e.of(from, depth-1))
		}
	case n == 2 && t.IsInt():
		same := t ^ 1 // of the other sign
		if same.IsInt() && same.Size() == t.Size() {
			return e.b.Op(kir.Bitcast, t, e.of(same, depth-1))
		}
	case n == 3 && t == kir.Bool:
		return e.b.Op(kir.Not, t, e.of(t, depth-1))
	case n < 8 && t == kir.Bool:
		return two(pick(e, compare), e.aType())
	case n == 3 && t.IsArith():
		return e.b.Op(pick(e, []kir.Op{kir.Neg, kir.Abs}), t, e.of(t, depth-1))
	}
	switch {
	case t == kir.Bool:
		return two(pick(e, onBools), t)
	case t.IsFloat():
		return two(pick(e, onFloats), t)
	}
	return two(pick(e, onInts), t)
}

// evaluate computes what a kernel without branches stores, from the values at the addresses that it loads from.
func evaluate(t *testing.T, k *kir.Kernel, values map[uint64]uint64) uint64 {
	val := map[*kir.Instr]uint64{}
	for _, in := range k.Body.Instrs {
		switch {
		case in.Op == kir.Const:
			val[in] = in.Imm
		case in.Op == kir.PtrAdd:
			val[in] = val[in.Args[1]] + in.Imm
		case in.Op == kir.Load:
			val[in] = values[val[in.Args[0]]]
		case in.Op == kir.Store:
			return val[in.Args[1]]
		case in.Op.Pure() && in.Op != kir.ParamAddr:
			var args []uint64
			for _, a := range in.Args {
				args = append(args, val[a])
			}
			bits, ok := in.Eval(args...)
			require.True(t, ok, "%s", k)
			val[in] = bits
		}
	}
	return 0
}

// TestRules computes random expressions as they are and optimised, at edges of their types.
func TestRules(t *testing.T) {
	n := 40_000
	if testing.Short() {
		n /= 4
	}
	r := rand.New(rand.NewPCG(1, 2))
	before, after := 0, 0
	for range n {
		b := kerneltest.NewBuilder("k")
		e := &expressions{b: b, r: r, x: map[kir.Type][2]*kir.Instr{}}
		e.p = b.Param("p", kir.Device, kir.U8)
		ty := e.aType()
		b.Op(kir.Store, kir.Void, e.p, e.of(ty, 1+r.IntN(4)))
		k := b.Kernel()
		require.NoError(t, k.Verify())
		text := k.String()
		before += k.NumInstrs
		values, want := make([]map[uint64]uint64, 8), make([]uint64, 8)
		for i := range values {
			values[i] = map[uint64]uint64{}
			for _, list := range [][]kir.Type{ints, floats, {kir.Bool}} {
				for _, u := range list {
					values[i][2*uint64(u)], values[i][2*uint64(u)+1] = edge(r, u), edge(r, u)
				}
			}
			want[i] = evaluate(t, k, values[i])
		}
		check := func(o *kir.Kernel) {
			require.NoError(t, o.Verify())
			for i, v := range values {
				got := evaluate(t, o, v)
				if ty.IsFloat() && math.IsNaN(kir.ToFloat64(ty, want[i])) && math.IsNaN(kir.ToFloat64(ty, got)) {
					continue
				}
				require.Equal(t, want[i], got, "%v\n%s\n%s", v, text, o)
			}
		}
		check(opt.Run(k, opt.Launch{}))
		opt.Clean(k, opt.Hints{})
		check(k)
		after += k.NumInstrs
	}
	require.Less(t, 5*after, 4*before, "rules apply")
}
