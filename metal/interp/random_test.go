package interp

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
)

var rounds = flag.Int("rounds", 400, "random programs to run")

var arithTypes = []kir.Type{
	kir.Bool, kir.I8, kir.U8, kir.I16, kir.U16, kir.I32, kir.U32, kir.I64, kir.U64, kir.F16, kir.BF16, kir.F32, kir.F64,
}

// generator writes random structured kernels that end and stay in bounds.
type generator struct {
	*kir.Builder
	r      *rand.Rand
	in     *kir.Instr
	out    *kir.Instr
	tmp    *kir.Instr // a Thread region
	tid    *kir.Instr
	vars   map[kir.Type][]int
	scope  [][]*kir.Instr // values in scope, by open block
	open   []*kir.Instr   // BlockOps and Loops around
	budget int
}

const (
	inBytes  = 256
	tmpBytes = 64
	outSlots = 32 // of 8 bytes, for each thread
)

func newGenerator(seed uint64) *generator {
	g := &generator{Builder: kir.NewBuilder(fmt.Sprintf("random%d", seed)), r: rand.New(rand.NewPCG(seed, 77)),
		vars: map[kir.Type][]int{}, budget: 150, scope: [][]*kir.Instr{nil}}
	g.in = g.Param("in", kir.Constant, kir.U8)
	g.out = g.Param("out", kir.Device, kir.U8)
	g.tmp = g.Region("tmp", kir.Thread, kir.U8, tmpBytes)
	g.tid = g.Builtin(kir.ThreadPositionInGrid, 0)
	g.def(g.tid)
	for _, t := range arithTypes {
		g.vars[t] = []int{g.Var("a", t), g.Var("b", t)}
	}
	g.stmts(8)
	slot := 0
	for _, t := range arithTypes {
		for _, v := range g.vars[t] {
			g.put(slot, g.Get(v))
			slot++
		}
	}
	return g
}

// put stores a value in one of this thread's slots of the output.
func (g *generator) put(slot int, v *kir.Instr) {
	base := g.Index(g.out, g.tid, outSlots*8)
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
		return g.Const(t, g.bits(t))
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
		return g.Get(pick(g, g.vars[t]))
	}
	return pick(g, fit)
}

func (g *generator) bits(t kir.Type) uint64 {
	switch {
	case t.IsFloat():
		if g.r.IntN(8) == 0 {
			id, _ := kir.Identity(kir.ModeMin, t)
			return id
		}
		return kir.FromFloat64(t, pick(g, []float64{0, 1, -1, 0.5, 3, -2.75, 1e30, 1e-40, 65504, 100, 255.5,
			3e9, -1e19}))
	case g.r.IntN(2) == 0:
		return uint64(g.r.IntN(70)) & t.Mask()
	}
	return g.r.Uint64() & t.Mask()
}

// expr appends a random pure operation or load.
func (g *generator) expr() *kir.Instr {
	for {
		op := kir.Add + kir.Op(g.r.IntN(int(kir.Bitcast-kir.Add)+1))
		t := pick(g, arithTypes)
		switch op {
		case kir.Select:
			return g.def(g.Op(op, t, g.value(kir.Bool), g.value(t), g.value(t)))
		case kir.Convert:
			return g.def(g.Op(op, t, g.value(pick(g, arithTypes))))
		case kir.Bitcast:
			from := pick(g, arithTypes[1:])
			if t == kir.Bool || t.Size() != from.Size() {
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
		return g.def(g.Op(op, t, args...))
	}
}

// address returns a pointer to size bytes somewhere in a buffer of n bytes.
func (g *generator) address(p *kir.Instr, n, size int) *kir.Instr {
	mask := g.Op(kir.And, kir.U32, g.value(kir.U32), g.Int(kir.U32, int64(n/2-1)))
	return g.Append(&kir.Instr{Op: kir.PtrAdd, Type: p.Type, Imm: uint64(g.r.IntN(n/2 - size)),
		Args: []*kir.Instr{p, g.Op(kir.Convert, kir.I64, mask)}})
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
	t := pick(g, arithTypes)
	switch g.r.IntN(16) {
	case 0:
		v := g.Op(kir.Load, t, g.address(g.in, inBytes, t.Size()))
		g.Set(pick(g, g.vars[t]), g.def(v))
	case 1:
		g.Op(kir.Store, kir.Void, g.address(g.tmp, tmpBytes, t.Size()), g.value(t))
	case 2:
		g.Set(pick(g, g.vars[t]), g.def(g.Op(kir.Load, t, g.address(g.tmp, tmpBytes, t.Size()))))
	case 3:
		g.put(26+g.r.IntN(6), g.value(t))
	case 4, 5:
		var els func()
		if g.r.IntN(2) == 0 {
			els = g.nest(func() { g.stmts(4) })
		}
		g.If(g.value(kir.Bool), g.nest(func() { g.stmts(4) }), els)
	case 6:
		g.Block(func(b *kir.Instr) {
			g.open = append(g.open, b)
			g.nest(func() { g.stmts(5) })()
			g.open = g.open[:len(g.open)-1]
		})
	case 7, 8:
		g.loop()
	case 9:
		if len(g.open) > 0 {
			o := pick(g, g.open)
			g.If(g.value(kir.Bool), func() {
				if g.r.IntN(3) == 0 {
					g.put(26+g.r.IntN(6), g.value(t))
				}
				if o.Op == kir.Loop && g.r.IntN(2) == 0 {
					g.Continue(o)
				} else {
					g.Break(o)
				}
			}, nil)
		}
	case 10:
		if g.r.IntN(4) == 0 {
			g.If(g.value(kir.Bool), func() { g.Op(kir.Return, kir.Void) }, nil)
		}
	default:
		v := g.expr()
		if g.r.IntN(2) == 0 {
			g.Set(pick(g, g.vars[v.Type]), v)
		}
	}
}

// loop appends a loop of a few rounds, counted per thread.
func (g *generator) loop() {
	count := g.Var("count", kir.U32)
	g.Set(count, g.Int(kir.U32, 0))
	limit := g.Op(kir.And, kir.U32, g.value(kir.U32), g.Int(kir.U32, 3))
	g.Loop(func(l *kir.Instr) {
		g.open = append(g.open, l)
		c := g.Get(count)
		g.If(g.Op(kir.Ge, kir.Bool, c, limit), func() { g.Break(l) }, nil)
		g.Set(count, g.Op(kir.Add, kir.U32, c, g.Int(kir.U32, 1)))
		g.nest(func() { g.stmts(5) })()
		g.open = g.open[:len(g.open)-1]
	})
}

// TestRandomPrograms compares the SIMD-group executor with one thread at a time.
func TestRandomPrograms(t *testing.T) {
	const threads = 77
	for seed := range uint64(*rounds) {
		g := newGenerator(seed)
		k := g.Kernel()
		in := make([]byte, inBytes)
		for i := range in {
			in[i] = byte(g.r.Uint32())
		}
		want := make([]byte, threads*outSlots*8)
		require.NoError(t, runOracle(k, threads, [][]byte{in, want}), "seed %d\n%s", seed, k)
		got := make([]byte, len(want))
		p, err := Prepare(k, nil)
		require.NoError(t, err, "seed %d\n%s", seed, k)
		require.NoError(t, kerneltest.Run(p.NewRun, Launch{Grid: [3]int{threads, 1, 1}, Threadgroup: [3]int{40, 1, 1},
			Buffers: [][]byte{in, got}}, 0))
		if !bytes.Equal(want, got) {
			for i := range want {
				if want[i] != got[i] {
					t.Fatalf("seed %d: thread %d, slot %d, byte %d: %#x, want %#x\n%s",
						seed, i/(outSlots*8), i/8%outSlots, i%8, got[i], want[i], k)
				}
			}
		}
	}
}
