package tensor

import "sync/atomic"

// batchInvariant is what SetBatchInvariant says for calls without a Holder.
var batchInvariant atomic.Bool

// SetBatchInvariant says whether products that are built from now on without a Holder add up in one order for any
// number of rows: matrix products, gathered and packed ones, and attention. Then a row of a result has the same bytes
// alone and in any batch, which a server needs that computes several users' rows at once. Otherwise the order is one
// for few rows, which reads the matrix where it lies, and another one for many, which are several times as fast.
// Convolutions have one order in any case.
// It counts when a product is built, not when that is computed: a compiled function's products are built both when it
// is traced and at each call, and either is enough. It returns what was said before.
func SetBatchInvariant(on bool) (before bool) { return batchInvariant.Swap(on) }

// SetBatchInvariant is [SetBatchInvariant] for what is built with the holder's Ctx.
func (h *Holder) SetBatchInvariant(on bool) (before bool) { return h.batchInvariant.Swap(on) }

// keepInvariant says that calls which were made again are as the first one was.
func (x *Array) keepInvariant(alike bool) *Array {
	x.node.alike = x.node.alike || alike
	return x
}

// BatchInvariant reports whether the call was built under SetBatchInvariant.
func (r *Run) BatchInvariant() bool { return r.node.alike }
