package tensor

import (
	"errors"

	"github.com/mlxlua/mlxlua/metal"
)

// Call encodes a call of a routine that reads and writes the operands, in the routine's order: each as the bytes that
// its elements span, from the first one on. It reports false, and has encoded nothing, where the device does not offer
// the routine: then kernels do it.
func (r *Run) Call(routine metal.Routine, reads, writes []Operand) (done bool, err error) {
	q := &r.e.batcher
	if q.atomicGroup != 0 || !r.e.dev.Offers(routine) { // a gate may end the command buffer, which a Unit lies in
		return false, nil
	}
	var ranges [2][]metal.Range
	for i, side := range [2][]Operand{reads, writes} {
		for _, o := range side {
			if o.buf == nil {
				if i == 1 {
					return true, errors.New("BUG: a call that writes a constant")
				}
				if o.View, err = r.e.memory.upload(o.View); err != nil {
					return true, err
				}
			}
			low, high := o.span(o.Spec)
			ranges[i] = append(ranges[i], metal.Range{Buf: o.buf, Offset: o.OffsetBytes + low, Bytes: high - low})
		}
	}
	return true, q.call(r.node.op.name, routine, ranges[0], ranges[1])
}

// call encodes a call of a routine, in a new batch where a gate asks for that and no Unit lies across the two.
func (q *batcher) call(label string, routine metal.Routine, reads, writes []metal.Range) error {
	err := q.encoder(label).Call(routine, reads, writes)
	if errors.Is(err, metal.ErrGateBegins) && q.atomicGroup == 0 {
		q.commit(false)
		err = q.encoder(label).Call(routine, reads, writes)
	}
	return err
}
