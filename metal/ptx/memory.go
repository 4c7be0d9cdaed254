package ptx

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// objectCode is a memory object as the text knows it.
type objectCode struct {
	space    kir.Space
	align    int
	readOnly bool
	inline   bool   // in the launch's parameter
	region   bool   // its size is known
	size     int64  // of regions
	offset   int    // of a threadgroup's regions
	reg, len string // address and length
}

// pointer is a pointer value. Where the object is known it is an offset, of which the low 48 bits count: a register and
// a constant. Else reg has all 64 bits.
type pointer struct {
	object int // 0: not known
	reg    string
	imm    int64
	// most is the most that the offset in reg can be, if it is known not to be negative; else -1.
	most int64
}

const offsetMask = kir.PtrOffsetMask

// named returns the object of a pointer that is made of the address of one, 0 of others.
func named(v *kir.Instr) int {
	for v.Op == kir.PtrAdd {
		v = v.Args[0]
	}
	if v.Op == kir.ParamAddr || v.Op == kir.RegionAddr {
		return 1
	}
	return 0
}

func (p *values) paramAddr(in *kir.Instr) { p.ptrs[in.ID] = pointer{object: int(in.Imm) + 1} }

func (p *values) regionAddr(in *kir.Instr) {
	p.ptrs[in.ID] = pointer{object: int(in.Imm) + 1 + len(p.k.Params)}
}

// fullPointer returns all 64 bits of a pointer.
func (p *values) fullPointer(v *kir.Instr) string { return p.full(p.ptrs[v.ID]) }

func (p *values) full(q pointer) string {
	if q.object == 0 {
		return q.reg
	}
	object := uint64(q.object) << kir.PtrObjectShift
	if q.reg == "" {
		return literal(object | uint64(q.imm)&offsetMask)
	}
	d := p.new(b64)
	p.emit("add.u64 %s, %s, %s;", d, q.reg, literal(uint64(q.imm)))
	p.emit("and.b64 %s, %s, %s;", d, d, literal(offsetMask))
	p.emit("or.b64 %s, %s, %s;", d, d, literal(object))
	return d
}

func (p *values) ptrAdd(in *kir.Instr) {
	q, by := p.ptrs[in.Args[0].ID], in.Args[1]
	if q.object == 0 {
		d, sum := p.dest(in), p.new(b64)
		p.emit("add.u64 %s, %s, %s;", sum, q.reg, p.arg(by))
		if in.Imm != 0 {
			p.emit("add.u64 %s, %s, %s;", sum, sum, literal(in.Imm))
		}
		p.emit("and.b64 %s, %s, %s;", sum, sum, literal(offsetMask))
		p.emit("and.b64 %s, %s, %s;", d, q.reg, literal(^uint64(offsetMask)))
		p.emit("or.b64 %s, %s, %s;", d, d, sum)
		p.ptrs[in.ID] = pointer{reg: d}
		return
	}
	q.imm += int64(in.Imm)
	if by.Op == kir.Const {
		q.imm += int64(by.Imm)
		p.ptrs[in.ID] = q
		return
	}
	most, ok := p.flow.upTo(by)
	if q.reg == "" {
		q.reg, q.most = p.arg(by), -1
		if ok {
			q.most = most
		}
		p.ptrs[in.ID] = q
		return
	}
	if q.most += most; !ok || q.most-most < 0 || q.most >= 1<<47 {
		q.most = -1
	}
	q.reg = p.sum(q.reg, by)
	p.ptrs[in.ID] = q
}

// sum returns a register with the sum of two offsets: the one that a block around has it in already, so that pointers
// that differ by constants are known to.
func (p *values) sum(reg string, by *kir.Instr) string {
	key := sumKey{reg, by.ID}
	d, ok := p.sums[key]
	if !ok {
		d = p.new(b64)
		p.emit("add.u64 %s, %s, %s;", d, reg, p.arg(by))
		p.sums[key], p.summed = d, append(p.summed, key)
	}
	return d
}

type sumKey struct {
	reg string
	by  int // Instr.ID
}

func (p *values) ptrDiff(in *kir.Instr) {
	d, a, b := p.dest(in), p.new(b64), p.new(b64)
	p.emit("shl.b64 %s, %s, 16;", a, p.arg(in.Args[0]))
	p.emit("shr.s64 %s, %s, 16;", a, a)
	p.emit("shl.b64 %s, %s, 16;", b, p.arg(in.Args[1]))
	p.emit("shr.s64 %s, %s, 16;", b, b)
	p.emit("sub.u64 %s, %s, %s;", d, a, b)
}

// place is where an access goes, after its check.
type place struct {
	space string // "global", "shared", "local" or "param"
	reg   string // the address
	imm   int64  // to be added to it
	align int    // what the address is known to be a multiple of
}

func (a place) at(offset int) string {
	if a.imm+int64(offset) == 0 {
		return "[" + a.reg + "]"
	}
	return fmt.Sprintf("[%s+%d]", a.reg, a.imm+int64(offset))
}

var spaceNames = map[kir.Space]string{
	kir.Device: "global", kir.Constant: "global", kir.Threadgroup: "shared", kir.Thread: "local",
}

// access prints the check that size bytes are inside the object that a pointer points into, and returns where they are.
// What fails it goes to a record of the fault, and its thread ends.
func (p *memory) access(in *kir.Instr, size int, write bool) place {
	v := in.Args[0]
	q := p.ptrs[v.ID]
	space, _ := v.Type.Space()
	a := place{space: spaceNames[space], align: 1 << min(4, p.flow.trailing(v))}
	if q.object == 0 {
		return p.accessAny(in, q, a, size, write)
	}
	o := &p.objects[q.object]
	a.align = min(a.align, o.align)
	if o.inline {
		a.space = "param"
	}
	fault := func() string { return p.faultAt(in, q) }
	if write && o.readOnly {
		p.emit("bra %s;", fault())
		return place{space: a.space, reg: o.reg, align: 16}
	}
	if q.reg == "" { // a constant
		a.reg, a.imm = o.reg, q.imm&offsetMask
		switch end := uint64(a.imm) + uint64(size); {
		case end > 1<<31:
			a.imm = 0 // the check fails
			p.emit("bra %s;", fault())
		case o.region && end > uint64(o.size):
			a.imm = 0
			p.emit("bra %s;", fault())
		case !o.region:
			p.checkEnd(literal(end), o.len, fault())
		}
		if o.region && o.space == kir.Thread && o.size > 0 { // by name, so that it may be in registers
			a.reg = p.regionName(q.object - 1 - len(p.k.Params))
		}
		return a
	}
	end, address := p.new(b64), p.new(b64)
	if q.most >= 0 && q.imm >= 0 && q.imm < 1<<30 {
		p.emit("add.u64 %s, %s, %d;", end, q.reg, q.imm+int64(size))
		p.checkEnd(end, o.len, fault())
		p.emit("add.u64 %s, %s, %s;", address, o.reg, q.reg)
		a.reg, a.imm = address, q.imm
		return a
	}
	offset := p.new(b64)
	p.emit("add.u64 %s, %s, %s;", offset, q.reg, literal(uint64(q.imm)))
	p.emit("and.b64 %s, %s, %s;", offset, offset, literal(offsetMask))
	p.emit("add.u64 %s, %s, %d;", end, offset, size)
	p.checkEnd(end, o.len, fault())
	p.emit("add.u64 %s, %s, %s;", address, o.reg, offset)
	a.reg = address
	return a
}

func (p *memory) checkEnd(end, length, fault string) {
	out := p.new(pred)
	p.emit("setp.lt.u64 %s, %s, %s;", out, length, end)
	p.emit("@%s bra %s;", out, fault)
}

// accessAny is access by a pointer whose object is known when the kernel runs.
func (p *memory) accessAny(in *kir.Instr, q pointer, a place, size int, write bool) place {
	object, offset, end, length, base := p.new(b64), p.new(b64), p.new(b64), p.new(b64), p.new(b64)
	p.emit("shr.u64 %s, %s, %d;", object, q.reg, kir.PtrObjectShift)
	p.emit("and.b64 %s, %s, %s;", offset, q.reg, literal(offsetMask))
	p.emit("mov.b64 %s, 0;", length)
	p.emit("mov.b64 %s, 0;", base)
	for _, ob := range p.mayReach(in.Args[0]) {
		o := &p.objects[ob]
		if write && o.readOnly {
			continue
		}
		a.align = min(a.align, o.align)
		is := p.new(pred)
		p.emit("setp.eq.u64 %s, %s, %d;", is, object, ob)
		p.emit("selp.b64 %s, %s, %s, %s;", length, o.len, length, is)
		p.emit("selp.b64 %s, %s, %s, %s;", base, o.reg, base, is)
	}
	p.emit("add.u64 %s, %s, %d;", end, offset, size)
	p.checkEnd(end, length, p.faultAt(in, q))
	a.reg = p.new(b64)
	p.emit("add.u64 %s, %s, %s;", a.reg, base, offset)
	return a
}

// faultAt returns the label where a thread goes whose access by a pointer must not happen.
func (p *memory) faultAt(in *kir.Instr, q pointer) string {
	label := p.label()
	body := p.body
	p.body = p.cold
	p.emit("%s:", label)
	p.emit("mov.b64 %s, %s;", faultPointer, p.full(q))
	p.emit("mov.b32 %s, %d;", faultSite, len(p.sites))
	p.emit("bra FAULT;")
	p.body, p.cold = body, p.body
	p.sites = append(p.sites, in)
	return label
}

// faults prints where all faults end: the first one is recorded, the words are set that tell of it, and the thread
// ends.
func (p *memory) faults() {
	if len(p.sites) == 0 {
		return
	}
	body := p.body
	p.body = p.cold
	control, taken, lost := p.new(b64), p.new(b32), p.new(pred)
	p.emit("FAULT:")
	p.emit("ld.param.b64 %s, [args+%d];", control, argControl)
	p.emit("cvta.to.global.u64 %s, %s;", control, control)
	p.emit("atom.relaxed.gpu.global.cas.b32 %s, [%s+%d], 0, 1;", taken, control, controlTaken)
	p.emit("setp.ne.u32 %s, %s, 0;", lost, taken)
	p.emit("@%s exit;", lost)
	tag := p.param32(argTag)
	p.emit("st.global.b32 [%s+%d], %s;", control, controlTag, tag)
	p.emit("st.global.b32 [%s+%d], %s;", control, controlSite, faultSite)
	p.emit("st.global.b64 [%s+%d], %s;", control, controlPointer, faultPointer)
	p.emit("st.relaxed.gpu.global.b32 [%s+%d], 1;", control, controlHalt)
	p.tell(argFaultWord, "gpu")
	p.tell(argNotice, "sys")
	p.emit("exit;")
	p.body, p.cold = body, p.body
}

// stopIfAsked prints the question whether to stop. Most threads go on at once; a stop leaves the launch's tag.
func (p *memory) stopIfAsked(on string) {
	word, halted, stops := p.new(b32), p.new(pred), p.new(pred)
	control, stop, tag := p.param64(argControl), p.param64(argStop), p.new(b32)
	p.emit("cvta.to.global.u64 %s, %s;", control, control)
	p.emit("ld.relaxed.gpu.global.b32 %s, [%s+%d];", word, control, controlHalt)
	p.emit("setp.ne.u32 %s, %s, 0;", halted, word)
	p.emit("@%s exit;", halted)
	p.ifSet(stop, stops, on)
	p.emit("ld.param.b32 %s, [args+%d];", tag, argTag)
	p.emit("st.relaxed.gpu.global.b32 [%s+4], %s;", stop, tag)
	p.tell(argNotice, "sys")
	p.emit("exit;")
}

// ifSet goes on where there is a word at an address and that is not 0, and else to a label. The address then is one of
// global memory, and set is true.
func (p *memory) ifSet(address, set, label string) {
	word := p.new(b32)
	p.emit("setp.eq.u64 %s, %s, 0;", set, address)
	p.emit("@%s bra %s;", set, label)
	p.emit("cvta.to.global.u64 %s, %s;", address, address)
	p.emit("ld.relaxed.gpu.global.b32 %s, [%s];", word, address)
	p.emit("setp.ne.u32 %s, %s, 0;", set, word)
	p.emit("@!%s bra %s;", set, label)
}

// tell sets the word whose address is in the parameter, if there is one.
func (p *memory) tell(offset int, scope string) {
	address, none, on := p.param64(offset), p.new(pred), p.label()
	p.emit("setp.eq.u64 %s, %s, 0;", none, address)
	p.emit("@%s bra %s;", none, on)
	p.emit("cvta.to.global.u64 %s, %s;", address, address)
	p.emit("st.relaxed.%s.global.b32 [%s], 1;", scope, address)
	p.emit("%s:", on)
}

// skips ends all threads where a word says that the launch is not to run.
func (p *memory) skips() {
	for i := range 2 {
		on := p.label()
		p.ifSet(p.param64(argSkips+8*i), p.new(pred), on)
		p.emit("exit;")
		p.emit("%s:", on)
	}
}

// address makes one register of a place's address.
func (p *memory) address(a place) place {
	if a.imm != 0 {
		d := p.new(b64)
		p.emit("add.u64 %s, %s, %d;", d, a.reg, a.imm)
		a.reg, a.imm = d, 0
	}
	return a
}

// unit is the instruction's suffix for so many bytes.
func unit(size int) string {
	if size == 1 {
		return "u8"
	}
	return fmt.Sprintf("b%d", 8*size)
}

func (p *memory) load(in *kir.Instr) { p.loadAt(in, p.access(in, in.Type.Size(), false)) }

// loadAt loads what is at a place that was checked.
func (p *memory) loadAt(in *kir.Instr, a place) {
	d := p.dest(in)
	if in.Type == kir.Bool {
		t := p.new(b32)
		p.emit("ld.%s.u8 %s, %s;", a.space, t, a.at(0))
		p.emit("setp.ne.u32 %s, %s, 0;", d, t)
		return
	}
	p.loadBytes(a, in.Type, d)
	if in.Type.IsPtr() {
		p.ptrs[in.ID] = pointer{reg: d}
	}
}

// loadBytes loads a value that is somewhere.
func (p *memory) loadBytes(a place, t kir.Type, d string) {
	p.byAlignment(a, t, func(a place, unit string) {
		p.emit("ld.%s.%s %s, %s;", a.space, unit, d, a.at(0))
	}, func(a place, word func(w int) (at, size int)) {
		var words [2]string
		for w := range (t.Size() + 3) / 4 {
			at, size := word(w)
			words[w] = p.loadWord(a, at, size)
		}
		switch classOf(t) {
		case b16:
			p.emit("cvt.u16.u32 %s, %s;", d, words[0])
		case b32:
			p.emit("mov.b32 %s, %s;", d, words[0])
		default:
			p.emit("mov.b64 %s, {%s, %s};", d, words[0], words[1])
		}
	})
}

// byAlignment has a value of a type loaded or stored as a whole, or in words of so many bytes where the address turns
// out not to be aligned.
func (p *memory) byAlignment(a place, t kir.Type, whole func(a place, unit string),
	inWords func(a place, word func(w int) (at, size int))) {
	size := t.Size()
	u := unit(size)
	if size == 2 && classOf(t) == b32 {
		u = "u16"
	}
	if a.align >= size {
		whole(a, u)
		return
	}
	a = p.named(a)
	pieces, done := p.label(), p.label()
	p.unaligned(a, size, pieces)
	whole(a, u)
	p.emit("bra %s;", done)
	p.emit("%s:", pieces)
	inWords(a, func(w int) (int, int) { return 4 * w, min(4, size) })
	p.emit("%s:", done)
}

// named makes a place whose address is a register of one that may be a name.
func (p *memory) named(a place) place {
	if a.reg[0] == '%' {
		return p.address(a)
	}
	t, d := p.new(b32), p.new(b64)
	p.emit("mov.u32 %s, %s;", t, a.reg)
	p.emit("cvt.u64.u32 %s, %s;", d, t)
	a.reg = d
	return p.address(a)
}

// unaligned jumps if an address is no multiple of size.
func (p *memory) unaligned(a place, size int, to string) {
	t, odd := p.new(b64), p.new(pred)
	p.emit("and.b64 %s, %s, %d;", t, a.reg, size-1)
	p.emit("setp.ne.u64 %s, %s, 0;", odd, t)
	p.emit("@%s bra %s;", odd, to)
}

// loadWord loads up to four bytes in pieces.
func (p *memory) loadWord(a place, offset, size int) string {
	step := min(a.align, size)
	r := p.new(b32)
	for at := 0; at < size; at += step {
		t := p.new(b32)
		u := unit(step)
		if step == 2 {
			u = "u16"
		}
		p.emit("ld.%s.%s %s, %s;", a.space, u, t, a.at(offset+at))
		if at == 0 {
			p.emit("mov.b32 %s, %s;", r, t)
			continue
		}
		p.emit("shl.b32 %s, %s, %d;", t, t, 8*at)
		p.emit("or.b32 %s, %s, %s;", r, r, t)
	}
	return r
}

func (p *memory) store(in *kir.Instr) {
	value := p.arg(in.Args[1])
	p.storeAt(in, p.access(in, in.Args[1].Type.Size(), true), value)
}

// storeAt stores a value at a place that was checked.
func (p *memory) storeAt(in *kir.Instr, a place, value string) {
	t := in.Args[1].Type
	if t == kir.Bool {
		b := p.new(b32)
		p.emit("selp.b32 %s, 1, 0, %s;", b, value)
		p.emit("st.%s.u8 %s, %s;", a.space, a.at(0), b)
		return
	}
	value = p.register(t, value)
	p.byAlignment(a, t, func(a place, unit string) {
		p.emit("st.%s.%s %s, %s;", a.space, unit, a.at(0), value)
	}, func(a place, word func(w int) (at, size int)) {
		for w, text := range p.words(t, value) {
			at, size := word(w)
			p.storeWord(a, at, size, text)
		}
	})
}

// words returns the one or two 32-bit words of a value.
func (p *values) words(t kir.Type, value string) []string {
	switch classOf(t) {
	case b16:
		r := p.new(b32)
		p.emit("cvt.u32.u16 %s, %s;", r, value)
		return []string{r}
	case b32:
		return []string{value}
	}
	lo, hi := p.new(b32), p.new(b32)
	p.emit("mov.b64 {%s, %s}, %s;", lo, hi, value)
	return []string{lo, hi}
}

func (p *memory) storeWord(a place, offset, size int, word string) {
	step := min(a.align, size)
	for at := 0; at < size; at += step {
		t := word
		if at > 0 {
			t = p.new(b32)
			p.emit("shr.u32 %s, %s, %d;", t, word, 8*at)
		}
		u := unit(step)
		if step == 2 {
			u = "u16"
		}
		p.emit("st.%s.%s %s, %s;", a.space, u, a.at(offset+at), t)
	}
}
