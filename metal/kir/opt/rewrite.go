package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// rewriter walks a kernel once, in the order of execution, and makes a new one. Instructions that it reads and those
// that it makes share one numbering, so that it can read again what it has made: the body of a loop for each of its
// iterations, the sides of a conditional for what is around it.
type rewriter struct {
	k      *kir.Kernel // what is made
	limits limits
	facts  Facts
	info   []info       // by ID
	slots  []int32      // by hash: 1 + ID of the first value
	scopes []scope      // the open blocks, the kernel's first
	open   []bool       // by block number
	known  []*kir.Instr // by variable: a value that it has here, nil if none is known
	trail  []change     // of known
	gens   [4]int32     // by address space: changes where memory of the space may
	gen    int32
	grown  int // instructions that unrolling has made
	// Memory for what is made.
	instrs []kir.Instr
	args   []*kir.Instr
}

// info is what the rewriter knows of an instruction.
type info struct {
	to    *kir.Instr // what stands for it: of one that was made itself, until it is read
	nest  *nest      // of structured ones
	next  int32      // in its slot
	block int32      // the number of the block that it is in
	depth int32      // of that block
	gen   int32      // of a Load: what it has seen of memory
	mark  mark
	lanes bool // may differ between lanes
}

// mark is what is known of an instruction from outside of the kernel.
type mark uint16

const (
	isVolatile mark = 1 << iota
	isCheck
	wantsUnrolling
	wantsLoop
	wordShift = 8 // from this bit on: 1 + the index of the word that a Load reads
)

// scope is an open block.
type scope struct {
	block *kir.Block
	id    int32
	loop  *nest // of the Loop whose body it is
}

type change struct {
	v   uint64
	old *kir.Instr
}

// nest is what there is to know of a structured instruction.
type nest struct {
	sets    bitset  // the variables set inside
	stores  [4]bool // by address space: memory may change inside
	barrier bool
	size    int
	exits   int // Breaks that leave it
	again   int // Continues that restart it
}

// newRewriter returns a rewriter that makes the new body of out of a kernel's.
func newRewriter(k, out *kir.Kernel, marks []mark, l limits) *rewriter {
	n := 64
	for n < k.NumInstrs {
		n *= 2
	}
	r := &rewriter{
		k: out, limits: l, info: make([]info, k.NumInstrs, 2*k.NumInstrs+64), slots: make([]int32, n),
		known: make([]*kir.Instr, len(k.Vars)),
	}
	for id, m := range marks {
		r.info[id].mark = m
	}
	return r
}

func (r *rewriter) run(b *kir.Block) {
	all := nest{sets: newBitset(len(r.known))}
	r.survey(b, &all)
	r.enter(nil)
	r.list(b.Instrs)
	r.k.Body = r.leave()
}

// renumber numbers the new kernel and returns the marks of its instructions.
func (r *rewriter) renumber() []mark {
	marks := make([]mark, 0, len(r.info))
	r.k.Body.Walk(func(in *kir.Instr) {
		m := mark(0)
		if in.ID != added {
			m = r.info[in.ID].mark
		}
		marks = append(marks, m)
	})
	r.k.Renumber()
	return marks
}

// added is the ID of an instruction that a pass adds to a kernel, until the kernel is renumbered.
const added = -1

// differs reports whether a new value may differ between lanes.
func (r *rewriter) differs(in *kir.Instr) bool { return r.info[in.ID].lanes }

func (r *rewriter) nest(in *kir.Instr) *nest { return r.info[in.ID].nest }

// survey makes the nests of a block's structured instructions and adds what is in the block to n.
func (r *rewriter) survey(b *kir.Block, n *nest) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		switch in.Op {
		case kir.Break:
			r.nest(in.Target).exits++
		case kir.Continue:
			r.nest(in.Target).again++
		case kir.If, kir.BlockOp, kir.Loop:
			m := &nest{sets: newBitset(len(r.known))}
			r.info[in.ID].nest = m
			r.survey(in.Body, m)
			r.survey(in.Else, m)
		}
		r.include(in, n)
	}
}

// include adds an instruction to what is known of a structured one that it is in.
func (r *rewriter) include(in *kir.Instr, n *nest) {
	n.size++
	switch in.Op {
	case kir.VarSet:
		n.sets.add(in.Imm)
	case kir.Store:
		s, _ := in.Args[0].Type.Space()
		n.stores[s] = true
	case kir.Barrier, kir.SimdBarrier, kir.Fence, kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS:
		n.stores[kir.Device], n.stores[kir.Threadgroup] = true, true
		n.barrier = n.barrier || in.Op == kir.Barrier
	case kir.If, kir.BlockOp, kir.Loop:
		m := r.nest(in)
		n.sets.or(m.sets)
		n.size += m.size
		n.barrier = n.barrier || m.barrier
		for s := range n.stores {
			n.stores[s] = n.stores[s] || m.stores[s]
		}
	}
}

// enter opens a block; loop is of the Loop whose body it is.
func (r *rewriter) enter(loop *nest) {
	r.scopes = append(r.scopes, scope{&kir.Block{}, int32(len(r.open)), loop})
	r.open = append(r.open, true)
}

// leave closes the block that was opened last.
func (r *rewriter) leave() *kir.Block {
	s := r.scopes[len(r.scopes)-1]
	r.open[s.id] = false
	r.scopes = r.scopes[:len(r.scopes)-1]
	return s.block
}

// block makes a new block of one and reports whether control never reaches its end.
func (r *rewriter) block(b *kir.Block, loop *nest) (made *kir.Block, ends bool) {
	r.enter(loop)
	ends = r.list(b.Instrs)
	return r.leave(), ends
}

// list rewrites instructions until one is never passed.
func (r *rewriter) list(l []*kir.Instr) (ends bool) {
	for len(l) > 0 {
		n := 1
		if l[0].Op == kir.MatMulAcc && r.limits.matrices {
			n = r.takeApart(l)
		} else if r.instr(l[0]) {
			return true
		}
		l = l[n:]
	}
	return false
}

// instr rewrites one instruction and reports whether control never passes it.
func (r *rewriter) instr(in *kir.Instr) (ends bool) {
	args := r.operands(in)
	switch {
	case in.Op.Pure():
		r.info[in.ID].to = r.pure(in.Op, in.Type, in.Mode, in.Imm, in.Pos, args)
	case in.Op == kir.VarGet:
		r.info[in.ID].to = r.get(in.Imm, in.Pos)
	case in.Op == kir.VarSet:
		r.assign(in.Imm, args[0], in.Pos)
	case in.Op == kir.Load:
		r.info[in.ID].to = r.load(in, args)
	case in.Op == kir.If:
		return r.branch(in, args)
	case in.Op == kir.BlockOp:
		return r.blockOp(in)
	case in.Op == kir.Loop:
		return r.loop(in)
	default:
		r.effect(in, args)
		return in.Op == kir.Break || in.Op == kir.Continue || in.Op == kir.Return
	}
	return false
}

// effect keeps an instruction that stays for what it does, or that is about other lanes.
func (r *rewriter) effect(in *kir.Instr, args []*kir.Instr) {
	x := r.put(r.copy(in, args))
	switch in.Op {
	case kir.Store:
		s, _ := args[0].Type.Space()
		r.gen++
		r.gens[s] = r.gen
	case kir.Barrier, kir.SimdBarrier, kir.Fence, kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS:
		r.gen++
		r.gens[kir.Device], r.gens[kir.Threadgroup] = r.gen, r.gen
	case kir.Reduce, kir.Ballot, kir.BroadcastFirst:
		r.info[x.ID].lanes = in.Imm != kir.Lanes
	case kir.Break:
		x.Target = r.info[in.Target.ID].to
		r.nest(x.Target).exits++
	case kir.Continue:
		x.Target = r.info[in.Target.ID].to
		r.nest(x.Target).again++
	}
}

// operands returns what stands for an instruction's operands now.
func (r *rewriter) operands(in *kir.Instr) []*kir.Instr {
	if len(in.Args) == 0 {
		return nil
	}
	if len(r.args)+len(in.Args) > cap(r.args) {
		r.args = make([]*kir.Instr, 0, 256+len(in.Args))
	}
	n := len(r.args)
	for _, a := range in.Args {
		r.args = append(r.args, r.info[a.ID].to)
	}
	return r.args[n:len(r.args):len(r.args)]
}

// create returns a new instruction that is in no block yet.
func (r *rewriter) create(op kir.Op, t kir.Type, m kir.Mode, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	if len(r.instrs) == cap(r.instrs) {
		r.instrs = make([]kir.Instr, 0, 128)
	}
	r.instrs = append(r.instrs, kir.Instr{Op: op, Type: t, Mode: m, Imm: imm, Pos: pos, Args: args, ID: len(r.info)})
	x := &r.instrs[len(r.instrs)-1]
	r.info = append(r.info, info{to: x, lanes: true})
	return x
}

// copy returns a new instruction that is as another one, without what that holds.
func (r *rewriter) copy(in *kir.Instr, args []*kir.Instr) *kir.Instr {
	x := r.create(in.Op, in.Type, in.Mode, in.Imm, in.Pos, args)
	r.info[x.ID].mark = r.info[in.ID].mark
	if n := r.nest(in); n != nil {
		r.info[x.ID].nest = n.fresh()
	}
	r.info[in.ID].to = x
	return x
}

// fresh returns what is known of a structured instruction that nothing leaves yet.
func (n *nest) fresh() *nest {
	m := *n
	m.exits, m.again = 0, 0
	return &m
}

// put appends an instruction to the current block.
func (r *rewriter) put(x *kir.Instr) *kir.Instr { return r.putAt(len(r.scopes)-1, x) }

func (r *rewriter) putAt(depth int, x *kir.Instr) *kir.Instr {
	s := &r.scopes[depth]
	s.block.Instrs = append(s.block.Instrs, x)
	r.info[x.ID].block, r.info[x.ID].depth = s.id, int32(depth)
	return x
}

// within reports whether a value that was made can be used here.
func (r *rewriter) within(x *kir.Instr) bool { return x != nil && r.open[r.info[x.ID].block] }
