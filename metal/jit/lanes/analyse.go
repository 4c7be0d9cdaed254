package lanes

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Analyse finds out how the values of a verified kernel differ between the group lanes (a power of two from 4 to 32)
// that run together, and how its accesses touch memory. It changes nothing. A kernel in which lanes exchange values
// needs group 32.
func Analyse(k *kir.Kernel, group int, geo Geometry) *Info {
	n := k.NumInstrs
	a := &analysis{
		k: k, group: group, geo: geo, offsets: map[[MaxLanes]int32]*[MaxLanes]int32{},
		info: &Info{
			Group: group, Patterns: make([]Pattern, n), Object: make([]int, n), NeedBase: make([]bool, n),
			NeedVec: make([]bool, n), Bias: make([]int32, n), Divergent: make([]bool, n), Masked: make([]bool, n),
			Alias: make([]bool, n), Access: make([]*Access, n), VarPatterns: make([]Pattern, len(k.Vars)),
			VarObjects: make([]int, len(k.Vars)), VarInit: make([]bool, len(k.Vars)), Bounded: make([]int, n),
			Cost: make([]int, n),
		},
		order: make([]*kir.Instr, 0, n), pos: make([]int32, n), end: make([]int32, n), loop: make([]int32, n),
		bits: make([]uint8, n), vars: make([]variable, len(k.Vars)), left: make([]exits, n),
	}
	a.scan()
	a.levels = append(a.levels, level{})
	for a.pass = 0; ; a.pass++ {
		a.changed = false
		a.block(k.Body)
		if !a.changed {
			break
		}
	}
	a.finishVars()
	a.loops()
	a.accesses()
	a.needs()
	a.aliases()
	a.info.Bits = a.bits
	return a.info
}

// analysis is the state of one Analyse. Positions are indices in order, the kernel's instructions in textual order.
type analysis struct {
	k       *kir.Kernel
	group   int
	geo     Geometry
	info    *Info
	offsets map[[MaxLanes]int32]*[MaxLanes]int32

	order []*kir.Instr
	pos   []int32 // by ID
	end   []int32 // by ID: the position after all that the instruction holds
	loop  []int32 // by ID: position of the innermost Loop around it, -1 if there is none
	bits  []uint8 // by ID: significant bits of an integer, zero-extended, at most this many
	vars  []variable
	inner []int32 // positions of loops
	left  []exits // by ID of a Loop: the divergent exits that lanes take out of it

	seen []int32 // by ID: a mark of the walk that was here last

	levels  []level // the open constructs, the kernel first
	pass    int
	changed bool
}

// variable is what is known of a Var.
type variable struct {
	gets, sets []int32 // positions
	scope      int     // a lane's value never outlives the body of the construct at this level
	pattern    Pattern
	seen       bool // pattern is set
	bits       uint8
	object     int
}

// exits is a set of constructs, by their level, that lanes have left for or gone back to: bit 63 stands for all levels
// from 63 on.
type exits struct{ breaks, continues uint64 }

// level is one open construct.
type level struct {
	in     *kir.Instr // nil: the kernel
	parted bool       // an If whose other branch has lanes
	other  bool       // an If: this is its Else
	lost   exits      // divergent exits from within it, so far
}

const topLevel = 63

func levelBit(n int) uint64 { return 1 << min(n, topLevel) }

// block walks a block in one pass of the fixpoint.
func (a *analysis) block(b *kir.Block) {
	for _, in := range b.Instrs {
		a.instr(in)
	}
}

func (a *analysis) set(in *kir.Instr, s Pattern, bias int32) {
	s.Align = min(s.Align, alignLimit(in.Type))
	a.info.Patterns[in.ID], a.info.Bias[in.ID] = s, bias
}

// setObject records which object a pointer is in.
func (a *analysis) setObject(in *kir.Instr, object int) { a.info.Object[in.ID] = object }

func (a *analysis) instr(in *kir.Instr) {
	t := in.Type
	if t != kir.Void {
		a.bits[in.ID] = uint8(t.Bits())
	}
	switch in.Op {
	case kir.Const:
		a.bits[in.ID] = uint8(bits.Len64(in.Imm))
		al := uint32(1)
		if isIndex(t) {
			al = align(in.Imm)
		}
		a.set(in, uniformPattern(al), 0)
	case kir.ParamAddr:
		a.set(in, uniformPattern(maxAlign), 0)
		a.setObject(in, 1+int(in.Imm))
	case kir.RegionAddr:
		a.set(in, uniformPattern(maxAlign), 0)
		a.setObject(in, 1+len(a.k.Params)+int(in.Imm))
	case kir.Builtin:
		a.builtin(in)
	case kir.VarGet:
		v := &a.vars[in.Imm]
		s := v.pattern
		if !v.seen {
			s = uniformPattern(maxAlign)
		}
		a.set(in, s, 0)
		a.bits[in.ID] = v.bits
		a.setObject(in, v.object)
	case kir.VarSet:
		a.assign(in)
	case kir.Load:
		s := Pattern{Kind: Varying, Align: 1}
		if p := in.Args[0]; p.Type != kir.PtrThread && a.info.Patterns[p.ID].Kind == Uniform {
			s = uniformPattern(1)
		}
		a.set(in, s, 0)
	case kir.AtomicLoad, kir.AtomicRMW, kir.AtomicCAS, kir.ScanInclusive, kir.ScanExclusive:
		a.set(in, Pattern{Kind: Varying, Align: 1}, 0)
	case kir.Reduce, kir.Ballot, kir.Shuffle, kir.BroadcastFirst:
		a.crossing(in)
	case kir.If:
		a.branch(in)
	case kir.BlockOp, kir.Loop:
		a.levels = append(a.levels, level{in: in})
		a.block(in.Body)
		a.levels = a.levels[:len(a.levels)-1]
	case kir.Break, kir.Continue, kir.Return:
		a.jump(in)
	default:
		if in.Op.Pure() {
			s, bias := a.pure(in)
			a.pointer(in, &s, &bias)
			a.set(in, s, bias)
			a.bits[in.ID] = a.width(in)
		}
	}
}

// noObject is the object of a pointer variable before anything is known of it.
const noObject = -1

// pointer finds the object of a pure operation's pointer. A pointer whose object is known at run time only is never a
// Based: an offset that wraps would change the object.
func (a *analysis) pointer(in *kir.Instr, s *Pattern, bias *int32) {
	if !in.Type.IsPtr() {
		return
	}
	object := 0
	switch in.Op {
	case kir.PtrAdd:
		object = a.info.Object[in.Args[0].ID]
	case kir.Select:
		object = meetObject(a.info.Object[in.Args[1].ID], a.info.Object[in.Args[2].ID])
	}
	a.setObject(in, object)
	if object == 0 && s.Kind == Based {
		*s, *bias = a.varying(*s), 0
	}
}

func meetObject(x, y int) int {
	switch {
	case x == noObject:
		return y
	case y == noObject || x == y:
		return x
	}
	return 0
}

// builtin finds the pattern of a position or size.
func (a *analysis) builtin(in *kir.Instr) {
	lane := func(l int) int64 { return int64(l) }
	s, width := uniformPattern(1), uint8(32)
	g := uint32(a.group)
	switch in.Mode {
	case kir.ThreadPositionInGrid, kir.ThreadPositionInThreadgroup:
		if in.Mode == kir.ThreadPositionInThreadgroup {
			width = 10
		}
		switch {
		case !a.geo.Row:
			s.Kind = Varying
		case in.Imm == 0:
			if in.Mode == kir.ThreadPositionInGrid && !a.geo.Aligned {
				g = 1
			}
			s, _ = a.based(g, lane)
		}
	case kir.ThreadIndexInThreadgroup:
		width = 10
		s, _ = a.based(g, lane)
	case kir.ThreadIndexInSimdgroup:
		width = 5
		if a.group == MaxLanes {
			g = maxAlign
		}
		s, _ = a.based(g, lane)
	case kir.ThreadIndexInQuadgroup:
		width = 2
		s, _ = a.based(maxAlign, func(l int) int64 { return int64(l % 4) })
	case kir.QuadgroupIndexInThreadgroup:
		width = 8
		s, _ = a.based(g/4, func(l int) int64 { return int64(l / 4) })
	case kir.SimdgroupIndexInThreadgroup:
		width = 5
	case kir.ThreadsPerThreadgroup, kir.DispatchThreadsPerThreadgroup, kir.QuadgroupsPerThreadgroup:
		width = 11
	case kir.SimdgroupsPerThreadgroup, kir.DispatchSimdgroupsPerThreadgroup, kir.ThreadsPerSimdgroup:
		width = 6
		if in.Mode == kir.ThreadsPerSimdgroup {
			s.Align = kir.Lanes
		}
	case kir.GridOrigin:
		s.Align, width = maxAlign, 0
	}
	a.set(in, s, 0)
	a.bits[in.ID] = width
}

// crossing finds the pattern of what lanes tell each other.
func (a *analysis) crossing(in *kir.Instr) {
	s := Pattern{Kind: Varying, Align: 1}
	if in.Imm == kir.Lanes {
		switch in.Op {
		case kir.Reduce, kir.Ballot, kir.BroadcastFirst:
			s.Kind = Uniform
		case kir.Shuffle:
			s.Kind = a.info.Patterns[in.Args[1].ID].Kind
			if s.Kind == Based {
				s.Kind = Varying
			}
		}
	}
	if in.Op == kir.BroadcastFirst {
		s.Align = a.laneAlign(a.info.Patterns[in.Args[0].ID])
		a.bits[in.ID] = a.bits[in.Args[0].ID]
		a.setObject(in, a.info.Object[in.Args[0].ID])
	}
	if in.Op == kir.Ballot {
		a.bits[in.ID] = 32
	}
	a.set(in, s, 0)
}

// mark sets a flag that only ever becomes true.
func (a *analysis) mark(flags []bool, in *kir.Instr) {
	if !flags[in.ID] {
		flags[in.ID] = true
		a.changed = true
	}
}

func (a *analysis) branch(in *kir.Instr) {
	parted := a.info.Patterns[in.Args[0].ID].Kind != Uniform
	if parted {
		a.mark(a.info.Divergent, in)
	}
	n := len(a.levels)
	a.levels = append(a.levels, level{in: in, parted: parted})
	a.block(in.Body)
	if in.Else != nil {
		a.levels[n] = level{in: in, parted: parted, other: true}
		a.block(in.Else)
	}
	a.levels = a.levels[:n]
}

// jump notes which constructs lanes leave at different times by a Break, Continue or Return.
func (a *analysis) jump(in *kir.Instr) {
	target := 0
	if in.Op != kir.Return {
		for target = len(a.levels) - 1; a.levels[target].in != in.Target; target-- {
		}
	}
	bit := levelBit(target)
	apart := false // not all lanes that entered the construct at hand are here
	for j := len(a.levels) - 1; j >= target; j-- {
		l := &a.levels[j]
		isLoop := l.in != nil && l.in.Op == kir.Loop
		apart = apart || l.lost != exits{} || isLoop && a.left[l.in.ID] != exits{}
		if apart {
			a.leave(l, in, bit, j == target)
		}
		apart = apart || l.parted
	}
	if apart {
		a.mark(a.info.Divergent, in)
	}
}

// leave notes that some lanes leave a construct by a jump.
func (a *analysis) leave(l *level, jump *kir.Instr, bit uint64, isTarget bool) {
	again := jump.Op == kir.Continue
	if again {
		l.lost.continues |= bit
	} else {
		l.lost.breaks |= bit
	}
	if l.in == nil || l.in.Op == kir.If {
		return
	}
	a.mark(a.info.Divergent, l.in)
	if l.in.Op == kir.BlockOp || again && isTarget {
		return
	}
	e := &a.left[l.in.ID]
	old := *e
	if again {
		e.continues |= bit
	} else {
		e.breaks |= bit
	}
	a.changed = a.changed || *e != old
}

// assign is a VarSet.
func (a *analysis) assign(in *kir.Instr) {
	v, x := &a.vars[in.Imm], in.Args[0]
	s := a.info.Patterns[x.ID]
	if a.matters(v) {
		a.mark(a.info.Masked, in)
		s = a.varying(s)
	}
	width, object := a.bits[x.ID], a.info.Object[x.ID]
	if v.seen {
		s = a.meet(v.pattern, s)
		width, object = max(width, v.bits), meetObject(v.object, object)
	}
	if v.seen && s == v.pattern && width == v.bits && object == v.object {
		return
	}
	if a.pass > 4 { // values that grow or lose alignment round by round
		if width != v.bits {
			width = uint8(a.k.Vars[in.Imm].Type.Bits())
		}
		if s.Align != v.pattern.Align {
			s.Align = 1
		}
	}
	v.seen, v.pattern, v.bits, v.object = true, s, width, object
	a.changed = true
}

// matters reports whether lanes that are not active here, but were where the variable's scope began, may read it later.
func (a *analysis) matters(v *variable) bool {
	if len(v.gets) == 0 {
		return false
	}
	last := v.gets[len(v.gets)-1]
	outer := -1 // level of the outermost loop within the scope
	var lost exits
	for j := v.scope + 1; j < len(a.levels); j++ {
		l := &a.levels[j]
		lost.breaks |= l.lost.breaks
		lost.continues |= l.lost.continues
		if l.in.Op == kir.Loop {
			if outer < 0 {
				outer = j
			}
			lost.breaks |= a.left[l.in.ID].breaks
			lost.continues |= a.left[l.in.ID].continues
		}
		if !l.parted {
			continue
		}
		back := a.end[l.in.ID] // where the others come back
		if !l.other && l.in.Else != nil {
			back = a.pos[l.in.ID]
			if n := len(l.in.Body.Instrs); n > 0 {
				back = a.end[l.in.Body.Instrs[n-1].ID]
			}
		}
		if last >= back || outer >= 0 && outer < j && a.readIn(v, a.levels[outer].in) {
			return true
		}
	}
	if v.scope >= topLevel-1 {
		return lost != exits{}
	}
	above := ^(levelBit(v.scope+1) - 1)
	return a.rejoin(v, last, lost.breaks&above, outer, false) || a.rejoin(v, last, lost.continues&above, outer, true)
}

// rejoin reports whether lanes that left for the targets may read the variable once they take part again.
func (a *analysis) rejoin(v *variable, last int32, targets uint64, outer int, again bool) bool {
	for ; targets != 0; targets &= targets - 1 {
		x := bits.TrailingZeros64(targets)
		if x == topLevel || x >= len(a.levels) {
			return true
		}
		t := a.levels[x].in
		if last >= a.end[t.ID] || again && a.readIn(v, t) || outer >= 0 && outer < x && a.readIn(v, a.levels[outer].in) {
			return true
		}
	}
	return false
}

// readIn reports whether the variable is read within a construct.
func (a *analysis) readIn(v *variable, t *kir.Instr) bool {
	i := after(v.gets, a.pos[t.ID])
	return i < len(v.gets) && v.gets[i] < a.end[t.ID]
}

// after returns the index of the first of the ascending positions that is greater than p.
func after(s []int32, p int32) int {
	lo, hi := 0, len(s)
	for lo < hi {
		if m := (lo + hi) / 2; s[m] <= p {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// finishVars publishes what was found of variables.
func (a *analysis) finishVars() {
	for i := range a.vars {
		v := &a.vars[i]
		if !v.seen {
			v.pattern = uniformPattern(maxAlign)
		}
		if v.object == noObject {
			v.object = 0
		}
		a.info.VarPatterns[i], a.info.VarObjects[i] = v.pattern, v.object
	}
	for i, o := range a.info.Object {
		if o == noObject {
			a.info.Object[i] = 0
		}
	}
}
