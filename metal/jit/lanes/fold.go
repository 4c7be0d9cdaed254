package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// pure returns the value of a pure operation: a constant, an operand, an equal value that is there already, or a new
// instruction.
func (o *optimiser) pure(op kir.Op, t kir.Type, m kir.Mode, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	if commutes(op) && args[0].Op == kir.Const && args[1].Op != kir.Const {
		args[0], args[1] = args[1], args[0]
	}
	if x := o.fold(op, t, imm, pos, args); x != nil {
		return x
	}
	return o.share(op, t, m, imm, pos, args)
}

func commutes(op kir.Op) bool {
	switch op {
	case kir.Add, kir.Mul, kir.And, kir.Or, kir.Xor, kir.Min, kir.Max, kir.MulHi, kir.Eq, kir.Ne:
		return true
	}
	return false
}

// share finds an equal value that is in scope, or makes one in front of the loops that do not change it.
func (o *optimiser) share(op kir.Op, t kir.Type, m kir.Mode, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	h := uint64(op)<<8 | uint64(t) | uint64(m)<<16 + imm*0x9e3779b97f4a7c15
	for _, a := range args {
		h = (h ^ uint64(a.ID)) * 0xff51afd7ed558ccd
		h ^= h >> 29
	}
	h *= 0x9e3779b97f4a7c15
	slot := &o.buckets[h>>32&uint64(len(o.buckets)-1)]
	for i := *slot; i != 0; {
		e := &o.meta[i-1]
		x := e.in
		if o.open[e.block] && x.Op == op && x.Type == t && x.Mode == m && x.Imm == imm && same(x.Args, args) {
			return x
		}
		i = e.next
	}
	depth, lanes := int32(0), op == kir.Builtin && !m.Uniform() && imm == 0
	for _, a := range args {
		depth = max(depth, o.meta[a.ID].depth)
		lanes = lanes || o.meta[a.ID].lanes
	}
	at := len(o.scopes) - 1
	if len(args) == 0 {
		at = 0
	}
	for d := int(depth) + 1; d <= at; d++ {
		if o.scopes[d].loop != nil {
			at = d - 1
		}
	}
	x := o.create()
	x.Op, x.Type, x.Mode, x.Imm, x.Args, x.Pos = op, t, m, imm, args, pos
	o.putAt(at, x)
	e := &o.meta[x.ID]
	e.lanes, e.next = lanes, *slot
	*slot = int32(x.ID) + 1
	return x
}

func same(a, b []*kir.Instr) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// fold returns what a pure operation comes to if no instruction is needed, or if another one does the same; else nil.
func (o *optimiser) fold(op kir.Op, t kir.Type, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	if len(args) == 0 {
		return nil
	}
	if op == kir.PtrAdd {
		return o.foldPtr(t, imm, pos, args)
	}
	if bits, ok := evalConst(op, t, args); ok {
		return o.constant(t, bits, pos)
	}
	x := args[0]
	switch op {
	case kir.Not:
		return o.foldNot(t, pos, x)
	case kir.Convert, kir.Bitcast:
		return o.foldConvert(op, t, pos, x)
	case kir.Select:
		switch {
		case x.Op == kir.Const && x.Imm&1 != 0 || args[1] == args[2]:
			return args[1]
		case x.Op == kir.Const:
			return args[2]
		case x.Op == kir.Not:
			return o.pure(op, t, 0, 0, pos, []*kir.Instr{x.Args[0], args[2], args[1]})
		}
	case kir.Neg:
		if x.Op == kir.Neg {
			return x.Args[0]
		}
	}
	if len(args) != 2 {
		return nil
	}
	if args[1] == x && !x.Type.IsFloat() {
		if y := o.foldEqual(op, t, pos, x); y != nil {
			return y
		}
	}
	switch {
	case t.IsInt():
		return o.foldInt(op, t, pos, x, args[1])
	case t.IsFloat() && args[1].Op == kir.Const && (op == kir.Mul || op == kir.Div):
		if one, _ := kir.Identity(kir.ModeMul, t); args[1].Imm == one {
			return x
		}
	case t == kir.Bool && x.Type == kir.Bool && args[1].Op == kir.Const:
		return o.foldBool(op, pos, x, args[1].Imm&1 != 0)
	}
	return nil
}

func evalConst(op kir.Op, t kir.Type, args []*kir.Instr) (uint64, bool) {
	var bits [3]uint64
	for i, a := range args {
		if a.Op != kir.Const || i == len(bits) {
			return 0, false
		}
		bits[i] = a.Imm
	}
	in := kir.Instr{Op: op, Type: t, Args: args}
	return in.Eval(bits[:len(args)]...)
}

func (o *optimiser) constant(t kir.Type, bits uint64, pos kir.Pos) *kir.Instr {
	return o.share(kir.Const, t, 0, bits&t.Mask(), pos, nil)
}

// inverse gives the comparison that is true where another is false (integers, pointers, Bools).
var inverse = [...]kir.Op{
	kir.Eq: kir.Ne, kir.Ne: kir.Eq, kir.Lt: kir.Ge, kir.Le: kir.Gt, kir.Gt: kir.Le, kir.Ge: kir.Lt,
}

// mirrored gives the comparison that is true where another is after its operands change places.
var mirrored = [...]kir.Op{
	kir.Eq: kir.Eq, kir.Ne: kir.Ne, kir.Lt: kir.Gt, kir.Le: kir.Ge, kir.Gt: kir.Lt, kir.Ge: kir.Le,
}

func (o *optimiser) foldNot(t kir.Type, pos kir.Pos, x *kir.Instr) *kir.Instr {
	switch {
	case x.Op == kir.Not:
		return x.Args[0]
	case x.Op < kir.Eq || x.Op > kir.Ge:
	case !x.Args[0].Type.IsFloat() || x.Op == kir.Eq || x.Op == kir.Ne:
		return o.share(inverse[x.Op], t, 0, 0, pos, x.Args)
	}
	return nil
}

func (o *optimiser) foldConvert(op kir.Op, t kir.Type, pos kir.Pos, x *kir.Instr) *kir.Instr {
	from := x.Type
	switch {
	case t == from:
		return x
	case x.Op != op && x.Op != kir.Convert:
	case op == kir.Bitcast && x.Op == kir.Bitcast:
		if first := x.Args[0].Type; t != first && (t.IsPtr() || first.IsPtr()) {
			return nil
		}
		return o.pure(op, t, 0, 0, pos, []*kir.Instr{x.Args[0]})
	case op == kir.Convert && x.Op == kir.Convert && t.IsInt() && from.IsInt() && x.Args[0].Type.IsInt():
		first := x.Args[0].Type
		widened := from.Size() > first.Size() && (!first.IsSigned() || from.IsSigned())
		if t.Size() <= from.Size() || widened {
			return o.pure(op, t, 0, 0, pos, []*kir.Instr{x.Args[0]})
		}
	}
	return nil
}

// foldEqual is an operation on one value twice, no float.
func (o *optimiser) foldEqual(op kir.Op, t kir.Type, pos kir.Pos, x *kir.Instr) *kir.Instr {
	switch op {
	case kir.Sub, kir.Xor:
		return o.constant(t, 0, pos)
	case kir.And, kir.Or, kir.Min, kir.Max:
		return x
	case kir.Eq, kir.Le, kir.Ge:
		return o.constant(t, 1, pos)
	case kir.Ne, kir.Lt, kir.Gt:
		return o.constant(t, 0, pos)
	}
	return nil
}

func (o *optimiser) foldBool(op kir.Op, pos kir.Pos, x *kir.Instr, c bool) *kir.Instr {
	switch {
	case op == kir.And && c || op == kir.Or && !c || op == kir.Xor && !c || op == kir.Eq && c || op == kir.Ne && !c:
		return x
	case op == kir.And || op == kir.Or:
		return o.constant(kir.Bool, uint64(op-kir.And)&1, pos)
	case op == kir.Xor || op == kir.Eq || op == kir.Ne:
		return o.pure(kir.Not, kir.Bool, 0, 0, pos, []*kir.Instr{x})
	}
	return nil
}

func (o *optimiser) foldInt(op kir.Op, t kir.Type, pos kir.Pos, x, y *kir.Instr) *kir.Instr {
	c, ok := intConst(y)
	if !ok {
		return nil
	}
	ones := y.Imm == t.Mask()
	n, pow := log2(int64(y.Imm))
	count := uint(c) & uint(t.Bits()-1)
	switch op {
	case kir.Add, kir.Sub, kir.Or, kir.Xor:
		switch {
		case c == 0:
			return x
		case op == kir.Or && ones:
			return y
		case op == kir.Add && x.Op == kir.Add && x.Args[1].Op == kir.Const:
			sum := o.constant(t, x.Args[1].Imm+y.Imm, pos)
			return o.pure(op, t, 0, 0, pos, []*kir.Instr{x.Args[0], sum})
		}
	case kir.And:
		if c == 0 {
			return y
		}
		if ones {
			return x
		}
	case kir.Mul:
		if c == 0 {
			return y
		}
		if c == 1 {
			return x
		}
		if d, ok := addend(x); ok { // constants outward: neighbouring elements differ in them alone
			scaled := o.pure(op, t, 0, 0, pos, []*kir.Instr{x.Args[0], y})
			return o.pure(kir.Add, t, 0, 0, pos, []*kir.Instr{scaled, o.constant(t, d*y.Imm, pos)})
		}
	case kir.Shl, kir.Shr:
		if count == 0 {
			return x
		}
		if d, ok := addend(x); ok && op == kir.Shl {
			scaled := o.pure(op, t, 0, 0, pos, []*kir.Instr{x.Args[0], y})
			return o.pure(kir.Add, t, 0, 0, pos, []*kir.Instr{scaled, o.constant(t, d<<count, pos)})
		}
	case kir.Div:
		if c == 1 {
			return x
		}
		if pow && !t.IsSigned() {
			return o.pure(kir.Shr, t, 0, 0, pos, []*kir.Instr{x, o.constant(t, uint64(n), pos)})
		}
	case kir.Rem:
		if pow && !t.IsSigned() {
			return o.pure(kir.And, t, 0, 0, pos, []*kir.Instr{x, o.constant(t, y.Imm-1, pos)})
		}
	}
	return nil
}

// addend returns the constant of a sum with one.
func addend(x *kir.Instr) (uint64, bool) {
	if x.Op != kir.Add || x.Args[1].Op != kir.Const {
		return 0, false
	}
	return x.Args[1].Imm, true
}

// foldPtr keeps the constant part of an offset in Imm, where the address of a constant distance from another is that
// other's with a larger Imm.
func (o *optimiser) foldPtr(t kir.Type, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	p := args[0]
	c, ok := intConst(args[1])
	if !ok {
		return nil
	}
	imm += uint64(c)
	zero := args[1]
	if p.Op == kir.PtrAdd {
		if d, ok := intConst(p.Args[1]); ok {
			imm += p.Imm + uint64(d)
			p, zero = p.Args[0], p.Args[1]
		}
	}
	switch {
	case imm == 0:
		return p
	case c == 0 && p == args[0]:
		return nil
	case zero.Imm != 0:
		zero = o.constant(kir.I64, 0, pos)
	}
	return o.share(kir.PtrAdd, t, 0, imm, pos, []*kir.Instr{p, zero})
}
