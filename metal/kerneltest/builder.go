package kerneltest

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Builder appends instructions to a kernel, by hand. It checks nothing: Verify does.
type Builder struct {
	K   *kir.Kernel
	Pos kir.Pos // given to the instructions that follow
	cur *kir.Block
}

// NewBuilder starts a kernel of that name with an empty body.
func NewBuilder(name string) *Builder {
	b := &kir.Block{}
	return &Builder{K: &kir.Kernel{Name: name, Body: b}, cur: b}
}

// Kernel renumbers the kernel and returns it.
func (b *Builder) Kernel() *kir.Kernel {
	b.K.Renumber()
	return b.K
}

// Append adds an instruction with the Builder's position and returns it.
func (b *Builder) Append(in *kir.Instr) *kir.Instr {
	in.Pos = b.Pos
	b.cur.Instrs = append(b.cur.Instrs, in)
	return in
}

// Op appends an instruction that needs neither Mode nor Imm.
func (b *Builder) Op(op kir.Op, t kir.Type, args ...*kir.Instr) *kir.Instr {
	return b.Append(&kir.Instr{Op: op, Type: t, Args: args})
}

// Param declares a buffer of elements of type t, bound at the next index, and returns its address.
func (b *Builder) Param(name string, s kir.Space, t kir.Type) *kir.Instr {
	b.K.Params = append(b.K.Params, kir.Param{Name: name, Index: len(b.K.Params), Space: s, Elem: t, ElemSize: t.Size(),
		Read: true, Write: s != kir.Constant, Atomic: s != kir.Constant})
	return b.Append(&kir.Instr{Op: kir.ParamAddr, Type: kir.PtrTo(s), Imm: uint64(len(b.K.Params) - 1)})
}

// Region declares an array of n elements of type t, uninitialised, and returns its address.
func (b *Builder) Region(name string, s kir.Space, t kir.Type, n int) *kir.Instr {
	b.K.Regions = append(b.K.Regions, kir.Region{Name: name, Space: s, Size: n * t.Size(), Align: t.Size(),
		Elem: t, ElemSize: t.Size(), Pos: b.Pos})
	return b.Append(&kir.Instr{Op: kir.RegionAddr, Type: kir.PtrTo(s), Imm: uint64(len(b.K.Regions) - 1)})
}

// Var declares a scalar variable and returns its index.
func (b *Builder) Var(name string, t kir.Type) int {
	b.K.Vars = append(b.K.Vars, kir.Var{Name: name, Type: t})
	return len(b.K.Vars) - 1
}

// Get reads a variable.
func (b *Builder) Get(v int) *kir.Instr {
	return b.Append(&kir.Instr{Op: kir.VarGet, Type: b.K.Vars[v].Type, Imm: uint64(v)})
}

// Set writes a variable.
func (b *Builder) Set(v int, x *kir.Instr) {
	b.Append(&kir.Instr{Op: kir.VarSet, Imm: uint64(v), Args: []*kir.Instr{x}})
}

// Const appends a constant of the given bits, cut to the type's width.
func (b *Builder) Const(t kir.Type, bits uint64) *kir.Instr {
	return b.Append(&kir.Instr{Op: kir.Const, Type: t, Imm: bits & t.Mask()})
}

// Int appends an integer constant, also of a float type.
func (b *Builder) Int(t kir.Type, v int64) *kir.Instr {
	if t.IsFloat() {
		return b.Const(t, kir.FromFloat64(t, float64(v)))
	}
	return b.Const(t, uint64(v))
}

// Float appends an F32 constant.
func (b *Builder) Float(v float32) *kir.Instr { return b.Const(kir.F32, uint64(math.Float32bits(v))) }

// Builtin appends component c of a builtin.
func (b *Builder) Builtin(m kir.Mode, c int) *kir.Instr {
	return b.Append(&kir.Instr{Op: kir.Builtin, Type: kir.U32, Mode: m, Imm: uint64(c)})
}

// Index returns the address of element i (of any integer type) of size bytes from p: ptr.add(p, i64(i) * size).
func (b *Builder) Index(p, i *kir.Instr, size int) *kir.Instr {
	if i.Type != kir.I64 {
		i = b.Op(kir.Convert, kir.I64, i)
	}
	return b.Op(kir.PtrAdd, p.Type, p, b.Op(kir.Mul, kir.I64, i, b.Int(kir.I64, int64(size))))
}

// Load reads element i of type t from p.
func (b *Builder) Load(t kir.Type, p, i *kir.Instr) *kir.Instr {
	return b.Op(kir.Load, t, b.Index(p, i, t.Size()))
}

// Store writes element i at p.
func (b *Builder) Store(p, i, x *kir.Instr) {
	b.Op(kir.Store, kir.Void, b.Index(p, i, x.Type.Size()), x)
}

// Lane appends a convergent operation of the whole SIMD-group.
func (b *Builder) Lane(op kir.Op, m kir.Mode, t kir.Type, args ...*kir.Instr) *kir.Instr {
	return b.Append(&kir.Instr{Op: op, Mode: m, Type: t, Imm: kir.Lanes, Args: args})
}

// If appends a conditional; els may be nil.
func (b *Builder) If(cond *kir.Instr, then, els func()) *kir.Instr {
	in := b.Append(&kir.Instr{Op: kir.If, Args: []*kir.Instr{cond}})
	in.Body = b.nested(then)
	if els != nil {
		in.Else = b.nested(els)
	}
	return in
}

// Loop appends a Loop; body gets the instruction for Break and Continue.
func (b *Builder) Loop(body func(loop *kir.Instr)) *kir.Instr { return b.block(kir.Loop, body) }

// Block appends a BlockOp; body gets the instruction for Break.
func (b *Builder) Block(body func(block *kir.Instr)) *kir.Instr { return b.block(kir.BlockOp, body) }

func (b *Builder) block(op kir.Op, body func(*kir.Instr)) *kir.Instr {
	in := b.Append(&kir.Instr{Op: op})
	in.Body = b.nested(func() { body(in) })
	return in
}

func (b *Builder) nested(body func()) *kir.Block {
	outer := b.cur
	inner := &kir.Block{}
	b.cur = inner
	body()
	b.cur = outer
	return inner
}

// Break leaves an enclosing BlockOp or Loop.
func (b *Builder) Break(target *kir.Instr) { b.Append(&kir.Instr{Op: kir.Break, Target: target}) }

// Continue restarts an enclosing Loop.
func (b *Builder) Continue(loop *kir.Instr) { b.Append(&kir.Instr{Op: kir.Continue, Target: loop}) }

// Barrier appends a threadgroup barrier that orders the given memory.
func (b *Builder) Barrier(flags kir.Mode) { b.Append(&kir.Instr{Op: kir.Barrier, Mode: flags}) }

// While appends a loop that runs body as long as cond yields true.
func (b *Builder) While(cond func() *kir.Instr, body func(loop *kir.Instr)) {
	b.Loop(func(loop *kir.Instr) {
		b.If(b.Op(kir.Not, kir.Bool, cond()), func() { b.Break(loop) }, nil)
		body(loop)
	})
}
