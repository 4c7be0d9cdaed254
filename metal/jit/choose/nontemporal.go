package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
)

// Stores past the cache, for launches that write much more than it holds. Other processors see such stores late, so the
// code ends with a fence.

// isNonTemporal reports whether a store of all lanes to consecutive elements may go past the cache: in whole lines, or
// in halves of one that follow each other.
func (s *memory) isNonTemporal(x *access) bool {
	n := x.a.Object - 1
	if !s.nonTemporal || !s.on.all || x.size < 4 || n < 0 || n >= len(s.k.Params) || !lanes.WriteOnly(s.k.Params[n]) {
		return false
	}
	if s.e.parts*int(s.e.w) >= cacheLine {
		return true
	}
	return !s.inLoop()
}

// storeNonTemporal stores every part to consecutive elements past the cache. Where the place is not a multiple of a
// vector, it goes to ordinary.
func (s *memory) storeNonTemporal(x *access, m code.Mem, ordinary code.Label) {
	s.e.gopMem(code.Lea, 8, code.RAX, m)
	s.e.emit(code.Inst{Op: code.Test, W: 4, A: code.RAX, Imm: int64(s.e.w) - 1})
	s.e.jcc(code.CondNE, ordinary)
	at := int32(0)
	for p := range s.e.parts {
		for _, r := range x.v.unitOf(p).r {
			if r != 0 {
				s.e.emit(code.Inst{Op: code.VMovNTPS, W: s.e.w, Mem: plus(m, at), A: r})
				at += int32(s.e.w)
			}
		}
	}
}
