package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// cleaner walks a kernel once, in the order of execution, and rebuilds its blocks. While it works, an instruction's
// ID is the number of the scope that holds it (-1 for what stands at the kernel's top), and the Target of an
// instruction that was dropped is the value that replaces it.
type cleaner struct {
	em     *emitter
	k      *kir.Kernel
	known  []*kir.Instr // by variable: its value here, nil if unknown
	trail  []varChange
	cse    map[cseKey]*kir.Instr
	scopes []level // the blocks being walked
	open   []bool  // by number of scope
	nests  map[*kir.Instr]*nest
	gens   [4]uint64 // by address space: changes where memory of the space may
	gen    uint64
	grown  int // instructions that unrolling has made
}

// level is a block being walked.
type level struct {
	id    int
	out   []*kir.Instr
	added []cseKey
	loop  *nest // the loop whose body it is
}

type varChange struct {
	v   uint64
	old *kir.Instr
}

type cseKey struct {
	op         kir.Op
	ty         kir.Type
	mode       kir.Mode
	imm        uint64
	a0, a1, a2 *kir.Instr
}

// nest is what there is to know of a structured instruction before it is walked.
type nest struct {
	sets    bitset  // the variables set inside
	stores  [4]bool // by address space: memory may change inside
	barrier bool
	size    int
	exits   int // Breaks that leave it
	again   int // Continues that restart it
	left    int // Breaks that leave it and were kept
}

// start prepares for a walk.
func (c *cleaner) start() {
	c.known = make([]*kir.Instr, len(c.k.Vars))
	c.trail = c.trail[:0]
	c.cse = make(map[cseKey]*kir.Instr, 256)
	c.open = c.open[:0]
	c.nests = map[*kir.Instr]*nest{}
	for _, in := range c.em.head {
		in.ID = -1
	}
	var all nest
	all.sets = newBitset(len(c.k.Vars))
	c.survey(c.k.Body, &all)
}

// survey fills in the nests of a block's structured instructions and adds what is in the block to n.
func (c *cleaner) survey(b *kir.Block, n *nest) {
	if b == nil {
		return
	}
	n.size += len(b.Instrs)
	for _, in := range b.Instrs {
		switch in.Op {
		case kir.VarSet:
			n.sets.add(in.Imm)
		case kir.Break:
			c.nests[in.Target].exits++
		case kir.Continue:
			c.nests[in.Target].again++
		case kir.Store:
			s, _ := in.Args[0].Type.Space()
			n.stores[s] = true
		case kir.Barrier, kir.SimdBarrier, kir.Fence, kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS:
			n.stores[kir.Device], n.stores[kir.Threadgroup] = true, true
			n.barrier = n.barrier || in.Op == kir.Barrier
		case kir.If, kir.BlockOp, kir.Loop:
			m := &nest{sets: newBitset(len(c.k.Vars))}
			c.nests[in] = m
			c.survey(in.Body, m)
			c.survey(in.Else, m)
			n.include(m)
		}
	}
}

func (n *nest) include(m *nest) {
	n.sets.or(m.sets)
	n.size += m.size
	n.barrier = n.barrier || m.barrier
	for s := range n.stores {
		n.stores[s] = n.stores[s] || m.stores[s]
	}
}

func (c *cleaner) set(v uint64, x *kir.Instr) {
	if c.known[v] != x {
		c.trail = append(c.trail, varChange{v, c.known[v]})
		c.known[v] = x
	}
}

// forget gives up what is known of variables.
func (c *cleaner) forget(sets bitset) {
	sets.each(func(v uint64) { c.set(v, nil) })
}

// undo takes back the changes after mark and returns what the variables held, the newest first.
func (c *cleaner) undo(mark int) map[uint64]*kir.Instr {
	var held map[uint64]*kir.Instr
	if len(c.trail) > mark {
		held = make(map[uint64]*kir.Instr, len(c.trail)-mark)
	}
	for i := len(c.trail) - 1; i >= mark; i-- {
		ch := c.trail[i]
		if _, ok := held[ch.v]; !ok {
			held[ch.v] = c.known[ch.v]
		}
		c.known[ch.v] = ch.old
	}
	c.trail = c.trail[:mark]
	return held
}

// resolve returns what stands for a value now.
func resolve(in *kir.Instr) *kir.Instr {
	for in.Target != nil {
		in = in.Target
	}
	return in
}

// block walks a block, which is the body of a loop if loop is not nil, and reports whether control never reaches its
// end.
func (c *cleaner) block(b *kir.Block, loop *nest) (ends bool) {
	if b == nil {
		return false
	}
	c.scopes = append(c.scopes, level{id: len(c.open), loop: loop, out: make([]*kir.Instr, 0, len(b.Instrs))})
	c.open = append(c.open, true)
	ends = c.list(b.Instrs)
	s := &c.scopes[len(c.scopes)-1]
	b.Instrs = s.out
	for _, k := range s.added {
		delete(c.cse, k)
	}
	c.open[s.id] = false
	c.scopes = c.scopes[:len(c.scopes)-1]
	return ends
}

// list walks instructions in the current scope until one is never passed.
func (c *cleaner) list(l []*kir.Instr) (ends bool) {
	for _, in := range l {
		if c.instr(in) {
			return true
		}
	}
	return false
}

// put keeps an instruction in the current scope.
func (c *cleaner) put(in *kir.Instr) { c.putAt(len(c.scopes)-1, in) }

func (c *cleaner) putAt(at int, in *kir.Instr) {
	s := &c.scopes[at]
	in.ID = s.id
	s.out = append(s.out, in)
}

// instr walks one instruction and reports whether control never passes it.
func (c *cleaner) instr(in *kir.Instr) (ends bool) {
	for j, a := range in.Args {
		in.Args[j] = resolve(a)
	}
	switch in.Op {
	case kir.VarGet:
		if x := c.known[in.Imm]; x != nil {
			in.Target = x
			return false
		}
		c.set(in.Imm, in)
		c.putAt(c.invariantVar(in.Imm), in)
	case kir.VarSet:
		if c.known[in.Imm] != in.Args[0] {
			c.set(in.Imm, in.Args[0])
			c.put(in)
		}
	case kir.If:
		return c.ifInstr(in)
	case kir.BlockOp:
		return c.blockOp(in)
	case kir.Loop:
		return c.loop(in)
	case kir.Break:
		c.nests[in.Target].left++
		c.put(in)
		return true
	case kir.Continue, kir.Return:
		c.put(in)
		return true
	case kir.Load:
		c.loadInstr(in)
	default:
		if in.Op.Pure() {
			c.pure(in)
			return false
		}
		c.clobber(in)
		c.put(in)
	}
	return false
}

// value returns what a variable holds here.
func (c *cleaner) value(v uint64, pos kir.Pos) *kir.Instr {
	if x := c.known[v]; x != nil {
		return x
	}
	in := &kir.Instr{Op: kir.VarGet, Type: c.k.Vars[v].Type, Imm: v, Pos: pos}
	c.instr(in)
	return in
}

// make walks a new pure instruction and returns its value.
func (c *cleaner) make(op kir.Op, t kir.Type, pos kir.Pos, args ...*kir.Instr) *kir.Instr {
	in := &kir.Instr{Op: op, Type: t, Args: args, Pos: pos}
	c.pure(in)
	return resolve(in)
}

// clobber notes that memory may have changed.
func (c *cleaner) clobber(in *kir.Instr) {
	switch in.Op {
	case kir.Store:
		s, _ := in.Args[0].Type.Space()
		c.gen++
		c.gens[s] = c.gen
	case kir.Barrier, kir.SimdBarrier, kir.Fence, kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS:
		c.gen++
		c.gens[kir.Device], c.gens[kir.Threadgroup] = c.gen, c.gen
	}
}

// loadInstr drops a load that repeats one after which the memory has not changed.
func (c *cleaner) loadInstr(in *kir.Instr) {
	if c.em.volatiles[in] {
		c.put(in)
		return
	}
	s, _ := in.Args[0].Type.Space()
	key := cseKey{op: kir.Load, ty: in.Type, imm: c.gens[s], a0: in.Args[0]}
	if x := c.cse[key]; x != nil {
		in.Target = x
		return
	}
	c.cse[key] = in
	top := &c.scopes[len(c.scopes)-1]
	top.added = append(top.added, key)
	c.put(in)
}

// pure folds a pure instruction, finds an equal earlier one, or keeps it: in front of the loops in which it does not
// vary.
func (c *cleaner) pure(in *kir.Instr) {
	if in.Op >= kir.Add && in.Op <= kir.Bitcast {
		if c.fold(in) {
			return
		}
	}
	if in.Op == kir.PtrAdd {
		c.mergePtr(in)
		if in.Imm == 0 && in.Args[1].Op == kir.Const && in.Args[1].Imm == 0 {
			in.Target = in.Args[0]
			return
		}
	}
	key := cseKey{op: in.Op, ty: in.Type, mode: in.Mode, imm: in.Imm}
	home := 0
	switch len(in.Args) {
	case 3:
		key.a2 = in.Args[2]
		home = max(home, key.a2.ID)
		fallthrough
	case 2:
		key.a1 = in.Args[1]
		home = max(home, key.a1.ID)
		fallthrough
	case 1:
		key.a0 = in.Args[0]
		home = max(home, key.a0.ID)
	}
	if x := c.cse[key]; x != nil {
		in.Target = x
		return
	}
	at := len(c.scopes) - 1
	for i := at; i > 0 && c.scopes[i].id > home; i-- {
		if c.scopes[i].loop != nil {
			at = i - 1
		}
	}
	c.cse[key] = in
	c.scopes[at].added = append(c.scopes[at].added, key)
	c.putAt(at, in)
}

// invariantVar returns the level of the scope in which a variable can be read for here: outside of the loops that do
// not set it.
func (c *cleaner) invariantVar(v uint64) int {
	at := len(c.scopes) - 1
	for i := at; i > 0; i-- {
		n := c.scopes[i].loop
		if n == nil {
			continue
		}
		if n.sets.has(v) {
			break
		}
		at = i - 1
	}
	return at
}

// mergePtr joins a pointer addition to the one that makes its pointer, where one of the offsets is constant.
func (c *cleaner) mergePtr(in *kir.Instr) {
	isConst := func(x *kir.Instr) bool { return x.Op == kir.Const }
	if isConst(in.Args[1]) && in.Args[1].Imm != 0 {
		in.Imm += in.Args[1].Imm
		in.Args[1] = c.em.instrAt(operand{ty: kir.I64})
	}
	p := in.Args[0]
	if p.Op != kir.PtrAdd {
		return
	}
	switch {
	case isConst(p.Args[1]):
		in.Imm += p.Imm + p.Args[1].Imm
		in.Args[0] = p.Args[0]
	case isConst(in.Args[1]):
		in.Imm += p.Imm
		in.Args[0], in.Args[1] = p.Args[0], p.Args[1]
	}
}

// finish cleans a kernel whose variables have been demoted: values replace the variables that hold them, short loops
// are unrolled, arrays whose indices turn out to be constant become variables, what repeats or has no use goes. Last,
// it computes the reflection.
func (em *emitter) finish() {
	c := &cleaner{em: em, k: em.k}
	for range maxRounds {
		if em.c.raw {
			break
		}
		c.start()
		c.block(em.k.Body, nil)
		if !c.promote() {
			break
		}
	}
	em.k.Body.Instrs = append(append([]*kir.Instr(nil), em.head...), em.k.Body.Instrs...)
	if !em.c.raw {
		kir.Sweep(em.k, isRoot)
		if c.dropStores() {
			kir.Sweep(em.k, isRoot)
		}
		c.compact()
	}
	em.k.Renumber()
	em.c.checkReadOnly(reflectParams(em.k))
}

// maxRounds bounds how often a kernel is cleaned: once more after arrays became variables.
const maxRounds = 3

// instrAt is instr for operands that stand at the kernel's top or exist already.
func (em *emitter) instrAt(o operand) *kir.Instr {
	n := len(em.head)
	in := em.instr(o)
	if len(em.head) > n {
		in.ID = -1
	}
	return in
}
