package jit

import (
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// code is a kernel as machine code for one kind of launch.
type code struct {
	bytes []byte
	// Offsets in bytes: where threadgroups begin (blockCount of them along x), where execution goes on after exitFuel.
	entry, resume int
	lay           *layout
	info          *lanes.Info
	kernel        *kir.Kernel // the optimised kernel: Instr.IDs of faults are its
}

// funcs keeps the memory of instruction lists for the next compilation.
var funcs = sync.Pool{New: func() any { return amd64.NewFunc() }}

// compile makes machine code of an optimised kernel (lanes.Optimise) for an instruction set and a kind of launch.
// past says that it is for launches that write past the cache, coarse that values are taken to live longer than they
// do.
func compile(k *kir.Kernel, level amd64.Level, geo lanes.Geometry, past, coarse bool) (*code, error) {
	s := &selector{k: k, level: level, allActive: geo.Full, past: past, f: funcs.Get().(*amd64.Func), w: 64, per: 16}
	defer func() {
		s.f.Reset()
		funcs.Put(s.f)
	}()
	if level == amd64.AVX2 {
		s.w, s.per = 32, 8
	}
	if s.group = groupOf(k, level); geo.Wide {
		s.group = kir.Lanes
	}
	s.parts = s.group / s.per
	s.info = lanes.Analyse(k, s.group, geo)
	if s.step = 1; geo.Pair != 0 {
		s.step = 2
		if inTurns(s.info) {
			return nil, &Unsupported{Kernel: k.Name, Op: kir.Loop, Why: "SIMD-groups that take turns run alone"}
		}
	}
	s.lay = newLayout(k, s.info, s.group)
	s.vals = make([]val, k.NumInstrs)
	entry := s.kernel()
	if s.err != nil {
		return nil, s.err
	}
	if level == amd64.AVX512 {
		hoist(s.f)
	}
	peephole(s.f, s.w)
	end, err := s.f.Allocate(amd64.Allocation{VecBytes: s.w, Frame: regFrame, Slots: s.lay.spills, Coarse: coarse})
	if err != nil {
		return nil, err
	}
	s.lay.frameBytes = align(end, 64)
	c, err := s.f.Assemble(level)
	if err != nil {
		return nil, err
	}
	return &code{bytes: c.Bytes, entry: c.Offset(entry.start), resume: c.Offset(entry.resume), lay: s.lay, info: s.info,
		kernel: k}, nil
}

// groupOf is how many lanes of an optimised kernel run together: all of a SIMD-group if they exchange anything, else as
// many as fit a vector register. Also all of them where the kernel counts on SIMD-groups, because it is then written so
// that their lanes touch neighbouring memory, unless that needs more registers than there are. Short kernels may run
// wide all the same, see specialization.plain.
func groupOf(k *kir.Kernel, level amd64.Level) int {
	crosses, simd := survey(k.Body)
	switch {
	case crosses || simd && (level == amd64.AVX512 || carries(k) <= fewCarried):
		return kir.Lanes
	case level == amd64.AVX512:
		return 16
	}
	return 8
}

// fewSteps is how many instructions of two parts each, and what they need from the first to the last, fit the
// registers.
const fewSteps = 160

// straightOn reports whether a kernel is short and has no loops. What there is to do for each group of lanes, and
// waiting for one result after the other, is then a good part of its time: the more lanes it is for the better.
func straightOn(k *kir.Kernel) bool {
	straight := k.NumInstrs <= fewSteps
	k.Body.Walk(func(i *kir.Instr) { straight = straight && i.Op != kir.Loop })
	return straight
}

// fewCarried is how many numbers of each lane may go from one round of a loop to the next where 32 lanes fill four of
// the 16 registers.
const fewCarried = 2

// carries counts the floating-point variables that loops set.
func carries(k *kir.Kernel) int {
	set := make([]bool, len(k.Vars))
	var look func(b *kir.Block, loop bool)
	look = func(b *kir.Block, loop bool) {
		if b == nil {
			return
		}
		for _, i := range b.Instrs {
			if loop && i.Op == kir.VarSet && k.Vars[i.Imm].Type.IsFloat() {
				set[i.Imm] = true
			}
			look(i.Body, loop || i.Op == kir.Loop)
			look(i.Else, loop)
		}
	}
	look(k.Body, false)
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}

// survey looks for operations between lanes, and for the number of a thread in its SIMD-group.
func survey(b *kir.Block) (crosses, simd bool) {
	if b == nil {
		return false, false
	}
	for _, i := range b.Instrs {
		switch i.Op {
		case kir.Reduce, kir.ScanInclusive, kir.ScanExclusive, kir.Shuffle, kir.Ballot, kir.BroadcastFirst, kir.SimdBarrier:
			return true, true
		case kir.Builtin:
			simd = simd || i.Mode == kir.ThreadIndexInSimdgroup
		}
		for _, in := range []*kir.Block{i.Body, i.Else} {
			c, s := survey(in)
			if c {
				return true, true
			}
			simd = simd || s
		}
	}
	return false, simd
}

// newLayout places what a kernel's threadgroups need.
func newLayout(k *kir.Kernel, info *lanes.Info, group int) *layout {
	l := &layout{group: group, objects: blockHeader, numObjects: 1 + len(k.Params) + len(k.Regions)}
	l.save = align(l.objects+l.numObjects*objectBytes, 64)
	l.scratch = l.save + savedBytes
	l.lanePos = l.scratch + scratchBytes
	groups := (maxThreads + group - 1) / group
	l.tgMem = l.lanePos + groups*3*4*group
	n := len(k.Regions)
	l.regionOff, l.regionStep, l.regionLane = make([]int, n), make([]int, n), make([]int, n)
	regionLayout(k, info, l)
	l.spills = frameBody
	for i, r := range k.Regions {
		switch r.Space {
		case kir.Threadgroup:
			l.tgBytes = align(l.tgBytes, max(r.Align, 16))
			l.regionOff[i] = l.tgBytes
			l.tgBytes += r.Size
		case kir.Thread:
			l.spills = align(l.spills, 64)
			l.regionOff[i] = l.spills
			if l.regionLane[i] != 0 && l.regionStep[i] == 1 {
				l.spills += l.regionLane[i] * group
			} else {
				l.spills += r.Size * group
			}
		}
	}
	l.tgBytes = align(l.tgBytes, 16)
	l.spills = align(l.spills, 64)
	return l
}

func align(n, to int) int { return (n + to - 1) &^ (to - 1) }

// entries are the labels of a kernel's code that the runtime enters.
type entries struct{ start, resume amd64.Label }

// kernel selects the whole kernel: what calls groups of lanes one after the other, and the body.
func (s *selector) kernel() entries {
	e := entries{s.label(), s.label()}
	s.flow.leaves, s.flow.uses = make([]bool, s.k.NumInstrs), make([]uint8, s.k.NumInstrs)
	s.findLeaves(s.k.Body)
	s.flow.cost, s.flow.barriers = make([]int, s.k.NumInstrs), countBarriers(s.k.Body)
	s.flow.body = s.costs(s.k.Body)
	s.flow.resume, s.flow.end, s.flow.empty = s.label(), s.label(), 0
	s.flow.empty = s.flow.end
	if inTurns(s.info) {
		s.phases(e.start)
	} else {
		s.oneByOne(e.start)
	}
	if s.flow.polls {
		s.saveAll()
		s.bind(e.resume)
		s.loadAll()
	}
	s.emitSubroutines()
	return e
}

func block(off int32) amd64.Mem { return amd64.Mem{Base: regBlock, Disp: off} }
func frame(off int32) amd64.Mem { return amd64.Mem{Base: regFrame, Disp: off} }

func (s *selector) loadR(w uint8, r amd64.R, m amd64.Mem) {
	s.emit(amd64.Inst{Op: amd64.Mov, W: w, Dst: r, Mem: m})
}

func (s *selector) storeR(w uint8, m amd64.Mem, r amd64.R) {
	s.emit(amd64.Inst{Op: amd64.Mov, W: w, Mem: m, A: r})
}

func (s *selector) jcc(c amd64.Cond, l amd64.Label) {
	s.emit(amd64.Inst{Op: amd64.Jcc, Cond: c, Label: l})
}

// ret leaves for Go.
func (s *selector) ret(why exit) {
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: int64(why)})
	s.storeR(8, block(blockExit), amd64.RAX)
	if s.past {
		s.emit(amd64.Inst{Op: amd64.MFence})
	}
	s.emit(amd64.Inst{Op: amd64.VZeroUpper})
	s.emit(amd64.Inst{Op: amd64.Ret})
}

// oneByOne calls the groups of lanes of a threadgroup one after the other, in one frame, and then the next
// threadgroups along x.
func (s *selector) oneByOne(start amd64.Label) {
	threadgroup, next, done := s.label(), s.label(), s.label()
	s.bind(start)
	s.f.Loop()
	s.bind(threadgroup)
	s.loadR(8, regFrame, block(blockFrame0))
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: 0})
	s.storeR(8, block(blockGroup), amd64.RAX)
	s.bind(next)
	s.startGroup()
	s.body()
	s.afterGroup()
	s.loadR(8, amd64.RAX, block(blockGroup))
	s.emit(amd64.Inst{Op: amd64.Add, W: 8, Dst: amd64.RAX, Imm: s.step})
	s.storeR(8, block(blockGroup), amd64.RAX)
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: amd64.RAX, Mem: block(blockGroups)})
	s.jcc(amd64.CondB, next)
	s.loadR(8, amd64.RAX, block(blockCount))
	s.emit(amd64.Inst{Op: amd64.Sub, W: 8, Dst: amd64.RAX, Imm: 1})
	s.storeR(8, block(blockCount), amd64.RAX)
	s.jcc2(amd64.RAX, done)
	s.loadR(4, amd64.RAX, block(blockBuiltins+4*slotOrigin))
	s.emit(amd64.Inst{Op: amd64.Add, W: 4, Dst: amd64.RAX,
		Mem: block(blockBuiltins + 4*int32(builtinSlots[kir.DispatchThreadsPerThreadgroup]))})
	s.storeR(4, block(blockBuiltins+4*slotOrigin), amd64.RAX)
	pos := block(blockBuiltins + 4*int32(builtinSlots[kir.ThreadgroupPositionInGrid]))
	s.loadR(4, amd64.RAX, pos)
	s.emit(amd64.Inst{Op: amd64.Add, W: 4, Dst: amd64.RAX, Imm: 1})
	s.storeR(4, pos, amd64.RAX)
	s.jump(threadgroup)
	s.f.EndLoop()
	s.bind(done)
	s.ret(exitDone)
}

// jcc2 jumps if a register is zero.
func (s *selector) jcc2(r amd64.R, l amd64.Label) {
	s.emit(amd64.Inst{Op: amd64.Test, W: 8, A: r, B: r})
	s.jcc(amd64.CondE, l)
}

// startGroup computes the group's lanes from blockGroup, into its frame.
func (s *selector) startGroup() {
	bits := int64(log2(s.group))
	full := s.label()
	s.loadR(4, amd64.RAX, block(blockGroup))
	s.storeR(4, frame(frameIndex), amd64.RAX)
	s.emit(amd64.Inst{Op: amd64.IMul3, W: 8, Dst: amd64.RDX, A: amd64.RAX, Imm: int64(3 * 4 * s.group)})
	s.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: amd64.RDX,
		Mem: amd64.Mem{Base: regBlock, Index: amd64.RDX, Scale: 1, Disp: int32(s.lay.lanePos)}})
	s.storeR(8, frame(framePos), amd64.RDX)
	s.emit(amd64.Inst{Op: amd64.Shl, W: 4, Dst: amd64.RAX, Imm: bits})
	s.loadR(4, amd64.RCX, block(blockThreads))
	s.emit(amd64.Inst{Op: amd64.Sub, W: 4, Dst: amd64.RCX, A: amd64.RAX})
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RDX, Imm: int64(1)<<s.group - 1})
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RCX, Imm: int64(s.group)})
	s.jcc(amd64.CondAE, full)
	s.emit(amd64.Inst{Op: amd64.BZHi, W: 4, Dst: amd64.RDX, A: amd64.RDX, B: amd64.RCX})
	s.bind(full)
	s.storeR(4, frame(frameMask), amd64.RDX)
}

// body selects the kernel's body for the group of lanes in regFrame.
func (s *selector) body() {
	r := s.reg(amd64.GPR)
	s.loadR(4, r, frame(frameMask))
	s.exec = s.bitsToMask(r)
	s.zeroRegions()
	s.makeVars()
	s.block(s.k.Body)
	s.bind(s.flow.end)
}

// zeroRegions clears the Thread regions of the group's lanes.
func (s *selector) zeroRegions() {
	from, to := int32(frameBody), int32(s.lay.spills)
	if from == to {
		return
	}
	z := s.reg(amd64.Vec)
	s.zeroReg(z)
	step := int32(s.w)
	if to-from <= 16*step {
		for ; from < to; from += step {
			s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: frame(from), A: z})
		}
		return
	}
	again := s.label()
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: int64(from)})
	s.f.Loop()
	s.bind(again)
	s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, A: z, Mem: amd64.Mem{Base: regFrame, Index: amd64.RAX, Scale: 1}})
	s.emit(amd64.Inst{Op: amd64.Add, W: 4, Dst: amd64.RAX, Imm: int64(step)})
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RAX, Imm: int64(to)})
	s.jcc(amd64.CondB, again)
	s.f.EndLoop()
}

// phases calls the groups of lanes of a threadgroup in turns: each runs to its next barrier, or to its end.
func (s *selector) phases(start amd64.Label) {
	begin, phase, turn, next, over := s.label(), s.label(), s.label(), s.label(), s.label()
	first, init := s.label(), s.label()
	s.flow.next = next
	s.bind(start)
	// Every group begins with the body.
	s.loadR(8, regFrame, block(blockFrame0))
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: 0})
	s.storeR(8, block(blockGroup), amd64.RAX)
	s.bind(init)
	s.startGroup()
	s.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: amd64.RAX, Label: begin})
	s.storeR(8, frame(frameResume), amd64.RAX)
	s.storeI(frame(frameYield), 0)
	s.nextGroup(first)
	s.jump(init)
	s.bind(first)

	s.bind(phase)
	s.storeI(block(blockAlive), 0)
	s.storeI(block(blockYielding), 0)
	pass := s.label()
	s.bind(pass)
	s.loadR(8, regFrame, block(blockFrame0))
	s.storeI(block(blockGroup), 0)
	s.storeI(block(blockYields), 0)
	s.bind(turn)
	s.beforeTurn()
	if s.info.Waits {
		s.takeUp(next)
	}
	s.emit(amd64.Inst{Op: amd64.Jmp, W: 8, Mem: frame(frameResume)})
	s.bind(next)
	s.nextGroup(over)
	s.jump(turn)
	s.bind(over)
	if s.info.Waits { // those who gave up their turns get another one before the phase is over
		all := s.label()
		s.loadR(8, amd64.RAX, block(blockYields))
		s.jcc2(amd64.RAX, all)
		s.storeI(block(blockYielding), 1)
		s.exitFor(pass)
		s.bind(all)
	}
	s.loadR(8, amd64.RAX, block(blockAlive))
	done := s.label()
	s.jcc2(amd64.RAX, done)
	s.jump(phase)
	s.bind(done)
	s.ret(exitDone)

	s.bind(begin)
	s.body()
	s.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: amd64.RAX, Label: next})
	s.storeR(8, frame(frameResume), amd64.RAX)
	s.jump(next)
}

// inTurns reports whether the groups of lanes of a threadgroup take turns, each with a frame of its own: at barriers,
// and where one may wait for what another one does.
func inTurns(info *lanes.Info) bool { return info.Barriers || info.Waits }

// takeUp goes on where the group of lanes gave up its turn, if it did. While such groups have their turns others are
// at next.
func (s *selector) takeUp(next amd64.Label) {
	plain := s.label()
	s.loadR(8, amd64.RAX, block(blockTurn))
	s.storeR(8, block(blockFuel), amd64.RAX)
	s.loadR(8, amd64.RAX, frame(frameYield))
	s.jcc2(amd64.RAX, plain)
	s.emit(amd64.Inst{Op: amd64.Jmp, W: 8, Mem: frame(frameYield)})
	s.bind(plain)
	s.loadR(8, amd64.RAX, block(blockYielding))
	s.emit(amd64.Inst{Op: amd64.Test, W: 8, A: amd64.RAX, B: amd64.RAX})
	s.jcc(amd64.CondNE, next)
}

// yield gives up the group's turn, for the others of its threadgroup and for Go, and then goes back.
func (s *selector) yield(back amd64.Label) {
	again := s.label()
	n := s.flow.safepoints
	s.flow.safepoints++
	s.f.SaveLive(n)
	s.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: amd64.RAX, Label: again})
	s.storeR(8, frame(frameYield), amd64.RAX)
	s.storeI(block(blockYields), 1)
	s.jump(s.flow.next)
	s.bind(again)
	s.storeI(frame(frameYield), 0)
	s.f.LoadLive(n)
	s.jump(back)
}

// storeI stores an integer of 8 bytes.
func (s *selector) storeI(m amd64.Mem, v int64) {
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: v})
	s.storeR(8, m, amd64.RAX)
}

// nextGroup goes to the frame of the next group of lanes, or jumps if there is none.
func (s *selector) nextGroup(none amd64.Label) {
	s.loadR(8, amd64.RAX, block(blockGroup))
	s.emit(amd64.Inst{Op: amd64.Add, W: 8, Dst: amd64.RAX, Imm: 1})
	s.storeR(8, block(blockGroup), amd64.RAX)
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: amd64.RAX, Mem: block(blockGroups)})
	s.jcc(amd64.CondAE, none)
	s.emit(amd64.Inst{Op: amd64.Add, W: 8, Dst: regFrame, Mem: block(blockFrameStep)})
}

// barrier ends the group's phase.
func (s *selector) barrier() {
	again := s.label()
	n := s.flow.safepoints
	s.flow.safepoints++
	s.f.SaveLive(n)
	s.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: amd64.RAX, Label: again})
	s.storeR(8, frame(frameResume), amd64.RAX)
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: 1})
	s.storeR(8, block(blockAlive), amd64.RAX)
	s.jump(s.flow.next)
	s.bind(again)
	s.f.LoadLive(n)
}

// savedGPRs are the general registers that machine code may hold values in.
var savedGPRs = []amd64.R{amd64.RBX, amd64.RSI, amd64.RDI, amd64.R8, amd64.R9, amd64.R12, amd64.R13, amd64.R14,
	amd64.R15}

// saveAll stores every register and leaves with exitFuel; RAX is where to go on.
func (s *selector) saveAll() {
	s.bind(s.flow.resume)
	s.storeR(8, block(blockResume), amd64.RAX)
	at := int32(s.lay.save)
	for n, r := range savedGPRs {
		s.storeR(8, block(at+saveGPR+8*int32(n)), r)
	}
	s.eachVec(func(v amd64.R, off int32) {
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: block(at + off), A: v})
	})
	s.eachK(func(k amd64.R, off int32) {
		s.emit(amd64.Inst{Op: amd64.KMov, W: 8, Mem: block(at + off), A: k})
	})
	s.ret(exitFuel)
}

// loadAll loads what saveAll stored and goes on.
func (s *selector) loadAll() {
	at := int32(s.lay.save)
	for n, r := range savedGPRs {
		s.loadR(8, r, block(at+saveGPR+8*int32(n)))
	}
	s.eachVec(func(v amd64.R, off int32) {
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Dst: v, Mem: block(at + off)})
	})
	s.eachK(func(k amd64.R, off int32) {
		s.emit(amd64.Inst{Op: amd64.KMov, W: 8, Dst: k, Mem: block(at + off)})
	})
	s.emit(amd64.Inst{Op: amd64.Jmp, W: 8, Mem: block(blockResume)})
}

func (s *selector) eachVec(f func(v amd64.R, off int32)) {
	n := 16
	if s.level == amd64.AVX512 {
		n = 32
	}
	for i := range n {
		f(amd64.V(i), int32(saveVec+64*i))
	}
}

func (s *selector) eachK(f func(k amd64.R, off int32)) {
	if s.level != amd64.AVX512 {
		return
	}
	for i := 1; i < 8; i++ {
		f(amd64.K(i), int32(saveMask+8*i))
	}
}
