package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Strided and repeated elements: whole registers ("windows") are loaded and permuted, where a gather would cost
// several times as much. Everything is done on words of 4 bytes; smaller elements are shifted out of words.

// wordLoad loads words from [m, m+end), which is in range.
type wordLoad struct {
	e       *emitter
	v       vector
	m       code.Mem
	end     int32
	windows map[int32]code.R // by number: window k is at k * e.w
	columns map[column]code.R
	tables  map[code.ConstID]code.R
}

// column names the words that the lanes of a part load with a stride.
type column struct {
	part int
	off  int32
}

// newWords returns a load of words from [m, m+end), which has been checked.
func newWords(v vector, m code.Mem, end int32) *wordLoad {
	return &wordLoad{e: v.e, v: v, m: m, end: end, windows: map[int32]code.R{}, columns: map[column]code.R{},
		tables: map[code.ConstID]code.R{}}
}

// fewBytes puts fewer bytes than a word together, in every lane.
func (g *wordLoad) fewBytes() code.R {
	g.e.gopMem(code.MovZXB, 4, code.RAX, g.m)
	for b := int32(1); b < g.end; b++ {
		g.e.gopMem(code.MovZXB, 4, code.RCX, plus(g.m, b))
		g.e.gopImm(code.Shl, 4, code.RCX, int64(8*b))
		g.e.gop(code.Or, 4, code.RAX, code.RCX)
	}
	return g.e.scalarToSplat(code.RAX, kir.U32)
}

// maxWindows is the most windows that one part's words are picked out of.
const maxWindows = 8

// window loads window k: of the last one, what is in range.
func (g *wordLoad) window(k int32) code.R {
	if r, ok := g.windows[k]; ok {
		return r
	}
	w := int32(g.e.w)
	r := g.partial(plus(g.m, k*w), w, g.end-k*w)
	g.windows[k] = r
	return r
}

// partial loads the first have bytes, a multiple of 4 with AVX2, of a vector of w bytes, or all of them; the rest
// is zero.
func (g *wordLoad) partial(m code.Mem, w, have int32) code.R {
	r := g.e.reg(code.Vec)
	switch {
	case have >= w || have == 16 || have == 32:
		g.e.emit(code.Inst{Op: code.VMovUPS, W: uint8(min(have, w)), Dst: r, Mem: m})
	case have == 8:
		g.e.emit(code.Inst{Op: code.VMovQ, W: 16, Dst: r, Mem: m})
	case have == 4:
		g.e.emit(code.Inst{Op: code.VMovD, W: 16, Dst: r, Mem: m})
	case g.e.avx512():
		t, k := g.e.reg(code.GPR), g.e.reg(code.Mask)
		g.e.gopImm(code.Mov, 8, t, int64(uint64(1)<<have-1))
		g.e.emit(code.Inst{Op: code.KMov, W: 8, Dst: k, A: t})
		g.e.emit(code.Inst{Op: code.VMovDQU8, W: uint8(w), Dst: r, Mem: m, KM: k, Zero: true})
	default:
		on := make([]int32, w/4)
		for l := range on {
			if int32(4*l+4) <= have {
				on[l] = -1
			}
		}
		mask := g.e.reg(code.Vec)
		g.e.emit(code.Inst{Op: code.VMovUPS, W: uint8(w), Dst: mask, Mem: g.e.table(on, 4)})
		g.e.emit(code.Inst{Op: code.VPMaskMovD, W: uint8(w), Dst: r, A: mask, Mem: m})
	}
	return r
}

// pick loads the word at o[l] for each lane of a part.
func (g *wordLoad) pick(part int, o []int32) code.R {
	if strideOf(o) > 0 {
		if r, ok := g.columns[column{part, o[0]}]; ok {
			return r
		}
	}
	used, ok := g.windowsOf(o)
	if !ok {
		idx := g.v.op2Mem(code.VMovUPS, 0, g.e.table(o, 4))
		return elements{g.v}.gatherWords(g.e.plainBase(g.m), idx, 0)
	}
	per := int32(g.e.per)
	var r code.R
	for n, k := range used {
		idx, mine := make([]int32, len(o)), 0
		for l, x := range o {
			switch {
			case x/4/per == k:
				idx[l] = x / 4 % per
				mine |= 1 << l
				if n > 0 {
					idx[l] += per
				}
			case n > 0:
				idx[l] = int32(l)
			}
		}
		w := g.window(k)
		switch {
		case n == 0:
			r = g.permute(g.e.table(idx, 4), w)
		case g.e.avx512():
			t := g.e.copyReg(r)
			i := g.v.op2Mem(code.VMovUPS, 0, g.e.table(idx, 4))
			g.e.emit(code.Inst{Op: code.VPermT2PS, W: g.e.w, Dst: t, A: i, B: w})
			r = t
		default:
			for l := range idx {
				idx[l] %= per
			}
			p, d := g.permute(g.e.table(idx, 4), w), g.e.reg(code.Vec)
			g.e.emit(code.Inst{Op: code.VBlendPS, W: g.e.w, Dst: d, A: r, B: p, Imm: int64(mine)})
			r = d
		}
	}
	return r
}

// permute picks words out of one register.
func (g *wordLoad) permute(idx code.Mem, r code.R) code.R {
	return g.v.op2(code.VPermPS, g.v.op2Mem(code.VMovUPS, 0, idx), r)
}

// windowsOf returns the windows that hold the words at o, if they are few and can be loaded.
func (g *wordLoad) windowsOf(o []int32) (used []int32, ok bool) {
	per := int32(g.e.per)
	for _, x := range o {
		if x < 0 || x%4 != 0 {
			return nil, false
		}
		k, seen := x/4/per, false
		for _, u := range used {
			seen = seen || u == k
		}
		if seen {
			continue
		}
		if !g.e.avx512() && g.end < (k+1)*4*per && g.end%4 != 0 {
			return nil, false
		}
		used = append(used, k)
	}
	return used, len(used) <= maxWindows
}

// strideOf returns the stride of consecutive lanes in bytes if their words can be transposed, else 0.
func strideOf(o []int32) int32 {
	d := o[1] - o[0]
	if d != 8 && d != 16 && d < 32 || d%4 != 0 || d > maxPitch {
		return 0
	}
	for l, x := range o {
		if x != o[0]+int32(l)*d {
			return 0
		}
	}
	return d
}

// maxPitch bounds strides: further apart, every lane's words are on a page of their own.
const maxPitch = 1024

// columnsIn is how many neighbouring words of each lane are transposed together, if lanes are pitch bytes apart.
func columnsIn(pitch int32) int { return min(int(pitch/4), 8) }

// transpose loads the wanted columns of words with a stride: column c of a part has the words at first + 4*c of its
// first lane and on, pitch bytes apart. Where the columns fill the stride all their words lie one after the other.
func (g *wordLoad) transpose(part int, first, pitch int32, wanted []bool) {
	n := len(wanted)
	if !g.e.avx512() {
		g.transposeAVX2(part, first, pitch, wanted)
		return
	}
	// Vectors hold words of L lanes by C columns, lane by lane. A step makes of two neighbours, with other lanes,
	// two with twice the lanes and half the columns.
	type block struct{ lane, col int }
	now := map[block]code.R{}
	for k := range n {
		if int(pitch) == 4*n {
			now[block{k, 0}] = g.window(first/int32(g.e.w) + int32(k))
		} else {
			now[block{k, 0}] = g.twoRows(first+int32(2*k)*pitch, pitch)
		}
	}
	for c, blocks := n, n; c > 1; c, blocks = c/2, blocks/2 {
		next := map[block]code.R{}
		idx := [2]code.Mem{}
		for half := range 2 {
			t := make([]int32, 16)
			for e := range t {
				l, col := e/(c/2), e%(c/2)
				per := 16 / c // lanes in a vector so far
				t[e] = int32(l/per*16 + l%per*c + half*c/2 + col)
			}
			idx[half] = g.e.table(t, 4)
		}
		for b := 0; b < blocks; b += 2 {
			for col := range n / c {
				for half := range 2 {
					to := block{b / 2, 2*col + half}
					if !anyWanted(wanted, to.col*c/2, c/2) {
						continue
					}
					// The first takes its indices from memory: no register for them, none to copy.
					x, y := now[block{b, col}], now[block{b + 1, col}]
					if half == 0 {
						next[to] = g.v.op2Mem(code.VMovUPS, 0, idx[0])
						g.e.emit(code.Inst{Op: code.VPermI2PS, W: g.e.w, Dst: next[to], A: x, B: y})
						continue
					}
					next[to] = g.e.copyReg(x)
					g.e.emit(code.Inst{Op: code.VPermT2PS, W: g.e.w, Dst: next[to], A: g.tableIn(idx[1]), B: y})
				}
			}
		}
		now = next
	}
	for c := range n {
		if wanted[c] {
			g.columns[column{part, first + int32(4*c)}] = now[block{0, c}]
		}
	}
}

// twoRows loads 8 words of each of two lanes, from those at first on (AVX-512).
func (g *wordLoad) twoRows(first, pitch int32) code.R {
	const bytes = 32
	lo, at := g.partial(plus(g.m, first), bytes, g.end-first), first+pitch
	d := g.e.reg(code.Vec)
	i := code.Inst{Op: code.VInsertF32X8, W: g.e.w, Dst: d, A: lo, Mem: plus(g.m, at), Imm: 1}
	if g.end-at < bytes {
		i.Mem, i.B = code.Mem{}, g.partial(plus(g.m, at), bytes, g.end-at)
	}
	g.e.emit(i)
	return d
}

// tableIn returns a table of the pool in a register, the same one for all parts of a group of Loads.
func (g *wordLoad) tableIn(m code.Mem) code.R {
	r, ok := g.tables[m.Const]
	if !ok {
		r = g.v.op2Mem(code.VMovUPS, 0, m)
		g.tables[m.Const] = r
	}
	return r
}

// anyWanted reports whether one of n columns is wanted.
func anyWanted(wanted []bool, from, n int) bool {
	for _, w := range wanted[from : from+n] {
		if w {
			return true
		}
	}
	return false
}

// transposeAVX2 is transpose for AVX2: 16 bytes of lanes l and l+4 in each register, transposed in the halves.
func (g *wordLoad) transposeAVX2(part int, first, pitch int32, wanted []bool) {
	n := len(wanted)
	row := func(lane int, off int32) code.R {
		load := func(l int) code.R {
			at := first + int32(l)*pitch + off
			return g.partial(plus(g.m, at), 16, g.end-at)
		}
		d := g.e.reg(code.Vec)
		g.e.emit(code.Inst{Op: code.VInsertF128, W: 32, Dst: d, A: load(lane), B: load(lane + 4), Imm: 1})
		return d
	}
	put := func(c int, r code.R) { g.columns[column{part, first + int32(4*c)}] = r }
	if n == 2 {
		a, b := row(0, 0), row(2, 0)
		for c, imm := range []int64{0x88, 0xdd} {
			d := g.e.reg(code.Vec)
			g.e.emit(code.Inst{Op: code.VShufPS, W: 32, Dst: d, A: a, B: b, Imm: imm})
			put(c, d)
		}
		return
	}
	for c := 0; c < n; c += 4 {
		if !anyWanted(wanted, c, 4) {
			continue
		}
		var r [4]code.R
		for l := range r {
			r[l] = row(l, int32(4*c))
		}
		for h, op := range []code.Opcode{code.VUnpckLPS, code.VUnpckHPS} {
			if !anyWanted(wanted, c+2*h, 2) {
				continue
			}
			a, b := g.v.op2(op, r[0], r[1]), g.v.op2(op, r[2], r[3])
			put(c+2*h, g.v.op2(code.VUnpckLPD, a, b))
			put(c+2*h+1, g.v.op2(code.VUnpckHPD, a, b))
		}
	}
}
