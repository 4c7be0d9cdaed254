package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Loops that go through memory which comes from far away ask for it before they need it: the processor's own
// prefetching ends with each page, and gives up where two SIMD-groups of a pair read two rows of one page in turns.
// What they will write they ask for as their own: stores leave in order, so each one that waits for its line holds up
// those after it.

const (
	cacheLine = 64
	aheadMin  = 2048     // bytes ahead: about the time that memory takes, and a row or two of most matrices
	aheadMost = 64 << 10 // further steps than a quarter of this do not look like a stream
	maxLines  = 8        // asked for by one access in one round
)

// prefetch asks for what a Load or Store of need bytes at m, about to be done, will want in later rounds of its loop.
func (s *memory) prefetch(i *kir.Instr, m code.Mem, need int64) {
	if i.Args[0].Type != kir.PtrDevice {
		return
	}
	if s.streams == nil {
		s.streams = lanes.Streams(s.k)
	}
	step := s.streams[i.ID]
	ahead := max(aheadMin, 4*step)
	need = min(need, step)
	if step <= 0 || ahead > aheadMost || need > maxLines*cacheLine {
		return
	}
	op := code.PrefetchT0
	if i.Op == kir.Store {
		op = code.PrefetchW
	}
	for at := int64(0); at < need; at += cacheLine {
		s.e.emit(code.Inst{Op: op, Mem: plus(m, int32(ahead+at))})
	}
}
