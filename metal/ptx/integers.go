package ptx

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// pure prints an operation on numbers or Bool.
func (p *values) pure(in *kir.Instr) {
	args := make([]string, len(in.Args))
	for i, a := range in.Args {
		if in.Type == kir.F32 {
			args[i] = p.arg32(a)
		} else {
			args[i] = p.arg(a)
		}
	}
	t := in.Type
	switch {
	case t == kir.Bool:
		p.bools(in, args)
	case t.IsFloat():
		p.floats(in.Op, t, p.dest(in), args)
	case len(args) == 1:
		p.integer1(in.Op, t, p.dest(in), args[0])
	default:
		if b := in.Args[1]; b.Op == kir.Const {
			if p.byConstant(in, args[0], b.Imm) {
				return
			}
		}
		p.integer2(in.Op, t, p.dest(in), args[0], args[1])
	}
}

func (p *values) bools(in *kir.Instr, args []string) {
	d := p.dest(in)
	if in.Op == kir.Not {
		p.emit("not.pred %s, %s;", d, args[0])
		return
	}
	p.emit("%s.pred %s, %s, %s;", bitNames[in.Op], d, args[0], args[1])
}

var bitNames = map[kir.Op]string{kir.And: "and", kir.Or: "or", kir.Xor: "xor"}

// byConstant prints divisions and shifts by a constant, which need no test of it.
func (p *values) byConstant(in *kir.Instr, a string, imm uint64) bool {
	t := in.Type
	switch in.Op {
	case kir.Shl, kir.Shr:
		p.shift(in.Op, t, p.dest(in), a, literal(imm%uint64(t.Bits())))
		return true
	case kir.Div, kir.Rem:
		if imm == 0 {
			return false
		}
		d := p.dest(in)
		p.emit("%s.%s %s, %s, %s;", in.Op, signed(t), d, p.extend(t, a), p.extendLiteral(t, imm))
		p.canonical(t, d)
		return true
	}
	return false
}

// signed is the type that a signed or unsigned operation is done in.
func signed(t kir.Type) string {
	if t.IsSigned() {
		return fmt.Sprintf("s%d", max(32, t.Bits()))
	}
	return unsigned(t)
}

func unsigned(t kir.Type) string { return fmt.Sprintf("u%d", max(32, t.Bits())) }

// extend widens a signed integer of 8 or 16 bits; all others are what they are.
func (p *numbers) extend(t kir.Type, a string) string {
	if t.Bits() >= 32 || !t.IsSigned() {
		return a
	}
	r := p.new(b32)
	if a[0] != '%' {
		p.emit("mov.b32 %s, %s;", r, a)
		a = r
	}
	p.emit("cvt.s32.s%d %s, %s;", t.Bits(), r, a)
	return r
}

func (p *numbers) extendLiteral(t kir.Type, imm uint64) string {
	if t.Bits() < 32 && t.IsSigned() {
		return fmt.Sprint(number(t, imm))
	}
	return literal(imm)
}

// canonical cuts what is above an integer's width.
func (p *numbers) canonical(t kir.Type, d string) {
	if t.Bits() < 32 {
		p.emit("and.b32 %s, %s, %s;", d, d, literal(t.Mask()))
	}
}

// integer1 prints an operation of one operand on integers.
func (p *numbers) integer1(op kir.Op, t kir.Type, d, a string) {
	w, bits := max(32, t.Bits()), t.Bits()
	count := func(format string, args ...any) { // a number of bits, in a register of t's size
		r := d
		if bits == 64 {
			r = p.new(b32)
		}
		p.emit(format, append([]any{r}, args...)...)
		if bits == 64 {
			p.emit("cvt.u64.u32 %s, %s;", d, r)
		}
	}
	switch op {
	case kir.Neg:
		p.emit("neg.s%d %s, %s;", w, d, a)
		p.canonical(t, d)
	case kir.Abs:
		if !t.IsSigned() {
			p.move(t, d, a)
			return
		}
		p.emit("abs.s%d %s, %s;", w, d, p.extend(t, a))
		p.canonical(t, d)
	case kir.Not:
		p.emit("not.b%d %s, %s;", w, d, a)
		p.canonical(t, d)
	case kir.Popcount:
		count("popc.b%[3]d %[1]s, %[2]s;", a, w)
	case kir.Clz:
		count("clz.b%[3]d %[1]s, %[2]s;", a, w)
		if bits < 32 {
			p.emit("sub.u32 %s, %s, %d;", d, d, 32-bits)
		}
	case kir.Ctz:
		r := p.new(classOf(t))
		if bits < 32 { // a one above the width stops the count there
			p.emit("or.b32 %s, %s, %s;", r, a, literal(1<<bits))
			a = r
		}
		p.emit("brev.b%d %s, %s;", w, r, a)
		count("clz.b%[3]d %[1]s, %[2]s;", r, w)
	case kir.BitReverse:
		p.emit("brev.b%d %s, %s;", w, d, a)
		if bits < 32 {
			p.emit("shr.u32 %s, %s, %d;", d, d, 32-bits)
		}
	default:
		p.unprinted(op, t)
	}
}

func (p *emitter) unprinted(op kir.Op, t kir.Type) {
	if p.err == nil {
		p.err = fmt.Errorf("[%s] %s of %s is not printed", p.k.Name, op, t)
	}
}

// integer2 prints an operation of two operands on integers.
func (p *numbers) integer2(op kir.Op, t kir.Type, d, a, b string) {
	w := max(32, t.Bits())
	switch op {
	case kir.Add, kir.Sub:
		p.emit("%s.%s %s, %s, %s;", op, unsigned(t), d, a, b)
		p.canonical(t, d)
	case kir.Mul:
		p.emit("mul.lo.%s %s, %s, %s;", unsigned(t), d, a, b)
		p.canonical(t, d)
	case kir.MulHi:
		if t.Bits() < 32 {
			p.emit("mul.lo.s32 %s, %s, %s;", d, p.extend(t, a), p.extend(t, b))
			p.emit("shr.%s %s, %s, %d;", signed(t), d, d, t.Bits())
			p.canonical(t, d)
			return
		}
		p.emit("mul.hi.%s %s, %s, %s;", signed(t), d, a, b)
	case kir.Div, kir.Rem: // by zero: 0, and the dividend
		a, b = p.extend(t, a), p.extend(t, b)
		zero, q, other := p.new(pred), p.new(classOf(t)), "0"
		if op == kir.Rem {
			other = a
		}
		p.emit("setp.eq.%s %s, %s, 0;", unsigned(t), zero, b)
		p.emit("%s.%s %s, %s, %s;", op, signed(t), q, a, b)
		p.emit("selp.b%d %s, %s, %s, %s;", w, d, other, q, zero)
		p.canonical(t, d)
	case kir.Min, kir.Max:
		p.emit("%s.%s %s, %s, %s;", op, signed(t), d, p.extend(t, a), p.extend(t, b))
		p.canonical(t, d)
	case kir.And, kir.Or, kir.Xor:
		p.emit("%s.b%d %s, %s, %s;", bitNames[op], w, d, a, b)
	case kir.Shl, kir.Shr: // counts are taken modulo the width; PTX would clamp them
		n := p.new(b32)
		if t.Bits() == 64 {
			p.emit("cvt.u32.u64 %s, %s;", n, b)
			b = n
		}
		p.emit("and.b32 %s, %s, %d;", n, b, t.Bits()-1)
		p.shift(op, t, d, a, n)
	default:
		p.unprinted(op, t)
	}
}

// shift shifts by a count below the width.
func (p *numbers) shift(op kir.Op, t kir.Type, d, a, n string) {
	if op == kir.Shl {
		p.emit("shl.b%d %s, %s, %s;", max(32, t.Bits()), d, a, n)
	} else {
		p.emit("shr.%s %s, %s, %s;", signed(t), d, p.extend(t, a), n)
	}
	p.canonical(t, d)
}

var compares = map[kir.Op]string{kir.Eq: "eq", kir.Ne: "ne", kir.Lt: "lt", kir.Le: "le", kir.Gt: "gt", kir.Ge: "ge"}

func (p *values) compare(in *kir.Instr) {
	d, t := p.dest(in), in.Args[0].Type
	a, b := p.arg(in.Args[0]), p.arg(in.Args[1])
	switch {
	case t == kir.Bool:
		p.compareBools(in.Op, d, a, b)
	case t.IsFloat():
		if t == kir.F32 {
			a, b = p.arg32(in.Args[0]), p.arg32(in.Args[1])
		}
		name := compares[in.Op]
		if in.Op == kir.Ne { // true with NaN; the others are false
			name = "neu"
		}
		p.emit("setp.%s.f32 %s, %s, %s;", name, d, p.up(t, a), p.up(t, b))
	case t.IsPtr():
		p.emit("setp.%s.u64 %s, %s, %s;", compares[in.Op], d, a, b)
	default:
		p.emit("setp.%s.%s %s, %s, %s;", compares[in.Op], signed(t), d, p.extend(t, a), p.extend(t, b))
	}
}

// compareBools compares predicates, false being less than true.
func (p *numbers) compareBools(op kir.Op, d, a, b string) {
	switch op {
	case kir.Ne:
		p.emit("xor.pred %s, %s, %s;", d, a, b)
	case kir.Eq:
		p.emit("xor.pred %s, %s, %s;", d, a, b)
		p.emit("not.pred %s, %s;", d, d)
	case kir.Lt:
		p.emit("not.pred %s, %s;", d, a)
		p.emit("and.pred %s, %s, %s;", d, d, b)
	case kir.Ge:
		p.emit("not.pred %s, %s;", d, b)
		p.emit("or.pred %s, %s, %s;", d, d, a)
	case kir.Gt:
		p.emit("not.pred %s, %s;", d, b)
		p.emit("and.pred %s, %s, %s;", d, d, a)
	case kir.Le:
		p.emit("not.pred %s, %s;", d, a)
		p.emit("or.pred %s, %s, %s;", d, d, b)
	}
}

func (p *values) choose(in *kir.Instr) {
	t := in.Type
	c, a, b := p.arg(in.Args[0]), p.arg(in.Args[1]), p.arg(in.Args[2])
	d := p.dest(in)
	if t.IsPtr() {
		p.ptrs[in.ID] = pointer{reg: d}
	}
	p.selectValue(t, d, a, b, c)
}

// selectValue sets d to a where the predicate c is true, else to b.
func (p *numbers) selectValue(t kir.Type, d, a, b, c string) {
	if t != kir.Bool {
		p.emit("selp.%s %s, %s, %s, %s;", classNames[classOf(t)].typ, d, a, b, c)
		return
	}
	x, y := p.new(pred), p.new(pred)
	p.emit("and.pred %s, %s, %s;", x, c, a)
	p.emit("not.pred %s, %s;", y, c)
	p.emit("and.pred %s, %s, %s;", y, y, b)
	p.emit("or.pred %s, %s, %s;", d, x, y)
}
