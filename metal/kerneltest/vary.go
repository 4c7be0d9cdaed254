package kerneltest

import (
	"math/rand/v2"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Vary changes a kernel that does not reach Threadgroups: constants take the place of operands, and operations that of
// others of the same types, also where no text leads to them. It still ends, because each of its loops gets a counter,
// and accesses what it did, but for loops that go on for longer than they should.
func Vary(seed uint64, k *kir.Kernel) {
	v := &varier{r: rand.New(rand.NewPCG(seed, 2)), k: k, kept: map[*kir.Instr]bool{}, sets: make([][]*kir.Instr,
		len(k.Vars))}
	v.survey(k.Body)
	k.Body.Walk(func(in *kir.Instr) {
		if (in.Op == kir.Load || in.Op == kir.Store) && in.Args[0].Type.IsPtr() {
			v.keep(in.Args[0], true)
		}
	})
	for _, in := range k.Body.Instrs {
		if in.Op == kir.Builtin {
			v.positions = append(v.positions, in)
		} else if in.Op != kir.ParamAddr && in.Op != kir.RegionAddr && in.Op != kir.Const {
			break
		}
	}
	v.block(k.Body, 0)
	k.Renumber()
}

type varier struct {
	r    *rand.Rand
	k    *kir.Kernel
	sets [][]*kir.Instr // by variable
	kept map[*kir.Instr]bool
	// positions are the positions and sizes that the kernel has ready where its work begins.
	positions []*kir.Instr
}

// rounds bounds the rounds of a loop, by how many are around it.
var rounds = []uint64{64, 8, 4, 2}

// survey collects what sets the variables, and keeps what ends loops: what is counted may change, not how.
func (v *varier) survey(b *kir.Block) {
	b.Walk(func(in *kir.Instr) {
		if in.Op == kir.VarSet {
			v.sets[in.Imm] = append(v.sets[in.Imm], in)
		}
		if in.Op != kir.Loop {
			return
		}
		in.Body.Walk(func(x *kir.Instr) {
			if x.Op == kir.If && jumps(x.Body)+jumps(x.Else) > 0 {
				v.keep(x.Args[0], false)
			}
		})
	})
}

func jumps(b *kir.Block) (n int) {
	b.Walk(func(in *kir.Instr) {
		if in.Op == kir.Break || in.Op == kir.Continue {
			n++
		}
	})
	return n
}

// keep leaves a value as it is, with what it is made of: up to bits that are cut off if it is part of an address, up to
// variables and loads if not.
func (v *varier) keep(x *kir.Instr, address bool) {
	if v.kept[x] {
		return
	}
	v.kept[x] = true
	switch {
	case !address && !x.Op.Pure():
		return
	case x.Op == kir.VarGet:
		for _, s := range v.sets[x.Imm] {
			v.keep(s.Args[0], address)
		}
	case x.Op == kir.And && x.Args[1].Op == kir.Const, x.Op == kir.Rem && x.Args[1].Op == kir.Const && !x.Type.IsSigned():
		if address {
			return
		}
	}
	for _, a := range x.Args {
		v.keep(a, address)
	}
}

func (v *varier) block(b *kir.Block, depth int) {
	if b == nil {
		return
	}
	var out []*kir.Instr
	for _, in := range b.Instrs {
		inner := depth
		if in.Op == kir.Loop {
			inner++
		}
		v.block(in.Body, inner)
		v.block(in.Else, inner)
		switch {
		case in.Op == kir.Loop:
			out = v.count(out, in, rounds[min(depth, len(rounds)-1)])
		case in.Op >= kir.Add && in.Op < kir.PtrAdd && !v.kept[in]:
			out = v.change(out, in)
		}
		out = append(out, in)
	}
	b.Instrs = out
}

// count has a loop end after so many rounds.
func (v *varier) count(out []*kir.Instr, loop *kir.Instr, most uint64) []*kir.Instr {
	n := uint64(len(v.k.Vars))
	v.k.Vars = append(v.k.Vars, kir.Var{Name: "rounds", Type: kir.U32})
	number := func(imm uint64) *kir.Instr {
		return &kir.Instr{Op: kir.Const, Type: kir.U32, Imm: imm, Pos: loop.Pos}
	}
	zero, one, limit := number(0), number(1), number(most)
	get := &kir.Instr{Op: kir.VarGet, Type: kir.U32, Imm: n, Pos: loop.Pos}
	over := &kir.Instr{Op: kir.Ge, Type: kir.Bool, Args: []*kir.Instr{get, limit}, Pos: loop.Pos}
	leave := &kir.Instr{Op: kir.If, Args: []*kir.Instr{over}, Pos: loop.Pos,
		Body: &kir.Block{Instrs: []*kir.Instr{{Op: kir.Break, Target: loop, Pos: loop.Pos}}}}
	next := &kir.Instr{Op: kir.Add, Type: kir.U32, Args: []*kir.Instr{get, one}, Pos: loop.Pos}
	set := &kir.Instr{Op: kir.VarSet, Imm: n, Args: []*kir.Instr{next}, Pos: loop.Pos}
	loop.Body.Instrs = append([]*kir.Instr{get, one, limit, over, leave, next, set}, loop.Body.Instrs...)
	return append(out, zero, &kir.Instr{Op: kir.VarSet, Imm: n, Args: []*kir.Instr{zero}, Pos: loop.Pos})
}

// The operations that can stand for each other.
var (
	intPairs = []kir.Op{kir.Add, kir.Sub, kir.Mul, kir.Div, kir.Rem, kir.Min, kir.Max, kir.MulHi, kir.And,
		kir.Or, kir.Xor, kir.Shl, kir.Shr}
	intOnes    = []kir.Op{kir.Neg, kir.Abs, kir.Not, kir.Popcount, kir.Clz, kir.Ctz, kir.BitReverse}
	floatPairs = []kir.Op{kir.Add, kir.Sub, kir.Mul, kir.Div, kir.Rem, kir.Min, kir.Max, kir.Scale, kir.Fma}
	floatOnes  = []kir.Op{kir.Neg, kir.Abs, kir.Sqrt, kir.Floor, kir.Ceil, kir.Trunc, kir.Rint}
	boolPairs  = []kir.Op{kir.And, kir.Or, kir.Xor, kir.Eq, kir.Ne, kir.Lt, kir.Le, kir.Gt, kir.Ge}
	orders     = []kir.Op{kir.Eq, kir.Ne, kir.Lt, kir.Le, kir.Gt, kir.Ge}
)

// change changes an operation or an operand, or nothing.
func (v *varier) change(out []*kir.Instr, in *kir.Instr) []*kir.Instr {
	switch v.r.IntN(12) {
	case 0, 1:
		v.operation(in)
	case 2, 3:
		out = v.more(out, in)
	}
	if v.r.IntN(4) != 0 {
		return out
	}
	if x := in.Args[0]; len(in.Args) == 2 && x.Type.IsInt() && in.Args[1].Type == x.Type && v.r.IntN(6) == 0 {
		in.Args = []*kir.Instr{x, x}
		return out
	}
	i := v.r.IntN(len(in.Args))
	if v.r.IntN(2) == 0 {
		i = len(in.Args) - 1
	}
	a := in.Args[i]
	nan := a.Type.IsFloat() || in.Type.IsFloat() && a.Type == kir.Bool // x != x ? NAN : x makes all NaNs one
	if !a.Type.IsArith() && a.Type != kir.Bool || nan && (in.Op < kir.Add || in.Op > kir.Scale) {
		return out
	}
	c := &kir.Instr{Op: kir.Const, Type: a.Type, Imm: v.number(a.Type) & a.Type.Mask(), Pos: in.Pos}
	in.Args = append([]*kir.Instr(nil), in.Args...)
	in.Args[i] = c
	return append(out, c)
}

// more puts an operation after one: what comes of narrow conversions is rarely computed with as it is.
func (v *varier) more(out []*kir.Instr, in *kir.Instr) []*kir.Instr {
	isBool := in.Type == kir.Bool && in.Op != kir.Not && !in.Args[0].Type.IsFloat() // not of x != x ? NAN : x
	if !in.Type.IsInt() && !isBool && (in.Op != kir.Convert || !in.Type.IsArith()) {
		return out
	}
	first := *in
	if in.Type.IsInt() && len(v.positions) > 0 && v.r.IntN(3) == 0 {
		first = kir.Instr{Op: kir.Convert, Type: in.Type, Args: v.positions[v.r.IntN(len(v.positions)):][:1:1], Pos: in.Pos}
	}
	c := &kir.Instr{Op: kir.Const, Type: in.Type, Imm: v.number(in.Type) & in.Type.Mask(), Pos: in.Pos}
	in.Mode, in.Imm, in.Args = kir.ModeNone, 0, [][]*kir.Instr{{&first}, {&first, &first}, {&first, c}}[v.r.IntN(3)]
	if in.Op = kir.Add; isBool {
		in.Op, in.Args = kir.Xor, []*kir.Instr{&first, c}
	}
	v.operation(in)
	return append(out, &first, c)
}

// operation gives an instruction another operation.
func (v *varier) operation(in *kir.Instr) {
	t, list := in.Type, []kir.Op(nil)
	if len(in.Args) == 1 && in.Args[0].Type != t {
		return
	}
	if len(in.Args) == 2 && t.IsArith() && in.Args[0].Type == t && v.r.IntN(4) == 0 {
		in.Args = in.Args[:1]
	}
	switch compare := in.Op >= kir.Eq && in.Op <= kir.Ge; {
	case compare && !in.Args[0].Type.IsPtr() && (in.Args[0] != in.Args[1] || in.Args[0].Type.IsInt()):
		list = orders
	case compare || in.Op == kir.Select || in.Op == kir.Convert || in.Op == kir.Bitcast:
		return
	case t == kir.Bool && len(in.Args) == 2:
		list = boolPairs
	case t.IsInt():
		list = [][]kir.Op{nil, intOnes, intPairs, nil}[len(in.Args)]
	case t.IsFloat():
		list = [][]kir.Op{nil, floatOnes, floatPairs, nil}[len(in.Args)]
	}
	if list == nil {
		return
	}
	if in.Op = list[v.r.IntN(len(list))]; in.Op == kir.Fma {
		in.Args = []*kir.Instr{in.Args[0], in.Args[1], in.Args[0]}
	}
}

// number is a constant that something is known of: what it does as an operand, or to what lanes have in common.
func (v *varier) number(t kir.Type) uint64 {
	switch {
	case t.IsFloat():
		f := []float64{0, 1, -1, 0.5, 3, -2.75, 1e30, 1e-40, 100, 255.5, 3e9, -1e19, 65504}
		return kir.FromFloat64(t, f[v.r.IntN(len(f))])
	case v.r.IntN(12) == 0:
		return v.r.Uint64()
	case v.r.IntN(2) == 0:
		return 1 << v.r.IntN(7)
	case v.r.IntN(3) == 0: // multiples of SIMD-groups, which divide their lanes alike
		return uint64(32 * (int64(v.r.IntN(9)) - 2))
	}
	return uint64(int64(v.r.IntN(70)) - 6)
}
