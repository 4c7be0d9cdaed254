package lanes_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// generator writes random structured kernels that end and stay in bounds, with many values that are alike across lanes.
type generator struct {
	*kir.Builder
	r       *rand.Rand
	in, out *kir.Instr
	tmp     *kir.Instr // a Thread region
	vars    map[kir.Type][]int
	scope   [][]*kir.Instr // values in scope, by open block
	open    []*kir.Instr   // BlockOps and Loops around
	budget  int
	cross   bool // lanes may exchange values
}

const (
	inBytes  = 4096
	tmpBytes = 64
	outSlots = 16 // of 8 bytes, for each thread
)

var valueTypes = []kir.Type{kir.U32, kir.U32, kir.I32, kir.I32, kir.I64, kir.U64, kir.U16, kir.I8, kir.Bool, kir.F32}

func newGenerator(seed uint64) *generator {
	g := &generator{Builder: kir.NewBuilder(fmt.Sprintf("random%d", seed)), r: rand.New(rand.NewPCG(seed, 5)),
		vars: map[kir.Type][]int{}, budget: 120, scope: [][]*kir.Instr{nil}, cross: seed%2 == 0}
	g.in = g.Param("in", kir.Device, kir.U8)
	g.out = g.Param("out", kir.Device, kir.U8)
	g.tmp = g.Region("tmp", kir.Thread, kir.U8, tmpBytes)
	for _, m := range []kir.Mode{kir.ThreadPositionInGrid, kir.ThreadPositionInThreadgroup, kir.ThreadIndexInSimdgroup,
		kir.ThreadIndexInThreadgroup, kir.SimdgroupIndexInThreadgroup, kir.ThreadIndexInQuadgroup,
		kir.QuadgroupIndexInThreadgroup, kir.ThreadgroupPositionInGrid} {
		g.def(g.Builtin(m, 0))
	}
	g.def(g.Op(kir.Convert, kir.I32, g.scope[0][0]))
	g.def(g.Op(kir.Convert, kir.I64, g.scope[0][0]))
	for _, t := range valueTypes {
		if g.vars[t] == nil {
			g.vars[t] = []int{g.Var("a", t), g.Var("b", t), g.Var("c", t)}
		}
	}
	g.vars[kir.PtrDevice] = []int{g.Var("p", kir.PtrDevice)}
	for _, t := range []kir.Type{kir.U32, kir.I32, kir.Bool} {
		g.Set(g.vars[t][0], g.value(t))
	}
	g.stmts(10)
	slot := 0
	for _, t := range valueTypes[1:] {
		g.put(slot, g.Get(pick(g, g.vars[t])))
		slot++
	}
	return g
}

// put stores a value in one of this thread's slots of the output.
func (g *generator) put(slot int, v *kir.Instr) {
	base := g.Index(g.out, g.scope[0][0], outSlots*8)
	p := g.Append(&kir.Instr{Op: kir.PtrAdd, Type: kir.PtrDevice, Imm: uint64(slot * 8),
		Args: []*kir.Instr{base, g.Int(kir.I64, 0)}})
	g.Op(kir.Store, kir.Void, p, v)
}

// def puts a value into scope. NaNs that arithmetic makes may have any payload, so they become one NaN.
func (g *generator) def(v *kir.Instr) *kir.Instr {
	if v.Type.IsFloat() && v.Op != kir.Const && v.Op != kir.VarGet {
		nan, _ := kir.Identity(kir.ModeMin, v.Type)
		v = g.Op(kir.Select, v.Type, g.Op(kir.Ne, kir.Bool, v, v), g.Const(v.Type, nan), v)
	}
	top := len(g.scope) - 1
	g.scope[top] = append(g.scope[top], v)
	return v
}

func pick[T any](g *generator, s []T) T { return s[g.r.IntN(len(s))] }

// value returns an operand of a type.
func (g *generator) value(t kir.Type) *kir.Instr {
	switch g.r.IntN(4) {
	case 0:
		return g.Get(pick(g, g.vars[t]))
	case 1:
		return g.constant(t)
	}
	var fit []*kir.Instr
	for _, s := range g.scope {
		for _, v := range s {
			if v.Type == t {
				fit = append(fit, v)
			}
		}
	}
	if len(fit) == 0 {
		return g.constant(t)
	}
	return pick(g, fit)
}

func (g *generator) constant(t kir.Type) *kir.Instr {
	switch {
	case t.IsFloat():
		return g.Const(t, kir.FromFloat64(t, pick(g, []float64{0, 1, -1, 0.5, 3, -2.75, 1e30, 1e-40, 100, 255.5, 3e9})))
	case g.r.IntN(12) == 0:
		return g.Const(t, g.r.Uint64())
	case g.r.IntN(2) == 0:
		return g.Int(t, 1<<g.r.IntN(7))
	case g.r.IntN(3) == 0: // multiples of SIMD-groups, which divide their lanes alike
		return g.Int(t, 32*int64(g.r.IntN(9)-2))
	}
	return g.Int(t, int64(g.r.IntN(70)-6))
}

// expr appends a random pure operation; those that keep patterns are frequent.
func (g *generator) expr() *kir.Instr {
	likely := []kir.Op{kir.Add, kir.Add, kir.Sub, kir.Mul, kir.Shl, kir.Shr, kir.Div, kir.Rem, kir.And, kir.Or, kir.Xor,
		kir.Convert, kir.Convert, kir.Select, kir.Neg, kir.Not, kir.Lt, kir.Ge, kir.Eq, kir.Le, kir.Gt}
	for {
		op := pick(g, likely)
		if g.r.IntN(4) == 0 {
			op = kir.Add + kir.Op(g.r.IntN(int(kir.Bitcast-kir.Add)+1))
		}
		t := pick(g, valueTypes)
		switch op {
		case kir.Select:
			return g.def(g.Op(op, t, g.value(kir.Bool), g.value(t), g.value(t)))
		case kir.Convert:
			return g.def(g.Op(op, t, g.value(pick(g, valueTypes))))
		case kir.Bitcast:
			from := pick(g, valueTypes)
			if t == kir.Bool || from == kir.Bool || t.Size() != from.Size() {
				continue
			}
			return g.def(g.Op(op, t, g.value(from)))
		case kir.Eq, kir.Ne, kir.Lt, kir.Le, kir.Gt, kir.Ge:
			return g.def(g.Op(op, kir.Bool, g.value(t), g.value(t)))
		}
		n := 0
		for try := 1; try <= 3; try++ {
			if _, ok := kir.Eval(op, t, t, make([]uint64, try)...); ok {
				n = try
			}
		}
		if n == 0 {
			continue
		}
		var args []*kir.Instr
		for range n {
			args = append(args, g.value(t))
		}
		if n == 2 && g.r.IntN(2) == 0 && t != kir.Bool {
			args[1] = g.constant(t)
		}
		return g.def(g.Op(op, t, args...))
	}
}

// address returns a pointer to size bytes somewhere in a buffer of n bytes.
func (g *generator) address(p *kir.Instr, n, size int) *kir.Instr {
	index := g.Op(kir.And, kir.U32, g.value(kir.U32), g.Int(kir.U32, int64(n/2/size-1)))
	if g.r.IntN(2) == 0 {
		index = g.Op(kir.Rem, kir.U32, g.value(kir.U32), g.Int(kir.U32, int64(n/2/size)))
	}
	if g.r.IntN(3) == 0 {
		index = g.Op(kir.Add, kir.U32, index, g.Int(kir.U32, int64(g.r.IntN(4))))
	}
	return g.Append(&kir.Instr{Op: kir.PtrAdd, Type: p.Type, Imm: uint64(g.r.IntN(n/2 - 3*size)), Args: []*kir.Instr{p,
		g.Op(kir.Mul, kir.I64, g.Op(kir.Convert, kir.I64, index), g.Int(kir.I64, int64(size)))}})
}

func (g *generator) stmts(n int) {
	for range 1 + g.r.IntN(n) {
		if g.budget--; g.budget < 0 {
			return
		}
		g.stmt()
	}
}

func (g *generator) nest(f func()) func() {
	return func() {
		g.scope = append(g.scope, nil)
		f()
		g.scope = g.scope[:len(g.scope)-1]
	}
}

func (g *generator) stmt() {
	t := pick(g, valueTypes)
	switch g.r.IntN(20) {
	case 0, 1:
		v := g.Op(kir.Load, t, g.address(g.in, inBytes, t.Size()))
		g.Set(pick(g, g.vars[t]), g.def(v))
	case 2:
		g.Op(kir.Store, kir.Void, g.address(g.tmp, tmpBytes, t.Size()), g.value(t))
	case 3:
		g.Set(pick(g, g.vars[t]), g.def(g.Op(kir.Load, t, g.address(g.tmp, tmpBytes, t.Size()))))
	case 4:
		g.put(10+g.r.IntN(6), g.value(t))
	case 5, 6:
		var els func()
		if g.r.IntN(2) == 0 {
			els = g.nest(func() { g.stmts(4) })
		}
		g.If(g.value(kir.Bool), g.nest(func() { g.stmts(4) }), els)
	case 7:
		g.Block(func(b *kir.Instr) {
			g.open = append(g.open, b)
			g.nest(func() { g.stmts(5) })()
			g.open = g.open[:len(g.open)-1]
		})
	case 8, 9:
		g.loop()
	case 10, 11:
		g.jump(t)
	case 12:
		if g.r.IntN(4) == 0 {
			g.If(g.value(kir.Bool), func() { g.Op(kir.Return, kir.Void) }, nil)
		}
	case 13:
		if g.cross {
			g.crossing()
		}
	case 14:
		g.walkPointer()
	default:
		v := g.expr()
		if g.r.IntN(2) == 0 {
			g.Set(pick(g, g.vars[v.Type]), v)
		}
	}
}

func (g *generator) jump(t kir.Type) {
	if len(g.open) == 0 {
		return
	}
	o := pick(g, g.open)
	g.If(g.value(kir.Bool), func() {
		if g.r.IntN(3) == 0 {
			g.put(10+g.r.IntN(6), g.value(t))
		}
		if o.Op == kir.Loop && g.r.IntN(2) == 0 {
			g.Continue(o)
		} else {
			g.Break(o)
		}
	}, nil)
}

func (g *generator) crossing() {
	switch g.r.IntN(4) {
	case 0:
		g.def(g.Lane(kir.Reduce, kir.ModeAdd, kir.U32, g.value(kir.U32)))
	case 1:
		g.def(g.Lane(kir.Shuffle, 0, kir.I32, g.value(kir.I32), g.value(kir.U32)))
	case 2:
		g.def(g.Lane(kir.BroadcastFirst, 0, kir.U32, g.value(kir.U32)))
	case 3:
		g.def(g.Lane(kir.Ballot, 0, kir.U64, g.value(kir.Bool)))
	}
}

// walkPointer moves a pointer along a buffer.
func (g *generator) walkPointer() {
	p := g.Var("w", kir.PtrDevice)
	size := 4
	g.Set(p, g.address(g.in, inBytes-128, size))
	n := g.Var("n", kir.I32)
	g.Set(n, g.Int(kir.I32, 0))
	g.Loop(func(l *kir.Instr) {
		c := g.Get(n)
		g.If(g.Op(kir.Ge, kir.Bool, c, g.Int(kir.I32, 4)), func() { g.Break(l) }, nil)
		g.Set(n, g.Op(kir.Add, kir.I32, c, g.Int(kir.I32, 1)))
		g.nest(func() {
			g.Set(g.vars[kir.I32][1], g.def(g.Op(kir.Load, kir.I32, g.Get(p))))
			if g.r.IntN(2) == 0 {
				g.If(g.value(kir.Bool), func() { g.Break(l) }, nil)
			}
			g.stmts(2)
		})()
		g.Set(p, g.Append(&kir.Instr{Op: kir.PtrAdd, Type: kir.PtrDevice, Imm: uint64(g.r.IntN(3) * size),
			Args: []*kir.Instr{g.Get(p), g.Int(kir.I64, int64(g.r.IntN(2)*size))}}))
	})
	if g.r.IntN(2) == 0 {
		g.Set(g.vars[kir.U32][1], g.def(g.Op(kir.Load, kir.U32, g.Get(p))))
	}
}

// loop appends a loop of a few rounds, whose counter starts and ends anyhow.
func (g *generator) loop() {
	count, rounds := g.Var("count", kir.U32), g.Var("rounds", kir.U32)
	step, limit := int64(1), g.value(kir.U32)
	if g.r.IntN(2) == 0 {
		step, limit = 32, g.Int(kir.U32, int64(32*g.r.IntN(5)))
	}
	g.Set(count, g.value(kir.U32))
	g.Set(rounds, g.Int(kir.U32, 0))
	g.Loop(func(l *kir.Instr) {
		g.open = append(g.open, l)
		c, r := g.Get(count), g.Get(rounds)
		g.If(g.Op(kir.Ge, kir.Bool, c, limit), func() { g.Break(l) }, nil)
		g.If(g.Op(kir.Ge, kir.Bool, r, g.Int(kir.U32, 5)), func() { g.Break(l) }, nil)
		g.Set(count, g.Op(kir.Add, kir.U32, c, g.Int(kir.U32, step)))
		g.Set(rounds, g.Op(kir.Add, kir.U32, r, g.Int(kir.U32, 1)))
		g.nest(func() {
			g.def(c)
			g.stmts(5)
		})()
		g.open = g.open[:len(g.open)-1]
	})
}
