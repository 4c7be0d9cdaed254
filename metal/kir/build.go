package kir

import "math"

// Renumber gives every instruction of the kernel a dense ID in textual order and sets NumInstrs. Front ends call it
// last.
// Instructions that the body does not reach keep their IDs.
func (k *Kernel) Renumber() {
	n := 0
	var walk func(b *Block)
	walk = func(b *Block) {
		if b == nil {
			return
		}
		for _, in := range b.Instrs {
			in.ID = n
			n++
			walk(in.Body)
			walk(in.Else)
		}
	}
	walk(k.Body)
	k.NumInstrs = n
}

// Walk calls f for every instruction of the block and its nested blocks, in textual order.
func (b *Block) Walk(f func(*Instr)) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		f(in)
		in.Body.Walk(f)
		in.Else.Walk(f)
	}
}

// Builder appends instructions to a kernel, for tests and front ends. It checks nothing: Verify does.
type Builder struct {
	K   *Kernel
	Pos Pos // given to the instructions that follow
	cur *Block
}

// NewBuilder starts a kernel of that name with an empty body.
func NewBuilder(name string) *Builder {
	b := &Block{}
	return &Builder{K: &Kernel{Name: name, Body: b}, cur: b}
}

// Kernel renumbers the kernel and returns it.
func (b *Builder) Kernel() *Kernel {
	b.K.Renumber()
	return b.K
}

// Append adds an instruction with the Builder's position and returns it.
func (b *Builder) Append(in *Instr) *Instr {
	in.Pos = b.Pos
	b.cur.Instrs = append(b.cur.Instrs, in)
	return in
}

// Op appends an instruction that needs neither Mode nor Imm.
func (b *Builder) Op(op Op, t Type, args ...*Instr) *Instr {
	return b.Append(&Instr{Op: op, Type: t, Args: args})
}

// Param declares a buffer of elements of type t, bound at the next index, and returns its address.
func (b *Builder) Param(name string, s Space, t Type) *Instr {
	b.K.Params = append(b.K.Params, Param{Name: name, Index: len(b.K.Params), Space: s, Elem: t, ElemSize: t.Size(),
		Read: true, Write: s != Constant, Atomic: s != Constant})
	return b.Append(&Instr{Op: ParamAddr, Type: PtrTo(s), Imm: uint64(len(b.K.Params) - 1)})
}

// Region declares an array of n elements of type t, uninitialised, and returns its address.
func (b *Builder) Region(name string, s Space, t Type, n int) *Instr {
	b.K.Regions = append(b.K.Regions, Region{Name: name, Space: s, Size: n * t.Size(), Align: t.Size(),
		Elem: t, Pos: b.Pos})
	return b.Append(&Instr{Op: RegionAddr, Type: PtrTo(s), Imm: uint64(len(b.K.Regions) - 1)})
}

// Var declares a scalar variable and returns its index.
func (b *Builder) Var(name string, t Type) int {
	b.K.Vars = append(b.K.Vars, Var{Name: name, Type: t})
	return len(b.K.Vars) - 1
}

// Get reads a variable.
func (b *Builder) Get(v int) *Instr {
	return b.Append(&Instr{Op: VarGet, Type: b.K.Vars[v].Type, Imm: uint64(v)})
}

// Set writes a variable.
func (b *Builder) Set(v int, x *Instr) {
	b.Append(&Instr{Op: VarSet, Imm: uint64(v), Args: []*Instr{x}})
}

// Const appends a constant of the given bits, cut to the type's width.
func (b *Builder) Const(t Type, bits uint64) *Instr {
	return b.Append(&Instr{Op: Const, Type: t, Imm: bits & t.Mask()})
}

// Int appends an integer constant, also of a float type.
func (b *Builder) Int(t Type, v int64) *Instr {
	if t.IsFloat() {
		return b.Const(t, FromFloat64(t, float64(v)))
	}
	return b.Const(t, uint64(v))
}

// Float appends an F32 constant.
func (b *Builder) Float(v float32) *Instr { return b.Const(F32, uint64(math.Float32bits(v))) }

// Builtin appends component c of a builtin.
func (b *Builder) Builtin(m Mode, c int) *Instr {
	return b.Append(&Instr{Op: Builtin, Type: U32, Mode: m, Imm: uint64(c)})
}

// Index returns the address of element i (of any integer type) of size bytes from p: ptr.add(p, i64(i) * size).
func (b *Builder) Index(p, i *Instr, size int) *Instr {
	if i.Type != I64 {
		i = b.Op(Convert, I64, i)
	}
	return b.Op(PtrAdd, p.Type, p, b.Op(Mul, I64, i, b.Int(I64, int64(size))))
}

// Load reads element i of type t from p.
func (b *Builder) Load(t Type, p, i *Instr) *Instr {
	return b.Op(Load, t, b.Index(p, i, t.Size()))
}

// Store writes element i at p.
func (b *Builder) Store(p, i, x *Instr) {
	b.Op(Store, Void, b.Index(p, i, x.Type.Size()), x)
}

// Lane appends a convergent operation of the whole SIMD-group.
func (b *Builder) Lane(op Op, m Mode, t Type, args ...*Instr) *Instr {
	return b.Append(&Instr{Op: op, Mode: m, Type: t, Imm: Lanes, Args: args})
}

// If appends a conditional; els may be nil.
func (b *Builder) If(cond *Instr, then, els func()) *Instr {
	in := b.Append(&Instr{Op: If, Args: []*Instr{cond}})
	in.Body = b.nested(then)
	if els != nil {
		in.Else = b.nested(els)
	}
	return in
}

// Loop appends a Loop; body gets the instruction for Break and Continue.
func (b *Builder) Loop(body func(loop *Instr)) *Instr { return b.block(Loop, body) }

// Block appends a BlockOp; body gets the instruction for Break.
func (b *Builder) Block(body func(block *Instr)) *Instr { return b.block(BlockOp, body) }

func (b *Builder) block(op Op, body func(*Instr)) *Instr {
	in := b.Append(&Instr{Op: op})
	in.Body = b.nested(func() { body(in) })
	return in
}

func (b *Builder) nested(body func()) *Block {
	outer := b.cur
	inner := &Block{}
	b.cur = inner
	body()
	b.cur = outer
	return inner
}

// Break leaves an enclosing BlockOp or Loop.
func (b *Builder) Break(target *Instr) { b.Append(&Instr{Op: Break, Target: target}) }

// Continue restarts an enclosing Loop.
func (b *Builder) Continue(loop *Instr) { b.Append(&Instr{Op: Continue, Target: loop}) }

// Barrier appends a threadgroup barrier that orders the given memory.
func (b *Builder) Barrier(flags Mode) { b.Append(&Instr{Op: Barrier, Mode: flags}) }

// While appends a loop that runs body as long as cond yields true.
func (b *Builder) While(cond func() *Instr, body func(loop *Instr)) {
	b.Loop(func(loop *Instr) {
		b.If(b.Op(Not, Bool, cond()), func() { b.Break(loop) }, nil)
		body(loop)
	})
}
