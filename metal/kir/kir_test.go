package kir_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// sumKernel is out[i] = sum of in[0..i], with a loop.
func sumKernel() *kerneltest.Builder {
	b := kerneltest.NewBuilder("sum")
	b.Pos = kir.Pos{Line: 3, Col: 1}
	in := b.Param("in", kir.Constant, kir.F32)
	out := b.Param("out", kir.Device, kir.F32)
	id := b.Builtin(kir.ThreadPositionInGrid, 0)
	acc, i := b.Var("acc", kir.F32), b.Var("i", kir.U32)
	b.While(func() *kir.Instr { return b.Op(kir.Le, kir.Bool, b.Get(i), id) }, func(*kir.Instr) {
		b.Set(acc, b.Op(kir.Add, kir.F32, b.Get(acc), b.Load(kir.F32, in, b.Get(i))))
		b.Set(i, b.Op(kir.Add, kir.U32, b.Get(i), b.Int(kir.U32, 1)))
	})
	b.Store(out, id, b.Get(acc))
	return b
}

func TestVerifyAcceptsAndPrints(t *testing.T) {
	k := sumKernel().Kernel()
	require.NoError(t, (&kir.Module{Kernels: []*kir.Kernel{k}}).Verify())
	text := (&kir.Module{Kernels: []*kir.Kernel{k}, Files: []string{"source"}}).String()
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
	find := func(k *kir.Kernel, op kir.Op) *kir.Instr {
		var found *kir.Instr
		k.Body.Walk(func(in *kir.Instr) {
			if in.Op == op && found == nil {
				found = in
			}
		})
		return found
	}
	for name, c := range map[string]struct {
		spoil func(k *kir.Kernel)
		want  string
	}{
		"type":         {func(k *kir.Kernel) { find(k, kir.Add).Type = kir.I32 }, ") is f32, want i32"},
		"undefined op": {func(k *kir.Kernel) { find(k, kir.Add).Op = kir.NumOps }, "does not exist"},
		"invalid op":   {func(k *kir.Kernel) { find(k, kir.Add).Op = kir.Invalid }, "does not exist"},
		"arity":        {func(k *kir.Kernel) { in := find(k, kir.Add); in.Args = in.Args[:1] }, "1 arguments, want 2"},
		"nil arg":      {func(k *kir.Kernel) { find(k, kir.Add).Args[1] = nil }, "argument 1 is nil"},
		"scope":        {func(k *kir.Kernel) { last(k).Args[1] = find(k, kir.Add) }, "is not in scope"},
		"void operand": {func(k *kir.Kernel) { find(k, kir.Not).Args[0] = find(k, kir.VarSet) }, "not in scope"},
		"const bits":   {func(k *kir.Kernel) { c := find(k, kir.Const); c.Type, c.Imm = kir.U8, 256 }, "do not fit u8"},
		"var index":    {func(k *kir.Kernel) { find(k, kir.VarGet).Imm = 2 }, "index 2 is outside 0..1"},
		"param type":   {func(k *kir.Kernel) { find(k, kir.ParamAddr).Type = kir.PtrDevice }, "want ptr.constant"},
		"component":    {func(k *kir.Kernel) { find(k, kir.Builtin).Imm = 3 }, "component 3 of thread_position_in_grid"},
		"builtin mode": {func(k *kir.Kernel) { find(k, kir.Builtin).Mode = kir.ModeAdd }, "component 0 of add"},
		"target":       {func(k *kir.Kernel) { find(k, kir.Break).Target = find(k, kir.Add) }, "target does not enclose it"},
		"if target":    {func(k *kir.Kernel) { find(k, kir.Break).Target = find(k, kir.If) }, "cannot be left this way"},
		"condition":    {func(k *kir.Kernel) { find(k, kir.If).Args[0] = find(k, kir.VarGet) }, "want bool"},
		"twice": {func(k *kir.Kernel) { k.Body.Instrs = append(k.Body.Instrs, k.Body.Instrs[0]) },
			"ID is used twice"},
		"not dense":   {func(k *kir.Kernel) { k.NumInstrs++ }, "not dense"},
		"id range":    {func(k *kir.Kernel) { k.NumInstrs-- }, "ID is outside"},
		"no body":     {func(k *kir.Kernel) { find(k, kir.Loop).Body = nil }, "no body"},
		"kernel body": {func(k *kir.Kernel) { k.Body = nil }, "no body"},
		"cyclic":      {func(k *kir.Kernel) { find(k, kir.Loop).Body = k.Body }, "ID is used twice"},
		"nil instr":   {func(k *kir.Kernel) { k.Body.Instrs[0] = nil }, "nil instruction"},
		"const store": {func(k *kir.Kernel) { last(k).Args[0] = k.Body.Instrs[0] }, "want a writable pointer"},
		"region align": {func(k *kir.Kernel) {
			k.Regions = []kir.Region{{Space: kir.Thread, Size: 4, Align: 3,
				Elem: kir.F32}}
		}, "alignment 3"},
		"region data": {func(k *kir.Kernel) {
			k.Regions = []kir.Region{{Space: kir.Constant, Size: 4, Align: 4,
				Elem: kir.F32}}
		}, "0 bytes of data"},
		"region space": {func(k *kir.Kernel) { k.Regions = []kir.Region{{Space: kir.Device, Align: 4, Elem: kir.F32}} },
			"address space device"},
		"written const": {func(k *kir.Kernel) { k.Params[0].Write = true }, "is constant but written"},
		"elem":          {func(k *kir.Kernel) { k.Params[0].Elem = kir.Void }, "element type void"},
		"duplicate":     {func(k *kir.Kernel) {}, "two kernels"},
	} {
		t.Run(name, func(t *testing.T) {
			k := sumKernel().Kernel()
			c.spoil(k)
			m := &kir.Module{Kernels: []*kir.Kernel{k}}
			if name == "duplicate" {
				m.Kernels = append(m.Kernels, k)
			}
			require.ErrorContains(t, m.Verify(), c.want)
			require.True(t, strings.HasPrefix(m.Verify().Error(), "[kir] "))
		})
	}
	require.Error(t, (*kir.Module)(nil).Verify())
	require.Error(t, (&kir.Module{Kernels: []*kir.Kernel{nil}}).Verify())
}

func last(k *kir.Kernel) *kir.Instr { return k.Body.Instrs[len(k.Body.Instrs)-1] }

func TestVerifyConvergentAndAtomic(t *testing.T) {
	type row struct {
		in *kir.Instr
		ok bool
	}
	b := kerneltest.NewBuilder("k")
	p := b.Param("p", kir.Device, kir.F32)
	c := b.Param("c", kir.Constant, kir.F32)
	f, u, x := b.Float(1), b.Int(kir.U32, 1), b.Const(kir.Bool, 1)
	args := func(a ...*kir.Instr) []*kir.Instr { return a }
	for _, r := range []row{
		{&kir.Instr{Op: kir.Reduce, Mode: kir.ModeAdd, Type: kir.F32, Imm: 32, Args: args(f)}, true},
		{&kir.Instr{Op: kir.Reduce, Mode: kir.ModeAdd, Type: kir.F32, Imm: 4, Args: args(f)}, true},
		{&kir.Instr{Op: kir.Reduce, Mode: kir.ModeAdd, Type: kir.F32, Imm: 8, Args: args(f)}, false},
		{&kir.Instr{Op: kir.Reduce, Mode: kir.ModeAnd, Type: kir.F32, Imm: 32, Args: args(f)}, false},
		{&kir.Instr{Op: kir.Reduce, Mode: kir.ModeAnd, Type: kir.Bool, Imm: 32, Args: args(x)}, true},
		{&kir.Instr{Op: kir.ScanInclusive, Mode: kir.ModeMin, Type: kir.F32, Imm: 32, Args: args(f)}, false},
		{&kir.Instr{Op: kir.ScanExclusive, Mode: kir.ModeMul, Type: kir.U32, Imm: 32, Args: args(u)}, true},
		{&kir.Instr{Op: kir.Shuffle, Type: kir.F32, Imm: 32, Args: args(f, u)}, true},
		{&kir.Instr{Op: kir.Shuffle, Type: kir.F32, Imm: 32, Args: args(f, f)}, false},
		{&kir.Instr{Op: kir.Ballot, Type: kir.U64, Imm: 32, Args: args(x)}, true},
		{&kir.Instr{Op: kir.Ballot, Type: kir.U32, Imm: 32, Args: args(x)}, false},
		{&kir.Instr{Op: kir.Ballot, Type: kir.U64, Imm: 4, Args: args(x)}, false},
		{&kir.Instr{Op: kir.BroadcastFirst, Type: kir.PtrDevice, Imm: 32, Args: args(p)}, true},
		{&kir.Instr{Op: kir.MatMulAcc, Mode: kir.ModeExact, Type: kir.F32, Imm: 1, Args: args(f, f, f, f, f)}, true},
		{&kir.Instr{Op: kir.MatMulAcc, Mode: kir.ModeFree, Type: kir.F32, Args: args(f, f, f, f, f)}, true},
		{&kir.Instr{Op: kir.MatMulAcc, Mode: kir.ModeAdd, Type: kir.F32, Args: args(f, f, f, f, f)}, false},
		{&kir.Instr{Op: kir.MatMulAcc, Mode: kir.ModeExact, Type: kir.F32, Imm: 2, Args: args(f, f, f, f, f)}, false},
		{&kir.Instr{Op: kir.MatMulAcc, Mode: kir.ModeExact, Type: kir.F32, Args: args(f, f, f, f)}, false},
		{&kir.Instr{Op: kir.MatMulAcc, Mode: kir.ModeExact, Type: kir.F32, Args: args(f, f, u, f, f)}, false},
		{&kir.Instr{Op: kir.MatMulAcc, Mode: kir.ModeExact, Type: kir.U32, Args: args(u, u, u, u, u)}, false},
		{&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.F32, Args: args(p, f)}, true},
		{&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeXor, Type: kir.F32, Args: args(p, f)}, false},
		{&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeMul, Type: kir.U32, Args: args(p, u)}, false},
		{&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.F32, Args: args(c, f)}, false},
		{&kir.Instr{Op: kir.AtomicLoad, Type: kir.F16, Args: args(p)}, false},
		{&kir.Instr{Op: kir.AtomicStore, Args: args(p, u)}, true},
		{&kir.Instr{Op: kir.AtomicCAS, Type: kir.U32, Args: args(p, u, u)}, true},
		{&kir.Instr{Op: kir.AtomicCAS, Type: kir.U32, Args: args(p, u, f)}, false},
		{&kir.Instr{Op: kir.Barrier, Mode: kir.MemDevice | kir.MemThreadgroup}, true},
		{&kir.Instr{Op: kir.Barrier, Mode: 4}, false},
		{&kir.Instr{Op: kir.Bitcast, Type: kir.U64, Args: args(p)}, true},
		{&kir.Instr{Op: kir.Bitcast, Type: kir.I64, Args: args(p)}, false},
		{&kir.Instr{Op: kir.Bitcast, Type: kir.U32, Args: args(f)}, true},
		{&kir.Instr{Op: kir.Bitcast, Type: kir.U32, Args: args(x)}, false},
		{&kir.Instr{Op: kir.Convert, Type: kir.Bool, Args: args(f)}, true},
		{&kir.Instr{Op: kir.Convert, Type: kir.F32, Args: args(p)}, false},
		{&kir.Instr{Op: kir.Eq, Type: kir.Bool, Args: args(p, p)}, true},
		{&kir.Instr{Op: kir.Eq, Type: kir.U32, Args: args(u, u)}, false},
		{&kir.Instr{Op: kir.Sqrt, Type: kir.U32, Args: args(u)}, false},
		{&kir.Instr{Op: kir.And, Type: kir.Bool, Args: args(x, x)}, true},
		{&kir.Instr{Op: kir.Shl, Type: kir.Bool, Args: args(x, x)}, false},
		{&kir.Instr{Op: kir.Continue, Target: &kir.Instr{Op: kir.Loop}}, false},
	} {
		k := *b.K
		k.Body = &kir.Block{Instrs: append(append([]*kir.Instr{}, b.K.Body.Instrs...), r.in)}
		k.Renumber()
		if r.ok {
			require.NoError(t, k.Verify(), "%s", &k)
		} else {
			require.Error(t, k.Verify(), "%s", &k)
		}
	}
}

func TestVerifyDepth(t *testing.T) {
	b := kerneltest.NewBuilder("deep")
	var nest func(n int)
	nest = func(n int) {
		if n > 0 {
			b.Block(func(*kir.Instr) { nest(n - 1) })
		}
	}
	nest(kir.MaxDepth + 1)
	require.ErrorContains(t, b.Kernel().Verify(), "nested more than 4096 deep")
}

func TestEveryOpAndTypeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for op := kir.Op(0); op < kir.NumOps; op++ {
		require.NotEmpty(t, op.String())
		require.False(t, seen[op.String()], op.String())
		seen[op.String()] = true
	}
	for ty := kir.Type(0); ty < kir.NumTypes; ty++ {
		require.NotEmpty(t, ty.String())
	}
	require.Equal(t, "invalid op", kir.Op(200).String())
	require.Equal(t, "invalid type", kir.Type(200).String())
	for m := kir.ThreadPositionInGrid; m <= kir.GridSize; m++ {
		require.NotZero(t, m.Components(), m.String())
	}
	require.Equal(t, "1.5", kir.ConstText(kir.F16, 0x3e00))
	require.Equal(t, "-1", kir.ConstText(kir.I8, 0xff))
	require.Equal(t, "nan:0x7fc00000", kir.ConstText(kir.F32, uint64(math.Float32bits(float32(math.NaN())))&0x7fc00000))
}

func TestPointers(t *testing.T) {
	p := kir.PtrMove(kir.PtrParam(2), -8)
	require.Equal(t, 3, kir.PtrObject(p))
	require.Equal(t, int64(-8), kir.PtrOffset(p))
	require.Equal(t, kir.PtrParam(2), kir.PtrMove(p, 8))
	d, ok := kir.Eval(kir.PtrDiff, kir.I64, kir.PtrDevice, kir.PtrParam(0), p)
	require.True(t, ok)
	require.Equal(t, uint64(8), d)
}

// TestSweep: what nothing uses goes, with what only it used; what has an effect stays, with what it needs and what
// holds it.
func TestSweep(t *testing.T) {
	b := kerneltest.NewBuilder("k")
	out := b.Param("out", kir.Device, kir.U32)
	set, lost := b.Var("set", kir.U32), b.Var("lost", kir.U32)
	b.Set(set, b.Const(kir.U32, 3))
	b.Set(lost, b.Op(kir.Add, kir.U32, b.Const(kir.U32, 1), b.Const(kir.U32, 2)))
	b.If(b.Op(kir.Lt, kir.Bool, b.Get(set), b.Const(kir.U32, 5)), func() {
		b.Op(kir.Store, kir.Void, out, b.Get(set))
	}, func() {
		b.Set(lost, b.Const(kir.U32, 7))
	})
	b.If(b.Op(kir.Lt, kir.Bool, b.Get(set), b.Const(kir.U32, 6)), func() { b.Set(lost, b.Get(set)) }, nil)
	k := b.Kernel()
	kir.Sweep(k, func(in *kir.Instr) bool { return in.Op == kir.Store })
	k.Renumber()
	require.NoError(t, k.Verify())
	var ops []kir.Op
	k.Body.Walk(func(in *kir.Instr) { ops = append(ops, in.Op) })
	require.Equal(t, []kir.Op{kir.ParamAddr, kir.Const, kir.VarSet, kir.VarGet, kir.Const, kir.Lt, kir.If,
		kir.VarGet, kir.Store}, ops)
	require.Nil(t, k.Body.Instrs[len(k.Body.Instrs)-1].Else)
}
