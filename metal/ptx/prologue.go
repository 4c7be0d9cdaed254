package ptx

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// lay decides where everything is.
func (p *memory) lay() {
	k := p.k
	p.layout.MaxThreads = maxThreads
	for _, n := range []int{k.MaxThreads, k.Threads[0] * k.Threads[1] * k.Threads[2], p.opt.MaxThreads} {
		if n > 0 && n < p.layout.MaxThreads {
			p.layout.MaxThreads = n
		}
	}
	p.layout.MaxThreads = Block([3]int{p.layout.MaxThreads, 1, 1})
	p.layout.Bytes = argObjects + argObject*len(k.Params)
	p.objects = make([]objectCode, 1+len(k.Params)+len(k.Regions))
	lost := p.reachedByAny()
	for i, q := range k.Params {
		o := Object{Align: 16, Shared: q.Space == kir.Threadgroup}
		if p.opt.Align != nil && !o.Shared {
			o.Align = min(16, p.opt.Align[i])
		}
		if p.opt.Inline != nil && q.Space == kir.Constant && !lost[i+1] {
			if n := padded(p.opt.Inline[i]); n > 0 && p.layout.Bytes+15+n <= maxArgs {
				o.Inline, o.Offset, o.Align = p.opt.Inline[i], padded(p.layout.Bytes), 16
				p.layout.Bytes = o.Offset + n
			}
		}
		p.layout.Objects = append(p.layout.Objects, o)
		p.objects[i+1] = objectCode{space: q.Space, align: o.Align, readOnly: q.ReadOnly, inline: o.Inline > 0}
	}
	for i, r := range k.Regions {
		o := objectCode{space: r.Space, align: 16, region: true, size: int64(r.Size)}
		switch r.Space {
		case kir.Threadgroup:
			o.offset = p.layout.RegionBytes
			p.layout.RegionBytes += padded(r.Size)
		case kir.Thread:
			p.layout.ThreadBytes += padded(r.Size)
		}
		p.objects[1+len(k.Params)+i] = o
	}
}

// reachedByAny returns the objects that accesses reach by pointers whose object is not known.
func (p *memory) reachedByAny() map[int]bool {
	lost := map[int]bool{}
	for _, in := range p.flow.order {
		if in.Op != kir.Load && in.Op != kir.Store && !in.Op.IsAtomic() || named(in.Args[0]) > 0 {
			continue
		}
		for _, ob := range p.mayReach(in.Args[0]) {
			lost[ob] = true
		}
	}
	return lost
}

// mayReach returns the objects that an access by a pointer may be to: those of its space that it may point into.
func (p *memory) mayReach(v *kir.Instr) (obs []int) {
	space, _ := v.Type.Space()
	add := func(ob int) {
		switch n := len(p.k.Params); {
		case ob >= 1 && ob <= n && p.k.Params[ob-1].Space == space,
			ob > n && ob <= n+len(p.k.Regions) && p.k.Regions[ob-n-1].Space == space:
			obs = append(obs, ob)
		}
	}
	o := p.flow.objects[v.ID]
	if o.all {
		for ob := 1; ob <= len(p.k.Params)+len(p.k.Regions); ob++ {
			add(ob)
		}
		return obs
	}
	for _, ob := range o.set {
		add(ob)
	}
	return obs
}

func (p *memory) regionName(i int) string { return fmt.Sprintf("%s_region%d", p.entry, i) }

// constantTable declares a table of the program.
func constantTable(name string, data []byte) string {
	var b strings.Builder
	words := append(append([]byte{}, data...), make([]byte, padded(max(1, len(data)))-len(data))...)
	fmt.Fprintf(&b, ".global .align 16 .b64 %s[%d] = {", name, len(words)/8)
	for at := 0; at < len(words); at += 8 {
		if at > 0 {
			b.WriteByte(',')
		}
		b.WriteString(literal(binary.LittleEndian.Uint64(words[at:])))
	}
	b.WriteString("};")
	return b.String()
}

// kernel prints the kernel's body, with what comes before it and after it.
func (p *printer) kernel() {
	used := p.used()
	p.skips()
	p.clearShared()
	p.positions(used)
	for _, v := range p.k.Vars {
		r := p.new(classOf(v.Type))
		if v.Type == kir.F64 {
			p.err = fmt.Errorf("[%s] %w: variable %q", p.k.Name, ErrFloat64, v.Name)
			return
		}
		p.vars = append(p.vars, r)
		p.setZero(v.Type, r)
	}
	p.bases()
	if p.masks {
		p.truth, p.mask, p.leave = p.new(pred), p.new(b32), p.new(b32)
		p.emit("setp.eq.u32 %s, 0, 0;", p.truth)
		p.emit("vote.sync.ballot.b32 %s, %s, 0xffffffff;", p.mask, p.truth)
		p.emit("mov.b32 %s, 0;", p.leave)
	}
	p.block(p.k.Body)
	p.pos = kir.Pos{}
	p.emit("exit;")
	p.faults()
}

// used returns the builtins that the kernel reads, and those that are computed from.
func (p *printer) used() map[kir.Mode]bool {
	used := map[kir.Mode]bool{}
	for _, in := range p.flow.order {
		if in.Op == kir.Builtin {
			used[in.Mode] = true
		}
	}
	return used
}

func (p *emitter) param32(offset int) string {
	r := p.new(b32)
	p.emit("ld.param.b32 %s, [args+%d];", r, offset)
	return r
}

func (p *emitter) param64(offset int) string {
	r := p.new(b64)
	p.emit("ld.param.b64 %s, [args+%d];", r, offset)
	return r
}

// sharedUsed reports whether the kernel has threadgroup memory.
func (p *memory) sharedUsed() bool {
	for _, o := range p.objects {
		if o.space == kir.Threadgroup && (!o.region || o.size > 0) {
			return true
		}
	}
	return false
}

// clearShared fills threadgroup memory with zeros: another kernel's bytes are there. All threads take part, those too
// that belong to no threadgroup; nobody goes on before it is done.
func (p *memory) clearShared() {
	if !p.sharedUsed() {
		return
	}
	n, at, step := p.param32(argShared), p.new(b32), p.new(b32)
	address, done, base := p.new(b32), p.new(pred), p.new(b32)
	top, end := p.label(), p.label()
	p.emit("mov.u32 %s, %%tid.x;", at)
	p.emit("shl.b32 %s, %s, 4;", at, at)
	p.emit("mov.u32 %s, %%ntid.x;", step)
	p.emit("shl.b32 %s, %s, 4;", step, step)
	p.emit("mov.u32 %s, %s;", base, sharedName)
	p.emit("%s:", top)
	p.emit("setp.ge.u32 %s, %s, %s;", done, at, n)
	p.emit("@%s bra %s;", done, end)
	p.emit("add.u32 %s, %s, %s;", address, base, at)
	p.emit("st.shared.v4.b32 [%s], {%s, %s, %s, %s};", address, "0", "0", "0", "0")
	p.emit("add.u32 %s, %s, %s;", at, at, step)
	p.emit("bra %s;", top)
	p.emit("%s:", end)
	p.emit("barrier.sync 0;")
}

// positions computes the sizes and positions that the kernel reads, and ends the threads that belong to no threadgroup:
// those that make blocks whole warps, and those that are missing at the grid's edge.
func (p *printer) positions(used map[kir.Mode]bool) {
	var origin, whole, size, place [3]string
	count := p.new(b32)
	p.emit("mov.b32 %s, 1;", count)
	names := [3]string{"x", "y", "z"}
	for d := range 3 {
		grid, first := p.param32(argGrid+4*d), p.param32(argOrigin+4*d)
		whole[d] = p.param32(argThreadgroup + 4*d)
		place[d], origin[d], size[d] = p.new(b32), p.new(b32), p.new(b32)
		p.emit("mov.u32 %s, %%ctaid.%s;", place[d], names[d])
		p.emit("add.u32 %s, %s, %s;", place[d], place[d], first)
		p.emit("mul.lo.u32 %s, %s, %s;", origin[d], place[d], whole[d])
		p.emit("sub.u32 %s, %s, %s;", size[d], grid, origin[d])
		p.emit("min.u32 %s, %s, %s;", size[d], size[d], whole[d])
		p.emit("mul.lo.u32 %s, %s, %s;", count, count, size[d])
		p.builtins[builtinKey{kir.ThreadgroupPositionInGrid, uint64(d)}] = place[d]
		p.builtins[builtinKey{kir.ThreadsPerThreadgroup, uint64(d)}] = size[d]
		p.builtins[builtinKey{kir.DispatchThreadsPerThreadgroup, uint64(d)}] = whole[d]
		p.builtins[builtinKey{kir.ThreadsPerGrid, uint64(d)}] = grid
		p.builtins[builtinKey{kir.GridSize, uint64(d)}] = grid
		p.builtins[builtinKey{kir.GridOrigin, uint64(d)}] = "0"
		if used[kir.ThreadgroupsPerGrid] {
			p.builtins[builtinKey{kir.ThreadgroupsPerGrid, uint64(d)}] = p.param32(argGroups + 4*d)
		}
	}
	thread, none := p.new(b32), p.new(pred)
	p.emit("mov.u32 %s, %%tid.x;", thread)
	p.emit("setp.ge.u32 %s, %s, %s;", none, thread, count)
	p.emit("@%s exit;", none)
	p.scalars(used, thread, count, whole)
	if used[kir.ThreadPositionInGrid] || used[kir.ThreadPositionInThreadgroup] {
		p.threadPosition(thread, count, size, origin)
	}
}

// scalars computes the builtins of one component from the thread's index and the threadgroup's size.
func (p *printer) scalars(used map[kir.Mode]bool, thread, count string, whole [3]string) {
	set := func(m kir.Mode, make func(d string)) {
		if used[m] || m == kir.ThreadIndexInSimdgroup && p.masks {
			d := p.new(b32)
			make(d)
			p.builtins[builtinKey{m, 0}] = d
		}
	}
	ceil := func(d, n string, shift int) {
		p.emit("add.u32 %s, %s, %d;", d, n, 1<<shift-1)
		p.emit("shr.u32 %s, %s, %d;", d, d, shift)
	}
	p.builtins[builtinKey{kir.ThreadIndexInThreadgroup, 0}] = thread
	p.builtins[builtinKey{kir.ThreadsPerSimdgroup, 0}] = literal(kir.Lanes)
	set(kir.ThreadIndexInSimdgroup, func(d string) { p.emit("and.b32 %s, %s, 31;", d, thread) })
	set(kir.SimdgroupIndexInThreadgroup, func(d string) { p.emit("shr.u32 %s, %s, 5;", d, thread) })
	set(kir.ThreadIndexInQuadgroup, func(d string) { p.emit("and.b32 %s, %s, 3;", d, thread) })
	set(kir.QuadgroupIndexInThreadgroup, func(d string) { p.emit("shr.u32 %s, %s, 2;", d, thread) })
	set(kir.SimdgroupsPerThreadgroup, func(d string) { ceil(d, count, 5) })
	set(kir.QuadgroupsPerThreadgroup, func(d string) { ceil(d, count, 2) })
	set(kir.DispatchSimdgroupsPerThreadgroup, func(d string) {
		p.emit("mul.lo.u32 %s, %s, %s;", d, whole[0], whole[1])
		p.emit("mul.lo.u32 %s, %s, %s;", d, d, whole[2])
		ceil(d, d, 5)
	})
}

// threadPosition computes where a thread is. Blocks have one dimension: threadgroups are smaller at the grid's edge,
// and their threads are counted by the real size.
func (p *printer) threadPosition(thread, count string, size, origin [3]string) {
	var at [3]string
	for d := range at {
		at[d] = p.new(b32)
	}
	row, done, t := p.new(pred), p.label(), p.new(b32)
	p.emit("mov.b32 %s, %s;", at[0], thread)
	p.emit("mov.b32 %s, 0;", at[1])
	p.emit("mov.b32 %s, 0;", at[2])
	p.emit("setp.eq.u32 %s, %s, %s;", row, size[0], count)
	p.emit("@%s bra %s;", row, done)
	p.emit("div.u32 %s, %s, %s;", at[1], thread, size[0])
	p.emit("mul.lo.u32 %s, %s, %s;", t, at[1], size[0])
	p.emit("sub.u32 %s, %s, %s;", at[0], thread, t)
	p.emit("div.u32 %s, %s, %s;", at[2], at[1], size[1])
	p.emit("mul.lo.u32 %s, %s, %s;", t, at[2], size[1])
	p.emit("sub.u32 %s, %s, %s;", at[1], at[1], t)
	p.emit("%s:", done)
	for d := range at {
		in := p.new(b32)
		p.emit("add.u32 %s, %s, %s;", in, origin[d], at[d])
		p.builtins[builtinKey{kir.ThreadPositionInThreadgroup, uint64(d)}] = at[d]
		p.builtins[builtinKey{kir.ThreadPositionInGrid, uint64(d)}] = in
	}
}

func (p *values) builtin(in *kir.Instr) {
	r, ok := p.builtins[builtinKey{in.Mode, in.Imm}]
	if !ok {
		p.fail(in, "%s is not printed", in.Mode)
	}
	p.vals[in.ID] = r
}

// lane is the register with the thread's lane.
func (p *printer) lane() string { return p.builtins[builtinKey{kir.ThreadIndexInSimdgroup, 0}] }

// bases loads where objects are, and fills the thread's own arrays with zeros.
func (p *memory) bases() {
	reached := map[int]bool{}
	for _, in := range p.flow.order {
		if in.Op == kir.Load || in.Op == kir.Store || in.Op.IsAtomic() {
			for _, ob := range p.mayReach(in.Args[0]) {
				reached[ob] = true
			}
		}
	}
	for ob := 1; ob < len(p.objects); ob++ {
		if reached[ob] {
			p.base(ob)
		}
	}
}

func (p *memory) base(ob int) {
	o := &p.objects[ob]
	if !o.region {
		at := argObjects + argObject*(ob-1)
		o.len = p.param64(at + 8)
		switch {
		case o.inline:
			o.reg = p.new(b64)
			p.emit("mov.b64 %s, args;", o.reg)
			p.emit("add.u64 %s, %s, %d;", o.reg, o.reg, p.layout.Objects[ob-1].Offset)
		case o.space == kir.Threadgroup:
			o.reg = p.param64(at)
			p.addShared(o.reg, o.reg)
		default:
			o.reg = p.param64(at)
			p.emit("cvta.to.global.u64 %s, %s;", o.reg, o.reg)
		}
		return
	}
	o.len, o.reg = literal(uint64(o.size)), p.new(b64)
	name := p.regionName(ob - 1 - len(p.k.Params))
	switch o.space {
	case kir.Constant:
		p.emit("mov.u64 %s, %s;", o.reg, name)
	case kir.Threadgroup:
		p.addShared(o.reg, literal(uint64(o.offset)))
	case kir.Thread:
		if o.size == 0 {
			p.emit("mov.b64 %s, 0;", o.reg)
			return
		}
		t := p.new(b32)
		p.emit("mov.u32 %s, %s;", t, name)
		p.emit("cvt.u64.u32 %s, %s;", o.reg, t)
		p.clearLocal(name, t, padded(int(o.size)))
	}
}

// addShared makes a 64-bit address of an offset in threadgroup memory.
func (p *memory) addShared(d, offset string) {
	t, wide := p.new(b32), p.new(b64)
	p.emit("mov.u32 %s, %s;", t, sharedName)
	p.emit("cvt.u64.u32 %s, %s;", wide, t)
	p.emit("add.u64 %s, %s, %s;", d, wide, offset)
}

// clearLocal fills an array of the thread with zeros. With constant addresses it may still live in registers.
func (p *memory) clearLocal(name, base string, size int) {
	const few = 512
	if size <= few {
		for at := 0; at < size; at += 16 {
			p.emit("st.local.v4.b32 [%s+%d], {0, 0, 0, 0};", name, at)
		}
		return
	}
	at, end, more, top := p.new(b32), p.new(b32), p.new(pred), p.label()
	p.emit("mov.b32 %s, %s;", at, base)
	p.emit("add.u32 %s, %s, %d;", end, base, size)
	p.emit("%s:", top)
	p.emit("st.local.v4.b32 [%s], {0, 0, 0, 0};", at)
	p.emit("add.u32 %s, %s, 16;", at, at)
	p.emit("setp.lt.u32 %s, %s, %s;", more, at, end)
	p.emit("@%s bra %s;", more, top)
}
