package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// shareDivisions makes remainders of the quotients that a block computes too: a % b is a - a/b*b, for every b. Division
// is by far the slowest of these operations.
func shareDivisions(b *kir.Block) {
	type operands [2]*kir.Instr
	var quotients map[operands]*kir.Instr
	remainders := 0
	for _, in := range b.Instrs {
		if in.Body != nil {
			shareDivisions(in.Body)
		}
		if in.Else != nil {
			shareDivisions(in.Else)
		}
		switch {
		case !in.Type.IsInt() || in.Op != kir.Div && in.Op != kir.Rem || in.Args[1].Op == kir.Const:
		case in.Op == kir.Rem:
			remainders++
		default:
			if quotients == nil {
				quotients = map[operands]*kir.Instr{}
			}
			quotients[operands(in.Args)] = in
		}
	}
	if remainders == 0 || quotients == nil {
		return
	}
	out, there := make([]*kir.Instr, 0, len(b.Instrs)+remainders), map[*kir.Instr]bool{}
	for _, in := range b.Instrs {
		q := in
		if in.Op == kir.Div || in.Op == kir.Rem {
			q = quotients[operands(in.Args)]
		}
		if q != nil && q.Op == kir.Div && !there[q] { // quotients move to where the first of both was
			out, there[q] = append(out, q), true
		}
		if in.Op == kir.Rem && q != nil {
			m := &kir.Instr{Op: kir.Mul, Type: in.Type, Args: []*kir.Instr{q, in.Args[1]}, Pos: in.Pos}
			in.Op, in.Args = kir.Sub, []*kir.Instr{in.Args[0], m}
			out = append(out, m)
		}
		if !there[in] {
			out = append(out, in)
		}
	}
	b.Instrs = out
}
