package tensor

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// allocator finds the memory of what is recorded.
type allocator struct {
	dev     *metal.Device
	batcher *batcher
	free    freeList
	group   storageGroup    // of the segment that is being recorded
	pieces  []int           // that strides are cut from
	temps   []*metal.Buffer // of the unit that is being recorded
	lent    []*metal.Buffer // those of them that someone reads after the unit
	dry     *dry            // what is recorded is for a take: nil otherwise
}

// freeList holds buffers whose last reader is encoded: later calls of the stream may write to them at once, because
// a queue runs its commands in order and the encoder sees the hazard.
type freeList struct {
	bufs  []*metal.Buffer
	bytes int64
}

// The bounds of a free list. Small buffers come as cheaply from the pool.
const (
	maxFree   = 32
	leastFree = 4 << 10
)

func (f *freeList) put(b *metal.Buffer) {
	if b.Len() < leastFree || b.Mapped() {
		b.Release()
		return
	}
	if len(f.bufs) == maxFree {
		f.bytes -= f.bufs[0].Len()
		f.bufs[0].Release()
		f.bufs = append(f.bufs[:0], f.bufs[1:]...)
	}
	f.bufs = append(f.bufs, b)
	f.bytes += b.Len()
}

// get takes the buffer that fits n bytes of an owner best and wastes at most an eighth; fill is as in alloc.
func (f *freeList) get(n int64, o metal.Owner, fill bool) *metal.Buffer {
	best := -1
	for i := len(f.bufs) - 1; i >= 0; i-- {
		size := f.bufs[i].Len()
		if size >= n && size <= n+n/8 && (best < 0 || size < f.bufs[best].Len()) && f.bufs[i].Serves(o, n, fill) {
			best = i
			if size == n {
				break
			}
		}
	}
	if best < 0 {
		return nil
	}
	b := f.bufs[best]
	f.bufs = append(f.bufs[:best], f.bufs[best+1:]...)
	f.bytes -= b.Len()
	return b
}

func (f *freeList) flush() {
	for _, b := range f.bufs {
		b.Release()
	}
	clear(f.bufs)
	f.bufs, f.bytes = f.bufs[:0], 0
}

// leastBuffer is the size of the smallest buffer: arrays without elements can be bound too. All others are as long as
// their arrays, so that accesses beyond the end are found.
const leastBuffer = 1

// alloc is a buffer of n bytes with one reference. Fill says that commands write all of them before others read one:
// see metal.Device.AllocToFill. Where memory is short, what is encoded is handed over first, so that it comes back.
func (m *allocator) alloc(n int64, o *metal.Origin, fill bool) (*metal.Buffer, error) {
	fill = fill && n >= leastBuffer
	n = max(n, leastBuffer)
	m.batcher.open().bytes += n
	if m.dry != nil {
		return m.dry.alloc(n, o, fill), nil
	}
	if b := m.free.get(n, o.Owner, fill); b != nil {
		if m.dev.Validating() {
			if err := m.batcher.encoder("").Reuse(b); err != nil {
				b.Release()
				return nil, err
			}
		}
		if b.Assign(o) {
			return b, nil
		}
		b.Release()
	}
	b, err := m.fresh(n, o, fill)
	if err == nil && m.dev.Validating() {
		b.TrackWrites()
	}
	return b, err
}

// fresh is alloc without the free list: no command that is encoded refers to the buffer.
func (m *allocator) fresh(n int64, o *metal.Origin, fill bool) (*metal.Buffer, error) {
	if n >= leastFree {
		if mem := m.dev.Memory(); mem.Active+n > mem.Limit/4*3 || o.Account.Near(n) {
			m.free.flush()
			if m.batcher.batch != nil && m.batcher.batch.cb != nil && m.batcher.atomicGroup == 0 {
				m.batcher.commit(false)
			}
		}
	}
	allocate := m.dev.AllocFor
	if fill {
		allocate = m.dev.AllocToFill
	}
	b, err := allocate(m.batcher.job.ctx, n, o)
	if err == nil {
		m.batcher.open().fresh += n
		m.touch(b)
	}
	return b, err
}

// touch has the system find the pages of memory that nobody has used before, while the device is at work: a kernel that
// waits for each of its pages takes twice as long.
func (m *allocator) touch(b *metal.Buffer) {
	if b.Len() < leastTouched || !b.Untouched() || m.dev.Validating() { // which writes to all of it
		return
	}
	for mem := b.Host(); len(mem) > 0 && m.batcher.s.busy(); {
		piece := mem[:min(len(mem), leastTouched)]
		mem = mem[len(piece):]
		for ; len(piece) > 0; piece = piece[min(len(piece), pageBytes):] {
			piece[0] = 0
		}
	}
}

// What is smaller than leastTouched costs little when it is touched first; pages are of pageBytes or more.
const (
	leastTouched = 1 << 20
	pageBytes    = 4 << 10
)

// recycle takes a buffer over for later calls, which write to it: commands that are encoded may still read it, and
// nothing else.
func (m *allocator) recycle(b *metal.Buffer) { m.free.put(b) }

// temp is memory for an array, given back after the call, of which kernels read what was written there: by themselves,
// or where a user's kernel is to read it by a copy before that.
func (m *allocator) temp(spec Spec) (Operand, error) {
	origin := m.origin(m.batcher.op.temporary)
	buf, err := m.alloc(spec.NBytes(), &origin, true)
	if err != nil {
		return Operand{}, err
	}
	m.temps = append(m.temps, buf)
	return Operand{spec, View{buf: buf, Strides: spec.Shape.Strides()}}, nil
}

// lend keeps a temporary from later calls' writes: what holds a reference of its own on it reads it after the call.
func (m *allocator) lend(buf *metal.Buffer) {
	if i := slices.Index(m.temps, buf); i >= 0 {
		m.temps = slices.Delete(m.temps, i, i+1)
		m.lent = append(m.lent, buf)
	}
}

// giveBack ends the use of the call's temporaries.
func (m *allocator) giveBack() {
	for _, buf := range m.temps {
		m.recycle(buf)
	}
	for _, buf := range m.lent {
		buf.Release()
	}
	clear(m.temps)
	clear(m.lent)
	m.temps, m.lent = m.temps[:0], m.lent[:0]
}

// upload puts inline bytes into a temporary buffer.
func (m *allocator) upload(v View) (View, error) {
	if m.dry != nil {
		origin := m.origin(m.batcher.op.temporary)
		v.buf, v.inline = m.dry.upload(v.inline, &origin), nil
		m.temps = append(m.temps, v.buf)
		return v, nil
	}
	buf, err := m.copied(append(make([]byte, 0, max(len(v.inline), leastBuffer)), v.inline...))
	if err != nil {
		return View{}, err
	}
	v.buf, v.inline = buf, nil
	return v, nil
}

// copied is a temporary buffer with the contents of b.
func (m *allocator) copied(b []byte) (*metal.Buffer, error) {
	origin := m.origin(m.batcher.op.temporary)
	buf, err := m.dev.AllocCopy(m.batcher.job.ctx, b, &origin)
	if err != nil {
		return nil, err
	}
	m.temps = append(m.temps, buf)
	return buf, buf.WriteBytes(0, b)
}

// strides is Shape.Strides, cut from a piece that a few arrays share.
func (m *allocator) strides(s Shape) []int {
	st := m.cut(len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		st[i] = n
		n *= s[i]
	}
	return st
}

// cut is n zeros for strides, cut from such a piece.
func (m *allocator) cut(n int) []int {
	if n > len(m.pieces) {
		m.pieces = make([]int, max(n, stridesPiece))
	}
	st := m.pieces[:n:n]
	m.pieces = m.pieces[n:]
	return st
}

// stridesPiece is the length of a piece: an array that lives long keeps no more than this of those that did not.
const stridesPiece = 32

// origin is what messages say of memory that the call being recorded needs for what.
func (m *allocator) origin(what string) metal.Origin {
	return metal.Origin{Op: what, Place: m.batcher.place, Account: m.batcher.account, Owner: m.batcher.owner}
}

// origin is what messages say of the buffer of output i.
func (n *Node) origin(i int) metal.Origin {
	s := n.out[i].spec
	return metal.Origin{Op: n.op.name, Place: n.Place(), Shape: s.Shape,
		Type: s.DType.String(), Account: n.holder.account(), Owner: n.holder.memory()}
}
