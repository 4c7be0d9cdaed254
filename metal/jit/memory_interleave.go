package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Stores that together fill a stride: the opposite of transpose.

// groupStore does the Stores of a group.
func (s *selector) groupStore(g []*kir.Instr) {
	xs, all, need := s.together(g)
	first := xs[0]
	for _, x := range xs {
		x.v = s.stored(x)
	}
	n := int(s.stride(first.a.Offsets[:s.group])) / 4
	columns := make([][]amd64.R, s.parts)
	for p := range columns {
		columns[p] = s.columnWords(xs, all.a.Disp, n, p)
	}
	some := s.label()
	s.checkWraps(all.a, first.slow)
	s.check(all.a.Object, all.l, need, first.cold)
	m := s.place(all, 0)
	if !s.allActive {
		s.unlessAll(some)
	}
	for p, c := range columns {
		s.interleave(plus(m, int32(p*s.per*4*n)), c, 0)
	}
	s.f.ColdBegin()
	if s.level == amd64.AVX512 && !s.allActive {
		s.bind(some)
		for p, c := range columns {
			s.interleave(plus(m, int32(p*s.per*4*n)), c, s.exec[p])
		}
		s.jump(first.done)
	} else {
		s.bind(some)
	}
	s.bind(first.cold)
	s.bind(first.slow)
	for _, x := range xs {
		s.slowStore(x)
	}
	s.jump(first.done)
	s.f.ColdEnd()
	s.bind(first.done)
}

// unlessAll jumps unless all lanes are active.
func (s *selector) unlessAll(to amd64.Label) {
	all := s.exec[0]
	for _, e := range s.exec[1:] {
		all = s.maskAnd(all, e)
	}
	if s.level == amd64.AVX512 {
		s.emit(amd64.Inst{Op: amd64.KOrTest, W: 2, A: all, B: all})
		s.jcc(amd64.CondAE, to)
		return
	}
	s.emit(amd64.Inst{Op: amd64.VMovMskPS, W: s.w, Dst: amd64.RAX, A: all})
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RAX, Imm: 0xff})
	s.jcc(amd64.CondNE, to)
}

// columnWords puts the values of the Stores together as the n words that each lane stores.
func (s *selector) columnWords(xs []*access, low int64, n, p int) []amd64.R {
	words := make([]amd64.R, n)
	for _, x := range xs {
		d := x.a.Disp - low
		r := x.v.unitOf(p).r[0]
		if x.size < 4 {
			r = s.toRaw(x.t, r)
			if x.t.IsInt() && x.t.IsSigned() {
				r = s.vandC(r, uint32(x.t.Mask()))
			}
			if sh := 8 * (d % 4); sh != 0 {
				r = s.vopI(amd64.VPSllD, r, sh)
			}
		}
		if w := words[d/4]; w != 0 {
			r = s.vop(s.pick(amd64.VPOrD, amd64.VPOr), w, r)
		}
		words[d/4] = r
	}
	return words
}

// interleave stores one part's words, lane after lane: all of them, or (AVX-512) those of the lanes in mask.
func (s *selector) interleave(m amd64.Mem, words []amd64.R, mask amd64.R) {
	n := len(words)
	if s.level == amd64.AVX2 {
		s.interleave2(m, words)
		return
	}
	now := append([]amd64.R(nil), words...)
	// Vector b*blocks of columns: b counts blocks of lanes, the rest those of columns.
	for c := 1; c < n; c *= 2 { // columns in a vector so far
		next := make([]amd64.R, n)
		cols := n / c // vectors of a block of lanes
		var idx [2]amd64.Mem
		for half := range idx {
			t := make([]int32, 16)
			for e := range t {
				l, col := e/(2*c), e%(2*c)
				t[e] = int32(col/c*16 + (half*8/c+l)*c + col%c)
			}
			idx[half] = s.table(t, 4)
		}
		for b := 0; b < c; b++ {
			for j := 0; j < cols; j += 2 {
				for half := range idx {
					d := s.vopM(amd64.VMovUPS, 0, idx[half])
					s.emit(amd64.Inst{Op: amd64.VPermI2PS, W: s.w, Dst: d, A: now[b*cols+j], B: now[b*cols+j+1]})
					next[(2*b+half)*cols/2+j/2] = d
				}
			}
		}
		now = next
	}
	for k, r := range now {
		i := amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: plus(m, int32(64*k)), A: r}
		if mask != 0 {
			i.KM = s.spreadMask(mask, k, n)
		}
		s.emit(i)
	}
}

// spreadMask makes the mask of window k of n words for each lane: every lane's bit n times.
func (s *selector) spreadMask(mask amd64.R, k, n int) amd64.R {
	r := s.reg(amd64.Mask)
	s.emit(amd64.Inst{Op: amd64.KMov, W: 2, Dst: amd64.RAX, A: mask})
	if k > 0 {
		s.gopI(amd64.Shr, 4, amd64.RAX, int64(k*16/n))
	}
	first := map[int]int64{2: 0x5555, 4: 0x1111, 8: 0x0101}[n]
	s.gopI(amd64.Mov, 4, amd64.RCX, first)
	s.emit(amd64.Inst{Op: amd64.PDep, W: 4, Dst: amd64.RAX, A: amd64.RAX, B: amd64.RCX})
	s.emit(amd64.Inst{Op: amd64.IMul3, W: 4, Dst: amd64.RAX, A: amd64.RAX, Imm: 1<<n - 1})
	s.emit(amd64.Inst{Op: amd64.KMov, W: 2, Dst: r, A: amd64.RAX})
	return r
}

// interleave2 is interleave for AVX2: each register holds 16 bytes of lanes l and l+4.
func (s *selector) interleave2(m amd64.Mem, c []amd64.R) {
	n := len(c)
	pitch := int32(4 * n)
	put := func(r amd64.R, lane int, off int32) {
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: 16, Mem: plus(m, int32(lane)*pitch+off), A: r})
		s.emit(amd64.Inst{Op: amd64.VExtractF128, W: 32, Mem: plus(m, int32(lane+4)*pitch+off), A: r, Imm: 1})
	}
	if n == 2 {
		put(s.vop(amd64.VUnpckLPS, c[0], c[1]), 0, 0)
		put(s.vop(amd64.VUnpckHPS, c[0], c[1]), 2, 0)
		return
	}
	for o := 0; o < n; o += 4 {
		off := int32(4 * o)
		for h, op := range []amd64.Opcode{amd64.VUnpckLPS, amd64.VUnpckHPS} {
			a, b := s.vop(op, c[o], c[o+1]), s.vop(op, c[o+2], c[o+3])
			put(s.vop(amd64.VUnpckLPD, a, b), 2*h, off)
			put(s.vop(amd64.VUnpckHPD, a, b), 2*h+1, off)
		}
	}
}
