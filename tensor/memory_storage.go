package tensor

import (
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// storage owns a buffer for the outputs that lie in it. When it becomes garbage the buffer goes back to the pool;
// sooner where the engine can prove that no one will read it again.
type storage struct {
	buf      *metal.Buffer
	owning   sync.Mutex   // guards owned where a stream has given the outputs away, and replicas
	owned    *metal.Owned // nil while no one but the engine can reach the outputs: it gives the buffer back itself
	replicas *[]*replica  // on other devices; guarded by owning
	dev      *metal.Device
	stream   *Stream      // whose kernels wrote it; nil: the host did
	users    atomic.Int32 // outputs that lie in it and are not spent
	holders  atomic.Int32 // outputs that lie in it
	pins     atomic.Int32 // host views that are open
	shared   atomic.Bool  // another stream reads it too, or the host does when a command buffer has run
	external bool         // someone outside holds the buffer: it must not be written
}

// newStorage takes over one reference of buf, which the host has written, for an array of a holder (nil: none).
func newStorage(dev *metal.Device, buf *metal.Buffer, h *Holder) *storage {
	st := &storage{dev: dev, buf: buf}
	st.own(h.lists(buf))
	return st
}

// own ties the buffer to the collector. Held says that a holder looks after it too, so that it need not come for it.
func (st *storage) own(held bool) {
	st.owning.Lock()
	defer st.owning.Unlock()
	switch {
	case st.owned == nil && held:
		st.owned = metal.TrackedBy(st, st.buf)
	case st.owned == nil:
		st.owned = metal.OwnedBy(st, st.buf)
	case !held:
		st.owned.Untrack()
	}
}

// hold notes that a further output lies in the storage.
func (st *storage) hold() {
	st.users.Add(1)
	st.holders.Add(1)
}

// reset empties a storage for a second computation of its node.
func (st *storage) reset() {
	st.shared.Store(false)
	st.owning.Lock()
	st.owned = nil
	st.dropReplicas()
	st.owning.Unlock()
}

// take gives the reference on the buffer to the caller: no output lies in it any more. It is nil if that was done
// before.
func (st *storage) take() *metal.Buffer {
	st.owning.Lock()
	defer st.owning.Unlock()
	st.dropReplicas()
	if st.owned != nil {
		return st.owned.Stop()
	}
	buf := st.buf
	st.buf = nil
	return buf
}

// writable reports whether the stream may write to the storage once no output lies in it.
func (st *storage) writable(s *Stream) bool {
	return st.stream == s && !st.external && !st.shared.Load() && st.pins.Load() == 0
}

// storageGroup hands out storages of small buffers that the collector gives back, a few of which share one clean-up: it
// runs when none of them is reachable.
type storageGroup struct {
	room   []storage // those of the newest few that are left
	owners *metal.OwnedGroup
	bytes  int64 // that the newest few own
}

// groupBytes is the most that a few storages own together, and so the most that a reachable array keeps from the pool
// of those computed beside it.
const groupBytes = 4 << 10

// next is a storage that owns one reference of buf, of groupBytes at most.
func (c *storageGroup) next(dev *metal.Device, buf *metal.Buffer) *storage {
	if len(c.room) == 0 || c.bytes+buf.Len() > groupBytes {
		few := new([metal.MaxOwnedGroup]storage)
		c.room, c.owners, c.bytes = few[:], metal.NewOwnedGroup(few, dev), 0
	}
	st := &c.room[0]
	c.room = c.room[1:]
	c.bytes += buf.Len()
	st.owned = c.owners.Own(buf)
	return st
}
