package ptx

import "github.com/mlxlua/mlxlua/metal/kir"

func (p *values) convert(in *kir.Instr) {
	v, t := in.Args[0], in.Type
	from := v.Type
	a := p.arg(v)
	switch {
	case from == t || from.IsInt() && t.IsInt() && from.Size() == t.Size():
		p.same(in, a)
	case t == kir.Bool:
		p.toBool(from, p.dest(in), a)
	case from == kir.Bool:
		p.fromBool(t, p.dest(in), a)
	case from.IsFloat() && t.IsFloat():
		p.down(t, p.dest(in), p.up(from, p.bits32OfSingle(from, a)))
	case from.IsFloat():
		p.floatToInt(t, p.dest(in), p.up(from, p.bits32OfSingle(from, a)))
	case t.IsFloat():
		p.intToFloat(t, from, p.dest(in), a)
	default:
		p.intToInt(t, from, p.dest(in), a)
	}
}

// same gives a value the register of another one with the same bits.
func (p *values) same(in *kir.Instr, a string) {
	if a[0] == '%' {
		p.vals[in.ID] = a
		return
	}
	p.move(in.Type, p.dest(in), a)
}

// bits32OfSingle makes a register of a literal of F32.
func (p *numbers) bits32OfSingle(t kir.Type, a string) string {
	if t == kir.F32 {
		return p.bits32(a)
	}
	return a
}

func (p *numbers) toBool(from kir.Type, d, a string) {
	if from.IsFloat() {
		p.emit("setp.neu.f32 %s, %s, 0f00000000;", d, p.up(from, p.bits32OfSingle(from, a)))
		return
	}
	p.emit("setp.ne.%s %s, %s, 0;", unsigned(from), d, a)
}

func (p *numbers) fromBool(t kir.Type, d, a string) {
	one := uint64(1)
	if t.IsFloat() {
		one = kir.FromFloat64(t, 1)
	}
	p.emit("selp.%s %s, %s, 0, %s;", classNames[classOf(t)].typ, d, literal(one), a)
}

func (p *numbers) intToInt(t, from kir.Type, d, a string) {
	switch {
	case from.Bits() == 64:
		if a[0] != '%' {
			r := p.new(b64)
			p.move(from, r, a)
			a = r
		}
		p.emit("cvt.u32.u64 %s, %s;", d, a)
		p.canonical(t, d)
	case t.Bits() == 64 && from.IsSigned():
		p.emit("cvt.s64.s32 %s, %s;", d, p.bits32(p.extend(from, a)))
	case t.Bits() == 64:
		p.emit("cvt.u64.u32 %s, %s;", d, p.bits32(a))
	default:
		p.emit("mov.b32 %s, %s;", d, p.extend(from, a))
		p.canonical(t, d)
	}
}

// intToFloat rounds to F32 first, also on the way to F16 and BF16.
func (p *numbers) intToFloat(t, from kir.Type, d, a string) {
	a = p.extend(from, a)
	if a[0] != '%' {
		r := p.new(classOf(from))
		p.move(from, r, a)
		a = r
	}
	r := d
	if t != kir.F32 {
		r = p.new(b32)
	}
	p.emit("cvt.rn.f32.%s %s, %s;", signed(from), r, a)
	if t != kir.F32 {
		p.down(t, d, r)
	}
}

// floatToInt truncates a value of F32, saturating; NaN is 0.
func (p *numbers) floatToInt(t kir.Type, d, a string) {
	switch t.Bits() {
	case 64: // the card makes something else of NaN
		r, nan := p.new(b64), p.new(pred)
		p.emit("cvt.rzi.%s.f32 %s, %s;", signed(t), r, a)
		p.emit("setp.nan.f32 %s, %s, %s;", nan, a, a)
		p.emit("selp.b64 %s, 0, %s, %s;", d, r, nan)
	case 32:
		p.emit("cvt.rzi.%s.f32 %s, %s;", signed(t), d, a)
	default:
		lo, hi := int64(0), int64(t.Mask())
		if t.IsSigned() {
			lo, hi = -int64(t.Mask()>>1)-1, int64(t.Mask()>>1)
		}
		p.emit("cvt.rzi.s32.f32 %s, %s;", d, a)
		p.emit("max.s32 %s, %s, %d;", d, d, lo)
		p.emit("min.s32 %s, %s, %d;", d, d, hi)
		p.canonical(t, d)
	}
}

func (p *values) bitcast(in *kir.Instr) {
	v, t := in.Args[0], in.Type
	a := p.arg(v)
	from, to := classOf(v.Type), classOf(t)
	switch {
	case t.IsPtr():
		p.same(in, a)
		p.ptrs[in.ID] = pointer{reg: p.vals[in.ID]}
	case from == to:
		p.same(in, a)
	case from == b16:
		p.emit("cvt.u32.u16 %s, %s;", p.dest(in), a)
	case to == b16:
		p.emit("cvt.u16.u32 %s, %s;", p.dest(in), p.bits32(a))
	default:
		p.fail(in, "from %s to %s", v.Type, t)
	}
}
