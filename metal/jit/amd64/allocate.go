package amd64

import (
	"fmt"
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/regalloc"
)

// Allocation says what Func.Allocate may use.
type Allocation struct {
	VecBytes uint8 // of a vector register and its slot: 64 (AVX-512: 32 registers and masks) or 32 (AVX2: 16 registers)
	Frame    R     // the register that points to the frame, aligned to VecBytes
	Slots    int   // offset in the frame from which on slots may be
	Coarse   bool  // take values to live longer than they do from the start (regalloc.Allocator): for tests
	Spill    bool  // give out no registers at all: for tests of the code that moves spilled values
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
	scratchGPR    = []R{R10, R11}
	scratchMask   = []R{K(7)}
	scratchVec512 = []R{V(29), V(30), V(31)}
	scratchVec256 = []R{V(13), V(14), V(15)}
)

// view shows a Func to package regalloc.
type view struct {
	f     *Func
	first [NumClasses]int32
	wide  uint8
	ops   []regalloc.Operand
	early bool
}

// Len implements regalloc.Func.
func (v *view) Len() int { return len(v.f.insts) }

// Labels implements regalloc.Func.
func (v *view) Labels() int { return int(v.f.labels) }

// index numbers virtual registers from 0 over all classes.
func (v *view) index(r R) int32 { return v.first[r.Class()] + int32(r.Num()-FirstVirtual) }

func (v *view) visit(r *R, role Role) {
	if r.Virtual() && r.Class() != NoClass && r.Class() < NumClasses {
		o := regalloc.Operand{V: v.index(*r), Role: regalloc.Role(role)}
		o.Early = v.early && role&Def != 0
		v.ops = append(v.ops, o)
	}
}

// kinds are the pseudo instructions that the allocator knows.
var kinds = [...]regalloc.Kind{BindLabel: regalloc.Place, LoopBegin: regalloc.LoopBegin, LoopEnd: regalloc.LoopEnd,
	ColdBegin: regalloc.ColdBegin, ColdEnd: regalloc.ColdEnd, SaveLive: regalloc.Save, LoadLive: regalloc.Load}

// Inst implements regalloc.Func. A label whose address is taken is where control may go on: what is done with
// the address is as a jump to it, and jumps to addresses lead nowhere.
func (v *view) Inst(i int, in *regalloc.Inst) {
	x := &v.f.insts[i]
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
		in.Ends = x.Op == Ret
	}
	v.ops = in.Ops
	v.early = r.enc&early != 0
	x.operands(r, v)
	in.Ops = v.ops
	if len(in.Ops) == 2 && x.copyLike(r) {
		in.Copy, in.Hint = x.wholeCopy(r, v.wide), true
	}
	in.Remat = len(in.Ops) == 1 && x.remat(r) && x.Dst.Virtual()
}

// wholeCopy reports whether the instruction moves a whole register to another of its class.
func (i *Inst) wholeCopy(r *row, wide uint8) bool {
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
func (i *Inst) copyLike(r *row) bool {
	return (r.form == formMov || r.form == formGMov || r.form == formKMov) && i.Dst.Class() == i.A.Class() && i.KM == 0
}

// remat reports whether the instruction makes its destination from constants alone.
func (i *Inst) remat(r *row) bool {
	if i.KM != 0 || i.A != 0 || i.B != 0 {
		return false
	}
	switch r.form {
	case formGMov:
		return !i.Mem.Valid() && i.W >= 4
	case formMov, formRM:
		return i.Mem.Const != 0 && i.Dst.Class() == Vec
	}
	return false
}

// checkRegs checks that each virtual register was handed out by NewReg.
func (f *Func) checkRegs() error {
	var bad *Inst
	for k := range f.insts {
		i := &f.insts[k]
		for _, r := range [...]R{i.Dst, i.A, i.B, i.C, i.KM, i.Mem.Base, i.Mem.Index} {
			if c := r.Class(); r != 0 && (c == NoClass || c >= NumClasses ||
				r.Virtual() && r.Num()-FirstVirtual >= f.next[c]) {
				bad = i
			}
		}
		if s := i.Safepoint; s < 0 || int(s) > len(f.insts) {
			bad = i
		}
	}
	if bad != nil {
		return fmt.Errorf("[amd64] unknown register or safepoint: %s", bad)
	}
	return nil
}

var allocators = sync.Pool{New: func() any { return new(regalloc.Allocator) }}

// Allocate replaces the virtual registers by real ones and by slots of the frame, expands SaveLive and LoadLive,
// and drops moves that move nothing. It returns the offset of the slots' end. It fails if an instruction names
// virtual registers that NewReg did not make, or leaves no register to move a spilled value through.
func (f *Func) Allocate(o Allocation) (int, error) {
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
	*v = view{f: f, wide: o.VecBytes, ops: v.ops}
	classes := [...]regalloc.Class{{Regs: freeGPR, Slot: 8}, {Regs: freeVec[:nvec], Slot: int(o.VecBytes)},
		{Regs: freeMask, Slot: 8}}
	n := int32(0)
	for c := GPR; c < NumClasses; c++ {
		if o.Spill {
			classes[c-1].Regs = nil
		}
		classes[c-1].Count = f.next[c]
		v.first[c] = n
		n += int32(f.next[c])
		for range f.next[c] {
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
	f.spare, f.insts = f.insts, w.out
	return w.res.Bytes, nil
}
