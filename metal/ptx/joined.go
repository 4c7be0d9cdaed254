package ptx

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Loads that stand together, and stores, are checked together: one condition says that all are inside their objects,
// so that nothing is between them and all are on the way at once. Where it fails, the thread goes through them one by
// one, as if they stood alone, until the one that faults. Neighbours become one access of up to 16 bytes.

// farthest is how far apart the ends of accesses may be that one sum checks.
const farthest = 1 << 30

// cluster is accesses of a run whose addresses differ by constants.
type cluster struct {
	object    int
	reg       string // what they have in common, "": nothing
	most      int64
	low, high int64  // the least constant, and the largest with its access's size
	at        place  // of the one at low
	from      int64  // the constant that at has
	align     []int8 // by member: trailing zeros of its offset
	members   []int  // in the run
}

// together returns how many instructions at the beginning of a list are loads, or stores, that can be checked as one.
func (p *memory) together(list []*kir.Instr) (n int) {
	op := list[0].Op
	if op != kir.Load && op != kir.Store {
		return 0
	}
	for n < len(list) && list[n].Op == op && p.joins(list[n], list[:n]) {
		n++
	}
	return n
}

// joins reports whether an access can be checked with those before it: its object is known and may be accessed so, and
// its address is not what they load.
func (p *memory) joins(in *kir.Instr, before []*kir.Instr) bool {
	if slices.Contains(before, in.Args[0]) {
		return false
	}
	q, size := p.ptrs[in.Args[0].ID], int64(accessed(in).Size())
	o := &p.objects[q.object]
	switch {
	case q.object == 0 || in.Op == kir.Store && o.readOnly:
		return false
	case q.reg == "":
		return q.imm >= 0 && q.imm+size <= farthest && (!o.region || q.imm+size <= o.size)
	}
	return true
}

// accessed is the type of what is loaded or stored.
func accessed(in *kir.Instr) kir.Type {
	if in.Op == kir.Store {
		return in.Args[1].Type
	}
	return in.Type
}

// joined prints accesses that stand together.
func (p *memory) joined(run []*kir.Instr) {
	values := make([]string, len(run))
	for i, in := range run {
		if in.Op == kir.Store {
			values[i] = p.arg(in.Args[1])
		}
	}
	clusters := p.clusters(run)
	var failed string
	for _, c := range clusters {
		failed = p.locate(c, failed)
	}
	if failed != "" {
		p.emit("@%s bra %s;", failed, p.oneByOne(run, values))
	}
	if run[0].Op == kir.Load {
		for _, c := range clusters {
			p.loads(run, c)
		}
		return
	}
	p.stores(run, values, clusters)
}

// clusters takes a run apart.
func (p *memory) clusters(run []*kir.Instr) (all []*cluster) {
	for i, in := range run {
		q := p.ptrs[in.Args[0].ID]
		end := q.imm + int64(accessed(in).Size())
		var c *cluster
		for _, x := range all {
			if x.object == q.object && x.reg == q.reg && max(x.high, end)-min(x.low, q.imm) < farthest {
				c = x
			}
		}
		if c == nil {
			c = &cluster{object: q.object, reg: q.reg, most: q.most, low: q.imm, high: end}
			all = append(all, c)
		}
		c.low, c.high, c.members = min(c.low, q.imm), max(c.high, end), append(c.members, i)
	}
	for _, c := range all {
		c.at.align = min(fullWidth, p.objects[c.object].align)
		for _, i := range c.members {
			c.align = append(c.align, p.flow.trailing(run[i].Args[0]))
		}
	}
	return all
}

// fullWidth is the bytes of the widest access.
const fullWidth = 16

// locate finds where a cluster is, and adds to a predicate, "" at first, whether some of it is outside its object.
func (p *memory) locate(c *cluster, failed string) string {
	o := &p.objects[c.object]
	c.at.space = spaceNames[o.space]
	if o.inline {
		c.at.space = "param"
	}
	if c.reg == "" {
		c.at.reg = o.reg
		if o.region {
			if o.space == kir.Thread { // by name, so that it may be in registers
				c.at.reg = p.regionName(c.object - 1 - len(p.k.Params))
			}
			return failed
		}
		return p.outside(literal(uint64(c.high)), o.len, failed)
	}
	offset, end := c.reg, p.new(b64)
	if c.most < 0 || c.low < 0 || c.high >= farthest {
		offset, c.from = p.new(b64), c.low
		p.emit("add.u64 %s, %s, %s;", offset, c.reg, literal(uint64(c.low)))
		p.emit("and.b64 %s, %s, %s;", offset, offset, literal(offsetMask))
	}
	p.emit("add.u64 %s, %s, %d;", end, offset, c.high-c.from)
	failed = p.outside(end, o.len, failed)
	c.at.reg = p.new(b64)
	p.emit("add.u64 %s, %s, %s;", c.at.reg, o.reg, offset)
	return failed
}

// outside returns a predicate that is true where another is, or where an end is behind an object's.
func (p *memory) outside(end, length, or string) string {
	out := p.new(pred)
	if or == "" {
		p.emit("setp.lt.u64 %s, %s, %s;", out, length, end)
	} else {
		p.emit("setp.lt.or.u64 %s, %s, %s, %s;", out, length, end, or)
	}
	return out
}

// oneByOne returns the label where a thread goes some of whose accesses of a run must not happen.
func (p *memory) oneByOne(run []*kir.Instr, values []string) string {
	label, body := p.label(), p.body
	p.body = nil
	p.emit("%s:", label)
	for i := 0; i < len(run); {
		in := run[i]
		p.pos = in.Pos
		if n := p.ascending(run[i:]); n > 1 {
			p.firstOutside(run[i : i+n])
			i += n
			continue
		}
		a := p.access(in, accessed(in).Size(), in.Op == kir.Store)
		if i++; in.Op == kir.Store && i < len(run) { // the last one faults, if no other does
			p.storeAt(in, a, values[i-1])
		}
	}
	p.emit("exit;")
	p.cold, p.body = append(p.cold, p.body...), body
	return label
}

// ascending returns how many loads at the beginning of a run are neighbours of one size, each behind the one before.
func (p *memory) ascending(run []*kir.Instr) int {
	first, size := p.ptrs[run[0].Args[0].ID], int64(accessed(run[0]).Size())
	n := 1
	for ; n < len(run) && run[n].Op == kir.Load; n++ {
		q := p.ptrs[run[n].Args[0].ID]
		if q.object != first.object || q.reg != first.reg || q.imm != first.imm+int64(n)*size ||
			int64(accessed(run[n]).Size()) != size {
			break
		}
	}
	return n
}

// firstOutside has a thread fault by the first of such neighbours that is outside of their object, if one is.
func (p *memory) firstOutside(run []*kir.Instr) {
	q, shift := p.ptrs[run[0].Args[0].ID], bits.TrailingZeros(uint(accessed(run[0]).Size()))
	length, on, inside := p.objects[q.object].len, p.label(), p.new(pred)
	at, end, room, which := p.new(b64), p.new(b64), p.new(b64), p.new(b32)
	if q.reg == "" {
		p.emit("mov.b64 %s, %s;", at, literal(uint64(q.imm)))
	} else {
		p.emit("add.u64 %s, %s, %s;", at, q.reg, literal(uint64(q.imm)))
		p.emit("and.b64 %s, %s, %s;", at, at, literal(offsetMask))
	}
	p.emit("add.u64 %s, %s, %d;", end, at, len(run)<<shift)
	p.emit("setp.ge.u64 %s, %s, %s;", inside, length, end)
	p.emit("@%s bra %s;", inside, on)
	p.emit("mov.b64 %s, %s;", room, length)
	p.emit("sub.u64 %s, %s, %s;", room, room, at)
	p.emit("max.s64 %s, %s, 0;", room, room)
	p.emit("shr.u64 %s, %s, %d;", room, room, shift)
	p.emit("cvt.u32.u64 %s, %s;", which, room)
	p.emit("add.u32 %s, %s, %d;", faultSite, which, len(p.sites))
	p.emit("shl.b64 %s, %s, %d;", room, room, shift)
	p.emit("add.u64 %s, %s, %s;", faultPointer, p.full(q), room)
	p.emit("bra FAULT;")
	p.emit("%s:", on)
	p.sites = append(p.sites, run...)
}

// place returns where a member of a cluster is.
func (p *memory) place(c *cluster, run []*kir.Instr, member int) place {
	a := c.at
	a.imm = p.ptrs[run[c.members[member]].Args[0].ID].imm - c.from
	a.align = min(a.align, 1<<min(4, c.align[member]))
	return a
}

// width returns how many members of a cluster, from one on, are one access: neighbours of one type in ascending order.
func (p *memory) width(c *cluster, run []*kir.Instr, first int) int {
	in := run[c.members[first]]
	t, a := accessed(in), p.place(c, run, first)
	if a.space != "global" && a.space != "shared" || t == kir.Bool {
		return 1
	}
	n := 1
	for at := first + 1; at < len(c.members); at++ {
		next := run[c.members[at]]
		if accessed(next) != t || p.place(c, run, at).imm != a.imm+int64(n*t.Size()) {
			break
		}
		n++
	}
	w := 1
	for 2*w <= n && 2*w*t.Size() <= a.align {
		w *= 2
	}
	return w
}

// loads loads a cluster, whose check is done.
func (p *memory) loads(run []*kir.Instr, c *cluster) {
	imm := func(m int) int64 { return p.ptrs[run[m].Args[0].ID].imm }
	order := make([]int, len(c.members)) // loads may change places
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(imm(c.members[a]) - imm(c.members[b])) })
	sorted := *c
	sorted.members, sorted.align = nil, nil
	for _, i := range order {
		sorted.members, sorted.align = append(sorted.members, c.members[i]), append(sorted.align, c.align[i])
	}
	for at := 0; at < len(sorted.members); {
		in, a := run[sorted.members[at]], p.place(&sorted, run, at)
		n := p.width(&sorted, run, at)
		p.pos = in.Pos
		if n == 1 {
			p.loadAt(in, a)
		} else {
			var to []string
			for _, m := range sorted.members[at : at+n] {
				to = append(to, p.dest(run[m]))
				p.ptrs[run[m].ID] = pointer{reg: to[len(to)-1]}
			}
			p.loadVector(a, in.Type, to)
		}
		at += n
	}
}

// stores stores a run, whose check is done, in its order.
func (p *memory) stores(run []*kir.Instr, values []string, clusters []*cluster) {
	done := 0 // of the run
	for done < len(run) {
		for _, c := range clusters {
			at := slices.Index(c.members, done)
			if at < 0 {
				continue
			}
			n := p.width(c, run, at)
			for n > 1 && c.members[at+n-1] != done+n-1 { // another one lies between
				n /= 2
			}
			in, a := run[done], p.place(c, run, at)
			p.pos = in.Pos
			if n == 1 {
				p.storeAt(in, a, values[done])
			} else {
				p.storeVector(a, in.Args[1].Type, values[done:done+n])
			}
			done += n
			break
		}
	}
}

// words of a vector: how many, of how many bytes, and how many values each holds.
func wordsOf(size, n int) (count, bytes, each int) {
	if n <= 4 {
		return n, size, 1
	}
	each = 4 / size
	return n / each, 4, each
}

// vector is the suffix of an access of so many words.
func vector(count, bytes int) string {
	if bytes == 1 {
		return map[int]string{2: "v2.u8", 4: "v4.u8"}[count]
	}
	return map[int]string{2: "v2.", 4: "v4."}[count] + unit(bytes)
}

// loadVector loads neighbours into registers.
func (p *memory) loadVector(a place, t kir.Type, to []string) {
	count, bytes, each := wordsOf(t.Size(), len(to))
	words := to
	if each > 1 {
		words = make([]string, count)
		for w := range words {
			words[w] = p.new(b32)
		}
	}
	suffix := vector(count, bytes)
	if bytes == 2 && classOf(t) == b32 {
		suffix = strings.Replace(suffix, "b16", "u16", 1)
	}
	p.emit("ld.%s.%s {%s}, %s;", a.space, suffix, strings.Join(words, ", "), a.at(0))
	if each == 1 {
		return
	}
	for w, r := range words {
		part := to[w*each:][:each]
		if classOf(t) == b16 {
			p.emit("mov.b32 {%s, %s}, %s;", part[0], part[1], r)
			continue
		}
		for i, d := range part { // zero-extended
			switch wide := 8 * t.Size(); {
			case i == 0:
				p.emit("and.b32 %s, %s, %s;", d, r, literal(1<<wide-1))
			case i == each-1:
				p.emit("shr.u32 %s, %s, %d;", d, r, i*wide)
			default:
				p.emit("shr.u32 %s, %s, %d;", d, r, i*wide)
				p.emit("and.b32 %s, %s, %s;", d, d, literal(1<<wide-1))
			}
		}
	}
}

// storeVector stores values as neighbours.
func (p *memory) storeVector(a place, t kir.Type, values []string) {
	count, bytes, each := wordsOf(t.Size(), len(values))
	regs := make([]string, len(values))
	for i, v := range values {
		regs[i] = p.register(t, v)
	}
	words := regs
	if each > 1 {
		words = make([]string, count)
		for w := range words {
			words[w] = p.packed(t, regs[w*each:][:each])
		}
	}
	suffix := vector(count, bytes)
	if bytes == 2 && classOf(t) == b32 {
		suffix = strings.Replace(suffix, "b16", "u16", 1)
	}
	p.emit("st.%s.%s %s, {%s};", a.space, suffix, a.at(0), strings.Join(words, ", "))
}

// packed returns a register with four bytes of small values, which are zero-extended.
func (p *memory) packed(t kir.Type, part []string) string {
	r := p.new(b32)
	if classOf(t) == b16 {
		p.emit("mov.b32 %s, {%s, %s};", r, part[0], part[1])
		return r
	}
	p.emit("mov.b32 %s, %s;", r, part[0])
	for i, v := range part[1:] {
		high := p.new(b32)
		p.emit("shl.b32 %s, %s, %d;", high, v, 8*t.Size()*(i+1))
		p.emit("or.b32 %s, %s, %s;", r, r, high)
	}
	return r
}
