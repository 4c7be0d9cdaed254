package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// takeApart writes a product of matrices, with which a list of instructions begins, as what it is by kir's table: for
// consumers that have no instruction for it. Both elements of a lane share what they need of A, if they stand together.
// It returns how many instructions it has dealt with.
func (r *rewriter) takeApart(l []*kir.Instr) int {
	in := l[0]
	n := 1
	if len(l) > 1 && l[1].Op == in.Op && l[1].Mode == in.Mode && l[1].Args[4] != in && same(l[1].Args[:4], in.Args[:4]) {
		n = 2
	}
	args := r.operands(in)
	var sums [2]*kir.Instr
	for i, x := range l[:n] {
		sums[i] = r.operands(x)[4]
	}
	t, pos := in.Type, in.Pos
	lane := r.pure(kir.Builtin, kir.U32, kir.ThreadIndexInSimdgroup, 0, pos, nil)
	u32 := func(n int) *kir.Instr { return r.constant(kir.U32, uint64(n), pos) }
	from := func(x *kir.Instr, mask, lanes int) *kir.Instr {
		index := r.op(kir.Add, kir.U32, pos, r.op(kir.And, kir.U32, pos, lane, u32(mask)), u32(lanes))
		return r.put(r.create(kir.Shuffle, t, 0, kir.Lanes, pos, []*kir.Instr{x, index}))
	}
	// A lane's number has its row in some bits, and its columns in the others: see kir.MatrixLane.
	row, col := kir.MatrixLane(7, 0), kir.MatrixLane(0, 7)
	for k := range 8 {
		a := from(args[k%2], row, kir.MatrixLane(0, k))
		for i, x := range l[:n] {
			b := from(args[2+x.Imm], col, kir.MatrixLane(k, 0))
			sums[i] = r.op(kir.Fma, t, pos, a, b, sums[i])
		}
	}
	for i, x := range l[:n] {
		r.info[x.ID].to = sums[i]
	}
	return n
}
