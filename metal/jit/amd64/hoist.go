package amd64

import (
	"cmp"
	"slices"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// A constant is a memory operand that each use loads again. A processor that multiplies and adds two vectors at a time
// loads no more than two, so that arithmetic waits for its constants. What a loop uses is therefore loaded before it. A
// constant that the allocator has no register for becomes a memory operand again.

// mostHoisted is how many constants a loop keeps in registers at most.
const mostHoisted = 24

// spread is a number of the pool in all lanes of a register.
type spread struct {
	id   code.ConstID
	disp int32
	size int // its bytes
}

// hoister moves constants out of the loops of one list.
type hoister struct {
	f     *code.Func
	insts []code.Inst
	out   []code.Inst
	done  int // instructions that are in out
}

// hoist rewrites a list for AVX-512. With AVX2 registers are too few for constants to stay in.
func hoist(f *code.Func) {
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
func outerLoops(insts []code.Inst) [][2]int {
	type loop struct {
		from  int
		saves bool
	}
	var open []loop
	var all [][2]int
	cold := 0
	for n := range insts {
		switch insts[n].Op {
		case code.ColdBegin:
			cold++
		case code.ColdEnd:
			cold--
		case code.SaveLive:
			for k := range open {
				open[k].saves = true
			}
		case code.LoopBegin:
			open = append(open, loop{from: n})
		case code.LoopEnd:
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
	h.each(from, to, func(_ *code.Inst, c spread, weight int) { uses[c] += weight })
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
	regs := map[spread]code.R{}
	for _, c := range best[:min(len(best), mostHoisted)] {
		op := code.VPBroadcastD
		if c.size == 8 {
			op = code.VPBroadcastQ
		}
		r := h.f.NewReg(code.Vec)
		h.out = append(h.out, code.Inst{Op: op, W: 64, Dst: r, Mem: code.Mem{Const: c.id, Disp: c.disp}})
		regs[c] = r
	}
	h.each(from, to, func(i *code.Inst, c spread, _ int) {
		switch r := regs[c]; {
		case r == 0:
		case i.Op == code.VPBroadcastD || i.Op == code.VPBroadcastQ:
			*i = code.Inst{Op: code.VMovAPS, W: 64, Dst: i.Dst, A: r}
		case i.A != 0:
			i.B, i.Mem = r, code.Mem{}
		default:
			i.A, i.Mem = r, code.Mem{}
		}
	})
}

// each calls f with the instructions of a loop that read a constant for all lanes, but those of cold code, and how much
// such a use counts.
func (h *hoister) each(from, to int, f func(i *code.Inst, c spread, weight int)) {
	depth, cold := 0, 0
	for n := from; n <= to; n++ {
		i := &h.insts[n]
		switch i.Op {
		case code.LoopBegin:
			depth++
		case code.LoopEnd:
			depth--
		case code.ColdBegin:
			cold++
		case code.ColdEnd:
			cold--
		}
		if cold > 0 || i.W != 64 || i.Mem.Const == 0 {
			continue
		}
		c := spread{id: i.Mem.Const, disp: i.Mem.Disp}
		switch {
		case i.Mem.Bcast:
			c.size = broadcastSize(i)
		case i.Op == code.VPBroadcastD && i.KM == 0:
			c.size = 4
		case i.Op == code.VPBroadcastQ && i.KM == 0:
			c.size = 8
		default:
			continue
		}
		f(i, c, 1<<(3*min(depth-1, 4)))
	}
}
