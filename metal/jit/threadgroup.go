package jit

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/native"
	"github.com/mlxlua/mlxlua/metal/launch"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// group is a threadgroup in execution, or several one after another: an arena and what is in it.
type group struct {
	v    *variant
	run  *Run
	base unsafe.Pointer // of the arena, outside Go's heap
	mem  []byte
	at   int64  // index of the threadgroup it began with
	pos  [3]int // the size that the positions of lanes are there for
	tg   int    // bytes of threadgroup memory
	// room and frames: for how much threadgroup memory and how many groups of lanes the arena is made.
	room    int
	frames  int
	resumed bool  // the code has left and can go on
	failed  bool  // it had a fault, which was reported
	again   error // a fault of a paired variant: what the threadgroup's first one is has to be found by its plain code
}

// fuel is what machine code may spend before it must return: some 50 us. Where threadgroups wait for each other it is
// less, since what a waiting one spends is lost.
const (
	fuel     = 200_000
	turnFuel = 10_000 // of a group of lanes, where they take turns
	// leastTurn is what remains of it when all threadgroups have had several turns and none has ended.
	leastTurn = turnFuel / 16
)

func (g *group) word(off int) *uint64 { return (*uint64)(unsafe.Add(g.base, off)) }

func (g *group) slot(n int) *uint32 { return (*uint32)(unsafe.Add(g.base, arena.Builtins+4*n)) }

// frames is how many frames threadgroups of a size need.
func (v *variant) frames(size [3]int) int {
	if !v.code.Info.InTurns() {
		return 1
	}
	return (size[0]*size[1]*size[2] + v.code.Layout.Lanes - 1) / v.code.Layout.Lanes
}

// group returns a group with an arena for threadgroups of the size, ready for begin.
func (r *Run) group(v *variant, size [3]int) (*group, error) {
	g, _ := v.blocks.Get().(*group)
	if frames, tg := v.frames(size), r.tgBytes(v); g == nil || g.room < tg || g.frames < frames {
		if g != nil {
			frames, tg = max(frames, g.frames), max(tg, g.room)
		}
		var err error
		if g, err = newGroup(v, tg, frames); err != nil {
			return nil, err
		}
	}
	g.run, g.tg = r, r.tgBytes(v)
	g.launch()
	return g, nil
}

// tgBytes is the size of a threadgroup's memory.
func (r *Run) tgBytes(v *variant) int {
	n := v.code.Layout.ThreadgroupBytes
	for _, l := range r.plan.Lengths {
		n += arena.Align(l, 16)
	}
	return n
}

func newGroup(v *variant, tg, frames int) (*group, error) {
	lay := v.code.Layout
	frame0 := arena.Align(lay.Threadgroup+tg+64, 64) // 64: vectors may be read across the end
	mem, err := native.Map(frame0 + frames*lay.FrameBytes + 64)
	if err != nil {
		return nil, fmt.Errorf("[jit] memory for threadgroups: %w", err)
	}
	g := &group{v: v, mem: mem, base: unsafe.Pointer(unsafe.SliceData(mem)), room: tg, frames: frames}
	runtime.AddCleanup(g, native.Unmap, mem)
	*g.word(arena.Frame0) = uint64(uintptr(g.base)) + uint64(frame0)
	*g.word(arena.FrameStep) = uint64(lay.FrameBytes)
	return g, nil
}

// release gives the group back for other launches.
func (g *group) release() {
	g.run = nil
	g.v.blocks.Put(g)
}

// launch writes what is the same for all threadgroups of a launch: the objects and most builtins.
func (g *group) launch() {
	r, lay, k := g.run, g.v.code.Layout, g.v.code.Kernel
	tg := uint64(uintptr(g.base)) + uint64(lay.Threadgroup)
	table := unsafe.Slice((*arena.Object)(unsafe.Add(g.base, lay.Objects)), lay.NumObjects)
	table[0] = arena.Object{}
	params := uint64(lay.ThreadgroupBytes)
	for i, p := range k.Params {
		o := arena.Object{Step: 1, Space: 1 + uint32(p.Space), Write: 1 + uint32(p.Space)}
		if p.ReadOnly {
			o.Write = 0
		}
		if p.Space == kir.Threadgroup {
			o.Base, o.Len = tg+params, uint64(r.plan.Lengths[i])
			params += uint64(arena.Align(r.plan.Lengths[i], 16))
		} else {
			o.Base, o.Len = addressOf(r.buffers[i]), uint64(len(r.buffers[i]))
		}
		table[1+i] = o
	}
	for i, q := range k.Regions {
		o := arena.Object{Len: uint64(q.Size), Step: 1, Space: 1 + uint32(q.Space), Write: 1 + uint32(q.Space)}
		switch q.Space {
		case kir.Constant:
			o.Base = addressOf(q.Data)
		case kir.Threadgroup:
			o.Base = tg + uint64(lay.RegionOffset[i])
		case kir.Thread:
			o.Base = uint64(lay.RegionOffset[i])
			o.Step, o.Lane = uint32(lay.RegionStep[i]), uint32(lay.RegionLane[i])
		}
		table[1+len(k.Params)+i] = o
	}
	for d := range 3 {
		*g.slot(slotDispatch + d) = uint32(r.tg[d])
		*g.slot(slotGroups + d) = uint32(r.plan.Groups[d])
		*g.slot(slotGrid + d) = uint32(r.grid[d])
	}
	*g.slot(slotDispatchSimds) = uint32((r.tg[0]*r.tg[1]*r.tg[2] + kir.Lanes - 1) / kir.Lanes)
}

// Slots of builtins.
var (
	slotPosition      = arena.BuiltinSlots[kir.ThreadgroupPositionInGrid]
	slotSize          = arena.BuiltinSlots[kir.ThreadsPerThreadgroup]
	slotDispatch      = arena.BuiltinSlots[kir.DispatchThreadsPerThreadgroup]
	slotGroups        = arena.BuiltinSlots[kir.ThreadgroupsPerGrid]
	slotGrid          = arena.BuiltinSlots[kir.ThreadsPerGrid]
	slotSimds         = arena.BuiltinSlots[kir.SimdgroupsPerThreadgroup]
	slotDispatchSimds = arena.BuiltinSlots[kir.DispatchSimdgroupsPerThreadgroup]
	slotQuads         = arena.BuiltinSlots[kir.QuadgroupsPerThreadgroup]
)

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// begin readies threadgroup i and the count-1 ones after it along x, all of one size.
func (g *group) begin(i int64, size [3]int, count int) {
	r, lay := g.run, g.v.code.Layout
	g.at, g.resumed, g.failed, g.again = i, false, false, nil
	threads := size[0] * size[1] * size[2]
	n := i
	for d := range 3 {
		pos := n
		if d < 2 {
			pos = n % int64(r.plan.Groups[d])
			n /= int64(r.plan.Groups[d])
		}
		*g.slot(slotPosition + d) = uint32(pos)
		*g.slot(arena.SlotOrigin + d) = uint32(pos * int64(r.tg[d]))
		*g.slot(slotSize + d) = uint32(size[d])
	}
	*g.slot(slotSimds) = uint32((threads + kir.Lanes - 1) / kir.Lanes)
	*g.slot(slotQuads) = uint32((threads + 3) / 4)
	*g.word(arena.Groups) = uint64((threads + lay.Lanes - 1) / lay.Lanes)
	*g.word(arena.Threads) = uint64(threads)
	*g.word(arena.Count) = uint64(count)
	if g.pos != size {
		g.pos = size
		g.positions(size, threads)
	}
	if g.tg > 0 {
		clear(g.mem[lay.Threadgroup : lay.Threadgroup+g.tg])
	}
}

// positions fills the table of the lanes' positions in the threadgroup.
func (g *group) positions(size [3]int, threads int) {
	lay := g.v.code.Layout
	x, y, z := 0, 0, 0
	for first := 0; first < threads; first += lay.Lanes {
		t := unsafe.Slice((*uint32)(unsafe.Add(g.base, lay.Positions+first*3*4)), 3*lay.Lanes)
		for l := range lay.Lanes {
			t[l], t[lay.Lanes+l], t[2*lay.Lanes+l] = uint32(x), uint32(y), uint32(z)
			if x++; x == size[0] {
				x = 0
				if y++; y == size[1] {
					y = 0
					z++
				}
			}
		}
	}
}

// step runs the threadgroups until they end (true, also by a fault) or the fuel is spent: where groups of lanes take
// turns because they may wait for each other, that of each turn.
func (g *group) step(spend int64) bool {
	c := g.v.code
	*(*int64)(unsafe.Add(g.base, arena.Fuel)) = spend
	*(*int64)(unsafe.Add(g.base, arena.Turn)) = spend
	*(*int64)(unsafe.Add(g.base, arena.Left)) = 5 * spend
	entry := c.Entry
	if g.resumed {
		entry = c.Resume
	}
	g.v.mem.Call(entry, g.base)
	switch arena.Exit(*g.word(arena.ExitReason)) {
	case arena.ExitFuel:
		g.resumed = true
		return false
	case arena.ExitFault:
		if g.v.paired {
			g.again = g.fault()
			break
		}
		g.failed = true
		g.run.progress.Fail(g.fault(), g.index())
	}
	return true
}

// index is the threadgroup that runs, of those that the group began with.
func (g *group) index() int64 {
	return g.at + int64(*g.slot(slotPosition)) - g.at%int64(g.run.plan.Groups[0])
}

// fault says what the access was that the code refused.
func (g *group) fault() error {
	c, r := g.v.code, g.run
	id := int(*g.word(arena.FaultInstr))
	var in *kir.Instr
	c.Kernel.Body.Walk(func(i *kir.Instr) {
		if i.ID == id {
			in = i
		}
	})
	if in == nil || len(in.Args) == 0 {
		return fmt.Errorf("[%s] BUG: machine code reported a fault of instruction %d", c.Kernel.Name, id)
	}
	table := unsafe.Slice((*arena.Object)(unsafe.Add(g.base, c.Layout.Objects)), c.Layout.NumObjects)
	return launch.Access{
		Kernel: c.Kernel, Files: r.exe.files, Instr: in, Pointer: *g.word(arena.FaultPointer),
		Bytes: func(object int) uint64 { return table[object].Len },
	}.Fault()
}
