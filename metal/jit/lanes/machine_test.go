package lanes_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// machine executes the lanes of one group in step and holds every claim of Info against what happens. It keeps each
// value twice: in every lane, and as the scalar that Info says is enough.
type machine struct {
	k       *kir.Kernel
	info    *lanes.Info
	group   int
	objects map[int][]byte // by object
	thread  map[int][][]byte
	place   place
	started uint32

	vals    [][32]uint64
	base    []uint64
	vars    [][32]uint64 // the truth
	kept    [][32]uint64 // as machine code would keep them
	keptOne []uint64     // bases of Uniform and Based variables
	set     []uint32     // lanes that have set the variable
	entered []uint32     // by ID of a structured instruction
	breaks  map[*kir.Instr]uint32
	again   map[*kir.Instr]uint32
	steps   int
	err     error
	seen    [5]int // accesses by mode, and values by kind
}

// place is where a group of lanes is in its launch.
type place struct {
	group, first [3]int // position of the threadgroup and of its first thread
	size         [3]int // of the threadgroup
	asked        [3]int
	grid, groups [3]int
	index        int // first thread of the group in the threadgroup
}

// errOutside ends what accesses memory outside of its object.
var errOutside = errors.New("an access outside of an object")

func (m *machine) fail(in *kir.Instr, format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("%s %%%d: %s", in.Op, in.ID, fmt.Sprintf(format, args...))
	}
}

// lanesOf calls f for each lane of a mask.
func lanesOf(mask uint32, f func(l int)) {
	for ; mask != 0; mask &= mask - 1 {
		f(bits.TrailingZeros32(mask))
	}
}

func (m *machine) run(mask uint32) error {
	n := m.k.NumInstrs
	m.vals, m.base, m.entered = make([][32]uint64, n), make([]uint64, n), make([]uint32, n)
	v := len(m.k.Vars)
	m.vars, m.kept, m.keptOne, m.set = make([][32]uint64, v), make([][32]uint64, v), make([]uint64, v), make([]uint32, v)
	m.breaks, m.again = map[*kir.Instr]uint32{}, map[*kir.Instr]uint32{}
	m.thread = map[int][][]byte{}
	for i, r := range m.k.Regions {
		if r.Space == kir.Thread {
			mem := make([][]byte, 32)
			for l := range mem {
				mem[l] = make([]byte, r.Size)
			}
			m.thread[1+len(m.k.Params)+i] = mem
		}
	}
	for i := range m.kept {
		for l := range m.kept[i] {
			if !m.info.VarInit[i] {
				m.kept[i][l] = 0xdeadbeefdeadbeef & m.k.Vars[i].Type.Mask()
			}
		}
	}
	m.started = mask
	m.block(m.k.Body, mask)
	return m.err
}

func (m *machine) block(b *kir.Block, mask uint32) uint32 {
	for _, in := range b.Instrs {
		if m.steps++; m.steps > 1e7 {
			m.fail(in, "too long")
		}
		if mask == 0 || m.err != nil {
			return 0
		}
		mask = m.instr(in, mask)
	}
	return mask
}

func (m *machine) instr(in *kir.Instr, mask uint32) uint32 {
	m.checkAliases(in, mask)
	switch in.Op {
	case kir.If:
		return m.branch(in, mask)
	case kir.BlockOp:
		m.entered[in.ID] = mask
		m.breaks[in] = 0
		end := m.block(in.Body, mask)
		if all := end | m.breaks[in]; !m.info.Divergent[in.ID] && (all != 0 && all != mask || m.breaks[in] != 0 && end != 0) {
			m.fail(in, "lanes %x of %x come to the end, %x by breaks", all, mask, m.breaks[in])
		}
		return end | m.breaks[in]
	case kir.Loop:
		return m.loop(in, mask)
	case kir.Break, kir.Continue, kir.Return:
		all := m.started
		switch in.Op {
		case kir.Break:
			m.breaks[in.Target] |= mask
			all = m.entered[in.Target.ID]
		case kir.Continue:
			m.again[in.Target] |= mask
			all = m.entered[in.Target.ID]
		}
		if !m.info.Divergent[in.ID] && mask != all {
			m.fail(in, "lanes %x of %x jump", mask, all)
		}
		return 0
	case kir.VarSet:
		m.assign(in, mask)
	case kir.Store, kir.Load, kir.AtomicRMW:
		lanesOf(mask, func(l int) { m.access(in, l) })
		m.checkAccess(in, mask)
		m.checkValue(in, mask)
	default:
		m.compute(in, mask)
		m.checkValue(in, mask)
	}
	return mask
}

func (m *machine) branch(in *kir.Instr, mask uint32) uint32 {
	m.entered[in.ID] = mask
	yes := uint32(0)
	lanesOf(mask, func(l int) { yes |= uint32(m.vals[in.Args[0].ID][l]&1) << l })
	if !m.info.Divergent[in.ID] && yes != 0 && yes != mask {
		m.fail(in, "lanes %x of %x go one way", yes, mask)
	}
	end := uint32(0)
	if yes != 0 {
		end = m.block(in.Body, yes)
	}
	switch no := mask &^ yes; {
	case in.Else == nil:
		end |= no
	case no != 0:
		end |= m.block(in.Else, no)
	}
	return end
}

func (m *machine) loop(in *kir.Instr, mask uint32) uint32 {
	m.entered[in.ID] = mask
	m.breaks[in] = 0
	rounds := 0
	for cur := mask; cur != 0 && m.err == nil; rounds++ {
		m.again[in] = 0
		end := m.block(in.Body, cur)
		next := end | m.again[in]
		if !m.info.Divergent[in.ID] && (next != 0 && next != cur || m.again[in] != 0 && end != 0) {
			m.fail(in, "lanes %x of %x stay", next, cur)
		}
		cur = next
	}
	if b := m.info.Bounded[in.ID]; b > 0 && rounds > b {
		m.fail(in, "%d rounds, want at most %d", rounds, b)
	}
	return m.breaks[in]
}

func (m *machine) assign(in *kir.Instr, mask uint32) {
	v, x := in.Imm, in.Args[0]
	lanesOf(mask, func(l int) { m.vars[v][l] = m.vals[x.ID][l] })
	m.set[v] |= mask
	s := m.info.VarPatterns[v]
	if s.Kind != lanes.Varying {
		m.keptOne[v] = m.base[x.ID]
		if m.info.Masked[in.ID] {
			m.fail(in, "masked, but the variable is kept in one register")
		}
		return
	}
	for l := range m.group {
		if !m.info.Masked[in.ID] || mask>>l&1 != 0 {
			m.kept[v][l] = m.vals[x.ID][l] // what stands in lanes that are not active is anything
			if mask>>l&1 == 0 {
				m.kept[v][l] = 0xdeadbeefdeadbeef & m.k.Vars[v].Type.Mask()
			}
		}
	}
}

// readVar is what machine code reads.
func (m *machine) readVar(v uint64, l int) uint64 {
	s := m.info.VarPatterns[v]
	if s.Kind == lanes.Varying {
		return m.kept[v][l]
	}
	return add(m.k.Vars[v].Type, m.keptOne[v], s, l)
}

// add is a base plus a lane's offset.
func add(t kir.Type, base uint64, s lanes.Pattern, l int) uint64 {
	if s.Offsets == nil {
		return base
	}
	if t.IsPtr() {
		return kir.PtrMove(base, int64(s.Offsets[l]))
	}
	return (base + uint64(int64(s.Offsets[l]))) & t.Mask()
}

// checkAliases looks whether the variables behind aliases among the operands still hold their values.
func (m *machine) checkAliases(in *kir.Instr, mask uint32) {
	check := func(x *kir.Instr) {
		for sharesRegister(x) {
			x = x.Args[0]
		}
		if x.Op != kir.VarGet || !m.info.Alias[x.ID] {
			return
		}
		lanesOf(mask, func(l int) {
			if got := m.readVar(x.Imm, l); got != m.vals[x.ID][l] {
				m.fail(in, "lane %d: operand %%%d is an alias, but the variable has changed to %#x from %#x", l, x.ID, got,
					m.vals[x.ID][l])
			}
		})
	}
	if in.Op.Pure() && !m.info.NeedBase[in.ID] && !m.info.NeedVec[in.ID] {
		return
	}
	if a := m.info.Access[in.ID]; a != nil && a.Mode != lanes.AccessDynamic {
		for _, x := range a.Terms {
			check(x)
		}
		for _, x := range a.Bases {
			check(x.Value)
		}
		if a.Index.Value != nil {
			check(a.Index.Value)
		}
		for _, x := range in.Args[1:] {
			check(x)
		}
		return
	}
	for _, x := range in.Args {
		check(x)
	}
}

// sharesRegister reports whether a value may be kept where its operand is.
func sharesRegister(x *kir.Instr) bool {
	same := x.Op == kir.Convert && x.Type.Size() == x.Args[0].Type.Size()
	return same || x.Op == kir.Bitcast || x.Op == kir.BroadcastFirst
}

// compute finds the lanes' values, and the scalar one.
func (m *machine) compute(in *kir.Instr, mask uint32) {
	out := &m.vals[in.ID]
	s := m.info.Patterns[in.ID]
	first := bits.TrailingZeros32(mask)
	switch in.Op {
	case kir.Const:
		lanesOf(mask, func(l int) { out[l] = in.Imm })
	case kir.ParamAddr:
		lanesOf(mask, func(l int) { out[l] = kir.PtrParam(int(in.Imm)) })
	case kir.RegionAddr:
		lanesOf(mask, func(l int) { out[l] = m.k.PtrRegion(int(in.Imm)) })
	case kir.Builtin:
		for l := range m.group {
			out[l] = m.builtin(in, l)
		}
		if s.Offsets != nil { // lane 0 may not be active, but it is there
			m.base[in.ID] = (out[0] - uint64(int64(s.Offsets[0]))) & in.Type.Mask()
			return
		}
	case kir.VarGet:
		lanesOf(mask, func(l int) {
			out[l] = m.vars[in.Imm][l]
			if m.set[in.Imm]>>l&1 == 0 && !m.info.VarInit[in.Imm] {
				m.fail(in, "lane %d reads the variable before it is set", l)
			}
			if got := m.readVar(in.Imm, l); got != out[l] {
				m.fail(in, "lane %d: kept %#x, want %#x", l, got, out[l])
			}
		})
		m.base[in.ID] = m.keptOne[in.Imm]
		if m.info.VarPatterns[in.Imm].Kind == lanes.Varying {
			m.base[in.ID] = out[first]
		}
		return
	case kir.Reduce, kir.ScanInclusive, kir.ScanExclusive, kir.Ballot, kir.Shuffle, kir.BroadcastFirst:
		m.crossing(in, mask, out)
	case kir.Barrier, kir.SimdBarrier, kir.Fence:
		return
	default:
		lanesOf(mask, func(l int) { out[l] = m.eval(in, func(x *kir.Instr) uint64 { return m.vals[x.ID][l] }) })
		m.base[in.ID] = m.eval(in, func(x *kir.Instr) uint64 { return m.base[x.ID] })
		bias := uint64(int64(m.info.Bias[in.ID]))
		if in.Type.IsPtr() {
			m.base[in.ID] = kir.PtrMove(m.base[in.ID], int64(bias))
		} else if in.Type.IsInt() {
			m.base[in.ID] = (m.base[in.ID] + bias) & in.Type.Mask()
		}
		return
	}
	m.base[in.ID] = out[first]
}

func (m *machine) eval(in *kir.Instr, value func(*kir.Instr) uint64) uint64 {
	var args []uint64
	for _, x := range in.Args {
		args = append(args, value(x))
	}
	if in.Op == kir.PtrAdd {
		args[1] += in.Imm
	}
	v, ok := in.Eval(args...)
	if !ok {
		m.fail(in, "no value")
	}
	return v
}

func (m *machine) crossing(in *kir.Instr, mask uint32, out *[32]uint64) {
	x := &m.vals[in.Args[0].ID]
	switch in.Op {
	case kir.Reduce:
		v := *x
		kir.ReduceLanes(in.Mode, in.Type, int(in.Imm), mask, &v)
		*out = v
	case kir.ScanInclusive, kir.ScanExclusive:
		v := *x
		kir.ScanLanes(in.Op, in.Mode, in.Type, int(in.Imm), mask, &v)
		*out = v
	case kir.Ballot:
		all := uint64(0)
		lanesOf(mask, func(l int) { all |= x[l] & 1 << l })
		lanesOf(mask, func(l int) { out[l] = all })
	case kir.Shuffle:
		lanesOf(mask, func(l int) {
			from := m.vals[in.Args[1].ID][l] % 32
			out[l] = 0
			if mask>>from&1 != 0 {
				out[l] = x[from]
			}
		})
	case kir.BroadcastFirst:
		first := bits.TrailingZeros32(mask)
		lanesOf(mask, func(l int) { out[l] = x[first] })
	}
}

func (m *machine) builtin(in *kir.Instr, l int) uint64 {
	p, c := &m.place, in.Imm
	i := p.index + l
	at := [3]int{i % p.size[0], i / p.size[0] % p.size[1], i / p.size[0] / p.size[1]}
	switch in.Mode {
	case kir.ThreadPositionInGrid:
		return uint64(p.first[c] + at[c])
	case kir.ThreadPositionInThreadgroup:
		return uint64(at[c])
	case kir.ThreadgroupPositionInGrid:
		return uint64(p.group[c])
	case kir.ThreadsPerThreadgroup:
		return uint64(p.size[c])
	case kir.DispatchThreadsPerThreadgroup:
		return uint64(p.asked[c])
	case kir.ThreadsPerGrid, kir.GridSize:
		return uint64(p.grid[c])
	case kir.ThreadgroupsPerGrid:
		return uint64(p.groups[c])
	case kir.ThreadIndexInThreadgroup:
		return uint64(i)
	case kir.ThreadIndexInSimdgroup:
		return uint64(i % 32)
	case kir.SimdgroupIndexInThreadgroup:
		return uint64(i / 32)
	case kir.ThreadIndexInQuadgroup:
		return uint64(i % 4)
	case kir.QuadgroupIndexInThreadgroup:
		return uint64(i / 4)
	case kir.ThreadsPerSimdgroup:
		return 32
	case kir.SimdgroupsPerThreadgroup:
		return uint64((p.size[0]*p.size[1]*p.size[2] + 31) / 32)
	}
	return 0
}

// access does a load, a store or an atomic addition of one lane.
func (m *machine) access(in *kir.Instr, l int) {
	p := m.vals[in.Args[0].ID][l]
	mem := m.objects[kir.PtrObject(p)]
	if t := m.thread[kir.PtrObject(p)]; t != nil {
		mem = t[l]
	}
	t := in.Type
	if in.Op == kir.Store {
		t = in.Args[1].Type
	}
	off, n := kir.PtrOffset(p), int64(t.Size())
	if off < 0 || off+n > int64(len(mem)) {
		if m.err == nil {
			m.err = errOutside
		}
		return
	}
	var buf [8]byte
	copy(buf[:n], mem[off:off+n])
	old := binary.LittleEndian.Uint64(buf[:])
	if t == kir.Bool && old != 0 {
		old = 1
	}
	m.vals[in.ID][l] = old
	if in.Op == kir.Load {
		return
	}
	v := m.vals[in.Args[1].ID][l]
	if in.Op == kir.AtomicRMW {
		v, _ = kir.Eval(in.Mode.Op(), t, t, old, v)
	}
	binary.LittleEndian.PutUint64(buf[:], v)
	copy(mem[off:off+n], buf[:n])
}
