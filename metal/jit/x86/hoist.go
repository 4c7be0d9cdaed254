package x86

import (
	"cmp"
	"slices"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
)

// A constant is a memory operand that each use loads again. A processor that multiplies and adds two vectors at a time
// loads no more than two, so that arithmetic waits for its constants. What a loop uses is therefore loaded before it. A
// constant that the allocator has no register for becomes a memory operand again.

// mostHoisted is how many constants a loop keeps in registers at most.
const mostHoisted = 24

// spread is a number of the pool in all lanes of a register.
type spread struct {
	id   amd64.ConstID
	disp int32
	size int // its bytes
}

// hoister moves constants out of the loops of one list.
type hoister struct {
	f     *amd64.Func
	insts []amd64.Inst
	out   []amd64.Inst
	done  int // instructions that are in out
}

// hoist rewrites a list for AVX-512. With AVX2 registers are too few for constants to stay in.
func hoist(f *amd64.Func) {
	h := &hoister{f: f, insts: f.Insts()}
	for _, l := range outerLoops(h.insts) {
		h.loop(l[0], l[1])
	}
	if h.out != nil {
		f.SetInsts(append(h.out, h.insts[h.done:]...))
	}
}

// outerLoops returns the beginnings and ends of loops that are not in cold code, nor in another such loop. Loops that
// code leaves by SaveLive do not count: they would store and load what they do not change.
func outerLoops(insts []amd64.Inst) [][2]int {
	type loop struct {
		from  int
		saves bool
	}
	var open []loop
	var all [][2]int
	cold := 0
	for n := range insts {
		switch insts[n].Op {
		case amd64.ColdBegin:
			cold++
		case amd64.ColdEnd:
			cold--
		case amd64.SaveLive:
			for k := range open {
				open[k].saves = true
			}
		case amd64.LoopBegin:
			open = append(open, loop{from: n})
		case amd64.LoopEnd:
			l := open[len(open)-1]
			open = open[:len(open)-1]
			if l.saves || cold > 0 {
				continue
			}
			for len(all) > 0 && all[len(all)-1][0] > l.from {
				all = all[:len(all)-1]
			}
			all = append(all, [2]int{l.from, n})
		}
	}
	return all
}

// loop moves the constants that a loop uses most before it.
func (h *hoister) loop(from, to int) {
	uses := map[spread]int{}
	h.each(from, to, func(_ *amd64.Inst, c spread, weight int) { uses[c] += weight })
	if len(uses) == 0 {
		return
	}
	best := make([]spread, 0, len(uses))
	for c := range uses {
		best = append(best, c)
	}
	slices.SortFunc(best, func(a, b spread) int {
		return cmp.Or(uses[b]-uses[a], int(a.id-b.id), int(a.disp-b.disp), a.size-b.size)
	})
	h.out = append(h.out, h.insts[h.done:from]...)
	h.done = from
	regs := map[spread]amd64.R{}
	for _, c := range best[:min(len(best), mostHoisted)] {
		op := by(c.size == 8, amd64.VPBroadcastD, amd64.VPBroadcastQ)
		r := h.f.NewReg(amd64.Vec)
		h.out = append(h.out, amd64.Inst{Op: op, W: 64, Dst: r, Mem: amd64.Mem{Const: c.id, Disp: c.disp}})
		regs[c] = r
	}
	h.each(from, to, func(i *amd64.Inst, c spread, _ int) {
		switch r := regs[c]; {
		case r == 0:
		case i.Op == amd64.VPBroadcastD || i.Op == amd64.VPBroadcastQ:
			*i = amd64.Inst{Op: amd64.VMovAPS, W: 64, Dst: i.Dst, A: r}
		case i.A != 0:
			i.B, i.Mem = r, amd64.Mem{}
		default:
			i.A, i.Mem = r, amd64.Mem{}
		}
	})
}

// each calls f with the instructions of a loop that read a constant for all lanes, but those of cold code, and how much
// such a use counts.
func (h *hoister) each(from, to int, f func(i *amd64.Inst, c spread, weight int)) {
	depth, cold := 0, 0
	for n := from; n <= to; n++ {
		i := &h.insts[n]
		switch i.Op {
		case amd64.LoopBegin:
			depth++
		case amd64.LoopEnd:
			depth--
		case amd64.ColdBegin:
			cold++
		case amd64.ColdEnd:
			cold--
		}
		if cold > 0 || i.W != 64 || i.Mem.Const == 0 {
			continue
		}
		c := spread{id: i.Mem.Const, disp: i.Mem.Disp}
		switch {
		case i.Mem.Bcast:
			c.size = i.BroadcastSize()
		case i.Op == amd64.VPBroadcastD && i.KM == 0:
			c.size = 4
		case i.Op == amd64.VPBroadcastQ && i.KM == 0:
			c.size = 8
		default:
			continue
		}
		f(i, c, 1<<(3*min(depth-1, 4)))
	}
}
