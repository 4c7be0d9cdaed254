package metal

import (
	"slices"
	"sync"
)

// span is the bytes [lo, hi) of a buffer.
type span struct{ lo, hi int64 }

// spans is a set of bytes: spans in order that neither overlap nor touch.
type spans []span

// from is the index of the first span that ends at lo or behind it.
func (s spans) from(lo int64) int {
	if n := len(s); n == 0 || s[n-1].hi < lo {
		return n // the common case: offsets grow
	}
	i, j := 0, len(s)
	for i < j {
		if m := (i + j) / 2; s[m].hi < lo {
			i = m + 1
		} else {
			j = m
		}
	}
	return i
}

// overlaps says whether the set has a byte in common with [lo, hi).
func (s spans) overlaps(lo, hi int64) bool {
	i := s.from(lo + 1)
	return i < len(s) && s[i].lo < hi && lo < hi
}

// add puts [lo, hi) into the set.
func (s *spans) add(lo, hi int64) {
	if lo >= hi {
		return
	}
	i := s.from(lo)
	j := i
	for j < len(*s) && (*s)[j].lo <= hi {
		lo, hi = min(lo, (*s)[j].lo), max(hi, (*s)[j].hi)
		j++
	}
	if j == i+1 {
		(*s)[i] = span{lo, hi}
		return
	}
	*s = slices.Replace(*s, i, j, span{lo, hi})
}

// bufferUse is what a command buffer knows of one buffer.
type bufferUse struct {
	retained bool
	epoch    int // the barrier that reads and writes count from
	reads    spans
	writes   spans
}

// ledger is a command buffer's records of buffers. Ledgers are used again: their maps and lists are what an encoder
// would otherwise spend its time on.
type ledger struct {
	byBuf  map[*Buffer]*bufferUse
	chunks []*[32]bufferUse // what the values of byBuf are cut from
	n      int
}

var ledgers = sync.Pool{New: func() any { return &ledger{byBuf: map[*Buffer]*bufferUse{}} }}

// of returns the record of a buffer, a new one if need be.
func (l *ledger) of(b *Buffer) *bufferUse {
	u := l.byBuf[b]
	if u == nil {
		at := l.n / 32
		if at == len(l.chunks) {
			l.chunks = append(l.chunks, new([32]bufferUse))
		}
		u = &l.chunks[at][l.n%32]
		l.n++
		u.retained, u.epoch = false, 0
		l.byBuf[b] = u
	}
	return u
}

// done empties the ledger and gives it back. One that was large is left to the garbage collector.
func (l *ledger) done() {
	if l.n > 4096 {
		return
	}
	clear(l.byBuf)
	l.n = 0
	ledgers.Put(l)
}

// at empties the sets if they are from before the last barrier.
func (u *bufferUse) at(epoch int) *bufferUse {
	if u.epoch != epoch {
		u.epoch, u.reads, u.writes = epoch, u.reads[:0], u.writes[:0]
	}
	return u
}

// hazard is why a barrier is due.
type hazard string

const (
	hazardNone hazard = ""
	hazardRAW  hazard = "read after write"
	hazardWAR  hazard = "write after read"
	hazardWAW  hazard = "write after write"
)

// conflict says which hazard an access to [lo, hi) has with those since the last barrier, apart from those that the
// ablations leave out.
func (u *bufferUse) conflict(a access, lo, hi int64, ab *Ablations) hazard {
	switch {
	case a&accRead != 0 && !ab.DropRAW && u.writes.overlaps(lo, hi):
		return hazardRAW
	case a&accWrite == 0:
		return hazardNone
	case !ab.DropWAW && u.writes.overlaps(lo, hi) && (a&accRead == 0 || !ab.DropRAW):
		return hazardWAW
	case !ab.DropWAR && u.reads.overlaps(lo, hi):
		return hazardWAR
	}
	return hazardNone
}

// note records an access.
func (u *bufferUse) note(a access, lo, hi int64) {
	if a&accRead != 0 {
		u.reads.add(lo, hi)
	}
	if a&accWrite != 0 {
		u.writes.add(lo, hi)
	}
}
