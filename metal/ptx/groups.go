package ptx

import "github.com/mlxlua/mlxlua/metal/kir"

// Operations between the active lanes of a warp, whose mask is p.mask.

const allLanes = "0xffffffff"

// words32 makes 32-bit registers of a value, which lanes can exchange.
func (p *printer) words32(t kir.Type, a string) []string {
	if t == kir.Bool {
		r := p.new(b32)
		p.emit("selp.b32 %s, 1, 0, %s;", r, a)
		return []string{r}
	}
	return p.words(t, p.register(t, a))
}

// fromWords is the reverse.
func (p *printer) fromWords(t kir.Type, d string, w []string) {
	switch classOf(t) {
	case pred:
		p.emit("setp.ne.u32 %s, %s, 0;", d, w[0])
	case b16:
		p.emit("cvt.u16.u32 %s, %s;", d, w[0])
	case b32:
		p.emit("mov.b32 %s, %s;", d, w[0])
	default:
		p.emit("mov.b64 %s, {%s, %s};", d, w[0], w[1])
	}
}

// exchange gives each lane the words that another lane has. mode is idx, bfly or up; with it reports up where the lane
// exists.
func (p *printer) exchange(mode string, w []string, lane, mask, exists string) []string {
	clamp := "31"
	if mode == "up" {
		clamp = "0"
	}
	out := make([]string, len(w))
	for i := range w {
		out[i] = p.new(b32)
		d := out[i]
		if exists != "" {
			d += "|" + exists
		}
		p.emit("shfl.sync.%s.b32 %s, %s, %s, %s, %s;", mode, d, w[i], lane, clamp, mask)
	}
	return out
}

// groupMask is the mask of the active lanes of a lane's quad, or of its SIMD-group.
func (p *printer) groupMask(group uint64) string {
	if group == kir.Lanes {
		return p.mask
	}
	first, m := p.new(b32), p.new(b32)
	p.emit("and.b32 %s, %s, 28;", first, p.lane())
	p.emit("mov.b32 %s, 15;", m)
	p.emit("shl.b32 %s, %s, %s;", m, m, first)
	p.emit("and.b32 %s, %s, %s;", m, m, p.mask)
	return m
}

// lowest is the number of the lowest bit of a mask.
func (p *printer) lowest(mask string) string {
	r := p.new(b32)
	p.emit("brev.b32 %s, %s;", r, mask)
	p.emit("clz.b32 %s, %s;", r, r)
	return r
}

func (p *printer) ballot(in *kir.Instr) {
	r := p.new(b32)
	p.emit("vote.sync.ballot.b32 %s, %s, %s;", r, p.arg(in.Args[0]), p.mask)
	p.emit("cvt.u64.u32 %s, %s;", p.dest(in), r)
}

func (p *printer) broadcastFirst(in *kir.Instr) {
	t := in.Type
	w := p.words32(t, p.arg(in.Args[0]))
	w = p.exchange("idx", w, p.lowest(p.groupMask(in.Imm)), p.mask, "")
	d := p.dest(in)
	p.fromWords(t, d, w)
	if t.IsPtr() {
		p.ptrs[in.ID] = pointer{reg: d}
	}
}

func (p *printer) shuffle(in *kir.Instr) {
	t := in.Type
	w := p.words32(t, p.arg(in.Args[0]))
	from, active := p.new(b32), p.new(pred)
	p.emit("and.b32 %s, %s, %d;", from, p.bits32(p.arg(in.Args[1])), in.Imm-1)
	if in.Imm < kir.Lanes {
		first := p.new(b32)
		p.emit("and.b32 %s, %s, 28;", first, p.lane())
		p.emit("or.b32 %s, %s, %s;", from, from, first)
	}
	out := p.exchange("idx", w, from, p.mask, "")
	p.isActive(active, p.mask, from)
	for _, r := range out {
		p.emit("selp.b32 %s, %s, 0, %s;", r, r, active)
	}
	d := p.dest(in)
	p.fromWords(t, d, out)
	if t.IsPtr() {
		p.ptrs[in.ID] = pointer{reg: d}
	}
}

// isActive sets a predicate if a mask has a lane.
func (p *printer) isActive(d, mask, lane string) {
	t := p.new(b32)
	p.emit("shr.u32 %s, %s, %s;", t, mask, lane)
	p.emit("and.b32 %s, %s, 1;", t, t)
	p.emit("setp.ne.u32 %s, %s, 0;", d, t)
}

// combine prints d = a op b on values of a type.
func (p *printer) combine(mode kir.Mode, t kir.Type, d, a, b string) {
	if t.IsFloat() {
		p.floats(mode.Op(), t, d, []string{a, b})
		return
	}
	p.integer2(mode.Op(), t, d, a, b)
}

func (p *printer) reduce(in *kir.Instr) {
	t, v := in.Type, p.arg(in.Args[0])
	if t == kir.Bool {
		p.reduceBool(in, v)
		return
	}
	v = p.register(t, v)
	if in.Imm == kir.Lanes && p.redux(in, v) {
		return
	}
	d := p.dest(in)
	p.move(t, d, v)
	full, some, done := p.new(pred), p.label(), p.label()
	p.emit("setp.eq.u32 %s, %s, %s;", full, p.mask, allLanes)
	p.emit("@!%s bra %s;", full, some)
	for step := int(in.Imm) / 2; step > 0; step /= 2 {
		p.combineWith(in.Mode, t, d, p.exchange("bfly", p.words(t, d), literal(uint64(step)), allLanes, ""))
	}
	p.emit("bra %s;", done)
	p.emit("%s:", some)
	group := p.groupMask(in.Imm)
	for step := int(in.Imm) / 2; step > 0; step /= 2 {
		p.reduceSome(in, d, group, step)
	}
	p.emit("%s:", done)
}

// combineWith prints d = d op the value of words.
func (p *printer) combineWith(mode kir.Mode, t kir.Type, d string, w []string) {
	other := p.new(classOf(t))
	p.fromWords(t, other, w)
	p.combine(mode, t, d, d, other)
}

// every has the lanes 0, n, 2n, ... of a warp.
var every = map[int]uint32{2: 0x55555555, 4: 0x11111111, 8: 0x01010101, 16: 0x00010001, 32: 1}

// reduceSome is one step of Reduce where lanes are missing. A lane holds what kir's tree has for the lanes that are
// equal to it modulo 2*step; its partner may be missing, but then every lane that is equal to the partner holds the
// same. Where there is none, the partner holds the identity, which changes nothing.
func (p *printer) reduceSome(in *kir.Instr, d, group string, step int) {
	t := in.Type
	partner, them, from := p.new(b32), p.new(b32), p.new(b32)
	some, none := p.new(pred), p.label()
	p.emit("xor.b32 %s, %s, %d;", partner, p.lane(), step)
	p.emit("and.b32 %s, %s, %d;", partner, partner, 2*step-1)
	p.emit("mov.b32 %s, %#x;", them, every[2*step])
	p.emit("shl.b32 %s, %s, %s;", them, them, partner)
	p.emit("and.b32 %s, %s, %s;", them, them, group)
	p.emit("setp.ne.u32 %s, %s, 0;", some, them)
	p.emit("brev.b32 %s, %s;", from, them)
	p.emit("clz.b32 %s, %s;", from, from)
	p.emit("selp.b32 %s, %s, %s, %s;", from, from, p.lane(), some)
	w := p.exchange("idx", p.words(t, d), from, p.mask, "")
	p.emit("@!%s bra %s;", some, none)
	p.combineWith(in.Mode, t, d, w)
	p.emit("%s:", none)
}

// redux prints Reduce as one instruction, where the card has it: on integers of up to 32 bits.
func (p *printer) redux(in *kir.Instr, v string) bool {
	t := in.Type
	if p.opt.SM < 80 || !t.IsInt() || t.Bits() > 32 || in.Mode == kir.ModeMul {
		return false
	}
	typ := "b32"
	switch in.Mode {
	case kir.ModeAdd, kir.ModeMin, kir.ModeMax:
		typ = signed(t)
		v = p.extend(t, v)
	}
	d := p.dest(in)
	p.emit("redux.sync.%s.%s %s, %s, %s;", in.Mode, typ, d, v, p.mask)
	p.canonical(t, d)
	return true
}

func (p *printer) reduceBool(in *kir.Instr, v string) {
	votes, group, d := p.new(b32), p.groupMask(in.Imm), p.dest(in)
	p.emit("vote.sync.ballot.b32 %s, %s, %s;", votes, v, p.mask)
	p.emit("and.b32 %s, %s, %s;", votes, votes, group)
	switch in.Mode {
	case kir.ModeAnd:
		p.emit("setp.eq.u32 %s, %s, %s;", d, votes, group)
	case kir.ModeOr:
		p.emit("setp.ne.u32 %s, %s, 0;", d, votes)
	default:
		p.emit("popc.b32 %s, %s;", votes, votes)
		p.emit("and.b32 %s, %s, 1;", votes, votes)
		p.emit("setp.ne.u32 %s, %s, 0;", d, votes)
	}
}

func (p *printer) scan(in *kir.Instr) {
	t := in.Type
	v, d := p.register(t, p.arg(in.Args[0])), p.dest(in)
	full, some, done := p.new(pred), p.label(), p.label()
	p.emit("setp.eq.u32 %s, %s, %s;", full, p.mask, allLanes)
	p.emit("@!%s bra %s;", full, some)
	p.scanAll(in, d, v)
	p.emit("bra %s;", done)
	p.emit("%s:", some)
	p.scanSome(in, d, v)
	p.emit("%s:", done)
}

// firstOf is what an exclusive scan yields in the lowest active lane.
func firstOf(mode kir.Mode, t kir.Type) uint64 {
	if mode == kir.ModeAdd {
		return 0
	}
	first, _ := kir.Identity(mode, t)
	return first
}

// scanAll is a scan of all lanes.
func (p *printer) scanAll(in *kir.Instr, d, v string) {
	t := in.Type
	p.move(t, d, v)
	place := p.new(b32) // in the group
	p.emit("and.b32 %s, %s, %d;", place, p.lane(), in.Imm-1)
	for step := 1; step < int(in.Imm); step *= 2 {
		w := p.exchange("up", p.words(t, d), literal(uint64(step)), allLanes, "")
		low, skip := p.new(pred), p.label()
		p.emit("setp.lt.u32 %s, %s, %d;", low, place, step)
		p.emit("@%s bra %s;", low, skip)
		p.combineWith(in.Mode, t, d, w)
		p.emit("%s:", skip)
	}
	if in.Op == kir.ScanExclusive {
		w := p.exchange("up", p.words(t, d), "1", allLanes, "")
		low, r := p.new(pred), p.new(classOf(t))
		p.fromWords(t, r, w)
		p.emit("setp.eq.u32 %s, %s, 0;", low, place)
		p.selectValue(t, d, p.immediate(t, firstOf(in.Mode, t)), r, low)
	}
}

// scanSome is a scan where lanes are missing. In kir's steps a missing lane holds partial results too: so each lane
// makes its own tree, from the values of all lanes up to it.
func (p *printer) scanSome(in *kir.Instr, d, v string) {
	t, n := in.Type, int(in.Imm)
	id, _ := kir.Identity(in.Mode, t)
	group := p.groupMask(in.Imm)
	w := p.words(t, v)
	identity := p.register(t, p.immediate(t, id))
	leaves := make([]string, n)
	for i := range leaves {
		back := i
		if in.Op == kir.ScanExclusive {
			back++
		}
		from, exists, active := p.new(b32), p.new(pred), p.new(pred)
		p.emit("sub.u32 %s, %s, %d;", from, p.lane(), back)
		p.emit("setp.ge.s32 %s, %s, 0;", exists, from)
		p.emit("selp.b32 %s, %s, %s, %s;", from, from, p.lane(), exists)
		p.isActive(active, group, from)
		p.emit("and.pred %s, %s, %s;", active, active, exists)
		// A lane that is missing or in another quad is not read.
		p.emit("selp.b32 %s, %s, %s, %s;", from, from, p.lane(), active)
		leaves[i] = p.new(classOf(t))
		p.fromWords(t, leaves[i], p.exchange("idx", w, from, p.mask, ""))
		p.selectValue(t, leaves[i], leaves[i], identity, active)
	}
	for step := 1; step < n; step *= 2 {
		for i := 0; i+step < n; i += 2 * step {
			p.combine(in.Mode, t, leaves[i], leaves[i+step], leaves[i])
		}
	}
	if in.Op == kir.ScanInclusive {
		p.move(t, d, leaves[0])
		return
	}
	below, first := p.new(b32), p.new(pred)
	p.emit("mov.b32 %s, 1;", below)
	p.emit("shl.b32 %s, %s, %s;", below, below, p.lane())
	p.emit("sub.u32 %s, %s, 1;", below, below)
	p.emit("and.b32 %s, %s, %s;", below, below, group)
	p.emit("setp.eq.u32 %s, %s, 0;", first, below)
	p.selectValue(t, d, p.immediate(t, firstOf(in.Mode, t)), leaves[0], first)
}
