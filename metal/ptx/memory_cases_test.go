package ptx_test

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// memoryCases read and write every type in every space: at aligned addresses, at others, and through pointers whose
// object the kernel chooses.
func memoryCases() (cases []testCase) {
	for _, t := range append(arithmetic, kir.PtrDevice, kir.PtrThread) {
		b := newBuilder("memory " + t.String())
		size := int64(t.Size())
		own := b.Region("own", kir.Thread, kir.U8, 40)
		more := b.Region("more", kir.Thread, kir.U8, 900)
		shared := b.Region("shared", kir.Threadgroup, kir.U8, 100*24)
		b.K.Regions = append(b.K.Regions, kir.Region{Name: "table", Space: kir.Constant, Size: 37, Align: 1, Elem: kir.U8,
			Data: input()[:37]})
		table := b.Append(&kir.Instr{Op: kir.RegionAddr, Type: kir.PtrConstant, Imm: uint64(len(b.K.Regions) - 1)})
		local := b.Builtin(kir.ThreadIndexInThreadgroup, 0)
		v, w := b.operand(0, t), b.operand(1, t)
		odd := b.Op(kir.And, kir.I64, b.operand(2, kir.I64), b.Int(kir.I64, 7))
		at := func(p, by *kir.Instr, imm uint64) *kir.Instr {
			return b.Append(&kir.Instr{Op: kir.PtrAdd, Type: p.Type, Args: []*kir.Instr{p, by}, Imm: imm})
		}
		zero := b.Int(kir.I64, 0)
		b.Op(kir.Store, kir.Void, at(own, zero, 16), v) // constant addresses
		b.keep(b.Op(kir.Load, t, at(own, zero, 16)))
		b.keep(b.Op(kir.Load, kir.U8, at(own, odd, 13)))
		b.Op(kir.Store, kir.Void, at(own, odd, 1), w) // any address
		b.keep(b.Op(kir.Load, t, at(own, odd, 1)))
		b.keep(b.Op(kir.Load, t, at(own, odd, 12)))
		b.keep(b.Op(kir.Load, t, at(table, odd, 3)))
		mine := b.Op(kir.Mul, kir.I64, b.Op(kir.Convert, kir.I64, local), b.Int(kir.I64, 24))
		b.Op(kir.Store, kir.Void, at(shared, mine, 0), v)
		b.Op(kir.Store, kir.Void, at(shared, b.Op(kir.Add, kir.I64, mine, odd), 8), w)
		b.keep(b.Op(kir.Load, t, at(shared, mine, 0)))
		b.keep(b.Op(kir.Load, t, at(shared, b.Op(kir.Add, kir.I64, mine, odd), 8)))
		// One of two arrays.
		which := b.operand(2, kir.Bool)
		p := b.Op(kir.Select, kir.PtrThread, which, at(own, odd, 0), at(more, zero, 64))
		b.Op(kir.Store, kir.Void, p, w)
		b.keep(b.Op(kir.Load, t, at(p, zero, 0)))
		b.keep(b.Op(kir.Load, t, at(own, odd, 0)))
		b.keep(b.Op(kir.Load, t, at(more, zero, 64)))
		// Device memory, at addresses that may be odd.
		in := b.Op(kir.Mul, kir.I64, b.Op(kir.Convert, kir.I64, b.gid), b.Int(kir.I64, 8))
		b.keep(b.Op(kir.Load, t, at(b.in, b.Op(kir.Add, kir.I64, in, odd), 0)))
		packed := b.Op(kir.Mul, kir.I64, b.Op(kir.Convert, kir.I64, b.gid), b.Int(kir.I64, size))
		b.keep(b.Op(kir.Load, t, at(b.in, packed, 0)))
		place := b.Op(kir.Add, kir.U32, b.gid, b.Int(kir.U32, int64(b.stored*threads)))
		b.keep(zero)
		b.Op(kir.Store, kir.Void, b.Index(b.out, place, 8), v)
		q := b.Var("", kir.PtrDevice)
		b.Set(q, b.in)
		b.If(which, func() { b.Set(q, at(b.in, in, 0)) }, nil)
		b.keep(b.Op(kir.Load, t, b.Get(q)))
		if t.IsPtr() { // a pointer that was in memory leads somewhere
			if t == kir.PtrThread {
				b.Op(kir.Store, kir.Void, at(more, zero, 128), at(own, odd, 0))
				b.keep(b.Op(kir.Load, kir.U8, b.Op(kir.Load, t, at(more, zero, 128))))
			}
			b.keep(b.Op(kir.PtrDiff, kir.I64, at(own, odd, 0), own))
			b.keep(b.Op(kir.Eq, kir.Bool, at(own, odd, 0), own))
		}
		cases = append(cases, b.done())
	}
	return cases
}

// atomicCases have each thread change words of its own, in device and threadgroup memory, and all of them a few.
func atomicCases() (cases []testCase) {
	modes := []kir.Mode{kir.ModeAdd, kir.ModeSub, kir.ModeMin, kir.ModeMax, kir.ModeAnd, kir.ModeOr, kir.ModeXor,
		kir.ModeExchange}
	for _, t := range []kir.Type{kir.U8, kir.I32, kir.U32, kir.F32, kir.I64, kir.U64} {
		b := newBuilder("atomic " + t.String())
		shared := b.Region("shared", kir.Threadgroup, t, 128)
		local := b.Builtin(kir.ThreadIndexInThreadgroup, 0)
		v, w := b.operand(0, t), b.operand(1, t)
		if t == kir.F32 { // global float atomics flush denormals: that is not kir's
			v, w = b.normal(v), b.normal(w)
		}
		try := func(p *kir.Instr) {
			for _, m := range append([]kir.Mode{kir.ModeNone}, modes...) {
				b.Op(kir.AtomicStore, kir.Void, p, v)
				if m == kir.ModeNone {
					b.keep(b.Op(kir.AtomicLoad, t, p))
					b.keep(b.Op(kir.AtomicCAS, t, p, w, v))
					b.keep(b.Op(kir.AtomicCAS, t, p, v, w))
				} else if atomicTakes(m, t) {
					b.keep(b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: m, Type: t, Args: []*kir.Instr{p, w}}))
					b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: m, Type: t, Args: []*kir.Instr{p, v}}) // nobody reads it
				}
				b.keep(b.Op(kir.AtomicLoad, t, p))
			}
		}
		try(b.Index(shared, local, t.Size()))
		place := b.Op(kir.Add, kir.U32, b.gid, b.Int(kir.U32, int64(b.stored*threads)))
		b.stored++
		try(b.Index(b.out, place, 8))
		if t.IsInt() && t != kir.U8 { // the order does not matter
			total := b.Int(kir.U32, int64(b.stored*threads))
			b.stored++
			b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: t, Args: []*kir.Instr{
				b.Index(b.out, total, 8), v}})
		}
		cases = append(cases, b.done())
	}
	return cases
}

func atomicTakes(m kir.Mode, t kir.Type) bool {
	b := newBuilder("k")
	b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: m, Type: t, Args: []*kir.Instr{b.out, b.operand(0, t)}})
	return b.Kernel().Verify() == nil
}

// normal replaces what is tiny.
func (b *builder) normal(v *kir.Instr) *kir.Instr {
	tiny := b.Op(kir.Lt, kir.Bool, b.Op(kir.Abs, kir.F32, v), b.Float(1e-30))
	return b.Op(kir.Select, kir.F32, tiny, b.Float(0.25), v)
}

// builtinCases write every position and size, for threadgroups of all shapes.
func builtinCases() (cases []testCase) {
	shapes := [][2][3]int{{{100, 1, 1}, {32, 1, 1}}, {{10, 5, 4}, {4, 3, 3}}, {{7, 9, 3}, {7, 2, 2}},
		{{33, 3, 1}, {5, 3, 1}}}
	for _, s := range shapes {
		b := newBuilder("builtins")
		width := b.Builtin(kir.ThreadsPerGrid, 0)
		y := b.Op(kir.Mul, kir.U32, b.Builtin(kir.ThreadPositionInGrid, 2), b.Builtin(kir.ThreadsPerGrid, 1))
		y = b.Op(kir.Add, kir.U32, y, b.Builtin(kir.ThreadPositionInGrid, 1))
		b.gid = b.Op(kir.Add, kir.U32, b.gid, b.Op(kir.Mul, kir.U32, y, width))
		for m := kir.ThreadPositionInGrid; m.Components() > 0; m++ {
			for c := range m.Components() {
				b.keep(b.Builtin(m, c))
			}
		}
		c := b.done()
		c.launch.Grid, c.launch.Threadgroup = s[0], s[1]
		cases = append(cases, c)
	}
	return cases
}

func tableCases() (cases []testCase) {
	cases = slices.Concat(pureCases(), groupCases(), matrixCases())
	cases = append(append(cases, memoryCases()...), atomicCases()...)
	return append(append(cases, endingCases()...), builtinCases()...)
}
