package ptx

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Registers with a meaning of their own: where the way to a fault finds what went wrong, and how many rounds of loops a
// thread has done since it asked whether to stop, and before.
const (
	faultPointer = "%fault_pointer"
	faultSite    = "%fault_site"
	roundsReg    = "%rounds"
)

// class is a kind of register. Registers have no type but a size: every instruction of that size takes them.
type class uint8

const (
	pred class = iota // Bool
	b16               // F16, BF16
	b32               // integers of up to 32 bits, zero-extended; F32
	b64               // integers of 64 bits, pointers
	numClasses
)

var classNames = [numClasses]struct{ typ, prefix string }{{"pred", "%p"}, {"b16", "%h"}, {"b32", "%r"}, {"b64", "%d"}}

func classOf(t kir.Type) class {
	switch {
	case t == kir.Bool:
		return pred
	case t == kir.F16 || t == kir.BF16:
		return b16
	case t.Size() == 8:
		return b64
	}
	return b32
}

// emitter prints lines.
type emitter struct {
	k          *kir.Kernel
	opt        Options
	err        error
	body, cold []line // cold is what comes after the body: the ways to faults
	pos        kir.Pos
	counts     [numClasses]int
	labels     int
}

// numbers prints operations on registers.
type numbers struct{ *emitter }

// values knows where the values of instructions are.
type values struct {
	numbers
	flow     *flow
	vals     []string  // by ID: the register of a value
	ptrs     []pointer // by ID
	vars     []string  // by Var
	builtins map[builtinKey]string
	sums     map[sumKey]string // of this block and those around it
	summed   []sumKey
}

// memory prints accesses, with their checks.
type memory struct {
	values
	entry   string
	layout  Layout
	sites   []*kir.Instr
	objects []objectCode // by object number
}

// printer prints one kernel.
type printer struct {
	memory
	polls bool // some loop asks whether to stop

	// Masks. mask is the register with the lanes that are active here, "" if the kernel does not ask; leave the one that
	// says which construct a lane is leaving, 0: none.
	masks       bool
	mask, leave string
	constructs  []construct
	truth       string // a predicate that is true
}

type builtinKey struct {
	mode kir.Mode
	c    uint64
}

func newPrinter(k *kir.Kernel, opt Options) *printer {
	v := values{numbers: numbers{&emitter{k: k, opt: opt}}, flow: newFlow(k), vals: make([]string, k.NumInstrs),
		ptrs: make([]pointer, k.NumInstrs), builtins: map[builtinKey]string{}, sums: map[sumKey]string{}}
	p := &printer{memory: memory{values: v, entry: mangle(k.Name)}}
	k.Body.Walk(func(in *kir.Instr) { p.masks = p.masks || needsMask(in.Op) })
	p.lay()
	return p
}

// needsMask reports whether an operation depends on which lanes of its SIMD-group are active.
func needsMask(op kir.Op) bool { return op.Convergent() && op != kir.Barrier }

// emit prints one instruction or label.
func (p *emitter) emit(format string, args ...any) {
	p.body = append(p.body, line{fmt.Sprintf(format, args...), p.pos})
}

// new returns a register.
func (p *emitter) new(c class) string {
	p.counts[c]++
	return fmt.Sprintf("%s%d", classNames[c].prefix, p.counts[c])
}

func (p *emitter) label() string {
	p.labels++
	return fmt.Sprintf("L%d", p.labels)
}

// dest gives a value its register.
func (p *values) dest(in *kir.Instr) string {
	r := p.new(classOf(in.Type))
	p.vals[in.ID] = r
	return r
}

// arg is the operand that a value is: a register, or a literal for constants of 32 and 64 bits.
func (p *values) arg(v *kir.Instr) string {
	if v.Type.IsPtr() {
		return p.fullPointer(v)
	}
	return p.vals[v.ID]
}

// arg32 is arg of an operand of arithmetic on F32, whose literals look otherwise.
func (p *values) arg32(v *kir.Instr) string {
	if v.Op == kir.Const && v.Type == kir.F32 {
		return single(v.Imm)
	}
	return p.vals[v.ID]
}

func single(imm uint64) string { return fmt.Sprintf("0f%08X", imm) }

func literal(imm uint64) string {
	if imm < 10 {
		return fmt.Sprint(imm)
	}
	return fmt.Sprintf("%#x", imm)
}

// immediate is a literal of the type, or a register that holds it where no instruction takes one.
func (p *emitter) immediate(t kir.Type, imm uint64) string {
	switch classOf(t) {
	case pred:
		r := p.new(pred)
		p.emit("setp.eq.u32 %s, %d, 1;", r, imm&1)
		return r
	case b16:
		r := p.new(b16)
		p.emit("mov.b16 %s, %s;", r, literal(imm))
		return r
	}
	return literal(imm)
}

// move copies a value of a type from one register to another.
func (p *emitter) move(t kir.Type, d, s string) {
	p.emit("mov.%s %s, %s;", classNames[classOf(t)].typ, d, s)
}

// zero is a literal zero of a type, which mov takes for all but predicates.
func (p *emitter) setZero(t kir.Type, d string) {
	if classOf(t) == pred {
		p.emit("setp.ne.u32 %s, 0, 0;", d)
		return
	}
	p.emit("mov.%s %s, 0;", classNames[classOf(t)].typ, d)
}

func (p *emitter) fail(in *kir.Instr, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("[%s] %s in line %d: %s", p.k.Name, in.Op, in.Pos.Line, fmt.Sprintf(format, args...))
	}
}

// prints is how each operation is printed.
var prints [256]func(p *printer, in *kir.Instr)

func init() {
	for op, f := range map[kir.Op]func(*printer, *kir.Instr){
		kir.Const: (*printer).constant, kir.Builtin: (*printer).builtin,
		kir.VarGet: (*printer).varGet, kir.VarSet: (*printer).varSet,
		kir.ParamAddr: (*printer).paramAddr, kir.RegionAddr: (*printer).regionAddr,
		kir.PairDot: (*printer).pairDot, kir.Scale: (*printer).pure, kir.Select: (*printer).choose,
		kir.Convert: (*printer).convert, kir.Bitcast: (*printer).bitcast,
		kir.PtrAdd: (*printer).ptrAdd, kir.PtrDiff: (*printer).ptrDiff,
		kir.Load: (*printer).load, kir.Store: (*printer).store,
		kir.AtomicLoad: (*printer).atomicLoad, kir.AtomicStore: (*printer).atomicStore,
		kir.AtomicRMW: (*printer).atomicRMW, kir.AtomicCAS: (*printer).atomicCAS, kir.Fence: (*printer).fence,
		kir.Reduce: (*printer).reduce, kir.ScanInclusive: (*printer).scan, kir.ScanExclusive: (*printer).scan,
		kir.Shuffle: (*printer).shuffle, kir.Ballot: (*printer).ballot, kir.BroadcastFirst: (*printer).broadcastFirst,
		kir.SimdBarrier: (*printer).simdBarrier, kir.Barrier: (*printer).barrier,
		kir.If: (*printer).conditional, kir.BlockOp: (*printer).blockOp, kir.Loop: (*printer).loop,
		kir.Break: (*printer).jump, kir.Continue: (*printer).jump, kir.Return: (*printer).jump,
	} {
		prints[op] = f
	}
	for op := kir.Add; op <= kir.BitReverse; op++ {
		if prints[op] == nil {
			prints[op] = (*printer).pure
		}
	}
	for op := kir.Eq; op <= kir.Ge; op++ {
		prints[op] = (*printer).compare
	}
}

func (p *printer) block(b *kir.Block) {
	if b == nil {
		return
	}
	before := len(p.summed)
	defer func() {
		for _, key := range p.summed[before:] {
			delete(p.sums, key)
		}
		p.summed = p.summed[:before]
	}()
	for rest := b.Instrs; len(rest) > 0; {
		in := rest[0]
		p.pos = in.Pos
		if n := p.together(rest); n > 1 {
			p.joined(rest[:n])
			rest = rest[n:]
			continue
		}
		rest = rest[1:]
		f := prints[in.Op]
		if f == nil {
			p.fail(in, "this operation is not printed")
			return
		}
		f(p, in)
		if in.Op == kir.Break || in.Op == kir.Continue || in.Op == kir.Return {
			return // nothing runs after it
		}
	}
}

func (p *values) constant(in *kir.Instr) {
	if in.Type.IsPtr() {
		p.ptrs[in.ID] = pointer{reg: literal(in.Imm)}
		return
	}
	p.vals[in.ID] = p.immediate(in.Type, in.Imm)
}

func (p *values) varGet(in *kir.Instr) {
	d := p.dest(in)
	p.move(in.Type, d, p.vars[in.Imm])
	if in.Type.IsPtr() {
		p.ptrs[in.ID] = pointer{reg: d}
	}
}

func (p *values) varSet(in *kir.Instr) {
	v := in.Args[0]
	p.move(v.Type, p.vars[in.Imm], p.arg(v))
}

// assemble returns the lines of the text.
func (p *printer) assemble() []line {
	var head []line
	add := func(format string, args ...any) { head = append(head, line{text: fmt.Sprintf(format, args...)}) }
	for i, r := range p.k.Regions {
		if r.Space == kir.Constant {
			add("%s", constantTable(p.regionName(i), r.Data))
		}
	}
	add(".visible .entry %s(.param .align 16 .b8 args[%d])", p.entry, p.layout.Bytes)
	add(".maxntid %d, 1, 1", p.layout.MaxThreads)
	add("{")
	for c, n := range p.counts {
		if n > 0 {
			add(".reg .%s %s<%d>;", classNames[c].typ, classNames[c].prefix, n+1)
		}
	}
	if len(p.sites) > 0 {
		add(".reg .b64 %s;", faultPointer)
		add(".reg .b32 %s;", faultSite)
	}
	if p.polls {
		add(".reg .b32 %s;", roundsReg)
	}
	for i, r := range p.k.Regions {
		if r.Space == kir.Thread && r.Size > 0 {
			add(".local .align 16 .b8 %s[%d];", p.regionName(i), padded(r.Size))
		}
	}
	if p.polls {
		add("mov.b32 %s, 0;", roundsReg)
	}
	all := append(head, p.body...)
	all = append(all, p.cold...)
	return append(all, line{text: "}"})
}
