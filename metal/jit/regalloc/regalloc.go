package regalloc

import "slices"

// Role says what an instruction does with an operand.
type Role uint8

// The roles; both bits are set if it reads and writes.
const (
	Use Role = 1 << iota
	Def
)

// Kind tells instructions that matter to the allocator from others.
type Kind uint8

// The kinds.
const (
	Plain     Kind = iota
	LoopBegin      // a loop begins: before the place its jumps back go to
	LoopEnd        // it ends: after the last jump back
	ColdBegin      // code that is seldom run begins
	ColdEnd
	Save // registers live across a safepoint are stored
	Load // and loaded
)

// Operand is a virtual register in an instruction. V counts from 0 over all classes. Early: it is written before all
// sources have been read, so it must not share a register with one.
type Operand struct {
	V     int32
	Role  Role
	Early bool
}

// Inst is what the allocator wants to know of an instruction.
type Inst struct {
	Kind      Kind
	Safepoint int32 // of Save and Load
	Ops       []Operand
	// Copy: a move of the whole register Ops[0] to Ops[1].
	Copy bool
	// Remat: the instruction has no source but constants, changes nothing but its one destination, and may be
	// repeated anywhere instead of keeping the result.
	Remat bool
}

// Func is a list of instructions. Inst describes instruction i in *in, whose Ops it empties and appends to; it
// is called once for each i, in order. Kind returns what Inst would put there.
type Func interface {
	Len() int
	Kind(i int) Kind
	Inst(i int, in *Inst)
}

// Class is a register file: the virtual registers of class c follow those of class c-1.
type Class struct {
	Count int     // virtual registers
	Regs  []uint8 // what may be given out, the best first; numbers below 64
	Slot  int     // bytes of a slot: a power of two
}

// Result says where virtual registers are. It is valid until the Allocator's next Run.
type Result struct {
	Reg   []int16 // by virtual register: its register, -1 if it has none
	Slot  []int32 // its slot's offset, -1 if it has none (a register may have a slot for safepoints)
	Remat []int32 // if not -1: the instruction to repeat instead of using a slot
	// Points holds, by safepoint, the registers with something to be kept: virtual registers with a Reg. Those
	// with Remat are to be made again, the others to be stored and loaded.
	Points [][]int32
	Bytes  int // the end of the slots
	Spills int // virtual registers without a register
}

// interval is the life of a virtual register. Positions are 2*instruction, plus 1 where results are written.
type interval struct {
	start, end int32 // end -1: it does not occur
	cost       float32
	weight     float32
	hint       int32 // the virtual register it is a copy of, -1
	remat      int32
	defs       int32
}

type loop struct{ begin, end int32 }

// Allocator keeps memory between runs. Its zero value is ready.
type Allocator struct {
	ivs    []interval
	order  []int32 // virtual registers by start
	loops  []loop  // in order of their beginnings
	stack  []int32 // open loops
	saves  []int32 // by safepoint: position of Save, and of Load
	loads  []int32
	class  []uint8
	in     Inst
	ends   [64]int32 // of the class at hand: by register, the end of its owner
	owner  [64]int32
	slots  []int32 // ends of the owners of slots
	result Result
}

// Run allocates the registers of a function; slots begin at offset first, which is rounded up to their size.
func (a *Allocator) Run(f Func, classes []Class, first int) *Result {
	total := 0
	a.class = a.class[:0]
	for c, k := range classes {
		total += k.Count
		for range k.Count {
			a.class = append(a.class, uint8(c))
		}
	}
	a.ivs = resize(a.ivs, total)
	for v := range a.ivs {
		a.ivs[v] = interval{end: -1, hint: -1, remat: -1}
	}
	a.order, a.loops, a.stack = a.order[:0], a.loops[:0], a.stack[:0]
	a.saves, a.loads = a.saves[:0], a.loads[:0]
	a.findLoops(f)
	a.build(f)
	r := &a.result
	r.Reg, r.Slot, r.Remat = resize(r.Reg, total), resize(r.Slot, total), resize(r.Remat, total)
	for v := range r.Reg {
		r.Reg[v], r.Slot[v] = -1, -1
		r.Remat[v] = a.ivs[v].remat
	}
	r.Bytes, r.Spills = first, 0
	sorted := slices.IsSortedFunc(a.order, a.byStart)
	if !sorted {
		slices.SortStableFunc(a.order, a.byStart)
	}
	for c := range classes {
		a.scan(uint8(c), classes[c].Regs)
	}
	a.points(classes)
	return r
}

func (a *Allocator) byStart(x, y int32) int { return int(a.ivs[x].start - a.ivs[y].start) }

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// findLoops collects the extents of loops.
func (a *Allocator) findLoops(f Func) {
	for i := range f.Len() {
		switch f.Kind(i) {
		case LoopBegin:
			a.stack = append(a.stack, int32(len(a.loops)))
			a.loops = append(a.loops, loop{begin: int32(2 * i), end: int32(2*f.Len() + 1)})
		case LoopEnd:
			if n := len(a.stack); n > 0 {
				a.loops[a.stack[n-1]].end = int32(2*i + 1)
				a.stack = a.stack[:n-1]
			}
		}
	}
	a.stack = a.stack[:0]
}
