package msl

import (
	"math"
	"strconv"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// operand is a scalar: a constant if in is nil, else the result of an instruction. The zero operand is no value.
type operand struct {
	in   *kir.Instr
	ty   kir.Type
	bits uint64
}

func (o operand) isConst() bool { return o.in == nil && o.ty != kir.Void }

// int returns a constant integer's or bool's value, extended by its type.
func (o operand) int() int64 {
	if o.ty.IsInt() && o.ty.IsSigned() {
		s := 64 - o.ty.Bits()
		return int64(o.bits<<s) >> s
	}
	return int64(o.bits)
}

// text writes a constant of type t for messages.
func (o operand) text(t *ctype) string {
	switch {
	case t == typeBool:
		return strconv.FormatBool(o.bits != 0)
	case o.ty.IsFloat():
		return strconv.FormatFloat(kir.ToFloat64(o.ty, o.bits), 'g', -1, 32)
	case o.ty == kir.U64:
		return strconv.FormatUint(o.bits, 10)
	}
	return strconv.FormatInt(o.int(), 10)
}

// emitter writes the kir of one kernel: it folds and simplifies operations as they come. With exec set it evaluates
// instead: then every operand is a constant, and what is not constant ends the evaluation (see consteval.go).
type emitter struct {
	c     *compiler
	k     *kir.Kernel
	blk   *kir.Block // what is emitted goes to its end
	exec  bool
	steps int // of an evaluation
	// unevaluated says that what is emitted is thrown away: the operand of sizeof or decltype, code that never runs.
	unevaluated bool

	pos Pos
	kp  kir.Pos // of pos

	// consts holds the kernel's constants, which stand at its top, by type and bits.
	consts map[constKey]*kir.Instr
	// builtins and addresses stand at the kernel's top as well.
	head   []*kir.Instr
	leaves map[leafKey]operand

	// wishes says what a pragma asks of a Loop; vol marks loads of volatile memory.
	wishes map[*kir.Instr]uint8
	vol    map[*kir.Instr]bool

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

// at makes a place the one that instructions and messages get.
func (em *emitter) at(p Pos) {
	if p != em.pos {
		em.pos = p
		if !em.exec {
			em.kp = em.c.kirPos(p)
		}
	}
}

func constant(t kir.Type, bits uint64) operand { return operand{ty: t, bits: bits & t.Mask()} }
func boolConst(b bool) operand {
	if b {
		return operand{ty: kir.Bool, bits: 1}
	}
	return operand{ty: kir.Bool}
}
func i64(v int64) operand  { return operand{ty: kir.I64, bits: uint64(v)} }
func u32(v uint32) operand { return operand{ty: kir.U32, bits: uint64(v)} }
func fconst(t kir.Type, v float64) operand {
	return operand{ty: t, bits: kir.FromFloat64(t, v) & t.Mask()}
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
	in := &kir.Instr{Op: kir.Const, Type: o.ty, Imm: o.bits, Pos: em.kp}
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
	in.Pos = em.kp
	em.c.instrs++
	if em.c.instrs > maxInstrs {
		em.c.fatal(TooLarge, em.pos, "the kernel has more than %d instructions once its calls are inlined", maxInstrs)
	}
	if em.c.opt.Portable && (in.Op.Convergent() || in.Op == kir.Loop) {
		em.c.portable[in.Pos] = em.pos
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
	in := &kir.Instr{Op: op, Type: t, Mode: mode, Imm: imm, Pos: em.kp}
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

// fold computes an operation on constants by kir's semantics.
func fold(op kir.Op, t kir.Type, args []operand) (operand, bool) {
	var raw [3]uint64
	for i, a := range args {
		raw[i] = a.bits
	}
	at := args[0].ty
	if op == kir.Select {
		at = args[1].ty
	}
	bits, ok := kir.Eval(op, kir.ModeNone, t, at, raw[:len(args)]...)
	return operand{ty: t, bits: bits}, ok
}

// simplify applies identities that hold for every operand, NaNs and signed zeros included.
func simplify(op kir.Op, t kir.Type, args []operand) (operand, bool) {
	isInt := t.IsInt()
	switch op {
	case kir.Add, kir.Or, kir.Xor:
		if isInt && isZero(args[1]) {
			return args[0], true
		}
		if isInt && isZero(args[0]) {
			return args[1], true
		}
		if t == kir.Bool && op == kir.Or {
			return boolOr(args[0], args[1])
		}
	case kir.Sub, kir.Shl, kir.Shr:
		if isInt && isZero(args[1]) {
			return args[0], true
		}
	case kir.Mul:
		if isInt && isOne(args[1]) {
			return args[0], true
		}
		if isInt && isOne(args[0]) {
			return args[1], true
		}
		if isInt && (isZero(args[0]) || isZero(args[1])) {
			return operand{ty: t}, true
		}
	case kir.Div:
		if isInt && isOne(args[1]) {
			return args[0], true
		}
	case kir.And:
		if t == kir.Bool {
			return boolAnd(args[0], args[1])
		}
	case kir.Not:
		if in := args[0].in; in != nil && in.Op == kir.Not {
			return operand{in: in.Args[0], ty: t}, true
		}
	case kir.Select:
		if args[0].isConst() {
			if args[0].bits != 0 {
				return args[1], true
			}
			return args[2], true
		}
		if args[1] == args[2] {
			return args[1], true
		}
	case kir.Convert, kir.Bitcast:
		if args[0].ty == t {
			return args[0], true
		}
	}
	return operand{}, false
}

func isZero(o operand) bool { return o.isConst() && o.bits == 0 }
func isOne(o operand) bool  { return o.isConst() && o.bits == 1 }

func boolAnd(a, b operand) (operand, bool) {
	switch {
	case isZero(a), isOne(b):
		return a, true
	case isZero(b), isOne(a):
		return b, true
	}
	return operand{}, false
}

func boolOr(a, b operand) (operand, bool) {
	switch {
	case isOne(a), isZero(b):
		return a, true
	case isOne(b), isZero(a):
		return b, true
	}
	return operand{}, false
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

func (mem *memory) storeAt(p, x operand) {
	if mem.em.exec {
		mem.storeImage(p, x)
		return
	}
	mem.em.emit(&kir.Instr{Op: kir.Store, Args: []*kir.Instr{mem.em.instr(p), mem.em.instr(x)}})
}

// newRegion makes addressed memory and returns a pointer to it.
func (em *emitter) newRegion(r kir.Region) (int, operand) {
	if em.exec {
		em.notConst("the address of a variable")
	}
	r.Pos = em.kp
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

// bailout ends the compilation of a unit whose errors have been reported.
type bailout struct{}

// floatBits returns the constant of a floating literal: rounded once.
func floatBits(t kir.Type, l *FloatLit) uint64 {
	switch t {
	case kir.F32:
		if v, err := strconv.ParseFloat(l.Text, 32); err == nil {
			return uint64(math.Float32bits(float32(v)))
		}
		return uint64(math.Float32bits(float32(l.Value)))
	case kir.F64:
		return math.Float64bits(l.Value)
	}
	return kir.FromFloat64(t, l.Value) & t.Mask()
}
