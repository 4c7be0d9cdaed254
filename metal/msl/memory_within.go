package msl

import (
	"strconv"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// within checks a computed index of one of the n components of what is called name. An index beyond them is a fault of
// the kernel, as one beyond an array is, at the place where it is used: to read or to write. The code of the fault
// reads or writes an array of n bytes at the index, which every executor checks.
func (mem *memory) within(idx operand, name string, n int, write bool) {
	em := mem.em
	if idx.isConst() || em.exec || em.unevaluated || most(idx.in) < uint64(n) {
		return
	}
	beyond := em.op(kir.Ge, kir.Bool, em.bitcast(idx, kir.U64), constant(kir.U64, uint64(n)))
	fault := em.inBlock(func() {
		p := em.ptrAdd(mem.bounds(name, n), idx, 0)
		x := operand{ty: kir.U8}
		if !write {
			x = mem.loadAt(kir.U8, p, false)
		}
		mem.storeAt(p, x) // without which nothing would read x
	})
	check := &kir.Instr{Op: kir.If, Args: []*kir.Instr{em.instr(beyond)}, Body: fault}
	em.hints.Checks[check] = true
	em.structured(check)
}

// bounds is the array of within.
func (mem *memory) bounds(name string, n int) operand {
	key := name + "[" + strconv.Itoa(n)
	if i, ok := mem.tables[key]; ok {
		return mem.em.leaf(kir.RegionAddr, kir.PtrThread, 0, uint64(i))
	}
	i, p := mem.em.newRegion(kir.Region{Name: name, Space: kir.Thread, Size: n, Elem: kir.U8, ElemSize: 1})
	mem.tables[key] = i
	return p
}

// most is the greatest value, without a sign, that an integer may have, as far as its operation says.
func most(in *kir.Instr) uint64 {
	const any = ^uint64(0)
	switch {
	case in.Op == kir.Const:
		return in.Imm
	case in.Op == kir.And && in.Type.IsInt():
		return min(most(in.Args[0]), most(in.Args[1]))
	case in.Op == kir.Rem && in.Args[1].Op == kir.Const && in.Args[1].Imm > 0 && !in.Type.IsSigned():
		return in.Args[1].Imm - 1
	case in.Op == kir.Shr && in.Args[1].Op == kir.Const && in.Type.IsInt() && !in.Type.IsSigned():
		width := uint64(8 * in.Type.Size())
		return any >> (64 - width) >> (in.Args[1].Imm % width)
	case in.Op == kir.Convert && in.Args[0].Type == kir.Bool:
		return 1
	case in.Op == kir.Convert && in.Args[0].Type.IsInt() && in.Type.IsInt():
		m := most(in.Args[0])
		if limit := uint64(1)<<(8*in.Args[0].Type.Size()-1) - 1; in.Args[0].Type.IsSigned() && m > limit {
			return any
		}
		if in.Type.Size() < 8 && m >= 1<<(8*in.Type.Size()-1) {
			return any
		}
		return m
	case in.Type.IsInt() && in.Type.Size() < 8 && !in.Type.IsSigned():
		return uint64(1)<<(8*in.Type.Size()) - 1
	}
	return any
}

// vectorName is what a fault calls a vector: its variable, if it is one, or its type.
func vectorName(v value) string {
	if v.k == vSlot && v.q.T == v.obj.q.T {
		return v.obj.name
	}
	return v.q.T.String()
}
