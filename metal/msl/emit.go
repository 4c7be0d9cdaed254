package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
)

// emitter writes the kir of one kernel: it folds and simplifies operations as they come. With exec set it evaluates
// instead: then every operand is a constant, and what is not constant ends the evaluation (see constants.go).
type emitter struct {
	c     *compiler
	k     *kir.Kernel
	blk   *kir.Block // what is emitted goes to its end
	exec  bool
	steps int // of an evaluation
	// unevaluated says that what is emitted is thrown away: the operand of sizeof or decltype, code that never runs.
	unevaluated bool

	pos    Pos
	kirPos kir.Pos // of pos

	// consts holds the kernel's constants, which stand at its top, by type and bits.
	consts map[constKey]*kir.Instr
	// builtins and addresses stand at the kernel's top as well.
	head   []*kir.Instr
	leaves map[leafKey]operand

	hints opt.Hints

	loops int // loops around what is emitted
}

type constKey struct {
	ty   kir.Type
	bits uint64
}

type leafKey struct {
	op   kir.Op
	mode kir.Mode
	imm  uint64
}

// bailout ends the compilation of a unit whose errors have been reported.
type bailout struct{}

// at makes a place the one that instructions and messages get.
func (em *emitter) at(p Pos) {
	if p != em.pos {
		em.pos = p
		if !em.exec {
			em.kirPos = em.c.kirPos(p)
		}
	}
}

// instr returns an operand as an instruction. Constants stand once, at the kernel's top.
func (em *emitter) instr(o operand) *kir.Instr {
	if o.in != nil {
		return o.in
	}
	if em.exec {
		em.notConst("a run-time value")
	}
	key := constKey{o.ty, o.bits}
	if in := em.consts[key]; in != nil {
		return in
	}
	in := &kir.Instr{Op: kir.Const, Type: o.ty, Imm: o.bits, Pos: em.kirPos}
	if o.ty == kir.Void {
		in.Type = kir.I32
	}
	em.consts[key] = in
	em.head = append(em.head, in)
	return in
}

func (em *emitter) emit(in *kir.Instr) operand {
	if em.exec {
		em.notConst("an operation at run time")
	}
	in.Pos = em.kirPos
	em.c.instrs++
	if em.c.instrs > maxInstrs {
		em.c.fatal(TooLarge, em.pos, "the kernel has more than %d instructions once its calls are inlined", maxInstrs)
	}
	if in.Op == kir.Store && in.Args[0].Type == kir.PtrDevice || in.Op.IsAtomic() ||
		em.c.opt.Portable && (in.Op.Convergent() || in.Op == kir.Loop) {
		em.c.places[in.Pos] = em.pos
	}
	em.blk.Instrs = append(em.blk.Instrs, in)
	return operand{in: in, ty: in.Type}
}

// leaf emits an instruction without operands that means the same everywhere at the kernel's top, once.
func (em *emitter) leaf(op kir.Op, t kir.Type, mode kir.Mode, imm uint64) operand {
	if em.exec {
		em.notConst("a run-time value")
	}
	key := leafKey{op, mode, imm}
	if o, ok := em.leaves[key]; ok {
		return o
	}
	in := &kir.Instr{Op: op, Type: t, Mode: mode, Imm: imm, Pos: em.kirPos}
	o := operand{in: in, ty: t}
	em.leaves[key] = o
	em.head = append(em.head, in)
	return o
}

// op emits a pure operation, or computes it if its operands are constant.
func (em *emitter) op(op kir.Op, t kir.Type, args ...operand) operand {
	em.step()
	allConst := true
	for i := range args {
		if args[i].in != nil {
			allConst = false
			break
		}
	}
	if allConst {
		if o, ok := fold(op, t, args); ok {
			return o
		}
	}
	if o, ok := simplify(op, t, args); ok {
		return o
	}
	in := &kir.Instr{Op: op, Type: t, Args: make([]*kir.Instr, len(args))}
	for i, a := range args {
		in.Args[i] = em.instr(a)
	}
	return em.emit(in)
}

// convert changes a scalar's representation.
func (em *emitter) convert(o operand, t kir.Type) operand {
	if o.ty == t || o.ty == kir.Void {
		if o.ty == kir.Void {
			return operand{ty: t}
		}
		return o
	}
	if o.ty.IsPtr() || t.IsPtr() {
		if o.ty.IsPtr() && t == kir.Bool {
			return em.op(kir.Ne, kir.Bool, o, operand{ty: o.ty})
		}
		if o.ty.IsPtr() && t != kir.U64 {
			o = em.op(kir.Bitcast, kir.U64, o)
			if t.IsPtr() {
				return em.op(kir.Bitcast, t, o)
			}
			return em.op(kir.Convert, t, o)
		}
		if t.IsPtr() && o.ty != kir.U64 {
			o = em.op(kir.Convert, kir.U64, o)
		}
		return em.op(kir.Bitcast, t, o)
	}
	return em.op(kir.Convert, t, o)
}

func (em *emitter) not(o operand) operand { return em.op(kir.Not, kir.Bool, o) }

// ptrAdd moves a pointer by idx (I64; may be no value) plus imm bytes. Constant parts gather in Imm.
func (em *emitter) ptrAdd(p, idx operand, imm int64) operand {
	if idx.isConst() {
		imm += int64(idx.bits)
		idx = operand{}
	}
	if in := p.in; in != nil && in.Op == kir.PtrAdd {
		inner := operand{in: in.Args[1], ty: kir.I64}
		if in.Args[1].Op == kir.Const {
			inner = operand{ty: kir.I64, bits: in.Args[1].Imm}
		}
		switch {
		case isZero(inner):
			imm += int64(in.Imm)
			p = operand{in: in.Args[0], ty: p.ty}
		case idx.in == nil:
			imm += int64(in.Imm)
			p, idx = operand{in: in.Args[0], ty: p.ty}, inner
		}
	}
	if idx.in == nil && imm == 0 {
		return p
	}
	if p.isConst() && idx.in == nil {
		return operand{ty: p.ty, bits: kir.PtrMove(p.bits, imm)}
	}
	if idx.in == nil {
		idx = i64(0)
	}
	in := &kir.Instr{Op: kir.PtrAdd, Type: p.ty, Imm: uint64(imm), Args: []*kir.Instr{em.instr(p), em.instr(idx)}}
	return em.emit(in)
}

// newVar makes a kir variable.
func (em *emitter) newVar(name string, t kir.Type) int {
	em.k.Vars = append(em.k.Vars, kir.Var{Name: name, Type: t})
	return len(em.k.Vars) - 1
}

func (em *emitter) varGet(v int) operand {
	return em.emit(&kir.Instr{Op: kir.VarGet, Type: em.k.Vars[v].Type, Imm: uint64(v)})
}

func (em *emitter) varSet(v int, o operand) {
	em.emit(&kir.Instr{Op: kir.VarSet, Imm: uint64(v), Args: []*kir.Instr{em.instr(o)}})
}

// newRegion makes addressed memory and returns a pointer to it.
func (em *emitter) newRegion(r kir.Region) (int, operand) {
	if em.exec {
		em.notConst("the address of a variable")
	}
	r.Pos = em.kirPos
	if r.Align < 1 {
		r.Align = 1
	}
	em.k.Regions = append(em.k.Regions, r)
	i := len(em.k.Regions) - 1
	return i, em.leaf(kir.RegionAddr, kir.PtrTo(r.Space), 0, uint64(i))
}

// inBlock emits what f does into a new Block.
func (em *emitter) inBlock(f func()) *kir.Block {
	saved := em.blk
	b := &kir.Block{}
	em.blk = b
	f()
	em.blk = saved
	return b
}

// structured emits an If, BlockOp or Loop whose bodies are already made.
func (em *emitter) structured(in *kir.Instr) { em.emit(in) }

func (em *emitter) breakTo(target *kir.Instr) { em.emit(&kir.Instr{Op: kir.Break, Target: target}) }

// step counts the work of a constant evaluation and ends it when it has gone on for too long.
func (em *emitter) step() {
	if em.exec {
		em.steps++
		if em.steps > maxSteps {
			em.c.errorf(NotConstant, em.pos, "the constant expression takes more than %d steps", maxSteps)
			panic(notConstant{reported: true})
		}
	}
}

func (em *emitter) charge(n int) {
	if em.exec {
		em.steps += n
		em.step()
	}
}

// pick selects a component by a run-time index (I64); an index outside yields the last.
func (em *emitter) pick(comps []operand, idx operand) operand {
	if idx.isConst() && idx.bits < uint64(len(comps)) {
		return comps[idx.bits]
	}
	r := comps[len(comps)-1]
	for i := len(comps) - 2; i >= 0; i-- {
		r = em.op(kir.Select, r.ty, em.op(kir.Eq, kir.Bool, idx, i64(int64(i))), comps[i], r)
	}
	return r
}

// forRange emits a loop that runs body for 0 to n-1.
func (em *emitter) forRange(name string, n int64, body func(i operand)) {
	if em.exec {
		for i := range n {
			body(i64(i))
		}
		return
	}
	v := em.newVar(name, kir.I64)
	em.varSet(v, i64(0))
	loop := &kir.Instr{Op: kir.Loop}
	em.loops++
	defer func() { em.loops-- }()
	loop.Body = em.inBlock(func() {
		i := em.varGet(v)
		done := em.inBlock(func() { em.breakTo(loop) })
		em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{em.instr(em.op(kir.Ge, kir.Bool, i, i64(n)))}, Body: done})
		body(i)
		em.varSet(v, em.op(kir.Add, kir.I64, i, i64(1)))
	})
	em.structured(loop)
}

// discard checks code that never runs. The functions it calls are not expanded.
func (em *emitter) discard(f func()) {
	saved := em.unevaluated
	em.unevaluated = true
	em.inBlock(f)
	em.unevaluated = saved
}

func (em *emitter) bitcast(o operand, t kir.Type) operand {
	if o.ty == t {
		return o
	}
	return em.op(kir.Bitcast, t, o)
}

// finish makes a kernel of what was emitted: its head goes to its top, and it is cleaned. Last, it computes the
// reflection.
func (em *emitter) finish() {
	em.k.Body.Instrs = append(em.head[:len(em.head):len(em.head)], em.k.Body.Instrs...)
	if em.c.raw {
		em.k.Renumber()
	} else {
		opt.Clean(em.k, em.hints)
	}
	em.c.checkReadOnly(reflectParams(em.k))
}
