package ptx

import "github.com/mlxlua/mlxlua/metal/kir"

// Atomics, relaxed. Their addresses must be aligned: what is not is a fault.

// scope is who sees an atomic operation in a space.
func scope(space string) string {
	if space == "shared" {
		return "cta"
	}
	return "gpu"
}

// atomicAccess is access for an atomic operation on a type.
func (p *memory) atomicAccess(in *kir.Instr, t kir.Type) place {
	size := t.Size()
	a := p.access(in, size, in.Op != kir.AtomicLoad)
	if a.align < size {
		a = p.named(a)
		p.unaligned(a, size, p.faultAt(in, p.ptrs[in.Args[0].ID]))
	}
	return a
}

func (p *memory) atomicLoad(in *kir.Instr) {
	a := p.atomicAccess(in, in.Type)
	p.emit("ld.relaxed.%s.%s.%s %s, %s;", scope(a.space), a.space, unit(in.Type.Size()), p.dest(in), a.at(0))
}

func (p *memory) atomicStore(in *kir.Instr) {
	v := in.Args[1]
	value := p.register(v.Type, p.arg(v))
	a := p.atomicAccess(in, v.Type)
	p.emit("st.relaxed.%s.%s.%s %s, %s;", scope(a.space), a.space, unit(v.Type.Size()), a.at(0), value)
}

// register makes a register of what may be a literal.
func (p *emitter) register(t kir.Type, a string) string {
	if a[0] == '%' {
		return a
	}
	r := p.new(classOf(t))
	p.move(t, r, a)
	return r
}

// atom prints an atomic instruction that gives the old value, or none where nobody wants it.
func (p *memory) atom(a place, op, typ, d, value string, wanted bool) {
	if !wanted && op != "exch" {
		p.emit("red.relaxed.%s.%s.%s.%s %s, %s;", scope(a.space), a.space, op, typ, a.at(0), value)
		return
	}
	p.emit("atom.relaxed.%s.%s.%s.%s %s, %s, %s;", scope(a.space), a.space, op, typ, d, a.at(0), value)
}

func (p *memory) atomicRMW(in *kir.Instr) {
	t := in.Type
	value := p.register(t, p.arg(in.Args[1]))
	a := p.atomicAccess(in, t)
	d, wanted := p.dest(in), p.flow.uses[in.ID] > 0
	if t == kir.U8 { // Exchange
		p.byteLoop(a, d, "", value)
		return
	}
	bits, plain := "b32", "u32"
	if t.Bits() == 64 {
		bits, plain = "b64", "u64"
	}
	if in.Mode == kir.ModeSub { // adds the negative
		r := p.new(classOf(t))
		if t == kir.F32 {
			p.emit("xor.b32 %s, %s, 0x80000000;", r, value)
		} else {
			p.emit("neg.s%d %s, %s;", t.Bits(), r, value)
		}
		value = r
	}
	switch in.Mode {
	case kir.ModeAdd, kir.ModeSub:
		if t == kir.F32 {
			plain = "f32"
		}
		p.atom(a, "add", plain, d, value, wanted)
	case kir.ModeMin, kir.ModeMax:
		if t == kir.F32 {
			p.atomicExtreme(a, in.Mode, d, value)
			return
		}
		p.atom(a, in.Mode.String(), signed(t), d, value, wanted)
	case kir.ModeAnd, kir.ModeOr, kir.ModeXor:
		p.atom(a, in.Mode.String(), bits, d, value, wanted)
	case kir.ModeExchange:
		p.atom(a, "exch", bits, d, value, wanted)
	default:
		p.unprinted(in.Op, t)
	}
}

// atomicExtreme is an atomic Min or Max of F32, which no card has. The bits of floats are in order as signed integers
// where they are positive, and in reverse as unsigned ones where they are negative; so the value's sign chooses. That
// is wrong only where a NaN is: a NaN to be stored changes nothing, one that was there takes a loop.
func (p *memory) atomicExtreme(a place, mode kir.Mode, d, value string) {
	a = p.named(a)
	nan, negative := p.new(pred), p.new(pred)
	done, was := p.label(), p.label()
	signed, unsigned := "min.s32", "max.u32"
	if mode == kir.ModeMax {
		signed, unsigned = "max.s32", "min.u32"
	}
	s := scope(a.space)
	p.emit("setp.nan.f32 %s, %s, %s;", nan, value, value)
	p.emit("@!%s bra %s;", nan, was)
	p.emit("ld.relaxed.%s.%s.b32 %s, %s;", s, a.space, d, a.at(0))
	p.emit("bra %s;", done)
	p.emit("%s:", was)
	p.emit("setp.lt.s32 %s, %s, 0;", negative, value)
	p.emit("@%s atom.relaxed.%s.%s.%s %s, %s, %s;", negative, s, a.space, unsigned, d, a.at(0), value)
	p.emit("@!%s atom.relaxed.%s.%s.%s %s, %s, %s;", negative, s, a.space, signed, d, a.at(0), value)
	p.emit("setp.nan.f32 %s, %s, %s;", nan, d, d)
	p.emit("@!%s bra %s;", nan, done)
	old, next, seen, again, top := p.new(b32), p.new(b32), p.new(b32), p.new(pred), p.label()
	p.emit("ld.relaxed.%s.%s.b32 %s, %s;", s, a.space, old, a.at(0))
	p.emit("%s:", top)
	p.emit("%s.f32 %s, %s, %s;", mode, next, old, value)
	p.emit("atom.relaxed.%s.%s.cas.b32 %s, %s, %s, %s;", s, a.space, seen, a.at(0), old, next)
	p.emit("setp.ne.u32 %s, %s, %s;", again, seen, old)
	p.emit("mov.b32 %s, %s;", old, seen)
	p.emit("@%s bra %s;", again, top)
	p.emit("%s:", done)
}

func (p *memory) atomicCAS(in *kir.Instr) {
	t := in.Type
	want, value := p.register(t, p.arg(in.Args[1])), p.register(t, p.arg(in.Args[2]))
	a := p.atomicAccess(in, t)
	d := p.dest(in)
	if t == kir.U8 {
		p.byteLoop(a, d, want, value)
		return
	}
	p.emit("atom.relaxed.%s.%s.cas.b%d %s, %s, %s, %s;", scope(a.space), a.space, t.Bits(), d, a.at(0), want, value)
}

// byteLoop exchanges a byte, if it is what is wanted where that is given, by exchanging the word around it.
func (p *memory) byteLoop(a place, d, want, value string) {
	a = p.named(a)
	s := scope(a.space)
	word, shift := p.new(b64), p.new(b32)
	old, next, seen, hole := p.new(b32), p.new(b32), p.new(b32), p.new(b32)
	other, again := p.new(pred), p.new(pred)
	top, done := p.label(), p.label()
	p.emit("and.b64 %s, %s, -4;", word, a.reg)
	p.emit("cvt.u32.u64 %s, %s;", shift, a.reg)
	p.emit("and.b32 %s, %s, 3;", shift, shift)
	p.emit("shl.b32 %s, %s, 3;", shift, shift)
	p.emit("mov.b32 %s, 255;", hole)
	p.emit("shl.b32 %s, %s, %s;", hole, hole, shift)
	p.emit("not.b32 %s, %s;", hole, hole)
	p.emit("ld.relaxed.%s.%s.b32 %s, [%s];", s, a.space, old, word)
	p.emit("%s:", top)
	p.emit("shr.u32 %s, %s, %s;", d, old, shift)
	p.emit("and.b32 %s, %s, 255;", d, d)
	if want != "" {
		p.emit("setp.ne.u32 %s, %s, %s;", other, d, want)
		p.emit("@%s bra %s;", other, done)
	}
	p.emit("and.b32 %s, %s, %s;", next, old, hole)
	p.emit("shl.b32 %s, %s, %s;", seen, value, shift)
	p.emit("or.b32 %s, %s, %s;", next, next, seen)
	p.emit("atom.relaxed.%s.%s.cas.b32 %s, [%s], %s, %s;", s, a.space, seen, word, old, next)
	p.emit("setp.ne.u32 %s, %s, %s;", again, seen, old)
	p.emit("mov.b32 %s, %s;", old, seen)
	p.emit("@%s bra %s;", again, top)
	p.emit("%s:", done)
}

func (p *memory) fence(in *kir.Instr) {
	switch {
	case in.Mode&kir.MemDevice != 0:
		p.emit("fence.acq_rel.gpu;")
	case in.Mode&kir.MemThreadgroup != 0:
		p.emit("fence.acq_rel.cta;")
	}
}
