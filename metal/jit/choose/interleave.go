package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Stores that together fill a stride: the opposite of transpose.

// store does the Stores of a group.
func (s *groups) store(g []*kir.Instr) {
	xs, all, need := s.together(g)
	first := xs[0]
	for _, x := range xs {
		x.v = s.mem.stored(x)
	}
	n := int(strideOf(first.a.Offsets[:s.e.group])) / 4
	columns := make([][]code.R, s.e.parts)
	for p := range columns {
		columns[p] = s.columnWords(xs, all.a.Disp, n, p)
	}
	some := s.e.label()
	s.addr.checkWraps(all.a, first.slow)
	s.addr.check(all.a.Object, all.l, need, first.cold)
	m := s.mem.place(all, 0)
	if !s.on.all {
		s.on.jumpUnlessAll(some)
	}
	for p, c := range columns {
		s.interleave(plus(m, int32(p*s.e.per*4*n)), c, 0)
	}
	s.e.f.ColdBegin()
	if s.e.avx512() && !s.on.all {
		s.e.bind(some)
		for p, c := range columns {
			s.interleave(plus(m, int32(p*s.e.per*4*n)), c, s.on.exec[p])
		}
		s.e.jump(first.done)
	} else {
		s.e.bind(some)
	}
	s.e.bind(first.cold)
	s.e.bind(first.slow)
	for _, x := range xs {
		s.mem.slowStore(x)
	}
	s.e.jump(first.done)
	s.e.f.ColdEnd()
	s.e.bind(first.done)
}

// columnWords puts the values of the Stores together as the n words that each lane stores.
func (s *groups) columnWords(xs []*access, low int64, n, p int) []code.R {
	words := make([]code.R, n)
	for _, x := range xs {
		d := x.a.Disp - low
		r := x.v.unitOf(p).r[0]
		if x.size < 4 {
			r = s.el.toRaw(x.t, r)
			if x.t.IsInt() && x.t.IsSigned() {
				r = s.v.and(r, konst(x.t.Mask()), false)
			}
			if sh := 8 * (d % 4); sh != 0 {
				r = s.v.op1Imm(code.VPSllD, r, sh)
			}
		}
		if w := words[d/4]; w != 0 {
			r = s.v.op2(s.e.pick(code.VPOrD, code.VPOr), w, r)
		}
		words[d/4] = r
	}
	return words
}

// interleave stores one part's words, lane after lane: all of them, or (AVX-512) those of the lanes in mask.
func (s *groups) interleave(m code.Mem, words []code.R, mask code.R) {
	n := len(words)
	if !s.e.avx512() {
		s.interleaveAVX2(m, words)
		return
	}
	now := append([]code.R(nil), words...)
	// Vector b*blocks of columns: b counts blocks of lanes, the rest those of columns.
	for c := 1; c < n; c *= 2 { // columns in a vector so far
		next := make([]code.R, n)
		cols := n / c // vectors of a block of lanes
		var idx [2]code.Mem
		for half := range idx {
			t := make([]int32, 16)
			for e := range t {
				l, col := e/(2*c), e%(2*c)
				t[e] = int32(col/c*16 + (half*8/c+l)*c + col%c)
			}
			idx[half] = s.e.table(t, 4)
		}
		for b := 0; b < c; b++ {
			for j := 0; j < cols; j += 2 {
				for half := range idx {
					d := s.v.op2Mem(code.VMovUPS, 0, idx[half])
					s.e.emit(code.Inst{Op: code.VPermI2PS, W: s.e.w, Dst: d, A: now[b*cols+j], B: now[b*cols+j+1]})
					next[(2*b+half)*cols/2+j/2] = d
				}
			}
		}
		now = next
	}
	for k, r := range now {
		i := code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: plus(m, int32(64*k)), A: r}
		if mask != 0 {
			i.KM = s.spreadMask(mask, k, n)
		}
		s.e.emit(i)
	}
}

// spreadMask makes the mask of window k of n words for each lane: every lane's bit n times.
func (s *groups) spreadMask(mask code.R, k, n int) code.R {
	r := s.e.reg(code.Mask)
	s.e.emit(code.Inst{Op: code.KMov, W: 2, Dst: code.RAX, A: mask})
	if k > 0 {
		s.e.gopImm(code.Shr, 4, code.RAX, int64(k*16/n))
	}
	first := map[int]int64{2: 0x5555, 4: 0x1111, 8: 0x0101}[n]
	s.e.gopImm(code.Mov, 4, code.RCX, first)
	s.e.emit(code.Inst{Op: code.PDep, W: 4, Dst: code.RAX, A: code.RAX, B: code.RCX})
	s.e.emit(code.Inst{Op: code.IMul3, W: 4, Dst: code.RAX, A: code.RAX, Imm: 1<<n - 1})
	s.e.emit(code.Inst{Op: code.KMov, W: 2, Dst: r, A: code.RAX})
	return r
}

// interleaveAVX2 is interleave for AVX2: each register holds 16 bytes of lanes l and l+4.
func (s *groups) interleaveAVX2(m code.Mem, c []code.R) {
	n := len(c)
	pitch := int32(4 * n)
	put := func(r code.R, lane int, off int32) {
		s.e.emit(code.Inst{Op: code.VMovUPS, W: 16, Mem: plus(m, int32(lane)*pitch+off), A: r})
		s.e.emit(code.Inst{Op: code.VExtractF128, W: 32, Mem: plus(m, int32(lane+4)*pitch+off), A: r, Imm: 1})
	}
	if n == 2 {
		put(s.v.op2(code.VUnpckLPS, c[0], c[1]), 0, 0)
		put(s.v.op2(code.VUnpckHPS, c[0], c[1]), 2, 0)
		return
	}
	for o := 0; o < n; o += 4 {
		off := int32(4 * o)
		for h, op := range []code.Opcode{code.VUnpckLPS, code.VUnpckHPS} {
			a, b := s.v.op2(op, c[o], c[o+1]), s.v.op2(op, c[o+2], c[o+3])
			put(s.v.op2(code.VUnpckLPD, a, b), 2*h, off)
			put(s.v.op2(code.VUnpckHPD, a, b), 2*h+1, off)
		}
	}
}
