package cuda

import (
	"fmt"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// products is a library of matrix products, such as cublasLt, which is opened when a product is first asked for, and
// never required.
type products interface {
	// Offers reports whether the library multiplies so.
	Offers(m metal.MatMul) bool
	// Multiply does it on a stream, with so many bytes of memory to work in. Called between Enter and Leave.
	Multiply(s stream, m metal.MatMul, a, b, out, work address, workBytes int64) error
}

// workBytes is the memory that a queue's products work in.
const workBytes = 32 << 20

// multiplier is the card's library of products.
type multiplier struct {
	once    sync.Once
	library products // nil: there is none
}

var _ metal.Caller = (*Driver)(nil)

// multiplies returns the library, nil if there is none.
func (d *Driver) multiplies() products {
	d.multiplier.once.Do(func() {
		_ = d.call(func() (err error) { // what cannot be opened is not there
			d.multiplier.library, err = d.lib.Products()
			return err
		})
	})
	return d.multiplier.library
}

// Offers reports whether the card's library computes a routine.
func (d *Driver) Offers(r metal.Routine) bool {
	m, ok := r.(metal.MatMul)
	if !ok || m.M < 1 || m.N < 1 || m.K < 1 || m.Batch < 1 || d.lost.Load() != nil {
		return false
	}
	p := d.multiplies()
	return p != nil && p.Offers(m)
}

// calls makes a step of a library's routine. Behind a kernel that may be stopped the host waits whether it was: a call
// cannot be skipped.
func (q *queue) calls(j *job, k int, c *metal.Command) error {
	m, ok := c.Call.Routine.(metal.MatMul)
	p := q.d.multiplies()
	if !ok || p == nil || len(c.Call.Reads) != 2 || len(c.Call.Writes) != 1 {
		return fmt.Errorf("[%s] the device does not offer it: %+v", c.Call.Routine.Routine(), c.Call.Routine)
	}
	size := int64(m.Element.Size())
	ranges := []metal.Range{c.Call.Reads[0], c.Call.Reads[1], c.Call.Writes[0]}
	for i, need := range []int64{reach(m.A, m.M, m.K, m.Batch), reach(m.B, m.K, m.N, m.Batch),
		int64(m.Batch) * int64(m.M) * int64(m.N)} {
		if err := inside(ranges[i]); err != nil {
			return err
		}
		if i == 2 {
			size = int64(m.Out().Size())
		}
		if has := ranges[i].Bytes; has < need*size {
			return fmt.Errorf("[matmul] range %d has %d bytes, the product needs %d", i, has, need*size)
		}
	}
	if q.work == nil {
		var err error
		if q.work, err = q.d.heap.alloc(q.d.lib, workBytes); err != nil {
			return err
		}
	}
	a, b, out := addressOf(ranges[0]), addressOf(ranges[1]), addressOf(ranges[2])
	q.steps = append(q.steps, step{command: k, do: func(s stream) error {
		if cut, err := q.waitsForCut(j); cut || err != nil {
			return err
		}
		return p.Multiply(s, m, a, b, out, q.work.address, q.work.bytes)
	}})
	return nil
}

// reach is how many elements a batch of rows by cols matrices spans.
func reach(m metal.Matrix, rows, cols, batch int) int64 {
	if m.Turned {
		rows, cols = cols, rows
	}
	return int64(batch-1)*int64(m.Step) + int64(rows-1)*int64(m.Lead) + int64(cols)
}

// waitsForCut waits for what is on the stream, if it may be stopped, and reports whether it was.
func (q *queue) waitsForCut(j *job) (bool, error) {
	if j.chain == nil {
		return false, nil
	}
	d := q.d
	if err := d.lib.Record(j.slot.over, q.stream); err != nil {
		return false, err
	}
	if err := d.lib.Synchronize(j.slot.over); err != nil {
		return false, err
	}
	ran, _, err := d.ran(j, true)
	return ran != nil, err
}
