package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// Optimise returns a kernel that does the same as a verified one with less work; it does not change its argument.
// Values are folded and shared, pure operations move in front of the loops that do not change them, small conditionals
// on lanes become selections, and pointers that move along in step keep what is uniform of them apart. It computes the
// same bits (but for the payload of NaNs) and touches the same memory in the same order; positions stay.
func Optimise(k *kir.Kernel) *kir.Kernel { return optimise(k, &optimiser{}) }

// Specialise is Optimise for launches in which some of the kernel's words (words and loads, as Words returns them for
// it) are known. Loops whose rounds become known are unrolled.
func Specialise(k *kir.Kernel, words []Word, loads []uint8, facts Facts) *kir.Kernel {
	return optimise(k, &optimiser{words: words, loads: loads, facts: facts})
}

func optimise(k *kir.Kernel, o *optimiser) *kir.Kernel {
	*o = optimiser{
		words: o.words, loads: o.loads, facts: o.facts,
		old: k, to: make([]*kir.Instr, k.NumInstrs), cur: make([]*kir.Instr, len(k.Vars)),
		pending: make([]*kir.Instr, len(k.Vars)), gets: make([]int32, len(k.Vars)), sets: make([]varSet, k.NumInstrs),
		buckets: make([]int32, tableSize(k.NumInstrs)),
	}
	out := *k
	out.Vars = append([]kir.Var(nil), k.Vars...)
	o.out = &out
	if o.facts != 0 {
		out.Params = append([]kir.Param(nil), k.Params...)
		for i, w := range o.words {
			if p := &out.Params[w.Param]; o.facts.Of(i) != Nothing {
				p.MinBytes = max(p.MinBytes, w.End())
			}
		}
	}
	o.survey(k.Body)
	out.Body = o.nested(k.Body, nil)
	splitPointers(&out, o.meta)
	sweep(&out)
	shareDivisions(out.Body)
	out.Renumber()
	return &out
}

// tableSize is a power of two larger than n.
func tableSize(n int) int {
	size := 64
	for size < n {
		size *= 2
	}
	return size
}

// optimiser rebuilds a kernel. New instructions have their index in meta as ID.
type optimiser struct {
	old, out *kir.Kernel
	to       []*kir.Instr // by old ID
	meta     []meta       // by new ID
	scopes   []scope      // the open blocks, the kernel's first
	open     []bool       // by block number
	buckets  []int32      // first entry of a hash in meta, by 1 + new ID
	cur      []*kir.Instr // by variable: a value that it is known to have
	pending  []*kir.Instr // by variable: a VarSet of the current block that nothing has read yet
	touched  []uint64     // variables with something in pending
	gets     []int32      // by variable: how often the old kernel reads it
	sets     []varSet     // by old ID of a structured instruction: the variables set within
	instrs   []kir.Instr
	args     []*kir.Instr
	// What is known of the launch, see Specialise.
	words []Word
	loads []uint8 // by old ID, 1 + index in words
	facts Facts
	// unrolled is how many instructions unrolling has made.
	unrolled int
}

// meta is what the optimiser knows of a new instruction.
type meta struct {
	in    *kir.Instr
	next  int32 // in its bucket
	block int32 // number of the block it is in
	depth int32 // of that block
	lanes bool  // may differ between lanes
}

// scope is an open block.
type scope struct {
	block *kir.Block
	id    int32
	loop  *kir.Instr // the old Loop whose body it is
}

// varSet is a set of variables, in bits; nil is empty.
type varSet []uint64

func (s varSet) has(v uint64) bool { return int(v/64) < len(s) && s[v/64]>>(v%64)&1 != 0 }

// survey counts reads of variables and collects what structured instructions set.
func (o *optimiser) survey(b *kir.Block) varSet {
	var all varSet
	add := func(s varSet) {
		if all == nil && len(s) > 0 {
			all = make(varSet, (len(o.old.Vars)+63)/64)
		}
		for i, w := range s {
			all[i] |= w
		}
	}
	for _, in := range b.Instrs {
		switch {
		case in.Op == kir.VarGet:
			o.gets[in.Imm]++
		case in.Op == kir.VarSet:
			if all == nil {
				all = make(varSet, (len(o.old.Vars)+63)/64)
			}
			all[in.Imm/64] |= 1 << (in.Imm % 64)
		case in.Op.HasBody():
			s := o.survey(in.Body)
			if in.Else != nil {
				if e := o.survey(in.Else); s == nil {
					s = e
				} else {
					for i, w := range e {
						s[i] |= w
					}
				}
			}
			o.sets[in.ID] = s
			add(s)
		}
	}
	return all
}

// nested rebuilds a block; loop is the Loop it is the body of.
func (o *optimiser) nested(b *kir.Block, loop *kir.Instr) *kir.Block {
	out := &kir.Block{Instrs: make([]*kir.Instr, 0, len(b.Instrs))}
	o.settle()
	o.scopes = append(o.scopes, scope{out, int32(len(o.open)), loop})
	o.open = append(o.open, true)
	o.list(b.Instrs)
	o.settle()
	s := o.scopes[len(o.scopes)-1]
	o.open[s.id] = false
	o.scopes = o.scopes[:len(o.scopes)-1]
	return out
}

// list rebuilds instructions up to the first jump and reports whether there is one.
func (o *optimiser) list(l []*kir.Instr) bool {
	for _, in := range l {
		if o.instr(in) {
			return true
		}
	}
	return false
}

// settle keeps the pending VarSets: other blocks may read them.
func (o *optimiser) settle() {
	for _, v := range o.touched {
		o.pending[v] = nil
	}
	o.touched = o.touched[:0]
}

// forget drops what is known of variables.
func (o *optimiser) forget(s varSet) {
	for v := range o.cur {
		if s.has(uint64(v)) {
			o.cur[v] = nil
		}
	}
}

// known returns a value of the variable that is in scope, or nil.
func (o *optimiser) known(v uint64) *kir.Instr {
	if x := o.cur[v]; x != nil && o.open[o.meta[x.ID].block] {
		return x
	}
	return nil
}

// instr rebuilds one instruction and reports whether control never passes it.
func (o *optimiser) instr(in *kir.Instr) bool {
	args := o.mapArgs(in)
	switch {
	case in.Op.Pure():
		o.to[in.ID] = o.pure(in.Op, in.Type, in.Mode, in.Imm, in.Pos, args)
	case in.Op == kir.VarGet:
		o.to[in.ID] = o.get(in.Imm, in.Pos)
	case in.Op == kir.VarSet:
		o.assign(in.Imm, args[0], in.Pos)
	case in.Op == kir.Load:
		if o.fixedLoad(in, args[0]) {
			o.to[in.ID] = o.word(in, args)
			break
		}
		x := o.put(o.make(in, args))
		o.meta[x.ID].lanes = o.meta[args[0].ID].lanes || args[0].Type == kir.PtrThread
		o.to[in.ID] = x
	case in.Op == kir.If:
		return o.branch(in, args)
	case in.Op == kir.BlockOp || in.Op == kir.Loop:
		if in.Op == kir.Loop && o.facts != 0 {
			if done, ends := o.unroll(in); done {
				return ends
			}
		}
		x := o.make(in, nil)
		o.to[in.ID] = x
		if in.Op == kir.Loop {
			o.forget(o.sets[in.ID])
			x.Body = o.nested(in.Body, in)
		} else {
			x.Body = o.nested(in.Body, nil)
		}
		o.forget(o.sets[in.ID])
		o.put(x)
	default:
		x := o.put(o.make(in, args))
		o.meta[x.ID].lanes = true
		switch in.Op {
		case kir.Reduce, kir.Ballot, kir.BroadcastFirst:
			o.meta[x.ID].lanes = in.Imm != kir.Lanes
		case kir.Break, kir.Continue:
			x.Target = o.to[in.Target.ID]
		}
		o.to[in.ID] = x
		if in.Op == kir.Break || in.Op == kir.Continue || in.Op == kir.Return {
			o.settle()
			return true
		}
	}
	return false
}

func (o *optimiser) mapArgs(in *kir.Instr) []*kir.Instr {
	if len(in.Args) == 0 {
		return nil
	}
	if len(o.args)+len(in.Args) > cap(o.args) {
		o.args = make([]*kir.Instr, 0, 256+len(in.Args))
	}
	n := len(o.args)
	for _, a := range in.Args {
		o.args = append(o.args, o.to[a.ID])
	}
	return o.args[n:len(o.args):len(o.args)]
}

// create returns a new instruction that is in no block yet.
func (o *optimiser) create() *kir.Instr {
	if len(o.instrs) == cap(o.instrs) {
		o.instrs = make([]kir.Instr, 0, 128)
	}
	o.instrs = append(o.instrs, kir.Instr{ID: len(o.meta)})
	x := &o.instrs[len(o.instrs)-1]
	o.meta = append(o.meta, meta{in: x, lanes: true})
	return x
}

// make copies an old instruction without what it holds.
func (o *optimiser) make(in *kir.Instr, args []*kir.Instr) *kir.Instr {
	x := o.create()
	x.Op, x.Type, x.Mode, x.Imm, x.Args, x.Pos = in.Op, in.Type, in.Mode, in.Imm, args, in.Pos
	return x
}

// put appends an instruction to the current block.
func (o *optimiser) put(x *kir.Instr) *kir.Instr { return o.putAt(len(o.scopes)-1, x) }

func (o *optimiser) putAt(depth int, x *kir.Instr) *kir.Instr {
	s := &o.scopes[depth]
	s.block.Instrs = append(s.block.Instrs, x)
	o.meta[x.ID].block, o.meta[x.ID].depth = s.id, int32(depth)
	return x
}

// get reads a variable: the value it is known to have, or a VarGet in front of the loops that do not set it.
func (o *optimiser) get(v uint64, pos kir.Pos) *kir.Instr {
	if x := o.known(v); x != nil {
		return x
	}
	at := len(o.scopes) - 1
	for d := at; d > 0; d-- {
		if l := o.scopes[d].loop; l != nil {
			if o.sets[l.ID].has(v) {
				break
			}
			at = d - 1
		}
	}
	o.pending[v] = nil
	x := o.create()
	x.Op, x.Type, x.Imm, x.Pos = kir.VarGet, o.out.Vars[v].Type, v, pos
	o.cur[v] = o.putAt(at, x)
	return x
}

// assign sets a variable.
func (o *optimiser) assign(v uint64, value *kir.Instr, pos kir.Pos) {
	if o.known(v) == value {
		return
	}
	if p := o.pending[v]; p != nil {
		p.Op = kir.Invalid // never read: sweep drops it
	}
	x := o.create()
	x.Op, x.Imm, x.Args, x.Pos = kir.VarSet, v, []*kir.Instr{value}, pos
	o.put(x)
	if o.pending[v] == nil {
		o.touched = append(o.touched, v)
	}
	o.cur[v], o.pending[v] = value, x
}

// fixedLoad reports whether a load reads constant memory that is always there: it is as good as pure.
func (o *optimiser) fixedLoad(in, p *kir.Instr) bool {
	p, off, ok := fixedPlace(p)
	end := off + int64(in.Type.Size())
	switch {
	case !ok:
	case p.Op == kir.ParamAddr:
		q := o.out.Params[p.Imm]
		return q.Space == kir.Constant && end <= int64(q.MinBytes)
	case p.Op == kir.RegionAddr:
		r := o.old.Regions[p.Imm]
		return r.Space == kir.Constant && end <= int64(r.Size)
	}
	return false
}

// word is the value of a load that is as good as pure: what the launch tells of it becomes part of the kernel.
func (o *optimiser) word(in *kir.Instr, args []*kir.Instr) *kir.Instr {
	known := Nothing
	if o.facts != 0 && o.loads[in.ID] != 0 {
		known = o.facts.Of(int(o.loads[in.ID]) - 1)
	}
	if known >= Equals {
		return o.constant(in.Type, uint64(known-Equals), in.Pos)
	}
	x := o.share(in.Op, in.Type, in.Mode, in.Imm, in.Pos, args)
	if known < Small {
		return x
	}
	bits := uint64(1<<31 - 1) // those that it may have: it stays the same number
	if known > Small {
		bits -= 8<<(known-By8) - 1
	}
	return o.pure(kir.And, in.Type, 0, 0, in.Pos, []*kir.Instr{x, o.constant(in.Type, bits, in.Pos)})
}

// branch rebuilds an If.
func (o *optimiser) branch(in *kir.Instr, args []*kir.Instr) bool {
	c := args[0]
	if c.Op == kir.Const {
		switch {
		case c.Imm&1 != 0:
			return o.list(in.Body.Instrs)
		case in.Else != nil:
			return o.list(in.Else.Instrs)
		}
		return false
	}
	x := o.make(in, args)
	o.to[in.ID] = x
	before := o.before(in)
	x.Body = o.nested(in.Body, nil)
	thenEnds, elseEnds := ends(x.Body), false
	o.restore(before)
	if in.Else != nil {
		x.Else = o.nested(in.Else, nil)
		if elseEnds = ends(x.Else); len(x.Else.Instrs) == 0 {
			x.Else = nil
		}
		o.restore(before)
	}
	if o.flatten(x, in) {
		return false
	}
	o.forget(o.sets[in.ID])
	if len(x.Body.Instrs) > 0 || x.Else != nil {
		o.put(x)
	}
	return thenEnds && elseEnds
}

// held is what a variable was known to be.
type held struct {
	v     uint64
	value *kir.Instr
}

// before records what is known of the variables that a structured instruction sets.
func (o *optimiser) before(in *kir.Instr) []held {
	var h []held
	for v := range o.cur {
		if o.sets[in.ID].has(uint64(v)) {
			h = append(h, held{uint64(v), o.cur[v]})
		}
	}
	return h
}

func (o *optimiser) restore(h []held) {
	for _, x := range h {
		o.cur[x.v] = x.value
	}
}

// ends reports whether control never reaches a rebuilt block's end.
func ends(b *kir.Block) bool {
	if len(b.Instrs) == 0 {
		return false
	}
	switch b.Instrs[len(b.Instrs)-1].Op {
	case kir.Break, kir.Continue, kir.Return:
		return true
	}
	return false
}

// flattenLimit is the most operations that lanes do in vain rather than part.
const flattenLimit = 8

// flatten turns a rebuilt If on a condition of lanes into selections, if its branches only compute and set variables.
func (o *optimiser) flatten(x, in *kir.Instr) bool {
	if !o.meta[x.Args[0].ID].lanes {
		return false
	}
	cost := 0
	var vars []uint64
	then, ok := o.outcome(x.Body, &cost, &vars)
	if !ok {
		return false
	}
	other, ok := o.outcome(x.Else, &cost, &vars)
	if !ok || cost > flattenLimit {
		return false
	}
	inside := o.countGets(in)
	for _, v := range vars {
		if o.out.Vars[v].Type.IsPtr() || o.gets[v] == inside[v] {
			return false
		}
	}
	for _, b := range [2]*kir.Block{x.Body, x.Else} {
		if b == nil {
			continue
		}
		for _, y := range b.Instrs {
			if y.Op != kir.VarSet && y.Op != kir.Invalid {
				o.put(y)
			}
		}
	}
	for _, v := range vars {
		a, b := then[v], other[v]
		if a == nil {
			a = o.get(v, x.Pos)
		}
		if b == nil {
			b = o.get(v, x.Pos)
		}
		o.assign(v, o.pure(kir.Select, o.out.Vars[v].Type, 0, 0, x.Pos, []*kir.Instr{x.Args[0], a, b}), x.Pos)
	}
	return true
}

// outcome returns what a block sets variables to; false if it does more than compute cheaply.
func (o *optimiser) outcome(b *kir.Block, cost *int, vars *[]uint64) (map[uint64]*kir.Instr, bool) {
	set := map[uint64]*kir.Instr{}
	if b == nil {
		return set, true
	}
	if len(b.Instrs) > 2*flattenLimit {
		return nil, false
	}
	for _, x := range b.Instrs {
		switch {
		case x.Op == kir.Invalid || x.Op == kir.Const:
		case x.Op == kir.VarGet:
			if set[x.Imm] != nil {
				return nil, false
			}
		case x.Op == kir.VarSet:
			set[x.Imm] = x.Args[0]
			known := false
			for _, v := range *vars {
				known = known || v == x.Imm
			}
			if !known {
				*vars = append(*vars, x.Imm)
			}
			*cost++
		case x.Op == kir.Div || x.Op == kir.Rem || x.Op == kir.Sqrt || x.Type.IsPtr() || !x.Op.Pure():
			return nil, false
		default:
			*cost++
		}
	}
	return set, true
}

// countGets counts the old reads of variables within an If.
func (o *optimiser) countGets(in *kir.Instr) map[uint64]int32 {
	n := map[uint64]int32{}
	count := func(x *kir.Instr) {
		if x.Op == kir.VarGet {
			n[x.Imm]++
		}
	}
	in.Body.Walk(count)
	in.Else.Walk(count)
	return n
}
