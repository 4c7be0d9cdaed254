package tensor

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mlxlua/mlxlua/metal"
)

// replica is a copy of a part of a storage in another device's memory. It is made when that device first reads the
// part, and kept as long as the storage, unless memory is needed: see replicaList.giveUp.
type replica struct {
	dev       *metal.Device
	account   *metal.Account // it is charged to
	buf       *metal.Buffer
	low, high int64           // the bytes of the storage's buffer
	used      atomic.Int64    // when, by replicas.clock
	arrives   *metal.Transfer // what brings them; nil: they are there

	mu    sync.Mutex
	owned *metal.Owned // nil: it has been given up
}

// replicaList lists the replicas of all storages that live.
type replicaList struct {
	clock atomic.Int64
	mu    sync.Mutex
	list  []weak.Pointer[replica]
	most  int // how long the list may become before it is cleared of those that are gone
}

var replicas replicaList

// replicaAlign is what the first byte of a replica is a multiple of in its storage: elements stay aligned.
const replicaAlign = 64

// replica is the view, which lies in another device's memory, in the allocator's: it is there when what is recorded
// next runs. Behind are the other device's command buffers that have run when the view's elements are there.
func (m *allocator) replica(v View, s Spec, behind []*metal.CommandBuffer) (View, error) {
	st := v.owner
	low, high := v.span(s)
	low, high = v.OffsetBytes+low, v.OffsetBytes+high
	low -= low % replicaAlign
	r := st.replicaOf(m.dev, low, high)
	if r == nil {
		origin := m.origin(m.batcher.op.temporary)
		buf, err := m.dev.AllocToFill(m.batcher.job.ctx, max(high-low, leastBuffer), &origin)
		if err != nil {
			return View{}, err
		}
		t, err := buf.CopyBehind(0, metal.Range{Buf: v.buf, Offset: low, Bytes: high - low}, behind)
		if err != nil {
			buf.Release()
			return View{}, err
		}
		r = &replica{dev: m.dev, account: origin.Account, buf: buf, low: low, high: high, arrives: t}
		st.addReplica(r)
	}
	m.lent = append(m.lent, r.buf) // as a temporary: the storage may die before the call's commands have run
	if t := r.arrives; t != nil && t.Status() != metal.StatusCompleted {
		m.batcher.arrive(t)
	}
	v.buf, v.owner, v.OffsetBytes = r.buf, nil, v.OffsetBytes-r.low
	return v, nil
}

// replicaOf is the replica on a device that has the bytes, or nil. Its caller gets a reference on the buffer.
func (st *storage) replicaOf(dev *metal.Device, low, high int64) *replica {
	st.owning.Lock()
	defer st.owning.Unlock()
	if st.replicas == nil {
		return nil
	}
	for _, r := range *st.replicas {
		if r.dev == dev && r.low <= low && high <= r.high && r.retain() {
			return r
		}
	}
	return nil
}

// addReplica has the storage own a replica, whose caller keeps a reference on the buffer. Those that were given up go.
func (st *storage) addReplica(r *replica) {
	r.buf.Retain()
	r.owned = metal.OwnedBy(st, r.buf)
	r.used.Store(replicas.clock.Add(1))
	replicas.add(r)
	st.owning.Lock()
	defer st.owning.Unlock()
	if st.replicas == nil {
		st.replicas = &[]*replica{}
	}
	*st.replicas = append(slices.DeleteFunc(*st.replicas, (*replica).gone), r)
}

// dropReplicas gives the replicas back. Called with owning held.
func (st *storage) dropReplicas() {
	if st.replicas == nil {
		return
	}
	for _, r := range *st.replicas {
		r.drop()
	}
	st.replicas = nil
}

// retain takes a reference on the buffer, unless it has been given up, or the bytes will never be there.
func (r *replica) retain() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owned == nil || r.arrives != nil && r.arrives.Status() == metal.StatusFailed {
		return false
	}
	r.buf.Retain()
	r.used.Store(replicas.clock.Add(1))
	return true
}

// drop lets go of the buffer, and reports whether nobody had before.
func (r *replica) drop() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owned == nil {
		return false
	}
	first := r.owned.Release()
	r.owned = nil
	return first
}

func (r *replica) gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owned == nil
}

// add lists a replica. The list does not keep it alive.
func (l *replicaList) add(r *replica) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) >= l.most {
		l.list = slices.DeleteFunc(l.list, func(w weak.Pointer[replica]) bool {
			r := w.Value()
			return r == nil || r.gone()
		})
		l.most = 2*len(l.list) + 64
	}
	l.list = append(l.list, weak.Make(r))
}

// giveUp lets go of replicas of so many bytes, those first that were used longest ago: on a device that is short of
// memory, or charged to an account that is, wherever they lie. They are made again when they are needed. It reports
// whether there was one.
func (l *replicaList) giveUp(dev *metal.Device, n int64, a *metal.Account) (some bool) {
	var of []*replica
	l.mu.Lock()
	for _, w := range l.list {
		if r := w.Value(); r != nil && (a == nil && r.dev == dev || a != nil && r.account == a) {
			of = append(of, r)
		}
	}
	l.mu.Unlock()
	slices.SortFunc(of, func(a, b *replica) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	for _, r := range of {
		if n <= 0 {
			break
		}
		if r.drop() {
			some = true
			n -= r.high - r.low
		}
	}
	return some
}
