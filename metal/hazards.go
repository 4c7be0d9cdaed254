package metal

import "slices"

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

// overlaps reports whether the set has a byte in common with [lo, hi).
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
	if i == len(*s) {
		*s = append(*s, span{lo, hi})
		return
	}
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
	buf      *Buffer
	retained bool
	epoch    int // the barrier that reads and writes count from
	reads    spans
	writes   spans
}

// useChunk is how many records lie together.
const useChunk = 32

// ledger is a command buffer's records of buffers: a list, and a hash table of its indices by the buffers' numbers.
type ledger struct {
	chunks []*[useChunk]bufferUse
	n      int
	table  []int32 // index + 1 in a slot that is taken; its length is a power of two
}

// use is the i-th record.
func (l *ledger) use(i int) *bufferUse { return &l.chunks[i/useChunk][i%useChunk] }

// slot is where the table's search for a buffer begins.
func (l *ledger) slot(b *Buffer) int {
	return int(uint32(b.id)*0x9E3779B1>>8) & (len(l.table) - 1)
}

// of returns the record of a buffer, a new one if need be.
func (l *ledger) of(b *Buffer) *bufferUse {
	if 2*l.n >= len(l.table) {
		l.grow()
	}
	for i := l.slot(b); ; i = (i + 1) & (len(l.table) - 1) {
		k := l.table[i]
		if k == 0 {
			l.n++
			l.table[i] = int32(l.n)
			break
		}
		if u := l.use(int(k) - 1); u.buf == b {
			return u
		}
	}
	if at := (l.n - 1) / useChunk; at == len(l.chunks) {
		l.chunks = append(l.chunks, new([useChunk]bufferUse))
	}
	u := l.use(l.n - 1)
	u.buf, u.retained, u.epoch = b, false, 0
	return u
}

// grow makes the table twice as large.
func (l *ledger) grow() {
	l.table = make([]int32, max(2*len(l.table), 64))
	for i := range l.n {
		at := l.slot(l.use(i).buf)
		for l.table[at] != 0 {
			at = (at + 1) & (len(l.table) - 1)
		}
		l.table[at] = int32(i + 1)
	}
}

// empty forgets all records.
func (l *ledger) empty() {
	for i := range l.n {
		l.use(i).buf = nil
	}
	clear(l.table)
	l.n = 0
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
