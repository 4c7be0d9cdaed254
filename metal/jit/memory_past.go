package jit

import (
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Launches that write much more than the cache holds store past it: nothing is read only to be overwritten, and
// nothing useful makes room. Other processors see such stores late, so the code ends with a fence.

const (
	// pastBytes is how much a launch must write; less is what the next launch may still find in the cache.
	pastBytes = 8 << 20
	// threadBytes is how much of that a thread is thought to write at most: a launch of few threads changes a small
	// part of a large buffer.
	threadBytes = 128
)

// writesMuch reports whether a launch seems to write so much that it should do it past the cache.
func writesMuch(k *kir.Kernel, l *interp.Launch) bool {
	most := threadBytes
	for _, n := range l.Grid {
		most = min(most*min(n, 1<<31), 1<<31)
	}
	total := 0
	for i, p := range k.Params {
		if writeOnly(p) {
			total += min(len(l.Buffers[i]), most)
		}
	}
	return total >= pastBytes
}

// writeOnly reports whether a kernel writes a buffer and never reads it.
func writeOnly(p kir.Param) bool { return p.Space == kir.Device && p.Write && !p.Read && !p.Atomic }

// goesPast reports whether a store of all lanes to consecutive elements may go past the cache: in whole lines, or in
// halves of one that follow each other.
func (s *selector) goesPast(x *access) bool {
	n := x.a.Object - 1
	if !s.past || !s.allActive || x.size < 4 || n < 0 || n >= len(s.k.Params) || !writeOnly(s.k.Params[n]) {
		return false
	}
	if s.parts*int(s.w) >= cacheLine {
		return true
	}
	for _, e := range s.flow.open {
		if e.of.Op == kir.Loop {
			return false
		}
	}
	return true
}

// storePast stores every part to consecutive elements past the cache. Where the place is not a multiple of a vector,
// it goes to ordinary.
func (s *selector) storePast(x *access, m amd64.Mem, ordinary amd64.Label) {
	s.gopM(amd64.Lea, 8, amd64.RAX, m)
	s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: amd64.RAX, Imm: int64(s.w) - 1})
	s.jcc(amd64.CondNE, ordinary)
	at := int32(0)
	for p := range s.parts {
		for _, r := range x.v.unitOf(p).r {
			if r != 0 {
				s.emit(amd64.Inst{Op: amd64.VMovNTPS, W: s.w, Mem: plus(m, at), A: r})
				at += int32(s.w)
			}
		}
	}
}
