package interp

import (
	"math/bits"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/launch"
)

// state is how far a SIMD-group has come.
type state uint8

const (
	ready state = iota
	atBarrier
	done
	stopped // a fault or an interrupt
)

// spinBudget is how many rounds of loops that may wait for others a SIMD-group does before others get their turn.
const spinBudget = 256

// frame is one SIMD-group in execution: its registers, its masks and where it stands. It can stop at barriers and
// go on.
type frame struct {
	exe    *Executable
	base   unsafe.Pointer // of regs
	mask   uint32         // the active lanes
	live   uint32         // lanes that have not returned
	pc     int32
	state  state
	sg     int // index in the threadgroup
	group  *group
	objs   []object
	masks  []uint32
	tpos   [3][lanes]uint32
	posKey [4]int // sg and threadgroup size that tpos was computed for, sg+1
	regs   []uint64
	thread []uint64 // Thread regions: lane after lane of each region
	fault  *launch.Fault
	shadow *shadow
	inited []bool // under validation: bytes of thread that were written
	unset  *unset // under validation
	now    moments
}

func newFrame(g *group, p *Executable) *frame {
	f := &frame{exe: p, group: g, masks: make([]uint32, p.masks), regs: make([]uint64, p.regBytes/8+1)}
	f.base = unsafe.Pointer(&f.regs[0])
	for _, c := range p.consts {
		d := unsafe.Add(f.base, c.off)
		switch c.size {
		case 0:
			*(*uint32)(d) = -uint32(c.bits)
		case 1:
			fill((*[lanes]uint8)(d), uint8(c.bits))
		case 2:
			fill((*[lanes]uint16)(d), uint16(c.bits))
		case 4:
			fill((*[lanes]uint32)(d), uint32(c.bits))
		case 8:
			fill((*[lanes]uint64)(d), c.bits)
		}
	}
	if p.threadBytes > 0 {
		f.thread = make([]uint64, p.threadBytes/8)
	}
	return f
}

func fill[T any](d *[lanes]T, v T) {
	for i := range d {
		d[i] = v
	}
}

// start readies the frame for SIMD-group sg of its threadgroup.
func (f *frame) start(sg int) {
	g, p := f.group, f.exe
	f.sg, f.pc, f.state, f.fault = sg, 0, ready, nil
	n := min(g.threads-sg*lanes, lanes)
	f.mask = allLanes >> (lanes - n)
	f.live = f.mask
	clear(f.regs[:p.varBytes/8])
	clear(f.thread)
	if key := [4]int{sg + 1, g.size[0], g.size[1], g.size[2]}; key != f.posKey {
		f.posKey = key
		i := sg * lanes
		x, y, z := i%g.size[0], i/g.size[0]%g.size[1], i/(g.size[0]*g.size[1])
		for l := range lanes {
			f.tpos[0][l], f.tpos[1][l], f.tpos[2][l] = uint32(x), uint32(y), uint32(z)
			if x++; x == g.size[0] {
				x = 0
				if y++; y == g.size[1] {
					y = 0
					z++
				}
			}
		}
	}
	f.objs = append(f.objs[:0], g.objs...)
	for i, r := range p.kernel.Regions {
		if off := p.threadOff[i]; off >= 0 && r.Size > 0 {
			o := &f.objs[1+len(p.kernel.Params)+i]
			o.base = unsafe.Add(unsafe.Pointer(&f.thread[0]), off)
			o.stride = uintptr(r.Size+15) &^ 15
		}
	}
	f.shadow = g.run.shadow
	if f.shadow == nil {
		f.unset = nil
	} else {
		f.shadow.start(f)
		f.forget()
		if len(f.inited) != p.threadBytes {
			f.inited = make([]bool, p.threadBytes)
		}
		clear(f.inited)
	}
}

// run executes until the SIMD-group ends, waits, has used up its turn, or fails. There is at least one active lane
// before each instruction.
func (f *frame) run() {
	code := f.exe.code
	progress, index := &f.group.run.progress, f.group.index
	budget, unset := spinBudget, f.unset
	for pc := f.pc; ; {
		in := &code[pc]
		pc++
		switch in.kind {
		case kindPure:
			if unset != nil {
				unset.pure(f, in)
			}
			in.fn(f, in)
		case kindMem:
			if unset == nil {
				in.fn(f, in)
			} else {
				unset.memory(f, in)
			}
			if f.fault != nil {
				f.state = stopped
				return
			}
		case kindIf:
			if unset != nil && unset.decides(f, in) {
				return
			}
			c := *boolAt(f, in.a) & f.mask
			if c == 0 {
				pc = in.to
				continue
			}
			f.masks[in.slot] = f.mask &^ c
			f.mask = c
		case kindIfElse:
			if unset != nil && unset.decides(f, in) {
				return
			}
			c := *boolAt(f, in.a) & f.mask
			f.masks[in.slot], f.masks[in.slot+1] = 0, f.mask&^c
			if c == 0 {
				pc = in.to
				continue
			}
			f.mask = c
		case kindElse:
			f.masks[in.slot] = f.mask
			f.mask = f.masks[in.slot+1]
			if f.mask == 0 {
				pc = in.to
			}
		case kindEnd:
			f.mask |= f.masks[in.slot]
			if f.mask == 0 {
				pc = in.end
			}
		case kindBlock:
			f.masks[in.slot] = 0
		case kindLoop:
			f.masks[in.slot], f.masks[in.slot+1] = 0, 0
		case kindLoopBack:
			f.mask |= f.masks[in.slot+1]
			f.masks[in.slot+1] = 0
			if f.mask == 0 {
				if f.mask = f.masks[in.slot]; f.mask == 0 {
					pc = in.end
				}
				continue
			}
			pc = in.to
			if progress.Over(index) {
				f.state = stopped
				return
			}
			if in.spin {
				if budget--; budget <= 0 {
					f.pc = pc
					return
				}
			}
		case kindBreak:
			f.masks[in.slot] |= f.mask
			f.mask = 0
			pc = in.end
		case kindBreakIf:
			if unset != nil && unset.decides(f, in) {
				return
			}
			c := *boolAt(f, in.a) & f.mask
			f.masks[in.slot] |= c
			if f.mask &^= c; f.mask == 0 {
				pc = in.end
			}
		case kindReturn:
			f.live &^= f.mask
			f.mask = 0
			pc = in.end
		case kindReturnIf:
			if unset != nil && unset.decides(f, in) {
				return
			}
			c := *boolAt(f, in.a) & f.mask
			f.live &^= c
			if f.mask &^= c; f.mask == 0 {
				pc = in.end
			}
		case kindBarrier:
			f.pc, f.state = pc, atBarrier
			if f.shadow != nil && f.mask != f.live {
				f.state = stopped
				f.fail(in, "", 0, 0,
					"barrier is not reached by all threads: %d of the %d threads of SIMD-group %d are elsewhere",
					bits.OnesCount32(f.live&^f.mask), bits.OnesCount32(f.live), f.sg)
			}
			return
		case kindHalt:
			f.state = done
			return
		}
	}
}

// barrier returns the barrier at which the frame waits.
func (f *frame) barrier() *inst { return &f.exe.code[f.pc-1] }

// release lets a frame that waits at a barrier go on.
func (f *frame) release() {
	if f.state == atBarrier {
		f.state = ready
	}
}
