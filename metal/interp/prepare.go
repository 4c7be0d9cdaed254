package interp

import (
	"sync"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// kind says how the executor's loop treats an instruction.
type kind uint8

const (
	kindPure kind = iota // fn computes lanes
	kindMem              // fn may fault
	kindIf               // no else
	kindIfElse
	kindElse
	kindEnd // of an If or BlockOp: the lanes parked in the slot come back
	kindBlock
	kindLoop
	kindLoopBack
	kindBreak // also Continue: the lanes are parked in the slot
	kindBreakIf
	kindReturn
	kindReturnIf
	kindBarrier
	kindHalt
)

// inst is one instruction of the flat program. Offsets d, a, b, c are into the frame's registers.
type inst struct {
	fn         laneFunc
	kind       kind
	spin       bool // kindLoopBack of a loop that may wait for other threadgroups
	space      kir.Space
	mode       kir.Mode
	op         kir.Op
	args       uint8 // how many of a, b and c are registers
	logical    bool  // And and Or of Bool: one operand may decide
	d, a, b, c uint32
	imm        uint64 // as Instr.Imm; Store: the size in bytes
	slot       int32  // index in frame.masks
	to         int32  // where to go on when the branch is empty; kindLoopBack: the body's first instruction
	end        int32  // the end of the innermost enclosing construct: where to go on when no lane is left
	pos        kir.Pos
}

// Executable is a kernel made ready for execution: a flat list of instructions. It is immutable, and safe for
// any number of concurrent Runs.
type Executable struct {
	kernel   *kir.Kernel
	files    []string
	code     []inst
	regBytes int
	varBytes int // variables come first in the registers
	unset    []unsetVar
	consts   []constant
	masks    int
	// threadBytes is the size of all Thread regions of one SIMD-group, threadOff the offset of each region in it
	// (-1: other).
	threadBytes int
	threadOff   []int
	tgOff       []int
	resumable   bool // a SIMD-group may stop before its end: barriers, and loops that wait
	waits       bool // a threadgroup may wait for others: loops with atomics
	racy        bool // atomics or fences order memory in ways that the race check does not follow
	groups      sync.Pool
}

type constant struct {
	off, size uint32 // size in bytes of a lane, 0 for Bool
	bits      uint64
}

// Prepare verifies a kernel and makes it ready for execution. files are the names that positions refer to, for
// messages.
func Prepare(k *kir.Kernel, files []string) (*Executable, error) {
	if err := launch.Check(k); err != nil {
		return nil, err
	}
	p := &preparer{
		exe: &Executable{kernel: k, files: files}, k: k,
		uses: make([]int32, k.NumInstrs), posOf: make([]int32, k.NumInstrs), last: make([]int32, k.NumInstrs),
		root: make([]*kir.Instr, k.NumInstrs), slot: make([]uint32, k.NumInstrs), spins: map[*kir.Instr]bool{},
		consts: map[constant]uint32{}, targets: map[*kir.Instr]int32{},
	}
	p.layout()
	k.Body.Walk(func(in *kir.Instr) {
		for _, a := range in.Args {
			p.uses[a.ID]++
		}
	})
	p.analyse(k.Body)
	p.expire = make([][]*kir.Instr, p.pos+2)
	k.Body.Walk(func(in *kir.Instr) {
		if p.root[in.ID] == nil && in.Type != kir.Void {
			p.expire[p.last[in.ID]] = append(p.expire[p.last[in.ID]], in)
		}
	})
	p.pos = 0
	p.open()
	p.block(k.Body, 0)
	p.endConstruct(inst{kind: kindHalt})
	if p.err != nil {
		return nil, p.err
	}
	p.exe.regBytes = int(p.top)
	p.exe.masks = 2 * (p.maxDepth + 2)
	return p.exe, nil
}

// preparer flattens a kernel in two walks in the same order. The first finds each value's last use; the second emits
// instructions and gives registers to values, again and again the same few, so that they stay in the first-level
// cache. Positions count instructions and ends of constructs in walk order.
type preparer struct {
	exe *Executable
	k   *kir.Kernel
	err error
	pos int32

	uses  []int32      // by ID
	posOf []int32      // by ID: position of the definition
	last  []int32      // by ID: position after which the value is dead
	root  []*kir.Instr // by ID: the value whose register this one is; itself or a permanent one for those never freed
	loops []openLoop
	spins map[*kir.Instr]bool

	slot     []uint32 // by ID
	varSlot  []uint32
	consts   map[constant]uint32
	expire   [][]*kir.Instr // by position
	free     [9][]uint32    // by slot class
	top      uint32
	pending  [][]int32 // per open construct: instructions whose end it is
	targets  map[*kir.Instr]int32
	maxDepth int
}

type openLoop struct {
	in    *kir.Instr
	start int32
	used  []*kir.Instr // values from outside: they live to the loop's end
}

// slotClass is the index in preparer.free for values of a size: Bool has a word for all lanes.
func slotClass(t kir.Type) (class int, size uint32) {
	if t == kir.Bool {
		return 0, 8
	}
	return t.Size(), uint32(t.Size()) * lanes
}

func (p *preparer) alloc(t kir.Type) uint32 {
	class, size := slotClass(t)
	if n := len(p.free[class]); n > 0 {
		s := p.free[class][n-1]
		p.free[class] = p.free[class][:n-1]
		return s
	}
	s := p.top
	p.top += size
	return s
}

func (p *preparer) release(t kir.Type, s uint32) {
	class, _ := slotClass(t)
	p.free[class] = append(p.free[class], s)
}

// layout places variables, constants and regions.
func (p *preparer) layout() {
	k := p.k
	for _, v := range k.Vars {
		slot := p.alloc(v.Type)
		p.varSlot = append(p.varSlot, slot)
		if v.Unset {
			p.exe.unset = append(p.exe.unset, unsetVar{slot, reason{name: v.Name, part: v.Part}})
		}
	}
	p.exe.varBytes = int(p.top)
	k.Body.Walk(func(in *kir.Instr) {
		bits, ok := in.Imm, true
		switch in.Op {
		case kir.Const:
		case kir.ParamAddr:
			bits = kir.PtrParam(int(in.Imm))
		case kir.RegionAddr:
			bits = k.PtrRegion(int(in.Imm))
		default:
			ok = false
		}
		if !ok {
			return
		}
		c := constant{size: uint32(in.Type.Size()), bits: bits}
		if in.Type == kir.Bool {
			c.size = 0
		}
		s, ok := p.consts[c]
		if !ok {
			s = p.alloc(in.Type)
			p.consts[c] = s
			c.off = s
			p.exe.consts = append(p.exe.consts, c)
		}
		p.root[in.ID], p.slot[in.ID] = in, s
	})
	p.exe.tgOff, p.exe.threadOff = launch.RegionOffsets(k)
	_, thread := launch.OwnBytes(k)
	for i := range p.exe.threadOff { // a region of all lanes after another
		if p.exe.threadOff[i] > 0 {
			p.exe.threadOff[i] *= lanes
		}
	}
	p.exe.threadBytes = thread * lanes
}

// analyse is the first walk.
func (p *preparer) analyse(b *kir.Block) {
	for i, in := range b.Instrs {
		p.pos++
		p.posOf[in.ID], p.last[in.ID] = p.pos, p.pos
		for _, a := range in.Args {
			p.use(a)
		}
		switch {
		case in.Op == kir.Barrier:
			p.exe.resumable = true
		case in.Op.IsAtomic() || in.Op == kir.Fence:
			p.exe.racy = true
			for _, l := range p.loops {
				p.spins[l.in] = true
				p.exe.resumable, p.exe.waits = true, true
			}
		case in.Op == kir.VarGet && p.readsOnly(b.Instrs[i+1:], in):
			p.root[in.ID], p.slot[in.ID] = in, p.varSlot[in.Imm]
		case isAlias(in):
			a := in.Args[0]
			if r := p.root[a.ID]; r == nil {
				p.root[in.ID] = a
			} else {
				p.root[in.ID] = r
			}
		}
		if !in.Op.HasBody() {
			continue
		}
		if in.Op == kir.Loop {
			p.loops = append(p.loops, openLoop{in: in, start: p.pos})
		}
		p.analyse(in.Body)
		if in.Else != nil {
			p.analyse(in.Else)
		}
		p.pos++
		if in.Op == kir.Loop {
			l := p.loops[len(p.loops)-1]
			p.loops = p.loops[:len(p.loops)-1]
			for _, v := range l.used {
				p.last[v.ID] = p.pos
			}
		}
	}
}

// isAlias reports whether the value has the bits of its operand, so that they share a register.
func isAlias(in *kir.Instr) bool {
	if in.Op == kir.Bitcast {
		return true
	}
	if in.Op != kir.Convert {
		return false
	}
	t, a := in.Type, in.Args[0].Type
	return t == a || t.IsInt() && a.IsInt() && t.Size() == a.Size()
}

// use notes that the value is read at the current position: it lives until then, or to the end of the outermost loop
// around the use that the value is defined outside of.
func (p *preparer) use(v *kir.Instr) {
	if r := p.root[v.ID]; r != nil {
		if r == v || p.root[r.ID] == r { // permanent
			return
		}
		v = r
	}
	for i := range p.loops {
		if p.loops[i].start > p.posOf[v.ID] {
			p.loops[i].used = append(p.loops[i].used, v)
			return
		}
	}
	p.last[v.ID] = p.pos
}

// readsOnly reports whether every use of a VarGet comes before anything may change the variable: then it needs no copy.
func (p *preparer) readsOnly(after []*kir.Instr, get *kir.Instr) bool {
	const window = 48 // enough for expressions; a bound keeps long blocks linear
	left := p.uses[get.ID]
	for i := 0; left > 0 && i < len(after) && i < window; i++ {
		in := after[i]
		for _, a := range in.Args {
			if a == get {
				if isAlias(in) {
					return false
				}
				left--
			}
		}
		if left > 0 && (in.Op.HasBody() || in.Op == kir.VarSet && in.Imm == get.Imm) {
			return false
		}
	}
	return left == 0
}
