package tensor

import "github.com/mlxlua/mlxlua/metal"

// replica is a copy of a part of a storage in another device's memory. It is made when that device first reads the
// part, and kept as long as the storage.
type replica struct {
	dev       *metal.Device
	owned     *metal.Owned
	buf       *metal.Buffer
	low, high int64 // the bytes of the storage's buffer
}

// replicaAlign is what the first byte of a replica is a multiple of in its storage: elements stay aligned.
const replicaAlign = 64

// replica is the view, which lies in another device's memory, in the allocator's. Its commands have run.
func (m *allocator) replica(v View, s Spec) (View, error) {
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
		if err := buf.CopyFrom(0, metal.Range{Buf: v.buf, Offset: low, Bytes: high - low}); err != nil {
			buf.Release()
			return View{}, err
		}
		buf.Settle()
		r = &replica{dev: m.dev, buf: buf, low: low, high: high}
		st.addReplica(r)
	}
	m.lent = append(m.lent, r.buf) // as a temporary: the storage may die before the call's commands have run
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
		if r.dev == dev && r.low <= low && high <= r.high {
			r.buf.Retain()
			return r
		}
	}
	return nil
}

// addReplica has the storage own a replica, whose caller keeps a reference on the buffer.
func (st *storage) addReplica(r *replica) {
	r.buf.Retain()
	r.owned = metal.OwnedBy(st, r.buf)
	st.owning.Lock()
	defer st.owning.Unlock()
	if st.replicas == nil {
		st.replicas = &[]*replica{}
	}
	*st.replicas = append(*st.replicas, r)
}

// dropReplicas gives the replicas back. Called with owning held.
func (st *storage) dropReplicas() {
	if st.replicas == nil {
		return
	}
	for _, r := range *st.replicas {
		r.owned.Release()
	}
	st.replicas = nil
}
