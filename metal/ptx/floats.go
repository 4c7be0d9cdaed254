package ptx

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Floats. F16 and BF16 are computed in F32 and rounded, as kir says, where the card has no instruction that is known to
// give the same bits: fma.rn.f16 and fma.rn.bf16 round once where kir rounds twice. Always .rn: without it the driver's
// compiler makes one fma of a mul and an add. Never neg.f32 or abs.f32: they change NaNs to another.

// up returns the F32 register of a value of a float type.
func (p *numbers) up(t kir.Type, a string) string {
	switch t {
	case kir.F16:
		r := p.new(b32)
		p.emit("cvt.f32.f16 %s, %s;", r, a)
		return r
	case kir.BF16:
		r := p.new(b32)
		p.emit("cvt.u32.u16 %s, %s;", r, a)
		p.emit("shl.b32 %s, %s, 16;", r, r)
		return r
	}
	return a
}

// down rounds a value of F32 to a float type.
func (p *numbers) down(t kir.Type, d, a string) {
	switch {
	case t == kir.F16:
		p.emit("cvt.rn.f16.f32 %s, %s;", d, a)
	case t == kir.BF16 && p.opt.SM >= 80:
		p.emit("cvt.rn.bf16.f32 %s, %s;", d, a)
	case t == kir.BF16:
		p.downBF16(d, a)
	default:
		p.emit("mov.b32 %s, %s;", d, a)
	}
}

// downBF16 is cvt.rn.bf16.f32 where there is none.
func (p *numbers) downBF16(d, a string) {
	x, nan, hi, quiet, odd, sum := p.new(b32), p.new(pred), p.new(b32), p.new(b32), p.new(b32), p.new(b32)
	p.emit("mov.b32 %s, %s;", x, a)
	p.emit("and.b32 %s, %s, 0x7fffffff;", odd, x)
	p.emit("setp.gt.u32 %s, %s, 0x7f800000;", nan, odd)
	p.emit("shr.u32 %s, %s, 16;", hi, x)
	p.emit("or.b32 %s, %s, 0x40;", quiet, hi)
	p.emit("and.b32 %s, %s, 1;", odd, hi)
	p.emit("add.u32 %s, %s, 0x7fff;", sum, x)
	p.emit("add.u32 %s, %s, %s;", sum, sum, odd)
	p.emit("shr.u32 %s, %s, 16;", sum, sum)
	p.emit("selp.b32 %s, %s, %s, %s;", sum, quiet, sum, nan)
	p.emit("cvt.u16.u32 %s, %s;", d, sum)
}

var singles = map[kir.Op]string{
	kir.Add: "add.rn.f32", kir.Sub: "sub.rn.f32", kir.Mul: "mul.rn.f32", kir.Div: "div.rn.f32", kir.Min: "min.f32",
	kir.Max: "max.f32", kir.Fma: "fma.rn.f32", kir.Sqrt: "sqrt.rn.f32", kir.Floor: "cvt.rmi.f32.f32",
	kir.Ceil: "cvt.rpi.f32.f32", kir.Trunc: "cvt.rzi.f32.f32", kir.Rint: "cvt.rni.f32.f32",
}

// floats prints an operation on a float type.
func (p *numbers) floats(op kir.Op, t kir.Type, d string, args []string) {
	if op == kir.Neg || op == kir.Abs { // of the bits
		w, m := t.Bits(), t.Mask()
		if op == kir.Neg {
			p.emit("xor.b%d %s, %s, %s;", w, d, p.bits32(args[0]), literal(m^m>>1))
		} else {
			p.emit("and.b%d %s, %s, %s;", w, d, p.bits32(args[0]), literal(m>>1))
		}
		return
	}
	if p.native(op, t, d, args) {
		return
	}
	wide := make([]string, len(args))
	for i, a := range args {
		wide[i] = p.up(t, a)
	}
	r := d
	if t != kir.F32 {
		r = p.new(b32)
	}
	switch op {
	case kir.Rem:
		p.mod(r, wide[0], wide[1])
	case kir.Scale:
		p.scale(r, wide[0], wide[1])
	default:
		name := singles[op]
		if name == "" {
			p.unprinted(op, t)
			return
		}
		line := fmt.Sprintf("%s %s", name, r)
		for _, a := range wide {
			line += ", " + a
		}
		p.emit("%s;", line)
	}
	if t != kir.F32 {
		p.down(t, d, r)
	}
}

// bits32 makes a register of a literal of F32, which operations on bits do not take.
func (p *emitter) bits32(a string) string {
	if a[0] == '%' {
		return a
	}
	r := p.new(b32)
	p.emit("mov.b32 %s, %s;", r, a)
	return r
}

// native prints an operation on F16 or BF16 as the card's own, where there is one with the same bits.
func (p *numbers) native(op kir.Op, t kir.Type, d string, args []string) bool {
	half, brain := t == kir.F16, t == kir.BF16 && p.opt.SM >= 90
	name := map[kir.Type]string{kir.F16: "f16", kir.BF16: "bf16"}[t]
	switch op {
	case kir.Add, kir.Sub, kir.Mul:
		if half || brain {
			p.emit("%s.rn.%s %s, %s, %s;", op, name, d, args[0], args[1])
			return true
		}
	case kir.Min, kir.Max:
		if half && p.opt.SM >= 80 || brain {
			p.emit("%s.%s %s, %s, %s;", op, name, d, args[0], args[1])
			return true
		}
	}
	return false
}

func (p *values) pairDot(in *kir.Instr) {
	d := p.dest(in)
	a, b, c := p.bits32(p.arg32(in.Args[0])), p.bits32(p.arg32(in.Args[1])), p.arg32(in.Args[2])
	x, y := p.new(b32), p.new(b32)
	p.emit("and.b32 %s, %s, 0xffff0000;", x, a)
	p.emit("and.b32 %s, %s, 0xffff0000;", y, b)
	p.emit("fma.rn.ftz.f32 %s, %s, %s, %s;", d, x, y, c)
	p.emit("shl.b32 %s, %s, 16;", x, a)
	p.emit("shl.b32 %s, %s, 16;", y, b)
	p.emit("fma.rn.ftz.f32 %s, %s, %s, %s;", d, x, y, d)
}

// scale is x * 2^floor(n), rounded once: in float64, which holds every product of a float32 and 2^400 or 2^-400, and
// nothing larger can differ.
func (p *numbers) scale(d, x, n string) {
	down, exp, zero, nan := p.new(b32), p.new(b32), p.new(b32), p.new(pred)
	factor, wide := p.new(b64), p.new(b64)
	nn := p.bits32(n)
	p.emit("cvt.rmi.f32.f32 %s, %s;", down, nn)
	p.emit("max.f32 %s, %s, 0fC3C80000;", down, down)
	p.emit("min.f32 %s, %s, 0f43C80000;", down, down)
	p.emit("cvt.rzi.s32.f32 %s, %s;", exp, down)
	p.emit("add.s32 %s, %s, 1023;", exp, exp)
	p.emit("shl.b32 %s, %s, 20;", exp, exp)
	p.emit("mov.b32 %s, 0;", zero)
	p.emit("mov.b64 %s, {%s, %s};", factor, zero, exp)
	p.emit("cvt.f64.f32 %s, %s;", wide, p.bits32(x))
	p.emit("mul.rn.f64 %s, %s, %s;", wide, wide, factor)
	r := p.new(b32)
	p.emit("cvt.rn.f32.f64 %s, %s;", r, wide)
	p.emit("setp.nan.f32 %s, %s, %s;", nan, nn, nn)
	p.emit("selp.b32 %s, %s, %s, %s;", d, nn, r, nan)
}

// mod is C's fmod: a long division of the mantissas, 40 bits of the quotient a step. No instruction is exact.
func (p *numbers) mod(d, a, b string) {
	a, b = p.bits32(a), p.bits32(b)
	r := func() string { return p.new(b32) }
	x, y, sign, ea, eb, ma, mb, out := r(), r(), r(), r(), r(), r(), r(), r()
	bad, q := p.new(pred), p.new(pred)
	num, den := p.new(b64), p.new(b64)
	top, outside, end := p.label(), p.label(), p.label()
	p.emit("and.b32 %s, %s, 0x7fffffff;", x, a)
	p.emit("and.b32 %s, %s, 0x7fffffff;", y, b)
	p.emit("and.b32 %s, %s, 0x80000000;", sign, a)
	p.emit("mov.b32 %s, 0x7fc00000;", out)
	p.emit("setp.ge.u32 %s, %s, 0x7f800000;", bad, x)
	p.emit("setp.gt.or.u32 %s, %s, 0x7f800000, %s;", bad, y, bad)
	p.emit("setp.eq.or.u32 %s, %s, 0, %s;", bad, y, bad)
	p.emit("@%s bra %s;", bad, end)
	p.emit("mov.b32 %s, %s;", out, a)
	p.emit("setp.lt.u32 %s, %s, %s;", q, x, y)
	p.emit("@%s bra %s;", q, end)
	for _, m := range [2][3]string{{x, ea, ma}, {y, eb, mb}} { // exponents from 1, and mantissas
		p.emit("shr.u32 %s, %s, 23;", m[1], m[0])
		p.emit("and.b32 %s, %s, 0x7fffff;", m[2], m[0])
		p.emit("setp.ne.u32 %s, %s, 0;", q, m[1])
		p.emit("@%s or.b32 %s, %s, 0x800000;", q, m[2], m[2])
		p.emit("max.u32 %s, %s, 1;", m[1], m[1])
	}
	left, step := r(), r()
	p.emit("sub.u32 %s, %s, %s;", left, ea, eb)
	p.emit("cvt.u64.u32 %s, %s;", num, ma)
	p.emit("cvt.u64.u32 %s, %s;", den, mb)
	p.emit("rem.u64 %s, %s, %s;", num, num, den)
	p.emit("%s:", top)
	p.emit("setp.eq.u32 %s, %s, 0;", q, left)
	p.emit("@%s bra %s;", q, outside)
	p.emit("min.u32 %s, %s, 40;", step, left)
	p.emit("sub.u32 %s, %s, %s;", left, left, step)
	p.emit("shl.b64 %s, %s, %s;", num, num, step)
	p.emit("rem.u64 %s, %s, %s;", num, num, den)
	p.emit("bra %s;", top)
	p.emit("%s:", outside)
	p.emit("cvt.u32.u64 %s, %s;", ma, num)
	p.emit("mov.b32 %s, %s;", out, sign)
	p.emit("setp.eq.u32 %s, %s, 0;", q, ma)
	p.emit("@%s bra %s;", q, end)
	p.emit("clz.b32 %s, %s;", step, ma)
	p.emit("sub.u32 %s, %s, 8;", step, step)
	p.emit("sub.u32 %s, %s, 1;", left, eb)
	p.emit("min.u32 %s, %s, %s;", step, step, left)
	p.emit("shl.b32 %s, %s, %s;", ma, ma, step)
	p.emit("sub.u32 %s, %s, %s;", eb, eb, step)
	p.emit("and.b32 %s, %s, 0x800000;", left, ma)
	p.emit("setp.eq.u32 %s, %s, 0;", q, left)
	p.emit("and.b32 %s, %s, 0x7fffff;", ma, ma)
	p.emit("shl.b32 %s, %s, 23;", eb, eb)
	p.emit("selp.b32 %s, 0, %s, %s;", eb, eb, q)
	p.emit("or.b32 %s, %s, %s;", out, ma, eb)
	p.emit("or.b32 %s, %s, %s;", out, out, sign)
	p.emit("%s:", end)
	p.emit("mov.b32 %s, %s;", d, out)
}
