package amd64

import (
	"fmt"
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/regalloc"
)

// Program is a list of instructions on its way to be bytes of this processor. It is not for use by several goroutines
// at once.
type Program struct {
	*code.Func
	asm   assembler
	view  view
	spare []code.Inst // the list before the last Allocate
}

// NewProgram returns a Program of no instructions.
func NewProgram() *Program { return &Program{Func: code.NewFunc()} }

// Allocation says what Program.Allocate may use.
type Allocation struct {
	VecBytes uint8  // of a vector register and its slot: 64 (AVX-512: 32 registers and masks) or 32 (AVX2: 16 registers)
	Frame    code.R // the register that points to the frame, aligned to VecBytes
	Slots    int    // offset in the frame from which on slots may be
	Coarse   bool   // take values to live longer than they do from the start (regalloc.Allocator): for tests
	Spill    bool   // give out no registers at all: for tests of the code that moves spilled values
}

// The registers the allocator hands out, and those it keeps for moving spilled values: R10, R11, K7 and the last
// three vector registers. RAX, RCX, RDX, RBX, RSP and RBP are never touched.
var (
	freeGPR  = []uint8{6, 7, 8, 9, 12, 13, 14, 15}
	freeMask = []uint8{1, 2, 3, 4, 5, 6}
	freeVec  = func() (l []uint8) {
		for n := range uint8(29) {
			l = append(l, n)
		}
		return l
	}()
	scratchGPR    = []code.R{code.R10, code.R11}
	scratchMask   = []code.R{code.K(7)}
	scratchVec512 = []code.R{code.V(29), code.V(30), code.V(31)}
	scratchVec256 = []code.R{code.V(13), code.V(14), code.V(15)}
)

// view shows a Func to package regalloc.
type view struct {
	insts []code.Inst
	n     int // labels
	first [code.NumClasses]int32
	wide  uint8
	ops   []regalloc.Operand
	early bool
}

// Len implements regalloc.Func.
func (v *view) Len() int { return len(v.insts) }

// Labels implements regalloc.Func.
func (v *view) Labels() int { return v.n }

// index numbers virtual registers from 0 over all classes.
func (v *view) index(r code.R) int32 { return v.first[r.Class()] + int32(r.Num()-code.FirstVirtual) }

// Visit implements code.Visitor.
func (v *view) Visit(r *code.R, role code.Role) {
	if r.Virtual() && r.Class() != code.NoClass && r.Class() < code.NumClasses {
		o := regalloc.Operand{V: v.index(*r), Role: regalloc.Role(role)}
		o.Early = v.early && role&code.Def != 0
		v.ops = append(v.ops, o)
	}
}

// kinds are the pseudo instructions that the allocator knows.
var kinds = [...]regalloc.Kind{code.BindLabel: regalloc.Place, code.LoopBegin: regalloc.LoopBegin,
	code.LoopEnd: regalloc.LoopEnd, code.ColdBegin: regalloc.ColdBegin, code.ColdEnd: regalloc.ColdEnd,
	code.SaveLive: regalloc.Save, code.LoadLive: regalloc.Load}

// Inst implements regalloc.Func. A label whose address is taken is where control may go on: what is done with
// the address is as a jump to it, and jumps to addresses lead nowhere.
func (v *view) Inst(i int, in *regalloc.Inst) {
	x := &v.insts[i]
	r := rowOf(x.Op)
	if r.form == formPseudo {
		in.Safepoint, in.Label = x.Safepoint, int32(x.Label)
		if int(x.Op) < len(kinds) {
			in.Kind = kinds[x.Op]
		}
		return
	}
	switch r.form {
	case formJcc, formLea:
		in.Label = int32(x.Label)
	case formJmp:
		in.Label, in.Ends = int32(x.Label), true
	case formBytes:
		in.Ends = x.Op == code.Ret
	}
	v.ops = in.Ops
	v.early = r.enc&early != 0
	x.Visit(v)
	in.Ops = v.ops
	if len(in.Ops) == 2 && copyLike(x, r) {
		in.Copy, in.Hint = wholeCopy(x, r, v.wide), true
	}
	in.Remat = len(in.Ops) == 1 && remat(x, r) && x.Dst.Virtual()
}

// wholeCopy reports whether the instruction moves a whole register to another of its class.
func wholeCopy(i *code.Inst, r *row, wide uint8) bool {
	if i.Mem.Valid() || i.KM != 0 || i.A == 0 || i.Dst.Class() != i.A.Class() {
		return false
	}
	switch r.form {
	case formMov:
		return i.W == wide
	case formGMov, formKMov:
		return i.W == 8
	}
	return false
}

// copyLike reports whether it would be good if destination and source were one register.
func copyLike(i *code.Inst, r *row) bool {
	return (r.form == formMov || r.form == formGMov || r.form == formKMov) && i.Dst.Class() == i.A.Class() && i.KM == 0
}

// remat reports whether the instruction makes its destination from constants alone.
func remat(i *code.Inst, r *row) bool {
	if i.KM != 0 || i.A != 0 || i.B != 0 {
		return false
	}
	switch r.form {
	case formGMov:
		return !i.Mem.Valid() && i.W >= 4
	case formMov, formRM:
		return i.Mem.Const != 0 && i.Dst.Class() == code.Vec
	}
	return false
}

// checkRegs checks that each virtual register was handed out by NewReg.
func (f *Program) checkRegs() error {
	var bad *code.Inst
	insts := f.Insts()
	for k := range insts {
		i := &insts[k]
		for _, r := range [...]code.R{i.Dst, i.A, i.B, i.C, i.KM, i.Mem.Base, i.Mem.Index} {
			if c := r.Class(); r != 0 && (c == code.NoClass || c >= code.NumClasses ||
				r.Virtual() && r.Num()-code.FirstVirtual >= f.NumRegs(c)) {
				bad = i
			}
		}
		if s := i.Safepoint; s < 0 || int(s) > len(insts) {
			bad = i
		}
	}
	if bad != nil {
		return fmt.Errorf("[amd64] unknown register or safepoint: %s", text(bad))
	}
	return nil
}

var allocators = sync.Pool{New: func() any { return new(regalloc.Allocator) }}

// Allocate replaces the virtual registers by real ones and by slots of the frame, expands SaveLive and LoadLive,
// and drops moves that move nothing. It returns the offset of the slots' end. It fails if an instruction names
// virtual registers that NewReg did not make, or leaves no register to move a spilled value through.
func (f *Program) Allocate(o Allocation) (int, error) {
	if err := f.checkRegs(); err != nil {
		return 0, err
	}
	nvec := 29
	w := rewriter{f: f, o: o, v: &f.view, out: f.spare[:0], scratchVec: scratchVec512}
	switch o.VecBytes {
	case 64:
	case 32:
		nvec, w.scratchVec = 13, scratchVec256
	default:
		return 0, fmt.Errorf("[amd64] vectors of %d bytes", o.VecBytes)
	}
	v := &f.view
	*v = view{insts: f.Insts(), n: f.NumLabels(), wide: o.VecBytes, ops: v.ops}
	classes := [...]regalloc.Class{{Regs: freeGPR, Slot: 8}, {Regs: freeVec[:nvec], Slot: int(o.VecBytes)},
		{Regs: freeMask, Slot: 8}}
	n := int32(0)
	for c := code.GPR; c < code.NumClasses; c++ {
		if o.Spill {
			classes[c-1].Regs = nil
		}
		classes[c-1].Count = f.NumRegs(c)
		v.first[c] = n
		n += int32(f.NumRegs(c))
		for range f.NumRegs(c) {
			w.class = append(w.class, c)
		}
	}
	a := allocators.Get().(*regalloc.Allocator)
	defer allocators.Put(a)
	a.Coarse = o.Coarse
	w.res = a.Run(v, classes[:], o.Slots)
	if err := w.run(); err != nil {
		return 0, err
	}
	f.spare = f.Insts()
	f.SetInsts(w.out)
	return w.res.Bytes, nil
}
