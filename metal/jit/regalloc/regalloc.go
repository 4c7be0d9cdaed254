package regalloc

import (
	"slices"
	"sort"
)

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
	Place          // Label is here
	LoopBegin      // what follows counts more
	LoopEnd
	ColdBegin // what follows counts less, and control passes over it, to its ColdEnd
	ColdEnd
	Save // registers live at the Load of the same safepoint are stored
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
	Label     int32 // of Place; elsewhere, where control may go on besides the next instruction, 0: nowhere
	Ends      bool  // control does not go on to the next instruction
	Ops       []Operand
	// Copy: a move of the whole register Ops[0] to Ops[1].
	Copy bool
	// Hint: as if it were a Copy, but the value may change on the way.
	Hint bool
	// Remat: the instruction has no source but constants, changes nothing but its one destination, and may be repeated
	// anywhere instead of keeping the result.
	Remat bool
}

// Func is a list of instructions. Inst describes instruction i in *in, whose Ops it empties and appends to; it
// is called once for each i, in order. Labels are 1 to Labels().
type Func interface {
	Len() int
	Labels() int
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

// Allocator keeps memory between runs. Its zero value is ready.
type Allocator struct {
	// Coarse takes values to live longer than they do from the start, not only where it is too much work to find out
	// how long that is. It is for tests.
	Coarse bool

	ivs    []interval
	ranges []span
	hints  []hint
	class  []uint8
	in     Inst
	result Result

	// The list: operands of instruction i are ops[first[i]:first[i+1]].
	ops    []Operand
	first  []int32
	blocks []block
	labels []int32 // the block of each label
	loops  []span  // of instructions: the loops that are in no other
	cold   []int32 // blocks that end where open cold code begins
	saves  []int32 // by safepoint: the instruction Load
	depth  int
	chill  int

	flow      flow
	starts    []int32 // by instruction: the first virtual register that begins there
	order     []int32 // virtual registers by their beginnings
	taken     []uint64
	perReg    int // words of taken for a register
	stretches int // of a register, in held
	held      index
	turn      int32   // counts registers given
	met       []int32 // by virtual register: the last search that came upon it
	search    int32
	writes    []write
	queue     []int32
	loads     []load
	owned     heap // slots in use, by the end of that
	unused    heap // slots that were in use
	work      int  // what may still be done
}

// Limits of the work on a list, in ranges, blocks and words looked at: some fixed amount and some for each
// instruction. What takes more has thousands of values that all live long, over thousands of blocks.
const (
	fixedWork = 4 << 20
	workEach  = 50
)

// interval is the life of a virtual register. Positions are 2*instruction, plus 1 where results are written.
type interval struct {
	head    int32 // its first range, -1: none
	end     int32 // its last position
	length  int32 // positions in all ranges
	cost    float32
	weight  float32
	hints   int32 // the first of its hints, -1
	remat   int32
	seen    int32 // the first instruction that names it, -1
	block   int32 // the block that names it, -2: several
	reads   int32 // the first of the blocks that read it before they write it, -1: none; of global ones
	written int32 // the first of the blocks that write it
	next    int32 // in the list of those that begin at one instruction
	defs    int32
	def     int32 // the last instruction that writes it
	writes  int32 // the first of the writes, from the last one back, -1: none
	turn    int32 // when it got its register
	coarse  bool  // it is taken to live wherever it might (extents.go)
}

// load is where what a safepoint kept is loaded.
type load struct{ at, point int32 }

// write is an instruction that writes a virtual register.
type write struct{ at, next int32 }

// span is a range of positions, both included.
type span struct{ from, to, next int32 }

// hint is a copy that a virtual register takes part in.
type hint struct {
	at, other int32
	next      int32
	source    bool // it is the source
	whole     bool // the value stays the same
}

// Run allocates the registers of a function; slots begin at offset first, which is rounded up to their size. If to find
// out where values live is too much work, it takes the rest to live longer than they do (extents.go); if to share out
// the registers well is, values that come late do without.
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
		a.ivs[v] = interval{head: -1, hints: -1, remat: -1, seen: -1, block: -1, reads: -1, written: -1, next: -1, writes: -1}
	}
	a.ranges, a.hints, a.saves = a.ranges[:0], a.hints[:0], a.saves[:0]
	a.writes, a.turn = a.writes[:0], 0
	a.met, a.search = resize(a.met, total), 0
	clear(a.met)
	a.read(f)
	limit := fixedWork + workEach*len(a.first)
	if a.work = limit; a.Coarse {
		a.work = -1
	}
	a.live()
	a.extents()
	a.build()
	a.work = limit
	r := &a.result
	r.Reg, r.Slot, r.Remat = resize(r.Reg, total), resize(r.Slot, total), resize(r.Remat, total)
	for v := range r.Reg {
		r.Reg[v], r.Slot[v] = -1, -1
		r.Remat[v] = a.ivs[v].remat
	}
	r.Bytes, r.Spills = first, 0
	a.sort()
	for c := range classes {
		a.assign(uint8(c), classes[c].Regs)
	}
	a.points(classes)
	return r
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// points gives slots to what is in no register and to what lives across safepoints, and lists the latter.
func (a *Allocator) points(classes []Class) {
	res := &a.result
	res.Points = resize(res.Points, len(a.saves))
	a.loads = a.loads[:0]
	for p, i := range a.saves {
		res.Points[p] = res.Points[p][:0]
		if i >= 0 {
			a.loads = append(a.loads, load{at: 2 * i, point: int32(p)})
		}
	}
	slices.SortFunc(a.loads, func(x, y load) int { return int(x.at - y.at) })
	for _, v := range a.order {
		if res.Reg[v] >= 0 {
			a.across(v)
		}
	}
	for _, v := range a.order {
		if res.Reg[v] < 0 {
			res.Spills++
			if res.Remat[v] < 0 {
				res.Slot[v] = 0
			}
		}
	}
	// The largest slots first, so that all are aligned without gaps.
	for size := 64; size > 0; size /= 2 {
		at := (res.Bytes + size - 1) &^ (size - 1)
		n := a.slots(classes, size, at)
		if n > 0 {
			res.Bytes = at + n*size
		}
	}
}

// across lists a virtual register at the safepoints that it lives across.
func (a *Allocator) across(v int32) {
	res := &a.result
	for r := a.ivs[v].head; r >= 0; r = a.ranges[r].next {
		s := &a.ranges[r]
		k := sort.Search(len(a.loads), func(k int) bool { return a.loads[k].at >= s.from })
		for ; k < len(a.loads) && a.loads[k].at <= s.to; k++ {
			p := a.loads[k].point
			res.Points[p] = append(res.Points[p], v)
			if res.Remat[v] < 0 {
				res.Slot[v] = 0 // wanted
			}
		}
	}
}

// slots places the slots of a size from at on, and returns how many there are: each takes the first one whose last
// owner's life is over.
func (a *Allocator) slots(classes []Class, size, at int) int {
	n := int32(0)
	a.owned, a.unused = a.owned[:0], a.unused[:0]
	for _, v := range a.order {
		if a.result.Slot[v] < 0 || classes[a.class[v]].Slot != size {
			continue
		}
		for start := a.ranges[a.ivs[v].head].from; len(a.owned) > 0 && int32(a.owned[0]>>32) < start; {
			a.unused.push(a.owned.pop() & (1<<32 - 1))
		}
		k := n
		if len(a.unused) > 0 {
			k = int32(a.unused.pop())
		} else {
			n++
		}
		a.owned.push(int64(a.ivs[v].end)<<32 | int64(k))
		a.result.Slot[v] = int32(at) + k*int32(size)
	}
	return int(n)
}

// heap gives back the smallest of the numbers in it.
type heap []int64

func (h *heap) push(x int64) {
	l := append(*h, x)
	for n := len(l) - 1; n > 0 && l[(n-1)/2] > l[n]; n = (n - 1) / 2 {
		l[n], l[(n-1)/2] = l[(n-1)/2], l[n]
	}
	*h = l
}

func (h *heap) pop() int64 {
	l := *h
	x, last := l[0], len(l)-1
	l[0] = l[last]
	l = l[:last]
	for n := 0; 2*n+1 < last; {
		c := 2*n + 1
		if c+1 < last && l[c+1] < l[c] {
			c++
		}
		if l[n] <= l[c] {
			break
		}
		l[n], l[c] = l[c], l[n]
		n = c
	}
	*h = l
	return x
}
