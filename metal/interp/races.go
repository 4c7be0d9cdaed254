package interp

import (
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// races knows who touched which byte last. A race is two accesses to one byte by two threads, at least one of them a
// write and at least one not atomic, that nothing orders:
//   - threads of one threadgroup are ordered by a barrier for that memory, those of one SIMD-group also by a
//     simdgroup_barrier for it. That lanes go in step here is no order, since Metal does not promise it; nor do the
//     simd_ functions order memory;
//   - threads of two threadgroups, and others too, may be ordered by atomic operations: the first one's SIMD-group
//     (or threadgroup) does one that writes, and later the second one's does one that reads. Whether it read what the
//     first wrote is not followed: what may be in order is not reported.
//
// Writes of the bytes that are there already are not reported, beside atomic writes excepted: they do no harm, and
// kernels rely on it.
type races struct {
	atomic bool                            // the kernel has atomic operations or fences
	clock  uint32                          // atomic operations and fences so far
	pages  map[uint64]*[pageSize]lastUsers // device memory: by object and page
	key    uint64                          // of the page that was used last
	page   *[pageSize]lastUsers
	device []moment // 0 is nobody's
	sgs    []simdgroup
	groups []meetings
}

const pageSize = 4096

// The two memories that barriers order, as indices.
const (
	deviceMemory = iota
	threadgroupMemory
	memories
)

var memoryFlags = [memories]kir.Mode{kir.MemDevice, kir.MemThreadgroup}

// moment is a SIMD-group between two barriers that order one memory.
type moment struct {
	sg             uint32 // index in races.sgs
	barriers, simd uint32 // so far
}

// moments is what a frame knows of itself.
type moments struct {
	sg   uint32
	simd [memories]uint32
	at   [memories]uint32 // number of the present moment, 0 if it has none yet
}

// simdgroup is one that began.
type simdgroup struct {
	group uint32 // index in races.groups
	meetings
}

// meetings says when somebody last did an atomic operation that wrote, and one that read; 0 is never.
type meetings struct{ wrote, read uint32 }

// groupRaces is what is known of a threadgroup.
type groupRaces struct {
	index    uint32 // in races.groups
	barriers [memories]uint32
	moments  []moment    // of threadgroup memory; 0 is nobody's
	cells    []lastUsers // by byte of threadgroup memory
}

// user is a thread at a moment; the zero user is nobody. From the high bits down: the number of the moment (32 bits),
// the clock (24), whether an atomic operation wrote (1), the lane or a word for several threads (7).
type user uint64

const (
	severalLanes      = 32 + iota // of one SIMD-group
	severalSIMDGroups             // of one threadgroup
	severalThreadgroups
)

const (
	whoBits  = 7
	wrote    = user(1 << whoBits)
	lastTick = 1<<24 - 1 // when the clock comes to it, nothing is reported any more
)

func newUser(moment, clock uint32, lane int) user {
	return user(moment)<<32 | user(clock)<<(whoBits+1) | user(lane)
}

func (u user) moment() uint32         { return uint32(u >> 32) }
func (u user) clock() uint32          { return uint32(u) >> (whoBits + 1) }
func (u user) who() uint8             { return uint8(u) & (1<<whoBits - 1) }
func (u user) several(who uint8) user { return u&^(1<<whoBits-1) | user(who) }

// lastUsers is who touched a byte last, by an ordinary write, an ordinary read and an atomic operation.
type lastUsers struct{ writer, reader, atomic user }

// touch is one lane's access.
type touch struct {
	f      *frame
	in     *inst
	ob     int
	lane   int
	off    uint64
	acc    launch.AccessKind
	now, v []byte // the bytes that are there and, for a write, those that will be
}

func newRaces(p *Executable) races {
	return races{atomic: p.racy, pages: map[uint64]*[pageSize]lastUsers{}, device: make([]moment, 1)}
}

// begin readies the knowledge of a threadgroup that begins.
func (r *races) begin(g *group) {
	g.races = groupRaces{index: uint32(len(r.groups)), moments: g.races.moments[:0],
		cells: make([]lastUsers, g.run.tgBytes)}
	g.races.moments = append(g.races.moments, moment{})
	r.groups = append(r.groups, meetings{})
}

// start readies the knowledge of a SIMD-group that starts.
func (r *races) start(f *frame) {
	f.now = moments{sg: uint32(len(r.sgs))}
	r.sgs = append(r.sgs, simdgroup{group: f.group.races.index})
}

// barrier notes that all threads of a threadgroup reached one.
func (r *races) barrier(g *group, flags kir.Mode) {
	for i, flag := range memoryFlags {
		if flags&flag == 0 {
			continue
		}
		g.races.barriers[i]++
		for _, f := range g.frames {
			f.now.at[i] = 0
		}
	}
}

// order notes a simdgroup_barrier or a fence.
func order(f *frame, in *inst) {
	switch {
	case f.shadow == nil:
	case in.op == kir.Fence:
		f.shadow.met(f, in)
	default:
		for i, flag := range memoryFlags {
			if in.mode&flag != 0 {
				f.now.simd[i]++
				f.now.at[i] = 0
			}
		}
	}
}

// met notes an atomic operation or a fence.
func (r *races) met(f *frame, in *inst) {
	r.clock = min(r.clock+1, lastTick)
	sg := &r.sgs[f.now.sg]
	g := &r.groups[sg.group]
	if in.op != kir.AtomicLoad {
		sg.wrote, g.wrote = r.clock, r.clock
	}
	if in.op != kir.AtomicStore {
		sg.read, g.read = r.clock, r.clock
	}
}

// me is the user that a lane of the frame is now.
func (r *races) me(f *frame, memory, lane int) user {
	if f.now.at[memory] == 0 {
		t := r.moments(f, memory)
		f.now.at[memory] = uint32(len(*t))
		*t = append(*t, moment{f.now.sg, f.group.races.barriers[memory], f.now.simd[memory]})
	}
	return newUser(f.now.at[memory], r.clock, lane)
}

func (r *races) moments(f *frame, memory int) *[]moment {
	if memory == deviceMemory {
		return &r.device
	}
	return &f.group.races.moments
}

// apart is how far the threads of two users are from each other: severalLanes if they are in one SIMD-group, and so on;
// 0 if they are one thread or a barrier orders them, or an atomic operation may. a came first; b is one thread.
func (r *races) apart(t []moment, a, b user) uint8 {
	if a == 0 || (a^b)&^wrote == 0 {
		return 0
	}
	m, n := t[a.moment()], t[b.moment()]
	s, u := &r.sgs[m.sg], &r.sgs[n.sg]
	far, who := uint8(severalLanes), a.who()
	switch {
	case s.group != u.group || who == severalThreadgroups:
		if r.inOrder(a, r.groups[s.group], r.groups[u.group]) {
			return 0
		}
		return severalThreadgroups
	case m.barriers != n.barriers:
		return 0
	case m.sg != n.sg || who == severalSIMDGroups:
		far = severalSIMDGroups
	case m.simd != n.simd || who == b.who():
		return 0
	}
	if r.inOrder(a, s.meetings, u.meetings) {
		return 0
	}
	return far
}

// inOrder says that atomic operations may have ordered a user before another: the first wrote after its access, and the
// second read after that.
func (r *races) inOrder(a user, first, second meetings) bool {
	return r.atomic && (r.clock == lastTick || first.wrote > a.clock() && second.read > a.clock()+1)
}

// ordered notes an access, or fails the frame if it is a race.
func (r *races) ordered(a *touch) bool {
	f, memory := a.f, deviceMemory
	if f.objs[a.ob].space == kir.Threadgroup {
		memory = threadgroupMemory
	}
	me := r.me(f, memory, a.lane)
	t := *r.moments(f, memory)
	for j := range a.now {
		c := r.cell(f, a.ob, memory, a.off+uint64(j))
		harmless := a.acc == launch.Write && a.now[j] == a.v[j]
		writes := a.acc.Writes()
		far, did := uint8(0), ""
		if !a.acc.IsAtomic() && (c.atomic&wrote != 0 || writes && !harmless) {
			far, did = r.apart(t, c.atomic, me), "touched by an atomic operation"
		}
		if far == 0 && !harmless {
			far, did = r.apart(t, c.writer, me), "wrote"
		}
		if far == 0 && !harmless && writes {
			far, did = r.apart(t, c.reader, me), "read"
		}
		if far != 0 {
			r.report(a, far, did)
			return false
		}
		r.note(t, a, c, me, writes)
	}
	return true
}

// note makes the access the last one to its byte.
func (r *races) note(t []moment, a *touch, c *lastUsers, me user, writes bool) {
	switch a.acc {
	case launch.Write:
		c.writer = me
	case launch.Read:
		// Of several readers only the last one's moment is known, which does not tell what atomics order.
		if far := r.apart(t, c.reader, me); far != 0 && !r.atomic {
			me = me.several(max(far, c.reader.who()))
		}
		c.reader = me
	default:
		if writes || c.atomic&wrote != 0 && r.apart(t, c.atomic, me) != 0 {
			me |= wrote
		}
		c.atomic = me
	}
}

func (r *races) report(a *touch, far uint8, did string) {
	f, o := a.f, &a.f.objs[a.ob]
	other := "another thread of the SIMD-group"
	switch far {
	case severalSIMDGroups:
		other = "another SIMD-group"
	case severalThreadgroups:
		other = "another threadgroup"
	}
	name, elem := f.describe(a.ob)
	index := int64(a.off) / elem
	f.fail(a.in, name, index, int64(o.size)/elem,
		"race on %s memory: %s of %s[%d], which %s %s with no barrier between them",
		o.space, a.acc, name, index, other, did)
	f.concerns(a.ob)
}

// cell is what is known of a byte.
func (r *races) cell(f *frame, ob, memory int, off uint64) *lastUsers {
	if memory == threadgroupMemory {
		return &f.group.races.cells[off+uint64(uintptr(f.objs[ob].base)-uintptr(unsafe.Pointer(&f.group.mem[0])))]
	}
	key := uint64(ob)<<kir.PtrObjectShift | off/pageSize
	if r.page == nil || r.key != key {
		p := r.pages[key]
		if p == nil {
			p = new([pageSize]lastUsers)
			r.pages[key] = p
		}
		r.key, r.page = key, p
	}
	return &r.page[off%pageSize]
}
