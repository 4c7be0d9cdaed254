package tensor

import (
	"context"
	"time"
)

// pace decides when a collection is worth its time. It is of a stream's goroutine.
type pace struct {
	factor int64 // how often collections have to promise more than they cost, because they proved little
}

// maxPaceFactor bounds pace.factor.
const maxPaceFactor = 64

// collect runs a garbage collection where that pays, and reports whether it did. Unproven is the bytes of outputs whose
// handles may be garbage. It pays if writing them takes longer, or if they are a large part of the memory limit, and if
// collections do not take too much of the time. Where the limit does not hold these bytes it is run in any case.
func (s *Stream) collect(ctx context.Context, unproven int64) bool {
	s.pace.factor = max(s.pace.factor, 1)
	cost, affordable := s.dev.CollectCost()
	mem := s.dev.Memory()
	need := mem.Active + unproven
	write := time.Duration(float64(unproven) / s.dev.CopyBandwidth() * float64(time.Second))
	worth := write >= time.Duration(s.pace.factor)*cost || need > mem.Limit/2
	if need <= mem.Limit && !(worth && affordable) {
		return false
	}
	s.dev.Collect(ctx)
	return true
}

// learn adapts to what a collection proved of the bytes that were unproven.
func (p *pace) learn(unproven, proved int64) {
	if proved < unproven/4 {
		p.factor = min(2*p.factor, maxPaceFactor)
	} else {
		p.factor = max(p.factor/2, 1)
	}
}
