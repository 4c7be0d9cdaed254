package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// address is a pointer taken apart.
type address struct {
	*analysis
	loop    int32 // the innermost loop of the access
	gather  bool  // one varying index is allowed, and Bases that may wrap are not
	terms   []*kir.Instr
	bases   []Scaled
	disp    int64
	offsets [MaxLanes]int64
	moved   bool // offsets are not all zero
	index   Scaled
	work    int // values looked at: a sum may name one value any number of times
}

// maxWork bounds how many values of one address are looked at.
const maxWork = 64

const maxScale = 1 << 20

// accesses describes how each instruction touches memory.
func (a *analysis) accesses() {
	for _, in := range a.order {
		switch in.Op {
		case kir.Load, kir.AtomicLoad, kir.AtomicRMW, kir.AtomicCAS:
			a.info.Access[in.ID] = a.access(in, in.Type.Size())
		case kir.Store, kir.AtomicStore:
			a.info.Access[in.ID] = a.access(in, in.Args[1].Type.Size())
		}
	}
}

func (a *analysis) access(in *kir.Instr, size int) *Access {
	p := in.Args[0]
	acc := &Access{Size: size, Object: a.info.Object[p.ID], Mode: AccessDynamic}
	if acc.Object == 0 {
		return acc
	}
	for _, gather := range [2]bool{false, true} {
		d := &address{analysis: a, loop: a.loop[in.ID], gather: gather}
		if d.pointer(p) && (!d.moved || d.index.Value == nil) {
			d.describe(acc)
			break
		}
	}
	return acc
}

// describe fills in the access.
func (d *address) describe(acc *Access) {
	acc.Terms, acc.Bases, acc.Disp, acc.Index = d.terms, d.bases, d.disp, d.index
	acc.Mode = AccessUniform
	if d.index.Value != nil {
		acc.Mode = AccessGather
	}
	if !d.moved {
		return
	}
	lo, hi := d.offsets[0], d.offsets[0]
	for _, o := range d.offsets[:d.group] {
		lo, hi = min(lo, o), max(hi, o)
	}
	acc.Disp += lo
	acc.Span = hi - lo
	if hi-lo >= 1<<31 {
		*acc = Access{Size: acc.Size, Object: acc.Object, Mode: AccessDynamic}
		return
	}
	if lo == hi {
		return
	}
	var t [MaxLanes]int32
	for l := range d.group {
		t[l] = int32(d.offsets[l] - lo)
	}
	acc.Offsets = d.intern(&t)
	acc.Mode = AccessOffsets
}

// mark and reset allow to try a way to take a value apart.
func (d *address) mark() address { return *d }

func (d *address) reset(m address) {
	m.terms, m.bases, m.work = d.terms[:len(m.terms)], d.bases[:len(m.bases)], d.work
	*d = m
}

// hoisted reports whether a value is there before the innermost loop of the access starts.
func (d *address) hoisted(x *kir.Instr) bool { return d.analysis.loop[x.ID] != d.loop }

// leaf uses scale times a 64-bit value as it is.
func (d *address) leaf(x *kir.Instr, scale int64) bool {
	s := d.info.Patterns[x.ID]
	if s.Kind == Varying || s.Kind == Based && d.gather {
		return false
	}
	if s.Kind == Based {
		d.move(s, scale)
	}
	if scale == 1 {
		d.terms = append(d.terms, x)
	} else {
		d.bases = append(d.bases, Scaled{Value: x, Scale: scale})
	}
	return true
}

// move adds the offsets of a Based value.
func (d *address) move(s Pattern, scale int64) {
	for l := range d.group {
		d.offsets[l] += int64(s.Offsets[l]) * scale
	}
	d.moved = true
}

// pointer takes a pointer apart.
func (d *address) pointer(p *kir.Instr) bool {
	switch p.Op {
	case kir.ParamAddr, kir.RegionAddr:
		return true
	case kir.PtrAdd:
		if _, fixed := p.Args[1].Int(); !fixed && d.info.Patterns[p.ID].Kind == Uniform && d.hoisted(p) {
			break
		}
		m := d.mark()
		if d.pointer(p.Args[0]) && d.integer(p.Args[1], 1) {
			d.disp += int64(p.Imm)
			return true
		}
		d.reset(m)
	}
	return d.leaf(p, 1)
}

// integer takes scale times a 64-bit integer apart.
func (d *address) integer(x *kir.Instr, scale int64) bool {
	if scale > maxScale || scale < -maxScale {
		return false
	}
	if c, ok := x.Int(); ok {
		d.disp += c * scale
		return true
	}
	if scale == 1 && d.info.Patterns[x.ID].Kind == Uniform && d.hoisted(x) && !d.plusConst(x) {
		return d.leaf(x, 1)
	}
	m := d.mark()
	if d.work++; d.work <= maxWork && d.apart(x, scale) {
		return true
	}
	d.reset(m)
	return d.leaf(x, scale)
}

// plusConst reports whether a value is another one and a constant.
func (d *address) plusConst(x *kir.Instr) bool {
	if x.Op != kir.Add && x.Op != kir.Sub {
		return false
	}
	_, ok := x.Args[1].Int()
	return ok
}

func (d *address) apart(x *kir.Instr, scale int64) bool {
	switch x.Op {
	case kir.Add:
		return d.integer(x.Args[0], scale) && d.integer(x.Args[1], scale)
	case kir.Sub:
		return d.integer(x.Args[0], scale) && d.integer(x.Args[1], -scale)
	case kir.Mul:
		if c, ok := x.Args[1].Int(); ok && c <= maxScale && c >= -maxScale {
			return d.integer(x.Args[0], scale*c)
		}
		if c, ok := x.Args[0].Int(); ok && c <= maxScale && c >= -maxScale {
			return d.integer(x.Args[1], scale*c)
		}
	case kir.Shl:
		if c, ok := x.Args[1].Int(); ok && c&63 <= 20 {
			return d.integer(x.Args[0], scale<<(c&63))
		}
	case kir.Convert, kir.Bitcast:
		from := x.Args[0]
		switch {
		case !from.Type.IsInt():
		case from.Type.Size() == 8:
			return d.integer(from, scale)
		case x.Op == kir.Convert:
			return d.narrow(from, scale)
		}
	}
	return false
}

// narrow takes scale times a value of at most 32 bits, extended by its type.
func (d *address) narrow(v *kir.Instr, scale int64) bool {
	if scale == 0 || scale > maxScale || scale < -maxScale {
		return false
	}
	s := d.info.Patterns[v.ID]
	switch s.Kind {
	case Varying:
		if !d.gather || d.index.Value != nil {
			return false
		}
		d.index = Scaled{Value: v, Scale: scale}
		return true
	case Uniform:
		return !d.gather && d.narrowUniform(v, scale)
	}
	if d.gather {
		return false
	}
	extra := int64(0)
	for v.Op == kir.Add {
		x, c, ok := plus(v)
		y := d.info.Patterns[x.ID]
		if !ok || y.Kind != Based || c < 0 || extra+c > maxOffset || y.Offsets != s.Offsets {
			break
		}
		extra += c
		v, s = x, y
	}
	b := Scaled{Value: v, Scale: scale, Span: d.span(s) + extra}
	if b.Span < int64(s.Align) && fits(v.Type, b.Span) {
		b.Span = 0 // the base is a multiple of something larger: nothing wraps
	}
	d.disp += extra * scale
	d.move(s, scale)
	d.bases = append(d.bases, b)
	return true
}

// plus takes v = x + c apart.
func plus(v *kir.Instr) (x *kir.Instr, c int64, ok bool) {
	if c, ok = v.Args[1].Int(); ok {
		return v.Args[0], c, true
	}
	c, ok = v.Args[0].Int()
	return v.Args[1], c, ok
}

// fits reports whether a small positive offset is a value of the type.
func fits(t kir.Type, v int64) bool {
	n := t.Bits()
	if t.IsSigned() {
		n--
	}
	return v < 1<<n
}

func (d *address) narrowUniform(v *kir.Instr, scale int64) bool {
	if v.Type.IsSigned() || scale != 1 && scale != 2 && scale != 4 && scale != 8 {
		return false
	}
	for v.Op == kir.Add {
		x, c, ok := plus(v)
		y := d.info.Patterns[x.ID]
		if !ok || y.Kind != Uniform || c < 0 || c >= int64(y.Align) {
			break
		}
		d.disp += c * scale
		v = x
	}
	d.bases = append(d.bases, Scaled{Value: v, Scale: scale})
	return true
}
