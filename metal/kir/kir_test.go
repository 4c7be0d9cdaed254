package kir

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sumKernel is out[i] = sum of in[0..i], with a loop.
func sumKernel() *Builder {
	b := NewBuilder("sum")
	b.Pos = Pos{Line: 3, Col: 1}
	in := b.Param("in", Constant, F32)
	out := b.Param("out", Device, F32)
	id := b.Builtin(ThreadPositionInGrid, 0)
	acc, i := b.Var("acc", F32), b.Var("i", U32)
	b.While(func() *Instr { return b.Op(Le, Bool, b.Get(i), id) }, func(*Instr) {
		b.Set(acc, b.Op(Add, F32, b.Get(acc), b.Load(F32, in, b.Get(i))))
		b.Set(i, b.Op(Add, U32, b.Get(i), b.Int(U32, 1)))
	})
	b.Store(out, id, b.Get(acc))
	return b
}

func TestVerifyAcceptsAndPrints(t *testing.T) {
	k := sumKernel().Kernel()
	require.NoError(t, (&Module{Kernels: []*Kernel{k}}).Verify())
	text := (&Module{Kernels: []*Kernel{k}, Files: []string{"source"}}).String()
	for _, want := range []string{
		"kernel sum\n", "  param 0 in: constant f32 index 0 read\n", "  var 0 acc: f32\n",
		"%2 = builtin u32 thread_position_in_grid.x\n", "loop L3\n", "    %4 = var.get u32 v1(i)\n",
		"      break L3\n", "; source:3\n",
	} {
		require.Contains(t, text, want)
	}
}

// TestVerifyRejects breaks a good kernel in one way at a time.
func TestVerifyRejects(t *testing.T) {
	find := func(k *Kernel, op Op) *Instr {
		var found *Instr
		k.Body.Walk(func(in *Instr) {
			if in.Op == op && found == nil {
				found = in
			}
		})
		return found
	}
	for name, c := range map[string]struct {
		spoil func(k *Kernel)
		want  string
	}{
		"type":         {func(k *Kernel) { find(k, Add).Type = I32 }, ") is f32, want i32"},
		"undefined op": {func(k *Kernel) { find(k, Add).Op = numOps }, "does not exist"},
		"invalid op":   {func(k *Kernel) { find(k, Add).Op = Invalid }, "does not exist"},
		"arity":        {func(k *Kernel) { in := find(k, Add); in.Args = in.Args[:1] }, "1 arguments, want 2"},
		"nil arg":      {func(k *Kernel) { find(k, Add).Args[1] = nil }, "argument 1 is nil"},
		"scope":        {func(k *Kernel) { last(k).Args[1] = find(k, Add) }, "is not in scope"},
		"void operand": {func(k *Kernel) { find(k, Not).Args[0] = find(k, VarSet) }, "not in scope"},
		"const bits":   {func(k *Kernel) { find(k, Const).Type = U8; find(k, Const).Imm = 256 }, "do not fit u8"},
		"var index":    {func(k *Kernel) { find(k, VarGet).Imm = 2 }, "index 2 is outside 0..1"},
		"param type":   {func(k *Kernel) { find(k, ParamAddr).Type = PtrDevice }, "want ptr.constant"},
		"component":    {func(k *Kernel) { find(k, Builtin).Imm = 3 }, "component 3 of thread_position_in_grid"},
		"builtin mode": {func(k *Kernel) { find(k, Builtin).Mode = ModeAdd }, "component 0 of add"},
		"target":       {func(k *Kernel) { find(k, Break).Target = find(k, Add) }, "target does not enclose it"},
		"if target":    {func(k *Kernel) { find(k, Break).Target = find(k, If) }, "cannot be left this way"},
		"condition":    {func(k *Kernel) { find(k, If).Args[0] = find(k, VarGet) }, "want bool"},
		"twice": {func(k *Kernel) { k.Body.Instrs = append(k.Body.Instrs, k.Body.Instrs[0]) },
			"ID is used twice"},
		"not dense":   {func(k *Kernel) { k.NumInstrs++ }, "not dense"},
		"id range":    {func(k *Kernel) { k.NumInstrs-- }, "ID is outside"},
		"no body":     {func(k *Kernel) { find(k, Loop).Body = nil }, "no body"},
		"kernel body": {func(k *Kernel) { k.Body = nil }, "no body"},
		"cyclic":      {func(k *Kernel) { find(k, Loop).Body = k.Body }, "ID is used twice"},
		"nil instr":   {func(k *Kernel) { k.Body.Instrs[0] = nil }, "nil instruction"},
		"const store": {func(k *Kernel) { last(k).Args[0] = k.Body.Instrs[0] }, "want a writable pointer"},
		"region align": {func(k *Kernel) {
			k.Regions = []Region{{Space: Thread, Size: 4, Align: 3,
				Elem: F32}}
		}, "alignment 3"},
		"region data": {func(k *Kernel) {
			k.Regions = []Region{{Space: Constant, Size: 4, Align: 4,
				Elem: F32}}
		}, "0 bytes of data"},
		"region space": {func(k *Kernel) { k.Regions = []Region{{Space: Device, Align: 4, Elem: F32}} },
			"address space device"},
		"written const": {func(k *Kernel) { k.Params[0].Write = true }, "is constant but written"},
		"elem":          {func(k *Kernel) { k.Params[0].Elem = Void }, "element type void"},
		"duplicate":     {func(k *Kernel) {}, "two kernels"},
	} {
		t.Run(name, func(t *testing.T) {
			k := sumKernel().Kernel()
			c.spoil(k)
			m := &Module{Kernels: []*Kernel{k}}
			if name == "duplicate" {
				m.Kernels = append(m.Kernels, k)
			}
			require.ErrorContains(t, m.Verify(), c.want)
			require.True(t, strings.HasPrefix(m.Verify().Error(), "[kir] "))
		})
	}
	require.Error(t, (*Module)(nil).Verify())
	require.Error(t, (&Module{Kernels: []*Kernel{nil}}).Verify())
}

func last(k *Kernel) *Instr { return k.Body.Instrs[len(k.Body.Instrs)-1] }

func TestVerifyConvergentAndAtomic(t *testing.T) {
	type row struct {
		in *Instr
		ok bool
	}
	b := NewBuilder("k")
	p := b.Param("p", Device, F32)
	c := b.Param("c", Constant, F32)
	f, u, x := b.Float(1), b.Int(U32, 1), b.Const(Bool, 1)
	args := func(a ...*Instr) []*Instr { return a }
	for _, r := range []row{
		{&Instr{Op: Reduce, Mode: ModeAdd, Type: F32, Imm: 32, Args: args(f)}, true},
		{&Instr{Op: Reduce, Mode: ModeAdd, Type: F32, Imm: 4, Args: args(f)}, true},
		{&Instr{Op: Reduce, Mode: ModeAdd, Type: F32, Imm: 8, Args: args(f)}, false},
		{&Instr{Op: Reduce, Mode: ModeAnd, Type: F32, Imm: 32, Args: args(f)}, false},
		{&Instr{Op: Reduce, Mode: ModeAnd, Type: Bool, Imm: 32, Args: args(x)}, true},
		{&Instr{Op: ScanInclusive, Mode: ModeMin, Type: F32, Imm: 32, Args: args(f)}, false},
		{&Instr{Op: ScanExclusive, Mode: ModeMul, Type: U32, Imm: 32, Args: args(u)}, true},
		{&Instr{Op: Shuffle, Type: F32, Imm: 32, Args: args(f, u)}, true},
		{&Instr{Op: Shuffle, Type: F32, Imm: 32, Args: args(f, f)}, false},
		{&Instr{Op: Ballot, Type: U64, Imm: 32, Args: args(x)}, true},
		{&Instr{Op: Ballot, Type: U32, Imm: 32, Args: args(x)}, false},
		{&Instr{Op: Ballot, Type: U64, Imm: 4, Args: args(x)}, false},
		{&Instr{Op: BroadcastFirst, Type: PtrDevice, Imm: 32, Args: args(p)}, true},
		{&Instr{Op: AtomicRMW, Mode: ModeAdd, Type: F32, Args: args(p, f)}, true},
		{&Instr{Op: AtomicRMW, Mode: ModeXor, Type: F32, Args: args(p, f)}, false},
		{&Instr{Op: AtomicRMW, Mode: ModeMul, Type: U32, Args: args(p, u)}, false},
		{&Instr{Op: AtomicRMW, Mode: ModeAdd, Type: F32, Args: args(c, f)}, false},
		{&Instr{Op: AtomicLoad, Type: F16, Args: args(p)}, false},
		{&Instr{Op: AtomicStore, Args: args(p, u)}, true},
		{&Instr{Op: AtomicCAS, Type: U32, Args: args(p, u, u)}, true},
		{&Instr{Op: AtomicCAS, Type: U32, Args: args(p, u, f)}, false},
		{&Instr{Op: Barrier, Mode: MemDevice | MemThreadgroup}, true},
		{&Instr{Op: Barrier, Mode: 4}, false},
		{&Instr{Op: Bitcast, Type: U64, Args: args(p)}, true},
		{&Instr{Op: Bitcast, Type: I64, Args: args(p)}, false},
		{&Instr{Op: Bitcast, Type: U32, Args: args(f)}, true},
		{&Instr{Op: Bitcast, Type: U32, Args: args(x)}, false},
		{&Instr{Op: Convert, Type: Bool, Args: args(f)}, true},
		{&Instr{Op: Convert, Type: F32, Args: args(p)}, false},
		{&Instr{Op: Eq, Type: Bool, Args: args(p, p)}, true},
		{&Instr{Op: Eq, Type: U32, Args: args(u, u)}, false},
		{&Instr{Op: Sqrt, Type: U32, Args: args(u)}, false},
		{&Instr{Op: And, Type: Bool, Args: args(x, x)}, true},
		{&Instr{Op: Shl, Type: Bool, Args: args(x, x)}, false},
		{&Instr{Op: Continue, Target: &Instr{Op: Loop}}, false},
	} {
		k := *b.K
		k.Body = &Block{Instrs: append(append([]*Instr{}, b.K.Body.Instrs...), r.in)}
		k.Renumber()
		if r.ok {
			require.NoError(t, k.Verify(), "%s", &k)
		} else {
			require.Error(t, k.Verify(), "%s", &k)
		}
	}
}

func TestVerifyDepth(t *testing.T) {
	b := NewBuilder("deep")
	var nest func(n int)
	nest = func(n int) {
		if n > 0 {
			b.Block(func(*Instr) { nest(n - 1) })
		}
	}
	nest(MaxDepth + 1)
	require.ErrorContains(t, b.Kernel().Verify(), "nested more than 4096 deep")
}

func TestEveryOpAndTypeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for op := Op(0); op < numOps; op++ {
		require.NotEmpty(t, op.String())
		require.False(t, seen[op.String()], op.String())
		seen[op.String()] = true
	}
	for ty := Type(0); ty < numTypes; ty++ {
		require.NotEmpty(t, ty.String())
	}
	require.Equal(t, "invalid op", Op(200).String())
	require.Equal(t, "invalid type", Type(200).String())
	for m := ThreadPositionInGrid; m <= GridSize; m++ {
		require.NotZero(t, m.Components(), m.String())
	}
	require.Equal(t, "1.5", constText(F16, 0x3e00))
	require.Equal(t, "-1", constText(I8, 0xff))
	require.Equal(t, "nan:0x7fc00000", constText(F32, uint64(math.Float32bits(float32(math.NaN())))&0x7fc00000))
}

func TestPointers(t *testing.T) {
	p := PtrMove(PtrParam(2), -8)
	require.Equal(t, 3, PtrObject(p))
	require.Equal(t, int64(-8), PtrOffset(p))
	require.Equal(t, PtrParam(2), PtrMove(p, 8))
	d, ok := Eval(PtrDiff, I64, PtrDevice, PtrParam(0), p)
	require.True(t, ok)
	require.Equal(t, uint64(8), d)
}

// TestSweep: what nothing uses goes, with what only it used; what has an effect stays, with what it needs and what
// holds it.
func TestSweep(t *testing.T) {
	b := NewBuilder("k")
	out := b.Param("out", Device, U32)
	set, lost := b.Var("set", U32), b.Var("lost", U32)
	b.Set(set, b.Const(U32, 3))
	b.Set(lost, b.Op(Add, U32, b.Const(U32, 1), b.Const(U32, 2)))
	b.If(b.Op(Lt, Bool, b.Get(set), b.Const(U32, 5)), func() {
		b.Op(Store, Void, out, b.Get(set))
	}, func() {
		b.Set(lost, b.Const(U32, 7))
	})
	b.If(b.Op(Lt, Bool, b.Get(set), b.Const(U32, 6)), func() { b.Set(lost, b.Get(set)) }, nil)
	k := b.Kernel()
	Sweep(k, func(in *Instr) bool { return in.Op == Store })
	k.Renumber()
	require.NoError(t, k.Verify())
	var ops []Op
	k.Body.Walk(func(in *Instr) { ops = append(ops, in.Op) })
	require.Equal(t, []Op{ParamAddr, Const, VarSet, VarGet, Const, Lt, If, VarGet, Store}, ops)
	require.Nil(t, k.Body.Instrs[len(k.Body.Instrs)-1].Else)
}
