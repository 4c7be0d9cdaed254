package arm64

import (
	"fmt"
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/regalloc"
)

// The registers that the allocator gives out.
var (
	freeGPR = []uint8{10, 11, 12, 21, 22, 23, 24, 25, 26, 27}
	freeVec = func() (l []uint8) {
		for n := range uint8(24) {
			l = append(l, n)
		}
		return l
	}()
)

// program is a list of instructions on its way to be bytes. It keeps its memory for the next one.
type program struct {
	f     *code.Func
	insts []inst
	spare []inst
	vecs  int
	uses  []int32
	defs  []uint8 // by virtual register: how often it is written, 2 for more
	asm   assembler
	far   bool               // the code is so long that it takes two instructions to name a place in it
	ops   []regalloc.Operand // of the instruction being shown
	frame code.R
	// steady is where in the block nothing is written while code runs.
	steady [2]int32
	res    *regalloc.Result
	temps  temporaries
	err    error
}

// index numbers virtual registers from 0 over both classes.
func (p *program) index(r code.R) int32 {
	n := int32(r.Num() - code.FirstVirtual)
	if r.Class() == code.Vec {
		n += int32(p.f.NumRegs(code.GPR))
	}
	return n
}

// tidy drops instructions whose results nobody reads.
func (p *program) tidy() {
	n := p.f.NumRegs(code.GPR) + p.vecs
	p.uses = append(p.uses[:0], make([]int32, n)...)
	for k := range p.insts {
		p.count(&p.insts[k], 1)
	}
	for k := len(p.insts) - 1; k >= 0; k-- {
		i := &p.insts[k]
		if i.op <= loadLive || specs[i.op].flags&(effect|definesA) != 0 || !i.d.Virtual() {
			continue
		}
		if reads := p.uses[p.index(i.d)]; reads == 0 || i.op == movV && i.d == i.n {
			p.count(i, -1)
			*i = inst{}
		}
	}
	kept := p.insts[:0]
	for _, i := range p.insts {
		if i.op != none {
			kept = append(kept, i)
		}
	}
	p.insts = kept
}

// count adds to the reads of the registers that an instruction reads; what it reads of its own d does not count.
func (p *program) count(i *inst, by int32) {
	i.visit(func(r *code.R, use, def bool) {
		if use && !def && r.Virtual() {
			p.uses[p.index(*r)] += by
		}
	})
}

// Len implements regalloc.Func.
func (p *program) Len() int { return len(p.insts) }

// Labels implements regalloc.Func.
func (p *program) Labels() int { return p.f.NumLabels() }

var kinds = [...]regalloc.Kind{place: regalloc.Place, loopBegin: regalloc.LoopBegin, loopEnd: regalloc.LoopEnd,
	coldBegin: regalloc.ColdBegin, coldEnd: regalloc.ColdEnd, saveLive: regalloc.Save, loadLive: regalloc.Load}

// Inst implements regalloc.Func. A label whose address is taken is where control may go on, as for amd64.
func (p *program) Inst(k int, in *regalloc.Inst) {
	i := &p.insts[k]
	if i.op <= loadLive {
		in.Kind, in.Safepoint, in.Label = kinds[i.op], i.point, int32(i.label)
		return
	}
	in.Label = int32(i.label)
	in.Ends = i.op == branch || i.op == branchTo || i.op == ret
	p.ops = in.Ops
	i.visit(func(r *code.R, use, def bool) {
		if !r.Virtual() {
			return
		}
		o := regalloc.Operand{V: p.index(*r)}
		if use {
			o.Role |= regalloc.Use
		}
		if def {
			o.Role |= regalloc.Def
		}
		p.ops = append(p.ops, o)
	})
	in.Ops = p.ops
	flags := specs[i.op].flags
	in.Copy = len(in.Ops) == 2 && flags&copies != 0
	in.Hint = in.Copy
	in.Remat = len(in.Ops) == 1 && p.constant(i) && i.d.Virtual()
}

// constant reports whether an instruction makes the same wherever it stands: of constants, or of words of the block
// that stay as they are.
func (p *program) constant(i *inst) bool {
	size := int32(8)
	switch {
	case specs[i.op].flags&made != 0:
		return true
	case i.n != block || i.m != 0 || i.imm>>24&1 == 0:
		return false
	case i.op == ldrW:
		size = 4
	case i.op != ldrX:
		return false
	}
	at := int32(i.imm>>10&0xfff) * size
	return at >= p.steady[0] && at < p.steady[1]
}

var allocators = sync.Pool{New: func() any { return new(regalloc.Allocator) }}

// allocate replaces virtual registers by real ones and slots of the frame, and returns where the slots end.
func (p *program) allocate(o code.Placing) (int, error) {
	classes := [...]regalloc.Class{{Regs: freeGPR, Slot: 8, Count: p.f.NumRegs(code.GPR)},
		{Regs: freeVec, Slot: 16, Count: p.vecs}}
	a := allocators.Get().(*regalloc.Allocator)
	defer allocators.Put(a)
	a.Coarse = o.Coarse
	p.res = a.Run(p, classes[:], o.Slots)
	p.frame = fixed[o.Frame]
	out := p.spare[:0]
	p.temps = temporaries{hot: p.temps.hot[:0]}
	for k := range p.insts {
		out = p.rewrite(out, p.insts[k])
	}
	end := p.res.Bytes
	p.spare, p.insts, p.res = p.insts, out, nil
	return end, p.err
}

// rewrite appends an instruction with real registers, and what moves spilled values around it.
func (p *program) rewrite(out []inst, i inst) []inst {
	switch {
	case i.op == saveLive || i.op == loadLive:
		p.temps.forget()
		return p.safepoint(out, &i)
	case i.op <= loadLive:
		p.temps.pass(i.op)
		return append(out, i)
	case i.d.Virtual() && p.constant(&i) && p.res.Reg[p.index(i.d)] < 0 && p.res.Remat[p.index(i.d)] >= 0:
		return out // made where it is needed
	}
	spilled := false
	for _, r := range [...]*code.R{&i.n, &i.m, &i.a, &i.d} {
		if r.Virtual() {
			if n := p.res.Reg[p.index(*r)]; n >= 0 {
				*r = code.Reg(r.Class(), int(n))
			} else {
				spilled = true
			}
		}
	}
	if specs[i.op].flags&copies != 0 {
		switch {
		case i.d == i.n:
			return out
		case !spilled:
		case !i.d.Virtual():
			return p.load(out, i.d, i.n)
		case !i.n.Virtual():
			p.temps.lost(i.d)
			return p.move(out, i.n, i.d, true)
		}
	}
	if !spilled {
		return append(out, i)
	}
	return p.spilled(out, i)
}

// spilled rewrites an instruction some of whose registers are slots.
func (p *program) spilled(out []inst, i inst) []inst {
	type temp struct{ v, r code.R }
	var stores []temp
	p.temps.begin()
	i.visit(func(r *code.R, use, def bool) {
		if !r.Virtual() {
			return
		}
		v := *r
		t, there := p.temps.take(v)
		if t == 0 {
			p.err = fmt.Errorf("[arm64] no register left to move a value through: operation %d", i.op)
			return
		}
		*r = t
		if use && !there {
			out = p.load(out, t, v)
		}
		if def {
			stores = append(stores, temp{v, t})
		}
	})
	out = append(out, i)
	for _, t := range stores {
		out = p.move(out, t.r, t.v, true)
	}
	return out
}

// load fills a register with a virtual register's value, from its slot or made again.
func (p *program) load(out []inst, r, v code.R) []inst {
	if n := p.res.Remat[p.index(v)]; n >= 0 {
		i := p.insts[n]
		i.d = r
		return append(out, i)
	}
	return p.move(out, r, v, false)
}

// move loads a register from a virtual register's slot, or stores it there.
func (p *program) move(out []inst, r, v code.R, store bool) []inst {
	op, size := ldrX, int32(8)
	switch {
	case v.Class() == code.Vec && store:
		op, size = strQ, 16
	case v.Class() == code.Vec:
		op, size = ldrQ, 16
	case store:
		op = strX
	}
	at := p.res.Slot[p.index(v)]
	if fits(at, size) {
		return append(out, inst{op: op, d: r, n: p.frame, imm: scaled(at, size)})
	}
	out = append(out, constantInsts(spillAddress, uint64(at), true)...)
	return append(out, inst{op: op, d: r, n: p.frame, m: spillAddress, imm: 1<<21 | 0x6800})
}

// safepoint expands saveLive and loadLive.
func (p *program) safepoint(out []inst, i *inst) []inst {
	if int(i.point) >= len(p.res.Points) {
		return out
	}
	gprs := int32(p.f.NumRegs(code.GPR))
	for _, n := range p.res.Points[i.point] {
		v := code.Reg(code.GPR, code.FirstVirtual+int(n))
		if n >= gprs {
			v = code.Reg(code.Vec, code.FirstVirtual+int(n-gprs))
		}
		r := code.Reg(v.Class(), int(p.res.Reg[n]))
		switch {
		case i.op == loadLive:
			out = p.load(out, r, v)
		case p.res.Remat[n] < 0:
			out = p.move(out, r, v, true)
		}
	}
	return out
}
